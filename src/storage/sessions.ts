import { and, desc, eq, gt, isNull, lt, or } from 'drizzle-orm'
import { consoleLinks, consoleSessions } from './schema.ts'
import { build, change, statement } from './statement.ts'

export type LinkRow = typeof consoleLinks.$inferSelect

export const linkByDigest = statement((digest: Buffer) =>
  build.select().from(consoleLinks).where(eq(consoleLinks.digest, digest)),
)

export const insertLink = change(1, (row: LinkRow) => build.insert(consoleLinks).values(row))

/** Takes a link that is still good away: a second use finds none. */
export const redeemLink = change(1, (digest: Buffer, now: number) =>
  build.delete(consoleLinks).where(and(eq(consoleLinks.digest, digest), gt(consoleLinks.endsAt, now))),
)

export const sessionByDigest = statement((digest: Buffer) =>
  build.select().from(consoleSessions).where(eq(consoleSessions.digest, digest)),
)

/** Sessions that have not ended, the last one begun first. */
export const openSessions = statement((now: number) =>
  build
    .select({
      id: consoleSessions.id,
      name: consoleSessions.name,
      role: consoleSessions.role,
      createdAt: consoleSessions.createdAt,
      seenAt: consoleSessions.seenAt,
      endsAt: consoleSessions.endsAt,
    })
    .from(consoleSessions)
    .where(and(isNull(consoleSessions.revokedAt), gt(consoleSessions.endsAt, now)))
    .orderBy(desc(consoleSessions.id)),
)

export const insertSession = change(1, (row: typeof consoleSessions.$inferInsert) =>
  build.insert(consoleSessions).values(row),
)

/** Moves the end of a session on. It may have been ended meanwhile. */
export const prolongSession = change('any', (id: string, seenAt: number, endsAt: number) =>
  build
    .update(consoleSessions)
    .set({ seenAt, endsAt })
    .where(and(eq(consoleSessions.id, id), isNull(consoleSessions.revokedAt))),
)

export const revokeSession = change('any', (id: string, now: number) =>
  build
    .update(consoleSessions)
    .set({ revokedAt: now })
    .where(and(eq(consoleSessions.id, id), isNull(consoleSessions.revokedAt))),
)

/** Ends all sessions under a name. */
export const revokeSessionsOf = change('any', (name: string, now: number) =>
  build
    .update(consoleSessions)
    .set({ revokedAt: now })
    .where(and(eq(consoleSessions.name, name), isNull(consoleSessions.revokedAt))),
)

export const revokeAllSessions = change('any', (now: number) =>
  build.update(consoleSessions).set({ revokedAt: now }).where(isNull(consoleSessions.revokedAt)),
)

/** Links that were made for a name and not used. */
export const dropLinksOf = change('any', (name: string) =>
  build.delete(consoleLinks).where(eq(consoleLinks.name, name)),
)

export const dropAllLinks = change('any', () => build.delete(consoleLinks))

export const forgetLinks = change('any', (before: number) =>
  build.delete(consoleLinks).where(lt(consoleLinks.endsAt, before)),
)

export const forgetSessions = change('any', (before: number) =>
  build.delete(consoleSessions).where(or(lt(consoleSessions.endsAt, before), lt(consoleSessions.revokedAt, before))),
)
