import { z } from 'zod'
import { Listing } from './api-views.ts'

const line = {
  store: z.string(),
  reference: z.string(),
  line: z.string().meta({ description: "The store's own id of the line" }),
  sku: z.string(),
}

/** What a store is told, for its developers: when each callback is sent and what its `data` carries. */
export const callbacks: { type: string; when: string; data: z.ZodType }[] = [
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
    when: 'Units of a line that will not come. Nothing is owed for them any more.',
    data: z.object({
      ...line,
      quantity: z.int().meta({ description: 'Units that will not come' }),
      state: z.enum(['failed', 'cancelled']),
      code: z.string().meta({ examples: ['out_of_stock', 'cancelled', 'deadline', 'closed', 'short'] }),
      ...{ message: z.string(), advice: z.string().meta({ description: 'What to do now' }) },
    }),
  },
  {
    type: 'order.closed',
    when: 'Nothing of the order moves any more.',
    data: z.object({
      ...{ store: z.string(), reference: z.string() },
      state: z.enum(['fulfilled', 'partly_fulfilled', 'failed', 'cancelled']),
    }),
  },
  {
    type: 'listing.changed',
    when: 'Price or stock of listings changed; these are the new ones.',
    data: z.object({ store: z.string(), listings: z.array(Listing) }),
  },
]
