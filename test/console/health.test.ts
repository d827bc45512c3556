import { expect, test } from 'vitest'
import { type HealthFacts, healthOf as healthLine } from '../../src/console/health.ts'
import { buyingMark } from '../../src/console/layout.ts'
import { counted } from '../../src/domain/figures.ts'

const now = Date.parse('2026-03-12T09:42:10Z')
const at = '2026-03-12T02:10:14.000Z'
const cause = { reason: 'checking prices', actor: 'mira', at, purchaseId: null }

type Status = HealthFacts['status']
type Waiting = Status['waiting']

const none: Waiting = { upTo: 100, customers: 0, forPerson: 0, longestSince: null, money: [] }
const three: Waiting = {
  upTo: 100,
  customers: 3,
  forPerson: 1,
  longestSince: '2026-03-12T08:58:00.000Z',
  money: [{ currency: 'EUR', paid: '89.60', charged: '47.70' }],
}

function facts({
  orders = 42,
  countedSince = at as string | null,
  status = {} as Partial<Status>,
  supplier = {} as Partial<Status['supplier']>,
  waiting = none,
  ...more
}: Partial<Pick<HealthFacts, 'daysLeft' | 'duties'>> & {
  orders?: number
  countedSince?: string | null
  status?: Partial<Status>
  supplier?: Partial<Status['supplier']>
  waiting?: Waiting
}): HealthFacts {
  const total = { at, orders, keys: 58, deliveries: 0, refused: 0, spend: '0.00', p50Ms: null, p95Ms: null }
  return {
    status: {
      freeze: null,
      alerts: [],
      waiting,
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

/** What a reader sees of the line. */
function healthOf(given: HealthFacts) {
  const { sign, ...line } = healthLine(given)
  const [sentence = '', fact = ''] = [line.sentence, line.fact].map((piece) => String(piece).replaceAll(/<[^>]*>/g, ''))
  return { sign, sentence, fact }
}

test('the worst thing speaks: frozen, silent, unreadable, customers, a low balance, attention, and then no customer waits', () => {
  const everything = {
    duties: 4,
    daysLeft: 2.4,
    supplier: silent,
    waiting: three,
    status: { ...frozen, ...unreadable },
  }
  const said = [
    everything,
    { ...everything, status: unreadable },
    { ...everything, status: unreadable, supplier: {} },
    { duties: 4, daysLeft: 2.4, waiting: three },
    { duties: 4, daysLeft: 2.4 },
    { duties: 4 },
    {},
  ].map((one) => healthOf(facts(one)))
  expect(said.map(({ sign, sentence }) => `${sign}: ${sentence}`)).toEqual([
    'stop: Buying is frozen. Three customers wait for a key.',
    'stop: The supplier does not answer. Three customers wait for a key.',
    'stop: Buying is paused. An answer of the supplier cannot be read.',
    'review: Three customers wait for a key, the longest since 08:58.',
    'held: The balance lasts about 2 days. Top it up.',
    'review: No customer waits for a key. Four things need attention.',
    'done: No customer waits for a key.',
  ])
  expect(said[0]?.fact).toBe('Since 02:10:14, by mira: checking prices')
  expect(said[1]?.fact).toContain('Since 02:10:14, 7 h 31 min.')
  expect(said[3]?.fact).toBe(
    'They paid 89.60 EUR, and the supplier has charged 47.70 EUR for them. One waits for you. Two go on by themselves.',
  )
})

test('five customers without keys stood below "Orders are flowing"', () => {
  const said = [
    three,
    { ...three, customers: 1, forPerson: 0 },
    { ...three, customers: 100, forPerson: 100, money: [] },
  ]
  expect(said.map((waiting) => healthOf(facts({ waiting })))).toMatchObject([
    { sentence: 'Three customers wait for a key, the longest since 08:58.' },
    {
      sentence: 'One customer waits for a key, since 08:58.',
      fact: 'The customer paid 89.60 EUR, and the supplier has charged 47.70 EUR for the key. It goes on by itself.',
    },
    {
      sentence: '100+ customers wait for a key, the longest since 08:58.',
      fact: 'Nothing is charged for them. 100+ wait for you.',
    },
  ])
})

test('a paid order that could not be taken is in no queue, and its customer waits all the same', () => {
  const alerts = ['order_refused', 'order_unread', 'sync_stale'].map((type) => ({ type, state: 'open' }))
  const said = healthOf(facts({ duties: 3, status: { alerts } as unknown as Partial<Status> }))
  expect(said.sentence).toBe('Two paid orders are not taken. Their customers wait.')
})

test('where no process was the worker it said that all is well', () => {
  const absent = { workerAbsentSince: at } as Partial<Status>
  const said = healthOf(facts({ status: { ...absent, ...frozen }, supplier: silent, waiting: three }))
  expect(`${said.sign}: ${said.sentence}`).toBe('stop: No process is the worker. Three customers wait for a key.')
  expect(said.fact).toMatch(/^Since 02:10:14, 7 h 31 min\. .*quayside serve --role worker/)
  expect(String(buyingMark(facts({ status: absent }).status))).toContain('No worker buys')
})

test('a count that stopped is said as if it were exact', () => {
  const said = healthOf(facts({ status: frozen, waiting: { ...three, customers: 100 } })).sentence
  expect(said).toBe('Buying is frozen. 100+ customers wait for a key.')
  expect(counted(10_000, 'delivery', 'deliveries', 10_000)).toBe('10,000+ deliveries')
  expect(counted(12_000, 'listing')).toBe('12,000 listings')
})

test('one thing that needs attention is said as one', () => {
  expect(healthOf(facts({ duties: 1 })).sentence).toBe('No customer waits for a key. One thing needs attention.')
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
