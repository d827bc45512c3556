/**
 * The port of the stores: what we sell through. One folder for each kind of store, chosen in `open.ts`.
 *
 * The core calls these methods and knows no wire format. An adapter never throws for what the store or the network does:
 * it answers with an outcome. It does not try again by itself: the caller keeps what was not confirmed and calls again,
 * with equal contents under the same id. A method that a kind of store cannot do is absent.
 *
 * Instants are epoch milliseconds. Prices are decimal text beside their ISO 4217 currency.
 */
import type { ItemAnswer } from '../domain/acknowledgement.ts'
import type {
  LineFailed,
  LineFulfilled,
  LineHeld,
  LineResumed,
  OrderClosed,
  StoreUpdate,
} from '../domain/store-update.ts'

/** Why the store did not confirm. `detail` is a sentence of ours; nothing of the store's answer is in it. */
export type NotConfirmed =
  /** The store answered, and did not accept. */
  | { outcome: 'refused'; status: number; detail: string }
  /** No answer, or only that it is too early. `mayHaveLeft`: a byte of the request may have left, so the store may have acted. */
  | { outcome: 'unavailable'; mayHaveLeft: boolean; detail: string }

/** What is known after a push. */
export type PushResult = { outcome: 'confirmed' } | NotConfirmed

/** An update on its way to the store. */
export type Pushed<Update> = Update & {
  /** The same at every attempt. Contents under one id never change, so that the store can ignore a repeat. */
  id: string
  /** When what it reports happened. */
  at: number
}

/** A listing as a store should show it. */
export interface StoreListing {
  /** The store's own id of what it sells, its variant. Opaque to the core: an adapter may join the ids that it needs. */
  id: string
  sku: string
  name: string
  category: string | null
  price: string
  /** A higher price to show struck through. */
  compareAt: string | null
  currency: string
  /** Units that can be bought; null where they are not counted. */
  stock: number | null
  available: boolean
  /** Of two pushes of one listing the one with the larger revision is the newer, in whatever order they arrive. */
  revision: number
}

/** What is known after listings were pushed: an answer for each of them, or `all` where one yes counts for all. */
export type PublishResult = { outcome: 'answered'; answers: ItemAnswer[] | 'all' } | NotConfirmed

/** A variant that the store sells. */
export interface StoreVariant {
  id: string
  /** The store's id of the product that the variant belongs to. */
  productId: string
  sku: string | null
  name: string
  price: string
  currency: string
  stock: number | null
}

export interface NewVariant {
  sku: string
  name: string
  category: string | null
}

/** One page of a list. `next` goes into the next call; null at the end of the list. */
export type StorePage<Item> = { outcome: 'read'; items: Item[]; next: string | null } | NotConfirmed

/** What is known after a variant was created. `exists`: the store has one of this SKU, under this id. */
export type CreateResult = { outcome: 'created' | 'exists'; id: string } | NotConfirmed

/** An order as the store has it now. */
export interface StoreOrderRead {
  reference: string
  /** `waiting`: not paid, or held by the store. Only a `paid` order is bought. */
  state: 'waiting' | 'paid' | 'cancelled'
  /** When the store changed it last. */
  changedAt: number
  lines: {
    id: string
    /** The store's variant; null where it is gone. */
    variant: string | null
    sku: string
    /** Units that are neither refunded nor removed. */
    quantity: number
    /** What the customer paid for one unit, discounts taken off. */
    unitPrice: string
    currency: string
  }[]
}

/** `cursor`: where the next call goes on, kept also at the end of the list. `more`: there is another page already. */
export type ChangedOrders = { outcome: 'read'; orders: StoreOrderRead[]; cursor: string; more: boolean } | NotConfirmed

/** `ignored`: the body is about something else, such as a product. */
export type OrderReadResult =
  | { outcome: 'order'; order: StoreOrderRead }
  | { outcome: 'ignored' | 'unreadable'; detail: string }
  | NotConfirmed

/** A request that claims to come from the store. */
export interface StoreRequest {
  /** Node's `headersDistinct`: names in lower case, one entry per header line. */
  headers: Record<string, string[] | undefined>
  /** The raw bytes. */
  body: Buffer
}

export type StoreVerification =
  /**
   * Signed by the store. `deliveryId`: unique to the delivery; where the store has no such id, the hex of `mac`. `mac`: the 32
   * bytes of the signature, by which a repeat is known.
   */
  | { outcome: 'authentic'; deliveryId: string; mac: Buffer }
  /** The store tries whether the address answers. There is nothing to keep. */
  | { outcome: 'ping' }
  /** `reason` is for the metrics, never for the sender. */
  | { outcome: 'not_authentic'; reason: string }

export interface Store {
  /** Most listings that one `publish` takes. */
  batchSize: number

  /** Reads what the store sells, a page a call. @param cursor `next` of the page before; null for the first */
  variants?(cursor: string | null): Promise<StorePage<StoreVariant>>
  /** Creates a variant that is not for sale yet; harmless when the store has one of this SKU. */
  create?(variant: NewVariant): Promise<CreateResult>
  /** Pushes these listings once, at most `batchSize`. */
  publish(push: { id: string; at: number; listings: StoreListing[] }): Promise<PublishResult>
  /** Takes variants off sale. */
  unpublish?(ids: string[]): Promise<PublishResult>

  /** Hands over licence keys, in plain: an adapter neither logs nor stores them. `keys` may be empty. */
  fulfil(update: Pushed<LineFulfilled> & { keys: string[] }): Promise<PushResult>
  /** Reports that units of a line will not come. */
  reportFailure(update: Pushed<LineFailed>): Promise<PushResult>
  /** Reports that units of a line wait. */
  reportHeld?(update: Pushed<LineHeld>): Promise<PushResult>
  /** Reports that units that waited are bought now. */
  reportResumed?(update: Pushed<LineResumed>): Promise<PushResult>
  /** Reports that nothing of an order moves any more. */
  closeOrder(update: Pushed<OrderClosed>): Promise<PushResult>

  /** Checks whether the store signed a request. */
  verify?(request: StoreRequest): StoreVerification
  /**
   * Reads from the store the order that an authentic body names. Nothing else of the body is believed, because a copy of the
   * shop signs as the shop does.
   */
  readOrder?(body: Buffer): Promise<OrderReadResult>
  /** Reads a page of the orders that changed, oldest change first. @param cursor of the call before; null for the first */
  ordersSince?(cursor: string | null): Promise<ChangedOrders>
  /** Makes the store send its orders to this address of ours; harmless when it already does. */
  provision?(url: string): Promise<PushResult>

  /** Sends an example of an update, marked as a test. */
  sendExample?(update: Pushed<StoreUpdate> & { keys: string[] }): Promise<PushResult>

  /** Tries address and credentials, without effect in the store. `detail` says what to do. */
  test(): Promise<PushResult>
  /** Ends the connections. */
  close(): Promise<void>
}
