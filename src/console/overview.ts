/** The overview: whether everything is well, what waits for a person, how long the balance lasts, and what happened lately. */

import { daysLeft } from '../domain/activity.ts'
import { aboutAlert, alertPath, alertText } from '../domain/alert-kinds.ts'
import { topUpText } from '../domain/balance.ts'
import { DAY_MS } from '../domain/earnings.ts'
import { counted, duration, grouped, lastsText } from '../domain/figures.ts'
import { type Html, html, type Piece } from '../domain/html.ts'
import { countsByWord, listingLabels, type Sign } from '../domain/labels.ts'
import { waysIntoReview } from '../domain/purchase.ts'
import type { StatusView } from '../http/api/status.ts'
import type { AnswerOf, ItemOf } from '../http/api/table.ts'
import { alertNote } from './alerts.ts'
import { act, actOf, reasonField, textsIn } from './forms.ts'
import { healthOf, untakenOrders, WARN_DAYS } from './health.ts'
import { buyingMark } from './layout.ts'
import { type Duty, duties, facts, figures, sectionHead, type Tab, tabs } from './lists.ts'
import { live, liveHeadline } from './live.ts'
import { mark, sign } from './marks.ts'
import { byOperator, done, type Page, type Visit } from './page.ts'
import { barPlot, type Label, tideCurve, tideStaff, timePlot } from './plots.ts'
import { isUnproven, NOT_PROVEN } from './stores.ts'
import { table } from './tables.ts'
import { queueActions, queuePart } from './waiting.ts'
import { ago, clockTag, dayOf, money, sentenceOf, sentenceStart, shortDay, storeNames } from './words.ts'

type ActivityView = AnswerOf<'viewActivity'>

/** The periods of the figures: each with the name of the period before, and with the step of its plots. */
const periods = {
  day: { word: 'Day', title: 'Last 24 hours', before: 'the day before', step: 'hour' },
  week: { word: 'Week', title: 'Last 7 days', before: 'the week before', step: 'six hours' },
  month: { word: 'Month', title: 'Last 30 days', before: 'the month before', step: 'day' },
}
type Period = keyof typeof periods

const periodOf = ({ query }: Visit): Period => {
  const asked = query.get('period')
  return asked === 'week' || asked === 'month' ? asked : 'day'
}

const activityOf = ({ call }: Visit, period: Period) => call('viewActivity', { query: { period } })

/** How many reviews are named one by one. The page of reviews has all of them. */
const REVIEWS_SHOWN = 5

/** Kinds of alerts that are left out, because the list, the queue or the health line says the same in its own words. */
const SAID_ELSEWHERE = new Set<string>([
  'freeze',
  'supplier_unreachable',
  'dead_letter',
  'delivery_dead',
  'listing_failed',
  'balance_low',
])

/** Kinds of alerts about a customer who waits: the queue has the order, its cause and what helps. */
const ABOUT_WAITING = new Set<string>([
  'order_held',
  'late',
  'look_ups_fail',
  'store_not_configured',
  ...waysIntoReview,
])

const WHY_HELD =
  'A price changed by more than the rules allow, or it is not clear which product is meant. The store shows no stock where its price does not cover the cost.'

/** Returns what waits for a person although no customer waits for it, the oldest decision first. */
async function dutiesOf(visit: Visit, status: StatusView): Promise<Duty[]> {
  const { counts, stores } = status
  const inReview = counts.purchases.review ?? 0
  const [{ items: waiting }, reviews] = await Promise.all([
    visit.waiting(),
    inReview > 0
      ? visit.call('listPurchases', { query: { state: 'review', limit: '200' } })
      : { items: [], next: null },
  ])
  const awaited = new Set(waiting.map(({ store, reference }) => JSON.stringify([store, reference])))
  const isAwaited = ({ store, reference }: { store: string; reference: string }) =>
    awaited.has(JSON.stringify([store, reference]))
  const others = reviews.items.filter(({ order }) => !isAwaited(order))
  const decisions = others
    .slice(0, REVIEWS_SHOWN)
    .toReversed()
    .map(
      (review): Duty => ({
        sign: 'review',
        what: `Order ${review.order.reference} needs a decision: ${review.quantity} × ${review.name ?? review.sku}`,
        to: `/reviews/${review.id}`,
        why: `${sentenceOf(review.note ?? 'Only a person can settle it')} ${
          review.amount === null
            ? `At most ${review.quantity} × ${money(review.ceiling, review.currency)} may be charged.`
            : `${money(review.amount, review.currency)} is charged.`
        }`,
        since: review.since,
      }),
    )
  const more = others.length - decisions.length
  const areMore = counted(more, 'more purchase needs a decision', 'more purchases need a decision')
  const grouping = (kind: Sign, count: number, what: string, to: string, why: Piece): Duty[] =>
    count > 0 ? [{ sign: kind, what, to, why }] : []
  const dead = (count: number, [one, several]: [string, string], to: string, why: string) =>
    grouping('stop', count, counted(count, one, several, counts.upTo), to, why)
  const undeliverable = waiting.filter(({ cause }) => cause === 'undeliverable').length
  const names = await storeNames(visit)
  const waitingOrders = new Set(waiting.flatMap(({ reference, number }) => [reference, number]))
  const isInQueue = ({ type, order }: StatusView['alerts'][number]) =>
    ABOUT_WAITING.has(type) && order !== null && waitingOrders.has(order)
  return [
    ...decisions,
    ...grouping('review', more, areMore, '/reviews', 'Each with its evidence.'),
    ...stores.flatMap(({ store, name, listings: { held = 0, failed = 0 }, ...proof }) => {
      const at = `/listings?store=${store}`
      const areHeld = counted(held, `listing is held in ${name}`, `listings are held in ${name}`)
      const haveFailed = counted(failed, `listing of ${name} failed`, `listings of ${name} failed`)
      return [
        ...grouping(
          'held',
          Number(isUnproven(proof)),
          `${name} is not proven`,
          `/stores/${store}`,
          sentenceOf(NOT_PROVEN),
        ),
        ...grouping('held', held, areHeld, `${at}&state=held`, WHY_HELD),
        ...grouping('stop', failed, haveFailed, `${at}&state=failed`, 'The store does not take them.'),
      ]
    }),
    ...dead(
      counts.deliveries.dead ?? 0,
      ['delivery used up its attempts', 'deliveries used up their attempts'],
      '/deliveries?state=dead',
      'Remove the cause, then replay. Quayside reads its orders at the supplier in any case.',
    ),
    ...dead(
      Math.max(0, (counts.callbacks.dead ?? 0) - undeliverable),
      ['message to a store used up its attempts', 'messages to stores used up their attempts'],
      '/dead-letters',
      'The store did not take it in a day and more. Fix the store, then send it again.',
    ),
    ...status.alerts
      .filter((alert) => alert.state === 'open' && !SAID_ELSEWHERE.has(alert.type) && !isInQueue(alert))
      .map((alert): Duty => {
        const about = aboutAlert(alert, names)
        return {
          sign: 'review',
          what: sentenceStart(`${about ? `${about}: ` : ''}${alertText(alert.type)}`),
          to: alertPath(alert) ?? '/alerts',
          why: `${alertNote(alert)} What to do: ${alert.advice}.`,
          since: alert.at,
        }
      }),
    ...status.alertChannels
      .filter(({ failingSince }) => failingSince !== null)
      .map(
        ({ channel, error, failingSince }): Duty => ({
          sign: 'stop',
          what: `Alerts do not reach people over ${channel}`,
          to: '/alerts',
          why: sentenceOf(error ?? 'It takes nothing'),
          since: failingSince ?? undefined,
        }),
      ),
  ]
}

/** Returns how long the free part of the balance lasts at the spend of the last seven days, or since the counting began. */
function lastsFor({ funds }: AnswerOf<'viewBalance'>, week: ActivityView, now: number) {
  if (!funds || week.countedSince === null) return undefined
  const since = Math.max(Date.parse(week.total.at), Date.parse(week.countedSince))
  const days = Math.max(1, (now - since) / DAY_MS)
  const left = daysLeft(Math.max(0, Number(funds.free)), Number(week.total.spend), days)
  return left === null ? undefined : { left, daily: Number(week.total.spend) / days, days: Math.round(days) }
}

const balanceOf = ({ call }: Visit) => call('viewBalance', { query: { limit: '1' } })

async function healthPart(visit: Visit): Promise<Html> {
  const status = await visit.status()
  const [setUp, day, week, waiting, balance] = await Promise.all([
    visit.call('viewSetUp'),
    activityOf(visit, 'day'),
    activityOf(visit, 'week'),
    dutiesOf(visit, status),
    balanceOf(visit),
  ])
  const left = lastsFor(balance, week, visit.now)?.left ?? null
  const health = healthOf({ status, day, daysLeft: left, duties: waiting.length, phase: setUp.phase, now: visit.now })
  const offer =
    setUp.phase === 'first_run' &&
    html`<p><a href="/setup">Set up your shop</a>: this is a demo, and no real money moves.</p>`
  return html`<h1>${sign(health.sign)}<span>${health.sentence}</span></h1><p>${health.fact}</p>${offer}`
}

async function tidePart(visit: Visit): Promise<Html> {
  const { steps, stepsBefore } = await activityOf(visit, 'day')
  return tideCurve({
    orders: steps.map(({ orders }) => orders),
    ordersBefore: stepsBefore.map(({ orders }) => orders),
    labels: steps,
  })
}

async function attentionPart(visit: Visit): Promise<Html> {
  const status = await visit.status()
  const all = await dutiesOf(visit, status)
  return html`<h2 id="att-h" class="quay">Needs attention${untakenOrders(status).length === 0 && ', no customer waits'}</h2>
${all.length > 0 ? duties(all, visit.now) : html`<p class="quiet">Nothing else waits for you. Held prices, dead letters and alerts come here.</p>`}`
}

const waitingPart = (visit: Visit): Promise<Html> => queuePart(visit, '/overview')

async function balancePart(visit: Visit): Promise<Html> {
  const { now } = visit
  const [answer, week] = await Promise.all([balanceOf(visit), activityOf(visit, 'week')])
  const { balance, funds } = answer
  if (!balance || !funds) {
    return html`${sectionHead('bal-h', 'Balance at the supplier')}<p class="quiet">It is not read yet.</p>`
  }
  const lasts = lastsFor(answer, week, now)
  const until = lasts && lasts.left < 99 && ` until ${dayOf(now + lasts.left * DAY_MS)},`
  return html`${sectionHead('bal-h', 'Balance at the supplier', html`<span class="small quiet">read ${ago(balance.readAt, now)}</span>`)}
<p class="sum">${grouped(balance.amount)} <small>${balance.currency}</small></p>
${
  funds.orders > 0
    ? html`<p><strong><a href="/money">${topUpText(funds)}</a></strong></p>`
    : lasts
      ? html`<p>Lasts <strong>${lastsText(lasts.left)}</strong>,${until} at ${grouped(lasts.daily.toFixed(0))} ${balance.currency} a day (average of ${counted(lasts.days, 'day')}).</p>
${tideStaff(lasts.left, WARN_DAYS)}`
      : html`<p class="quiet">Nothing was spent in the last seven days.</p>`
}
<p class="small"><a href="/money">What was earned</a> · <a href="/balance">Where the money went</a></p>`
}

async function buyingPart(visit: Visit): Promise<Html> {
  const { tier, spendCaps } = await visit.status()
  const caps = (['order', 'hour', 'day'] as const).flatMap((name) => {
    const cap = spendCaps[name]
    return cap === null ? [] : [`${grouped(cap)} ${name === 'day' ? 'a' : 'an'} ${name}`]
  })
  return facts([
    ['VIP tier', tier ?? 'not stated'],
    ['Spend caps', caps.length === 0 ? 'none' : `${caps.join(', ')}, in ${spendCaps.currency}`],
  ])
}

async function buyingActions(visit: Visit): Promise<Html | undefined> {
  const { freeze, supplier, counts } = await visit.status()
  if (visit.caller.role === 'viewer') return html`<p class="small quiet">Freezing needs the role operator.</p>`
  if (!freeze) {
    return actOf(visit, {
      summary: 'Freeze buying…',
      to: '/overview/freeze',
      about: 'Stops all buying for every store at once.',
      effect: {
        Money: 'Nothing more is spent. Purchases that were sent are finished, because they may be charged already.',
        Stores: 'Orders are still accepted, and wait. Keys that came are still handed over.',
        Undo: 'Unfreeze at any time; what waited then goes out.',
      },
      fields: html`${reasonField(visit)}`,
      button: 'Freeze buying now',
      stops: true,
    })
  }
  const causes = freeze.causes.map(
    ({ id, reason, actor, at }) =>
      html`<label for="c-${id}"><input type="checkbox" id="c-${id}" name="cause" value="${id}" checked> <span>“${reason}”, by ${actor} at ${clockTag(at, visit.now, 'minutes')}</span></label>`,
  )
  return act({
    summary: 'Unfreeze…',
    to: '/overview/unfreeze',
    about: 'Each cause is lifted by itself. Buying resumes when none is left.',
    effect: {
      Money: `Once no cause is left, ${counted(supplier.waiting, 'purchase', 'purchases', counts.upTo)} and those that are held as frozen go out, each up to its ceiling.`,
      Stores: 'Get their keys as soon as those have come.',
      Undo: 'Freeze again at any time.',
    },
    fields: html`${causes}`,
    button: 'Lift the chosen causes',
    isOpen: visit.query.get('do') === 'unfreeze',
  })
}

const labelOf =
  (period: Period) =>
  (step: AnswerOf<'viewActivity'>['total']): Label => {
    if (period === 'day') return step
    const day = shortDay(step.at)
    return period === 'month' ? day : `${day} ${step.at.slice(11, 13)} h`
  }

async function livelyPart(visit: Visit): Promise<Html> {
  const period = periodOf(visit)
  const [status, activity] = [await visit.status(), await activityOf(visit, period)]
  const { total, totalBefore, steps, currency } = activity
  const { title, before } = periods[period]
  const more = total.orders - totalBefore.orders
  const isComparable = activity.countedSince !== null && Date.parse(activity.countedSince) <= Date.parse(totalBefore.at)
  const { answerMs, quota } = status.supplier
  const cap = period === 'day' ? status.spendCaps.day : null
  const shown = figures([
    {
      name: 'Orders',
      value: grouped(total.orders),
      beside: !isComparable
        ? `no full ${period} before to compare`
        : more === 0
          ? `as many as ${before}`
          : `${grouped(Math.abs(more))} ${more > 0 ? 'more' : 'fewer'} than ${before}`,
    },
    { name: 'Keys handed over', value: grouped(total.keys), beside: 'each one once' },
    figureOfTime('From order to keys', total.p50Ms, total.p95Ms, 'no keys yet'),
    {
      name: 'Spend',
      value: grouped(total.spend),
      unit: currency,
      beside:
        cap !== null
          ? `cap ${grouped(cap)} a day`
          : isComparable
            ? `${grouped(totalBefore.spend)} ${before}`
            : 'charged by the supplier',
    },
    figureOfTime('Supplier answers in', answerMs?.p50 ?? null, answerMs?.p95 ?? null, 'no answer since the start'),
    quota?.limit != null
      ? {
          name: 'Request quota',
          value: grouped(quota.limit - quota.remaining),
          unit: `of ${grouped(quota.limit)}`,
          beside: html`used, until ${clockTag(quota.resetAt, visit.now)}`,
        }
      : { name: 'Request quota', value: '–', beside: 'not stated by the supplier' },
  ])
  const labels = steps.map(labelOf(period))
  const words = Object.entries(periods).map(([name, { word }]): Tab => [name, word])
  const choice = tabs('Period', words, period, (name) => `/overview?period=${name}`)
  return html`<div class="stack"><div class="head"><h2 id="fig-h">${title}</h2>${choice}</div>
${shown}</div>
<div class="plots">${deliveriesPlot(activity, period, labels)}${waitingTimes(activity, labels)}${spendPlot(activity, period, labels, status)}</div>`
}

function figureOfTime(name: string, p50: number | null, p95: number | null, none: string) {
  if (p50 === null || p95 === null) return { name, value: '–', beside: none }
  const [value = '', ...unit] = duration(p50).split(' ')
  return { name, value, unit: unit.join(' '), beside: `for half; 95 % in ${duration(p95)}` }
}

function deliveriesPlot({ steps, total }: ActivityView, period: Period, labels: Label[]): Html {
  const values = steps.map(({ deliveries }) => deliveries)
  const refused = steps.map((step) => step.refused)
  return barPlot({
    id: 'p-del',
    title: `Deliveries per ${periods[period].step}`,
    figure: `${grouped(total.deliveries)} received, ${grouped(total.refused)} refused`,
    description: `${grouped(Math.min(...values))} to ${grouped(Math.max(...values))} deliveries per ${periods[period].step}; ${grouped(total.refused)} were refused.`,
    labels,
    values,
    refused,
    heads: ['Time', 'Received', 'Refused'],
  })
}

function waitingTimes({ steps, total }: ActivityView, labels: Label[]): Html {
  const { p50Ms: half, p95Ms: most } = total
  const isKnown = half !== null && most !== null
  return timePlot({
    id: 'p-time',
    title: 'From order to keys',
    figure: isKnown ? `half ${duration(half)}, 95 % ${duration(most)}` : 'no keys in this time',
    description: `${isKnown ? `Half of the lines had their keys within ${duration(half)}, 95 % within ${duration(most)}` : 'No keys were handed over'}. Logarithmic scale.`,
    labels,
    p50: steps.map(({ p50Ms }) => p50Ms),
    p95: steps.map(({ p95Ms }) => p95Ms),
    none: 'no keys',
  })
}

function spendPlot(
  { steps, total, currency }: ActivityView,
  period: Period,
  labels: Label[],
  status: StatusView,
): Html {
  const values = steps.map(({ spend }) => Math.max(0, Number(spend)))
  const cap = period === 'day' ? status.spendCaps.hour : period === 'month' ? status.spendCaps.day : null
  const most = Math.max(...values)
  return barPlot({
    id: 'p-spend',
    title: `Spend per ${periods[period].step}, ${currency}`,
    figure: money(total.spend, currency),
    description: `Spend per ${periods[period].step}, up to ${money(most.toFixed(2), currency)}.${cap === null ? '' : ` The cap is ${money(cap, currency)}.`}`,
    labels,
    values,
    // A cap far above what is spent would flatten the bars.
    limit:
      cap !== null && Number(cap) <= most * 4 ? { value: Number(cap), text: `cap ${money(cap, currency)}` } : undefined,
    isSoft: true,
    heads: ['Time', `Spend, ${currency}`],
    text: (value) => grouped(value.toFixed(2)),
  })
}

async function freshPart(visit: Visit): Promise<Html> {
  const { now } = visit
  const [status, { items: stores }] = [await visit.status(), await visit.call('listStores')]
  return html`<section class="stack" aria-labelledby="fresh-h"><h2 id="fresh-h">Freshness</h2>${table({
    caption: 'Freshness of what is read from the supplier',
    columns: [
      ['What', ({ what, to, about }) => html`<a href="${to}">${what}</a><small>${about}</small>`],
      ['Last read', ({ at }) => (at === null ? 'never' : ago(at, now))],
      ['Next', ({ next }) => (next === null ? '–' : clockTag(next, now, 'minutes'))],
      ['State', ({ state }) => state, 'top'],
    ],
    rows: freshness(status, now),
  })}</section>
<section class="stack" aria-labelledby="stores-h"><h2 id="stores-h">Stores</h2>${table({
    caption: 'Stores',
    columns: [
      ['Store', ({ id, name, kindLabel }) => html`<a href="/stores/${id}">${name}</a><small>${kindLabel}</small>`],
      ['Listings', ({ listings }) => countsByWord(listings, listingLabels) || 'none'],
      ['State', storeMark, 'top'],
    ],
    rows: stores,
  })}</section>`

  function storeMark({ listings, publications, pausedUntil, error, ...store }: ItemOf<'listStores'>): Html {
    if (pausedUntil !== null)
      return html`${mark('stop', 'refuses')}<small>until ${clockTag(pausedUntil, now, 'minutes')}${error && `: ${error}`}</small>`
    if (publications > 0) return mark('moving', 'updating')
    if ((listings.failed ?? 0) > 0) return mark('stop', `${grouped(listings.failed ?? 0)} failed`)
    if ((listings.held ?? 0) > 0) return mark('held', `${grouped(listings.held ?? 0)} held`)
    return isUnproven(store) ? mark('held', 'not proven') : mark('done', 'up to date')
  }
}

/** A reading that is older than this is called old, because at this age three scheduled readings were missed. */
const OLD_MS = { catalogue: 2 * 3_600_000, balance: 20 * 60_000, sweep: 3_600_000 }

function freshness({ freshness, counts, sweep, refusedDeliveries }: StatusView, now: number) {
  const state = (at: string | null, oldMs: number, good: string) => {
    if (at === null) return mark('planned', 'not yet')
    return now - Date.parse(at) > oldMs ? mark('held', 'old') : mark('done', good)
  }
  const { catalogueAt, catalogueFailure, balanceAt, next } = freshness
  return [
    {
      what: 'Catalogue',
      to: '/syncs',
      about: `${counted(counts.offers.total, 'offer')}, ${grouped(counts.offers.inStock)} in stock`,
      at: catalogueAt,
      next: next.catalogueAt,
      state: catalogueFailure ? mark('stop', 'last run failed') : state(catalogueAt, OLD_MS.catalogue, 'fresh'),
    },
    {
      what: 'Balance',
      to: '/balance',
      about: 'what is left to spend',
      at: balanceAt,
      next: next.balanceAt,
      state: state(balanceAt, OLD_MS.balance, 'fresh'),
    },
    {
      what: 'Sweep',
      to: '/discrepancies',
      about: sweep
        ? `${counted(sweep.orders, 'order')} compared, ${sweep.orphans + sweep.missing === 0 ? 'no discrepancies' : counted(sweep.orphans + sweep.missing, 'discrepancy', 'discrepancies')}`
        : 'our purchases against the orders of the supplier',
      at: sweep?.finishedAt ?? null,
      next: next.sweepAt,
      state:
        sweep && sweep.orphans + sweep.missing > 0
          ? mark('review', 'differs')
          : state(sweep?.finishedAt ?? null, OLD_MS.sweep, 'agrees'),
    },
    {
      what: 'Refused deliveries',
      to: '/deliveries/refused',
      about: html`${grouped(refusedDeliveries.total)} since the start, ${clockTag(refusedDeliveries.since, now, 'minutes')}`,
      at: refusedDeliveries.lastAt,
      next: null,
      state: refusedDeliveries.total === 0 ? mark('done', 'none') : mark('held', 'look'),
    },
  ]
}

async function show(visit: Visit) {
  const [health, tide, waiting, attention, balance, buying, lively, fresh, actions] = await Promise.all([
    healthPart(visit),
    tidePart(visit),
    waitingPart(visit),
    attentionPart(visit),
    balancePart(visit),
    buyingPart(visit),
    livelyPart(visit),
    freshPart(visit),
    buyingActions(visit),
  ])
  const status = await visit.status()
  const at = (part: string) => `/overview/parts/${part}`
  const main = html`${liveHeadline(at('health'), health)}
${live({ id: 'waiting', class: 'stack', labelledBy: 'wait-h', from: at('waiting'), content: waiting })}
${live({ tag: 'figure', id: 'tide', class: 'tide-curve', from: at('tide'), content: tide })}
<div class="split">
${live({ id: 'attention', class: 'stack', labelledBy: 'att-h', from: at('attention'), content: attention })}
<div class="stack wide">${live({ id: 'balance', class: 'stack', labelledBy: 'bal-h', from: at('balance'), content: balance })}
<section class="stack" aria-labelledby="buy-h">${sectionHead('buy-h', 'Buying', buyingMark(status, ['on', 'frozen', 'paused', 'no worker']))}${buying}<div>${actions}</div></section></div>
</div>
${live({ id: 'live', class: 'stack wide', labelledBy: 'fig-h', from: `${at('live')}?period=${periodOf(visit)}`, content: lively })}
${live({ tag: 'div', id: 'fresh', class: 'half', from: at('fresh'), content: fresh })}`
  return { title: 'Overview', main }
}

export const overviewPage: Page = {
  path: '/overview',
  navigation: { group: '', label: 'Overview' },
  show,
  parts: {
    health: healthPart,
    tide: tidePart,
    waiting: waitingPart,
    attention: attentionPart,
    balance: balancePart,
    live: livelyPart,
    fresh: freshPart,
  },
  actions: {
    ...queueActions,
    freeze: byOperator(async ({ call, form }) => {
      await call('freeze', { body: textsIn(form, 'reason') })
      const text = 'Nothing more is bought. What was sent before is finished; orders are accepted and wait.'
      return { notice: { kind: 'stop', word: 'Buying is frozen', text } }
    }),
    unfreeze: byOperator(async ({ call, form }) => {
      const { freeze } = await call('unfreeze', { body: { causes: form.getAll('cause') } })
      if (!freeze) return done('Buying is on', 'What waited goes out now.')
      const text = `Buying is still frozen: ${counted(freeze.causes.length, 'cause')} left.`
      return { notice: { kind: 'held', word: 'Lifted', text } }
    }),
  },
}
