import { z } from 'zod'
import { reportedHolds } from '../../domain/store-update.ts'
import { Listing } from './listings.ts'

const order = {
  store: z.string().meta({ description: 'Id of the store' }),
  reference: z.string().meta({ description: "The store's own number of the order" }),
}
const line = {
  ...order,
  line: z.string().meta({ description: "The store's own id of the line" }),
  sku: z.string().meta({ description: 'As the store wrote it' }),
}

/** The callbacks to a store, for the store's developers. Each entry says when the callback is sent and what `data` carries. */
export const callbacks: { type: string; when: string; data: z.ZodType; answer?: z.ZodType }[] = [
  {
    type: 'line.fulfilled',
    when: 'Licence keys of a line, some or all of them. Every key is in one callback only.',
    data: z.object({
      ...line,
      quantity: z.int().meta({ description: 'Of the line' }),
      keys: z.array(z.string()).meta({ description: 'Those that this callback hands over' }),
      delivered: z.int().meta({ description: 'Keys of the line so far, these included' }),
      complete: z.boolean().meta({ description: 'No more are to come' }),
    }),
  },
  {
    type: 'line.failed',
    when: 'Units of a line that will not come.',
    data: z.object({
      ...line,
      quantity: z.int().meta({ description: 'Units that will not come' }),
      state: z.enum(['failed', 'cancelled']).meta({ description: 'Whether it was cancelled, or went wrong' }),
      code: z.string().meta({
        description: 'Why, for machines: a code of the supplier, or `cancelled`, `deadline`, `closed` or `short`',
        examples: ['out_of_stock', 'cancelled', 'deadline', 'closed', 'short'],
      }),
      message: z.string().meta({ description: 'Why, for people' }),
      advice: z.string().meta({ description: 'What to do now' }),
    }),
  },
  {
    type: 'line.held',
    when: 'Units of a line wait: for a price that the order allows, for stock or for balance. Sent once for each reason.',
    data: z.object({
      ...line,
      quantity: z.int().meta({ description: 'Units that wait' }),
      reason: z.enum(reportedHolds).meta({ description: 'Why, for machines' }),
      message: z.string().meta({ description: 'Why, for people' }),
    }),
  },
  {
    type: 'line.resumed',
    when: 'Units that waited are bought: the supplier has taken the order.',
    data: z.object({
      ...line,
      quantity: z.int().meta({ description: 'Units that go on' }),
    }),
  },
  {
    type: 'order.closed',
    when: 'The order is finished.',
    data: z.object({
      ...order,
      state: z
        .enum(['fulfilled', 'partly_fulfilled', 'failed', 'cancelled'])
        .meta({ description: 'Whether all, some or no keys came, and why none did' }),
    }),
  },
  {
    type: 'listings.changed',
    when: 'Listings that differ from what you have, at most 100. Answer with what became of each, or with any 2xx.',
    data: z.object({
      listings: z
        .array(
          Listing.extend({
            revision: z.int().meta({ description: 'The larger one is newer, in any order of arrival' }),
          }),
        )
        .meta({ description: 'What changed' }),
    }),
    answer: z.object({
      results: z
        .array(
          z.object({
            id: z.string().meta({ description: 'Of the listing' }),
            ok: z.boolean().meta({ description: 'Whether you took it' }),
            reason: z.string().optional().meta({ description: 'Why not; shown to operators' }),
            price: z.string().optional().meta({ description: 'What you have stored; compared with what was sent' }),
            stock: z.int().nullable().optional().meta({ description: 'The stock that you have stored, likewise' }),
          }),
        )
        .meta({ description: 'One for each listing; a listing without one counts as not taken' }),
    }),
  },
]
