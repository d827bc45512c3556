import { callbackSecrets } from './schema.ts'
import { bringForward, insertInto, rowsBy } from './table.ts'

export type CallbackSecret = typeof callbackSecrets.$inferSelect

/** Rotations of the callback secrets of all stores, oldest first; a store whose secret was never changed has none. */
export const allCallbackSecrets = rowsBy(callbackSecrets, [], callbackSecrets.store, callbackSecrets.generation)

/** Stores a rotation. A unique key refuses a second rotation of the store to the same generation. */
export const insertCallbackSecret = insertInto(callbackSecrets)

/** Ends a store's earlier secrets at this instant, where rotations left them valid for longer. */
export const endCallbackSecrets = bringForward(callbackSecrets, ['store'], 'previousUntil')
