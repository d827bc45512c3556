/**
 * Outside the promises: the supplier forgets keys at once and lists orders far too late, or refuses what it has run.
 * Then what was charged is unknown, and two charges for one part do happen. What is promised here is less: each is
 * noticed, buying stops and people are alerted, within one sweep of the instant at which the list shows both orders.
 */
import { doubleChargesIn } from '../../support/charges.ts'
import { partOf } from '../../support/references.ts'
import { createChance } from './chance.ts'
import type { Fault } from './fault.ts'
import { shortPages } from './fault-supplier.ts'
import type { Operator } from './operator.ts'
import type { Plan } from './plan.ts'
import { standingCharges, writtenOffBy } from './verdict.ts'
import { HOUR, MINUTE, shipped, type World } from './world.ts'

const forgetful: Fault = {
  id: 'keys and list',
  what: 'keys are forgotten at once, and the list is behind by 10 to 30 minutes',
  prepare: (settings) => {
    settings.supplier.idempotencyMemorySeconds = 0
  },
  begin: ({ world, chance, fired }) => {
    world.lag.leastMs = 10 * MINUTE
    world.lag.mostMs = 30 * MINUTE
    const hook = (trip: { key: string | undefined; answer: string }): void => {
      if (trip.key === undefined || !chance.odds(0.7)) return
      trip.answer = 'silence'
      fired()
    }
    world.road.hooks.add(hook as Parameters<typeof world.road.hooks.add>[0])
    return () => {
      world.road.hooks.delete(hook as Parameters<typeof world.road.hooks.add>[0])
      world.lag.leastMs = 0
      world.lag.mostMs = world.lag.usualMs
    }
  },
}

const lying: Fault = {
  id: 'refusals',
  what: 'what has run is refused, as out of stock',
  begin: ({ world, chance, fired }) => {
    const hook: Parameters<typeof world.road.hooks.add>[0] = (trip) => {
      if (trip.key === undefined || !chance.odds(0.5)) return
      fired()
      trip.changes.push((given) => ({
        ...given,
        status: 409,
        body: Buffer.from('{"success":false,"error":{"code":"out_of_stock","message":"None left."}}'),
      }))
    }
    world.road.hooks.add(hook)
    return () => void world.road.hooks.delete(hook)
  },
}

/** Draws the plan of a seed of the second campaign. */
export function outsidePlanOf(seed: number): Plan {
  const chance = createChance(seed, 'outside')
  const spanMs = chance.between(30, 90) * MINUTE
  const fault = chance.pick([forgetful, forgetful, lying])
  const settings: Plan['settings'] = {
    store: 'backend',
    dialect: { ...shipped, quantityMax: 3 },
    supplier: {},
    policy: {},
    balanceMinor: 5_000_000,
    offers: 4,
    listLagMs: 0,
    every: { balanceMs: HOUR, sweepMs: SWEEP_MS, syncMs: 12 * HOUR },
  }
  fault.prepare?.(settings, chance)
  const chosen = chance.odds(0.5) ? [fault, shortPages] : [fault]
  return {
    settings,
    spanMs,
    story: undefined,
    faults: chosen.map((one) => ({ fault: one, fromMs: 0, spanMs })),
    // The operator does not decide before the report is there.
    temper: { everyMs: 40 * MINUTE, patienceMs: HOUR, retries: 0 },
  }
}

const SWEEP_MS = 15 * MINUTE
/** A sweep itself takes a moment. */
const SLACK_MS = 30_000

export interface Detection {
  /** Charges of a part beyond one, and beyond those that the operator ordered by a write-off. */
  outside: number
  /** Those that were recorded as a discrepancy, with buying frozen and an alert for people, within one sweep. */
  outsideDetected: number
}

export function detectionOf(world: World, operator: Operator): Detection {
  const { supplier, host, log } = world
  const connection = host.connection()
  const reported = connection.prepare<[string], { foundAt: number | null }>(
    `select min(found_at) as foundAt from discrepancies where kind = 'double_charge' and supplier_order_id = ?`,
  )
  const alerted = connection.prepare<[string, number]>(
    `select 1 from outbox where kind = 'alert' and type = ? and created_at <= ? limit 1`,
  )
  const shownFrom = (id: string): number => {
    const { hiddenUntil = 0, createdAt = 0 } = supplier.world.orders.get(id) ?? {}
    return Math.max(hiddenUntil, createdAt)
  }
  const result: Detection = { outside: 0, outsideDetected: 0 }
  const standing = standingCharges(world, operator)
  const parts = Map.groupBy(standing, ({ externalOrderId }) => partOf(externalOrderId))
  for (const { part, charges, meant } of doubleChargesIn(standing, writtenOffBy(operator))) {
    const extra = charges - meant
    const ids = (parts.get(part) ?? []).map(({ orderId }) => orderId)
    const limit = Math.max(...ids.map(shownFrom)) + SWEEP_MS + SLACK_MS
    const isAlerted = ['double_charge', 'freeze'].every((type) => alerted.get(type, limit) !== undefined)
    const found = ids.filter((id) => (reported.get(id)?.foundAt ?? Number.POSITIVE_INFINITY) <= limit)
    const detected = isAlerted ? Math.min(extra, found.length) : 0
    result.outside += extra
    result.outsideDetected += detected
    if (detected < extra)
      log.add('verdict', 'not noticed in time', { part, orders: ids, found: found.length, isAlerted })
  }
  return result
}
