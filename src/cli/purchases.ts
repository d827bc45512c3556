import type { Command } from 'commander'
import { Failure } from '../errors.ts'
import { type Call, confirmed, listCommand, serviceCommand } from './command.ts'
import { whyOf } from './orders.ts'
import { age, asRow, asRows, cell, details, instant, money, type Row, table, wrap } from './output.ts'
import type { Session } from './program.ts'
import { frozenText } from './status.ts'

/** `purchases`: what we order from the supplier for each line, and the decisions that a person takes on it. */
export function addPurchases(root: Command, session: Session): void {
  const purchases = root.command('purchases').description('our orders with the supplier: list, show, retry, release')

  const list = purchases.command('list').description('purchases, the newest first')
  list.option('--state <state>', 'planned, waiting, sending, unknown, accepted, completed, fulfilled, ...')
  list.addHelpText(
    'after',
    '\nExamples:\n  quayside purchases list --state unknown\n  quayside purchases list --state waiting',
  )
  listCommand(list, session, {
    path: ['purchases'],
    filters: ['state'],
    empty: 'No purchase matches.',
    columns: ({ io }) => [
      { title: 'ID', of: (row) => cell(row.id), keep: true },
      {
        title: 'STATE',
        of: (row) => (row.holdReason ? `${cell(row.state)}, ${cell(row.holdReason)}` : cell(row.state)),
      },
      { title: 'QTY', of: (row) => cell(row.quantity), right: true },
      { title: 'CEILING', of: (row) => money(row.ceiling, row.currency), right: true },
      { title: 'AMOUNT', of: (row) => money(row.amount, row.currency), right: true },
      { title: 'AGE', of: (row) => age(row.since, io.now()), right: true },
    ],
  })

  const show = purchases.command('show').description('one purchase with every attempt and change')
  show.argument('<id>', 'its id')
  serviceCommand(show, session, async (call) => {
    const purchase = asRow(await call.client.get(['purchases', call.args[0] ?? '']))
    call.print(purchase, () => purchaseText(purchase, call))
    return undefined
  })

  const retry = purchases.command('retry').description('buy again what was rejected, failed or cancelled')
  retry.argument('<id>', 'its id')
  serviceCommand(retry, session, async (call) => {
    const id = call.args[0] ?? ''
    const answer = await call.client.post(['purchases', id, 'retry'])
    call.print(answer, () => `Planned again, as a new generation.\nWatch it: npx quayside purchases show ${id}\n`)
    return undefined
  })

  const release = purchases.command('release').description('lift the hold of a purchase; its guards run again')
  release.argument('<id>', 'its id').option('--ceiling <amount>', 'a new ceiling for one unit, such as 12.34')
  release.option('--override-spend-cap', 'it may exceed the spend caps of its order, the hour and the day')
  release.addHelpText('after', '\nExample:\n  quayside purchases release 01k3… --ceiling 12.34')
  serviceCommand(release, session, async (call) => {
    const id = call.args[0] ?? ''
    const ceiling = call.option('ceiling')
    const answer = await call.client.post(['purchases', id, 'release'], {
      ...(ceiling === undefined ? {} : { ceiling }),
      ...(call.flag('overrideSpendCap') ? { overrideSpendCap: true } : {}),
    })
    call.print(answer, () => `Released.\nWatch it: npx quayside purchases show ${id}\n`)
    return undefined
  })
}

function purchaseText(purchase: Row, { io, width }: Call): string {
  const now = io.now()
  const why = whyOf(purchase)
  const pairs: [string, string][] = [
    ['Purchase', cell(purchase.id)],
    ['State', cell(purchase.state)],
    ...(why === undefined ? [] : [['Why', why] satisfies [string, string]]),
    ...(purchase.notBefore ? [['Not before', instant(purchase.notBefore, now)] satisfies [string, string]] : []),
    ['Quantity', `${cell(purchase.quantity)} (part ${cell(purchase.part)}, generation ${cell(purchase.generation)})`],
    ['Ceiling', `${money(purchase.ceiling, purchase.currency)} for one unit`],
    ['Amount', money(purchase.amount, purchase.currency)],
    ['At supplier', cell(purchase.supplierOrderId)],
    ['Reference', cell(purchase.externalOrderId)],
    ['Changed', instant(purchase.changedAt, now)],
    ...(purchase.cancelRequestedAt
      ? [['Cancellation', `asked ${instant(purchase.cancelRequestedAt, now)}`] satisfies [string, string]]
      : []),
    ...nextOf(purchase),
  ]
  return [details(pairs, width), attemptsText(purchase, width), changesText(purchase, width)].join('\n')
}

/** What has to be changed for a release to help. */
const releaseOptions: Record<string, string> = {
  ceiling: ' --ceiling <amount>',
  spend_cap: ' --override-spend-cap',
}

/** The command for what a person can decide here. */
function nextOf({ id, state, holdReason }: Row): [string, string][] {
  const option = releaseOptions[cell(holdReason)] ?? ''
  if (state === 'review') return [['Next', `npx quayside reviews show ${cell(id)}`]]
  if (holdReason) return [['Next', `npx quayside purchases release ${cell(id)}${option}`]]
  const ended = state === 'rejected' || state === 'failed' || state === 'cancelled'
  return ended ? [['Next', `npx quayside purchases retry ${cell(id)}`]] : []
}

const time = (row: Row): string => cell(row.at).slice(0, 19).replace('T', ' ')

function attemptsText(purchase: Row, width: number): string {
  const rows = asRows(purchase.attempts)
  if (rows.length === 0) return 'Nothing was sent to the supplier yet.\n'
  const columns = [
    { title: 'REQUEST AT', of: time, keep: true as const },
    { title: 'KIND', of: (row: Row) => cell(row.kind) },
    { title: 'STAGE', of: (row: Row) => cell(row.stage) },
    { title: 'HTTP', of: (row: Row) => cell(row.status), right: true as const },
    { title: 'CODE', of: (row: Row) => cell(row.code) },
    { title: 'DETAIL', of: (row: Row) => cell(row.detail ?? row.supplierOrderId) },
    { title: 'REQUEST ID', of: (row: Row) => cell(row.requestId) },
  ]
  return table(rows, columns, width)
}

function changesText(purchase: Row, width: number): string {
  const rows = asRows(purchase.transitions)
  if (rows.length === 0) return 'Nothing changed yet.\n'
  const columns = [
    { title: 'CHANGE AT', of: time, keep: true as const },
    { title: 'INPUT', of: (row: Row) => cell(row.input) },
    { title: 'FROM', of: (row: Row) => cell(row.before) },
    { title: 'TO', of: (row: Row) => cell(row.after) },
    { title: 'BY', of: (row: Row) => cell(row.actor) },
    { title: 'DETAIL', of: (row: Row) => cell(row.detail ?? row.row) },
  ]
  return table(rows, columns, width)
}

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

/** The evidence of one purchase as a page for whoever decides: facts first, then the decisions, then how it came to it. */
export function evidenceText(evidence: Row, { io, width }: Call): string {
  const now = io.now()
  const { freeze } = evidence
  const parts = [
    details(factsOf(evidence, now), width),
    section('Orders at the supplier', ordersOf(evidence, now), width, 'None is known.'),
    decisionsText(evidence, width),
    section(
      'Requests',
      together(asRows(evidence.attempts).map(requestOf)),
      width,
      'Nothing was sent to the supplier yet.',
    ),
    section('What happened', asRows(evidence.transitions).map(stepOf), width, 'Nothing yet.'),
    section('Discrepancies', asRows(evidence.discrepancies).map(differenceOf), width, ''),
    section('People', asRows(evidence.audit).map(deedOf), width, ''),
    freeze ? frozenText(asRow(freeze), now, width, asRow(evidence.purchase).id) : '',
  ]
  return parts.filter(Boolean).join('\n')
}

type Pair = [string, string]

/** A heading and pairs below it; without pairs the sentence that says so, or nothing at all. */
function section(title: string, pairs: Pair[], width: number, empty: string): string {
  if (pairs.length > 0) return `${title}:\n${indented(details(pairs, width - 2))}`
  return empty === '' ? '' : `${title}:\n${indented(`${wrap(empty, width - 2).join('\n')}\n`)}`
}

const indented = (text: string): string => text.replaceAll(/^(?=.)/gm, '  ')

function factsOf({ purchase, order, keys, generations }: Row, now: number): Pair[] {
  const { id, state, since, note, quantity, part, generation, ...row } = asRow(purchase)
  const { stored, left, elsewhere } = asRow(keys)
  const { store, reference, line } = asRow(order)
  const others = asRows(generations).map((one) => `${cell(one.generation)} is ${cell(one.state)} (${cell(one.id)})`)
  const held = Array.isArray(elsewhere) && elsewhere.length > 0 ? `; one is on ${cell(elsewhere)} too` : ''
  return [
    ['Purchase', cell(id)],
    ['State', `${cell(state)}, since ${instant(since, now)}`],
    ...(note ? [['Why', cell(note)] satisfies Pair] : []),
    ['For', `order ${cell(reference)}, line ${cell(line)}, store ${cell(store)}`],
    [
      'Buys',
      `${cell(quantity)} at most ${money(row.ceiling, row.currency)} each; part ${cell(part)}, generation ${cell(generation)}`,
    ],
    ...(others.length > 0 ? [['Generations', others.join('; ')] satisfies Pair] : []),
    ['Charged', money(row.amount, row.currency)],
    ['Keys', stored === 0 ? 'none came' : `${cell(stored)} stored, ${cell(left)} of them with the store${held}`],
    ...(row.cancelRequestedAt ? [['Cancellation', `asked ${instant(row.cancelRequestedAt, now)}`] satisfies Pair] : []),
    ['Reference', cell(row.externalOrderId)],
  ]
}

const ordersOf = ({ orders }: Row, now: number): Pair[] =>
  asRows(orders).map((order) => {
    const { statusWord, keys, amount, currency, createdAt, differs, quantity } = asRow(order.reading)
    const differing = Array.isArray(differs) ? differs.map(cell).join(', ') : ''
    const facts = order.reading
      ? [
          ...[cell(statusWord), `${cell(keys)} of ${cell(quantity)} keys`, money(amount, currency)],
          ...(createdAt ? [`made ${instant(createdAt, now)}`] : []),
          differing === '' ? 'as it was sent' : `another ${differing} than was sent`,
        ]
      : [`not read: ${cell(order.unread)}`]
    const found = order.generation
      ? [`bought for the same part as generation ${cell(order.generation)}, which has no purchase here`]
      : []
    const whose = order.takenBy ? [`belongs to purchase ${cell(order.takenBy)}`] : []
    return [cell(order.id), [...(order.own ? ['its own'] : []), ...found, ...whose, ...facts].join(', ')]
  })

const options: Record<string, string> = {
  adopt: '--adopt',
  hand_over: '--hand-over',
  close: '--close',
  buy_again: '--buy-again',
}

/** Where nothing can be decided, one sentence says so. */
function decisionsText({ choices: offered, purchase, basis }: Row, width: number): string {
  const choices = asRows(offered)
  const [refusal, ...others] = new Set(choices.map((one) => one.refusal))
  if (refusal && others.length === 0) return section('Decisions', [], width, `None: ${cell(refusal)}.`)
  const command = `quayside reviews decide ${cell(asRow(purchase).id)} \\\n    --basis ${cell(basis)} --reason '…' <one of these>`
  return `${section('Decisions', choices.map(choiceOf), width, '')}  ${command}\n`
}

const choiceOf = ({ decision, does, refusal }: Row): Pair => [
  options[cell(decision)] ?? cell(decision),
  refusal ? `not now: ${cell(refusal)}` : cell(does),
]

/** Lines that say the same, one after the other, as one. */
function together(pairs: Pair[]): Pair[] {
  const lines: { at: string; last: string; text: string; times: number }[] = []
  for (const [at, text] of pairs) {
    const line = lines.at(-1)
    if (line?.text === text) Object.assign(line, { last: at, times: line.times + 1 })
    else lines.push({ at, last: at, text, times: 1 })
  }
  return lines.map(({ at, last, text, times }) => [at, times === 1 ? text : `${text}; ${times} times until ${last}`])
}

const timeOf = (at: unknown): string => cell(at).slice(0, 19).replace('T', ' ')

const requestOf = (row: Row): Pair => [
  timeOf(row.at),
  [
    `${cell(row.kind).replaceAll('_', ' ')} ${cell(row.stage)}`,
    ...(row.status ? [`HTTP ${String(row.status)}`] : []),
    ...(row.class ? [`class ${cell(row.class)}`] : []),
    ...(row.code ? [cell(row.code)] : []),
    ...(row.detail ? [cell(row.detail)] : []),
    ...(row.supplierOrderId ? [`order ${cell(row.supplierOrderId)}`] : []),
    ...(row.requestId ? [`request ${cell(row.requestId)}`] : []),
  ].join(', '),
]

function stepOf(row: Row): Pair {
  const states = row.before === row.after ? cell(row.after) : `${cell(row.before)} -> ${cell(row.after)}`
  const what = row.row === 'none' ? `${cell(row.input)}, nothing changed` : cell(row.row)
  const times = Number(row.times) > 1 ? [`${cell(row.times)} times until ${timeOf(row.lastAt)}`] : []
  const by = row.actor ? [`by ${cell(row.actor)}`] : []
  const detail = row.detail && row.detail !== row.row ? [cell(row.detail)] : []
  const words = [what.replaceAll('_', ' '), ...times, ...by, ...detail]
  return [timeOf(row.at), `${states}: ${words.join(', ')}`]
}

const differenceOf = (row: Row): Pair => [
  timeOf(row.foundAt),
  `${cell(row.kind).replaceAll('_', ' ')}, order ${cell(row.supplierOrderId)}: ${cell(row.detail)}`,
]

const deedOf = (row: Row): Pair => [timeOf(row.at), `${cell(row.actor)}, ${cell(row.action)}: ${cell(row.detail)}`]
