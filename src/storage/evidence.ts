import { and, asc, desc, eq, gt, inArray, ne, notInArray, sql } from 'drizzle-orm'
import type { Change } from './database.ts'
import { audit, balanceReadings, discrepancies, purchaseAttempts, transitions } from './schema.ts'
import { bind, bindList, build, rowInsert } from './statement.ts'

export type Attempt = typeof purchaseAttempts.$inferSelect
export type TransitionRow = typeof transitions.$inferSelect
export type BalanceReading = typeof balanceReadings.$inferSelect
export type Discrepancy = typeof discrepancies.$inferSelect
export type AuditRow = typeof audit.$inferInsert
export type AuditEntry = typeof audit.$inferSelect

const attempts = bindList((purchaseIds) =>
  build
    .select()
    .from(purchaseAttempts)
    .where(inArray(purchaseAttempts.purchaseId, purchaseIds))
    .orderBy(asc(purchaseAttempts.at), asc(purchaseAttempts.id)),
)
export const attemptsOf = (purchaseIds: string[]) => attempts(purchaseIds)

const moves = bindList((purchaseIds) =>
  build
    .select()
    .from(transitions)
    .where(inArray(transitions.purchaseId, purchaseIds))
    .orderBy(asc(transitions.at), asc(transitions.id)),
)
export const transitionsOf = (purchaseIds: string[]) => moves(purchaseIds)

/** When each of these purchases came into the state that it is in. One that never moved is in none of the rows. */
export const enteredAt = (purchaseIds: string[]) =>
  build
    .select({ purchaseId: transitions.purchaseId, at: sql<number>`max(${transitions.at})`.as('at') })
    .from(transitions)
    .where(and(inArray(transitions.purchaseId, purchaseIds), ne(transitions.before, transitions.after)))
    .groupBy(transitions.purchaseId)

/**
 * Purchases that came into review after an instant; one that came twice is there twice.
 *
 * @param except rows of the transition table that do not count
 */
export const reviewedSince = (since: number, except: readonly string[]) =>
  build
    .select({ purchaseId: transitions.purchaseId })
    .from(transitions)
    .where(
      and(
        gt(transitions.at, since),
        // Written out and not bound, so that SQLite sees that its index of the reviews alone is enough.
        sql`${transitions.after} = 'review'`,
        ne(transitions.before, 'review'),
        notInArray(transitions.row, [...except]),
      ),
    )

/** When a person last let buying go on. */
export const lastUnfreeze = () =>
  build.select({ at: audit.at }).from(audit).where(eq(audit.action, 'unfreeze')).orderBy(desc(audit.at)).limit(1)

export const listDiscrepancies = (limit: number) =>
  build.select().from(discrepancies).orderBy(desc(discrepancies.foundAt), desc(discrepancies.id)).limit(limit)

export const discrepanciesOf = (purchaseId: string) =>
  build
    .select()
    .from(discrepancies)
    .where(eq(discrepancies.subject, purchaseId))
    .orderBy(asc(discrepancies.foundAt), asc(discrepancies.id))

/** What people did to one subject, oldest first. */
export const auditOf = (subject: string) =>
  build.select().from(audit).where(eq(audit.subject, subject)).orderBy(asc(audit.at), asc(audit.id))

export const countDiscrepancies = () =>
  build
    .select({ kind: discrepancies.kind, total: sql<number>`count(*)`.as('total') })
    .from(discrepancies)
    .groupBy(discrepancies.kind)

const newestReading = build
  .select()
  .from(balanceReadings)
  .orderBy(desc(balanceReadings.readAt), desc(balanceReadings.id))
  .limit(1)
export const latestBalance = () => bind(newestReading, {})

const purchaseAttemptsRow = rowInsert(purchaseAttempts)
export const insertAttempt = (row: typeof purchaseAttempts.$inferInsert): Change => ({
  statement: purchaseAttemptsRow(row),
  rows: 1,
})

const transitionsRow = rowInsert(transitions)
export const insertTransition = (row: typeof transitions.$inferInsert): Change => ({
  statement: transitionsRow(row),
  rows: 1,
})

/** One difference is recorded once, however often it is found. */
export const insertDiscrepancy = (row: typeof discrepancies.$inferInsert): Change => ({
  statement: build.insert(discrepancies).values(row).onConflictDoNothing(),
  rows: 'any',
})

export const insertBalance = (row: typeof balanceReadings.$inferInsert): Change => ({
  statement: build.insert(balanceReadings).values(row),
  rows: 1,
})

export const insertAudit = (row: AuditRow): Change => ({ statement: build.insert(audit).values(row), rows: 1 })
