import { decisionLabels, discrepancyLabels, plainName, wordOf } from '../domain/labels.ts'
import { plain, sentence } from '../domain/text-layout.ts'
import { Failure } from '../errors.ts'
import type { Answer } from './client.ts'
import { type Call, type CommandRow, neededReason, REASON, type RecordView, recordText } from './command.ts'
import { details, type Pair, when } from './facts.ts'
import { whyOf } from './orders.ts'
import { frozenText } from './status.ts'
import { type Columns, key, number, right, tableOr, time } from './tables.ts'
import { confirm } from './terminal.ts'
import { ageOf, cell, commandLine, instant, joined, money, timeText } from './words.ts'

type Purchase = Answer<'GET /purchases/:id'>
type Evidence = Answer<'GET /purchases/:id/evidence'>

const attemptColumns: Columns<Purchase['attempts'][number]> = {
  'REQUEST AT': time('at'),
  KIND: 'kind',
  STAGE: 'stage',
  HTTP: number('status'),
  CODE: 'code',
  DETAIL: ({ detail, supplierOrderId }) => cell(detail ?? supplierOrderId),
  'REQUEST ID': 'requestId',
}
const transitionColumns: Columns<Purchase['transitions'][number]> = {
  'CHANGE AT': time('at'),
  INPUT: 'input',
  FROM: 'before',
  TO: 'after',
  BY: 'actor',
  DETAIL: ({ detail, row }) => cell(detail ?? row),
}

export const purchases: CommandRow[] = [
  { command: 'purchases', about: 'our orders with the supplier: list, show, retry, release' },
  {
    command: 'purchases list',
    about: 'purchases, the newest first',
    options: {
      '--state <state>': 'planned, waiting, sending, unknown, accepted, completed, fulfilled, ...',
      '--hold <reason>': 'those that a hold keeps from being bought: ceiling, balance, ..., or any',
    },
    examples: ['purchases list --state unknown', 'purchases list --hold any'],
    call: 'GET /purchases',
    filters: ['state', 'hold'],
    empty: 'No purchase matches.',
    columns: {
      ID: key('id'),
      STATE: ({ state, holdReason }) => joined(state, holdReason),
      QTY: number('quantity'),
      CEILING: right((row) => money(row.ceiling, row.currency)),
      AMOUNT: right((row) => money(row.amount, row.currency)),
      AGE: right((row, now) => ageOf(row.since, now)),
    },
  },
  {
    command: 'purchases show <id>',
    about: 'one purchase with every attempt and change',
    call: 'GET /purchases/:id',
    facts: {
      Purchase: 'id',
      State: 'state',
      Why: whyOf,
      'Not before': when('notBefore'),
      Quantity: ({ quantity, part, generation }) => `${cell(quantity)} (part ${part}, generation ${generation})`,
      Ceiling: ({ ceiling, currency }) => `${money(ceiling, currency)} for one unit`,
      Amount: ({ amount, currency }) => money(amount, currency),
      'At supplier': 'supplierOrderId',
      Reference: 'externalOrderId',
      Changed: when('changedAt'),
      Cancellation: when('cancelRequestedAt', 'asked '),
      Next: nextOf,
    },
    parts: ({ attempts, outages, transitions }, call) => [
      tableOr('Nothing was sent to the supplier yet.', attempts, attemptColumns, call),
      // This table shows the outages of the supplier while the purchase waited.
      tableOr('', outages, { 'OUTAGE AT': time('beganAt'), UNTIL: time('endedAt'), ERROR: 'error' }, call),
      tableOr('Nothing changed yet.', transitions, transitionColumns, call),
    ],
  },
  {
    command: 'purchases retry <id>',
    about: 'buy again what was rejected, failed or cancelled',
    options: REASON,
    call: 'POST /purchases/:id/retry',
    body: ['reason'],
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
    examples: ['purchases release 01k3… --ceiling 12.34'],
    call: 'POST /purchases/:id/release',
    body: ['reason', 'ceiling', 'overrideSpendCap'],
    text: (_, { args }) => `Released.\n${watchText(args[0])}`,
  },
  {
    command: 'purchases check <id>',
    about: 'try it again, or look at its order, now: no rule is lifted',
    call: 'POST /purchases/:id/check',
    text: (_, { args }) => `It is tried or looked at within seconds.\n${watchText(args[0])}`,
  },
]

const watchText = (id: string | undefined): string => `Watch it: ${commandLine(`purchases show ${id}`)}\n`

/** The options that a release needs, by the reason of the hold. Without them the purchase would be held again. */
const releaseOptions: Record<string, string> = { ceiling: ' --ceiling <amount>', spend_cap: ' --override-spend-cap' }

/** Returns the command by which a person can decide on the purchase; undefined when there is nothing to decide. */
function nextOf({ id, state, holdReason }: Purchase): string | undefined {
  if (state === 'review') return commandLine(`reviews show ${id}`)
  if (holdReason) return commandLine(`purchases release ${id}${releaseOptions[holdReason] ?? ''}`)
  return ['rejected', 'failed', 'cancelled'].includes(state) ? commandLine(`purchases retry ${id}`) : undefined
}

const EXAMPLES = [
  'reviews',
  'reviews show 01k3…',
  "reviews decide 01k3… --evidence review-9f86d081884c \\\n    --adopt 7c0e… --reason 'other one refunded'",
  "reviews decide 01k3… --hand-over --reason 'two are enough'",
]

/** Shows the evidence of one purchase to the person who decides: facts, orders at the supplier, the decisions, the history. */
const evidenceView: RecordView<Evidence> = {
  facts: {
    Purchase: ({ purchase }) => purchase.id,
    State: ({ purchase: { state, since } }, now) => `${state}, since ${instant(since, now)}`,
    Why: ({ purchase }) => purchase.note,
    For: ({ order: { reference, line, store } }) => `order ${reference}, line ${line}, store ${store}`,
    Buys: ({ purchase: { quantity, ceiling, currency, part, generation } }) =>
      `${cell(quantity)} at most ${money(ceiling, currency)} each; part ${part}, generation ${generation}`,
    Generations: ({ generations }) =>
      generations.map(({ generation, state, id }) => `${generation} is ${state} (${id})`).join('; '),
    Charged: ({ purchase: { amount, currency } }) => money(amount, currency),
    Keys: ({ keys: { stored, left, elsewhere } }) => {
      const held = elsewhere.length > 0 ? `; one is on ${cell(elsewhere)} too` : ''
      return stored === 0 ? 'none came' : `${cell(stored)} stored, ${cell(left)} of them with the store${held}`
    },
    Cancellation: ({ purchase }, now) => when('cancelRequestedAt', 'asked ')(purchase, now),
    Reference: ({ purchase }) => purchase.externalOrderId,
  },
  parts(evidence, call) {
    const { io, width } = call
    const { freeze, purchase, attempts, transitions, discrepancies, audit } = evidence
    return [
      section('Orders at the supplier', ordersOf(evidence, io.now()), width, 'None is known.'),
      decisionsText(evidence, width),
      section('Requests', together(attempts.map(requestOf)), width, 'Nothing was sent to the supplier yet.'),
      section('What happened', transitions.map(stepOf), width, 'Nothing yet.'),
      section('Discrepancies', discrepancies.map(differenceOf), width, ''),
      section('People', audit.map(actionOf), width, ''),
      freeze ? frozenText(freeze, call, purchase.id) : '',
    ]
  },
}

export const reviews: CommandRow[] = [
  {
    command: 'reviews',
    about: 'purchases that wait for a person; see the evidence, decide',
    examples: EXAMPLES,
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
    call: 'GET /purchases/:id/evidence',
    query: ({ flag }) => (flag('stored') ? {} : { read: true }),
    ...evidenceView,
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
    examples: EXAMPLES,
    call: 'POST /purchases/:id/decision',
    body: decisionOf,
    ifMatch: async (call) => call.option('evidence') ?? (await versionShown(call)),
    text({ purchase: { id, state }, freeze }, call) {
      const watch = `Watch it: ${commandLine(`reviews show ${cell(id)}`)}`
      return `Decided. The purchase is ${cell(state)} now.\n${watch}\n${freeze ? `\n${frozenText(freeze, call, id)}` : ''}`
    },
  },
]

const decisionFlags = { adopt: 'adopt', hand_over: 'handOver', close: 'close', buy_again: 'buyAgain' } as const
const decisions = Object.keys(decisionFlags) as (keyof typeof decisionFlags)[]

/** Makes the body of the request. @throws Failure `invalid` unless there is exactly one decision, with a reason */
function decisionOf(call: Call) {
  const given = call.values('adopt', 'handOver', 'close', 'buyAgain')
  const [decision, ...others] = decisions.filter((one) => given[decisionFlags[one]] !== undefined)
  if (!decision || others.length > 0) {
    const message = 'name one decision: --adopt <order>, --hand-over, --close or --buy-again'
    throw new Failure('invalid', `${message}\n\`${commandLine('reviews show <id>')}\` says what each would do.`)
  }
  return { decision, orderId: given.adopt, ...call.values('overrideSpendCap'), reason: neededReason(call) }
}

/**
 * Shows the evidence and asks the person to confirm the decision. @returns the version of the evidence that was shown
 *
 * @throws Failure `invalid` where there is no terminal, `conflict` for a purchase that does not ask for a decision. In both
 *   cases the version must be given by `--evidence`.
 */
async function versionShown(call: Call): Promise<string> {
  const id = call.args[0] ?? ''
  const { decision } = decisionOf(call)
  const again = `--evidence is what\n\`${commandLine(`reviews show ${id}`)}\` prints.`
  if (!call.asks) throw new Failure('invalid', `say what the decision is based on: ${again}`)
  const evidence = await call.client.call('GET /purchases/:id/evidence', { path: { id }, query: { read: true } })
  const { state } = evidence.purchase
  if (state !== 'review') {
    const message = `the purchase is ${state} and asks for no decision. To take one all the same,\n${again}`
    throw new Failure('conflict', message)
  }
  const choice = evidence.choices.find((one) => one.decision === decision)
  const does = choice?.refusal ? `Not now: ${choice.refusal}` : cell(choice?.does)
  const question = sentence(plain(`${decisionLabels[decision].word}: ${does}`), call.width).trimEnd()
  await confirm(call.io, `${recordText(evidence, evidenceView, call)}\n${question}`, 'nothing was decided')
  return evidence.evidenceVersion
}

/** Writes a heading and pairs below it, or without pairs the sentence `empty`. If `empty` is '', returns no text. */
function section(title: string, pairs: Pair[], width: number, empty: string): string {
  if (pairs.length > 0) return `${title}:\n${details(pairs, width - 2).replaceAll(/^(?=.)/gm, '  ')}`
  return empty && `${title}:\n${sentence(empty, width, { lead: '  ' })}`
}

const ordersOf = ({ orders }: Evidence, now: number): Pair[] =>
  orders.map(({ id, own, generation, takenBy, reading, unread }) => [
    id,
    joined(
      own && 'its own',
      generation !== null && `bought for the same part as generation ${generation}, which has no purchase here`,
      takenBy && `belongs to purchase ${takenBy}`,
      reading ? readingText(reading, now) : `not read: ${cell(unread)}`,
    ),
  ])

function readingText(reading: NonNullable<Evidence['orders'][number]['reading']>, now: number): string {
  const { statusWord, keys, quantity, amount, currency, createdAt, differs } = reading
  return joined(
    statusWord,
    `${cell(keys)} of ${cell(quantity)} keys`,
    money(amount, currency),
    createdAt && `made ${instant(createdAt, now)}`,
    differs.length === 0 ? 'as it was sent' : `another ${differs.join(', ')} than was sent`,
  )
}

/** Lists the decisions. Where one reason forbids all of them, a single sentence gives that reason. */
function decisionsText({ choices, purchase, evidenceVersion }: Evidence, width: number): string {
  const [refusal, ...others] = new Set(choices.map((one) => one.refusal))
  if (refusal && others.length === 0) return section('Decisions', [], width, `None: ${cell(refusal)}.`)
  const command = `${commandLine(`reviews decide ${cell(purchase.id)}`)} \\\n    --evidence ${cell(evidenceVersion)} --reason '…' <one of these>`
  const pairs = choices.map(
    (one): Pair => [`--${one.decision.replace('_', '-')}`, one.refusal ? `not now: ${one.refusal}` : one.does],
  )
  return `${section('Decisions', pairs, width, '')}  ${command}\n`
}

/** Joins lines that follow each other and say the same into one line. */
function together(pairs: Pair[]): Pair[] {
  const lines: { at: string; last: string; text: string; times: number }[] = []
  for (const [at, text] of pairs) {
    const line = lines.at(-1)
    if (line?.text === text) Object.assign(line, { last: at, times: line.times + 1 })
    else lines.push({ at, last: at, text, times: 1 })
  }
  return lines.map(({ at, last, text, times }) => [at, times === 1 ? text : `${text}; ${times} times until ${last}`])
}

const requestOf = (one: Evidence['attempts'][number]): Pair => [
  timeText(one.at),
  joined(
    `${plainName(one.kind)} ${one.stage}`,
    one.status !== null && `HTTP ${one.status}`,
    one.class && `class ${one.class}`,
    one.code,
    one.detail,
    one.supplierOrderId && `order ${one.supplierOrderId}`,
    one.requestId && `request ${one.requestId}`,
  ),
]

function stepOf(step: Evidence['transitions'][number]): Pair {
  const { at, input, row, before, after, actor, detail, times, lastAt } = step
  const words = joined(
    row === 'none' ? `${plainName(input)}, nothing changed` : plainName(row),
    times > 1 && `${cell(times)} times until ${timeText(lastAt)}`,
    actor && `by ${actor}`,
    detail !== row && detail,
  )
  return [timeText(at), `${before === after ? after : `${before} -> ${after}`}: ${words}`]
}

const differenceOf = ({ foundAt, kind, supplierOrderId, detail }: Evidence['discrepancies'][number]): Pair => [
  timeText(foundAt),
  `${wordOf(discrepancyLabels, kind)}, order ${supplierOrderId}: ${detail}`,
]

const actionOf = ({ at, actor, action, detail }: Evidence['audit'][number]): Pair => [
  timeText(at),
  `${actor}, ${action}: ${cell(detail)}`,
]
