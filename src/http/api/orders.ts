import type { Caller } from '../../access/auth.ts'
import { Failure } from '../../errors.ts'
import { cancelOrder } from '../../ordering/actions.ts'
import { takeOrder } from '../../ordering/intake.ts'
import { viewOrder } from '../../ordering/order-view.ts'
import type { Database } from '../../storage/database.ts'
import {
  listStoreOrders,
  type StoreOrder,
  storeOrderByReference,
  storeOrdersByReference,
} from '../../storage/store-orders.ts'
import { anyText, orderBody, orderDigest, orderInput, paging } from '../input.ts'
import { type ApiContext, configuredStore, type Operation, ok, operation } from '../operation.ts'
import { statesOfOrders } from './read-models.ts'
import { Order, OrderEntry, orderEntry, orderView, page, pageOf } from './views.ts'

/** What stores and people do with orders. */
export function orderOperations(context: Pick<ApiContext, 'ordering' | 'stores'>): Operation[] {
  const { ordering } = context
  const { db } = ordering
  const view = async (orderId: string, caller: Caller) =>
    orderView(await viewOrder(ordering, orderId, { keys: caller.scopes.has('keys') }))
  const storeQuery = { store: anyText }
  const unknown = 'no order has this reference'
  const ambiguous = 'several stores have an order under this reference: `ambiguous_reference`'

  return [
    operation({
      name: 'takeOrder',
      method: 'post',
      path: '/orders',
      allowed: { store: 'orders' },
      summary: 'Hand in a paid store order. Repeat it as often as you like: it is taken once.',
      body: orderBody,
      answer: Order,
      success: { 202: 'Taken and stored; buying goes on from here', 200: 'The same order was here before' },
      failures: {
        409: '`reference_reused`: another order was handed in under this reference; `ambiguous_sku`',
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
      allowed: { people: 'viewer' },
      summary: 'Store orders, newest first.',
      query: { ...paging, ...storeQuery },
      answer: page(OrderEntry),
      success: { 200: 'A page of orders' },
      async handle({ query: { limit, before, store } }) {
        const rows = await db.query(listStoreOrders({ store, before, limit: limit + 1 }))
        return ok(pageOf(await statesOfOrders(db, rows), limit, orderEntry, ({ id }) => id))
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
        'Cancel what was not bought yet; what was bought waits for a person. Asking again cancels what was retried since.',
      query: storeQuery,
      answer: Order,
      success: { 200: 'The order after the cancellation was asked for' },
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

/** A store token finds its own orders only; a person names the store where the reference alone does not. */
async function findOrder(db: Database, caller: Caller, reference: string, named?: string): Promise<StoreOrder> {
  if (caller.store !== null && named !== undefined && named !== caller.store) {
    throw new Failure('forbidden', 'the token is bound to another store')
  }
  const store = caller.store ?? named
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
