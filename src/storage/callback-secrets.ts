import { callbackSecrets } from './schema.ts'
import { bringForward, insertInto, rowsBy } from './table.ts'

export type CallbackSecret = typeof callbackSecrets.$inferSelect

/** Rotations of all stores, oldest first; a store whose secret was never changed has none. */
export const allCallbackSecrets = rowsBy(callbackSecrets, [], callbackSecrets.store, callbackSecrets.generation)

/** Fails with a unique key when another rotation made this generation meanwhile. */
export const insertCallbackSecret = insertInto(callbackSecrets)

/** Ends the secrets that earlier rotations left valid for longer than this. */
export const endCallbackSecrets = bringForward(callbackSecrets, ['store'], 'previousUntil')
