import { and, eq, isNull, lte, sql } from 'drizzle-orm'
import { claims, storeOrders } from './schema.ts'
import { build, change, statement } from './statement.ts'
import { changeSeen, page, pick, rowsBy } from './table.ts'

export type Claim = typeof claims.$inferSelect

/** Stores a claim under the next number. A key has one claim, which a unique key holds. A refused claim does not count. */
export const insertClaim = change(1, (claim: Omit<typeof claims.$inferInsert, 'number'>) =>
  build.insert(claims).values({ ...claim, number: sql`(select coalesce(max(number), 0) + 1 from claims)` }),
)

export const claimById = rowsBy(claims, ['id'])

export const claimByNumber = rowsBy(claims, ['number'])

export const claimsOfOrder = rowsBy(claims, ['orderId'], claims.number)

export const claimsOfKey = rowsBy(claims, ['purchaseId', 'ordinal'], claims.number)

export const listClaims = page(claims, [], {
  computed: { isOpen: sql<number>`(case when ${claims.endedAt} is null then 1 else 0 end)` },
})

/** Ends a claim. Stale when another person has ended it since. */
export const endClaim = changeSeen(1, claims, ['id'], isNull(claims.endedAt))

/** Claims that are open after their deadline, and about which there is no alert yet. */
export const overdueClaims = statement((now: number, limit: number) =>
  build
    .select({
      ...pick(claims, 'id', 'number', 'orderId', 'deadlineAt'),
      store: storeOrders.store,
      reference: storeOrders.reference,
    })
    .from(claims)
    .innerJoin(storeOrders, eq(storeOrders.id, claims.orderId))
    .where(
      and(
        isNull(claims.endedAt),
        lte(claims.deadlineAt, now),
        sql`not exists (select 1 from outbox where dedupe_key = 'alert:claim_overdue:' || ${claims.id})`,
      ),
    )
    .limit(limit),
)
