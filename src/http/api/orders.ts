import { z } from 'zod'
import type { Caller } from '../../access/tokens.ts'
import { lineStates, orderStates } from '../../domain/store-order.ts'
import { Failure } from '../../errors.ts'
import { cancelOrder } from '../../ordering/actions.ts'
import { takeOrder } from '../../ordering/intake.ts'
import { statesOfOrders, viewOrder } from '../../ordering/order-view.ts'
import type { Database } from '../../storage/database.ts'
import {
  listStoreOrders,
  type StoreOrder,
  storeOrderByReference,
  storeOrdersByReference,
} from '../../storage/store-orders.ts'
import { anyText, orderBody, orderDigest, orderInput, paging } from '../input.ts'
import { type ApiContext, configuredStore, type Operation, ok, operation } from '../operation.ts'
import { Purchase } from './purchases.ts'
import { at, byId, count, maybeAt, page, pageOf, words } from './views.ts'

const head = {
  store: z.string(),
  reference: z.string(),
  state: z.enum(orderStates),
  receivedAt: at,
  cancelRequestedAt: maybeAt,
  closedAt: maybeAt,
}

const line = {
  id: z.string().meta({ description: "The store's own id of the line" }),
  sku: z.string(),
  quantity: z.int(),
  state: z.enum(lineStates),
  delivered: count.meta({ description: 'Licence keys that the store has confirmed' }),
}

const OrderEntry = z.object({ id: z.string(), ...head, lines: z.array(z.object(line)) }).meta({ id: 'OrderEntry' })

const Order = z
  .object({
    ...head,
    lines: z.array(
      z.object({
        ...line,
        name: words.meta({ description: 'Null for a line that is not one of the listings' }),
        keys: z.array(z.string()).optional().meta({ description: 'Only for a token with the scope keys' }),
        purchases: z.array(Purchase),
      }),
    ),
    timeline: z.array(z.object({ at, what: z.string(), detail: words })),
  })
  .meta({ id: 'Order' })

/** What stores and people do with orders. */
export function orderOperations(context: Pick<ApiContext, 'ordering' | 'stores'>): Operation[] {
  const { ordering } = context
  const { db } = ordering
  const view = (orderId: string, caller: Caller) => viewOrder(ordering, orderId, { keys: caller.scopes.has('keys') })
  const storeQuery = { store: anyText }
  const unknown = 'no order has this reference'
  const ambiguous = 'several stores have an order under this reference: `ambiguous_reference`'

  return [
    operation({
      name: 'takeOrder',
      method: 'post',
      path: '/orders',
      allowed: { store: 'orders' },
      summary: 'Place a paid store order. Repeats are safe: the order is taken once.',
      body: orderBody,
      answer: Order,
      success: { 202: 'Taken and stored; buying continues from here', 200: 'The same order was here before' },
      failures: {
        409: '`reference_reused`: another order has this reference; `ambiguous_sku`',
        422: '`no_known_sku`: no line is one of the listings',
      },
      async handle({ caller, body }) {
        const input = orderInput(body)
        const store = configuredStore(context, storeOf(caller))
        const { orderId, created } = await takeOrder(ordering, store.id, input, orderDigest(input))
        return { status: created ? 202 : 200, data: await view(orderId, caller) }
      },
    }),

    operation({
      name: 'listOrders',
      method: 'get',
      path: '/orders',
      allowed: { store: 'orders', people: 'viewer' },
      summary: 'Store orders with their lines, newest first. A store token sees the orders of its own store.',
      query: { ...paging, ...storeQuery },
      answer: page(OrderEntry),
      success: { 200: 'A page of orders' },
      async handle({ caller, query: { limit, before, store: named } }) {
        const store = storeAsked(caller, named)
        const rows = await db.query(listStoreOrders({ store, before, limit: limit + 1 }))
        return ok(pageOf(await statesOfOrders(db, rows), limit, byId))
      },
    }),

    operation({
      name: 'viewOrder',
      method: 'get',
      path: '/orders/:reference',
      allowed: { store: 'orders', people: 'viewer' },
      summary: 'One store order. Licence keys are shown to store tokens with the scope `keys` only.',
      query: storeQuery,
      answer: Order,
      success: { 200: 'The order as it is now' },
      failures: { 404: unknown, 409: ambiguous },
      async handle({ caller, path, query }) {
        const { id } = await findOrder(db, caller, path.reference ?? '', query.store)
        return ok(await view(id, caller))
      },
    }),

    operation({
      name: 'cancelOrder',
      method: 'post',
      path: '/orders/:reference/cancel',
      allowed: { store: 'orders', people: 'operator' },
      summary:
        'Cancel what was not bought yet; an operator decides on the rest. A repeat also cancels what was retried since.',
      query: storeQuery,
      answer: Order,
      success: { 200: 'The order after the cancellation was requested' },
      failures: { 404: unknown, 409: ambiguous },
      async handle({ caller, path, query }) {
        const { id } = await findOrder(db, caller, path.reference ?? '', query.store)
        await cancelOrder(ordering, id, caller.actor)
        return ok(await view(id, caller))
      },
    }),
  ]
}

/** The store that a token is bound to. */
export function storeOf({ store }: Caller): string {
  if (store === null) throw new Failure('forbidden', 'the token is bound to no store')
  return store
}

/** The store whose orders a caller asks for: a store token speaks for its own only; undefined: every store. */
function storeAsked({ store }: Caller, named: string | undefined): string | undefined {
  if (store === null) return named
  if (named !== undefined && named !== store) throw new Failure('forbidden', 'the token is bound to another store')
  return store
}

/** A store token finds its own orders only; a person names the store where the reference alone does not. */
async function findOrder(db: Database, caller: Caller, reference: string, named?: string): Promise<StoreOrder> {
  const store = storeAsked(caller, named)
  const found = await db.query(
    store === undefined ? storeOrdersByReference(reference) : storeOrderByReference(store, reference),
  )
  const [order] = found
  if (!order) throw new Failure('not_found', 'no order has this reference')
  if (found.length === 1) return order
  const stores = found.map((one) => one.store).join(', ')
  throw new Failure('conflict', `several stores have an order under this reference; name one with ?store=: ${stores}`, {
    reason: 'ambiguous_reference',
  })
}
