/** The spend caps, by the supplier's ledger: what was charged in a window, less what came back of it. */
import type { LedgerEntry } from '../../../src/sandbox/ledger.ts'
import { isOurs, orderOf, partOf } from '../../support/references.ts'
import { ELSEWHERE } from './elsewhere.ts'
import type { Witnesses } from './verdict.ts'
import { HOUR, MINUTE } from './world.ts'

type Charge = LedgerEntry & { externalOrderId: string }

const HOURS = { hour: HOUR, day: 24 * HOUR } as const

/**
 * Charges that took an order, an hour or a day over its cap.
 *
 * Left out is what an operator let pass, and what no cap can know: the part of a charge above its ceiling, since a price may
 * rise after the guards ran; what was charged before a restore; the windows of a seed whose clock was moved; and what another
 * buyer ordered, which no cap of ours can hold.
 */
export function overspent({ world, operator, watch }: Witnesses): string[] {
  const caps = world.settings.policy.caps
  if (!caps) return []
  const { charges, refunds } = world.supplier.world.report()
  const backAt = new Map(refunds.map(({ orderId, at }) => [orderId, at]))
  const knownFrom = world.restoredAt === undefined ? 0 : world.restoredAt + 10 * MINUTE
  const isOverridden = (reference: string, at: number): boolean =>
    operator.overrides.some((one) => one.part === partOf(reference) && one.at <= at)
  const capped = charges.filter(
    (entry): entry is Charge =>
      isOurs(entry.externalOrderId) &&
      entry.idempotencyKey?.startsWith(ELSEWHERE) !== true &&
      entry.at >= knownFrom &&
      !isOverridden(entry.externalOrderId, entry.at),
  )
  const ceilings = ceilingsOf(world)
  const amountOf = ({ externalOrderId, amountMinor }: Charge): number =>
    Math.min(amountMinor, ceilings(externalOrderId) ?? amountMinor)
  const broken: string[] = []
  const judge = (name: keyof typeof caps, seen: Charge[]): void => {
    const cap = caps[name]
    const last = seen.at(-1)
    if (cap === null || !last) return
    const standing = seen.filter(({ orderId }) => (backAt.get(orderId) ?? Number.POSITIVE_INFINITY) > last.at)
    const sum = standing.reduce((total, charge) => total + amountOf(charge), 0)
    if (sum <= cap) return
    broken.push(`${last.externalOrderId}: ${sum} charged, the cap of the ${name} is ${cap}`)
  }
  for (const [place, { externalOrderId, at }] of capped.entries()) {
    const before = capped.slice(0, place + 1)
    judge(
      'order',
      before.filter((other) => orderOf(other.externalOrderId) === orderOf(externalOrderId)),
    )
    if (watch.clockHasMoved()) continue
    for (const name of ['hour', 'day'] as const)
      judge(
        name,
        before.filter((other) => other.at > at - HOURS[name]),
      )
  }
  for (const text of broken) world.log.add('verdict', 'overspent', { text })
  return broken
}

/** What a purchase might have cost at most, as it was shown when it was sent. */
function ceilingsOf({ host }: Witnesses['world']) {
  const row = host
    .connection()
    .prepare<[string], { most: number }>(
      'select ceiling_minor * quantity as most from purchases where external_order_id = ?',
    )
  return (reference: string): number | undefined => row.get(reference)?.most
}
