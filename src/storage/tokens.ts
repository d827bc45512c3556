import { and, asc, eq, gt, isNull, sql } from 'drizzle-orm'
import type { Change } from './database.ts'
import { callbackSecrets, tokens } from './schema.ts'
import { bind, build } from './statement.ts'

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

export type CallbackSecret = typeof callbackSecrets.$inferSelect

/** Rotations of all stores, oldest first; a store whose secret was never changed has none. */
export const allCallbackSecrets = () =>
  build.select().from(callbackSecrets).orderBy(asc(callbackSecrets.store), asc(callbackSecrets.generation))

/** Fails with a unique key when another rotation made this generation meanwhile. */
export const insertCallbackSecret = (row: CallbackSecret): Change => ({
  statement: build.insert(callbackSecrets).values(row),
  rows: 1,
})

/** Ends the secrets that earlier rotations left valid for longer than this. */
export const endCallbackSecrets = (store: string, until: number): Change => ({
  statement: build
    .update(callbackSecrets)
    .set({ previousUntil: until })
    .where(and(eq(callbackSecrets.store, store), gt(callbackSecrets.previousUntil, until))),
  rows: 'any',
})
