/**
 * The columns of an export, in their order, with the meaning of each column: the API, the help and the page all show these.
 * `filterText` describes a filter in words.
 */

/** A row for each line of a store order. */
export const orderColumns = {
  store: 'id of the store',
  reference: "the store's own number of the order",
  state: 'of the order: open, fulfilled, partly_fulfilled, failed or cancelled',
  receivedAt: 'when the order was taken',
  cancelRequestedAt: 'when its cancellation was requested',
  closedAt: 'when its last line ended',
  line: "the store's own id of the line",
  sku: 'what was ordered, as the store wrote it',
  name: 'of the product; empty for a line that is not one of the listings',
  quantity: 'licence keys that were ordered',
  lineState: 'of the line: not_ours, or as of an order, or held',
  delivered: 'licence keys that the store has confirmed',
  deliveredAt: 'when the store confirmed the last of them',
  keysOpened: 'licence keys of the line that the customer opened on the page of keys',
  keysOpenedAt: 'when the customer opened the first of them there',
  waitsFor: 'what keeps the line: review, or a hold',
  unitPrice: 'what the customer paid for one unit, where the store says so',
  unitPriceCurrency: 'currency of unitPrice',
  cost: 'what its purchases cost, as far as it is known, without what came back or is owed back',
  costCurrency: 'currency of cost',
  supplierOrders: "the supplier's ids of the orders that were placed for it",
} as const

/** A further column of orders, for an export that asks for it. */
export const keyColumns = { keys: 'licence keys that the store has, or is being given' } as const

/** A row for each delivery. */
export const deliveryColumns = {
  id: 'id of the delivery here',
  source: 'the endpoint that it came by, such as supplier, or stores/ with the id of a store',
  deliveryId: "the sender's own id of it",
  state: 'stored, applied, ignored, orphan, quarantined, retry or dead',
  event: 'what it is about',
  receivedAt: 'when it arrived',
  signedAt: 'when its sender signed it',
  finishedAt: 'when it was processed for good',
  attempts: 'how often it was processed',
  supplierOrderId: "the supplier's order that it names",
  purchaseId: 'the purchase that it led to',
  lastError: 'why it was not applied',
} as const

/** A further column of deliveries, for an export that asks for it. */
export const bodyColumns = {
  body: 'as it was received; empty once it was deleted, after thirty days, that of a store after seven',
} as const

/** A row for each currency of what was earned in a day, a week or a month, by a store or a product. */
export const earningColumns = {
  from: 'the first day, in UTC',
  to: 'the last day',
  isOver: 'false while the sums still grow',
  store: 'id of the store; empty for all of them',
  product: "the supplier's id of the product; empty for all of them",
  sku: 'of the product',
  name: 'of the product',
  currency: 'of all amounts in the row',
  keys: 'licence keys that the store has',
  unpriced: 'those of them whose price the store does not state',
  revenue: 'what customers paid for the keys, as the store states it',
  charged: 'what the supplier charged',
  refunded: 'what came back of that',
  owedBack: 'what is owed back for purchases that failed',
  cost: 'charged less refunded less owedBack',
  margin: 'revenue less cost; empty where several currencies or a missing price leave none',
} as const

/** What is exported; instants in epoch milliseconds. */
export interface ExportFilter {
  /** Only orders that were taken, or deliveries that arrived, at this instant or later. */
  from?: number | undefined
  /** Only orders that were taken, or deliveries that arrived, before this instant. */
  to?: number | undefined
  store?: string | undefined
  state?: string | undefined
}

/** Describes an export for the audit: `orders from 2026-03-01T00:00:00.000Z, fulfilled`. */
export function filterText(what: string, { from, to, store, state }: ExportFilter, further?: string): string {
  const named = [
    from !== undefined && `from ${new Date(from).toISOString()}`,
    to !== undefined && `to ${new Date(to).toISOString()}`,
    store !== undefined && `of ${store}`,
    state,
    further,
  ].filter(Boolean)
  return named.length === 0 ? `all ${what}` : `${what} ${named.join(', ')}`
}
