import type { Command } from 'commander'
import { Failure } from '../errors.ts'
import { age, asRow, asRows, cell, type Row } from './cell.ts'
import { confirmed } from './confirm.ts'
import { frozenText } from './freeze.ts'
import { listCommand } from './list-command.ts'
import type { Session } from './program.ts'
import { evidenceText } from './review-text.ts'
import { type Call, serviceCommand } from './service-command.ts'
import { wrap } from './table.ts'

/** `reviews`: purchases that wait for a person, what is known of each, and the decision on one. */
export function addReviews(root: Command, session: Session): void {
  const reviews = root.command('reviews').description('purchases that wait for a person; see the evidence, decide')
  reviews.addHelpText('after', EXAMPLES)
  listCommand(reviews, session, {
    path: ['purchases'],
    fixed: { state: 'review' },
    empty: 'Nothing waits for a decision.',
    columns: ({ io }) => [
      { title: 'PURCHASE', of: (row) => cell(row.id), keep: true },
      { title: 'QTY', of: (row) => cell(row.quantity), right: true },
      { title: 'WAITS', of: (row) => age(row.since, io.now()), right: true },
      { title: 'WHY', of: (row) => cell(row.note) },
    ],
    after: 'See one: quayside reviews show <purchase>\n',
  })

  const show = reviews.command('show').description('what is known of a purchase, and what each decision would do')
  show.argument('<id>', 'the purchase')
  show.option('--stored', 'what is stored alone; without it the supplier is asked how the orders stand')
  serviceCommand(show, session, async (call) => {
    const query = call.flag('stored') ? {} : { read: true }
    const evidence = asRow(await call.client.get(['purchases', call.args[0] ?? '', 'evidence'], query))
    call.print(evidence, () => evidenceText(evidence, call))
    return undefined
  })

  const decide = reviews.command('decide').description('decide on a purchase: one of four, with a reason')
  decide.argument('<id>', 'the purchase')
  decide.option('--adopt <order>', "the supplier's order that is taken as the one that was bought")
  decide.option('--hand-over', 'the store gets the keys that came, at most the quantity')
  decide.option('--close', 'it ends; nothing is bought')
  decide.option('--buy-again', 'it is written off and its part is bought anew')
  decide.option('--override-spend-cap', 'with --buy-again: it may exceed the spend caps')
  decide.option('--basis <basis>', 'what `reviews show` says: refused when it is no longer so')
  decide.option('--reason <text>', 'why, 3 to 500 characters; kept with your name, never shown to stores')
  decide.addHelpText('after', EXAMPLES)
  serviceCommand(decide, session, async (call) => {
    const path = ['purchases', call.args[0] ?? '', 'decision']
    const decision = decisionOf(call)
    const basis = call.option('basis') ?? (await basisShown(call, decision.decision))
    const evidence = asRow(await call.client.post(path, { ...decision, basis }))
    call.print(evidence, () => decidedText(evidence, call))
    return undefined
  })
}

const EXAMPLES = `
Examples:
  quayside reviews
  quayside reviews show 01k3…
  quayside reviews decide 01k3… --basis review-9f86d081884c \\
    --adopt 7c0e… --reason 'other one refunded'
  quayside reviews decide 01k3… --hand-over --reason 'two of three are enough'`

/** The body of the request. @throws Failure `invalid` unless it is one decision and a reason */
function decisionOf(call: Call): { decision: string; orderId?: string; overrideSpendCap?: true; reason: string } {
  const orderId = call.option('adopt')
  const named: { decision: string; orderId?: string }[] = [
    ...(orderId === undefined ? [] : [{ decision: 'adopt', orderId }]),
    ...(call.flag('handOver') ? [{ decision: 'hand_over' }] : []),
    ...(call.flag('close') ? [{ decision: 'close' }] : []),
    ...(call.flag('buyAgain') ? [{ decision: 'buy_again' }] : []),
  ]
  const [one] = named
  if (!one || named.length !== 1) {
    const message = 'name one decision: --adopt <order>, --hand-over, --close or --buy-again'
    throw new Failure('invalid', `${message}\n\`quayside reviews show\` says what each would do.`)
  }
  const reason = call.option('reason')
  if (reason === undefined) throw new Failure('invalid', "give a reason, for whoever asks later: --reason '…'")
  return call.flag('overrideSpendCap') ? { ...one, overrideSpendCap: true, reason } : { ...one, reason }
}

/**
 * The basis of evidence that is shown here and now, and confirmed by whoever reads it.
 *
 * @throws Failure `invalid` where nobody can be shown anything, or for a purchase that does not ask for a decision: then
 *   the basis has to be given
 */
async function basisShown(call: Call, decision: string): Promise<string> {
  const id = call.args[0] ?? ''
  const again = `--basis is what\n\`quayside reviews show ${id}\` prints.`
  if (!call.io.isTerminal || call.json) throw new Failure('invalid', `say what the decision stands on: ${again}`)
  const evidence = asRow(await call.client.get(['purchases', id, 'evidence'], { read: true }))
  const { state } = asRow(evidence.purchase)
  if (state !== 'review') {
    throw new Failure(
      'conflict',
      `the purchase is ${cell(state)} and asks for no decision. To take one all the same,\n${again}`,
    )
  }
  const choice = asRows(evidence.choices).find((one) => one.decision === decision)
  const does = choice?.refusal ? `Not now: ${cell(choice.refusal)}` : cell(choice?.does)
  const question = wrap(`${decision.replaceAll('_', ' ')}: ${does}`, call.width).join('\n')
  const text = `${evidenceText(evidence, call)}\n${question}`
  if (!(await confirmed(call.io, text))) throw new Failure('conflict', 'not confirmed: nothing was decided')
  return cell(evidence.basis)
}

function decidedText(evidence: Row, { io, width }: Call): string {
  const { id, state } = asRow(evidence.purchase)
  const lines = [`Decided. The purchase is ${cell(state)} now.`, `Watch it: quayside reviews show ${cell(id)}`]
  const frozen = evidence.freeze ? `\n${frozenText(asRow(evidence.freeze), io.now(), width, id)}` : ''
  return `${lines.join('\n')}\n${frozen}`
}
