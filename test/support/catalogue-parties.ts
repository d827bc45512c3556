/** What the tests of the catalogue and the process that they kill agree on. */
import { randomBytes } from 'node:crypto'
import { type Dialect, readDialect } from '../../src/dialect/dialect.ts'
import { createIds } from '../../src/ids.ts'
import { Secret } from '../../src/secret.ts'
import { openDatabase } from '../../src/storage/sqlite/open.ts'
import { createSupplier } from '../../src/supplier/client.ts'

export const API_KEY = 'sk_test_0123456789abcdef'
export const STORES = [{ id: 'north-ab12cd34' }, { id: 'south-ef56gh78' }]

const shipped = readDialect(new URL('../../config/dialects/reseller-v1.1.json', import.meta.url))

/** The shipped dialect with small pages, so that a short list has several. */
export const dialectOf = (limitMax: number, paging: Partial<Dialect['paging']> = {}): Dialect => ({
  ...shipped,
  paging: { ...shipped.paging, limitMax, limitDefault: limitMax, ...paging },
})

/** How a list is paged: see `paged-supplier.ts`. */
export type Habit = 'token' | 'cursor' | 'offset'

const cursors = { kind: 'cursor', total: null, more: null } as const

/** @param limit the records of a page */
export function habitDialect(habit: Habit, limit: number, changes: Partial<Dialect['paging']> = {}): Dialect {
  const paging: Record<Habit, Partial<Dialect['paging']>> = {
    token: { ...cursors, page: 'continuationToken', next: 'continuationToken' },
    cursor: { ...cursors, page: 'cursor', next: 'meta.next_cursor', limit: 'per_page', items: 'data' },
    offset: { kind: 'offset', page: 'offset', first: 0 },
  }
  const base = dialectOf(limit, { ...paging[habit], ...changes })
  return habit === 'offset' ? base : { ...base, lists: { ...base.lists, data: '' } }
}

const silent = () => {}

/** What a process of its own reads a list with, on a database in a file and the clock of the machine. */
export function catalogueOf(file: string, baseUrl: string, limitMax: number, dialect = dialectOf(limitMax)) {
  const now = Date.now
  return {
    db: openDatabase({ file, now }),
    dialect,
    stores: STORES,
    now,
    newId: createIds(now, randomBytes),
    log: { info: silent, warn: silent, error: silent },
    releaseHolds: silent,
    requestSync: silent,
    reads: new Map<string, number>(),
    supplier: createSupplier({
      baseUrl,
      dialect,
      apiKey: new Secret(API_KEY),
      now,
      random: Math.random,
      sleep: (ms) => new Promise((resolve) => setTimeout(resolve, ms)),
    }),
  }
}
