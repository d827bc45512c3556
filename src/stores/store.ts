/**
 * The interface to the stores that we sell through. Each kind of store has a folder, and `kinds.ts` lists the kinds.
 *
 * The core calls these methods and knows no wire format. An adapter never throws for what the store or the network does:
 * it answers with an outcome. An adapter does not try again by itself: the caller keeps what was not confirmed and calls again,
 * with equal contents under the same id. A method is absent where a kind of store does not support it.
 *
 * Instants are epoch milliseconds. Prices are decimal text next to their ISO 4217 currency.
 */
import type { ItemAnswer } from '../domain/acknowledgement.ts'
import type { Standing } from '../domain/store-order.ts'
import type {
  KeyWay,
  LineFailed,
  LineFulfilled,
  LineHeld,
  LineResumed,
  OrderClosed,
  StoreUpdate,
} from '../domain/store-update.ts'

/** Why the store did not confirm. `detail` is a sentence of ours, and quotes nothing of the store's answer. */
export type NotConfirmed =
  /** The store answered, and did not accept. `hasNothing`: the store says that it took no part of the request. */
  | { outcome: 'refused'; status: number; detail: string; hasNothing?: true }
  /** No answer came, or only `not now`. `mayHaveLeft`: a byte of the request may have left, so the store may have acted. */
  | { outcome: 'unavailable'; mayHaveLeft: boolean; detail: string }

/** Whether the store is away, or what stands before it answers in its place. An answer of the store itself is a refusal. */
export const isAway = (result: NotConfirmed): boolean => result.outcome === 'unavailable' || result.status >= 500

export type PushResult = { outcome: 'confirmed' } | NotConfirmed

/** The result of a resend. `detail`: what the customer gets, as a sentence; absent: the store sent all keys again. */
export type ResendResult = { outcome: 'confirmed'; detail?: string } | NotConfirmed

/**
 * The order does not entitle its customer to these keys now. The adapter saw that before it wrote any key, so the shop has none
 * of them. This is no failed attempt: the hand-over waits until the order is read again. `units`: the units of the line that the
 * order has now. The standing `held` can also mean that the shop holds back only this line.
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
 * setting of the shop. The adapter has asked the shop to write to the customer again.
 */
export type FulfilResult = { outcome: 'confirmed'; wasFulfilled?: boolean } | NotConfirmed | NotEntitled

/** Orders as they are now. Some may be left out: the caller reads each of those by `order`. */
export type OrdersNow = { outcome: 'read'; orders: StoreOrderRead[] } | NotConfirmed

/** An update on its way to the store. */
export type Pushed<Update> = Update & {
  /** This id is the same at every attempt. Contents under one id never change, so that the store can ignore a repeat. */
  id: string
  /** The instant of the event that the update reports. */
  at: number
}

/** `keysUrl`: the page on which the customer opens the keys of the order. Each person who has the address can open them. */
export interface OfKeys {
  keysUrl?: string
}

/**
 * Keys on their way to a store: in plain text, or their marks where customers get the link alone. `deliveredNow`: how many units of
 * the line then have a key, counted at this attempt; `delivered`: the same, counted at the first attempt. `otherForm`: for each of
 * `keys` its mark, or for its mark the key: the form that the store may have got under an earlier setting. `unanswered`: keys of the
 * line that other updates may have brought, each in both forms. `replacements`: all keys of the line that come in place of others and
 * bring no unit, in both forms.
 */
export type PushedKeys = Pushed<LineFulfilled> &
  OfKeys & {
    keys: string[]
    deliveredNow?: number
    otherForm?: string[]
    unanswered?: string[]
    replacements?: string[]
  }

/**
 * What a shop in which keys wait for the rest of their order must know to close the order. `mayBeSent`: an earlier update may have
 * sent keys of it by note. `replacements`: all keys of the order that come in place of others, each as itself and as its mark.
 */
export interface Closing {
  mayBeSent?: boolean
  replacements?: string[]
}

/** What a customer reads about late keys, as sentences: that keys are late, how many are there, and how the others come. */
export type LateWords = [late: string, counts: string, next: string]

/** A listing as a store should show it. */
export interface StoreListing {
  /** The store's own id of the variant. The core does not look into it, so an adapter may join several ids of the shop in it. */
  id: string
  sku: string
  name: string
  category: string | null
  price: string
  /** A price above `price`, to show struck through. */
  compareAt: string | null
  currency: string
  /** Units that can be bought; null where units are not counted. */
  stock: number | null
  available: boolean
  /** True: the supplier sells the product no more, and the merchant wants such a product out of sight. */
  isGone?: boolean
  /** True: the listing is taken off sale, so only its stock changes. A store that can write stock alone writes no price. */
  stockAlone?: boolean
  /** Two pushes of one listing may arrive in the wrong sequence. The one with the larger revision is newer. */
  revision: number
}

/**
 * The result of a push of listings: an answer for each listing, or `all` where the store confirms all of them at once. `failure`:
 * the push ended after these answers. A listing without an answer was neither taken nor refused.
 */
export type PublishResult =
  | { outcome: 'answered'; answers: ItemAnswer[] | 'all'; failure?: NotConfirmed }
  | NotConfirmed

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
 * The result of the creation of variants. For each SKU there is an answer: the id of the variant, which is new or was there
 * before, or the reason why there is none. `failure`: the store took nothing more after these answers.
 */
export type CreateResult = { outcome: 'answered'; answers: CreatedVariant[]; failure?: NotConfirmed } | NotConfirmed

export type CreatedVariant = { sku: string } & ({ id: string; isNew: boolean } | { refusal: string })

/** An order as the store has it now. */
export interface StoreOrderRead {
  reference: string
  /** The number by which people know the order, such as `#1001`; absent: `reference` is that number. */
  number?: string
  /** An order that is paid only in part also has the standing `paid`. Then `fullyPaid` is false. */
  standing: Standing
  /** Why the order is unpaid or held, as the end of a sentence that begins with "the order": `is on hold in the shop`. */
  because?: string
  /** True: only the merchant can end the state in `because`, so a remark and one alert say so; `unalerted`: only the remark. */
  isForMerchant?: boolean | 'unalerted'
  /** Whether the shop says that all money of the order came. Where a shop cannot say so, each paid order counts as fully paid. */
  fullyPaid: boolean
  /** When the customer placed it; null where the shop does not say. */
  placedAt: number | null
  /** When the shop changed the order last, by the shop's clock, which may jump; null where the shop does not say. */
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
  /** Refunded money for which the shop names no units, as decimal text in the currency of the lines; absent: none. */
  refundedAmount?: string
  /** True: the shop counts the order as done. */
  isDone?: boolean
  /** True: our mark on the order shows that Quayside has put keys on it. */
  hasOurKeys?: boolean
  /** Why the order must not be bought as it is, such as a total that does not fit its lines; absent: it may be bought. */
  fault?: string
  /** True: in the shop, the merchant asks Quayside to try once more to buy the units that got no keys. */
  retry?: boolean
}

/**
 * `cursor`: where the next call goes on. The caller keeps the cursor also at the end of the list. `unread`: orders of the page
 * that the store did not give. The cursor goes past them, so the caller reads each by `order`. `more`: there is another page
 * already. Pages overlap: an order may come twice, so that no order is missed.
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

/** Keys of an order that its store has got before, in plain text. An adapter neither logs nor stores the keys. */
export interface ResentOrder {
  reference: string
  /** `keys`: licence keys in plain text; their marks where customers get the link alone. */
  lines: { id: string; keys: string[] }[]
  /** As in the update that brought the keys. */
  by?: LineFulfilled['by']
}

export interface Store {
  /** The most listings that one `publish` takes. */
  batchSize: number
  /** The most variants that one `create` takes. Default: `batchSize`. */
  createSize?: number
  /** The most products that are pushed before all their results are recorded at once. Default: 100. */
  productsMax?: number
  /** A request takes effect within so many milliseconds, or never. Default: 0, because repeats do no harm in most stores. */
  settleMs?: number
  /** A push of an update sends its last write at most so many milliseconds after its start. Default: 0. */
  pushMs?: number

  /** Reads a page of the variants that the store sells. @param cursor `next` of the page before; null for the first page */
  variants?(cursor: string | null): Promise<StorePage<StoreVariant>>
  /** Creates at most `createSize` variants. A variant whose SKU the store has already is left as it is. */
  create?(variants: NewVariant[]): Promise<CreateResult>
  /** Pushes at most `batchSize` listings, once. */
  publish(push: { id: string; at: number; listings: StoreListing[] }): Promise<PublishResult>

  /** How keys reach the customers of this store. Absent: in plain text. */
  deliver?: KeyWay | undefined
  /** Hands over licence keys, by the way that the update names. An adapter neither logs nor stores the keys. `keys` may be empty. */
  fulfil(update: PushedKeys): Promise<FulfilResult>
  /** Sends the customer the keys that wait in the shop for the rest of their order. Each key is sent once. */
  sendWaiting?(reference: string): Promise<FulfilResult>
  /** Reports that units of a line will not come. */
  reportFailure(update: Pushed<LineFailed>): Promise<PushResult>
  /** Reports that units of a line wait. */
  reportHeld?(update: Pushed<LineHeld> & OfKeys): Promise<PushResult>
  /** Tells the customer, once for each order, that keys of a paid order are late. */
  reportLate?(late: { reference: string; words: LateWords } & OfKeys): Promise<FulfilResult>
  /** Reports that units which waited are bought now. */
  reportResumed?(update: Pushed<LineResumed>): Promise<PushResult>
  /** Reports why nothing is bought for a paid order. @param refusal.id the same for the same order and reason */
  reportRefusal?(refusal: { id: string; reference: string; message: string }): Promise<PushResult>
  /**
   * Reports that an order has ended: Quayside does nothing more for it. `not_entitled`: the order is unpaid or held, and can only
   * be closed once it is paid. A store without `sendWaiting` gets no `Closing`.
   */
  closeOrder(update: Pushed<OrderClosed> & OfKeys & Closing): Promise<FulfilResult>

  /** Checks whether the store signed a request. */
  verify?(request: StoreRequest): StoreVerification
  /**
   * Reads from the store the order that an authentic body names. Nothing else in the body is trusted: a copy of the shop, such as
   * a test site, has the same secret.
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
  /** How old an order may be, in ms, for the shop to show it. Default: any age. */
  ordersShownMs?: number
  /** Removes the merchant's request for a retry from the order once Quayside has followed it. Harmless where it is gone. */
  retryTaken?(reference: string): Promise<PushResult>
  /** Makes the store send its orders to this address of ours; harmless when it already does. `detail`: what was changed. */
  provision?(url: string): Promise<{ outcome: 'confirmed'; detail: string | null } | NotConfirmed>
  /** Sends the customer the keys of an order again. The store has these keys already. */
  resend?(order: ResentOrder & OfKeys): Promise<ResendResult>

  /** Sends an example of an update, marked as a test. */
  sendExample?(update: Pushed<StoreUpdate> & { keys: string[] }): Promise<PushResult>

  /** Checks everything that Quayside needs to work with the store. The checks have no effect in the store. */
  test(): Promise<StoreFinding[]>
  close(): Promise<void>
}
