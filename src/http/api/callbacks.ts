import { z } from 'zod'
import { waitReasons } from '../../domain/store-update.ts'
import { Listing } from './listings.ts'
import { keysUrl } from './orders.ts'

const order = {
  store: z.string().describe('Id of the store'),
  reference: z.string().describe("The store's own number of the order"),
}
const line = {
  ...order,
  line: z.string().describe("The store's own id of the line"),
  sku: z.string().describe('As the store wrote it'),
}

/** The callbacks to a store, for the store's developers. Each entry says when the callback is sent and what `data` carries. */
export const callbacks: { type: string; when: string; data: z.ZodType; answer?: z.ZodType }[] = [
  {
    type: 'line.fulfilled',
    when: 'Licence keys of a line, some or all of them. Every key is in one callback only.',
    data: z.object({
      ...line,
      quantity: z.int().describe('Of the line'),
      keys: z.array(z.string()).describe('Those that this callback hands over'),
      delivered: z.int().describe('Units of the line with a key so far, these included'),
      complete: z.boolean().describe('No more are to come'),
      keysUrl: keysUrl.optional(),
      replaces: z
        .literal(true)
        .optional()
        .describe('The keys come in place of keys that do not work, and bring no unit'),
    }),
  },
  {
    type: 'line.failed',
    when: 'Units of a line that will not come.',
    data: z.object({
      ...line,
      quantity: z.int().describe('Units that will not come'),
      state: z.enum(['failed', 'cancelled']).describe('Whether it was cancelled, or went wrong'),
      code: z.string().meta({
        description: 'Why, for machines: a code of the supplier, or `cancelled`, `deadline`, `closed` or `short`',
        examples: ['out_of_stock', 'cancelled', 'deadline', 'closed', 'short'],
      }),
      message: z.string().describe('Why, for people'),
      advice: z.string().describe('What to do now'),
    }),
  },
  {
    type: 'line.held',
    when: 'Units of a line wait: for a price that the order allows, for stock or for balance. Sent once for each reason.',
    data: z.object({
      ...line,
      quantity: z.int().describe('Units that wait'),
      reason: z
        .enum(waitReasons)
        .describe('Why, for machines; `late`: its keys have not come within `keys.lateMinutes`'),
      message: z.string().describe('Why, for people'),
      keysUrl: keysUrl.optional(),
    }),
  },
  {
    type: 'line.resumed',
    when: 'Units that waited are bought: the supplier has taken the order.',
    data: z.object({ ...line, quantity: z.int().describe('Units that go on') }),
  },
  {
    type: 'order.closed',
    when: 'The order is finished.',
    data: z.object({
      ...order,
      state: z
        .enum(['fulfilled', 'partly_fulfilled', 'failed', 'cancelled'])
        .describe('Whether all, some or no keys came, and why none did'),
      keysUrl: keysUrl.optional(),
    }),
  },
  {
    type: 'listings.changed',
    when: 'Listings that differ from what you have, at most 100. Answer with what became of each, or with any 2xx.',
    data: z.object({
      listings: z
        .array(Listing.extend({ revision: z.int().describe('The larger one is newer, in any order of arrival') }))
        .describe('What changed'),
    }),
    answer: z.object({
      results: z
        .array(
          z.object({
            id: z.string().describe('Of the listing'),
            ok: z.boolean().describe('Whether you took it'),
            reason: z.string().optional().describe('Why not; shown to operators'),
            price: z.string().optional().describe('What you have stored; compared with what was sent'),
            stock: z.int().nullable().optional().describe('The stock that you have stored, likewise'),
          }),
        )
        .describe('One for each listing; a listing without one counts as not taken'),
    }),
  },
]
