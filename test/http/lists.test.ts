/** Every list of the API over rows that differ in one thing each: what a filter lets through, in which order, and page by page. */
import { describe, expect, test } from 'vitest'
import { idBound } from '../../src/ids.ts'
import * as schema from '../../src/storage/schema.ts'
import { build } from '../../src/storage/statement.ts'
import { type ApiWorld, OTHER_STORE, openApi } from '../support/api-world.ts'
import { insertion, purchase, type Row } from '../support/statement-rows.ts'
import { STORE } from '../support/test-app.ts'

const bytes = (text: string) => Buffer.from(text)
const T = Date.UTC(2026, 2, 1)
const SECOND = 1_000

const deliveryId = (seconds: number) => `${idBound(T + seconds * SECOND)}0`
const delivery = (seconds: number, more: Row): Row => ({
  id: deliveryId(seconds),
  source: 'supplier',
  deliveryId: `${seconds}`,
  bodyHmac: bytes(`${seconds}`),
  mac: bytes(`${seconds}`),
  signedAt: T,
  receivedAt: T,
  ciphertext: bytes('x'),
  keyId: 1,
  state: 'applied',
  notBefore: T,
  ...more,
})
const order = (id: string, more: Row = {}): Row => ({
  id,
  store: STORE,
  reference: `r${id}`,
  bodyDigest: 'd',
  receivedAt: T,
  ...more,
})
const lineOf = (orderId: string, sku: string): Row => ({ id: `l${orderId}`, orderId, line: '1', sku, quantity: 1 })
const part = (id: string, more: Row): Row => ({ ...purchase, id, orderId: 'a', lineId: 'la', ...more })
const effect = (id: string, more: Row): Row => ({
  id,
  kind: 'callback',
  type: 'line.failed',
  store: STORE,
  orderId: 'a',
  dedupeKey: id,
  payload: { purchaseId: 'p', units: 1, row: 'x' },
  state: 'due',
  notBefore: T,
  createdAt: T,
  ...more,
})
const listing = (variant: string, more: Row): Row => ({
  store: STORE,
  variant,
  sku: `s${variant}`,
  linkedBy: 'sku',
  state: 'synced',
  changedAt: T,
  ...more,
})
const discrepancy = (id: string): Row => ({
  id,
  kind: 'late',
  subject: id,
  supplierOrderId: id,
  detail: 'x',
  foundAt: T,
})
const run = (id: string): Row => ({ id, cause: 'c', state: 'complete', startedAt: T, cursor: 1 })
const entry = (id: string, more: Row): Row => ({
  id,
  at: T,
  actor: 'ann',
  action: 'freeze',
  subject: 'buying',
  ...more,
})

const rows: [Parameters<typeof insertion>[0], Row[]][] = [
  [
    schema.storeOrders,
    [
      order('a', { closedAt: T, closedState: 'fulfilled' }),
      order('b', { closedAt: T, closedState: 'failed' }),
      order('c'),
      order('d', { store: OTHER_STORE }),
      order('e', { closedAt: T, closedState: 'cancelled' }),
      order('f', { closedAt: T, closedState: 'fulfilled', store: OTHER_STORE }),
      order('g', { closedAt: T, closedState: 'failed', store: OTHER_STORE }),
      order('h'),
    ],
  ],
  [
    schema.storeOrderLines,
    ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'].map((id) => lineOf(id, ['a', 'c', 'd', 'g'].includes(id) ? 'K1' : 'K2')),
  ],
  [
    schema.purchases,
    [
      part('1', { state: 'planned', holdReason: 'balance' }),
      part('2', { state: 'waiting', holdReason: 'ceiling' }),
      part('3', { state: 'waiting' }),
      part('4', { state: 'accepted' }),
      part('5', { state: 'review', holdReason: 'balance' }),
      part('6', { state: 'planned', holdReason: 'balance' }),
      part('7', { state: 'accepted' }),
    ],
  ],
  [
    schema.outbox,
    [
      effect('1', { state: 'dead' }),
      effect('2', {}),
      effect('3', { kind: 'alert', type: 'freeze', store: null, orderId: null, payload: {} }),
      effect('4', { kind: 'alert', type: 'freeze', store: null, orderId: null, payload: {}, state: 'done' }),
      effect('5', { state: 'done' }),
      effect('6', {}),
    ],
  ],
  [
    schema.deliveries,
    [
      delivery(1, { event: 'order.completed' }),
      delivery(2, { state: 'dead', event: 'order.failed' }),
      delivery(3, { event: 'order.failed' }),
      delivery(4, { state: 'dead', event: 'order.completed' }),
      delivery(5, { event: 'order.completed' }),
    ],
  ],
  [
    schema.listings,
    [
      listing('a', {}),
      listing('b', { state: 'held', reason: 'missing' }),
      listing('c', { state: 'held', reason: 'ambiguous_sku' }),
      listing('d', {
        state: 'held',
        reason: 'price_jump',
        wantedPriceMinor: 9,
        knownPriceMinor: 1,
        knownCurrency: 'EUR',
      }),
      listing('e', { state: 'held', reason: 'duplicate_sku' }),
      listing('f', {}),
      listing('b', { store: OTHER_STORE, state: 'held', reason: 'missing' }),
      listing('g', { store: OTHER_STORE, state: 'held', reason: 'price_jump', wantedPriceMinor: 9 }),
    ],
  ],
  [schema.discrepancies, ['1', '2', '3'].map(discrepancy)],
  [schema.syncRuns, ['1', '2', '3'].map(run)],
  [schema.sweeps, ['1', '2', '3'].map((id) => ({ id, cause: 'c', state: 'complete', fromAt: T, startedAt: T }))],
  [
    schema.offers,
    [{ productId: 'x', sku: 'K', name: 'n', costMinor: 1, currency: 'EUR', available: true, asOf: T, changedAt: T }],
  ],
  [
    schema.offerChanges,
    ['1', '2', '3', '4'].map((id) => ({
      id,
      runId: id === '4' ? '1' : '2',
      productId: 'x',
      field: id === '2' ? 'name' : 'cost',
      before: '1',
      after: '2',
      changedAt: T,
    })),
  ],
  [
    schema.alerts,
    ['1', '2', '3', '4'].map((id) => ({
      id,
      type: 'freeze',
      payload: { note: 'n' },
      raisedAt: T,
      endedAt: id === '2' || id === '4' ? T : null,
    })),
  ],
  [
    schema.audit,
    [
      entry('1', {}),
      entry('2', { actor: 'ann (session 1)', action: 'unfreeze' }),
      entry('3', { actor: 'anna' }),
      entry('4', { actor: 'ann (token 2)', subject: 'p' }),
    ],
  ],
]

const at = (seconds: number) => encodeURIComponent(new Date(T + seconds * SECOND).toISOString())

/** A list, what an item is known by, and what each query finds, in its order. */
const lists: [path: string, key: string, found: Record<string, string>][] = [
  [
    '/orders',
    'reference',
    {
      '': 'rh rg rf re rd rc rb ra',
      'state=open': 'rh rd rc',
      'state=fulfilled': 'rf ra',
      'state=failed': 'rg rb',
      'state=cancelled': 're',
      'state=partly_fulfilled': '',
      [`store=${STORE}`]: 'rh re rc rb ra',
      [`store=${OTHER_STORE}`]: 'rg rf rd',
      [`state=open&store=${STORE}`]: 'rh rc',
      [`state=failed&store=${OTHER_STORE}`]: 'rg',
      [`state=fulfilled&store=${STORE}`]: 'ra',
      'search=K1': 'rg rd rc ra',
      'search=K2': 'rh rf re rb',
      'search=K1&state=open': 'rd rc',
      'search=K1&state=fulfilled': 'ra',
      'search=K1&state=failed': 'rg',
      [`search=K1&store=${STORE}`]: 'rc ra',
      [`search=K1&state=open&store=${OTHER_STORE}`]: 'rd',
      'search=rb': 'rb',
      'search=rb&state=failed': 'rb',
      'search=rb&state=open': '',
      [`search=rb&store=${OTHER_STORE}`]: '',
    },
  ],
  [
    '/purchases',
    'id',
    {
      '': '7 6 5 4 3 2 1',
      'state=accepted': '7 4',
      'state=planned': '6 1',
      'state=waiting': '3 2',
      'state=review': '5',
      'state=failed': '',
      'hold=any': '6 2 1',
      'hold=balance': '6 1',
      'hold=ceiling': '2',
      'hold=frozen': '',
    },
  ],
  [
    '/outbox',
    'id',
    {
      '': '6 5 4 3 2 1',
      'state=due': '6 3 2',
      'state=done': '5 4',
      'state=dead': '1',
      'kind=alert': '4 3',
      'kind=callback': '6 5 2 1',
      'kind=alert&state=due': '3',
      'kind=callback&state=done': '5',
    },
  ],
  [
    '/deliveries',
    'deliveryId',
    {
      '': '5 4 3 2 1',
      'state=dead': '4 2',
      'state=applied': '5 3 1',
      'state=stored': '',
      'event=order.completed': '5 4 1',
      'event=order.failed&state=dead': '2',
      [`from=${at(3)}`]: '5 4 3',
      [`to=${at(3)}`]: '2 1',
      [`to=${at(5)}`]: '4 3 2 1',
      [`from=${at(2)}`]: '5 4 3 2',
      [`from=${at(2)}&to=${at(4)}`]: '3 2',
      [`from=${at(2)}&to=${at(4)}&state=dead`]: '2',
    },
  ],
  [
    `/stores/${STORE}/listings`,
    'id',
    {
      '': 'a b c d e f',
      'state=held': 'b c d e',
      'state=synced': 'a f',
      'state=ignored': '',
      'search=b': 'b',
      'search=sc': 'c',
    },
  ],
  [`/stores/${OTHER_STORE}/listings`, 'id', { '': 'b g', 'state=synced': '' }],
  [`/stores/${STORE}/listing-problems`, 'id', { '': 'b c e' }],
  [`/stores/${OTHER_STORE}/listing-problems`, 'id', { '': 'b' }],
  ['/held-prices', 'id', { '': 'd g' }],
  ['/discrepancies', 'id', { '': '3 2 1' }],
  ['/sync/runs', 'id', { '': '3 2 1' }],
  ['/sync/runs/2/changes', 'id', { '': '1 2 3', 'field=cost': '1 3', 'field=name': '2', 'field=sku': '' }],
  ['/sync/runs/1/changes', 'id', { '': '4' }],
  ['/sweeps', 'id', { '': '3 2 1' }],
  ['/alerts', 'id', { '': '4 3 2 1', 'state=open': '3 1', 'state=ended': '4 2' }],
  [
    '/audit',
    'id',
    {
      '': '4 3 2 1',
      'actor=ann': '4 2 1',
      'actor=anna': '3',
      'actor=an': '',
      'action=freeze': '4 3 1',
      'action=unfreeze': '2',
      'subject=buying': '3 2 1',
      'subject=p': '4',
      'actor=ann&action=freeze&subject=buying': '1',
    },
  ],
]

const byAfter = (path: string): boolean =>
  path.startsWith('/stores') || path.startsWith('/held') || path.endsWith('changes')

async function world(): Promise<ApiWorld> {
  const made = await openApi()
  await made.ordering.db.commit([{ statement: build.delete(schema.audit), rows: 'any' }])
  for (const [table, all] of rows) await made.ordering.db.commit(all.map((row) => insertion(table, row)))
  return made
}

describe('the list', () => {
  test.each(lists)(
    '%s holds what its filters let through, in its order, and page by page',
    async (path, key, found) => {
      const { ask } = await world()
      for (const [query, expected] of Object.entries(found)) {
        const wanted = expected === '' ? [] : expected.split(' ')
        const names: unknown[] = []
        const pages: unknown[] = []
        let cursor: string | null = null
        const [cursorName, backName] = byAfter(path) ? ['after', 'before'] : ['before', 'after']
        let back: string | null = null
        while (pages.length < 20) {
          const more: string = cursor === null ? '' : `&${cursorName}=${encodeURIComponent(cursor)}`
          const { status, body } = await ask('GET', `${path}?${query}&limit=2${more}`)
          expect(status, `${query}: ${JSON.stringify(body.error)}`).toBe(200)
          if (cursor !== null) expect(body.data.items, `${query}: a page that there is has items`).not.toEqual([])
          names.push(...body.data.items.map((item) => item[key]))
          pages.push(body.data.items)
          cursor = body.data.next
          back = body.data.previous
          expect(back === null, `${query}: only the first page has no previous one`).toBe(pages.length === 1)
          if (cursor === null) break
        }
        expect(names, `${path}?${query}, two by two`).toEqual(wanted)
        while (back !== null) {
          const { body } = await ask('GET', `${path}?${query}&limit=2&${backName}=${encodeURIComponent(back)}`)
          pages.pop()
          expect(body.data.items, `${query}: back to the page as it was`).toEqual(pages.at(-1))
          expect(body.data.next, `${query}: and on again`).not.toBeNull()
          back = body.data.previous
        }
        expect(pages, `${query}: back to the first page`).toHaveLength(1)
        const { body } = await ask('GET', `${path}?${query}&count=true`)
        const { items, ...rest } = body.data
        expect(
          items.map((item) => item[key]),
          `${path}?${query}`,
        ).toEqual(wanted)
        expect(rest, `${path}?${query}`).toEqual({ next: null, previous: null, total: wanted.length, isMore: false })
      }
    },
  )

  test('goes back exactly while rows arrive, and as far as what has arrived since', async () => {
    const { ask, ordering } = await world()
    const page = async (more: string) => (await ask('GET', `/sync/runs?limit=1${more}`)).body.data
    const second = await page(`&before=${(await page('')).next}`)
    await ordering.db.commit([insertion(schema.syncRuns, run('4'))])
    const first = await page(`&after=${second.previous}`)
    expect(first.items.map(({ id }) => id)).toEqual(['3'])
    const newest = await page(`&after=${first.previous}`)
    expect([newest.items.map(({ id }) => id), newest.previous, newest.next]).toEqual([['4'], null, '4'])
    expect((await page('&after=4')).items).toEqual([])
    expect((await ask('GET', '/sync/runs?before=2&after=1')).status).toBe(400)
  })

  test('counts exactly up to 10,000, and says where there are more', async () => {
    const { ask, ordering } = await world()
    const store = async (count: number, from: number) =>
      ordering.db.commit(
        Array.from({ length: count }, (_, index) =>
          insertion(schema.audit, entry(deliveryId(from + index), { action: 'backup' })),
        ),
      )
    const counted = async (more = '') => {
      const { total, isMore } = (await ask('GET', `/audit?action=backup&limit=1&count=true${more}`)).body.data
      return [total, isMore]
    }
    await store(10_000, 0)
    expect(await counted()).toEqual([10_000, false])
    await store(2, 10_000)
    expect(await counted()).toEqual([10_000, true])
    expect(await counted(`&from=${at(10)}&to=${at(10_000)}`)).toEqual([9_990, false])
    expect(await counted(`&to=${at(12)}&before=${deliveryId(3)}`), 'a page deep in the list').toEqual([12, false])
    expect((await ask('GET', '/audit?action=backup')).body.data.total).toBeUndefined()
  })

  test('of orders with a SKU is counted up to 1,000: each of them is read', async () => {
    const { ask, ordering } = await world()
    const ids = Array.from({ length: 1_001 }, (_, index) => deliveryId(index))
    await ordering.db.commit(ids.map((id) => insertion(schema.storeOrders, order(id))))
    await ordering.db.commit(ids.map((id) => insertion(schema.storeOrderLines, lineOf(id, 'K3'))))
    const { total, isMore } = (await ask('GET', '/orders?search=K3&count=true')).body.data
    expect([total, isMore]).toEqual([1_000, true])
  })

  test.each(['/orders', '/audit', '/purchases', '/outbox'])('%s is narrowed to a time', async (path) => {
    const { ask } = await world()
    const found = async (more: string) => (await ask('GET', `${path}?count=true${more}`)).body.data.total
    const all = await found('')
    // The ids of this world are as old as the beginning of time, or newer than its end.
    expect((await found(`&from=${at(0)}`)) + (await found(`&to=${at(0)}`))).toBe(all)
    expect((await ask('GET', `${path}?from=yesterday`)).status).toBe(400)
  })

  test('of listings that begin with a text is one page of so many', async () => {
    const { ask } = await world()
    const found = async (query: string) => {
      const { body } = await ask('GET', `/stores/${STORE}/listings?${query}`)
      return [body.data.items.map((item) => item.id), body.data.next]
    }
    expect(await found('search=s&limit=3')).toEqual([['a', 'b', 'c'], null])
    expect(await found('search=s')).toEqual([['a', 'b', 'c', 'd', 'e', 'f'], null])
    expect(await found('search=t')).toEqual([[], null])
  })
})
