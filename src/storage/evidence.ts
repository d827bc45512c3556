import { and, desc, eq, gt, inArray, ne, notInArray, sql } from 'drizzle-orm'
import type { Change } from './database.ts'
import { audit, purchaseAttempts, transitions } from './schema.ts'
import { build, positionIn, statement } from './statement.ts'
import { insertInto, page, rowsBy } from './table.ts'

export type Attempt = typeof purchaseAttempts.$inferSelect
export type TransitionRow = typeof transitions.$inferSelect
export type AuditEntry = typeof audit.$inferSelect

export const attemptsOf = rowsBy(purchaseAttempts, ['purchaseId in'], purchaseAttempts.at, purchaseAttempts.id)

export const transitionsOf = rowsBy(transitions, ['purchaseId in'], transitions.at, transitions.id)

/** When each of these purchases entered its present state. A purchase that is still in its first state has no row. */
export const enteredAt = statement((purchaseIds: string[]) =>
  build
    .select({ purchaseId: transitions.purchaseId, at: sql<number>`max(${transitions.at})`.as('at') })
    .from(transitions)
    .where(and(inArray(transitions.purchaseId, purchaseIds), ne(transitions.before, transitions.after)))
    .groupBy(transitions.purchaseId),
)

/**
 * Purchases that came into review after an instant. A purchase that came into review twice is listed twice.
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
        // SQLite uses the partial index of reviews only where the word is written out, and not bound.
        sql`${transitions.after} = 'review'`,
        ne(transitions.before, 'review'),
        notInArray(transitions.row, [...except]),
      ),
    ),
)

/** When a person last lifted a freeze. */
export const lastUnfreeze = statement(() =>
  build.select({ at: audit.at }).from(audit).where(eq(audit.action, 'unfreeze')).orderBy(desc(audit.at)).limit(1),
)

/** What people did to one subject, oldest first. */
export const auditOf = rowsBy(audit, ['subject'], audit.at, audit.id)

/** What people did to several subjects, oldest first. */
export const auditOfAll = rowsBy(audit, ['subject in'], audit.at, audit.id)

/** The name of an actor without the session or token behind it, as in the index. */
const actorName = sql<string>`substr(${audit.actor}, 1, ${positionIn(sql`${audit.actor} || ' ('`, sql`' ('`)} - 1)`

/** The audit, newest first. The filter `actor` is a name. */
export const listAudit = page(audit, ['action', 'subject'], { computed: { actor: actorName } })

/** Names in the audit, each with its newest entry. It goes from name to name in the index. @param limit how many names are looked at */
export const auditActors = statement(
  (limit: number) => sql<{ name: string; lastAt: number }>`
    with recursive names (name) as (
      select * from (select ${actorName} from audit order by 1 limit 1) lowest
      union all
      select (select ${actorName} from audit where ${actorName} > names.name order by 1 limit 1) from names where names.name is not null
    )
    select name, (select at from audit where ${actorName} = name order by id desc limit 1) as last_at
    from (select name from names where name is not null limit ${limit}) named
    order by last_at desc`,
)

export const insertAttempt = insertInto(purchaseAttempts)

export const insertTransition = insertInto(transitions)

export const insertAudit = insertInto(audit)

/** Records in the audit, as of now, what a person or a store asked for. */
export const audited = (
  { newId, now }: { newId: () => string; now: () => number },
  actor: string,
  action: string,
  subject: string,
  detail?: string,
): Change => insertAudit({ id: newId(), at: now(), actor, action, subject, detail: detail ?? null })
