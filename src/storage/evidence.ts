import { and, asc, desc, eq, gt, inArray, lt, ne, notInArray, sql } from 'drizzle-orm'
import type { Change } from './database.ts'
import { audit, purchaseAttempts, transitions } from './schema.ts'
import { build, change, statement } from './statement.ts'

export type Attempt = typeof purchaseAttempts.$inferSelect
export type TransitionRow = typeof transitions.$inferSelect
export type AuditRow = typeof audit.$inferInsert
export type AuditEntry = typeof audit.$inferSelect

export const attemptsOf = statement((purchaseIds: string[]) =>
  build
    .select()
    .from(purchaseAttempts)
    .where(inArray(purchaseAttempts.purchaseId, purchaseIds))
    .orderBy(asc(purchaseAttempts.at), asc(purchaseAttempts.id)),
)

export const transitionsOf = statement((purchaseIds: string[]) =>
  build
    .select()
    .from(transitions)
    .where(inArray(transitions.purchaseId, purchaseIds))
    .orderBy(asc(transitions.at), asc(transitions.id)),
)

/** When each of these purchases came into the state that it is in. One that never moved is in none of the rows. */
export const enteredAt = statement((purchaseIds: string[]) =>
  build
    .select({ purchaseId: transitions.purchaseId, at: sql<number>`max(${transitions.at})`.as('at') })
    .from(transitions)
    .where(and(inArray(transitions.purchaseId, purchaseIds), ne(transitions.before, transitions.after)))
    .groupBy(transitions.purchaseId),
)

/**
 * Purchases that came into review after an instant; one that came twice is there twice.
 *
 * @param except rows of the transition table that do not count
 */
export const reviewedSince = statement((since: number, except: readonly string[]) =>
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
    ),
)

/** When a person last let buying go on. */
export const lastUnfreeze = statement(() =>
  build.select({ at: audit.at }).from(audit).where(eq(audit.action, 'unfreeze')).orderBy(desc(audit.at)).limit(1),
)

/** What people did to one subject, oldest first. */
export const auditOf = statement((subject: string) =>
  build.select().from(audit).where(eq(audit.subject, subject)).orderBy(asc(audit.at), asc(audit.id)),
)

/** What people did to several subjects, oldest first. */
export const auditOfAll = statement((subjects: string[]) =>
  build.select().from(audit).where(inArray(audit.subject, subjects)).orderBy(asc(audit.at), asc(audit.id)),
)

export interface AuditFilter {
  /** Who did it, without the session or the token. */
  actor?: string | undefined
  action?: string | undefined
  subject?: string | undefined
  before?: string | undefined
  limit: number
}

/** The audit, newest first. */
export const listAudit = statement(({ actor, action, subject, before, limit }: AuditFilter) =>
  build
    .select()
    .from(audit)
    .where(
      and(
        // As the index has it.
        actor === undefined
          ? undefined
          : sql`substr(${audit.actor}, 1, instr(${audit.actor} || ' (', ' (') - 1) = ${actor}`,
        action === undefined ? undefined : eq(audit.action, action),
        subject === undefined ? undefined : eq(audit.subject, subject),
        before === undefined ? undefined : lt(audit.id, before),
      ),
    )
    .orderBy(desc(audit.id))
    .limit(limit),
)

export const insertAttempt = change(1, (row: typeof purchaseAttempts.$inferInsert) =>
  build.insert(purchaseAttempts).values(row),
)

export const insertTransition = change(1, (row: typeof transitions.$inferInsert) =>
  build.insert(transitions).values(row),
)

export const insertAudit = change(1, (row: AuditRow) => build.insert(audit).values(row))

/** The line of the audit, as of now, for what a person or a store asked for. */
export const audited = (
  { newId, now }: { newId: () => string; now: () => number },
  actor: string,
  action: string,
  subject: string,
  detail?: string,
): Change => insertAudit({ id: newId(), at: now(), actor, action, subject, detail: detail ?? null })
