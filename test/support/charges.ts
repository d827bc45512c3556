/** The rule of all campaigns about charges: by the supplier's ledger, whatever Quayside believes. */
import type { LedgerEntry, LedgerReport } from '../../src/sandbox/ledger.ts'
import { partOf } from './references.ts'

type Ledger = Pick<LedgerReport, 'charges' | 'refunds'>

/**
 * Charges whose money did not come back.
 *
 * @param claimed orders whose refund a person had to ask for: they were charged all the same
 */
export function standingCharges({ charges, refunds }: Ledger, claimed: ReadonlySet<string> = new Set()): LedgerEntry[] {
  const back = new Set(refunds.map(({ orderId }) => orderId).filter((id) => !claimed.has(id ?? '')))
  return charges.filter(({ orderId }) => !back.has(orderId))
}

export interface DoubleCharge {
  part: string
  /** Charges that stand. */
  charges: number
  /** Charges that may stand. */
  meant: number
}

/**
 * Parts that are charged more often than was meant: once, and once more for each generation that an operator wrote off.
 *
 * A write-off counts only while its own charge stands. Where the supplier gave that money back, the next generation is the
 * one charge of the part, and there is no room for another.
 *
 * @param standing charges that stand
 * @param writtenOff external references of the generations that an operator wrote off
 */
export function doubleChargesIn(standing: readonly LedgerEntry[], writtenOff: ReadonlySet<string>): DoubleCharge[] {
  const parts = Map.groupBy(standing, ({ externalOrderId }) => partOf(externalOrderId ?? ''))
  return [...parts].flatMap(([part, entries]) => {
    const charged = new Set(entries.map(({ externalOrderId }) => externalOrderId ?? ''))
    const meant = 1 + [...charged].filter((reference) => writtenOff.has(reference)).length
    return entries.length > meant ? [{ part, charges: entries.length, meant }] : []
  })
}

/**
 * Parts with more standing charges than one, of which no operator knows: each charge beyond the first must be on record, as
 * a discrepancy or as an order that an operator was shown and decided on. Also one that a write-off allows: it is only
 * meant where it is known.
 *
 * @param reported ids of the supplier's orders that are on record
 */
export function unreportedChargesIn(standing: readonly LedgerEntry[], reported: ReadonlySet<string>): string[] {
  const parts = Map.groupBy(standing, ({ externalOrderId }) => partOf(externalOrderId ?? ''))
  return [...parts].flatMap(([part, entries]) => {
    const known = entries.filter(({ orderId }) => reported.has(orderId ?? '')).length
    return entries.length - known > 1 ? [`${part}: ${entries.length} charges, and ${known} of them are on record`] : []
  })
}
