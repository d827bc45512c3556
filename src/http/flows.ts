import type { DryRunEvent } from '../catalogue/dry-run.ts'
import type { Traffic } from '../inbox/receive.ts'
import type { Rotation, WebhookCheck } from '../inbox/webhooks.ts'
import type { ListingRecord } from '../listings/assess.ts'
import type { Asked, Link, Release } from '../listings/links.ts'
import type { Import, ImportReport } from '../listings/links-file.ts'
import type { Explanation, ListingHistory } from '../listings/listings.ts'
import type { PurchaseRelease } from '../ordering/actions.ts'
import type { DecidedBy, Decision } from '../ordering/decide.ts'
import type { Evidence } from '../ordering/evidence.ts'
import type { OrderInput, Taken } from '../ordering/intake.ts'
import type { OrderView } from '../ordering/order-view.ts'
import type { Sweep, SyncRun } from '../storage/runs.ts'
import type { Webhook } from '../storage/webhooks.ts'
import type { NewCallbackSecret } from '../stores/backend/signature.ts'
import type { UnreadableAnswer } from '../supplier/unreadable.ts'

/** What a person may want of a listing. */
export type ListingChange =
  | ({ change: 'link' } & Link)
  | { change: 'unlink' | 'unignore' | 'retry' }
  | { change: 'ignore'; reason: string }
  | ({ change: 'release' } & Release)

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
  /** Cancels what was not sent yet and flags what was. Asking again cancels what an operator retried since. */
  cancelOrder(orderId: string, actor: string): Promise<void>
  /** Plans the next generation of a purchase that ended without keys. */
  retryPurchase(purchaseId: string, actor: string): Promise<void>
  /**
   * Carries out a person's decision on a purchase in review, or on an accepted one.
   *
   * @throws Failure `conflict` with a finer reason, `invalid` for an order id that cannot be one
   */
  decidePurchase(purchaseId: string, decision: Decision, by: DecidedBy): Promise<void>
  /** What a person needs to decide; `read` asks the supplier how the orders stand that were seen. */
  viewEvidence(purchaseId: string, options: { read: boolean }): Promise<Evidence>
  /** Lifts the hold of a purchase, perhaps with a new ceiling for one unit, in minor units of its currency. */
  releasePurchase(purchaseId: string, change: PurchaseRelease, actor: string): Promise<void>
  /** Stops all buying; a second freeze is a second cause. */
  freeze(reason: string, actor: string): Promise<void>
  /** Lifts causes by their ids; one that came since stays. */
  unfreeze(actor: string, causes: readonly string[]): Promise<void>
  /** Kinds of answers of the supplier that cannot be read now. */
  unreadableAnswers(): readonly UnreadableAnswer[]
  /** Starts a sync run, or gives the one that is under way. */
  requestSync(cause: string): Promise<SyncRun>
  /**
   * Tells what a sync run would change, while it is read; nothing is written. `return` of the events ends it early.
   *
   * @param options `most`: changes of offers, and of listings, that are told one by one
   * @throws Failure `conflict`, reason `dry_run_under_way`: there is one at a time
   */
  dryRunSync(options: { most: number }): Promise<AsyncIterableIterator<DryRunEvent, void>>
  /** Starts a sweep of thirty days, or gives the one that is under way. */
  requestSweep(cause: string): Promise<Sweep>
  /** Creates a webhook at the supplier and keeps its secret. @param url our public address; else the configured one */
  createWebhook(url: string | undefined, actor: string): Promise<Webhook>
  /** Creates a second webhook with a secret of its own; those before it stay valid until they are retired. */
  rotateWebhook(url: string | undefined, actor: string): Promise<Rotation>
  /** Takes the secret of a webhook out of use; `conflict` when no later one has taken over. */
  retireWebhook(id: string, actor: string): Promise<Webhook>
  /** Compares the supplier's webhooks with ours, tells of those whose secret is not held, and replaces them. */
  checkWebhooks(): Promise<WebhookCheck>
  /** What came through each webhook since the start, by the last piece of its path. */
  webhookTraffic(): Map<string, Traffic>
  /** Takes a new secret into use that callbacks to a store are signed with; those before stay valid for so long. */
  rotateCallbackSecret(store: string, overlapMs: number, actor: string): Promise<NewCallbackSecret>
  /** Puts a delivery back into the inbox. */
  replayDelivery(deliveryId: string, actor: string): Promise<void>
  /** The body of a delivery as it was received. Records in the audit that it was shown. */
  revealDelivery(deliveryId: string, actor: string): Promise<string>
  /** Puts a dead or waiting effect back into the outbox. */
  redeliverEffect(outboxId: string, actor: string): Promise<void>
  /** A page of a store's listings; `after` is the `next` of the page before. */
  listListings(
    store: string,
    page: { after?: string; limit: number },
  ): Promise<{ listings: ListingRecord[]; next: string | undefined }>
  /** One listing as it is stored, with what it is to be and its prices; `not_found`. */
  viewStoreListing(store: string, variant: string): Promise<ListingHistory>
  /** Carries out what a person wants of a listing; the store is told next. */
  changeListing(asked: Asked, change: ListingChange): Promise<void>
  /** Does as the lines of a CSV file say; `invalid` for one that cannot be read, and nothing is changed then. */
  importLinks(wanted: Import, bytes: Uint8Array): Promise<ImportReport>
  /** The listings of a store as a CSV file, piece by piece. */
  exportLinks(store: string): AsyncIterable<string>
  /** @returns undefined when the SKU is no listing of the store */
  viewListing(store: string, sku: string): Promise<ListingRecord | undefined>
  /** How the price and the stock of a SKU come about in a store; `conflict` when two offers have the SKU. */
  explainPrice(store: string, sku: string): Promise<Explanation>
}
