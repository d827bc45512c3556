import { and, asc, desc, eq, gt, inArray, ne, sql } from 'drizzle-orm'
import { build, rowInsert } from './builder.ts'
import type { Change } from './database.ts'
import { audit, balanceReadings, discrepancies, purchaseAttempts, transitions } from './schema.ts'

export type Attempt = typeof purchaseAttempts.$inferSelect
export type TransitionRow = typeof transitions.$inferSelect
export type BalanceReading = typeof balanceReadings.$inferSelect
export type AuditRow = typeof audit.$inferInsert

export const attemptsOf = (purchaseIds: string[]) =>
  build
    .select()
    .from(purchaseAttempts)
    .where(inArray(purchaseAttempts.purchaseId, purchaseIds))
    .orderBy(asc(purchaseAttempts.at), asc(purchaseAttempts.id))

export const transitionsOf = (purchaseIds: string[]) =>
  build
    .select()
    .from(transitions)
    .where(inArray(transitions.purchaseId, purchaseIds))
    .orderBy(asc(transitions.at), asc(transitions.id))

/** Purchases that came into review after an instant, each once. */
export const reviewedSince = (since: number) =>
  build
    .select({ purchaseId: transitions.purchaseId })
    .from(transitions)
    .where(and(gt(transitions.at, since), eq(transitions.after, 'review'), ne(transitions.before, 'review')))
    .groupBy(transitions.purchaseId)

/** When a person last let buying go on. */
export const lastUnfreeze = () =>
  build.select({ at: audit.at }).from(audit).where(eq(audit.action, 'unfreeze')).orderBy(desc(audit.at)).limit(1)

export const listDiscrepancies = (limit: number) =>
  build.select().from(discrepancies).orderBy(desc(discrepancies.foundAt), desc(discrepancies.id)).limit(limit)

export const countDiscrepancies = () =>
  build
    .select({ kind: discrepancies.kind, total: sql<number>`count(*)`.as('total') })
    .from(discrepancies)
    .groupBy(discrepancies.kind)

export const latestBalance = () =>
  build.select().from(balanceReadings).orderBy(desc(balanceReadings.readAt), desc(balanceReadings.id)).limit(1)

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
