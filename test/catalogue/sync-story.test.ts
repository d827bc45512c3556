import { describe, expect, it } from 'vitest'
import { changesOfRun } from '../../src/storage/offers.ts'
import { idAt, listWorld, productRecord } from '../support/catalogue-world.ts'

describe('a catalogue on its worst day', () => {
  it('keeps every price true that can be read, removes nothing, and says what was wrong', async () => {
    const { sync, list, hooks, offer, offers, db, logged, pages } = await listWorld(80)
    await sync()
    expect(await offers()).toHaveLength(80)

    // Everything costs more now; one product is malformed, one page breaks, and one product leaves in the middle.
    list.records = list.records.map((record) => ({ ...record, api_price: '11.00' }))
    list.records[45] = productRecord(idAt(45), { api_price: '11.00', available: 'perhaps' })
    hooks.tamper = (page, answer) => {
      if (page === 4) answer.status = 500
      if (page === 2 && list.records.length === 80) list.records.splice(3, 1)
    }
    pages.length = 0
    const run = await sync()
    expect(new Set(pages)).toEqual(new Set([1, 2, 3, 4, 5, 6, 7, 8]))
    expect(run).toMatchObject({ state: 'failed', pages: 7, pagesBroken: 1, offersUnreadable: 1, offersGone: 0 })
    expect(run.error).toContain('page 4')
    expect(run.error).toContain('500')
    expect(run.requestId).toMatch(/^req_\d+$/)
    expect(logged('sync.page_broken')).toMatchObject([{ cursor: 4, requestId: run.requestId }])
    expect(logged('sync.unreadable').at(-1)?.detail).toContain(idAt(45))
    expect(logged('sync.failed')).toMatchObject([{ runId: run.id, pagesBroken: 1, requestId: run.requestId }])

    const stored = await offers()
    expect(stored, 'nothing is removed').toHaveLength(80)
    expect(stored.filter(({ missedRuns }) => missedRuns > 0)).toEqual([])
    // What left slid the rest one place forward: page 4 was 31 to 40 by then.
    const old = stored.filter(({ costMinor }) => costMinor === 1_000).map(({ productId }) => productId)
    expect(old).toEqual([...Array.from({ length: 10 }, (_, at) => idAt(31 + at)), idAt(45)])

    // The next day all is well but for the malformed one; what left is gone after two complete runs, and only that.
    delete hooks.tamper
    expect(await sync()).toMatchObject({ state: 'complete', error: null, offersChanged: 10, offersGone: 0 })
    const last = await sync()
    expect(last).toMatchObject({ state: 'complete', error: null, offersChanged: 0, offersGone: 1 })
    expect(await db.query(changesOfRun(last.id, '', 10))).toMatchObject([
      { productId: idAt(3), field: 'presence', before: 'listed', after: 'gone' },
    ])
    expect(await offer(idAt(45)), 'one that cannot be read is there').toMatchObject({ goneAt: null, costMinor: 1_000 })
    expect(await offers()).toHaveLength(79)
  })

  it('ends at once where no page would fare better, and after three broken pages in a row', async () => {
    const { sync, list, hooks, pages, offers } = await listWorld(100)
    await sync()
    hooks.tamper = (page, answer) => page >= 4 && Object.assign(answer, { status: 503 })
    pages.length = 0
    const run = await sync()
    expect(run).toMatchObject({ state: 'failed', pages: 3, cursor: 6 })
    expect(Math.max(...pages)).toBe(6)
    hooks.tamper = (page, answer) => page >= 4 && Object.assign(answer, { status: 401 })
    pages.length = 0
    expect(await sync()).toMatchObject({ state: 'failed', pages: 3, cursor: 4 })
    expect(pages).toEqual([1, 2, 3, 4])
    hooks.tamper = (page, answer) => page === 1 && Object.assign(answer, { status: 500 })
    expect(await sync()).toMatchObject({ state: 'failed', pages: 0, cursor: 1 })
    expect(await offers()).toHaveLength(list.records.length)
  })

  it('reads on where a whole page of new products came in before what was read', async () => {
    const { sync, list, hooks, offers } = await listWorld(30)
    hooks.tamper = (page) => {
      if (page !== 2) return
      delete hooks.tamper
      list.records.unshift(...Array.from({ length: 10 }, (_, at) => productRecord(`new-${at}`)))
    }
    const run = await sync()
    expect(run).toMatchObject({ state: 'complete', offersSeen: 30 })
    expect(run.error).toContain('moved')
    expect(await sync()).toMatchObject({ state: 'complete', error: null, offersSeen: 40, offersNew: 10 })
    expect(await offers()).toHaveLength(40)
  })

  it('ends as failed, and not as complete, where the last page is the broken one', async () => {
    const { sync, hooks, offers } = await listWorld(30)
    await sync()
    hooks.tamper = (page, answer) => page === 3 && Object.assign(answer, { status: 500 })
    for (const _ of [1, 2, 3]) expect(await sync()).toMatchObject({ state: 'failed', pages: 2, pagesBroken: 1 })
    expect(await offers()).toHaveLength(30)
    delete hooks.tamper
    expect(await sync()).toMatchObject({ state: 'complete', error: null })
  })
})
