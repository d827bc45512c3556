/** A run on the app with faults, backed up after every commit, and what is left of it after restores. */
import { isDeepStrictEqual } from 'node:util'
import { expect } from 'vitest'
import { finalStates } from '../../../src/domain/purchase.ts'
import { Failure } from '../../../src/errors.ts'
import { cancelOrder, retryPurchase, unfreeze } from '../../../src/ordering/actions.ts'
import type { CrashPoint } from '../../../src/ordering/context.ts'
import { decidePurchase } from '../../../src/ordering/decide.ts'
import { currentFreeze } from '../../../src/storage/freezes.ts'
import { countUnattached } from '../../../src/storage/restores.ts'
import { purchases } from '../../../src/storage/schema.ts'
import { build } from '../../../src/storage/statement.ts'
import { doubleChargesIn, standingCharges } from '../../support/charges.ts'
import { lineOf } from '../../support/references.ts'
import { openRestoreWorld, type RestoreWorld } from '../../support/restore-world.ts'
import { seeded } from '../../support/seeded.ts'
import { defaultDialect, type OrderLine } from '../../support/test-app.ts'
import { type CancellationRecord, recordCancellations } from './cancellations.ts'
import { type Figures, noFigures } from './figures.ts'
import { refusedOften } from './story.ts'

const SECOND = 1_000
const MINUTE = 60 * SECOND
const HOUR = 60 * MINUTE

const POINTS: CrashPoint[] = ['intending', 'intended', 'answered', 'recorded', 'pushed', 'noted']

/** What the life of a shop needs of the world that it is played in. */
export type Played = Pick<RestoreWorld, 'app' | 'handIn' | 'pass' | 'start'>

/** What the store knows of its orders, to hand them in again. */
export interface Bought {
  reference: string
  lines: OrderLine[]
  cancelled: boolean
}

interface Shop {
  bought: Bought[]
  record: CancellationRecord
}

export interface CampaignOptions {
  seed: number
  restores: number
  /** Steps of the run before the first restore. */
  steps?: number
  /** The seeded mistake: the file is put back and the service does not notice. Ends at the first fault that is found. */
  unnoticed?: boolean
  /** Where it counts. */
  figures?: Figures
}

export async function restoreCampaign(options: CampaignOptions): Promise<Figures> {
  const { seed, restores, steps = 30, unnoticed, figures = noFigures() } = options
  const chance = createChance(seed)
  // Jitter has a generator of its own: which requests meet whom must not change what happens in the shop.
  const random = seeded(seed + 1_000_000)
  const world = await openRestoreWorld({ random, dialect: dialectOf(seed), sandboxDialect: supplierOf(seed) })
  cutLists(world, seed)
  const bought: Bought[] = []
  const record = recordCancellations(world.app)
  const skus = await stockUp(world)
  const first = world.backups.length
  const story = await tell(world, bought, skus)
  for (let step = 0; step < steps; step += 1) await live(world, chance, { bought, record }, skus)
  const run = world.backups.slice(first)
  figures.backups += run.length
  for (let restore = 0; restore < restores; restore += 1) {
    // A restore comes at once, after some hours, or after the supplier has forgotten its idempotency keys.
    const waitMs = chance.pick([0, 2 * HOUR, 30 * HOUR, 80 * HOUR])
    const cancelled = restore % 2 === 1 ? await cancelWhileOpen(world, chance, { bought, record }, skus) : []
    if (waitMs === 0) await dieWhileBuying(world, chance, bought, skus)
    else await world.pass(waitMs, 10 * HOUR)
    const made = world.backups.length
    const bytes = chance.pick(restore === 0 ? story : cancelled.length > 0 ? cancelled : run)
    if (unnoticed) await world.copyBackUnnoticed(bytes)
    else if ((seed + restore) % 4 === 0) {
      await world.lose()
      figures.lost += 1
    } else if (chance.next() < 0.3) await world.restore(bytes)
    else if (chance.next() < 0.5) {
      figures.copiedBack += 1
      if (await world.copyBack(bytes)) figures.recognised += 1
    } else {
      figures.snapshots += 1
      await world.copyBackWithMarker(bytes)
    }
    await record.restored()
    figures.restores += 1
    if (chance.next() < 0.3) await lift(world, figures)
    await handInAgain(world, chance, { bought, record }, figures)
    await finish(world, record, figures)
    const found = await judge(world, { bought, record }, figures)
    // What a restore that is not noticed must lead to is counted in the figures; that a line is silent is the least of it.
    if (unnoticed && !isDeepStrictEqual({ ...found, silent: [] }, NO_FAULT)) break
    if (!unnoticed) expect(found, `seed ${seed}, restore ${restore + 1}`).toEqual(NO_FAULT)
    // Backups from the middle of a restore are put back too; a few of them, for the sake of memory.
    run.push(...world.backups.splice(made).filter(() => chance.next() < 0.05))
  }
  figures.charges += world.app.sandbox.world.report().charges.length
  return figures
}

/** Every second supplier has no filter by reference: there the whole list is all that can be asked. */
export function dialectOf(seed: number) {
  const dialect = defaultDialect()
  return seed % 2 === 0 ? dialect : { ...dialect, orders: { ...dialect.orders, externalOrderId: null } }
}

/** Every third supplier forgets its idempotency keys within a minute: then only the look-ups stand against buying twice. */
export function supplierOf(seed: number) {
  const dialect = dialectOf(seed)
  return seed % 3 === 0 ? { ...dialect, idempotencyMemorySeconds: MINUTE / SECOND } : dialect
}

/** Every fourth supplier gives pages of three rows, whatever was asked for; another fourth counts no more than five. */
export function cutLists({ app }: Pick<RestoreWorld, 'app'>, seed: number): void {
  const ofLists = { times: 1_000_000, match: { path: '/orders', method: 'GET' } }
  if (seed % 4 === 1) app.sandbox.faults.add({ fault: 'short-pages', most: 3, ...ofLists })
  if (seed % 4 === 3) app.sandbox.faults.add({ fault: 'capped-total', most: 5, ...ofLists })
}

export function createChance(seed: number) {
  const next = seeded(seed)
  const pick = <T>(list: readonly T[]): T => list[Math.floor(next() * list.length)] as T
  return { next, pick, whole: (from: number, to: number) => from + Math.floor(next() * (to - from + 1)) }
}
export type Chance = ReturnType<typeof createChance>

/** Four products that never run out, and money enough: what runs out here does so by a fault. */
export async function stockUp({ app }: Played): Promise<string[]> {
  const offers = (await app.offers()).slice(0, 4)
  for (const { productId } of offers) app.sandbox.world.offers.change(productId, { stock: 1_000_000 })
  app.sandbox.world.topUp(100_000_000)
  await app.ordering.checkBalance()
  return offers.map(({ sku }) => sku)
}

/** The first order of every run, which the first restore of the run is about. */
function tell(world: RestoreWorld, bought: Bought[], skus: string[]): Promise<Buffer[]> {
  const lines: [OrderLine] = [{ id: '1', sku: skus[0] as string, quantity: 2 }]
  bought.push({ reference: '1001', lines, cancelled: false })
  return refusedOften(world, '1001', lines)
}

/** One thing that happens in the life of the shop. */
export async function live(world: Played, chance: Chance, shop: Shop, skus: string[]): Promise<void> {
  const { app } = world
  const { bought } = shop
  const dice = chance.next()
  if (dice < 0.35) await buy(world, chance, bought, skus)
  else if (dice < 0.55) addFault(world, chance)
  else if (dice < 0.62) await crash(world, chance, bought, skus)
  else if (dice < 0.68) await cancel(world, chance.pick(bought), shop.record)
  else if (dice < 0.76) await retryFailed(world, shop.record)
  else if (dice < 0.8) await world.pass(2 * HOUR, 10 * MINUTE)
  await world.pass(chance.pick([SECOND, 5 * SECOND, 30 * SECOND, 3 * MINUTE]), 10 * SECOND)
  if (await currentFreeze(app.db)) await unfreeze(app.ordering, 'test')
}

export async function buy({ handIn }: Played, chance: Chance, bought: Bought[], skus: string[]): Promise<void> {
  const lines = Array.from({ length: chance.whole(1, 2) }, (_, place) => ({
    id: String(place + 1),
    sku: chance.pick(skus),
    quantity: chance.whole(1, 3),
  }))
  const one = { reference: String(1_001 + bought.length), lines, cancelled: false }
  bought.push(one)
  await handIn(one.reference, lines)
}

function addFault({ app }: Played, chance: Chance): void {
  const { faults } = app.sandbox
  const times = chance.whole(1, 2)
  const fault = chance.pick([
    ...(['answer-lost', 'error-before', 'error-after', 'out-of-stock', 'insufficient-balance'] as const),
    ...(['failed-order', 'list-lag', 'partial-keys', 'rate-limit'] as const),
  ])
  faults.add({
    fault,
    times,
    ...(fault === 'list-lag' ? { delayMs: 50 * SECOND } : {}),
    ...(fault === 'partial-keys' ? { first: 1, status: 'open' as const, delayMs: 5 * MINUTE } : {}),
    ...(fault === 'rate-limit' ? { retryAfter: 5 } : {}),
  })
}

async function crash(world: Played, chance: Chance, bought: Bought[], skus: string[]): Promise<void> {
  const { app } = world
  app.crash.at = chance.pick(POINTS)
  await buy(world, chance, bought, skus)
  await app.runUntilDeath()
  await world.start()
}

/** The last thing before a restore: an order that the supplier has charged and does not list yet. */
async function dieWhileBuying(world: RestoreWorld, chance: Chance, bought: Bought[], skus: string[]): Promise<void> {
  const { app } = world
  app.sandbox.faults.add({ fault: 'list-lag', delayMs: 50 * SECOND })
  app.crash.at = chance.pick(['answered', 'recorded'])
  await buy(world, chance, bought, skus)
  await app.runUntilDeath()
}

/**
 * An order that is refused, bought as a later generation and cancelled while it is open at the supplier.
 *
 * @returns the backups from before its last generation was planned
 */
async function cancelWhileOpen(world: RestoreWorld, chance: Chance, shop: Shop, skus: string[]): Promise<Buffer[]> {
  const { app, backups } = world
  const from = backups.length
  app.sandbox.faults.add({ fault: 'out-of-stock' })
  app.sandbox.faults.add({ fault: 'hold-open' })
  await buy(world, chance, shop.bought, skus)
  const older = backups.slice(from)
  await world.pass(2 * HOUR, 10 * MINUTE)
  await cancel(world, shop.bought.at(-1), shop.record)
  return older
}

/** What the supplier held open comes to its end. */
function settleOpenOrders({ app }: Played): void {
  const { orders } = app.sandbox.world
  for (const order of orders.known(10_000)) {
    if (order.status === 'open' && order.dueAt === null) orders.complete(order)
  }
}

export async function cancel(
  { app, handIn }: Played,
  one: Bought | undefined,
  record: CancellationRecord,
): Promise<void> {
  if (!one) return
  one.cancelled = true
  const { orderId } = await handIn(one.reference, one.lines)
  await cancelOrder(app.ordering, orderId, 'test')
  record.cancelled(one.reference)
}

async function retryFailed({ app }: Played, record: CancellationRecord): Promise<void> {
  const rows = await app.db.query(build.select().from(purchases))
  const failed = rows.find(
    (row) =>
      row.state === 'failed' &&
      rows.every(
        (other) => other.lineId !== row.lineId || other.part !== row.part || other.generation <= row.generation,
      ),
  )
  if (!failed) return
  await retryPurchase(app.ordering, failed.id, 'test').then(() => record.decided(failed.externalOrderId), unlessRefused)
}

function unlessRefused(error: unknown): void {
  if (!(error instanceof Failure) || error.code !== 'conflict') throw error
}

/** A person lets buying go on as soon as that is possible, before any store has handed in anything. */
async function lift(world: RestoreWorld, figures: Figures): Promise<void> {
  const { app } = world
  for (let minute = 0; minute < 10 && (await currentFreeze(app.db)); minute += 1) {
    await world.pass(MINUTE, MINUTE)
    await unfreeze(app.ordering, 'test').then(() => (figures.lifted += 1), unlessRefused)
  }
  await world.pass(HOUR, 20 * MINUTE)
}

/** The store hands in all of its orders, in any order and over some minutes, and cancels again what it has cancelled. */
async function handInAgain(world: Played, chance: Chance, { bought, record }: Shop, figures: Figures): Promise<void> {
  for (const one of bought.toSorted(() => chance.next() - 0.5)) {
    const { created } = await world.handIn(one.reference, one.lines)
    if (created) figures.handedInAgain += 1
    if (one.cancelled) await cancel(world, one, record)
    if (chance.next() < 0.2) await world.pass(MINUTE, 20 * SECOND)
  }
  await world.pass(10 * MINUTE, 30 * SECOND)
}

/** Until every purchase is final; a person decides what waits for one. */
export async function finish(
  world: Played,
  record: CancellationRecord,
  figures: Pick<Figures, 'lifted' | 'decided'>,
): Promise<void> {
  const { app } = world
  settleOpenOrders(world)
  for (let round = 0; round < 60; round += 1) {
    const rows = await app.db.query(build.select().from(purchases))
    const open = rows.filter((row) => !finalStates.includes(row.state))
    const [unattached] = await app.db.query(countUnattached())
    if (open.length === 0 && unattached?.total === 0 && !(await currentFreeze(app.db))) return
    for (const row of open.filter(({ state }) => state === 'review')) {
      const reason = 'no better evidence'
      const decision = row.supplierOrderId === null ? ({ type: 'close' } as const) : ({ type: 'hand_over' } as const)
      await decidePurchase(app.ordering, row.id, decision, { actor: 'test', reason }).then(() => {
        figures.decided += 1
        if (decision.type === 'hand_over') record.decided(row.externalOrderId)
      }, unlessRefused)
    }
    if (await currentFreeze(app.db)) {
      await unfreeze(app.ordering, 'test').then(() => (figures.lifted += 1), unlessRefused)
    }
    await world.pass(20 * MINUTE, MINUTE)
  }
  const rows = await app.db.query(build.select().from(purchases))
  const stuck = rows.filter((row) => !finalStates.includes(row.state))
  expect(
    stuck.map(({ state, holdReason, note }) => `${state} ${holdReason} ${note}`),
    'purchases that do not end',
  ).toEqual([])
}

interface Found {
  /** Line parts for which more than one charge stands. */
  twice: string[]
  /** Keys at the shop that were not issued for their line. */
  foreign: string[]
  /** Lines that got more keys than were ordered. */
  tooMany: { line: string; quantity: number }[]
  /** Lines with units of which neither keys nor a failure came, with how many did. */
  silent: { line: string; quantity: number; reported: number }[]
  /** References of charges that have no purchase. */
  orphans: (string | null)[]
  /** Whether the supplier's sums close. */
  closes: boolean
  /** Keys that the store got although it had cancelled, in words. */
  cancelled: string[]
}

export const NO_FAULT: Found = {
  twice: [],
  foreign: [],
  tooMany: [],
  silent: [],
  orphans: [],
  closes: true,
  cancelled: [],
}

/** What the sandbox's ledger and the shop's own record say, whatever Quayside believes. */
export async function judge(
  { app }: Played,
  { bought, record }: Shop,
  figures: Pick<Figures, 'doubleCharges'>,
): Promise<Found> {
  const { charges, refunds, keysIssued, closes } = app.sandbox.world.report()
  // Nothing is written off here: the supplier gives back what it failed, so each part has one charge that stands.
  const twice = doubleChargesIn(standingCharges({ charges, refunds }), new Set()).map(({ part }) => part)
  figures.doubleCharges += twice.length

  const issued = new Set(
    Object.entries(keysIssued).flatMap(([reference, keys]) => keys.map((key) => `${lineOf(reference)} ${key}`)),
  )
  // A callback may come again after a restore, under another id: the same keys for the same line.
  const atShop = new Map([...app.shop.keys()].map(([line, keys]) => [line, new Set(keys)]))
  const foreign = [...atShop].flatMap(([line, keys]) => [...keys].filter((key) => !issued.has(`${line} ${key}`)))
  const ordered = bought.flatMap(({ reference, lines }) =>
    lines.map(({ id, quantity = 1 }) => ({ line: `${reference}/${id}`, quantity })),
  )
  const tooMany = ordered.filter(({ line, quantity }) => (atShop.get(line)?.size ?? 0) > quantity)
  const failures = Map.groupBy(app.callbacks('line.failed'), ({ data }) => `${data.reference}/${data.line}`)
  const silent = ordered
    .map(({ line, quantity }) => {
      const failed = (failures.get(line) ?? []).reduce((sum, { data }) => sum + Number(data.quantity), 0)
      return { line, quantity, reported: (atShop.get(line)?.size ?? 0) + failed }
    })
    .filter(({ quantity, reported }) => reported < quantity)
  // Every charge has its purchase again, or a person has decided on it.
  const rows = await app.db.query(build.select().from(purchases))
  const known = new Set(rows.flatMap((row) => [row.supplierOrderId, ...row.ordersSeen]))
  const kept = app.sandbox.world.orders
    .known(10_000)
    .filter(({ status }) => status === 'open' || status === 'completed')
  const orphans = kept.filter(({ id }) => !known.has(id)).map(({ externalOrderId }) => externalOrderId)
  return { twice, foreign, tooMany, silent, orphans, closes, cancelled: record.broken() }
}
