import { and, asc, eq, isNull } from 'drizzle-orm'
import { tokens } from './schema.ts'
import { build, change, statement } from './statement.ts'

export type TokenRow = typeof tokens.$inferSelect

export const tokenByDigest = statement((digest: Buffer) => build.select().from(tokens).where(eq(tokens.digest, digest)))

export const allTokens = statement(() => build.select().from(tokens).orderBy(asc(tokens.createdAt), asc(tokens.id)))

export const insertToken = change(1, (row: typeof tokens.$inferInsert) => build.insert(tokens).values(row))

export const revokeToken = change(1, (id: string, now: number) =>
  build
    .update(tokens)
    .set({ revokedAt: now })
    .where(and(eq(tokens.id, id), isNull(tokens.revokedAt))),
)
