import { z } from 'zod'
import { type Activity, type ActivityPeriod, activityOf, activityPeriods, periodOf } from '../../domain/activity.ts'
import { first } from '../../storage/database.ts'
import { countsBetween, firstCountedHour } from '../../storage/hourly-counts.ts'
import { choice } from '../input.ts'
import { type ApiContext, ok, operation, viewer } from '../operation.ts'
import { amount, amountOf, at, component, count, currency, maybeAt } from './views.ts'

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
