/** The parts that the hand-overs of all kinds of shops share: the calls, and the remarks that a merchant reads on an order. */
import type { LineFailed, LineHeld, LineResumed, OrderClosed } from '../domain/store-update.ts'
import type { FulfilResult, OfKeys, PushedKeys, PushResult, ResendResult, ResentOrder, Store } from './store.ts'

/** The hand-over of a kind of shop, as functions over such a shop. */
interface HandOver<Shop> {
  fulfil: (shop: Shop, update: PushedKeys) => Promise<FulfilResult>
  closeOrder: (shop: Shop, update: Parameters<Store['closeOrder']>[0]) => Promise<FulfilResult>
  resend: (shop: Shop, order: ResentOrder & OfKeys) => Promise<ResendResult>
  /** Leaves a remark on an order for the merchant, once for each id. */
  remark: (shop: Shop, reference: string, id: string, words: string) => Promise<PushResult>
}

/** @param open returns the shop for one call, because each call has its own time limit for writes */
export function handingOver<Shop>(open: () => Shop, by: HandOver<Shop>) {
  const remark = ({ id, order }: { id: string; order: { reference: string } }, words: string) =>
    by.remark(open(), order.reference, id, `Quayside: ${words}`)
  return {
    fulfil: (update) => by.fulfil(open(), update),
    closeOrder: (update) => by.closeOrder(open(), update),
    resend: (order) => by.resend(open(), order),
    reportFailure: (update) =>
      remark(update, `${unitsOf(update)} will not come: ${withoutStop(update.message)}. ${update.advice}`),
    reportHeld: (update) => remark(update, `${unitsOf(update)} wait: ${withoutStop(update.message)}.`),
    reportResumed: (update) => remark(update, `${unitsOf(update)} are being bought again.`),
    reportRefusal: ({ id, reference, message }) =>
      remark(
        { id, order: { reference } },
        `nothing is bought for this order: ${withoutStop(message)}. Once that is put right, save the order.`,
      ),
  } satisfies Partial<Store>
}

/** Makes a result say that keys may have left. It is used once a request of the same hand-over has given the customer keys. */
export function afterKeys<Result extends FulfilResult>(result: Result): Result {
  if (result.outcome === 'unavailable') return { ...result, mayHaveLeft: true }
  return result.outcome === 'refused' ? { ...result, hasNothing: undefined } : result
}

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

/** Says how many units of a line an update is about. */
const unitsOf = ({ units, line: { sku, quantity } }: LineFailed | LineHeld | LineResumed): string =>
  `${units} of ${quantity} × ${sku}`

/** Takes the full stop off a message of the supplier, because the remark adds its own. */
const withoutStop = (message: string): string => message.replace(/[.\s]+$/, '')
