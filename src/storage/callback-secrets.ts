import { and, asc, eq, gt } from 'drizzle-orm'
import { callbackSecrets } from './schema.ts'
import { build, change, statement } from './statement.ts'

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
