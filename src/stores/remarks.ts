/** What a merchant reads on an order of a shop: sentences that every kind of shop leaves there. */
import type { LineFailed, LineHeld, LineResumed, OrderClosed } from '../domain/store-update.ts'

export const failureRemark = ({ units, line, message, advice }: LineFailed): string =>
  `Quayside: ${unitsOf(units, line)} will not come: ${withoutStop(message)}. ${advice}`

export const holdRemark = ({ units, line, message }: LineHeld): string =>
  `Quayside: ${unitsOf(units, line)} wait: ${withoutStop(message)}.`

export const resumptionRemark = ({ units, line }: LineResumed): string =>
  `Quayside: ${unitsOf(units, line)} are being bought again.`

/** Of a paid order that must not be bought as it is. */
export const refusalRemark = (message: string): string =>
  `Quayside: nothing is bought for this order: ${withoutStop(message)}. Once that is put right, save the order.`

/** What an order came to. */
export const closingRemarks: Record<OrderClosed['state'], string> = {
  open: 'Quayside: this order is still open.',
  fulfilled: 'Quayside: all licence keys were handed over.',
  partly_fulfilled: 'Quayside: some licence keys were handed over, the others will not come. Refund those.',
  failed: 'Quayside: no licence key of this order will come. Refund it.',
  cancelled: 'Quayside: this order was cancelled, and no licence key was handed over.',
}

/** Ends a remark, so that it is known to be there. */
export const remarkMark = (id: string): string => `[quayside ${id}]`

const unitsOf = (units: number, { sku, quantity }: { sku: string; quantity: number }): string =>
  `${units} of ${quantity} × ${sku}`

/** A message of the supplier may be a sentence. */
const withoutStop = (message: string): string => message.replace(/[.\s]+$/, '')
