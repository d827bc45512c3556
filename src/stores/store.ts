/**
 * The port of the stores, through which we sell. Each kind of store has a folder, and `kinds.ts` lists the kinds.
 *
 * The core calls these methods and knows no wire format. An adapter never throws for what the store or the network does:
 * it answers with an outcome. An adapter does not try again by itself: the caller keeps what was not confirmed and calls again,
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
  /** The store answered, and did not accept. `hasNothing`: the store says that it took no part of the request. */
  | { outcome: 'refused'; status: number; detail: string; hasNothing?: true }
  /** No answer came, or only `not now`. `mayHaveLeft`: a byte of the request may have left, so the store may have acted. */
  | { outcome: 'unavailable'; mayHaveLeft: boolean; detail: string }

/** The result of a push. */
export type PushResult = { outcome: 'confirmed' } | NotConfirmed

/**
 * The order was read before a key was written. It does not entitle its customer to these keys, and the shop has none of them. This
 * is no failed attempt: the hand-over waits for another reading. `units`: the units of the line that the order has now. The
 * standing `held` can also mean that the shop holds the fulfilment of this line alone.
 */
export interface NotEntitled {
  outcome: 'not_entitled'
  standing: Standing
  units: number
  /** A sentence of ours. */
  detail: string
}

/**
 * The result of a hand-over. `wasFulfilled`: the shop counted the units as fulfilled before their keys came, for example by a
 * setting of the shop. The shop was asked to write to the customer again.
 */
export type FulfilResult = { outcome: 'confirmed'; wasFulfilled?: boolean } | NotConfirmed | NotEntitled

/** Orders as they are now. An order that the answer leaves out is read by its id. */
export type OrdersNow = { outcome: 'read'; orders: StoreOrderRead[] } | NotConfirmed

/** An update on its way to the store. */
export type Pushed<Update> = Update & {
  /** This id is the same at every attempt. Contents under one id never change, so that the store can ignore a repeat. */
  id: string
  /** The instant of the event that the update reports. */
  at: number
}

/** A listing as a store should show it. */
export interface StoreListing {
  /** The store's own id of the variant. The core does not look into it, so an adapter may join the ids that it needs. */
  id: string
  sku: string
  name: string
  category: string | null
  price: string
  /** A higher price to show struck through. */
  compareAt: string | null
  currency: string
  /** Units that can be bought; null where units are not counted. */
  stock: number | null
  available: boolean
  /** True: the supplier sells the product no more, and the merchant wants such a product out of sight. */
  isGone?: boolean
  /** True: the listing has no stock from now on. A store that can write stock without price leaves its price as it is. */
  stockAlone?: boolean
  /** Where two pushes of one listing arrive in any order, the push with the larger revision is the newer. */
  revision: number
}

/**
 * The result of a push of listings: an answer for each listing, or `all` where one yes counts for all of them. `failure`: the
 * store took nothing more after these answers. A listing without an answer is then neither taken nor refused.
 */
export type PublishResult =
  | { outcome: 'answered'; answers: ItemAnswer[] | 'all'; failure?: NotConfirmed }
  | NotConfirmed

/** A variant that the store sells. */
export interface StoreVariant {
  id: string
  /** Null: the variant has no SKU in the store, so only an operator can link it. */
  sku: string | null
  name: string
  /** Units of the variant that the store sells, from all locations together; absent where the number is not known. */
  sellable?: number
  /** The price of the variant now, as the store writes it; absent where the price is not known. */
  price?: string | undefined
}

/** A product that a store lacks. Its price and stock follow by `publish`. Until then the product cannot be bought. */
export interface NewVariant {
  sku: string
  name: string
  category: string | null
  /** Text of the supplier, without markup. */
  description: string | null
  /** Address of a picture. */
  image: string | null
  /** False: customers do not see the product until the merchant publishes it. */
  isPublished: boolean
}

/** One page of a list. `next` goes into the next call; null at the end of the list. */
export type StorePage<Item> = { outcome: 'read'; items: Item[]; next: string | null } | NotConfirmed

/**
 * The result of the creation of variants. For each SKU it has the id of the variant, which is new or was there before, or why
 * there is no variant. `failure`: the store took nothing more after these answers.
 */
export type CreateResult = { outcome: 'answered'; answers: CreatedVariant[]; failure?: NotConfirmed } | NotConfirmed

export type CreatedVariant = { sku: string } & ({ id: string; isNew: boolean } | { refusal: string })

/** An order as the store has it now. */
export interface StoreOrderRead {
  reference: string
  /** The standing is `paid` also while a part of the money is still open. Then `fullyPaid` is false. */
  standing: Standing
  /** Why the order is unpaid or held, as the end of a sentence that begins with "the order": `is on hold in the shop`. */
  because?: string
  /** Only the merchant can end that state, and reads it on the order. `unalerted`: the first such order needs no alert. */
  isForMerchant?: boolean | 'unalerted'
  /** Whether the shop states that all money of the order came. Where a shop cannot state that, it is true for every paid order. */
  fullyPaid: boolean
  /** When the customer placed it; null where the shop does not say. */
  placedAt: number | null
  /** When the shop changed the order last, by the shop's clock, which may be corrected; null where the shop does not say. */
  changedAt: number | null
  /** When the customer paid; null: not yet. */
  paidAt: number | null
  lines: {
    id: string
    /** The store's id of the variant; null where the variant is gone. */
    variant: string | null
    sku: string
    /** Units that are neither refunded nor removed, never below 0. */
    quantity: number
    /** The price that the customer paid for one unit, less discounts. */
    unitPrice: string
    currency: string
  }[]
  /** Refunded money that is for no named units, as decimal text in the currency of the lines; absent where there is none. */
  refundedAmount?: string
  /** True: the shop counts the order as done. */
  isDone?: boolean
  /** The order carries a mark of ours: a delivery of Quayside has put keys on it. */
  hasOurKeys?: boolean
  /** Why the order must not be bought as it is, such as a total that does not fit its lines; absent for a sound order. */
  fault?: string
  /** True: the merchant asks in the shop that Quayside tries again, once, to buy the units that have ended without keys. */
  retry?: boolean
}

/**
 * `unread`: orders of the page that the store did not give. The cursor goes past these orders, and the caller reads each by
 * `order`. `cursor`: where the next call goes on. The caller keeps the cursor also at the end of the list. `more`: there is another
 * page already. An order may come again, so that no order is missed.
 */
export type ChangedOrders =
  | { outcome: 'read'; orders: StoreOrderRead[]; unread: UnreadOrder[]; cursor: string; more: boolean }
  | NotConfirmed

/** An order that was not read. `detail`: why, as a sentence. */
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
   * The store signed the request. `deliveryId`: an id that is unique to the delivery; the hex of `mac` where the store has no such
   * id. `mac`: the 32 bytes of the signature, by which a repeat is recognised.
   */
  | { outcome: 'authentic'; deliveryId: string; mac: Buffer }
  /** The store tries whether the address answers. There is nothing to keep. */
  | { outcome: 'ping' }
  /** `reason` is for the metrics, never for the sender. */
  | { outcome: 'not_authentic'; reason: string }

/** The result of one check of `test`. */
export interface StoreFinding {
  /** What was tried, in one or two words: `connection`, `permissions`, `clock`. */
  check: string
  state: 'ok' | 'doubtful' | 'failed'
  /** What was seen, as a sentence. */
  detail: string
  /** What to do about it, as a sentence; null where nothing is to be done. */
  fix: string | null
}

/** The keys of an order that a store was given before, in plain text. An adapter neither logs nor stores the keys. */
export interface ResentOrder {
  reference: string
  lines: { id: string; keys: string[] }[]
}

export interface Store {
  /** The most listings that one `publish` takes. */
  batchSize: number
  /** The most variants that one `create` takes. Default: `batchSize`. */
  createSize?: number
  /** The most products whose listings are pushed before the results are recorded together. Default: 100. */
  productsMax?: number
  /** A request that left acts in the store within so many milliseconds, or never. Default: 0, because repeats do no harm. */
  settleMs?: number
  /** A push of an update sends no request that writes later than so many milliseconds after its start. Default: 0. */
  pushMs?: number

  /** Reads a page of the variants that the store sells. @param cursor `next` of the page before; null for the first page */
  variants?(cursor: string | null): Promise<StorePage<StoreVariant>>
  /** Creates at most `createSize` variants. A variant whose SKU the store has already is left as it is. */
  create?(variants: NewVariant[]): Promise<CreateResult>
  /** Pushes at most `batchSize` listings, once. */
  publish(push: { id: string; at: number; listings: StoreListing[] }): Promise<PublishResult>

  /**
   * Hands over licence keys in plain text. An adapter neither logs nor stores the keys. `keys` may be empty. `deliveredNow`: how
   * many keys of the line the store has at this attempt, with these keys; `delivered` stays as it was at the first attempt.
   */
  fulfil(update: Pushed<LineFulfilled> & { keys: string[]; deliveredNow?: number }): Promise<FulfilResult>
  /** Sends the customer the keys that wait in the shop for the rest of their order. Each key is sent once. */
  sendWaiting?(reference: string): Promise<FulfilResult>
  /** Reports that units of a line will not come. */
  reportFailure(update: Pushed<LineFailed>): Promise<PushResult>
  /** Reports that units of a line wait. */
  reportHeld?(update: Pushed<LineHeld>): Promise<PushResult>
  /** Reports that units which waited are bought now. */
  reportResumed?(update: Pushed<LineResumed>): Promise<PushResult>
  /** Reports why nothing is bought for a paid order. @param refusal.id the same for the same order and reason */
  reportRefusal?(refusal: { id: string; reference: string; message: string }): Promise<PushResult>
  /**
   * Reports that nothing of an order moves any more. `not_entitled`: the order is unpaid or held, and its closing waits until it
   * is paid. `mayBeSent`: `sendWaiting` may have sent keys of the order.
   */
  closeOrder(update: Pushed<OrderClosed> & { mayBeSent?: boolean }): Promise<FulfilResult>

  /** Checks whether the store signed a request. */
  verify?(request: StoreRequest): StoreVerification
  /**
   * Reads from the store the order that an authentic body names. Nothing else of the body is believed, because a copy of the
   * shop signs as the shop does.
   */
  readOrder?(body: Buffer): Promise<OrderReadResult>
  /** Reads an order by its reference. `ignored`: the shop has no such order, or has it no more. */
  order?(reference: string): Promise<OrderReadResult>
  /** Reads many orders by their references, at most `ordersNowSize`, in as few requests as the shop allows. */
  ordersNow?(references: readonly string[]): Promise<OrdersNow>
  ordersNowSize?: number
  /**
   * Reads a page of the orders that changed, oldest change first.
   *
   * @param cursor the cursor of the call before; at the first call, the instant from which changes are read, as a number
   */
  ordersSince?(cursor: string | number): Promise<ChangedOrders>
  /** Says what a merchant does in the shop to have cancelled units bought after all, such as `tag the order retry`. */
  retryAdvice?: string
  /** Takes the merchant's wish `retry` off the order once Quayside has followed it. It is harmless where the wish is gone. */
  retryTaken?(reference: string): Promise<PushResult>
  /** Makes the store send its orders to this address of ours; harmless when it already does. `detail`: what was changed. */
  provision?(url: string): Promise<{ outcome: 'confirmed'; detail: string | null } | NotConfirmed>
  /** Sends the customer the keys of an order again. The store has these keys already. */
  resend?(order: ResentOrder): Promise<PushResult>

  /** Sends an example of an update, marked as a test. */
  sendExample?(update: Pushed<StoreUpdate> & { keys: string[] }): Promise<PushResult>

  /** Checks all that the store needs to work. The checks have no effect in the store. */
  test(): Promise<StoreFinding[]>
  /** Ends the connections. */
  close(): Promise<void>
}
