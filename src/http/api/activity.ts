import { z } from 'zod'
import { type Activity, type ActivityPeriod, activityOf, activityPeriods, periodOf } from '../../domain/activity.ts'
import {
  addedUp,
  costOf,
  DAY_MS,
  dayStart,
  type EarningStep,
  type EarningSums,
  earningSteps,
  marginOf,
  percentText,
} from '../../domain/earnings.ts'
import { isoDay } from '../../domain/figures.ts'
import {
  type EarningGroup,
  type EarningsAsked,
  type EarningsRow,
  earningGroups,
  productPage,
  readEarnings,
  storeRows,
} from '../../ordering/earnings.ts'
import { first } from '../../storage/database.ts'
import { countsBetween, firstCountedHour } from '../../storage/hourly-counts.ts'
import { choice, earningsPaging, inStore, invalidField, queryDay } from '../input.ts'
import { type ApiContext, ok, operation, viewer } from '../operation.ts'
import { amount, amountOf, at, component, count, currency, maybeAt, withAmounts, words } from './views.ts'

const ms = count.nullable()
const step = component('ActivityStep', {
  at,
  orders: count.describe('Store orders that were taken'),
  deliveries: count.describe('Authentic deliveries, repeats too'),
  refused: count.describe('Deliveries that were refused'),
  keys: count.describe('Licence keys that a store has got'),
  spend: amount.describe('What purchases cost, counted when the supplier first says so'),
  p50Ms: ms.describe('Half of the lines had their keys within this time from their order; null: none did'),
  p95Ms: ms.describe('95 % of them'),
})

const ActivityAnswer = component('Activity', {
  period: z.enum(Object.keys(activityPeriods) as ActivityPeriod[]),
  currency: currency.describe('Of `spend`: the one that the supplier sells in'),
  countedSince: maybeAt.describe('The first hour that was counted; null: nothing was yet'),
  stepMs: count.describe('Length of a step in milliseconds; the last one is under way'),
  steps: z.array(step),
  total: step,
  stepsBefore: z.array(step).describe('The same of the period before, which is as long'),
  totalBefore: step,
})

export type ActivityView = z.output<typeof ActivityAnswer>

export function activityOperations({ ordering }: ApiContext) {
  return {
    viewActivity: operation({
      route: 'GET /activity',
      allowed: viewer,
      query: {
        period: choice(
          ['day', 'week', 'month'],
          'How much of it: a day by hours (the default), a week by six hours, a month by days',
        ),
      },
      answer: ActivityAnswer,
      summary: 'Orders, deliveries, keys, spend and waiting times of a day, a week or a month, beside the time before.',
      success: { 200: 'As of now' },
      handle: async ({ query: { period = 'day' } }) => ok(await readActivity(ordering, period)),
    }),
  }
}

async function readActivity({ db, now, dialect }: ApiContext['ordering'], period: ActivityPeriod) {
  const instant = now()
  const { beforeAt, stepMs } = periodOf(period, instant)
  const [counts, since] = await Promise.all([
    db.query(countsBetween(beforeAt, instant + 1, stepMs)),
    first(db, firstCountedHour()),
  ])
  const { currency } = dialect.money
  const whole = activityOf(period, instant, counts, currency)
  const shown = (one: Activity) => ({ ...one, spend: amountOf(one.spendMinor, currency) })
  return {
    period,
    currency,
    countedSince: since?.at ?? null,
    stepMs,
    steps: whole.steps.map(shown),
    total: shown(whole.total),
    stepsBefore: whole.stepsBefore.map(shown),
    totalBefore: shown(whole.totalBefore),
  }
}

const EARNED = 'Decimal text in `currency`; negative where more went than came'
const earned = z.string().meta({ description: EARNED, examples: ['19.99'] })
export const earningShape = {
  keys: count.describe('Keys that the store has and its customers are entitled to'),
  unpriced: count.describe('Those of them whose price the store does not state: their revenue is missing'),
  revenue: earned.describe('What customers paid for these keys, as the store states it'),
  charged: earned.describe('What the supplier charged'),
  refunded: earned.describe('What came back of that'),
  owedBack: earned.describe('What is owed back for purchases that failed'),
  cost: earned.describe('`charged` less `refunded` less `owedBack`'),
}
const earnedOver = {
  sums: z.array(z.object({ currency, ...earningShape })).describe('By currency; currencies are never added up'),
  margin: z
    .object({
      amount: earned,
      currency,
      percent: z.string().nullable().describe('Of the revenue; null without revenue'),
    })
    .nullable()
    .describe('Revenue less cost; null where nothing was earned, or not all of it is in one currency'),
}
export const earningRowShape = {
  from: z.string().meta({ description: 'The first day', examples: ['2026-03-01'] }),
  to: z.string().meta({ description: 'The last day', examples: ['2026-03-31'] }),
  isOver: z.boolean().describe('False: the sums still grow'),
  store: words.describe('Id of the store; null: all stores'),
  product: words.describe("The supplier's id of the product; null: all products"),
  sku: words,
  name: words,
}

/** Returns sums as the API shows them, with the margin that they leave. */
function shownSums(sums: readonly EarningSums[]) {
  const [one] = sums
  const margin = marginOf(sums)
  return {
    sums: sums.map((sum) => withAmounts({ ...sum, costMinor: costOf(sum) })),
    margin:
      margin && one
        ? {
            amount: amountOf(margin.minor, one.currency),
            currency: one.currency,
            percent: margin.permille === null ? null : percentText(margin.permille),
          }
        : null,
  }
}

/** Returns a row as the API and the file of earnings show it. @param now whether the period is over by then */
export const shownEarnings = ({ at, until, productId, sums, ...row }: EarningsRow, now: number) => ({
  ...row,
  product: productId,
  from: isoDay(at),
  to: isoDay(until - 1),
  isOver: until <= now,
  ...shownSums(sums),
})

/** A file or a page has at most so many periods. */
const PERIODS_MAX = 400

export const earningsQuery = {
  from: queryDay('The first day, in UTC (default: the 29th day before `to`)'),
  to: queryDay('The last day, in UTC (default: today)'),
  by: choice(
    earningSteps,
    'The periods of the rows: `day` (default), `week` from Monday to Sunday, `month`, or the `whole` time',
  ),
  group: choice(earningGroups, 'A row for each `store` or `product` of a period, or for all of them (`none`, default)'),
  store: inStore,
}

type EarningsQuery = { from?: number | undefined; to?: number | undefined; store?: string | undefined } & {
  by?: EarningStep | undefined
  group?: EarningGroup | undefined
}

/** Reads what is asked for. @throws Failure `invalid` for a span that ends before it begins, or has too many periods */
export function earningsAsked(
  { from, to, store, by = 'day', group = 'none' }: EarningsQuery,
  now: number,
): EarningsAsked {
  const last = to ?? dayStart(now)
  const asked = { at: from ?? last - 29 * DAY_MS, until: last + DAY_MS, by, group, store }
  if (asked.at >= asked.until) throw invalidField('from', 'must not lie after `to`')
  if ((asked.until - asked.at) / DAY_MS > PERIODS_MAX * { day: 1, week: 7, month: 28, whole: 28 }[by]) {
    throw invalidField('from', `must lie at most ${PERIODS_MAX} periods before \`to\`: ask for weeks or months`)
  }
  return asked
}

export function earningsOperations({ ordering }: ApiContext) {
  return {
    viewEarnings: operation({
      route: 'GET /money',
      allowed: viewer,
      summary:
        'Revenue, cost, refunds and margin by day, week or month, for each store or product: an order counts on the day on which it was taken.',
      query: { ...earningsQuery, ...earningsPaging },
      answer: component('Earnings', {
        zone: z.literal('UTC').describe('In which days begin'),
        from: earningRowShape.from,
        to: earningRowShape.to,
        incompleteFrom: maybeAt.describe('Since when sums are being made again; null: all of them are made'),
        ...earnedOver,
        items: z
          .array(component('EarningsRow', { ...earningRowShape, ...earnedOver }))
          .describe('The newest period first; products by their margin, the largest first'),
        next: words.describe('For the rows of products that follow; null: there are none'),
      }),
      success: { 200: 'Sums that are at most some seconds old' },
      async handle({ query: { limit, before, ...query } }) {
        const now = ordering.now()
        const asked = earningsAsked(query, now)
        const [at = 0, offset = 0] = before?.split('.').map(Number) ?? []
        const from = before === undefined ? undefined : { at, offset }
        const [{ days, incompleteFrom }, products] = await Promise.all([
          readEarnings(ordering, asked),
          asked.group === 'product' ? productPage(ordering, asked, from, limit) : undefined,
        ])
        const page = products ?? { rows: storeRows(days, asked), next: null }
        return ok({
          zone: 'UTC' as const,
          from: isoDay(asked.at),
          to: isoDay(asked.until - 1),
          incompleteFrom,
          ...shownSums(addedUp(days)),
          items: page.rows.map((row) => shownEarnings(row, now)),
          next: page.next && `${page.next.at}.${page.next.offset}`,
        })
      },
    }),
  }
}
