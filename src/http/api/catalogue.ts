import { z } from 'zod'
import { most } from '../input.ts'
import { type ApiContext, jsonLines, type Operation, ok, operation } from '../operation.ts'

const count = z.int().min(0)
const text = z.string().nullable()
const requestId = text.meta({ description: "The supplier's id of the request" })

const Start = z.object({
  type: z.literal('start'),
  at: z.iso.datetime(),
  syncUnderWay: text.meta({ description: 'A sync run that changes the same offers meanwhile' }),
})
const Progress = z.object({
  type: z.literal('progress'),
  pages: count,
  pagesTotal: count.nullable(),
  offers: count,
  changed: count.meta({ description: 'Offers that would be new or changed' }),
  listings: count.meta({ description: 'Listings that would change; they are decided once every page is read' }),
})
const Offer = z.object({
  type: z.literal('offer'),
  productId: z.string(),
  sku: z.string(),
  name: z.string(),
  field: z.string().meta({ description: '`presence` for one that would be new, listed again or gone' }),
  before: text,
  after: text,
})
const Doubt = z
  .object({ type: z.literal('doubt'), page: count.nullable(), message: z.string(), requestId })
  .meta({ description: 'What of the reading is not certain' })
const Listing = z.object({
  type: z.literal('listing'),
  store: z.string(),
  variant: z.string(),
  sku: z.string(),
  productId: text,
  told: z.boolean().meta({ description: 'Whether the store would be told' }),
  state: z.enum(['synced', 'held', 'ignored', 'failed', 'pending']),
  changes: z.array(z.object({ field: z.string(), before: text, after: text, reason: z.string() })),
})
const End = z
  .object({
    type: z.literal('end'),
    state: z.enum(['complete', 'failed']),
    error: text,
    requestId,
    pages: count,
    pagesTotal: count.nullable(),
    pagesBroken: count,
    offers: z.object({
      seen: count,
      new: count,
      changed: count,
      gone: count,
      missed: count.meta({ description: 'Not seen for the first time: gone when the next run misses them too' }),
      unreadable: count,
      costFaults: count,
    }),
    stores: z.array(z.object({ store: z.string(), told: count, held: count })),
    truncated: z.boolean().meta({ description: 'More would change than the lines before say' }),
  })
  .meta({ description: 'The last line; its counts are whole' })

/** A sync run on a copy, reported while it goes on. */
export function dryRunOperations({ dryRun }: Pick<ApiContext, 'dryRun'>): Operation[] {
  return [
    operation({
      name: 'dryRunSync',
      method: 'post',
      path: '/sync/dry-run',
      allowed: { people: 'operator' },
      query: { most },
      summary:
        'What a sync run would change in offers, and then in each store, with reasons; nothing is changed. At most `most` ' +
        'changes of offers, and as many of listings, are told one by one. Hang up, and it ends.',
      answer: jsonLines(z.union([Start, Progress, Offer, Doubt, Listing, End])),
      success: { 200: 'A line of JSON for each event, while it is read; the last is `end` or `error`' },
      failures: { 409: 'a dry run is under way: `dry_run_under_way`' },
      handle: async ({ query }) => ok(eventsOf(await dryRun(query))),
    }),
  ]
}

type Events = Awaited<ReturnType<ApiContext['dryRun']>>

/** The same with instants as text. */
function eventsOf(events: Events) {
  return {
    [Symbol.asyncIterator]() {
      return this
    },
    async next() {
      const step = await events.next()
      if (step.done) return { done: true as const, value: undefined }
      const { value } = step
      const event = value.type === 'start' ? { ...value, at: new Date(value.at).toISOString() } : value
      return { done: false as const, value: event }
    },
    async return() {
      await events.return?.()
      return { done: true as const, value: undefined }
    },
  }
}
