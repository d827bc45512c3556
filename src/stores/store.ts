/**
 * The port of the stores: what we sell through. One folder for each kind of store; `kinds.ts` lists them.
 *
 * The core calls these methods and knows no wire format. An adapter never throws for what the store or the network does:
 * it answers with an outcome. It does not try again by itself: the caller keeps what was not confirmed and calls again,
 * with equal contents under the same id. A method that a kind of store cannot do is absent.
 *
 * Instants are epoch milliseconds. Prices are decimal text beside their ISO 4217 currency.
 */
import type { ItemAnswer } from '../domain/acknowledgement.ts'
import type { Standing } from '../domain/store-order.ts'
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
  /** The store answered, and did not accept. `hasNothing`: it says that it took no part of the request. */
  | { outcome: 'refused'; status: number; detail: string; hasNothing?: true }
  /** No answer, or only that it is too early. `mayHaveLeft`: a byte of the request may have left, so the store may have acted. */
  | { outcome: 'unavailable'; mayHaveLeft: boolean; detail: string }

/** What is known after a push. */
export type PushResult = { outcome: 'confirmed' } | NotConfirmed

/**
 * The order, as it was read before the first key was written, does not entitle its customer to these keys, and none of them is in
 * the shop. It is no failed attempt: the hand-over waits for another reading. `units`: those of the line that the order has now.
 * `held` is also said where the shop holds the fulfilment of the line alone.
 */
export interface NotEntitled {
  outcome: 'not_entitled'
  standing: Standing
  units: number
  /** A sentence of ours. */
  detail: string
}

/**
 * What is known after a hand-over. `wasFulfilled`: the shop had the units as fulfilled before their keys came, as by a setting of
 * it. The customer was written to again.
 */
export type FulfilResult = { outcome: 'confirmed'; wasFulfilled?: boolean } | NotConfirmed | NotEntitled

/** Orders as they are now. An order that the answer leaves out is read by its id. */
export type OrdersNow = { outcome: 'read'; orders: StoreOrderRead[] } | NotConfirmed

/** An update on its way to the store. */
export type Pushed<Update> = Update & {
  /** This id is the same at every attempt. Contents under one id never change, so that the store can ignore a repeat. */
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
  /** The supplier sells it no more, and the merchant wants such a product out of sight. */
  isGone?: boolean
  /** The listing has no stock from now on, at whatever price the store has. A store that writes the two apart leaves the price alone. */
  stockAlone?: boolean
  /** Where two pushes of one listing arrive in any order, the push with the larger revision is the newer. */
  revision: number
}

/**
 * What is known after listings were pushed: an answer for each of them, or `all` where one yes counts for all. `failure`: the
 * store took nothing more after these answers, so that the listings without one are neither taken nor refused.
 */
export type PublishResult =
  | { outcome: 'answered'; answers: ItemAnswer[] | 'all'; failure?: NotConfirmed }
  | NotConfirmed

/** A variant that the store sells. */
export interface StoreVariant {
  id: string
  /** Null: the store sells it under no SKU, so that only an operator can link it. */
  sku: string | null
  name: string
  /** Units that the store sells of it, wherever they are; absent where that is not known. */
  sellable?: number
  /** What it costs now, as the store writes it; absent where that is not known. */
  price?: string | undefined
}

/** A product that a store lacks. Its price and stock follow by `publish`: until then it cannot be bought. */
export interface NewVariant {
  sku: string
  name: string
  category: string | null
  /** Text of the supplier, without markup. */
  description: string | null
  /** Address of a picture. */
  image: string | null
  /** False: customers do not see it until the merchant publishes it. */
  isPublished: boolean
}

/** One page of a list. `next` goes into the next call; null at the end of the list. */
export type StorePage<Item> = { outcome: 'read'; items: Item[]; next: string | null } | NotConfirmed

/**
 * What is known after variants were created: for each SKU the id of its variant, made now or there before, or why there is
 * none. `failure`: the store took nothing more after these answers.
 */
export type CreateResult = { outcome: 'answered'; answers: CreatedVariant[]; failure?: NotConfirmed } | NotConfirmed

export type CreatedVariant = { sku: string } & ({ id: string; isNew: boolean } | { refusal: string })

/** An order as the store has it now. */
export interface StoreOrderRead {
  reference: string
  /** `paid` also while a part of the money is still open: then `fullyPaid` is false. */
  standing: Standing
  /** Why it is unpaid or held, as the end of a sentence that begins with "the order": `is on hold in the shop`. */
  because?: string
  /** Only the merchant ends that, who reads it on the order; `unalerted`: people need no alert of the first such order. */
  isForMerchant?: boolean | 'unalerted'
  /** Whether the shop states that all of its money came. A shop that cannot state it says so of every paid order. */
  fullyPaid: boolean
  /** When the customer placed it; null where the shop does not say. */
  placedAt: number | null
  /** When the shop changed it last, by the clock of the shop, which may be corrected; null where the shop does not say. */
  changedAt: number | null
  /** When the customer paid; null: not yet. */
  paidAt: number | null
  lines: {
    id: string
    /** The store's variant; null where it is gone. */
    variant: string | null
    sku: string
    /** Units that are neither refunded nor removed, never below 0. */
    quantity: number
    /** What the customer paid for one unit, discounts taken off. */
    unitPrice: string
    currency: string
  }[]
  /** Money that was refunded without naming units, decimal text in the currency of the lines; absent for none. */
  refundedAmount?: string
  /** The shop takes it for done. */
  isDone?: boolean
  /** The order carries a mark of ours: a delivery of Quayside has put keys on it. */
  hasOurKeys?: boolean
  /** Why it must not be bought as it is, such as a total that does not fit its lines; absent for a sound order. */
  fault?: string
  /** The merchant asks for it in the shop: what has ended without its keys is to be tried again, once. */
  retry?: boolean
}

/**
 * `unread`: orders of the page that the store did not give: the cursor goes past them, and the caller reads each by `order`.
 * `cursor`: where the next call goes on, kept also at the end of the list. `more`: there is another page already. Orders come
 * again where that is needed to miss none.
 */
export type ChangedOrders =
  | { outcome: 'read'; orders: StoreOrderRead[]; unread: UnreadOrder[]; cursor: string; more: boolean }
  | NotConfirmed

/** `detail`: why it was not read, as a sentence. */
export interface UnreadOrder {
  reference: string
  detail: string
}

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

/** One thing that `test` tried. */
export interface StoreFinding {
  /** What was tried, in one or two words: `connection`, `permissions`, `clock`. */
  check: string
  state: 'ok' | 'doubtful' | 'failed'
  /** What was seen, as a sentence. */
  detail: string
  /** What to do about it, as a sentence; null where nothing is to be done. */
  fix: string | null
}

/** The keys that a store was handed for an order, in plain: an adapter neither logs nor stores them. */
export interface ResentOrder {
  reference: string
  lines: { id: string; keys: string[] }[]
}

export interface Store {
  /** Most listings that one `publish` takes. */
  batchSize: number
  /** Most variants that one `create` takes. Default: `batchSize`. */
  createSize?: number
  /** Products whose listings are pushed before they are recorded together. Default: 100. */
  productsMax?: number
  /** Milliseconds within which a request that left has acted in the store, or never will. Default: 0, repeats do no harm. */
  settleMs?: number
  /** Milliseconds after its start in which a push of an update sends the last request that writes. Default: 0. */
  pushMs?: number

  /** Reads what the store sells, a page a call. @param cursor `next` of the page before; null for the first */
  variants?(cursor: string | null): Promise<StorePage<StoreVariant>>
  /** Creates variants, at most `createSize`; a SKU that the store has already is left as it is. */
  create?(variants: NewVariant[]): Promise<CreateResult>
  /** Pushes these listings once, at most `batchSize`. */
  publish(push: { id: string; at: number; listings: StoreListing[] }): Promise<PublishResult>

  /**
   * Hands over licence keys, in plain: an adapter neither logs nor stores them. `keys` may be empty. `deliveredNow`: keys of the
   * line that the store has with these as of this attempt; `delivered` stays as it was at the first one.
   */
  fulfil(update: Pushed<LineFulfilled> & { keys: string[]; deliveredNow?: number }): Promise<FulfilResult>
  /** Sends the customer the keys of an order that wait in the shop until the rest of it is there; each once. */
  sendWaiting?(reference: string): Promise<FulfilResult>
  /** Reports that units of a line will not come. */
  reportFailure(update: Pushed<LineFailed>): Promise<PushResult>
  /** Reports that units of a line wait. */
  reportHeld?(update: Pushed<LineHeld>): Promise<PushResult>
  /** Reports that units that waited are bought now. */
  reportResumed?(update: Pushed<LineResumed>): Promise<PushResult>
  /** Reports that nothing is bought for a paid order, for this reason. @param refusal.id the same for the same order and reason */
  reportRefusal?(refusal: { id: string; reference: string; message: string }): Promise<PushResult>
  /**
   * Reports that nothing of an order moves any more. `not_entitled`: it is unpaid or held, and waits until it is paid.
   * `mayBeSent`: keys of it may have been sent by `sendWaiting`.
   */
  closeOrder(update: Pushed<OrderClosed> & { mayBeSent?: boolean }): Promise<FulfilResult>

  /** Checks whether the store signed a request. */
  verify?(request: StoreRequest): StoreVerification
  /**
   * Reads from the store the order that an authentic body names. Nothing else of the body is believed, because a copy of the
   * shop signs as the shop does.
   */
  readOrder?(body: Buffer): Promise<OrderReadResult>
  /** Reads an order by its reference. `ignored`: the shop has no such order, or no more. */
  order?(reference: string): Promise<OrderReadResult>
  /** Reads many orders by their references, at most `ordersNowSize`, in as few requests as the shop allows. */
  ordersNow?(references: readonly string[]): Promise<OrdersNow>
  ordersNowSize?: number
  /**
   * Reads a page of the orders that changed, oldest change first.
   *
   * @param cursor of the call before; a number is the first call, and the instant that it begins at
   */
  ordersSince?(cursor: string | number): Promise<ChangedOrders>
  /** What a merchant does in the shop to have cancelled units bought after all, such as `tag the order retry`. */
  retryAdvice?: string
  /** Takes the wish of `retry` back once it was followed; harmless where there is none any more. */
  retryTaken?(reference: string): Promise<PushResult>
  /** Makes the store send its orders to this address of ours; harmless when it already does. `detail`: what it had to do. */
  provision?(url: string): Promise<{ outcome: 'confirmed'; detail: string | null } | NotConfirmed>
  /** Sends the customer the keys of an order again, which the store has. */
  resend?(order: ResentOrder): Promise<PushResult>

  /** Sends an example of an update, marked as a test. */
  sendExample?(update: Pushed<StoreUpdate> & { keys: string[] }): Promise<PushResult>

  /** Tries what the store needs to work, without effect in it. */
  test(): Promise<StoreFinding[]>
  /** Ends the connections. */
  close(): Promise<void>
}
