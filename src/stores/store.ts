/**
 * Stores: where we sell. One file per kind of store, all behind the port in this file.
 *
 * A store is told what became of its orders, at least once and never by guess: whoever calls `tell` keeps the message in
 * the outbox until it is confirmed, and calls again with the same id. What may go wrong is told apart by who can mend
 * it: a store that answered and refused, and one that did not answer at all.
 */

export type StoreMessageType = 'line.fulfilled' | 'line.failed' | 'order.closed' | 'listing.changed'

export interface StoreMessage {
  /** Id of the outbox row, the same at every attempt: the store knows a repeat by it. */
  id: string
  type: StoreMessageType
  /** When what it tells came to be, epoch milliseconds. */
  at: number
  /** What is told; JSON. Licence keys are in it in plain, so that it is never logged or stored. */
  data: object
}

/** What is known after telling a store. `detail` is a sentence of ours; nothing of the store's answer is in it. */
export type Told =
  | { outcome: 'confirmed' }
  /** It answered, and not with a yes. */
  | { outcome: 'refused'; status: number; detail: string }
  /** No answer: it may or may not have got the message. */
  | { outcome: 'unreachable'; detail: string }

export interface Store {
  /** Tells the store once; never throws for what the store or the network does. Trying again is the caller's. */
  tell(message: StoreMessage): Promise<Told>
  /** Sends a signed message without meaning, of type `test`, and says what came of it in words to act on. */
  test(): Promise<Told>
}
