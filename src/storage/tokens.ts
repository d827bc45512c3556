import { and, asc, eq, isNull, sql } from 'drizzle-orm'
import { bind, build } from './builder.ts'
import type { Change } from './database.ts'
import { tokens } from './schema.ts'

export type TokenRow = typeof tokens.$inferSelect

const byDigest = build
  .select()
  .from(tokens)
  .where(eq(tokens.digest, sql.placeholder('digest')))
export const tokenByDigest = (digest: Buffer) => bind(byDigest, { digest })

export const allTokens = () => build.select().from(tokens).orderBy(asc(tokens.createdAt), asc(tokens.id))

export const insertToken = (row: typeof tokens.$inferInsert): Change => ({
  statement: build.insert(tokens).values(row),
  rows: 1,
})

export const revokeToken = (id: string, now: number): Change => ({
  statement: build
    .update(tokens)
    .set({ revokedAt: now })
    .where(and(eq(tokens.id, id), isNull(tokens.revokedAt))),
  rows: 1,
})
