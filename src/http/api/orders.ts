import { z } from 'zod'
import type { Caller } from '../../access/tokens.ts'
import { lineLabels, noMarginLabels, orderLabels } from '../../domain/labels.ts'
import { storedKeyTypes } from '../../domain/licence-key.ts'
import { holdReasons } from '../../domain/purchase.ts'
import { type Earning, orderStates } from '../../domain/store-order.ts'
import { Failure } from '../../errors.ts'
import { cancelOrder } from '../../ordering/actions.ts'
import { claimViews } from '../../ordering/claims.ts'
import { takeOrder } from '../../ordering/intake.ts'
import { withdrawKeysPage } from '../../ordering/keys-page.ts'
import { HISTORY_MAX, orderHistory, revealKeys } from '../../ordering/order-history.ts'
import {
  askOrders,
  type ListedOrder,
  orderCalled,
  statesOfOrders,
  viewOrder,
  viewTaken,
} from '../../ordering/order-view.ts'
import { resendKeys } from '../../ordering/resend.ts'
import { takeByHand } from '../../ordering/shop-orders.ts'
import { claimsOfOrder } from '../../storage/claims.ts'
import type { Purchase as PurchaseRow } from '../../storage/purchases.ts'
import {
  choice,
  inStore,
  maybeReasonBody,
  orderBody,
  orderDigest,
  orderInput,
  orderLine,
  revealBody,
  search,
  withdrawKeysBody,
} from '../input.ts'
import { type ApiContext, admin, type Call, configuredStore, ok, operation, operator, viewer } from '../operation.ts'
import { ClaimEntry } from './claims.ts'
import { Delivery } from './deliveries.ts'
import { listOperation } from './list-operation.ts'
import { Effect } from './outbox.ts'
import { Attempt, audited, Purchase, purchaseShape, repeated, Transition } from './purchases.ts'
import {
  amount,
  amountOf,
  at,
  component,
  count,
  currency,
  enumeration,
  maybeAt,
  view,
  withAmounts,
  words,
} from './views.ts'

const OrderState = enumeration('OrderState', orderLabels)
const LineState = enumeration('LineState', lineLabels)

/** The parts of an order that every view of it has. */
export const head = {
  store: z.string().describe('Id of the store'),
  reference: z.string().meta({ description: "The store's own number of the order", examples: ['1001'] }),
  number: words.describe('By which people of the store know the order, such as `#1001`; null: by its reference'),
  state: OrderState,
  receivedAt: at.describe('When it was taken'),
  cancelRequestedAt: maybeAt.describe('When its cancellation was requested'),
  closedAt: maybeAt.describe('When its last line ended'),
}

const line = {
  id: z.string().meta({ description: "The store's own id of the line", examples: ['1'] }),
  sku: z.string().meta({ description: 'As the store wrote it', examples: ['GAM-RAIL4'] }),
  quantity: z.int().describe('How many licence keys were ordered'),
  state: LineState,
  delivered: count.describe('Licence keys that the store has confirmed'),
}
const name = words.describe('Of the product; null for a line that is not one of the listings')
export const LineEntry = component('OrderLineEntry', {
  ...line,
  name,
  waitsFor: z
    .enum(['review', ...holdReasons])
    .nullable()
    .describe('What keeps it: the decision of an operator, or a hold'),
})
const OrderEntry = view(
  component('OrderEntry', {
    id: z.string().describe('Id of the order here'),
    ...head,
    cost: amount
      .nullable()
      .describe('What its purchases cost, as far as it is known: without what came back or is owed back'),
    currency: currency.nullable().describe('Of `cost`: the one that the supplier sells in'),
    lastKeyAt: maybeAt.describe('When the store confirmed the last licence key that it has'),
    lines: z.array(LineEntry).describe('As the store ordered them'),
  }),
  withAmounts<ListedOrder>,
)

const KeyOpening = component('KeyOpening', {
  purchaseId: z.string(),
  ordinal: z.int().describe('Of the key in its purchase'),
  at: at.describe('When the customer first opened the key on the page'),
  times: count.describe('How often'),
  network: z.string().meta({ description: 'From where at first, truncated', examples: ['203.0.113.0/24'] }),
})
const keysPage = component('KeysPage', {
  madeAt: at,
  withdrawnAt: maybeAt.describe('When an operator withdrew it: it opens no key any more'),
})
  .optional()
  .describe('The page on which the customer opens the keys; absent: the order has none')
export const keysUrl = z.string().meta({
  description:
    'The address of the page of keys. Everyone who has it can open them, and what is opened counts as opened by the customer',
  examples: ['https://quayside.example/k/…'],
})

const typed = {
  type: z
    .enum(storedKeyTypes)
    .describe('What it is; of an `image` or a `file` the text is the address of the page of keys'),
  parts: z
    .array(z.object({ label: z.string(), text: z.string() }))
    .optional()
    .describe('Of a `pair`: both texts'),
}
const Line = component('OrderLine', {
  ...line,
  name,
  keys: z
    .array(z.string())
    .optional()
    .describe('The licence keys that were handed over; only for a token with the scope `keys`'),
  typedKeys: z
    .array(
      z.object({ ...typed, text: z.string() }).meta({ id: 'TypedKey', description: 'A licence key with what it is' }),
    )
    .optional()
    .describe('The same keys with their types; absent where all are plain text'),
  keysOpened: z.array(KeyOpening).describe('Of each key that the customer opened on the page of keys'),
  purchases: z.array(Purchase).describe('What was bought for it at the supplier, and what is to be bought'),
})

const TimelineEntry = component('TimelineEntry', {
  at: at.describe('When it happened'),
  what: z.string().meta({ description: 'What happened, for people', examples: ['purchase accepted'] }),
  detail: words.describe('More about it, for people'),
})

const Order = component('Order', {
  ...head,
  lines: z.array(Line).describe('As the store ordered them'),
  keysPage,
  keysUrl: keysUrl.optional(),
  timeline: z.array(TimelineEntry).describe('What happened, the oldest first'),
  claims: z.array(ClaimEntry).optional().describe('Keys that do not work; only for people'),
})

/** What was sold, at what cost. */
const earning = {
  sale: amount.nullable().describe('The price of the units that the store still sells; null where it does not say it'),
  saleCurrency: currency.nullable(),
  charged: amount.describe('What the supplier has charged in all'),
  refunded: amount.describe('What it has given back of that'),
  owedBack: amount.describe('What it has charged for orders that failed, and not given back as far as is known'),
  cost: amount.describe('What was charged, less what came back or is owed back'),
  currency: currency
    .nullable()
    .describe('Of all amounts but those that the customer paid: the one that the supplier sells in'),
  margin: amount
    .nullable()
    .describe('The sale price less the cost, once the store has all keys; null where `noMargin` says why'),
  marginPercent: words.describe('The margin as a percentage of its sale price, such as `9.1`'),
  noMargin: enumeration('NoMargin', noMarginLabels)
    .nullable()
    .describe('Why there is no margin, or of an order: why a line has none'),
}
const earned = <E extends Pick<Earning, 'saleMinor' | 'saleCurrency' | 'currency'>>(sums: E) => ({
  ...withAmounts(sums),
  sale: sums.saleCurrency === null ? null : amountOf(sums.saleMinor, sums.saleCurrency),
})
const LineMoney = view(
  component('LineMoney', {
    ...earning,
    leastMargin: amount
      .nullable()
      .describe('The margin of a line that is still bought, if what is missing costs its ceiling'),
  }),
  earned<Earning>,
)

type OrderHistoryRow = Awaited<ReturnType<typeof orderHistory>>

const LineHistory = view(
  component('LineHistory', {
    ...line,
    name,
    cost: amount.nullable().describe('What the supplier asks for one unit now'),
    currency: currency.nullable(),
    money: LineMoney,
    purchases: z.array(
      view(
        component('HistoryPurchase', {
          ...purchaseShape.shape,
          createdAt: at,
          deadlineAt: at.describe('If it is not sent by then, it ends'),
          idempotencyKey: z.string().describe('By it the supplier knows a repeat'),
          body: z.string().describe('The request, as it is sent each time'),
        }),
        withAmounts<PurchaseRow>,
      ),
    ),
    keys: z.array(
      z
        .object({ purchaseId: z.string(), ordinal: z.int(), storedAt: at, begunAt: maybeAt, handedOverAt: maybeAt })
        .meta({ id: 'KeyStanding', description: 'A licence key without its text' }),
    ),
  }),
  withAmounts<OrderHistoryRow['lines'][number]>,
)
const OrderMoney = view(
  component('OrderMoney', {
    ...earning,
    paid: amount.nullable().describe('What the customer paid for the lines; null where the store does not say'),
    paidCurrency: currency.nullable(),
  }),
  ({ paidMinor, paidCurrency, ...sums }: OrderHistoryRow['money']) => ({
    ...earned(sums),
    paid: paidCurrency === null ? null : amountOf(paidMinor, paidCurrency),
    paidCurrency,
  }),
)
const ofPurchase = { purchaseId: z.string() }
const History = view(
  component('OrderHistory', {
    id: z.string().describe('Id of the order here'),
    ...head,
    lines: z.array(LineHistory).describe('As the store ordered them'),
    purchases: count.describe(`How many purchases it has; what follows is about the ${HISTORY_MAX} that changed last`),
    money: OrderMoney,
    steps: z
      .array(
        z.object({
          step: z.enum(['bought', 'keys', 'delivered']),
          count,
          of: count,
          at: maybeAt.describe('When the last of them came'),
        }),
      )
      .describe('How many of its units were bought, have their key, and are with the store'),
    attempts: z.array(Attempt.extend({ ...ofPurchase, answerDigest: words.describe('SHA-256 of the answer') })),
    transitions: z.array(Transition.extend({ ...ofPurchase, ...repeated })),
    updates: z.array(Effect).describe('What is queued for its store, or was sent'),
    deliveries: z.array(Delivery).describe('What the supplier sent about its purchases'),
    outages: z.array(z.object({ beganAt: at, endedAt: maybeAt, error: z.string() })),
    keysPage,
    openings: z.array(KeyOpening).describe('The keys that the customer opened on the page of keys'),
    audit: z
      .array(z.object({ ...audited, subject: z.string() }))
      .describe('What people did to the order and to its purchases'),
    resendRefusal: words.describe('Why its store cannot send the customer the keys again; null when it can'),
  }),
  ({ order, ...rest }: OrderHistoryRow) => ({ ...order, ...rest }),
)

const Revealed = z.object({
  keysUrl: keysUrl.nullable(),
  items: z.array(
    z.object({
      line: z.string().describe("The store's own id of the line"),
      keys: z.array(
        z.object({
          purchaseId: z.string(),
          ordinal: z.int(),
          key: z.string(),
          ...typed,
          begunAt: maybeAt,
          handedOverAt: maybeAt,
        }),
      ),
    }),
  ),
})

export function orderOperations(context: ApiContext) {
  const { ordering } = context
  const { db } = ordering
  const shown = ({ scopes }: Caller) => ({ keys: scopes.has('keys') })
  /** The address of a page opens keys, so only those learn it to whom keys are shown. */
  const view = async (orderId: string, caller: Caller) => {
    const order = await viewOrder(ordering, orderId, shown(caller))
    const isShown = shown(caller).keys && order.keysPage !== undefined
    return {
      ...order,
      keysUrl: isShown ? await ordering.keysUrl?.(orderId) : undefined,
      ...(caller.store === null && { claims: await claimViews(db, await db.query(claimsOfOrder(orderId))) }),
    }
  }
  const storeQuery = { store: inStore }
  /** Finds an order. A store token finds only its own store's orders. A person names the store if several have the reference. */
  const idOf = async ({ caller, path: { reference }, query }: Named): Promise<string> =>
    (await orderCalled(db, storeAsked(caller, query.store), reference)).id
  const unknown = 'no order has this reference'
  const shopOf = (named: string | undefined): string => {
    const shops = context.stores.filter(({ id }) => ordering.storeOf(id)?.order)
    const store = named ?? (shops.length === 1 ? shops[0]?.id : undefined)
    if (store !== undefined) return store
    const ids = shops.map(({ id }) => id).join(', ')
    throw new Failure('conflict', `name the shop with ?store=: ${ids}`, { reason: 'no_shop' })
  }
  const ambiguous = 'several stores have an order under this reference: `ambiguous_reference`'

  return {
    takeOrder: operation({
      route: 'POST /orders',
      allowed: { store: 'orders' },
      summary: 'Place a paid store order. Repeats are safe: the order is taken once.',
      body: orderBody,
      answer: Order,
      success: { 202: 'Taken and stored; buying continues from here', 200: 'The same order was here before' },
      failures: {
        409: '`reference_reused`: another order has this reference; `ambiguous_sku`; `store_off`',
        422: '`no_known_sku`: no line is one of the listings',
      },
      async handle({ caller, body }) {
        const input = orderInput(body)
        const store = configuredStore(context, storeOf(caller))
        if (store.selling === 'off') {
          const message = `the store ${store.id} is not live yet, so no order of it is taken: switch it on first`
          throw new Failure('conflict', message, { reason: 'store_off' })
        }
        const { orderId, created } = await takeOrder(ordering, store.id, input, orderDigest(input))
        return created
          ? { status: 202, data: await viewTaken(ordering, created, shown(caller)) }
          : ok(await view(orderId, caller))
      },
    }),
    listOrders: listOperation({
      route: 'GET /orders',
      allowed: { store: 'orders', people: 'viewer' },
      summary: 'Store orders with their lines, newest first. A store token sees the orders of its own store.',
      filters: {
        ...storeQuery,
        state: choice(orderStates, 'Only orders in this state, as it was reported to their store; `open` until then'),
        search,
      },
      item: OrderEntry,
      success: { 200: 'A page of orders' },
      db,
      read: ({ store, ...filter }, { caller }) => askOrders(db, { ...filter, store: storeAsked(caller, store) }),
      countMax: ({ search }) => (search === undefined ? undefined : SKU_COUNT_MAX),
      show: (rows) => statesOfOrders(db, rows),
    }),
    viewOrderHistory: operation({
      route: 'GET /orders/:reference/history',
      allowed: viewer,
      summary: 'All that is known of an order: purchases, requests, changes, updates of its store, deliveries, people.',
      query: storeQuery,
      answer: History,
      success: { 200: 'The history as it is now' },
      failures: { 404: unknown, 409: ambiguous },
      handle: async (call) => ok(await orderHistory(ordering, await idOf(call))),
    }),
    revealKeys: operation({
      route: 'POST /orders/:reference/keys',
      allowed: admin,
      summary:
        'Show the licence keys of an order that its store has, or is being given, and the address of their page. The audit records who and why.',
      query: storeQuery,
      body: revealBody,
      answer: Revealed,
      success: { 200: 'The keys' },
      failures: { 404: unknown, 409: '`no_keys`: the store has none; `ambiguous_reference`' },
      async handle({ body: { line, reason }, ...call }) {
        const id = await idOf(call)
        const items = await revealKeys(ordering, id, line, { actor: call.caller.actor, reason })
        return ok({ items, keysUrl: (await ordering.keysUrl?.(id)) ?? null })
      },
    }),
    viewOrder: operation({
      route: 'GET /orders/:reference',
      allowed: { store: 'orders', people: 'viewer' },
      summary: 'One store order. Licence keys and `keysUrl` are shown to store tokens with the scope `keys` only.',
      query: storeQuery,
      answer: Order,
      success: { 200: 'The order as it is now' },
      failures: { 404: unknown, 409: ambiguous },
      handle: async (call) => ok(await view(await idOf(call), call.caller)),
    }),
    cancelOrder: operation({
      route: 'POST /orders/:reference/cancel',
      allowed: { store: 'orders', people: 'operator' },
      summary:
        'Cancel what was not bought yet; an operator decides on the rest. A repeat also cancels what was retried since.',
      query: storeQuery,
      body: maybeReasonBody,
      answer: Order,
      success: { 200: 'The order after the cancellation was requested' },
      failures: { 404: unknown, 409: ambiguous },
      async handle({ caller, path, query, body: { reason } }) {
        const id = await idOf({ caller, path, query })
        await cancelOrder(ordering, id, caller.actor, reason)
        return ok(await view(id, caller))
      },
    }),
    withdrawKeysPage: operation({
      route: 'POST /orders/:reference/keys-page/withdraw',
      allowed: operator,
      summary: 'Withdraw the page of keys of an order: it opens no key any more. What was opened stays known.',
      query: storeQuery,
      body: withdrawKeysBody,
      answer: Order,
      success: { 200: 'The order, whose page is withdrawn' },
      failures: {
        404: unknown,
        409: '`no_page`: the order has none; `withdrawn`: that was done before; `ambiguous_reference`',
      },
      async handle({ body: { reason }, ...call }) {
        const id = await idOf(call)
        await withdrawKeysPage(ordering, id, { actor: call.caller.actor, reason })
        return ok(await view(id, call.caller))
      },
    }),
    takeShopOrder: operation({
      route: 'POST /orders/:reference/take',
      needsWorker: true,
      allowed: operator,
      summary:
        'Take a paid order of a shop, also one that was placed before the shop was connected or fulfilled elsewhere; or the units of a line that came later.',
      query: { ...storeQuery, line: orderLine },
      answer: Order,
      success: { 200: 'Taken now or before; buying continues from here' },
      failures: {
        404: 'the shop has no such order',
        409: '`no_shop`: no shop is named, or this store hands its orders in itself; `not_taken`: it is not bought, with the reason',
        503: 'the shop could not be read',
      },
      async handle({ caller, path, query: { store, line } }) {
        const take = line === undefined ? 'all' : { line }
        return ok(await view(await takeByHand(ordering, shopOf(store), path.reference, { take }, caller.actor), caller))
      },
    }),
    releaseShopOrder: operation({
      route: 'POST /orders/:reference/release',
      needsWorker: true,
      allowed: operator,
      summary:
        'Let an order of a shop go on that waits for a person: after money was refunded without naming units, or less of it is paid than before.',
      query: storeQuery,
      answer: Order,
      success: { 200: 'Read again and followed: what waited for a person goes on' },
      failures: {
        404: 'the shop has no such order',
        409: '`no_shop`: no shop is named, or this store hands its orders in itself; `not_taken`: it was never taken',
        503: 'the shop could not be read',
      },
      async handle({ caller, path, query: { store } }) {
        const id = await takeByHand(ordering, shopOf(store), path.reference, 'release', caller.actor)
        return ok(await view(id, caller))
      },
    }),
    resendOrder: operation({
      route: 'POST /orders/:reference/resend',
      needsWorker: true,
      allowed: operator,
      summary:
        'Have the shop send the customer the keys of an order again: those that were handed over, and no others.',
      query: storeQuery,
      body: maybeReasonBody,
      answer: z.object({
        keys: count.describe('How many licence keys were sent again'),
        detail: words.describe('What the customer gets, as a sentence; null: the shop has sent all keys again'),
      }),
      success: { 200: 'The shop has sent them' },
      failures: {
        404: unknown,
        409: '`no_keys`: none is handed over yet; `no_resend`: a backend writes to its customers itself; `no_page`: a picture or a file needs `publicUrl`; `ambiguous_reference`',
        503: 'the shop did not confirm it',
      },
      handle: async ({ body: { reason }, ...call }) =>
        ok(await resendKeys(ordering, await idOf(call), call.caller.actor, reason)),
    }),
  }
}

/** Returns the store to which a token is bound. */
export function storeOf({ store }: Caller): string {
  if (store === null) throw new Failure('forbidden', 'the token is bound to no store')
  return store
}

/** Of a million orders, ten thousand have the SKU that sells best. To count them reads each of these orders, which takes 250 ms. */
const SKU_COUNT_MAX = 1_000

/** Returns the store whose orders a caller asks for; undefined for all stores. A store token speaks for its own store only. */
function storeAsked({ store }: Caller, named: string | undefined): string | undefined {
  if (store === null) return named
  if (named !== undefined && named !== store) throw new Failure('forbidden', 'the token is bound to another store')
  return store
}

/** A call that names an order. */
type Named = Pick<Call<{ store?: string | undefined }, unknown, 'reference'>, 'caller' | 'path' | 'query'>
