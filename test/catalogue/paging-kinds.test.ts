/** A catalogue whose pages are found by an offset or by a cursor, and what breaks while it is read. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { describe, expect, it, onTestFinished } from 'vitest'
import { createSyncRunner, runSync, startSync } from '../../src/catalogue/sync.ts'
import type { Dialect } from '../../src/dialect/dialect.ts'
import { listSyncRuns } from '../../src/storage/runs.ts'
import { type Habit, habitDialect } from '../support/catalogue-parties.ts'
import { idAt, openCatalogue, productRecord } from '../support/catalogue-world.ts'
import { databaseFile, fileDatabase } from '../support/database.ts'
import { cursorAfter, pagedSupplier } from '../support/paged-supplier.ts'
import { isOnPostgres } from '../support/postgres.ts'

const CHILD = fileURLToPath(new URL('../support/catalogue-sync-child.ts', import.meta.url))

const habits: Habit[] = ['token', 'cursor', 'offset']

async function world(habit: Habit, products: number, paging: Partial<Dialect['paging']> = {}, sizeMax = 1_000) {
  const supplier = await pagedSupplier(habit, { products, sizeMax })
  return { ...supplier, ...openCatalogue({ baseUrl: supplier.baseUrl, dialect: habitDialect(habit, 10, paging) }) }
}

describe.each(habits)('a catalogue that is paged by %s', (habit) => {
  it('is read whole, each page once, and what is gone is found', async () => {
    const { sync, places, offers, lists, offer } = await world(habit, 95)
    expect(await sync()).toMatchObject({ state: 'complete', error: null, pages: 10, offersSeen: 95, offersNew: 95 })
    expect(places).toEqual([0, 10, 20, 30, 40, 50, 60, 70, 80, 90])
    expect(await offers()).toHaveLength(95)
    lists.products.splice(40, 1)
    await sync()
    expect(await sync()).toMatchObject({ state: 'complete', error: null, offersGone: 1 })
    expect((await offer(idAt(40)))?.goneAt).not.toBeNull()
  })

  it('is read whole where the supplier gives smaller pages than were asked for', async () => {
    const { sync, places, offers } = await world(habit, 23, {}, 4)
    expect(await sync()).toMatchObject({ state: 'complete', error: null, offersSeen: 23 })
    expect(places).toEqual([0, 4, 8, 12, 16, 20])
    expect(await offers()).toHaveLength(23)
  })

  it('ends in a failure where every page is the first one again', async () => {
    const { sync, hooks, lists, heard } = await world(habit, 30)
    const first = lists.products.slice(0, 10)
    hooks.tamper = (answer) => {
      answer.rows = first
      if (habit !== 'offset') answer.next = cursorAfter(idAt(9))
    }
    const run = await sync()
    expect(run).toMatchObject({ state: 'failed', offersGone: 0 })
    expect(run.error).toMatch(/repeats its pages|names a cursor again/)
    expect(heard.length).toBeLessThan(5)
  })

  it('marks nothing gone when a page in the middle breaks', async () => {
    const { sync, hooks, lists, offers } = await world(habit, 45)
    await sync()
    lists.products.splice(0, 1)
    hooks.tamper = (answer, place) => {
      if (place === 20) answer.status = 410
    }
    for (let runs = 0; runs < 2; runs += 1) expect(await sync()).toMatchObject({ state: 'failed', offersGone: 0 })
    expect((await offers()).filter(({ missedRuns }) => missedRuns > 0)).toEqual([])
  })
})

describe('a catalogue with an offset', () => {
  it('is read whole without a count, behind pages that are shorter than was asked for', async () => {
    const { sync, places, offers } = await world('offset', 23, { total: null }, 4)
    expect(await sync()).toMatchObject({ state: 'complete', error: null, offersSeen: 23 })
    expect(places).toEqual([0, 4, 8, 12, 16, 20, 23])
    expect(await offers()).toHaveLength(23)
  })

  it('begins at the number that the dialect states for the first record', async () => {
    const { sync, heard } = await world('offset', 0, { first: 1 })
    await sync()
    expect(heard[0]?.url).toBe('/v1/products?offset=1&limit=10')
  })

  it('steps over a page that cannot be read, and reads the pages behind it', async () => {
    const { sync, hooks, places, offers } = await world('offset', 45)
    hooks.tamper = (answer, place) => {
      if (place === 20) answer.status = 400
    }
    expect(await sync()).toMatchObject({ state: 'failed', pagesBroken: 1, offersSeen: 35 })
    expect(places).toEqual([0, 10, 20, 30, 40])
    expect(await offers()).toHaveLength(35)
  })

  it('that moves while it is read loses no offer, and marks none gone', async () => {
    const { sync, hooks, lists, offers } = await world('offset', 40)
    await sync()
    hooks.tamper = (_, place) => {
      if (place === 10 && lists.products.length === 40) lists.products.splice(0, 1)
    }
    const run = await sync()
    expect(run.error).toContain('the list moved while it was read')
    expect(run).toMatchObject({ state: 'complete', offersSeen: 40, offersGone: 0 })
    expect((await offers()).filter(({ missedRuns }) => missedRuns > 0)).toEqual([])
  })
})

describe('a catalogue with cursors', () => {
  it('sends no cursor for the first page, and each cursor as it came', async () => {
    const { sync, heard } = await world('cursor', 15)
    await sync()
    const [first, second] = heard.map(({ url }) => new URL(url, 'http://list').searchParams)
    expect([...(first ?? [])]).toEqual([['per_page', '10']])
    expect(second?.get('cursor')).toBe(cursorAfter(idAt(9)))
  })

  it('goes on behind short and empty pages until a page names no cursor', async () => {
    const { sync, hooks, offers } = await world('cursor', 50)
    hooks.tamper = (answer, place) => {
      if (place === 0) answer.rows = answer.rows.slice(0, 3)
      if (place === 10 || place === 20) answer.rows = []
    }
    expect(await sync()).toMatchObject({ state: 'complete', error: null, pages: 5, offersSeen: 23 })
    expect(await offers()).toHaveLength(23)
  })

  it('ends in a failure where empty pages lead in a circle', async () => {
    const { sync, hooks, heard } = await world('cursor', 200)
    hooks.tamper = (answer, place) => {
      if (place >= 30) answer.rows = []
      if (place === 60) answer.next = cursorAfter(idAt(29))
    }
    const run = await sync()
    expect(run).toMatchObject({ state: 'failed', offersGone: 0 })
    expect(run.error).toContain('the supplier names a cursor again: its list never ends')
    expect(heard.length).toBeLessThan(20)
  })

  it.each([410, 400])(
    'ends in a failure when a cursor expires with HTTP %i, and neither log nor run repeats it',
    async (status) => {
      const { sync, hooks, lines } = await world('cursor', 45)
      hooks.tamper = (answer, place) => {
        if (place === 20) answer.status = status
      }
      const run = await sync()
      expect(run).toMatchObject({ state: 'failed', pages: 2, offersSeen: 20 })
      expect(run.error).toMatch(
        status === 410 ? /^page 3: .*no page of .products at the cursor/ : /^page 3: .*invalid_request/,
      )
      expect(JSON.stringify([run, lines])).not.toContain(cursorAfter(idAt(19)).slice(0, 12))
    },
  )

  it.each([
    ['an object', { id: 7 }],
    ['a text of 2,001 characters', 'x'.repeat(2_001)],
    ['true', true],
  ])('cannot be read where a cursor is %s, and the message is short', async (_, next) => {
    const { sync, hooks } = await world('cursor', 15)
    hooks.tamper = (answer) => Object.assign(answer, { next })
    const run = await sync()
    expect(run.error).toContain('meta.next_cursor (paging.next of the dialect)')
    expect(run.error?.length).toBeLessThan(250)
  })

  it.each([
    ['a number', 7],
    ['a text of 2,000 characters', 'y'.repeat(2_000)],
  ])('takes %s', async (_, next) => {
    const { sync, hooks, heard } = await world('cursor', 15)
    hooks.tamper = (answer, place) => {
      if (place === 0) Object.assign(answer, { next })
    }
    await sync()
    expect(new URL(heard[1]?.url ?? '', 'http://list').searchParams.get('cursor')).toBe(String(next))
  })

  it('marks nothing gone where the path of the cursor is wrong: each offer is asked for by its id', async () => {
    const { sync, catalogue, db, offers, baseUrl } = await world('cursor', 25)
    await sync()
    const dialect = habitDialect('cursor', 10, { next: 'meta.following' })
    const wrong = openCatalogue({ baseUrl, dialect, db, clock: { at: catalogue.now() + 1_000 } })
    for (let runs = 0; runs < 3; runs += 1) expect(await wrong.sync()).toMatchObject({ offersSeen: 10, offersGone: 0 })
    expect((await offers()).filter(({ goneAt }) => goneAt !== null)).toEqual([])
  })

  it.skipIf(isOnPostgres)(
    'of 500 products that is killed in the middle is read again from the first page, by a run of its own',
    { timeout: 60_000 },
    async () => {
      const file = databaseFile()
      const { baseUrl, lists, places } = await pagedSupplier('cursor', { products: 500 })
      const child = spawn(process.execPath, [CHILD, file, baseUrl, '10', '25', 'cursor'], {
        stdio: ['ignore', 'pipe', 'inherit'],
      })
      onTestFinished(() => void child.kill('SIGKILL'))
      await once(child.stdout, 'data')
      child.kill('SIGKILL')
      await once(child, 'exit')
      lists.products.splice(3, 1)
      lists.products.push(productRecord(idAt(500)))
      places.length = 0

      const clock = { at: Date.now() }
      const dialect = habitDialect('cursor', 10)
      const again = openCatalogue({ baseUrl, dialect, db: fileDatabase(file, () => clock.at), clock })
      const left = (await again.offers()).length
      expect(left).toBeGreaterThan(200)
      const runner = createSyncRunner(again.catalogue)
      await runner.finish('start')
      // The one that follows is joined.
      await runner.finish('schedule')
      const [second, first] = await again.db.query(listSyncRuns({ limit: 2 }))
      expect(first).toMatchObject({ state: 'interrupted', offersGone: 0, error: expect.stringContaining('cut short') })
      expect(second).toMatchObject({ cause: 'resumed', state: 'complete', error: null, pages: 50, offersSeen: 500 })
      expect(places).toEqual(Array.from({ length: 50 }, (_, page) => page * 10))
      expect(await again.offers()).toHaveLength(501)
      expect((await again.queued()).flat().toSorted()).toEqual(Array.from({ length: 501 }, (_, place) => idAt(place)))
      expect(await again.sync()).toMatchObject({ state: 'complete', error: null, offersGone: 1 })
    },
  )

  it('that a stop leaves running ends as interrupted at its next reading', async () => {
    const { catalogue, hooks } = await world('cursor', 45)
    const stop = new AbortController()
    hooks.tamper = (_, place) => {
      if (place === 20) stop.abort()
    }
    const { runId } = await startSync(catalogue, 'test')
    expect(await runSync({ ...catalogue, signal: stop.signal }, runId)).toMatchObject({ state: 'running' })
    expect(await runSync(catalogue, runId)).toMatchObject({ state: 'interrupted' })
    expect(await startSync(catalogue, 'test')).toMatchObject({ created: true })
  })
})
