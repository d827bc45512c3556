/** The life of a shop on a PostgreSQL server that is put back to older states, each in one of four ways. */
import { expect } from 'vitest'
import { seeded } from '../../support/seeded.ts'
import {
  type Bought,
  buy,
  cancel,
  createChance,
  cutLists,
  dialectOf,
  finish,
  judge,
  live,
  NO_FAULT,
  stockUp,
  supplierOf,
} from './campaign.ts'
import { recordCancellations } from './cancellations.ts'
import type { Figures } from './figures.ts'
import { openServerWorld, type Server, type ServerWorld, type Way } from './server-world.ts'

const MINUTE = 60_000
const HOUR = 60 * MINUTE

/** What campaigns of rollbacks have counted; filled while they run. */
export interface RollbackFigures
  extends Pick<Figures, 'restores' | 'charges' | 'doubleCharges' | 'handedInAgain' | 'lifted' | 'decided'> {
  /** By the way in which an older state came back. */
  ways: Record<Way, number>
  /** Rollbacks that lacked an order of the supplier, and those of them that were recognised before anything was sent. */
  lacking: number
  recognised: number
  /** Workers that knew nothing of the older files of their server. */
  outlived: number
  /** Requests to buy that left before the newest orders were compared. */
  early: number
}

export const noRollbackFigures = (): RollbackFigures => ({
  restores: 0,
  ways: { files: 0, snapshot: 0, promoted: 0, 'old file': 0 },
  lacking: 0,
  recognised: 0,
  outlived: 0,
  early: 0,
  charges: 0,
  doubleCharges: 0,
  handedInAgain: 0,
  lifted: 0,
  decided: 0,
})

/** The last rollback is the one to the old file: from then on the server is no more. */
export async function rollbackCampaign({
  seed,
  rollbacks,
  server,
  figures,
}: {
  seed: number
  rollbacks: number
  server: Server
  figures: RollbackFigures
}): Promise<void> {
  const chance = createChance(seed)
  const random = seeded(seed + 1_000_000)
  const suppliers = { dialect: dialectOf(seed), sandboxDialect: supplierOf(seed) }
  const world = await openServerWorld(server, `run_${seed}`, { random, ...suppliers })
  const { app } = world
  cutLists(world, seed)
  const bought: Bought[] = []
  const shop = { bought, record: recordCancellations(app) }
  const skus = await stockUp(world)
  await buy(world, chance, bought, skus)
  for (let step = 0; step < 3; step += 1) await live(world, chance, shop, skus)
  const oldFile = await world.keepFile()
  await world.moveToServer()
  const copies: Awaited<ReturnType<ServerWorld['copy']>>[] = []
  for (let rollback = 1; rollback <= rollbacks; rollback += 1) {
    const isLast = rollback === rollbacks
    for (let step = 0; step < 2; step += 1) await live(world, chance, shop, skus)
    // What a copy has as planned, or as put off by the supplier, is bought a moment later.
    await buy(world, chance, bought, skus)
    if (chance.next() < 0.5) {
      app.sandbox.faults.add({ fault: 'rate-limit', retryAfter: 20, match: { path: '/orders', method: 'POST' } })
      await app.settle()
    }
    if (!isLast) copies.push(await world.copy(chance.pick(['stopped', 'running'])))
    // What is lost may be that alone.
    if (chance.next() < 0.5) await live(world, chance, shop, skus)
    await untilBought(world, () => buy(world, chance, bought, skus))
    // At once, or after the supplier has forgotten its idempotency keys.
    await world.pass(chance.pick([MINUTE, 30 * HOUR, 80 * HOUR]), 10 * HOUR)
    const copy = chance.pick([copies.at(-1), copies.at(-2) ?? copies[0], chance.pick(copies)])
    const asItIs = copy?.how === 'running' ? 'snapshot' : 'files'
    const way: Way = isLast ? 'old file' : chance.pick([asItIs, asItIs, asItIs, 'promoted'])
    const outlives = !isLast && chance.next() < 0.5
    const early = chance.next() < 0.5 ? bought.slice(-3) : []
    const again = async () => {
      for (const { reference, lines } of early) await world.handIn(reference, lines)
    }
    const to = isLast ? oldFile : copy
    if (!to) throw new Error('nothing was copied')
    const { recognised, lacks } = await world.rollBack(to, way, { outlives, again })
    figures.restores += 1
    figures.ways[way] += 1
    if (lacks) figures.lacking += 1
    if (lacks && recognised) figures.recognised += 1
    if (outlives) figures.outlived += 1
    await shop.record.restored()
    if (!isLast && early.length === 0) {
      // From within the questions of a restore, with an order that came meanwhile.
      await world.pass(10 * MINUTE, MINUTE)
      await buy(world, chance, bought, skus)
      copies.push(await world.copy('running'))
    }
    for (const one of bought.toSorted(() => chance.next() - 0.5)) {
      const { created } = await world.handIn(one.reference, one.lines)
      if (created) figures.handedInAgain += 1
      if (one.cancelled) await cancel(world, one, shop.record)
    }
    await world.pass(10 * MINUTE, 30_000)
    await finish(world, shop.record, figures)
    const found = await judge(world, shop, figures)
    figures.early += world.early()
    const what = `seed ${seed}, rollback ${rollback}: ${way}`
    expect({ ...found, early: world.early(), unrecognised: lacks && !recognised }, what).toEqual({
      ...NO_FAULT,
      early: 0,
      unrecognised: false,
    })
  }
  for (const { data, folder } of copies) for (const one of [data, folder]) server.drop(one)
  figures.charges += app.sandbox.world.report().charges.length
}

/** Until the supplier has taken an order that no copy knows as bought. */
async function untilBought(world: ServerWorld, buyMore: () => Promise<unknown>): Promise<void> {
  const before = world.supplied()
  for (let tries = 0; tries < 10 && world.supplied() === before; tries += 1) {
    if (tries > 0) await buyMore()
    await world.pass(2 * MINUTE, 20_000)
  }
  expect(world.supplied()).toBeGreaterThan(before)
}
