import { Failure } from '../errors.ts'
import { asRow, cell, money, type Row } from './cell.ts'
import { confirmed } from './confirm.ts'
import { releaseText } from './listing-text.ts'
import type { Call } from './service-command.ts'
import { details } from './table.ts'

/**
 * The price that waits, shown here and now beside the one that the store has, and confirmed by whoever reads it.
 *
 * @param path of the listing
 * @throws Failure `invalid`, with the command to give, where nobody can be shown anything; `conflict` when no price waits
 */
export async function priceToPass(call: Call, path: string[]): Promise<string> {
  const listing = asRow(await call.client.get(path))
  const { wantedPrice, state } = listing
  if (!wantedPrice) throw new Failure('conflict', `no price of ${cell(listing.id)} waits: it is ${cell(state)}`)
  if (!call.io.isTerminal || call.json) {
    throw new Failure('invalid', `say which price is to pass; this one waits now:\n${releaseText(listing, call)}`)
  }
  if (!(await confirmed(call.io, waitingText(listing, call)))) {
    throw new Failure('conflict', 'not confirmed: the price waits still')
  }
  return cell(wantedPrice)
}

function waitingText({ id, known, wantedPrice, detail }: Row, { width }: Call): string {
  const { price, currency } = asRow(known)
  const pairs: [string, string][] = [
    ['Listing', cell(id)],
    ['Store has', money(price, currency)],
    ['Waits', money(wantedPrice, currency)],
    ['Why', cell(detail)],
  ]
  return `${details(pairs, width)}The store gets the price that waits.`
}
