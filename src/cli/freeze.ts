import type { Command } from 'commander'
import { asRow, cell, instant, type Row } from './cell.ts'
import type { Session } from './program.ts'
import { serviceCommand } from './service-command.ts'
import { details } from './table.ts'

/** The API wants a reason; whoever hurries may leave it out. */
const REASON = 'frozen from the command line'

/** `freeze` and `unfreeze`: the switch that stops all buying. */
export function addFreeze(root: Command, session: Session): void {
  const freeze = root.command('freeze').description('stop all buying; look-ups, intake and hand-over go on')
  freeze.option('--reason <text>', 'what the others will read')
  freeze.addHelpText('after', "\nExample:\n  quayside freeze --reason 'prices look wrong'")
  serviceCommand(freeze, session, async (call) => {
    const reason = call.option('reason') ?? REASON
    const answer = await call.client.post(['freeze'], { reason })
    // Frozen twice, the reason of the first stands.
    call.print(answer, () => frozenText({ reason, ...asRow(asRow(answer).freeze) }, call.io.now(), call.width))
    return undefined
  })

  const unfreeze = root.command('unfreeze').description('buy again; what was held by the freeze goes on by itself')
  serviceCommand(unfreeze, session, async (call) => {
    const answer = await call.client.post(['unfreeze'])
    const left = asRow(answer).freeze
    call.print(answer, () => (left ? frozenText(asRow(left), call.io.now(), call.width) : 'Buying again.\n'))
    return undefined
  })
}

/** Why buying is frozen, since when, and what to do about it. @param seen the purchase that the reader has before him */
export function frozenText(freeze: Row, now: number, width: number, seen?: unknown): string {
  const { actor, at, reason } = freeze
  const since = at ? `by ${cell(actor)}, ${instant(at, now)}; ` : ''
  return details(
    [
      ['Frozen', `${since}nothing is bought until it is lifted`],
      ['Why', cell(reason)],
      ...nextOf(freeze, seen).map((next, place): [string, string] => [place === 0 ? 'Next' : '', next]),
    ],
    width,
  )
}

/**
 * What leads out of a freeze, in this order. One without a purchase was caused by many reviews, or by a balance that fell
 * with an order of ours behind it that has none.
 */
export function nextOf({ purchaseId, actor }: Row, seen?: unknown): string[] {
  const lift = 'when that is settled: quayside unfreeze'
  if (actor === 'restore')
    return ['quayside discrepancies list', "it ends by itself once the supplier's orders are mapped back"]
  if (actor !== 'quayside' || (purchaseId && purchaseId === seen)) return [lift]
  if (purchaseId) return [`quayside reviews show ${cell(purchaseId)}`, lift]
  return ['quayside reviews', 'quayside discrepancies list', lift]
}
