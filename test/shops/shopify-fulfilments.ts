/** Fulfilment orders and fulfilments of the Shopify shop, and the mails that they send. */
import {
  connection,
  dateTime,
  gid,
  isFields,
  type NodeFields,
  needNumber,
  numberIn,
  objectsIn,
  type RootFields,
  textsIn,
  type UserError,
  userErrors,
} from './shopify-answers.ts'
import type { Fields } from './shopify-graphql.ts'
import type { ShopifyLine, ShopifyMail, ShopifyOrder } from './shopify-orders.ts'

export interface ShopifyFulfilmentOrder {
  id: string
  order: ShopifyOrder
  status: 'CANCELLED' | 'CLOSED' | 'IN_PROGRESS' | 'INCOMPLETE' | 'ON_HOLD' | 'OPEN' | 'SCHEDULED'
  /** Why it is held; empty for one that is not. */
  holds: { id: string; reason: HoldReason }[]
  /** When a scheduled one is to be fulfilled. */
  fulfillAt: number | null
  /** When the shop has made it: until then no answer has it. */
  visibleAt: number
  location: string
  lines: { id: string; line: ShopifyLine; total: number; remaining: number }[]
}

export type HoldReason = 'HIGH_RISK_OF_FRAUD' | 'ONLINE_STORE_POST_PURCHASE_CROSS_SELL' | 'OTHER'

export interface ShopifyFulfilment {
  id: string
  order: ShopifyOrder
  status: 'CANCELLED' | 'SUCCESS'
  createdAt: number
  lines: { id: string; line: ShopifyLine; quantity: number }[]
  tracking: { company: string | null; number: string | null; url: string | null }[]
}

interface FulfilmentsOptions {
  now: () => number
  newId: () => string
  /** Milliseconds from an order to its fulfilment orders. */
  delayMs: () => number
  location: () => string
  may: (scope: string) => boolean
  changed: (order: ShopifyOrder) => void
  /** Units were fulfilled: the shop may capture their money now. */
  fulfilled: (order: ShopifyOrder) => void
  happened: (topic: string, contents: Fields) => void
  mail: (one: ShopifyFulfilment, kind: ShopifyMail['kind']) => void
  lineFields: (line: ShopifyLine, order: ShopifyOrder) => Fields
}

const managed = 'read_merchant_managed_fulfillment_orders'

export function createFulfilments(options: FulfilmentsOptions) {
  const { now, newId, delayMs, location, may, changed, fulfilled, happened, mail, lineFields } = options
  const fulfilmentOrders = new Map<string, ShopifyFulfilmentOrder>()
  const fulfilments = new Map<string, ShopifyFulfilment>()

  /** Makes one for each location that the units are taken from. */
  const open = (
    order: ShopifyOrder,
    lines: { line: ShopifyLine; quantity: number; location?: string }[],
    delay = delayMs(),
  ): void => {
    for (const [at, own] of Map.groupBy(lines, (one) => one.location ?? location())) {
      const made: ShopifyFulfilmentOrder = {
        id: newId(),
        order,
        status: 'OPEN',
        holds: [],
        fulfillAt: null,
        visibleAt: now() + delay,
        location: at,
        lines: own.map(({ line, quantity }) => ({ id: newId(), line, total: quantity, remaining: quantity })),
      }
      fulfilmentOrders.set(made.id, made)
      order.fulfilmentOrders.push(made)
    }
  }
  const remainingOf = ({ lines }: ShopifyFulfilmentOrder) => lines.reduce((sum, { remaining }) => sum + remaining, 0)
  const settle = (one: ShopifyFulfilmentOrder): void => {
    const isUntouched = one.lines.every(({ total, remaining }) => total === remaining)
    if (remainingOf(one) === 0) one.status = 'CLOSED'
    else if (one.status === 'OPEN' && !isUntouched) one.status = 'IN_PROGRESS'
  }
  /** Takes units that were refunded or removed off what is still to be fulfilled. */
  const withdraw = (order: ShopifyOrder, line: ShopifyLine, quantity: number): void => {
    let left = quantity
    for (const one of order.fulfilmentOrders) {
      for (const each of one.lines) {
        if (each.line !== line || left === 0 || one.status === 'CANCELLED') continue
        const taken = Math.min(left, each.remaining)
        each.remaining -= taken
        each.total -= taken
        left -= taken
      }
      if (one.status !== 'CANCELLED' && remainingOf(one) === 0) one.status = 'CLOSED'
    }
  }
  const fulfilledUnits = (order: ShopifyOrder, line: ShopifyLine): number =>
    order.fulfilments
      .filter(({ status }) => status === 'SUCCESS')
      .flatMap(({ lines }) => lines)
      .reduce((sum, one) => (one.line === line ? sum + one.quantity : sum), 0)

  const fulfil = (
    order: ShopifyOrder,
    parts: { of: ShopifyFulfilmentOrder; units: { id: string; quantity: number }[] }[],
    tracking: ShopifyFulfilment['tracking'],
    isNotified: boolean,
  ): ShopifyFulfilment => {
    const made: ShopifyFulfilment = { id: newId(), order, status: 'SUCCESS', createdAt: now(), lines: [], tracking }
    for (const { of, units } of parts) {
      for (const { id, quantity } of units) {
        const each = of.lines.find((one) => one.id === id)
        if (!each || quantity === 0) continue
        each.remaining -= quantity
        const same = made.lines.find(({ line }) => line === each.line)
        if (same) same.quantity += quantity
        else made.lines.push({ id: newId(), line: each.line, quantity })
      }
      settle(of)
    }
    fulfilments.set(made.id, made)
    order.fulfilments.push(made)
    if (isNotified) mail(made, 'shipping_confirmation')
    changed(order)
    fulfilled(order)
    return made
  }
  const fulfilmentOrderFields = (one: ShopifyFulfilmentOrder): NodeFields => ({
    __typename: 'FulfillmentOrder',
    id: gid('FulfillmentOrder', one.id),
    status: one.status,
    requestStatus: 'UNSUBMITTED',
    orderId: gid('Order', one.order.id),
    fulfillAt: one.fulfillAt === null ? null : dateTime(one.fulfillAt),
    fulfillmentHolds: one.holds.map(({ id, reason }) => ({
      __typename: 'FulfillmentHold',
      id: gid('FulfillmentHold', id),
      reason,
    })),
    assignedLocation: {
      __typename: 'FulfillmentOrderAssignedLocation',
      location: { __typename: 'Location', id: gid('Location', one.location) },
    },
    lineItems: (given: Fields) =>
      connection(
        'FulfillmentOrderLineItem',
        one.lines,
        given,
        ({ id }) => [id],
        (each) => ({
          __typename: 'FulfillmentOrderLineItem',
          id: gid('FulfillmentOrderLineItem', each.id),
          remainingQuantity: each.remaining,
          totalQuantity: each.total,
          sku: each.line.sku,
          lineItem: () => lineFields(each.line, one.order),
        }),
      ),
  })
  const fulfilmentFields = (one: ShopifyFulfilment): NodeFields => ({
    __typename: 'Fulfillment',
    id: gid('Fulfillment', one.id),
    legacyResourceId: one.id,
    name: `${one.order.name}-F${one.order.fulfilments.indexOf(one) + 1}`,
    status: one.status,
    createdAt: dateTime(one.createdAt),
    totalQuantity: one.lines.reduce((sum, { quantity }) => sum + quantity, 0),
    trackingInfo: ({ first }: Fields) =>
      one.tracking
        .slice(0, typeof first === 'number' ? first : undefined)
        .map((each) => ({ __typename: 'FulfillmentTrackingInfo', ...each })),
    fulfillmentLineItems: (given: Fields) =>
      connection(
        'FulfillmentLineItem',
        one.lines,
        given,
        ({ id }) => [id],
        (each) => ({
          __typename: 'FulfillmentLineItem',
          id: gid('FulfillmentLineItem', each.id),
          quantity: each.quantity,
          lineItem: () => lineFields(each.line, one.order),
        }),
      ),
  })

  const isVisible = ({ visibleAt }: ShopifyFulfilmentOrder): boolean => visibleAt <= now()
  /** The fields by which an order shows them. Without the scope the list of fulfilment orders is empty. */
  const orderFields = (order: ShopifyOrder): Fields => ({
    fulfillments: ({ first }: Fields) =>
      order.fulfilments.slice(0, typeof first === 'number' ? first : undefined).map(fulfilmentFields),
    fulfillmentOrders: (given: Fields) => {
      const found = may(managed) ? order.fulfilmentOrders.filter(isVisible) : []
      return connection('FulfillmentOrder', found, given, ({ id }) => [id], fulfilmentOrderFields)
    },
    displayFulfillmentStatus: statusOf(order),
  })
  const statusOf = (order: ShopifyOrder): string => {
    const isDone = order.lines.every((line) => fulfilledUnits(order, line) >= line.currentQuantity)
    const isBegun = order.lines.some((line) => fulfilledUnits(order, line) > 0)
    if (order.fulfilmentOrders.some(({ status }) => status === 'ON_HOLD')) return 'ON_HOLD'
    if (isDone && isBegun) return 'FULFILLED'
    return isBegun ? 'PARTIALLY_FULFILLED' : 'UNFULFILLED'
  }

  const createFulfillment = ({ fulfillment: input }: Fields): Fields => {
    const given = isFields(input) ? input : {}
    const errors: UserError[] = []
    const refuse = (message: string) => void errors.push({ field: ['fulfillment'], message })
    const parts = objectsIn(given.lineItemsByFulfillmentOrder).flatMap((one) => {
      const of = fulfilmentOrders.get(numberIn('FulfillmentOrder', one.fulfillmentOrderId) ?? '')
      if (!of || !isVisible(of)) {
        refuse('Fulfillment order does not exist.')
        return []
      }
      if (of.status !== 'OPEN' && of.status !== 'IN_PROGRESS') {
        refuse(`Fulfillment order ${of.id} has an unfulfillable status= ${of.status.toLowerCase()}.`)
        return []
      }
      const asked = objectsIn(one.fulfillmentOrderLineItems).map(({ id, quantity }) => ({
        id: numberIn('FulfillmentOrderLineItem', id) ?? '',
        quantity: Number(quantity),
      }))
      // An empty list means all of them.
      const units = asked.length > 0 ? asked : of.lines.map(({ id, remaining }) => ({ id, quantity: remaining }))
      for (const { id, quantity } of units) {
        const each = of.lines.find((line) => line.id === id)
        if (!each) refuse('Fulfillment order line item does not exist.')
        else if (quantity < 1 || quantity > each.remaining) {
          refuse('Invalid fulfillment order line item quantity requested.')
        }
      }
      return [{ of, units }]
    })
    const [first] = parts
    if (!first && errors.length === 0) refuse('At least one fulfillment order is required.')
    if (first && parts.some(({ of }) => of.order !== first.of.order || of.location !== first.of.location)) {
      refuse('All fulfillment orders must be of one order and assigned to one location.')
    }
    const made =
      first && errors.length === 0
        ? fulfil(first.of.order, parts, trackingIn(given.trackingInfo), given.notifyCustomer === true)
        : undefined
    return {
      __typename: 'FulfillmentCreatePayload',
      fulfillment: made ? () => fulfilmentFields(made) : null,
      userErrors: userErrors('UserError', errors),
    }
  }
  const updateTracking = ({ fulfillmentId, trackingInfoInput, notifyCustomer }: Fields): Fields => {
    const found = fulfilments.get(needNumber('Fulfillment', fulfillmentId))
    const errors: UserError[] = []
    if (!found) errors.push({ field: ['fulfillmentId'], message: 'Fulfillment does not exist.' })
    else if (found.status === 'CANCELLED') {
      errors.push({ field: ['fulfillmentId'], message: 'Fulfillment is cancelled.' })
    } else {
      found.tracking = trackingIn(trackingInfoInput)
      if (notifyCustomer === true) mail(found, 'shipping_update')
      changed(found.order)
    }
    return {
      __typename: 'FulfillmentTrackingInfoUpdatePayload',
      fulfillment: found && errors.length === 0 ? () => fulfilmentFields(found) : null,
      userErrors: userErrors('UserError', errors),
    }
  }

  const nodeOf = (type: string, id: string): NodeFields | undefined => {
    const [fulfilmentOrder, fulfilment] = [fulfilmentOrders.get(id), fulfilments.get(id)]
    if (type === 'FulfillmentOrder' && fulfilmentOrder && isVisible(fulfilmentOrder) && may(managed)) {
      return fulfilmentOrderFields(fulfilmentOrder)
    }
    return type === 'Fulfillment' && fulfilment ? fulfilmentFields(fulfilment) : undefined
  }
  const scope = 'write_merchant_managed_fulfillment_orders'
  const root: RootFields = {
    queries: {
      fulfillmentOrder: {
        scope: managed,
        isNullable: true,
        answer: ({ id }) => nodeOf('FulfillmentOrder', needNumber('FulfillmentOrder', id)) ?? null,
      },
    },
    mutations: {
      fulfillmentCreate: { scope, isNullable: true, answer: createFulfillment },
      fulfillmentTrackingInfoUpdate: { scope, isNullable: true, answer: updateTracking },
    },
  }

  return {
    fulfilments,
    fulfilmentOrders,
    root,
    nodeOf,
    open,
    withdraw,
    fulfilledUnits,
    orderFields,
    /** The merchant fulfils by hand all that is left, or so many units of a line. */
    fulfilByHand: (order: ShopifyOrder, only?: { line: string; quantity: number }, isNotified = false) => {
      let left = only?.quantity ?? Number.POSITIVE_INFINITY
      const parts = order.fulfilmentOrders
        .filter(({ status }) => status !== 'CANCELLED' && status !== 'CLOSED')
        .map((of) => ({
          of,
          units: of.lines.flatMap(({ id, line, remaining }) => {
            const quantity = only && line.id !== only.line ? 0 : Math.min(left, remaining)
            left -= quantity
            return quantity > 0 ? [{ id, quantity }] : []
          }),
        }))
        .filter(({ units }) => units.length > 0)
      return fulfil(order, parts, [], isNotified)
    },
    /** The merchant takes a fulfilment back: its units wait again. */
    cancelFulfilment: (id: string): void => {
      const found = fulfilments.get(id)
      if (!found) throw new Error(`The shop has no fulfilment ${id}.`)
      found.status = 'CANCELLED'
      open(found.order, found.lines, 0)
      changed(found.order)
    },
    /** Holds, schedules or releases what is to be fulfilled. No source says that the order gets another date by that. */
    setStatus: (
      order: ShopifyOrder,
      status: ShopifyFulfilmentOrder['status'],
      { reason = 'OTHER', fulfillAt = null }: { reason?: HoldReason; fulfillAt?: number | null } = {},
    ): void => {
      for (const one of order.fulfilmentOrders) {
        if (one.status === 'CLOSED') continue
        const before = { ...one }
        one.status = status
        one.holds = status === 'ON_HOLD' ? [{ id: newId(), reason }] : []
        one.fulfillAt = status === 'SCHEDULED' ? fulfillAt : one.fulfillAt
        const about = { fulfillment_order: { id: gid('FulfillmentOrder', one.id), status: status.toLowerCase() } }
        if (status === 'ON_HOLD') happened('FULFILLMENT_ORDERS_PLACED_ON_HOLD', about)
        if (status !== 'OPEN') continue
        for (const { id } of before.holds) {
          happened('FULFILLMENT_HOLDS_RELEASED', { ...about, fulfillment_hold: { id: gid('FulfillmentHold', id) } })
        }
        if (before.status === 'ON_HOLD') happened('FULFILLMENT_ORDERS_HOLD_RELEASED', about)
        if (before.status === 'SCHEDULED') happened('FULFILLMENT_ORDERS_SCHEDULED_FULFILLMENT_ORDER_READY', about)
      }
    },
    /** The merchant moves units of a line to a fulfilment order of their own. */
    split: (order: ShopifyOrder, lineId: string, quantity: number): void => {
      const each = order.fulfilmentOrders.flatMap(({ lines }) => lines).find(({ line }) => line.id === lineId)
      if (!each || each.remaining <= quantity) throw new Error('There are not so many units to split.')
      each.remaining -= quantity
      each.total -= quantity
      open(order, [{ line: each.line, quantity }], 0)
    },
  }
}

function trackingIn(input: unknown): ShopifyFulfilment['tracking'] {
  if (!isFields(input)) return []
  const text = (value: unknown) => (value == null ? null : String(value))
  const numbers = input.numbers === undefined ? [text(input.number)] : textsIn(input.numbers)
  const urls = input.urls === undefined ? [text(input.url)] : textsIn(input.urls)
  return Array.from({ length: Math.max(numbers.length, urls.length) }, (_, index) => ({
    company: text(input.company),
    number: numbers[index] ?? null,
    url: urls[index] ?? null,
  })).filter(({ company, number, url }) => company !== null || number !== null || url !== null)
}
