import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import Connection from 'better-sqlite3'
import { expect, it, onTestFinished } from 'vitest'
import { runSync, startSync } from '../../src/catalogue/sync.ts'
import { parseDecimal } from '../../src/domain/money.ts'
import { offerChanges, syncRuns } from '../../src/storage/schema.ts'
import { build } from '../../src/storage/statement.ts'
import { idAt, listWorld, openCatalogue } from '../support/catalogue-world.ts'
import { databaseFile, fileDatabase } from '../support/database.ts'
import { seeded } from '../support/seeded.ts'

const CHILD = fileURLToPath(new URL('../support/sync-crash-child.ts', import.meta.url))
/** 50 in the long form. */
const KILLS = Number(process.env.SYNC_KILLS ?? 4)
const SEED = Number(process.env.SYNC_SEED ?? 1)
const OFFERS = 600
const PAGE = 10

it(`a sync that is killed at ${KILLS} random points loses and doubles nothing`, { timeout: 600_000 }, async () => {
  const random = seeded(SEED)
  const file = databaseFile()
  const { baseUrl, list, hooks, dialect } = await listWorld(OFFERS, { limit: PAGE })
  const lives: string[] = []
  for (let kill = 1; kill <= KILLS; kill += 1) {
    // Some prices move between two lives, so that there is something to store at random places of the list.
    for (let moved = 0; kill > 1 && moved < OFFERS / 20; moved += 1) {
      const place = Math.floor(random() * OFFERS)
      const cents = 1_000 + Math.floor(random() * 9_000)
      list.records[place] = { ...list.records[place], api_price: `${(cents / 100).toFixed(2)}` }
    }
    const atRequest = 1 + Math.floor((random() * 1.2 * OFFERS) / PAGE)
    const laterMs = random() * 6
    let requests = 0
    const child = spawn(process.execPath, [CHILD, file, baseUrl, String(PAGE)], {
      stdio: ['ignore', 'ignore', 'inherit'],
    })
    onTestFinished(() => void child.kill('SIGKILL'))
    hooks.tamper = () => {
      requests += 1
      if (requests === atRequest) setTimeout(() => child.kill('SIGKILL'), laterMs)
    }
    await once(child, 'exit')
    lives.push(`request ${atRequest} and ${laterMs.toFixed(1)} ms`)
  }
  delete hooks.tamper

  const raw = new Connection(file, { readonly: true })
  expect(raw.pragma('integrity_check', { simple: true })).toBe('ok')
  raw.close()
  const now = { at: Date.now() }
  const world = openCatalogue({ baseUrl, dialect, clock: now, db: fileDatabase(file, () => now.at) })
  const { catalogue, db, sync, offers, queued } = world
  const { runId } = await startSync(catalogue, 'test')
  expect(await runSync(catalogue, runId), lives.join(', ')).toMatchObject({ state: 'complete' })
  // What moved on pages that a resumed run had behind it is found by the next one; after that nothing is left to find.
  expect(await sync()).toMatchObject({ state: 'complete', error: null, offersSeen: OFFERS })
  expect(await sync()).toMatchObject({
    state: 'complete',
    error: null,
    offersSeen: OFFERS,
    offersNew: 0,
    offersChanged: 0,
    offersGone: 0,
  })

  const costOf = (place: number) => parseDecimal(String(list.records[place]?.api_price), 'EUR')
  const stored = await offers()
  expect(stored.map(({ productId, costMinor }) => [productId, costMinor])).toEqual(
    Array.from({ length: OFFERS }, (_, place) => [idAt(place), costOf(place)]),
  )
  // Each change once, each from what the one before left, up to what is there now; and each queued for each store once.
  const changes = await db.query(build.select().from(offerChanges).orderBy(offerChanges.id))
  const byProduct = Map.groupBy(changes, ({ productId }) => productId)
  for (const { productId, costMinor } of stored) {
    const [listed, ...costs] = byProduct.get(productId) ?? []
    expect(listed, productId).toMatchObject({ field: 'presence', before: null, after: 'listed' })
    const seen = costs.map(({ field, before, after }) => ({ field, before, after }))
    const from = [...costs.keys()].map((at) => (at === 0 ? (seen[0]?.before ?? null) : (seen[at - 1]?.after ?? null)))
    expect(
      seen.map(({ field, before }) => ({ field, before })),
      productId,
    ).toEqual(from.map((before) => ({ field: 'cost', before })))
    if (seen.length > 0) expect(parseDecimal(seen.at(-1)?.after ?? '', 'EUR'), productId).toBe(costMinor)
    expect(seen.every(({ before, after }) => before !== after)).toBe(true)
  }
  const queuedIds = (await queued()).flat().toSorted()
  expect(queuedIds).toEqual(changes.map(({ productId }) => productId).toSorted())

  const runs = await db.query(build.select().from(syncRuns))
  expect(runs.reduce((sum, run) => sum + run.offersNew, 0)).toBe(OFFERS)
  expect(runs.reduce((sum, run) => sum + run.offersChanged, 0)).toBe(changes.length - OFFERS)
  expect(runs.filter(({ state }) => state === 'running')).toEqual([])
})
