import { sql } from 'drizzle-orm'
import { describe, expect, it } from 'vitest'
import { refreshOffer } from '../../src/catalogue/offers.ts'
import { runSync, startSync } from '../../src/catalogue/sync.ts'
import { shippedCatalogue } from '../../src/sandbox/catalogue.ts'
import { changesOfRun } from '../../src/storage/offers.ts'
import { dialectOf } from '../support/catalogue-parties.ts'
import { idAt, listWorld, productRecord, sandboxWorld } from '../support/catalogue-world.ts'

const presence = (productId: string, before: string | null, after: string) => ({
  productId,
  field: 'presence',
  before,
  after,
})

describe('an offer that left the catalogue', () => {
  it('is gone only after two complete runs missed it, and is then queued for the stores', async () => {
    const { sync, offer, sandbox, db, queued } = await sandboxWorld({ dialect: dialectOf(25) })
    await sync()
    const { id } = shippedCatalogue().at(30)
    sandbox.world.offers.change(id, { withdrawn: true })
    expect(await sync()).toMatchObject({ state: 'complete', offersGone: 0, error: null })
    expect(await offer(id)).toMatchObject({ goneAt: null, missedRuns: 1 })
    const second = await sync()
    expect(second).toMatchObject({ state: 'complete', offersGone: 1 })
    expect((await offer(id))?.goneAt).not.toBeNull()
    expect(await db.query(changesOfRun(second.id, '', 10))).toMatchObject([presence(id, 'listed', 'gone')])
    expect((await queued()).at(-1)).toEqual([id])
    expect(await sync()).toMatchObject({ offersGone: 0, offersChanged: 0 })
  })

  it('comes back when it is listed again', async () => {
    const { sync, list, offer, db, woken } = await listWorld(20)
    await sync()
    const [left] = list.records.splice(3, 1)
    await sync()
    await sync()
    expect((await offer(idAt(3)))?.goneAt).not.toBeNull()
    list.records.push(left ?? {})
    const run = await sync()
    expect(await offer(idAt(3))).toMatchObject({ goneAt: null, available: true, missedRuns: 0 })
    expect(await db.query(changesOfRun(run.id, '', 10))).toContainEqual(
      expect.objectContaining(presence(idAt(3), 'gone', 'listed')),
    )
    expect(woken).toEqual([idAt(3)])
  })

  it('is not gone when an event found it between two runs', async () => {
    const { sync, list, offer, catalogue } = await listWorld(20)
    await sync()
    const hidden = list.records.splice(3, 1)
    await sync()
    const others = list.records
    list.records = hidden
    await refreshOffer(catalogue, idAt(3))
    list.records = others
    expect(await sync()).toMatchObject({ offersGone: 0 })
    expect(await offer(idAt(3))).toMatchObject({ goneAt: null, missedRuns: 1 })
  })

  it('is not gone when the run between two that missed it saw it with an older fact', async () => {
    const { sync, list, offer, db } = await listWorld(20)
    await sync()
    const [hidden] = list.records.splice(3, 1)
    await sync()
    // An event has announced it meanwhile, as it will be: the list lags behind that.
    await db.commit([
      { statement: sql`update offers set as_of = as_of + 3600000 where product_id = ${idAt(3)}`, rows: 1 },
    ])
    list.records.push(hidden ?? {})
    await sync()
    expect(await offer(idAt(3))).toMatchObject({ goneAt: null, missedRuns: 0 })
    list.records.pop()
    expect(await sync()).toMatchObject({ offersGone: 0 })
    expect(await sync()).toMatchObject({ offersGone: 1 })
  })

  const removesNothing: [
    string,
    Parameters<typeof listWorld>[1],
    (page: number, answer: { items: unknown[]; status: number; total: number }) => void,
  ][] = [
    ['a page that fails', {}, (page, answer) => page === 2 && Object.assign(answer, { status: 500 })],
    ['a short page', {}, (page, answer) => page === 2 && answer.items.splice(4)],
    ['an empty page', {}, (page, answer) => page === 2 && answer.items.splice(0)],
    ['an empty list', {}, (_page, answer) => Object.assign(answer, { items: [], total: 0 })],
    ['a list that ends early without a count', { paging: { total: null, more: 'next' } }, () => {}],
  ]
  it.each(removesNothing)('is not seen in %s', async (what, options, tamper) => {
    const { sync, offers, hooks, list } = await listWorld(30, options)
    await sync()
    hooks.tamper = tamper
    if (what.includes('ends early')) hooks.tamper = (page, answer) => page === 2 && answer.items.splice(0)
    for (const _ of [1, 2, 3]) expect(await sync()).toMatchObject({ offersGone: 0 })
    const stored = await offers()
    expect(stored).toHaveLength(list.records.length)
    // Without a count the lists are believed, and each offer is asked for before it would be marked.
    if (options?.paging === undefined) expect(stored.filter(({ missedRuns }) => missedRuns > 0)).toEqual([])
  })

  it('is distinguished from a record that cannot be read by asking for it', async () => {
    const { sync, list, offer } = await listWorld(20)
    await sync()
    list.records[3] = productRecord(idAt(3), { available: 'perhaps' })
    list.records.splice(7, 1)
    await sync()
    expect(await sync()).toMatchObject({ state: 'complete', offersGone: 1, offersUnreadable: 1 })
    expect(await offer(idAt(3))).toMatchObject({ goneAt: null })
    expect((await offer(idAt(7)))?.goneAt).not.toBeNull()
  })

  it('is asked for where the supplier does not count its list', async () => {
    const { sync, list, offer, hooks } = await listWorld(20, { paging: { total: null, more: 'next' } })
    await sync()
    list.records.splice(7, 1)
    // The list loses another record from sight, as one that moves while it is read does.
    hooks.tamper = (_page, answer) => {
      answer.items = answer.items.filter(({ id }) => id !== idAt(4))
    }
    await sync()
    expect(await sync()).toMatchObject({ state: 'complete', offersGone: 1 })
    expect(await offer(idAt(4))).toMatchObject({ goneAt: null, missedRuns: 0 })
    expect((await offer(idAt(7)))?.goneAt).not.toBeNull()
  })
})

describe('a supplier that gives fewer offers a page than were asked for', () => {
  const shortPages = (most: number) =>
    ({ fault: 'short-pages', most, times: 10_000, match: { path: '/products' } }) as const

  it('has offers that are gone, and its page size is reported once', async () => {
    const { sync, offer, sandbox, logged } = await sandboxWorld({ dialect: dialectOf(25) })
    sandbox.faults.add(shortPages(10))
    const size = shippedCatalogue().size
    const pages = Math.ceil(size / 10)
    expect(await sync()).toMatchObject({ state: 'complete', error: null, offersNew: size, pages, pagesTotal: pages })
    const { id } = shippedCatalogue().at(30)
    sandbox.world.offers.change(id, { withdrawn: true })
    expect(await sync()).toMatchObject({ state: 'complete', error: null, offersGone: 0 })
    expect(await sync()).toMatchObject({ state: 'complete', error: null, offersGone: 1 })
    expect((await offer(id))?.goneAt).not.toBeNull()
    expect(logged('sync.page_size')).toMatchObject([{ count: 10, detail: '25 were asked for' }])
    sandbox.faults.clear()
    sandbox.faults.add(shortPages(8))
    expect(await sync()).toMatchObject({ state: 'complete', error: null })
    expect(logged('sync.page_size').map(({ count }) => count)).toEqual([10, 8])
  })

  it('is read whole where it counts its pages by the size that was asked for', async () => {
    const { sync, list, hooks, offers, pages } = await listWorld(23)
    hooks.tamper = (_page, answer) => {
      answer.items = answer.items.slice(0, 4)
    }
    expect(await sync()).toMatchObject({ state: 'complete', error: null, offersSeen: 23, pages: 6 })
    expect(await offers()).toHaveLength(list.records.length)
    expect(pages).toEqual([1, 2, 3, 4, 5, 6])
  })

  it('is read on after a stop', async () => {
    const { catalogue, hooks, list, offers } = await listWorld(23)
    hooks.tamper = (page, answer) => {
      answer.items = list.records.slice((page - 1) * 5, page * 5)
    }
    const { runId } = await startSync(catalogue, 'test')
    const halt = new AbortController()
    const stopped = hooks.tamper
    hooks.tamper = (page, answer) => {
      stopped(page, answer)
      if (page === 2) halt.abort()
    }
    await runSync({ ...catalogue, signal: halt.signal }, runId)
    hooks.tamper = stopped
    expect(await runSync(catalogue, runId)).toMatchObject({ state: 'complete', offersSeen: 23 })
    expect(await offers()).toHaveLength(23)
  })
})

describe('an offer is not gone', () => {
  it('behind the highest count that the supplier tells', async () => {
    const { sync, list, offers, hooks, pages } = await listWorld(30)
    await sync()
    hooks.tamper = (_page, answer) => {
      answer.total = 20
    }
    pages.length = 0
    const run = await sync()
    expect(run).toMatchObject({ state: 'complete', error: expect.stringContaining('counts 20 offers and lists more') })
    expect(pages, 'one page more, as some are missing').toEqual([1, 2, 3])
    await sync()
    expect(await sync()).toMatchObject({ offersGone: 0 })
    const stored = await offers()
    expect(stored.filter(({ goneAt, missedRuns }) => goneAt !== null || missedRuns > 0)).toEqual([])
    expect(stored).toHaveLength(list.records.length)
  })

  it('where the list ends as the dialect says', async () => {
    const { sync, offers, hooks } = await listWorld(30, { paging: { listMax: 20 } })
    expect(await sync()).toMatchObject({ state: 'complete', error: null, offersSeen: 30 })
    hooks.tamper = (page, answer) => {
      answer.total = 20
      if (page > 2) answer.items = []
    }
    for (const _ of [1, 2, 3]) {
      expect(await sync()).toMatchObject({ offersGone: 0, error: expect.stringContaining('end at 20') })
    }
    expect((await offers()).filter(({ missedRuns }) => missedRuns > 0)).toEqual([])
  })

  it('while the page behind the last one cannot be had', async () => {
    const { sync, list, hooks, offers } = await listWorld(20)
    await sync()
    list.records.splice(3, 11)
    hooks.tamper = (page, answer) => page === 2 && Object.assign(answer, { status: 500 })
    for (const _ of [1, 2, 3]) {
      expect(await sync()).toMatchObject({ offersGone: 0, error: expect.stringContaining('500') })
    }
    expect((await offers()).filter(({ goneAt }) => goneAt !== null)).toEqual([])
  })
})

describe('a list that moves while it is read', () => {
  it('loses no offer that slid to the page before', async () => {
    const { sync, list, hooks, offer, pages } = await listWorld(30)
    hooks.tamper = (page) => {
      if (page !== 1) return
      hooks.tamper = () => {}
      list.records.splice(2, 1)
    }
    // The answer to page 1 was made before the record left: its total is still 30.
    const run = await sync()
    expect(pages, 'page 3 is asked for ahead').toEqual([1, 2, 3, 1])
    expect(await offer(idAt(10))).toBeDefined()
    expect(run).toMatchObject({ state: 'complete', offersSeen: 30, offersGone: 0 })
    expect(run.error).toContain('moved')
  })

  it('doubles no offer that slid to the page after, and counts nothing as missing', async () => {
    const { sync, list, hooks, offers } = await listWorld(30)
    await sync()
    hooks.tamper = (page) => {
      if (page !== 1) return
      hooks.tamper = () => {}
      list.records.unshift(productRecord('a-new-one'))
    }
    const run = await sync()
    expect(run).toMatchObject({ state: 'complete', offersSeen: 30, offersNew: 0 })
    expect(run.error).toContain('moved')
    const stored = await offers()
    expect(stored).toHaveLength(30)
    expect(stored.every(({ missedRuns }) => missedRuns === 0)).toBe(true)
    expect(await sync()).toMatchObject({ offersSeen: 31, offersNew: 1, error: null })
  })
})
