import { asRow, asRows, cell, instant, money, type Row } from './cell.ts'
import { frozenText } from './freeze.ts'
import type { Call } from './service-command.ts'
import { details, wrap } from './table.ts'

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

const time = (at: unknown): string => cell(at).slice(0, 19).replace('T', ' ')

const requestOf = (row: Row): Pair => [
  time(row.at),
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
  const times = Number(row.times) > 1 ? [`${cell(row.times)} times until ${time(row.lastAt)}`] : []
  const by = row.actor ? [`by ${cell(row.actor)}`] : []
  const detail = row.detail && row.detail !== row.row ? [cell(row.detail)] : []
  const words = [what.replaceAll('_', ' '), ...times, ...by, ...detail]
  return [time(row.at), `${states}: ${words.join(', ')}`]
}

const differenceOf = (row: Row): Pair => [
  time(row.foundAt),
  `${cell(row.kind).replaceAll('_', ' ')}, order ${cell(row.supplierOrderId)}: ${cell(row.detail)}`,
]

const deedOf = (row: Row): Pair => [time(row.at), `${cell(row.actor)}, ${cell(row.action)}: ${cell(row.detail)}`]
