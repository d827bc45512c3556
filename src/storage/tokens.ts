import { and, asc, eq, gt, isNull } from 'drizzle-orm'
import { callbackSecrets, tokens } from './schema.ts'
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

export type CallbackSecret = typeof callbackSecrets.$inferSelect

/** Rotations of all stores, oldest first; a store whose secret was never changed has none. */
export const allCallbackSecrets = statement(() =>
  build.select().from(callbackSecrets).orderBy(asc(callbackSecrets.store), asc(callbackSecrets.generation)),
)

/** Fails with a unique key when another rotation made this generation meanwhile. */
export const insertCallbackSecret = change(1, (row: CallbackSecret) => build.insert(callbackSecrets).values(row))

/** Ends the secrets that earlier rotations left valid for longer than this. */
export const endCallbackSecrets = change('any', (store: string, until: number) =>
  build
    .update(callbackSecrets)
    .set({ previousUntil: until })
    .where(and(eq(callbackSecrets.store, store), gt(callbackSecrets.previousUntil, until))),
)
