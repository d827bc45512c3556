import { alertText, storedKind } from '../domain/alert-kinds.ts'
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
import { type Call, type CommandRow, confirmed } from './command.ts'
import {
  ageOf,
  asRow,
  asRows,
  cell,
  commandLine,
  counted,
  countsText,
  details,
  instant,
  money,
  type Row,
} from './output.ts'
import { oldUntil, pausedOf } from './stores.ts'

/** What a person on duty looks at first. */
export const status: CommandRow = {
  command: 'status',
  about: 'balance, freshness, what is under way and what waits for a person',
  call: 'GET /status',
  text: (facts, { io, width }) => statusText(facts, io.now(), width),
}

function statusText(facts: Row, now: number, width: number): string {
  const balance = asRow(facts.balance)
  const freeze = asRow(facts.freeze)
  const freshness = asRow(facts.freshness)
  const counts = asRow(facts.counts)
  const upTo = Number(counts.upTo ?? Number.POSITIVE_INFINITY)
  const offers = asRow(counts.offers)
  const absent = facts.workerAbsentSince
  const frozen = facts.freeze
    ? `FROZEN by ${cell(freeze.actor)}, ${instant(freeze.at, now)}: ${cell(freeze.reason)}`
    : asRows(facts.unreadable).some(({ pausesBuying }) => pausesBuying === true)
      ? 'paused: answers of the supplier cannot be read'
      : absent
        ? 'waits for a worker'
        : 'on'
  const [, ...others] = causesOf(freeze)
  const pairs: [string, string][] = [
    ...(absent ? [['Worker', `none since ${instant(absent, now)}`] satisfies [string, string]] : []),
    ['Buying', frozen],
    ...others.map(({ actor, at, reason }): [string, string] => [
      '',
      `and by ${cell(actor)}, ${instant(at, now)}: ${cell(reason)}`,
    ]),
    ...supplierPairs(asRow(facts.supplier), now),
    [
      'Balance',
      facts.balance ? `${money(balance.amount, balance.currency)}, ${instant(balance.readAt, now)}` : 'not read yet',
    ],
    ['Tier', cell(facts.tier)],
    ['Limits', limitsText(facts.limits)],
    ['Catalogue', freshness.catalogueAt ? `read ${instant(freshness.catalogueAt, now)}` : 'not read yet'],
    ...catalogueFailure(freshness, now, width),
    ['Offers', `${cell(offers.total)}, ${cell(offers.inStock)} in stock`],
    ['Listings', countsText(counts.listings, listingLabels)],
    ['Purchases', countsText(counts.purchases, purchaseLabels, upTo)],
    ['Held', countsText(counts.held, holdLabels, upTo)],
    ['Deliveries', countsText(counts.deliveries, deliveryLabels, upTo)],
    ...refusedPairs(asRow(facts.refusedDeliveries), now),
    ['Callbacks', countsText(counts.callbacks, effectLabels, upTo)],
    ['Alerts', alertCounts(facts.alerts)],
    ['Discrepancies', countsText(counts.discrepancies, discrepancyLabels).toLowerCase()],
    ['Sweep', sweepText(asRow(facts.sweep), now)],
    ...asRows(facts.stores).flatMap(({ store, callbackSecret }): [string, string][] => {
      const until = oldUntil(callbackSecret, now)
      return until === undefined ? [] : [['Old secret', `of ${cell(store)}, valid until ${until}`]]
    }),
  ]
  const due = [
    ...(absent ? [`  no worker: start one by ${commandLine('serve --role worker')}\n`] : []),
    ...(facts.freeze ? ['  buying is frozen\n'] : []),
    ...(facts.freeze ? nextOf(freeze).map((next) => sentence(next, width, { lead: '    ', hang: 6 })) : []),
    ...unreadableOf(facts.unreadable, now).map((line) => sentence(`${line}: ${FIX_DIALECT}`, width, DUE)),
    ...failedReading(freshness).map((line) => `  ${line}\n`),
    ...dutiesOf(facts, width).map((line) => `  ${line}\n`),
    ...pausedOf(facts.paused, now).map((line) => sentence(line, width, DUE)),
    ...silentOf(facts.alertChannels, now).map((line) => sentence(line, width, DUE)),
  ]
  return (
    details(pairs, width) +
    (due.length === 0 ? '' : `\nFor a person:\n${due.join('')}`) +
    alertsText(facts.alerts, now, width)
  )
}

/** Whether the supplier answers; where it does not: since when, how, and what waits for it. */
function supplierPairs({ unreachableSince, error, lastAnswerAt, waiting }: Row, now: number): [string, string][] {
  const last = lastAnswerAt ? `last answer ${instant(lastAnswerAt, now)}` : 'no answer yet'
  if (!unreachableSince) return [['Supplier', last]]
  return [
    ['Supplier', `DOWN since ${instant(unreachableSince, now)}: ${cell(error)}`],
    ['', `${last}; ${counted(waiting, 'purchase waits', 'purchases wait')}`],
  ]
}

const inState = (alerts: unknown, state: 'open' | 'ended'): Row[] =>
  asRows(alerts).filter((alert) => alert.state === state)

const alertCounts = (alerts: unknown): string =>
  countsText({ open: inState(alerts, 'open').length, ended: inState(alerts, 'ended').length })

/** Alerts of one state that a person reads at once; the others are counted. */
const ALERTS_SHOWN = 10

/** Each open alert with what it is about and what to do; below them those that have ended. */
function alertsText(alerts: unknown, now: number, width: number): string {
  // A freeze must not be counted among the others because they came later.
  const open = inState(alerts, 'open').toSorted((a, b) => rankOf(a) - rankOf(b))
  const ended = inState(alerts, 'ended')
  const more = (all: Row[]) =>
    all.length > ALERTS_SHOWN ? [`  ${all.length - ALERTS_SHOWN} more: ${commandLine('alerts list')}\n`] : []
  return [
    ...(open.length > 0 ? ['\nOpen alerts:\n'] : []),
    ...open.slice(0, ALERTS_SHOWN).map((alert) => openAlert(alert, now, width)),
    ...more(open),
    ...(ended.length > 0 ? ['\nAlerts that ended by themselves:\n'] : []),
    ...ended.slice(0, ALERTS_SHOWN).map((alert) => sentence(raised(alert, now), width, DUE)),
    ...more(ended),
  ].join('')
}

const raised = ({ type, subject, order, at, severity }: Row, now: number): string =>
  `${alertText(storedKind(cell(type)))}${order || subject ? `, ${aboutOf({ order, subject })}` : ''}${severity === 'critical' ? ', critical' : ''}, raised ${ageOf(at, now)} ago`

const rankOf = ({ severity }: Row): number => (severity === 'critical' ? 0 : 1)

/** What a person does about it. */
function attended({ acknowledgedBy, mutedUntil }: Row, now: number): string[] {
  const isMuted = typeof mutedUntil === 'string' && Date.parse(mutedUntil) > now
  return [
    ...(acknowledgedBy ? [`${nameIn(acknowledgedBy)} looks after it`] : []),
    ...(isMuted ? [`muted until ${instant(mutedUntil, now)}`] : []),
  ]
}

/** Channels by which no person is notified now. */
export const silentOf = (channels: unknown, now: number): string[] =>
  asRows(channels).flatMap(({ channel, failingSince, error }) =>
    failingSince
      ? [
          `alerts are not sent by ${cell(channel)} since ${instant(failingSince, now)}: ${cell(error)}: ${commandLine('alerts test')}`,
        ]
      : [],
  )

function openAlert(alert: Row, now: number, width: number): string {
  const command = commandLine(cell(alert.command).replace(/^quayside /, ''))
  const todo = `${cell(alert.advice)}: ${command}`
  return [
    sentence(raised(alert, now), width, DUE),
    ...(alert.note ? [sentence(cell(alert.note), width, { lead: '    ', hang: 4 })] : []),
    ...attended(alert, now).map((line) => sentence(line, width, { lead: '    ', hang: 4 })),
    // A command stays in one piece, to be copied.
    todo.length + 4 <= Math.min(width, 80) ? `    ${todo}\n` : `    ${cell(alert.advice)}:\n      ${command}\n`,
  ].join('')
}

/** Deliveries that were refused since the start of the service, by reason. */
function refusedPairs({ since, total, lastAt, reasons }: Row, now: number): [string, string][] {
  if (!Number(total)) return []
  return [
    ['Refused', `${counted(total, 'delivery', 'deliveries')} since the start, ${instant(since, now)}:`],
    ['', `${countsText(reasons)}; last ${instant(lastAt, now)}`],
  ]
}

const DUE = { lead: '  ', hang: 4 }

/** How the last reading of the catalogue failed, in one line; its cause is cut to the width. */
function catalogueFailure(freshness: Row, now: number, width: number): [string, string][] {
  if (!freshness.catalogueFailure) return []
  const { at, error } = asRow(freshness.catalogueFailure)
  const text = `FAILED ${instant(at, now)}: ${cell(error)}`
  // Beside the longest label.
  return [['', cut(text, width - 'Discrepancies  '.length)]]
}

/** The command that shows it. */
function failedReading({ catalogueFailure }: Row): string[] {
  if (!catalogueFailure) return []
  return [`catalogue not read: ${commandLine(`sync show ${cell(asRow(catalogueFailure).run)}`)}`]
}

/** What does not heal by itself, each with the command that shows it. */
function dutiesOf(facts: Row, width: number): string[] {
  const [counts, sweep] = [asRow(facts.counts), asRow(facts.sweep)]
  const listings = (state: 'held' | 'failed', one: string, several: string) =>
    waitingListings(facts, state).map(({ count, how }): [unknown, string, string, string] => [count, one, several, how])
  const [deliveries, callbacks] = [asRow(counts.deliveries), asRow(counts.callbacks)]
  const list = 'deliveries list --state'
  const heldTooLong = inState(facts.alerts, 'open').filter(({ type }) => type === 'order_held').length
  const duties: [count: unknown, one: string, several: string, how: string][] = [
    [asRow(counts.purchases).review, 'purchase in review', 'purchases in review', 'reviews'],
    [heldTooLong, 'paid order waits too long', 'paid orders wait too long', 'purchases list --hold any'],
    ...listings('held', 'listing held', 'listings held'),
    ...listings('failed', 'listing not taken', 'listings not taken'),
    [deliveries.dead, 'dead delivery', 'dead deliveries', `${list} dead`],
    [deliveries.quarantined, 'unreadable delivery', 'unreadable deliveries', `${list} quarantined`],
    [callbacks.dead, 'dead callback', 'dead callbacks', 'outbox list --state dead'],
    [sweep.orphans, 'order of ours without a purchase', 'orders of ours without a purchase', DISCREPANCIES],
    [sweep.missing, 'purchase without its order', 'purchases without their order', DISCREPANCIES],
  ]
  return duties.flatMap(([count, one, several, how]) => {
    if (!(Number(count) > 0)) return []
    const line = `${counted(count, one, several)}: ${commandLine(how)}`
    // A command stays in one piece, to be copied.
    return line.length + 2 <= Math.min(width, 80)
      ? [line]
      : [`${counted(count, one, several)}:`, `  ${commandLine(how)}`]
  })
}

const DISCREPANCIES = 'discrepancies list'

/**
 * How many listings wait in a state, and the command that lists them, as `commandLine` takes it: one entry for each store that has some, under its
 * name, which the command needs where there are several.
 */
export function waitingListings(status: Row, state: 'held' | 'failed'): { count: number; how: string }[] {
  const how = `listings list --state ${state}`
  const stores = asRows(status.stores)
  const waiting =
    stores.length === 0
      ? [{ count: Number(asRow(asRow(status.counts).listings)[state] ?? 0), how }]
      : stores.map(({ store, listings }) => ({
          count: Number(asRow(listings)[state] ?? 0),
          how: stores.length === 1 ? how : `${how} --store ${cell(store)}`,
        }))
  return waiting.filter(({ count }) => count > 0)
}

/** Answers of the supplier that cannot be read, each with what is there. */
export const unreadableOf = (unreadable: unknown, now: number): string[] =>
  asRows(unreadable).map(
    ({ request, field, setting, value, since, pausesBuying }) =>
      `the answer to ${cell(request)} cannot be read, first ${instant(since, now)}: ${cell(field)} (${cell(setting)} of the dialect) has ${cell(value)} there${
        pausesBuying === true ? '; nothing new is bought until one is read' : ''
      }`,
  )

/** What to do about them. */
export const FIX_DIALECT = 'fix the dialect, then restart'

/** The last whole comparison with the supplier's orders. */
function sweepText({ finishedAt, orders, orphans, missing }: Row, now: number): string {
  if (!finishedAt) return 'none is complete yet'
  return `${cell(orders)} orders, ${cell(orphans)} orphans, ${cell(missing)} missing, ${instant(finishedAt, now)}`
}

/** The supplier's limits, by whatever names they have. */
function limitsText(value: unknown): string {
  const limits = Object.entries(asRow(value)).filter(([, limit]) => limit !== null)
  const words = (name: string) => plainName(name).replaceAll(/([a-z])([A-Z])/g, (_, a, b) => `${a} ${b.toLowerCase()}`)
  return limits.length === 0 ? '-' : plain(limits.map(([name, limit]) => `${words(name)} ${cell(limit)}`).join(', '))
}

/** The API needs a reason; the command line may leave it out. */
const REASON = 'frozen from the command line'

/** The switch that stops all buying. */
export const freezes: CommandRow[] = [
  {
    command: 'freeze',
    about: 'stop all buying; look-ups, intake and hand-over go on',
    options: { '--reason <text>': 'what the others will read' },
    help: "\nExample:\n  quayside freeze --reason 'prices look wrong'",
    call: 'POST /freeze',
    body: (call) => ({ reason: call.option('reason') ?? REASON }),
    text: ({ freeze }, { option, io, width }) =>
      frozenText({ reason: option('reason') ?? REASON, ...asRow(freeze) }, io.now(), width),
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
      const answer = await call.client.post(['unfreeze'], { causes })
      const left = asRow(answer).freeze
      call.print(answer, () => (left ? frozenText(asRow(left), call.io.now(), call.width) : 'Buying again.\n'))
      return undefined
    },
  },
]

/** Ids of the causes that are shown here and now. @throws Failure `invalid` where there is no terminal */
async function causesShown(call: Call): Promise<string[]> {
  const { freeze } = await call.client.get(['status'])
  if (!freeze) return []
  const ids = causesOf(asRow(freeze)).map(({ id }) => cell(id))
  if (!call.io.isTerminal || call.json) {
    const named = causesOf(asRow(freeze)).map(({ id, reason }) => `${cell(id)}  ${cell(reason)}`)
    const line = commandLine(`unfreeze ${ids.join(' ')}`)
    throw new Failure('invalid', `name the causes that are to be lifted:\n${named.join('\n')}\nAll of them:\n${line}`)
  }
  if (
    !(await confirmed(
      call.io,
      `${frozenText(asRow(freeze), call.io.now(), call.width)}\nAll of this is settled, and buying is to go on?`,
    ))
  ) {
    throw new Failure('conflict', 'not confirmed: buying stays frozen')
  }
  return ids
}

const causesOf = ({ causes, ...freeze }: Row): Row[] => (Array.isArray(causes) ? asRows(causes) : [freeze])

/** Why buying is frozen, since when, and what to do about it. @param seen the purchase that the reader has before him */
export function frozenText(freeze: Row, now: number, width: number, seen?: unknown): string {
  const [first = freeze, ...others] = causesOf(freeze)
  const whyOf = ({ actor, at, reason }: Row): string =>
    at ? `${cell(reason)} (by ${cell(actor)}, ${instant(at, now)})` : cell(reason)
  return details(
    [
      ['Frozen', 'nothing is bought until it is lifted'],
      ['Why', whyOf(first)],
      ...others.map((cause): [string, string] => ['And', whyOf(cause)]),
      ...nextOf(freeze, seen).map((next, index): [string, string] => [index === 0 ? 'Next' : '', next]),
    ],
    width,
  )
}

/**
 * What leads out of a freeze, in this order. One without a purchase was caused by many reviews, or by a balance that fell
 * with an order of ours behind it that has none.
 */
export function nextOf(freeze: Row, seen?: unknown): string[] {
  if (freeze.actor === 'restore') return afterRestore(freeze)
  const causes = causesOf(freeze).filter(({ actor }) => actor === 'quayside')
  const bought = causes.filter(({ purchaseId }) => purchaseId && purchaseId !== seen)
  const looks = [
    ...bought.map(({ purchaseId }) => commandLine(`reviews show ${cell(purchaseId)}`)),
    ...(causes.some(({ purchaseId }) => !purchaseId) ? [commandLine('reviews'), commandLine(DISCREPANCIES)] : []),
  ]
  return [...new Set(looks), `when that is settled: ${commandLine('unfreeze')}`]
}

/** A restore's hold says in its reason how far reattaching is: once that is through, it waits for people. */
function afterRestore({ reason }: Row): string[] {
  const why = cell(reason)
  if (why.startsWith('the database is new: ')) {
    return ["it ends by itself once the supplier's order list was read", `if that fails: ${commandLine('doctor')}`]
  }
  if (!why.includes('; reattached: ')) {
    return ["it ends by itself once the supplier's orders are reattached"]
  }
  // The list does not show all orders: only a person can find out about the others.
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
