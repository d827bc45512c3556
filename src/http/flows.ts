import type { HoldReason, PurchaseState } from '../domain/purchase.ts'
import type { LineState, OrderState } from '../domain/store-order.ts'
import type { OrderInput, Taken } from '../ordering/intake.ts'
import type { SyncRun } from '../storage/sync-runs.ts'
import type { Webhook } from '../storage/webhooks.ts'

/**
 * Everything that the API makes happen. The API reads lists on its own; whatever changes something is one of these.
 *
 * `actor` is who asked, for the audit: a flow that a person starts records it in the commit that it causes. All of them
 * throw Failure `not_found` for an id that is not there, and `conflict` where the state does not allow it.
 */
export interface Flows {
  /**
   * Takes a store order; durable when it returns.
   *
   * @param digest SHA-256 over the canonical order, in hex
   * @throws Failure `conflict` (`reference_reused`) for another order under a used reference
   */
  takeOrder(store: string, input: OrderInput, digest: string): Promise<Taken>
  /** The order with its lines, purchases and timeline; licence keys only when asked for. */
  viewOrder(orderId: string, show: { keys: boolean }): Promise<OrderView>
  /** Cancels what was not sent yet and flags what was. Asking twice is harmless. */
  cancelOrder(orderId: string, actor: string): Promise<void>
  /** Plans the next generation of a purchase that ended without keys. */
  retryPurchase(purchaseId: string, actor: string): Promise<void>
  /** Lifts the hold of a purchase, perhaps with a new ceiling for one unit, in minor units of its currency. */
  releasePurchase(purchaseId: string, change: { ceilingMinor?: number }, actor: string): Promise<void>
  /** Stops all buying; a second freeze keeps the reason of the first. */
  freeze(reason: string, actor: string): Promise<void>
  unfreeze(actor: string): Promise<void>
  /** Starts a sync run, or gives the one that is under way. */
  requestSync(cause: string): Promise<SyncRun>
  /** Creates a webhook at the supplier and keeps its secret; without `url` under the configured public address. */
  createWebhook(url: string | undefined, actor: string): Promise<Webhook>
  /** Puts a delivery back into the inbox. */
  replayDelivery(deliveryId: string, actor: string): Promise<void>
  /** The body of a delivery as it was received. Records in the audit that it was shown. */
  revealDelivery(deliveryId: string, actor: string): Promise<string>
  /** Puts a dead or waiting effect back into the outbox. */
  redeliverEffect(outboxId: string, actor: string): Promise<void>
  /** A page of a store's listings by SKU; `after` is the last SKU seen. */
  listListings(store: string, page: { after?: string; limit: number }): Promise<ListingView[]>
  /** @returns undefined when the SKU is no listing of the store */
  viewListing(store: string, sku: string): Promise<ListingView | undefined>
}

/** An offer as sold in one store. */
export interface ListingView {
  sku: string
  name: string
  category: string | null
  priceMinor: number
  currency: string
  /** Units that may be sold. */
  stock: number
  available: boolean
}

/** A store order as it is now. Instants in epoch milliseconds, money in minor units. */
export interface OrderView {
  store: string
  reference: string
  state: OrderState
  receivedAt: number
  cancelRequestedAt: number | null
  closedAt: number | null
  lines: OrderLineView[]
  timeline: { at: number; what: string; detail: string | null }[]
}

export interface OrderLineView {
  id: string
  sku: string
  /** The offer's name; null for a line that is not ours. */
  name: string | null
  quantity: number
  state: LineState
  /** Keys that the store has. */
  delivered: number
  /** Those keys; only when they were asked for. */
  keys?: string[]
  purchases: PurchaseView[]
}

/** The columns of a purchase that people read; a row of the table is one. */
export interface PurchaseView {
  id: string
  part: number
  generation: number
  state: PurchaseState
  holdReason: HoldReason | null
  note: string | null
  notBefore: number | null
  quantity: number
  /** Most that one unit may cost. */
  ceilingMinor: number
  amountMinor: number | null
  currency: string
  supplierOrderId: string | null
  externalOrderId: string
  failureCode: string | null
  failureMessage: string | null
  changedAt: number
}
