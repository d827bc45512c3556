/** One seed, from an empty database to the verdict. */
import { type Customers, createCustomers } from './customers.ts'
import { watchEntitled } from './entitled.ts'
import type { Fault, Scene } from './fault.ts'
import { faults } from './faults.ts'
import { openMarket, orderOneMore, PURCHASES_MIN } from './market.ts'
import { createOperator, type Operator } from './operator.ts'
import { type Detection, detectionOf, outsidePlanOf } from './outside.ts'
import { type Plan, planOf } from './plan.ts'
import { startShopSender } from './shop-sender.ts'
import { createShoppers } from './shoppers.ts'
import { createSupervisor } from './supervisor.ts'
import { watchUnlisted } from './unlisted.ts'
import { unfinished, type Verdict, verdictOf } from './verdict.ts'
import { createWatch } from './watch.ts'
import { HOUR, MINUTE, openWorld, type StoreKind, settleIn, type World } from './world.ts'

/** After the faults have ended, everything must come to its end within this time. */
const CALM_MS = 3 * HOUR
/** The operator retries for so long: what is retried last may wait for a cap, and for a look of the operator. */
const RETRIES_MS = HOUR
/** Once everything has, two looks of the operator and four sweeps later nothing new is to be expected. */
const AFTERWARDS_MS = HOUR
/** Shoppers may change their mind for so long after the faults. */
const WHIMS_MS = 10 * MINUTE
/** One seed in so many is watched for the whole time all the same. */
const WATCHED_EVERY = 10
/** A seed in which less goes wrong proves little. */
export const FIRED_MIN = 2

export interface Played extends Verdict, Detection {
  seed: number
  digest: string
  tail: string[]
  store: StoreKind
  purchases: number
  decisions: number
  freezes: number
  /** Faults that did something. */
  fired: string[]
}

export interface Playing {
  /** Takes every line of the event log. */
  write?: ((line: string) => void) | undefined
  /** What sells, instead of what the seed says. */
  store?: StoreKind | undefined
}

/** Plays a seed of the campaign inside the promises. */
export const play = (seed: number, { write, store }: Playing = {}): Promise<Played> =>
  playPlan(seed, planOf(seed, store), false, write)

/** Plays a seed of the campaign outside of them, where double charges must be noticed. */
export const playOutside = (seed: number, { write }: Playing = {}): Promise<Played> =>
  playPlan(seed, outsidePlanOf(seed), true, write)

async function playPlan(seed: number, plan: Plan, isOutside: boolean, write?: (line: string) => void): Promise<Played> {
  const world = await openWorld(seed, plan.settings, write)
  const { timeline, log, chance } = world
  log.add('plan', 'seed', {
    seed,
    story: plan.story?.id,
    ...(world.shop && { store: plan.settings.store }),
    faults: plan.faults.map(({ fault, fromMs, spanMs }) => [fault.id, fromMs, spanMs]),
  })
  const supervisor = createSupervisor(world)
  const watch = createWatch(world)
  const unlisted = watchUnlisted(world)
  const entitled = watchEntitled(world, watch, unlisted)
  await settleIn(world)
  let mostPurchases = 0
  world.host.deaths.add(() => {
    mostPurchases = Math.max(mostPurchases, purchasesIn(world))
  })
  const { shop } = world
  const customers = shop ? createShoppers(world, shop, timeline.now() + plan.spanMs + WHIMS_MS) : createCustomers(world)
  if (shop) startShopSender(world, shop, watch.violate)
  shop?.trouble.begin()
  const operator = createOperator(world, plan.temper)
  const fired = new Set<string>()
  const startAt = timeline.now()
  const settleMarket = openMarket({ world, customers, spanMs: plan.spanMs })
  const sceneOf = ({ id }: Fault, spanMs: number, happened: () => void): Scene => ({
    world,
    supervisor,
    customers,
    watch,
    spanMs,
    chance: chance.named(id),
    fired: happened,
  })
  const endStory = plan.story?.begin(sceneOf(plan.story, plan.spanMs, () => {}))
  for (const { fault, fromMs, spanMs } of plan.faults) {
    const scene = sceneOf(fault, spanMs, () => void fired.add(fault.id))
    timeline.after(fromMs, () => begin(world, fault, scene))
    // Faults that nothing runs into prove nothing: one more order comes.
    timeline.after(fromMs + spanMs / 2, () => {
      if (!fired.has(fault.id)) orderOneMore(scene)
    })
  }
  timeline.after(plan.spanMs * 0.7, () => {
    for (let count = purchasesIn(world); count < PURCHASES_MIN; count += 1) {
      orderOneMore({ world, customers, chance: chance.named('more') })
    }
  })
  timeline.after(plan.spanMs * 0.8, () => {
    if (isOutside || fired.size >= FIRED_MIN) return
    // Nothing runs into a fault while the spend caps hold every purchase.
    operator.letPass()
    const spanMs = plan.spanMs * 0.2
    for (const fault of faults.filter(({ id }) => ALWAYS.includes(id))) {
      begin(
        world,
        fault,
        sceneOf(fault, spanMs, () => void fired.add(fault.id)),
      )
    }
  })
  // Nothing may be under way any more that could run into them, and one order may pass between them.
  for (const share of [0.8, 0.85, 0.9, 0.95]) {
    timeline.after(plan.spanMs * share, () => {
      if (isOutside || fired.size >= FIRED_MIN) return
      orderOneMore({ world, customers, chance: chance.named(`last ${share}`) })
    })
  }
  await timeline.runUntil(startAt + plan.spanMs + 1)
  endStory?.()
  shop?.trouble.end()
  settleMarket()
  log.add('plan', 'calm')
  operator.endRetries(timeline.now() + RETRIES_MS, timeline.now() + CALM_MS)
  await calm(world, customers, operator)
  const verdict = verdictOf({ world, customers, operator, watch, entitled, unlisted })
  const detection = isOutside ? detectionOf(world, operator) : { outside: 0, outsideDetected: 0 }
  const result: Played = {
    seed,
    ...verdict,
    ...detection,
    digest: log.digest(),
    tail: log.tail(),
    store: plan.settings.store,
    // A shop's order that a restore took out, and that is cancelled by then, is not taken again.
    purchases: Math.max(mostPurchases, purchasesIn(world), shop?.facts.everPaid() ?? 0),
    decisions: operator.counts.decisions,
    freezes: operator.counts.unfreezes,
    fired: [...fired],
  }
  world.close()
  return result
}

function purchasesIn({ host }: World): number {
  const counted = host.connection().prepare<[], { total: number }>('select count(*) as total from purchases').get()
  return counted?.total ?? 0
}

/** Faults that happen even where hardly anything runs into them. */
const ALWAYS: readonly string[] = ['F1', 'F23', 'F26']

function begin({ timeline, log }: World, fault: Fault, scene: Scene): void {
  log.add('fault', 'begins', { id: fault.id })
  const end = fault.begin(scene)
  timeline.after(scene.spanMs, () => {
    log.add('fault', 'ends', { id: fault.id })
    end()
  })
}

/** Lets everything come to its end. */
async function calm(world: World, customers: Customers, operator: Operator): Promise<void> {
  const { timeline, seed } = world
  const until = timeline.now() + CALM_MS
  let overSince = Number.POSITIVE_INFINITY
  while (timeline.now() < until && timeline.now() - overSince < AFTERWARDS_MS) {
    // Orders that fail take their stock with them: what is tried again needs more.
    for (const { id, localStock, providerStock } of world.supplier.world.offers.list({}, 0, 100).items) {
      if (localStock + providerStock < STOCK) world.supplier.changeOffer(id, { stock: STOCK })
    }
    await timeline.runUntil(Math.min(until, timeline.now() + LOOK_MS))
    const { open, silent } = unfinished(world, customers, operator)
    const isOver = open.length + silent.length === 0 && seed % WATCHED_EVERY !== 0
    overSince = isOver ? Math.min(overSince, timeline.now()) : Number.POSITIVE_INFINITY
  }
}

const LOOK_MS = 10 * MINUTE
/** More than any order of a seed. */
const STOCK = 500
