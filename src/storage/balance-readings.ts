import { desc, isNotNull, lt, or, sql } from 'drizzle-orm'
import { build } from './builder.ts'
import type { Change } from './database.ts'
import { balanceReadings } from './schema.ts'

/** The VIP tier as last stated: a reading without one says nothing about it. */
export const latestTier = () =>
  build
    .select({ tier: balanceReadings.tier })
    .from(balanceReadings)
    .where(isNotNull(balanceReadings.tier))
    .orderBy(desc(balanceReadings.readAt), desc(balanceReadings.id))
    .limit(1)

/** Forgets readings before an instant, and those beyond the newest `keptMax`. */
export const forgetBalanceReadings = (before: number, keptMax: number): Change => ({
  statement: build
    .delete(balanceReadings)
    .where(
      or(
        lt(balanceReadings.readAt, before),
        lt(
          balanceReadings.readAt,
          sql`(select r.read_at from ${balanceReadings} r order by r.read_at desc limit 1 offset ${keptMax - 1})`,
        ),
      ),
    ),
  rows: 'any',
})
