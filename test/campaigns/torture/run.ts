/**
 * A torture run: real processes, everything that can break breaking, and at the end the books.
 *
 * Faults stop after the given time. Then the service is left alone until nothing moves any more, or for as long as the
 * longest wait that it may take, and the supplier's ledger is held against the store's record.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { breakDownUntil, superviseUntil, troubleServersUntil, wardsOf } from './breakdown.ts'
import { type Chance, createChance } from './chance.ts'
import { type Claimed, lookAtClaims, noClaims, placeOf } from './claims.ts'
import type { ListedClaim } from './claims-verdict.ts'
import { cancelWhileOpen, type PlannedOrder, planOrders, purchasesOf, type Shopping, shop } from './customers.ts'
import type { ClaimEntry, Delivery, PurchaseEntry } from './duty.ts'
import { boughtOnHold, type Failovers, failOver, holdWatch, noFailovers } from './failover.ts'
import { type Forgeries, forge } from './forger.ts'
import { crashPoints } from './lives.ts'
import { makeMischief, settleOpenOrders } from './mischief.ts'
import { lookAround, newShift, type Shift } from './operator.ts'
import { calmDown } from './rest.ts'
import { CERTAIN_MS, ORDER_CAP, ORDER_MS, openScene, type Scene, TIMES } from './scene.ts'
import { type Deaths, noDeaths } from './supervise.ts'
import { judge, type Verdict } from './verdict.ts'

export interface TortureOptions {
  purchases: number
  seconds: number
  seed: number
  /** Name of a mistake that the service is started with. */
  mistake?: string | undefined
  /** Of the service on PostgreSQL, half of them `web` and half `worker`; undefined: one process on a file. */
  processes?: number | undefined
  /** How long the service may take to finish once the faults are over. */
  patienceSeconds: number
  folder: string
  onProgress?: (progress: Progress) => void
}

export interface Progress {
  elapsedSeconds: number
  phase: 'faults' | 'calm'
  taken: number
  orders: number
  closed: number
  kills: number
  reviews: number
  /** What is not over yet, once the faults are. */
  moving: string[]
}

export interface Outcome {
  verdict: Verdict
  /** Parts of store lines that were handed in. */
  purchases: number
  deaths: Deaths
  shift: Shift
  /** Claims about delivered keys, as the service lists them at the end. */
  claims: ListedClaim[]
  forgeries: Forgeries
  /** Faults by name: the network's, the supplier's and the store's. */
  faults: Record<string, number>
  failovers: Failovers
  /** Of the service, from the start of its process until it listened. */
  startsMs: number[]
  /** How long it took to come to rest after the faults. */
  calmSeconds: number
  refused: string[]
}

/** A forged or replayed delivery comes this often. */
const FORGE_MS = 700
/** The person on duty looks this often. */
const LOOK_MS = 1_000
/** Several processes whose database fails deliver most of their keys when the faults are over: customers complain as long. */
const CLAIMS_AFTER_MS = 120_000

export async function torture(options: TortureOptions): Promise<Outcome> {
  const { purchases, seconds, seed, mistake, processes, folder } = options
  const chance = createChance(seed)
  const scene = await openScene(folder, chance, { mistake, processes })
  const durationMs = seconds * 1_000
  const orders = planOrders(chance.fork('orders'), {
    purchases,
    durationMs: durationMs * 0.9,
    quantityMax: TIMES.quantityMax,
  })
  const shopping: Shopping = { taken: new Map(), refused: [], cancellations: [] }
  const forgeries: Forgeries = { sent: {}, obeyed: [] }
  const [deaths, shift, faults] = [noDeaths(), newShift(), scene.network.done]
  const wards = wardsOf(scene, deaths)
  const supplierStaff = chance.fork('supplier')
  const failovers = noFailovers()
  const [claimed, claims] = [noClaims(), chance.fork('claims')]
  let closing = false
  const closed = () => closing
  try {
    await firstStart(scene)
    scene.network.storm()
    const startedAt = performance.now()
    const over = () => performance.now() - startedAt >= durationMs
    let moving: string[] = []
    const report = progressOf({ scene, orders, shopping, deaths, shift, startedAt, over })
    const watching = watch(() => options.onProgress?.({ ...report(), moving }), closed)
    const desk = { duty: scene.duty, office: scene.office, certainAfterMs: CERTAIN_MS, reviewedAt: new Map() }
    const onDuty = everySecond(() => lookAround(desk, shift), closed)
    const claimsEnd = startedAt + durationMs + (scene.servers ? CLAIMS_AFTER_MS : 0)
    const complaints = complainUntil(claimsEnd, scene, { claimed, chance: claims, stopped: closed })
    const holding = scene.servers && everySecond(holdWatch(scene.duty, failovers), closed)
    const shoppers = shop(orders, scene, { chance: chance.fork('customers'), shopping, stopped: closed })
    // A failover that has begun is seen to its end by processes that live.
    let troubled = true
    const troubles = troubleServersUntil(over, scene, {
      chance: chance.fork('servers'),
      faults,
      failOver: (to) =>
        failOver(scene, failovers, { chance: chance.fork('stores'), orders, shopping, stopped: closed, to }),
    }).finally(() => {
      troubled = false
    })
    await Promise.all([
      troubles,
      superviseUntil(() => over() && !troubled, wards, chance.fork('lives')),
      breakDownUntil(over, scene, chance.fork('outages'), faults),
      makeMischief(
        { ...scene, orderMs: ORDER_MS, listLagMs: TIMES.listLagSeconds * 1_000, done: faults },
        { chance: chance.fork('mischief'), everyMs: (durationMs / purchases) * 3, slow: seconds >= 300, stopped: over },
      ),
      forge(`${scene.url}/webhooks/supplier`, scene.signature, scene.captured, {
        chance: chance.fork('forger'),
        everyMs: FORGE_MS,
        forgeries,
        stopped: over,
      }),
      everySecond(() => settleOpenOrders(scene.office, supplierStaff), over),
      cancelWhileOpen(
        orders,
        { access: scene, office: scene.office, durationMs },
        { chance: chance.fork('hasty customers'), shopping, stopped: over },
      ),
    ])
    const calmSeconds = await calmDown(scene, supplierStaff, orders, {
      patienceSeconds: options.patienceSeconds,
      wards,
      claimsMayCome: complaints.mayCome,
      onMoving: (what) => {
        moving = what
      },
    })
    const listed = await listClaims(scene)
    const verdict = await closeBooks(scene, { orders, shopping, shift, failovers, claimed, listed })
    failovers.broken.push(...boughtOnHold(failovers, await scene.office.orders()))
    closing = true
    await Promise.all([watching, onDuty, complaints.done, shoppers, holding])
    const handedIn = [...shopping.taken.values()].reduce((sum, one) => sum + purchasesOf(one, TIMES.quantityMax), 0)
    return {
      verdict,
      purchases: handedIn,
      deaths,
      shift,
      claims: listed,
      forgeries,
      faults,
      failovers,
      calmSeconds,
      startsMs: scene.services.flatMap(({ startsMs }) => startsMs),
      refused: shopping.refused,
    }
  } finally {
    closing = true
    await scene.close()
  }
}

/** Raises claims until then, and decides them until it is stopped. */
function complainUntil(
  end: number,
  scene: Scene,
  { claimed, chance, stopped }: { claimed: Claimed; chance: Chance; stopped: () => boolean },
) {
  let mayCome = true
  const look = async (): Promise<void> => {
    const mayRaise = performance.now() < end
    await lookAtClaims(scene, claimed, { chance, mayRaise }).catch(() => {})
    mayCome = mayRaise
  }
  return { mayCome: () => mayCome, done: everySecond(look, stopped) }
}

/** One life without a fault, until the catalogue is there. */
async function firstStart({ services, url, token }: Scene): Promise<void> {
  const ready = await Promise.all(services.map((service) => service.start().ready))
  if (ready.includes(false)) throw new Error(`the service does not start:\n${lastLines(services)}`)
  for (const end = performance.now() + 40_000; performance.now() < end; await sleep(100)) {
    const answer = await fetch(`${url}/api/v1/listings?limit=10`, { headers: { authorization: `Bearer ${token}` } })
    const { data } = (await answer.json()) as { data?: { items: unknown[] } }
    if ((data?.items.length ?? 0) > 0) return
  }
  throw new Error('the service does not read the catalogue')
}

const lastLines = (services: Scene['services']): string =>
  services.map((service) => service.lastLines().join('\n')).join('\n\n')

async function listClaims({ duty }: Scene): Promise<ListedClaim[]> {
  const purchases = await duty.all<PurchaseEntry>('/purchases')
  const references = new Map(purchases.map(({ id, externalOrderId }) => [id, externalOrderId]))
  const claims = await duty.all<ClaimEntry>('/claims')
  return claims.map(({ number, state, order, purchaseId, ordinal, replacedBy }) => ({
    number,
    state,
    key: placeOf(references.get(purchaseId) ?? '', ordinal),
    line: `${order.reference}/${order.line}`,
    replacement: references.get(replacedBy ?? '') ?? null,
  }))
}

interface Books extends Pick<Watched, 'orders' | 'shopping' | 'shift'> {
  failovers: Failovers
  claimed: Claimed
  /** Claims, as the service lists them. */
  listed: ListedClaim[]
}

async function closeBooks(
  scene: Scene,
  { orders, shopping, shift, failovers, claimed, listed: claims }: Books,
): Promise<Verdict> {
  const listed = await scene.duty.all<Delivery>('/deliveries').catch((cause: unknown) => {
    throw new Error(`the service does not list its deliveries:\n${lastLines(scene.services)}`, { cause })
  })
  return judge({
    orders,
    taken: new Set(shopping.taken.keys()),
    record: scene.readRecord(),
    ledger: await scene.office.ledger(),
    sent: await scene.office.deliveries(),
    spendCap: { orderMinor: Number(ORDER_CAP) * 100, overridden: shift.overridden },
    listed,
    begun: scene.begun,
    cancellations: shopping.cancellations,
    keysDecisions: shift.keysDecisions,
    groundlessFreezes: shift.groundless,
    losses: failovers.losses,
    claims,
    decisions: claimed.decisions,
  })
}

const total = (counts: Record<string, number>): number => Object.values(counts).reduce((sum, count) => sum + count, 0)

interface Watched {
  scene: Scene
  orders: PlannedOrder[]
  shopping: Shopping
  deaths: Deaths
  shift: Shift
  startedAt: number
  over: () => boolean
}

const progressOf =
  ({ scene, orders, shopping, deaths, shift, startedAt, over }: Watched) =>
  (): Omit<Progress, 'moving'> => ({
    elapsedSeconds: (performance.now() - startedAt) / 1_000,
    phase: over() ? 'calm' : 'faults',
    taken: shopping.taken.size,
    orders: orders.length,
    closed: scene.readRecord().filter(({ type }) => type === 'order.closed').length,
    kills: total(deaths.kills),
    reviews: total(shift.decisions),
  })

async function everySecond(act: () => Promise<unknown>, stopped: () => boolean): Promise<void> {
  // Whatever fails, because a party is down, is done the next time.
  for (; !stopped(); await sleep(LOOK_MS)) await act().catch(() => {})
}

async function watch(act: () => void, stopped: () => boolean): Promise<void> {
  for (; !stopped(); await sleep(LOOK_MS)) act()
}

/** What a run of the full length must have reached, so that a lazy one does not pass. */
export function missing(
  { deaths, failovers, claims, purchases }: Outcome,
  { seconds, processes, ...wanted }: TortureOptions,
): string[] {
  const reasons = purchases < wanted.purchases ? [`${purchases} of ${wanted.purchases} purchases were handed in`] : []
  if (seconds < FULL_SECONDS) return reasons
  const kills = total(deaths.kills)
  if (kills < KILLS_MIN) reasons.push(`${kills} kills, at least ${KILLS_MIN} belong to a full run`)
  // Of several workers the one that is killed is seldom the one that acts.
  const pointMin = processes === undefined ? POINT_MIN : 1
  for (const point of crashPoints) {
    const count = deaths.kills[point] ?? 0
    if (count < pointMin) reasons.push(`${count} kills at ${point}, at least ${pointMin} belong to a full run`)
  }
  for (const outcome of ['bought', 'adopted', 'refused'] as const) {
    const count = claims.filter(({ state }) => state === outcome).length
    if (count < CLAIMS_MIN) reasons.push(`${count} claims ${outcome}, at least ${CLAIMS_MIN} belong to a full run`)
  }
  const failed = failovers.losses.length
  if (processes !== undefined && failed < FAILOVERS_MIN) {
    reasons.push(`${failed} failovers, at least ${FAILOVERS_MIN} belong to a full run`)
  }
  return reasons
}

const FULL_SECONDS = 1_800
const KILLS_MIN = 200
const POINT_MIN = 3
const CLAIMS_MIN = 20
const FAILOVERS_MIN = 8
