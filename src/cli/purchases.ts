import { decisionLabels, discrepancyLabels, plainName, wordOf } from '../domain/labels.ts'
import { wrap } from '../domain/text-layout.ts'
import { Failure } from '../errors.ts'
import { type Call, type CommandRow, confirmed } from './command.ts'
import { REASON } from './exports.ts'
import { reasonOf, whyOf } from './orders.ts'
import {
  ageOf,
  asRow,
  asRows,
  cell,
  commandLine,
  details,
  instant,
  key,
  money,
  number,
  type Pair,
  type Row,
  right,
  table,
  time,
  timeText,
} from './output.ts'
import { frozenText } from './status.ts'

/** What we order from the supplier for each line, and the decisions that a person takes on it. */
export const purchases: CommandRow[] = [
  { command: 'purchases', about: 'our orders with the supplier: list, show, retry, release' },
  {
    command: 'purchases list',
    about: 'purchases, the newest first',
    options: {
      '--state <state>': 'planned, waiting, sending, unknown, accepted, completed, fulfilled, ...',
      '--hold <reason>': 'those that a hold keeps from being bought: ceiling, balance, ..., or any',
    },
    help: '\nExamples:\n  quayside purchases list --state unknown\n  quayside purchases list --hold any',
    call: 'GET /purchases',
    filters: ['state', 'hold'],
    empty: 'No purchase matches.',
    columns: {
      ID: key('id'),
      STATE: (row) => (row.holdReason ? `${cell(row.state)}, ${cell(row.holdReason)}` : cell(row.state)),
      QTY: number('quantity'),
      CEILING: right((row) => money(row.ceiling, row.currency)),
      AMOUNT: right((row) => money(row.amount, row.currency)),
      AGE: right((row, now) => ageOf(row.since, now)),
    },
  },
  {
    command: 'purchases show <id>',
    about: 'one purchase with every attempt and change',
    call: 'GET /purchases/{id}',
    text: purchaseText,
  },
  {
    command: 'purchases retry <id>',
    about: 'buy again what was rejected, failed or cancelled',
    options: REASON,
    call: 'POST /purchases/{id}/retry',
    body: reasonOf,
    text: (_, { args }) => `Planned again, as a new generation.\n${watchText(args[0])}`,
  },
  {
    command: 'purchases release <id>',
    about: 'lift the hold of a purchase; its guards run again',
    options: {
      '--ceiling <amount>': 'a new ceiling for one unit, such as 12.34',
      '--override-spend-cap': 'it may exceed the spend caps of its order, the hour and the day',
      ...REASON,
    },
    help: '\nExample:\n  quayside purchases release 01k3… --ceiling 12.34',
    call: 'POST /purchases/{id}/release',
    body: ({ option, flag }) => ({
      ...reasonOf({ option }),
      ceiling: option('ceiling'),
      overrideSpendCap: flag('overrideSpendCap') || undefined,
    }),
    text: (_, { args }) => `Released.\n${watchText(args[0])}`,
  },
]

const watchText = (id: string | undefined): string => `Watch it: ${commandLine(`purchases show ${id}`)}\n`

function purchaseText(purchase: Row, { io, width }: Call): string {
  const now = io.now()
  const why = whyOf(purchase)
  const pairs: (Pair | false)[] = [
    ['Purchase', cell(purchase.id)],
    ['State', cell(purchase.state)],
    why !== undefined && ['Why', why],
    Boolean(purchase.notBefore) && ['Not before', instant(purchase.notBefore, now)],
    ['Quantity', `${cell(purchase.quantity)} (part ${cell(purchase.part)}, generation ${cell(purchase.generation)})`],
    ['Ceiling', `${money(purchase.ceiling, purchase.currency)} for one unit`],
    ['Amount', money(purchase.amount, purchase.currency)],
    ['At supplier', cell(purchase.supplierOrderId)],
    ['Reference', cell(purchase.externalOrderId)],
    ['Changed', instant(purchase.changedAt, now)],
    Boolean(purchase.cancelRequestedAt) && ['Cancellation', `asked ${instant(purchase.cancelRequestedAt, now)}`],
    ...nextOf(purchase),
  ]
  const tables = [attemptsText(purchase, width), outagesText(purchase, width), changesText(purchase, width)]
  return [details(pairs, width), ...tables.filter((text) => text !== '')].join('\n')
}

/** What has to be changed for a release to help. */
const releaseOptions: Record<string, string> = {
  ceiling: ' --ceiling <amount>',
  spend_cap: ' --override-spend-cap',
}

/** The command for what a person can decide here. */
function nextOf({ id, state, holdReason }: Row): Pair[] {
  const next = (command: string): Pair[] => [['Next', commandLine(command)]]
  if (state === 'review') return next(`reviews show ${cell(id)}`)
  if (holdReason) return next(`purchases release ${cell(id)}${releaseOptions[cell(holdReason)] ?? ''}`)
  const ended = state === 'rejected' || state === 'failed' || state === 'cancelled'
  return ended ? next(`purchases retry ${cell(id)}`) : []
}

function attemptsText(purchase: Row, width: number): string {
  const rows = asRows(purchase.attempts)
  if (rows.length === 0) return 'Nothing was sent to the supplier yet.\n'
  const columns = {
    'REQUEST AT': time('at'),
    KIND: 'kind',
    STAGE: 'stage',
    HTTP: number('status'),
    CODE: 'code',
    DETAIL: (row: Row) => cell(row.detail ?? row.supplierOrderId),
    'REQUEST ID': 'requestId',
  }
  return table(rows, columns, width)
}

/** When the supplier was away while the purchase waited for it. */
function outagesText(purchase: Row, width: number): string {
  const rows = asRows(purchase.outages)
  return rows.length === 0
    ? ''
    : table(rows, { 'OUTAGE AT': time('beganAt'), UNTIL: time('endedAt'), ERROR: 'error' }, width)
}

function changesText(purchase: Row, width: number): string {
  const rows = asRows(purchase.transitions)
  if (rows.length === 0) return 'Nothing changed yet.\n'
  const columns = {
    'CHANGE AT': time('at'),
    INPUT: 'input',
    FROM: 'before',
    TO: 'after',
    BY: 'actor',
    DETAIL: (row: Row) => cell(row.detail ?? row.row),
  }
  return table(rows, columns, width)
}

const EXAMPLES = `
Examples:
  quayside reviews
  quayside reviews show 01k3…
  quayside reviews decide 01k3… --evidence review-9f86d081884c \\
    --adopt 7c0e… --reason 'other one refunded'
  quayside reviews decide 01k3… --hand-over --reason 'two are enough'`

/** Purchases that wait for a person, what is known of each, and the decision on one. */
export const reviews: CommandRow[] = [
  {
    command: 'reviews',
    about: 'purchases that wait for a person; see the evidence, decide',
    help: EXAMPLES,
    call: 'GET /purchases',
    query: { state: 'review' },
    empty: 'Nothing waits for a decision.',
    columns: {
      PURCHASE: key('id'),
      QTY: number('quantity'),
      WAITS: right((row, now) => ageOf(row.since, now)),
      WHY: 'note',
    },
    below: () => `See one: ${commandLine('reviews show <purchase>')}\n`,
  },
  {
    command: 'reviews show <id>',
    about: 'what is known of a purchase, and what each decision would do',
    listedBy: 'reviews',
    args: ['the purchase'],
    options: { '--stored': 'what is stored alone; without it the supplier is asked how the orders stand' },
    call: 'GET /purchases/{id}/evidence',
    query: ({ flag }) => (flag('stored') ? {} : { read: true }),
    text: evidenceText,
  },
  {
    command: 'reviews decide <id>',
    about: 'decide on a purchase: one of four, with a reason',
    listedBy: 'reviews',
    args: ['the purchase'],
    options: {
      '--adopt <order>': "the supplier's order that is taken as the one that was bought",
      '--hand-over': 'the store gets the keys that came, at most the quantity',
      '--close': 'it ends; nothing is bought',
      '--buy-again': 'it is written off and its part is bought again',
      '--override-spend-cap': 'with --buy-again: it may exceed the spend caps',
      '--evidence <version>': 'what `reviews show` says: refused when it is no longer so',
      '--reason <text>': 'why, 3 to 500 characters; kept with your name, never shown to stores',
    },
    help: EXAMPLES,
    call: 'POST /purchases/{id}/decision',
    body: decisionOf,
    ifMatch: async (call) => call.option('evidence') ?? (await versionShown(call)),
    text: decidedText,
  },
]

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
    throw new Failure('invalid', `${message}\n\`${commandLine('reviews show <id>')}\` says what each would do.`)
  }
  const reason = call.option('reason')
  if (reason === undefined) throw new Failure('invalid', "give a reason, for later readers: --reason '…'")
  return call.flag('overrideSpendCap') ? { ...one, overrideSpendCap: true, reason } : { ...one, reason }
}

/**
 * The version of the evidence that is shown here and now, confirmed by the person who reads it.
 *
 * @throws Failure `invalid` where there is no terminal, or for a purchase that does not ask for a decision: then
 *   the version has to be given
 */
async function versionShown(call: Call): Promise<string> {
  const id = call.args[0] ?? ''
  const { decision } = decisionOf(call)
  const again = `--evidence is what\n\`${commandLine(`reviews show ${id}`)}\` prints.`
  if (!call.io.isTerminal || call.json) throw new Failure('invalid', `say what the decision is based on: ${again}`)
  const evidence = await call.client.get(['purchases', id, 'evidence'], { read: true })
  const { state } = asRow(evidence.purchase)
  if (state !== 'review') {
    throw new Failure(
      'conflict',
      `the purchase is ${cell(state)} and asks for no decision. To take one all the same,\n${again}`,
    )
  }
  const choice = asRows(evidence.choices).find((one) => one.decision === decision)
  const does = choice?.refusal ? `Not now: ${cell(choice.refusal)}` : cell(choice?.does)
  const question = wrap(`${wordOf(decisionLabels, decision)}: ${does}`, call.width).join('\n')
  const text = `${evidenceText(evidence, call)}\n${question}`
  if (!(await confirmed(call.io, text))) throw new Failure('conflict', 'not confirmed: nothing was decided')
  return cell(evidence.evidenceVersion)
}

function decidedText(evidence: Row, { io, width }: Call): string {
  const { id, state } = asRow(evidence.purchase)
  const lines = [`Decided. The purchase is ${cell(state)} now.`, `Watch it: ${commandLine(`reviews show ${cell(id)}`)}`]
  const frozen = evidence.freeze ? `\n${frozenText(asRow(evidence.freeze), io.now(), width, id)}` : ''
  return `${lines.join('\n')}\n${frozen}`
}

/** The evidence of one purchase as a page for the person who decides: facts first, then the decisions, then how it came to it. */
function evidenceText(evidence: Row, { io, width }: Call): string {
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
    section('People', asRows(evidence.audit).map(actionOf), width, ''),
    freeze ? frozenText(asRow(freeze), now, width, asRow(evidence.purchase).id) : '',
  ]
  return parts.filter(Boolean).join('\n')
}

/** A heading and pairs below it; without pairs the sentence that says so, or nothing at all. */
function section(title: string, pairs: Pair[], width: number, empty: string): string {
  if (pairs.length > 0) return `${title}:\n${indented(details(pairs, width - 2))}`
  return empty === '' ? '' : `${title}:\n${indented(`${wrap(empty, width - 2).join('\n')}\n`)}`
}

const indented = (text: string): string => text.replaceAll(/^(?=.)/gm, '  ')

function factsOf({ purchase, order, keys, generations }: Row, now: number): (Pair | false)[] {
  const { id, state, since, note, quantity, part, generation, ...row } = asRow(purchase)
  const { stored, left, elsewhere } = asRow(keys)
  const { store, reference, line } = asRow(order)
  const others = asRows(generations).map((one) => `${cell(one.generation)} is ${cell(one.state)} (${cell(one.id)})`)
  const held = Array.isArray(elsewhere) && elsewhere.length > 0 ? `; one is on ${cell(elsewhere)} too` : ''
  return [
    ['Purchase', cell(id)],
    ['State', `${cell(state)}, since ${instant(since, now)}`],
    Boolean(note) && ['Why', cell(note)],
    ['For', `order ${cell(reference)}, line ${cell(line)}, store ${cell(store)}`],
    [
      'Buys',
      `${cell(quantity)} at most ${money(row.ceiling, row.currency)} each; part ${cell(part)}, generation ${cell(generation)}`,
    ],
    others.length > 0 && ['Generations', others.join('; ')],
    ['Charged', money(row.amount, row.currency)],
    ['Keys', stored === 0 ? 'none came' : `${cell(stored)} stored, ${cell(left)} of them with the store${held}`],
    Boolean(row.cancelRequestedAt) && ['Cancellation', `asked ${instant(row.cancelRequestedAt, now)}`],
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
function decisionsText({ choices: offered, purchase, evidenceVersion }: Row, width: number): string {
  const choices = asRows(offered)
  const [refusal, ...others] = new Set(choices.map((one) => one.refusal))
  if (refusal && others.length === 0) return section('Decisions', [], width, `None: ${cell(refusal)}.`)
  const command = `${commandLine(`reviews decide ${cell(asRow(purchase).id)}`)} \\\n    --evidence ${cell(evidenceVersion)} --reason '…' <one of these>`
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

const requestOf = (row: Row): Pair => [
  timeText(row.at),
  [
    `${plainName(cell(row.kind))} ${cell(row.stage)}`,
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
  const times = Number(row.times) > 1 ? [`${cell(row.times)} times until ${timeText(row.lastAt)}`] : []
  const by = row.actor ? [`by ${cell(row.actor)}`] : []
  const detail = row.detail && row.detail !== row.row ? [cell(row.detail)] : []
  const words = [plainName(what), ...times, ...by, ...detail]
  return [timeText(row.at), `${states}: ${words.join(', ')}`]
}

const differenceOf = (row: Row): Pair => [
  timeText(row.foundAt),
  `${wordOf(discrepancyLabels, cell(row.kind))}, order ${cell(row.supplierOrderId)}: ${cell(row.detail)}`,
]

const actionOf = (row: Row): Pair => [timeText(row.at), `${cell(row.actor)}, ${cell(row.action)}: ${cell(row.detail)}`]
