/** What a scan asks of the supplier, page by page, and what it makes of each answer. */
import { describe, expect, onTestFinished, test } from 'vitest'
import type { Dialect } from '../../src/dialect/dialect.ts'
import { SKEW_MS } from '../../src/domain/sweep.ts'
import { ordersUnder, PROOF_SKEW_MS, pagesSince, type ScanOptions, scanFor } from '../../src/ordering/scan.ts'
import { Secret } from '../../src/secret.ts'
import { createSupplier } from '../../src/supplier/client.ts'
import { TEST_NOW } from '../support/database.ts'
import { sendJson, startHttp } from '../support/supplier-server.ts'
import { defaultDialect, openTestApp } from '../support/test-app.ts'

const HOUR = 3_600_000

/** A page as a supplier writes it: its orders by their ids, rows that cannot be read, a count, a flag. */
interface Page {
  ids: string[]
  /** The reference that each of them carries; its own id where there is none. */
  reference?: string
  broken?: number
  total?: number
  more?: boolean
}

const page = (ids: string[], fields: Omit<Page, 'ids'> = {}): Page => ({ ids, ...fields })

const recordOf = (id: string, reference: string): object => ({ id, external_order_id: reference, status: 'completed' })

/** A supplier that answers page 1, 2, 3 … with these, every later one empty, and page 1 the second time with `again`. */
async function pagesOf(pages: Page[], { dialect = defaultDialect(), again = pages[0] }: Options = {}) {
  const asked: Record<string, string>[] = []
  const server = await startHttp(({ url }, response) => {
    const query = Object.fromEntries(new URL(url, 'http://list').searchParams)
    const isAgain = query.page === '1' && asked.some((one) => one.page === '1')
    asked.push(query)
    const { ids, reference, broken = 0, ...facts } = (isAgain ? again : pages[Number(query.page) - 1]) ?? page([])
    const items = ids.map((id) => recordOf(id, reference ?? id))
    const unreadable = Array.from({ length: broken }, (_, at) => ({ ...recordOf(`broken-${at}`, 'x'), amount: 'much' }))
    const data = { items: [...items, ...unreadable], ...facts }
    sendJson(response, 200, { success: true, data }, { 'x-request-id': 'r7' })
  })
  const now = () => TEST_NOW
  const supplier = createSupplier({
    baseUrl: `${server.origin}/v1`,
    dialect,
    apiKey: new Secret('sk_test_1'),
    now,
    random: () => 0,
    sleep: () => Promise.resolve(),
  })
  onTestFinished(async () => {
    await supplier.close()
    await server.close()
  })
  const app = await openTestApp({ dialect })
  const ordering = { ...app.ordering, supplier }
  const scan = async (from = 0, options: ScanOptions = {}) => {
    const seen: string[][] = []
    for await (const some of pagesSince(ordering, from, options)) seen.push(some.map(({ id }) => id))
    return seen
  }
  return { app, asked, ordering, scan, numbers: () => asked.map((query) => Number(query.page)) }
}

interface Options {
  dialect?: Dialect
  again?: Page | undefined
}

const paged = (paging: Partial<Dialect['paging']>): Dialect => {
  const dialect = defaultDialect()
  return { ...dialect, paging: { ...dialect.paging, ...paging } }
}

describe('a scan', () => {
  test('ends at an empty page, and looks at the head again where there was more than one page', async () => {
    const one = await pagesOf([page(['a', 'b'])])
    expect(await one.scan()).toEqual([['a', 'b']])
    expect(one.numbers()).toEqual([1, 2])
    const two = await pagesOf([page(['a', 'b']), page(['c'])])
    expect(await two.scan()).toEqual([['a', 'b'], ['c']])
    expect(two.numbers()).toEqual([1, 2, 3, 1])
    const none = await pagesOf([])
    expect(await none.scan()).toEqual([])
    expect(none.numbers()).toEqual([1])
  })

  test('ends at a flag that no more follows, and goes on behind an empty page whose flag says that more do', async () => {
    const flags = paged({ more: 'more' })
    const flagged = await pagesOf(
      [page(['a'], { more: true }), page([], { more: true }), page(['b'], { more: false })],
      { dialect: flags },
    )
    expect(await flagged.scan()).toEqual([['a'], ['b']])
    expect(flagged.numbers()).toEqual([1, 2, 3, 1])
    const one = await pagesOf([page(['a'], { more: false })], { dialect: flags })
    await one.scan()
    expect(one.numbers()).toEqual([1])
  })

  test('takes no count for an end, unless it may stop there', async () => {
    const found = await pagesOf([page(['a'], { total: 1 })])
    expect(await found.scan(0, { mayStop: () => true })).toEqual([['a']])
    expect(found.numbers()).toEqual([1])
    const sought = await pagesOf([page(['a'], { total: 1 }), page(['b'], { total: 1 })])
    expect(await sought.scan(0, { mayStop: () => false })).toEqual([['a'], ['b']])
    const early = await pagesOf([page(['a'], { total: 3 }), page(['b', 'c'], { total: 3 }), page(['d'], { total: 3 })])
    expect(await early.scan(0, { mayStop: () => true })).toEqual([['a'], ['b', 'c']])
    expect(early.numbers()).toEqual([1, 2])
    const uncounted = await pagesOf([page(['a']), page(['b'])])
    expect(await uncounted.scan(0, { mayStop: () => true })).toEqual([['a'], ['b']])
  })

  test('asks for its window and for nothing that it has not', async () => {
    const { scan, asked } = await pagesOf([page(['a']), page(['b'])])
    await scan(7, { to: 9 })
    const window = { limit: '100', from: '1970-01-01T00:00:00.007Z', to: '1970-01-01T00:00:00.009Z' }
    expect(asked).toEqual(['1', '2', '3', '1'].map((number) => ({ page: number, ...window })))
    asked.length = 0
    await scan()
    expect(asked[0]).toEqual({ page: '1', limit: '100' })
  })

  test('gives each order once', async () => {
    const { scan } = await pagesOf([page(['a', 'b']), page(['b', 'c']), page(['c', 'd'])])
    expect(await scan()).toEqual([['a', 'b'], ['c'], ['d']])
  })

  test('is not valid when the head has left the first page', async () => {
    const gone = await pagesOf([page(['a']), page(['b'])], { again: page(['new']) })
    await expect(gone.scan()).rejects.toThrow("the supplier's order list moved by more than a page while it was read")
    const pushed = await pagesOf([page(['a', 'b']), page(['c'])], { again: page(['new', 'a']) })
    expect(await pushed.scan()).toEqual([['a', 'b'], ['c']])
  })

  test('is not valid when two pages bring nothing new', async () => {
    const turning = await pagesOf([page(['a']), page(['a']), page(['a']), page(['b'])])
    await expect(turning.scan()).rejects.toMatchObject({
      code: 'unavailable',
      message: "the supplier's order list brings the same orders page after page",
    })
    expect(turning.numbers()).toEqual([1, 2, 3])
    const moved = await pagesOf([page(['a']), page(['a']), page(['b']), page(['b']), page(['c'])])
    expect(await moved.scan()).toEqual([['a'], [], ['b'], [], ['c']])
  })

  test('is not valid when the first count is higher than the rows that came', async () => {
    const short = await pagesOf([page(['a'], { total: 3 }), page(['b'], { total: 9 })])
    await expect(short.scan()).rejects.toMatchObject({
      code: 'unavailable',
      message: 'the supplier counts 3 orders and listed 2',
    })
    const exact = await pagesOf([page(['a'], { total: 2 }), page(['b'], { total: 9 })])
    expect(await exact.scan()).toEqual([['a'], ['b']])
    const repeated = await pagesOf([page(['a', 'b'], { total: 3 }), page(['b'])])
    await expect(repeated.scan(), 'a row that came twice is one row').rejects.toThrow('listed 2')
  })

  test('is not valid when it reaches the end of what the supplier lists', async () => {
    const dialect = paged({ listMax: 3 })
    const ending = await pagesOf([page(['a', 'b']), page(['c']), page(['d'])], { dialect })
    await expect(ending.scan()).rejects.toMatchObject({
      code: 'unavailable',
      message: "the supplier's order list ends at 3 orders, and so many came: older ones are not shown",
    })
    expect(ending.numbers(), 'nothing is asked for behind the end').toEqual([1, 2])
    const short = await pagesOf([page(['a', 'b'])], { dialect })
    expect(await short.scan()).toEqual([['a', 'b']])
  })

  test('ends where the supplier lists no more for a caller that takes note of it, unless the head has left', async () => {
    const dialect = paged({ listMax: 3 })
    const ends: number[] = []
    const onListEnd = (listMax: number) => void ends.push(listMax)
    const rows = [page(['a', 'b']), page(['c']), page(['d'])]
    const ending = await pagesOf(rows, { dialect })
    expect(await ending.scan(0, { onListEnd })).toEqual([['a', 'b'], ['c']])
    expect(ends).toEqual([3])
    const moved = await pagesOf(rows, { dialect, again: page(['new']) })
    await expect(moved.scan(0, { onListEnd })).rejects.toThrow('moved by more than a page')
  })

  test('is not valid when it has too many pages', async () => {
    const long = await pagesOf([page(['a']), page(['b']), page(['c'])])
    await expect(long.scan(0, { pagesMax: 2 })).rejects.toMatchObject({
      code: 'unavailable',
      message: "the supplier's order list has over 2 pages",
    })
    expect(long.numbers()).toEqual([1, 2])
    const endless = await pagesOf(Array.from({ length: 300 }, (_, at) => page([`o${at}`])))
    await expect(endless.scan()).rejects.toThrow('over 200 pages')
    expect(endless.asked).toHaveLength(200)
  })

  test('is not valid when a row cannot be read, unless the caller takes such rows', async () => {
    const pages = [page(['a'], { broken: 1, total: 3 }), page([], { broken: 1 })]
    await expect((await pagesOf(pages)).scan()).rejects.toMatchObject({
      code: 'unavailable',
      message: expect.stringMatching(/an order in the list .*amount.*r7/),
    })
    let taken = 0
    const { scan, numbers } = await pagesOf(pages)
    const onUnreadable = (rows: readonly unknown[]): void => {
      taken += rows.length
    }
    expect(await scan(0, { onUnreadable })).toEqual([['a'], []])
    expect(taken).toBe(2)
    expect(numbers()).toEqual([1, 2, 3, 1])
  })
})

describe('the orders under a reference', () => {
  const ours = page(['x'], { reference: 'ours' })
  const under = async (answer: Page | undefined, dialect = defaultDialect()) => {
    const { ordering, asked } = await pagesOf(answer ? [answer] : [], { dialect })
    return { orders: await ordersUnder(ordering, 'ours'), asked }
  }

  test('are asked for by the filter, once', async () => {
    const { orders, asked } = await under(ours)
    expect(orders).toMatchObject([{ id: 'x' }])
    expect(asked).toEqual([{ page: '1', limit: '100', external_order_id: 'ours' }])
  })

  test('are not known where the answer is empty and no order is there to try the filter with', async () => {
    expect((await under(undefined)).orders).toBeUndefined()
    expect((await under(undefined)).asked).toEqual([
      { page: '1', limit: '100', external_order_id: 'ours' },
      { page: '1', limit: '100' },
    ])
  })

  test.each<[string, Page]>([
    ['one of them is of another', page(['x'])],
    ['a row cannot be read', { ...ours, broken: 1 }],
    ['more follow', { ...ours, more: true }],
    ['more are counted', { ...ours, total: 2 }],
    ['one is counted and none is there', page([], { total: 1 })],
  ])('are not known where %s', async (_, answer) => {
    const dialect = answer.more === undefined ? defaultDialect() : paged({ more: 'more' })
    expect((await under(answer, dialect)).orders).toBeUndefined()
  })

  test('are known where a flag and a count say that these are all', async () => {
    expect((await under({ ...ours, more: false, total: 1 }, paged({ more: 'more' }))).orders).toHaveLength(1)
  })

  test('cannot be asked for without a filter', async () => {
    const dialect = defaultDialect()
    const without = { ...dialect, orders: { ...dialect.orders, externalOrderId: null } }
    expect(await under(ours, without)).toEqual({ orders: undefined, asked: [] })
  })
})

describe('a look-up without a filter', () => {
  async function looked(proves: boolean, sent = true) {
    const dialect = { ...defaultDialect(), orders: { ...defaultDialect().orders, externalOrderId: null } }
    const pages = [page(['a'], { total: 2 })]
    const { app, ordering, asked } = await pagesOf(pages, { dialect })
    const orderId = await app.buy('1001')
    app.move(HOUR)
    if (sent) await app.settle()
    // Sent again since: it may have run at the first time.
    const purchase = { ...(await app.purchase(orderId)), lastSentAt: app.now() + HOUR }
    pages.push(page(['x'], { reference: purchase.externalOrderId, total: 2 }))
    const found = await scanFor(ordering, purchase, { proves })
    expect(found.map(({ id }) => id)).toEqual(['x'])
    expect(asked.map((query) => query.page)).toEqual(['1', '2'])
    return { from: Date.parse(asked[0]?.from ?? ''), purchase }
  }

  test('begins ten minutes before the first request, and two days earlier where it is to prove something', async () => {
    const early = await looked(false)
    expect(early.from).toBe((early.purchase.firstSentAt ?? 0) - SKEW_MS)
    const proving = await looked(true)
    expect(proving.from).toBe((proving.purchase.firstSentAt ?? 0) - PROOF_SKEW_MS)
    expect(PROOF_SKEW_MS).toBe(50 * 3_600_000)
  })

  test('believes an order that it found, although the list proves nothing else', async () => {
    const dialect = { ...defaultDialect(), orders: { ...defaultDialect().orders, externalOrderId: null } }
    const counted = page(['a', 'b'], { total: 5_000 })
    const without = await pagesOf([counted], { dialect })
    const purchase = await without.app.purchase(await without.app.buy('1001'))
    const look = ({ ordering }: typeof without) => scanFor(ordering, purchase, { proves: true })
    await expect(look(without)).rejects.toThrow('counts 5000 orders and listed 2')
    const pages = [counted, page(['x'], { reference: purchase.externalOrderId })]
    expect(await look(await pagesOf(pages, { dialect }))).toMatchObject([{ id: 'x' }])
  })

  test('reads on behind a count that is reached, as long as it has found nothing', async () => {
    const dialect = { ...defaultDialect(), orders: { ...defaultDialect().orders, externalOrderId: null } }
    const pages = [page(['a'], { total: 1 })]
    const { app, ordering, numbers } = await pagesOf(pages, { dialect })
    const purchase = await app.purchase(await app.buy('1001'))
    pages.push(page(['x'], { reference: purchase.externalOrderId, total: 1 }))
    expect(await scanFor(ordering, purchase, { proves: true })).toMatchObject([{ id: 'x' }])
    expect(numbers()).toEqual([1, 2])
  })

  test('is not made where a filter that has found an order before has the answer', async () => {
    const { app, ordering, asked } = await pagesOf([page([])])
    ordering.pace.referenceFilter = 'finds'
    const purchase = await app.purchase(await app.buy('1001'))
    expect(await scanFor(ordering, purchase, { proves: true })).toEqual([])
    expect(asked).toEqual([{ page: '1', limit: '100', external_order_id: purchase.externalOrderId }])
  })

  test('begins at the order of the store for a purchase that was never sent', async () => {
    const { from, purchase } = await looked(false, false)
    expect(purchase.firstSentAt).toBeNull()
    expect(from).toBe(purchase.createdAt - SKEW_MS)
  })
})
