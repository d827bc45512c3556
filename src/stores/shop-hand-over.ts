/** The parts that the hand-overs of all kinds of shops share: the calls, and the remarks that a merchant reads on an order. */
import type { LineFailed, LineFulfilled, LineHeld, LineResumed, OrderClosed } from '../domain/store-update.ts'
import type { FulfilResult, Pushed, PushResult, ResentOrder, Store } from './store.ts'

interface ShopHandOver {
  fulfil: (update: Pushed<LineFulfilled> & { keys: string[] }) => Promise<FulfilResult>
  closeOrder: (update: Pushed<OrderClosed>) => Promise<FulfilResult>
  resend: (order: ResentOrder) => Promise<PushResult>
  /** Leaves words on an order for the merchant. Words with the same id are left once. */
  remark: (reference: string, id: string, words: string) => Promise<PushResult>
}

/** @param open opens a hand-over for each call, so that each call has an end of its own after which it writes no more */
export const handingOver = (open: () => ShopHandOver) =>
  ({
    fulfil: (update) => open().fulfil(update),
    closeOrder: (update) => open().closeOrder(update),
    resend: (order) => open().resend(order),
    reportFailure: (update) => open().remark(update.order.reference, update.id, failureRemark(update)),
    reportHeld: (update) => open().remark(update.order.reference, update.id, holdRemark(update)),
    reportResumed: (update) => open().remark(update.order.reference, update.id, resumptionRemark(update)),
    reportRefusal: ({ id, reference, message }) => open().remark(reference, id, refusalRemark(message)),
  }) satisfies Partial<Store>

/** Makes a result say that keys may have left, because an earlier request of this hand-over has given the customer keys. */
export function afterKeys<Result extends FulfilResult>(result: Result): Result {
  if (result.outcome === 'unavailable') return { ...result, mayHaveLeft: true }
  return result.outcome === 'refused' ? { ...result, hasNothing: undefined } : result
}

const failureRemark = ({ units, line, message, advice }: LineFailed): string =>
  `Quayside: ${unitsOf(units, line)} will not come: ${withoutStop(message)}. ${advice}`

const holdRemark = ({ units, line, message }: LineHeld): string =>
  `Quayside: ${unitsOf(units, line)} wait: ${withoutStop(message)}.`

const resumptionRemark = ({ units, line }: LineResumed): string =>
  `Quayside: ${unitsOf(units, line)} are being bought again.`

/** The remark on a paid order that must not be bought as it is. */
const refusalRemark = (message: string): string =>
  `Quayside: nothing is bought for this order: ${withoutStop(message)}. Once that is put right, save the order.`

/** The remark on an order that is closed, by the state of the order. */
export const closingRemarks: Record<OrderClosed['state'], string> = {
  open: 'Quayside: this order is still open.',
  fulfilled: 'Quayside: all licence keys were handed over.',
  partly_fulfilled: 'Quayside: some licence keys were handed over, the others will not come. Refund those.',
  failed: 'Quayside: no licence key of this order will come. Refund it.',
  cancelled: 'Quayside: this order was cancelled, and no licence key was handed over.',
}

/** Returns the mark at the end of a remark, by which a repeat finds that the remark is there. */
export const remarkMark = (id: string): string => `[quayside ${id}]`

const unitsOf = (units: number, { sku, quantity }: { sku: string; quantity: number }): string =>
  `${units} of ${quantity} × ${sku}`

/** Takes the full stop off a message, because a message of the supplier may be a sentence. */
const withoutStop = (message: string): string => message.replace(/[.\s]+$/, '')
