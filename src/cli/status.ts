import { alertText } from '../domain/alert-kinds.ts'
import { counted } from '../domain/figures.ts'
import {
  deliveryLabels,
  discrepancyLabels,
  effectLabels,
  holdLabels,
  listingLabels,
  plainName,
  purchaseLabels,
} from '../domain/labels.ts'
import { cut, plain, sentence } from '../domain/text-layout.ts'
import { Failure } from '../errors.ts'
import { aboutOf, nameIn } from './alerts.ts'
import type { Answer } from './client.ts'
import type { Call, CommandRow } from './command.ts'
import { type Facts, factsText } from './facts.ts'
import { balanceText } from './reconcile.ts'
import { oldUntil, pausedText } from './stores.ts'
import { confirm } from './terminal.ts'
import { waitingText } from './waiting.ts'
import { ageOf, cell, commandLine, countsText, instant, joined } from './words.ts'

export type Status = Answer<'GET /status'>
type Freeze = NonNullable<Status['freeze']>
type Alert = Status['alerts'][number]

export const status: CommandRow = {
  command: 'status',
  about: 'balance, freshness, what is under way and what waits for a person',
  call: 'GET /status',
  facts: {
    Worker: ({ workerAbsentSince }, now) => workerAbsentSince && `none since ${instant(workerAbsentSince, now)}`,
    Customers: ({ waiting }, now) => waitingText(waiting, now),
    Buying: buyingLines,
    Supplier: ({ supplier: { unreachableSince, error, lastAnswerAt, waiting } }, now) => {
      const last = lastAnswerAt ? `last answer ${instant(lastAnswerAt, now)}` : 'no answer yet'
      const waits = counted(waiting, 'purchase waits', 'purchases wait')
      return unreachableSince
        ? [`DOWN since ${instant(unreachableSince, now)}: ${cell(error)}`, `${last}; ${waits}`]
        : last
    },
    Balance: balanceText,
    Tier: 'tier',
    Limits: ({ limits }) => limitsText(limits),
    Catalogue: ({ freshness: { catalogueAt, catalogueFailure: failure } }, now, width) => [
      catalogueAt ? `read ${instant(catalogueAt, now)}` : 'not read yet',
      // The cause is cut, so that it fits in one line.
      ...(failure ? [cut(plain(`FAILED ${instant(failure.at, now)}: ${cell(failure.error)}`), width)] : []),
    ],
    Offers: ({ counts: { offers } }) => `${cell(offers.total)}, ${cell(offers.inStock)} in stock`,
    Listings: ({ counts }) => countsText(counts.listings, listingLabels),
    Purchases: ({ counts }) => countsText(counts.purchases, purchaseLabels, counts.upTo),
    Held: ({ counts }) => countsText(counts.held, holdLabels, counts.upTo),
    Deliveries: ({ counts }) => countsText(counts.deliveries, deliveryLabels, counts.upTo),
    Refused: ({ refusedDeliveries: { since, total, lastAt, reasons } }, now) =>
      total > 0 && [
        `${counted(total, 'delivery', 'deliveries')} since the start, ${instant(since, now)}:`,
        `${countsText(reasons)}; last ${instant(lastAt, now)}`,
      ],
    Callbacks: ({ counts }) => countsText(counts.callbacks, effectLabels, counts.upTo),
    Alerts: ({ alerts }) =>
      countsText({ open: inState(alerts, 'open').length, ended: inState(alerts, 'ended').length }),
    Discrepancies: ({ counts }) => countsText(counts.discrepancies, discrepancyLabels).toLowerCase(),
    Sweep: ({ sweep }, now) => {
      if (!sweep?.finishedAt) return 'none is complete yet'
      const { finishedAt, orders, orphans, missing } = sweep
      return `${cell(orders)} orders, ${cell(orphans)} orphans, ${cell(missing)} missing, ${instant(finishedAt, now)}`
    },
    'Old secret': ({ stores }, now) =>
      stores.flatMap(({ store, callbackSecret }) => {
        const until = oldUntil(callbackSecret, now)
        return until === undefined ? [] : [`of ${store}, valid until ${until}`]
      }),
  },
  parts: (status, call) => {
    // Critical alerts come first: otherwise an old freeze could be among the alerts that are only counted.
    const open = inState(status.alerts, 'open').toSorted((a, b) => rankOf(a) - rankOf(b))
    return [
      dueText(status, call),
      alertsText('Open alerts', open, (alert) => openAlert(alert, call)),
      alertsText('Alerts that ended by themselves', inState(status.alerts, 'ended'), (alert) => raised(alert, call)),
    ]
  },
}

function dueText(status: Status, { io, width }: Call): string {
  const { workerAbsentSince, freeze, freshness } = status
  const { catalogueFailure: failure } = freshness
  const duties: Pick<Duty, 'what' | 'how' | 'fix'>[] = [
    ...(failure ? [{ what: 'catalogue not read', how: `sync show ${cell(failure.run)}` }] : []),
    ...dutiesOf(status, io.now()),
  ]
  const due = [
    ...(workerAbsentSince ? [`  no worker: start one by ${commandLine('serve --role worker')}\n`] : []),
    ...(freeze ? ['  buying is frozen\n'] : []),
    ...(freeze ? nextOf(freeze).map((next) => sentence(next, width, { lead: '    ', hang: 6 })) : []),
    ...duties.map(({ what, how, fix }) => (how ? todo(what, how, width) : sentence(`${what}: ${fix}`, width, DUE))),
  ]
  return due.length === 0 ? '' : `For a person:\n${due.join('')}`
}

const DUE = { lead: '  ', hang: 4 }

/** Says what to do, by a command. The command is not wrapped, so that it can be copied. */
function todo(what: string, how: string, width: number, indent = '  '): string {
  const line = `${indent}${what}: ${commandLine(how)}\n`
  if (line.length <= Math.min(width, 80) + 1) return line
  const lead = { lead: indent, hang: indent.length + 2 }
  return `${sentence(`${what}:`, width, lead)}${indent}  ${commandLine(how)}\n`
}

function buyingLines({ freeze, unreadable, workerAbsentSince }: Status, now: number): string[] {
  if (freeze) {
    const by = ({ actor, at, reason }: Freeze['causes'][number]) => `by ${actor}, ${instant(at, now)}: ${reason}`
    return freeze.causes.map((cause, index) => `${index === 0 ? 'FROZEN' : 'and'} ${by(cause)}`)
  }
  if (unreadable.some(({ pausesBuying }) => pausesBuying)) return ['paused: answers of the supplier cannot be read']
  return [workerAbsentSince ? 'waits for a worker' : 'on']
}

const inState = (alerts: Alert[], state: Alert['state']): Alert[] => alerts.filter((alert) => alert.state === state)

/** How many alerts of one state are shown at most. The others are only counted. */
const ALERTS_SHOWN = 10

function alertsText(title: string, alerts: Alert[], text: (alert: Alert) => string): string {
  const more = alerts.length - ALERTS_SHOWN
  const rest = more > 0 ? `  ${more} more: ${commandLine('alerts list')}\n` : ''
  return alerts.length === 0 ? '' : `${title}:\n${alerts.slice(0, ALERTS_SHOWN).map(text).join('')}${rest}`
}

function raised({ type, subject, order, at, severity }: Alert, { io, width }: Call): string {
  const about = (order || subject) && aboutOf({ order, subject })
  const parts = [alertText(type), about, severity === 'critical' && severity, `raised ${ageOf(at, io.now())} ago`]
  return sentence(plain(joined(...parts)), width, DUE)
}

const rankOf = ({ severity }: Alert): number => (severity === 'critical' ? 0 : 1)

function openAlert(alert: Alert, call: Call): string {
  const { width } = call
  const now = call.io.now()
  const { advice, note, acknowledgedBy, mutedUntil } = alert
  const lines = [
    note && cell(note),
    acknowledgedBy && `${nameIn(acknowledgedBy)} looks after it`,
    mutedUntil && Date.parse(mutedUntil) > now && `muted until ${instant(mutedUntil, now)}`,
  ]
  return [
    raised(alert, call),
    ...lines.map((line) => line && sentence(line, width, { lead: '    ', hang: 4 })),
    todo(cell(advice), cell(alert.command).replace(/^quayside /, ''), width, '    '),
  ]
    .filter(Boolean)
    .join('')
}

/** Something that waits for a person, as `status` and `doctor` show it. */
export interface Duty {
  /** The check of `doctor` that fails or warns because of this duty: something that waits for a person. */
  check: 'answers' | 'listings' | 'dead letters' | 'paid orders' | 'discrepancies' | 'alerts' | 'proof'
  level: 'warn' | 'fail'
  /** The matter in words, with its count: `2 purchases in review`. */
  what: string
  /** The command that shows the matter, in the form that `commandLine` takes. */
  how?: string
  /** What to do, where there is no such command. */
  fix?: string
}

const DISCREPANCIES = 'discrepancies list'

/** Returns what does not end by itself, but waits for a person. */
export function dutiesOf(status: Status, now: number): Duty[] {
  type Row = [check: Duty['check'], count: number | undefined, one: string, several: string, how: string]
  const { counts, stores, sweep, alerts: raised } = status
  const { purchases, deliveries, callbacks, alerts } = counts
  // Where there are several stores, the command must name one.
  const listings = (state: 'held' | 'failed', one: string, several: string) =>
    stores.map(({ store, listings }): Row => {
      const how = `listings list --state ${state}${stores.length === 1 ? '' : ` --store ${cell(store)}`}`
      return ['listings', listings[state], one, several, how]
    })
  const heldTooLong = raised.filter(({ type, state }) => type === 'order_held' && state === 'open').length
  const rows: Row[] = [
    ['dead letters', purchases.review, 'purchase in review', 'purchases in review', 'reviews'],
    ['paid orders', heldTooLong, 'paid order waits too long', 'paid orders wait too long', 'purchases list --hold any'],
    ...listings('held', 'listing held', 'listings held'),
    ...listings('failed', 'listing not taken', 'listings not taken'),
    ['dead letters', deliveries.dead, 'dead delivery', 'dead deliveries', 'deliveries list --state dead'],
    [
      'dead letters',
      deliveries.quarantined,
      'unreadable delivery',
      'unreadable deliveries',
      'deliveries list --state quarantined',
    ],
    ['dead letters', callbacks.dead, 'dead callback', 'dead callbacks', 'outbox list --state dead --kind callback'],
    ['dead letters', alerts.dead, 'dead alert', 'dead alerts', 'outbox list --state dead --kind alert'],
    [
      'discrepancies',
      sweep?.orphans,
      'order of ours without a purchase',
      'orders of ours without a purchase',
      DISCREPANCIES,
    ],
    ['discrepancies', sweep?.missing, 'purchase without its order', 'purchases without their order', DISCREPANCIES],
  ]
  return [
    ...status.unreadable.map((one): Duty => {
      return { check: 'answers', level: 'fail', what: unreadableText(one, now), fix: 'fix the dialect, then restart' }
    }),
    ...rows.flatMap(([check, count, one, several, how]): Duty[] =>
      count ? [{ check, level: 'warn', what: counted(count, one, several), how }] : [],
    ),
    ...stores.flatMap(({ store, needsProof, proven }): Duty[] => {
      if (!needsProof || proven !== null) return []
      const what = `${cell(store)} is not proven: it is not known that its customers get at their keys`
      return [{ check: 'proof', level: 'warn', what, how: `stores test ${cell(store)} --order <its number>` }]
    }),
    ...status.paused.map((one): Duty => {
      const fix = 'fix the store; the push is repeated by itself'
      return { check: 'listings', level: 'fail', what: pausedText(one, now), fix }
    }),
    ...status.alertChannels.flatMap(({ channel, failingSince, error }): Duty[] => {
      if (!failingSince) return []
      const what = `alerts are not sent by ${cell(channel)} since ${instant(failingSince, now)}: ${cell(error)}`
      return [{ check: 'alerts', level: 'warn', what, how: 'alerts test' }]
    }),
  ]
}

function unreadableText(answer: Status['unreadable'][number], now: number): string {
  const { request, field, setting, value, since, pausesBuying } = answer
  const there = `${cell(field)} (${cell(setting)} of the dialect) has ${cell(value)} there`
  const effect = pausesBuying ? '; nothing new is bought until one is read' : ''
  return `the answer to ${cell(request)} cannot be read, first ${instant(since, now)}: ${there}${effect}`
}

function limitsText(value: unknown): string {
  const limits = Object.entries(value ?? {}).filter(([, limit]) => limit !== null)
  const words = (name: string) => plainName(name).replaceAll(/([a-z])([A-Z])/g, (_, a, b) => `${a} ${b.toLowerCase()}`)
  return limits.length === 0 ? '-' : plain(limits.map(([name, limit]) => `${words(name)} ${cell(limit)}`).join(', '))
}

export const freezes: CommandRow[] = [
  {
    command: 'freeze',
    about: 'stop all buying; look-ups, intake and hand-over go on',
    options: { '--reason <text>': { about: 'what the others will read', fallback: 'frozen from the command line' } },
    examples: ["freeze --reason 'prices look wrong'"],
    call: 'POST /freeze',
    body: ['reason'],
    text: ({ freeze }, call) => (freeze ? frozenText(freeze, call) : 'Not frozen.\n'),
  },
  {
    command: 'unfreeze [causes...]',
    about: 'buy again; what was held by the freeze goes on by itself',
    args: ['ids of the causes to lift; on a terminal they are shown and asked about'],
    act: async (call) => {
      const causes = call.args.length > 0 ? call.args : await causesShown(call)
      if (causes.length === 0) {
        call.print({ freeze: null }, () => 'Buying is not frozen.\n')
        return undefined
      }
      const answer = await call.client.call('POST /unfreeze', { body: { causes } })
      const left = answer.freeze
      call.print(answer, () => (left ? frozenText(left, call) : 'Buying again.\n'))
      return undefined
    },
  },
]

/** Shows the causes of a freeze and asks to lift them. @returns the shown causes @throws Failure `invalid` without a terminal */
async function causesShown(call: Call): Promise<string[]> {
  const { freeze } = await call.client.call('GET /status')
  if (!freeze) return []
  const ids = freeze.causes.map(({ id }) => id)
  if (!call.asks) {
    const named = freeze.causes.map(({ id, reason }) => `${id}  ${reason}`)
    const line = commandLine(`unfreeze ${ids.join(' ')}`)
    throw new Failure('invalid', `name the causes that are to be lifted:\n${named.join('\n')}\nAll of them:\n${line}`)
  }
  const question = `${frozenText(freeze, call)}\nAll of this is settled, and buying is to go on?`
  await confirm(call.io, question, 'buying stays frozen')
  return ids
}

/** Says why buying is frozen, since when, and what to do. @param seen the purchase that the reader is looking at already */
export function frozenText(freeze: Freeze, call: Call, seen?: string): string {
  const whyOf = ({ actor, at, reason }: Freeze['causes'][number], now: number) =>
    `${reason} (by ${actor}, ${instant(at, now)})`
  const facts: Facts<Freeze> = {
    Frozen: () => 'nothing is bought until it is lifted',
    Why: ({ causes }, now) => causes.slice(0, 1).map((cause) => whyOf(cause, now)),
    And: ({ causes }, now) => causes.slice(1).map((cause) => whyOf(cause, now)),
    Next: () => nextOf(freeze, seen),
  }
  return factsText(freeze, facts, call.width, call.io.now())
}

/**
 * Returns the steps that lead out of a freeze, in their order. A cause without a purchase is one of two: many reviews, or a
 * balance that fell because of an order of ours that has no purchase.
 */
function nextOf(freeze: Freeze, seen?: string): string[] {
  if (freeze.actor === 'restore') return afterRestore(freeze)
  const causes = freeze.causes.filter(({ actor }) => actor === 'quayside')
  const bought = causes.filter(({ purchaseId }) => purchaseId && purchaseId !== seen)
  const looks = [
    ...bought.map(({ purchaseId }) => commandLine(`reviews show ${cell(purchaseId)}`)),
    ...(causes.some(({ purchaseId }) => !purchaseId) ? [commandLine('reviews'), commandLine(DISCREPANCIES)] : []),
  ]
  return [...new Set(looks), `when that is settled: ${commandLine('unfreeze')}`]
}

/** Returns the steps after a restore. The reason of the freeze says how far reattaching has come; after that, people decide. */
function afterRestore({ reason: why }: Freeze): string[] {
  if (why.startsWith('the database is new: ')) {
    return ["it ends by itself once the supplier's order list was read", `if that fails: ${commandLine('doctor')}`]
  }
  if (!why.includes('; reattached: ')) {
    return ["it ends by itself once the supplier's orders are reattached"]
  }
  // The supplier's list does not show all orders: only a person can find out about orders that are not listed.
  if (why.includes('(paging.listMax)')) {
    const account = "the supplier's own account: does it have older orders of these stores?"
    return [commandLine(DISCREPANCIES), account, `when that is settled: ${commandLine('unfreeze')}`]
  }
  return [
    commandLine(DISCREPANCIES),
    'it ends by itself once each of those orders has its purchase again',
    `when that is settled otherwise: ${commandLine('unfreeze')}`,
  ]
}
