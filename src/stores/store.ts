/**
 * Stores: where we sell. One file per kind of store, all behind the port in this file.
 *
 * A store is told what became of its orders, at least once and never by guess: whoever calls `tell` keeps the message in
 * the outbox until it is confirmed, and calls again with the same id. It is told of its listings by `publish`, as they
 * are at that moment, and its answer counts for each of them. What may go wrong is told apart by who can mend it: a store
 * that answered and refused, and one that did not answer at all.
 */
import type { ItemAnswer } from '../domain/acknowledgement.ts'

export type StoreMessageType = 'line.fulfilled' | 'line.failed' | 'order.closed'

export interface StoreMessage {
  /** Id of the outbox row, the same at every attempt: the store knows a repeat by it. */
  id: string
  type: StoreMessageType
  /** When what it tells came to be, epoch milliseconds. */
  at: number
  /** What is told; JSON. Licence keys are in it in plain, so that it is never logged or stored. */
  data: object
}

/** No yes. `detail` is a sentence of ours; nothing of the store's answer is in it. */
export type NotTold =
  /** It answered, and not with a yes. */
  | { outcome: 'refused'; status: number; detail: string }
  /** No answer. `mayHaveLeft`: a byte of the message may have left, so the store may have got it. */
  | { outcome: 'unreachable'; mayHaveLeft: boolean; detail: string }

/** What is known after telling a store. */
export type Told = { outcome: 'confirmed' } | NotTold

/** A listing as a store is to have it. */
export interface StoreListing {
  /** The store's own reference of what it sells: its variant. */
  id: string
  sku: string
  name: string
  category: string | null
  /** Decimal text in `currency`. */
  price: string
  compareAt: string | null
  currency: string
  /** Units that can be bought; null when nobody counts them. */
  stock: number | null
  available: boolean
  /** The one with the larger revision is the newer one, in whatever order they come. */
  revision: number
}

/** What is known after publishing: an answer for each listing, or one yes for all of them. */
export type Published = { outcome: 'answered'; answers: ItemAnswer[] | 'all' } | NotTold

export interface Store {
  /** Tells the store once; never throws for what the store or the network does. Trying again is the caller's. */
  tell(message: StoreMessage): Promise<Told>
  /** Most listings that one `publish` may carry. */
  batchSize: number
  /** Tells the store how these listings are now, once; never throws for what the store or the network does. */
  publish(message: { id: string; at: number; listings: StoreListing[] }): Promise<Published>
  /** Sends a signed message without meaning, of type `test`, and says what came of it in words to act on. */
  test(): Promise<Told>
}
