import { desc, isNull, lt, or, sql } from 'drizzle-orm'
import { consoleLinks, consoleSessions } from './schema.ts'
import { build, change, statement } from './statement.ts'
import { changeBy, columnsBy, deleteBy, insertInto, rowsBy, stampOnce } from './table.ts'

export type LinkRow = typeof consoleLinks.$inferSelect

export const linkByDigest = rowsBy(consoleLinks, ['digest'])

export const insertLink = insertInto(consoleLinks)

/** Links that are not used and have not ended. */
export const openLinks = rowsBy(consoleLinks, ['endsAt >'])

/** Deletes a link, which uses it up. The commit fails with `StaleWrite` when the link has ended or is deleted already. */
export const redeemLink = deleteBy(consoleLinks, ['digest', 'endsAt >'], 1)

export const sessionByDigest = rowsBy(consoleSessions, ['digest'])

/** Sessions that have not ended, newest first. */
export const openSessions = columnsBy(
  consoleSessions,
  ['id', 'name', 'role', 'createdAt', 'seenAt', 'endsAt'],
  [isNull(consoleSessions.revokedAt), 'endsAt >'],
  desc(consoleSessions.id),
)

/** When each person was last seen, in each role; also those whose sessions have ended. */
export const peopleSeen = statement(() =>
  build
    .select({
      name: consoleSessions.name,
      role: consoleSessions.role,
      seenAt: sql<number>`max(${consoleSessions.seenAt})`.as('seen_last'),
    })
    .from(consoleSessions)
    .groupBy(consoleSessions.name, consoleSessions.role),
)

export const insertSession = insertInto(consoleSessions)

/** Notes the last use of a session and its later end. A session that was revoked meanwhile stays as it is. */
export const prolongSession = changeBy('any', consoleSessions, ['id', isNull(consoleSessions.revokedAt)])

export const revokeSession = stampOnce('any', consoleSessions, ['id'], 'revokedAt')

/** Ends all sessions under a person's name. */
export const revokeSessionsOf = stampOnce('any', consoleSessions, ['name'], 'revokedAt')

export const revokeAllSessions = stampOnce('any', consoleSessions, [], 'revokedAt')

/** Forgets a person: every session under the name, open or ended. */
export const dropSessionsOf = deleteBy(consoleSessions, ['name'])

/** Deletes the links that were made for a person's name and not used. */
export const dropLinksOf = deleteBy(consoleLinks, ['name'])

export const dropAllLinks = deleteBy(consoleLinks, [])

export const forgetLinks = deleteBy(consoleLinks, ['endsAt <'])

export const forgetSessions = change('any', (before: number) =>
  build.delete(consoleSessions).where(or(lt(consoleSessions.endsAt, before), lt(consoleSessions.revokedAt, before))),
)
