import { z } from 'zod'
import { type Activity, type ActivityPeriod, activityOf, activityPeriods, periodOf } from '../../domain/activity.ts'
import { countsBetween, firstCountedHour } from '../../storage/hourly-counts.ts'
import { choice } from '../input.ts'
import { type ApiContext, ok, operation, viewer } from '../operation.ts'
import { amount, amountOf, at, count, currency, maybeAt, view } from './views.ts'

const ms = count.nullable()
const step = z
  .object({
    at,
    orders: count.meta({ description: 'Store orders that were taken' }),
    deliveries: count.meta({ description: 'Authentic deliveries, repeats too' }),
    refused: count.meta({ description: 'Deliveries that were refused' }),
    keys: count.meta({ description: 'Licence keys that a store has got' }),
    spend: amount.meta({ description: 'What purchases cost, counted when the supplier first says so' }),
    p50Ms: ms.meta({
      description: 'Half of the lines had their keys within this time from their order; null: none did',
    }),
    p95Ms: ms.meta({ description: '95 % of them' }),
  })
  .meta({ id: 'ActivityStep' })

const shape = z
  .object({
    period: z.enum(Object.keys(activityPeriods) as ActivityPeriod[]),
    currency: currency.meta({ description: 'Of `spend`: the one that the supplier sells in' }),
    countedSince: maybeAt.meta({ description: 'The first hour that was counted; null: nothing was yet' }),
    stepMs: count.meta({ description: 'Length of a step in milliseconds; the last one is under way' }),
    steps: z.array(step),
    total: step,
    stepsBefore: z.array(step).meta({ description: 'The same of the period before, which is as long' }),
    totalBefore: step,
  })
  .meta({ id: 'Activity' })

type Whole = ReturnType<typeof activityOf> & {
  period: ActivityPeriod
  currency: string
  countedSince: number | null
  stepMs: number
}
const ActivityAnswer = view(shape, (whole: Whole) => {
  const shown = (one: Activity) => ({ ...one, spend: amountOf(one.spendMinor, whole.currency) })
  return {
    ...whole,
    steps: whole.steps.map(shown),
    total: shown(whole.total),
    stepsBefore: whole.stepsBefore.map(shown),
    totalBefore: shown(whole.totalBefore),
  }
})

/** The activity as it is answered. */
export type ActivityView = z.output<typeof ActivityAnswer>

/** What happened in the last day, week or month. */
export function activityOperations({ ordering }: Pick<ApiContext, 'ordering'>) {
  const { db, now, dialect } = ordering
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
      async handle({ query: { period = 'day' } }) {
        const instant = now()
        const { beforeAt, stepMs } = periodOf(period, instant)
        const [counts, [since]] = await Promise.all([
          db.query(countsBetween(beforeAt, instant + 1, stepMs)),
          db.query(firstCountedHour()),
        ])
        const { currency } = dialect.money
        const countedSince = since?.at ?? null
        return ok({ period, currency, countedSince, stepMs, ...activityOf(period, instant, counts, currency) })
      },
    }),
  }
}
