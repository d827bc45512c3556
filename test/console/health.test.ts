import { expect, test } from 'vitest'
import { type HealthFacts, healthOf } from '../../src/console/health.ts'
import { buyingMark } from '../../src/console/layout.ts'
import { counted } from '../../src/domain/figures.ts'

const now = Date.parse('2026-03-12T09:42:10Z')
const at = '2026-03-12T02:10:14.000Z'
const cause = { reason: 'checking prices', actor: 'mira', at, purchaseId: null }

type Status = HealthFacts['status']

function facts({
  orders = 42,
  countedSince = at as string | null,
  status = {} as Partial<Status>,
  supplier = {} as Partial<Status['supplier']>,
  ...more
}: Partial<Pick<HealthFacts, 'daysLeft' | 'duties'>> & {
  orders?: number
  countedSince?: string | null
  status?: Partial<Status>
  supplier?: Partial<Status['supplier']>
}): HealthFacts {
  const total = { at, orders, keys: 58, deliveries: 0, refused: 0, spend: '0.00', p50Ms: null, p95Ms: null }
  return {
    status: {
      freeze: null,
      unreadable: [],
      balance: { amount: '1910.20', currency: 'EUR', readAt: at },
      counts: { held: { frozen: 2 }, offers: { total: 11_842, inStock: 10 } },
      freshness: { catalogueAt: at },
      supplier: { unreachableSince: null, waiting: 3, ...supplier },
      ...status,
    } as unknown as Status,
    day: { total, countedSince },
    daysLeft: 11,
    duties: 0,
    now,
    ...more,
  }
}

const frozen = { freeze: { ...cause, causes: [{ ...cause, id: '1' }] } }
const unreadable = {
  unreadable: [{ request: 'GET /orders', field: 'id', setting: 'order.id', pausesBuying: true }],
} as unknown as Partial<Status>
const silent = { unreachableSince: at }

test('the worst thing speaks: frozen, silent, unreadable, a low balance, attention, and then all is well', () => {
  const everything = { duties: 4, daysLeft: 2.4, supplier: silent, status: { ...frozen, ...unreadable } }
  const said = [
    everything,
    { ...everything, status: unreadable },
    { ...everything, status: unreadable, supplier: {} },
    { duties: 4, daysLeft: 2.4 },
    { duties: 4 },
    {},
  ].map((one) => healthOf(facts(one)))
  expect(said.map(({ sign, sentence }) => `${sign}: ${sentence}`)).toEqual([
    'stop: Buying is frozen. Five purchases wait.',
    'stop: The supplier does not answer. Three purchases wait.',
    'stop: Buying is paused. An answer of the supplier cannot be read.',
    'held: The balance lasts about 2 days. Top it up.',
    'review: Orders are flowing. Four things need attention.',
    'done: All is well. Nothing needs attention.',
  ])
  expect(said[0]?.fact).toBe('Since 02:10:14, by mira: checking prices')
  expect(said[1]?.fact).toContain('Since 02:10:14, 7 h 31 min.')
})

test('where no process was the worker it said that all is well', () => {
  const absent = { workerAbsentSince: at } as Partial<Status>
  const said = healthOf(facts({ status: { ...absent, ...frozen }, supplier: silent }))
  expect(`${said.sign}: ${said.sentence}`).toBe('stop: No process is the worker. Three purchases wait.')
  expect(said.fact).toMatch(/^Since 02:10:14, 7 h 31 min\. .*quayside serve --role worker/)
  expect(String(buyingMark(facts({ status: absent }).status))).toContain('No worker buys')
})

test('a count that stopped at 10,000 is said as if it were exact', () => {
  const counts = { upTo: 10_000, held: { frozen: 10_000 } }
  const said = healthOf(facts({ status: { ...frozen, counts } as unknown as Partial<Status> })).sentence
  expect(said).toBe('Buying is frozen. 10,000+ purchases wait.')
  expect(counted(10_000, 'delivery', 'deliveries', 10_000)).toBe('10,000+ deliveries')
  expect(counted(12_000, 'listing')).toBe('12,000 listings')
})

test('one thing that waits is said as one, and orders are not said to flow where none came', () => {
  expect(healthOf(facts({ duties: 1, orders: 0 })).sentence).toBe('One thing needs attention.')
})

test('before the first order it says what to do, also before the catalogue is read', () => {
  const first = { countedSince: null, orders: 0, daysLeft: null }
  expect(healthOf(facts(first))).toMatchObject({ sign: 'planned', sentence: 'Ready. No order has come yet.' })
  expect(healthOf(facts(first)).fact).toContain('11,842 offers')
  const unread = facts({ ...first, status: { freshness: { catalogueAt: null } } as Partial<Status> })
  expect(healthOf(unread).fact).toContain('not read yet')
})

test('a balance that nothing was spent of lasts, however small it is', () => {
  expect(healthOf(facts({ daysLeft: null })).sign).toBe('done')
  expect(healthOf(facts({ daysLeft: 0 })).sentence).toBe('The balance lasts less than an hour. Top it up.')
  expect(healthOf(facts({ daysLeft: 3 })).sign).toBe('done')
})
