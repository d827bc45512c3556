import { and, asc, eq, gt } from 'drizzle-orm'
import { build } from './builder.ts'
import type { Change } from './database.ts'
import { callbackSecrets } from './schema.ts'

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
