/**
 * What Kinguin has: products with offers, orders, keys and money. It is always true: a fault is in an answer, never in here.
 *
 * `kinguin.md` says for each habit which document has it, and what the documents leave open.
 */
import { randomBytes } from 'node:crypto'
import { pictureOf } from './key-picture.ts'

/** What the documents do not say. The first word of each is the one that the tests use where it does not matter. */
export interface OpenFacts {
  /** A second order with the same `orderExternalId`, which "should be unique". */
  secondReference: 'accepted' | 'refused'
  /** Whether a price above the cheapest offer buys, or only the price of an offer. */
  price: 'ceiling' | 'exact'
  /** The table says text, the examples have a number. */
  paymentPrice: 'number' | 'text'
  /** What is charged below the price of the offers, in hundredths: the examples charge 5.29 for 5.79. */
  discountPercent: number
  /** An order says `productId` in its own way in the examples: not the id that the product has. */
  productIdOfOrder: 'same' | 'another'
  /** Whether a product without units is in the list of products. */
  soldOut: 'absent' | 'listed'
  /** Whether `keyType: text` brings texts alone, or "the random type of the key". */
  keyType: 'obeyed' | 'ignored'
  /** Whether keys show before the order is completed. */
  keysCome: 'one by one' | 'together'
  /** Whether the money of a cancelled order comes back. */
  canceled: 'paid back' | 'kept'
  /** Which end of the orders comes first. */
  orderSort: 'newest first' | 'oldest first'
  /** For how long a new order is missing from the search. */
  searchLagMs: number
}

export const OPEN_FACTS: OpenFacts = {
  secondReference: 'accepted',
  price: 'ceiling',
  paymentPrice: 'number',
  discountPercent: 0,
  productIdOfOrder: 'same',
  soldOut: 'absent',
  keyType: 'obeyed',
  keysCome: 'one by one',
  canceled: 'paid back',
  orderSort: 'newest first',
  searchLagMs: 0,
}

export interface Offer {
  offerId: string
  /** EUR cents. */
  price: number
  texts: number
  pictures: number
}

export interface Product {
  kinguinId: number
  productId: string
  name: string
  platform: string
  isPreorder: boolean
  offers: Offer[]
  updatedAt: number
}

export interface Key {
  id: string
  serial: string
  type: 'text/plain' | 'image/jpeg' | 'image/png' | 'image/gif'
  status: 'PENDING' | 'DELIVERED' | 'REFUNDED' | 'CANCELED'
  offerId: string
}

export type Status = 'processing' | 'completed' | 'canceled' | 'refunded'

/** What an order has of one offer: the API selects the offers, and may take several. */
export interface Line {
  offerId: string
  qty: number
  /** EUR cents of one unit. */
  price: number
  requestPrice: number
}

export interface Order {
  orderId: string
  orderExternalId: string | undefined
  product: Product
  lines: Line[]
  keys: Key[]
  keyType: 'text' | undefined
  status: Status
  createdAt: number
  /** EUR cents that left the balance. */
  charged: number
}

/** A charge or a refund, EUR cents. */
export interface Entry {
  orderId: string
  reference: string
  amount: number
}

/** The kinds of errors that the documents list. */
export type ErrorKind =
  | 'ConstraintViolation'
  | 'Error'
  | 'HttpClient'
  | 'Http'
  | 'Authorization'
  | 'InsufficientBalance'
  | 'OrderFailed'
  | 'Preorder'
  | 'ProductUnavailable'
  | 'OrderNotFound'
  | 'ResourceLock'
  | 'OrderNotSupported'
  | 'NoKeysToReturn'

/** Why a request is refused. `none`: with a 404 that has no body. */
export class Refusal extends Error {
  readonly kind: ErrorKind | 'none'
  readonly propertyPath: string | undefined
  constructor(kind: ErrorKind | 'none', detail: string, propertyPath?: string) {
    super(detail)
    this.kind = kind
    this.propertyPath = propertyPath
  }
}

export interface Wanted {
  productId: string
  qty: number
  /** EUR cents. */
  price: number
  keyType?: 'text' | undefined
  orderExternalId?: string | undefined
}

/** Most units of one offer in an order, but for wholesale. */
export const QTY_MAX = 9

export type Ledger = ReturnType<typeof createLedger>

export function createLedger(products: Product[], facts: OpenFacts, balance: number, now = Date.now) {
  const orders: Order[] = []
  const charges: Entry[] = []
  const refunds: Entry[] = []
  const books = { balance }
  let serials = 0

  const cheapest = ({ offers }: Product): Offer[] => {
    const sold = offers.filter(({ texts, pictures }) => texts + pictures > 0)
    const price = Math.min(...sold.map((offer) => offer.price))
    return sold.filter((offer) => offer.price === price)
  }
  const unitsOf = (offer: Offer, textsOnly: boolean): number => offer.texts + (textsOnly ? 0 : offer.pictures)

  /** @throws Refusal when no offers have so many units at this price */
  function select(product: Product, { qty, price, keyType }: Wanted): Line[] {
    const textsOnly = keyType === 'text' && facts.keyType === 'obeyed'
    const fits = ({ price: own }: Offer) => (facts.price === 'exact' ? own === price : own <= price)
    const lines: Line[] = []
    let left = qty
    for (const offer of product.offers.filter(fits).toSorted((a, b) => a.price - b.price)) {
      const taken = Math.min(left, unitsOf(offer, textsOnly))
      if (taken > 0) lines.push({ offerId: offer.offerId, qty: taken, price: offer.price, requestPrice: price })
      left -= taken
    }
    if (left > 0) throw new Refusal('ProductUnavailable', 'Unable to find any offer matching order request criteria.')
    return lines
  }

  /** Takes a unit of an offer away. @returns its key, which is not there yet */
  function reserve(offer: Offer, textsOnly: boolean): Key {
    const isText = textsOnly || offer.texts > offer.pictures
    if (isText) offer.texts -= 1
    else offer.pictures -= 1
    serials += 1
    const serial = `KNGN-${String(serials).padStart(5, '0')}-${randomBytes(4).toString('hex').toUpperCase()}`
    const key = { id: randomBytes(12).toString('hex'), status: 'PENDING' as const, offerId: offer.offerId }
    return isText ? { ...key, type: 'text/plain', serial } : { ...key, ...pictureOf(serial, serials) }
  }

  return {
    facts,
    products,
    orders,
    charges,
    refunds,
    books,
    /** Units and price as a product shows them: those of its cheapest offers. */
    figuresOf: (product: Product) => {
      const best = cheapest(product)
      const qty = best.reduce((sum, offer) => sum + offer.texts + offer.pictures, 0)
      const textQty = best.reduce((sum, offer) => sum + offer.texts, 0)
      const totalQty = product.offers.reduce((sum, offer) => sum + offer.texts + offer.pictures, 0)
      return { best, qty, textQty, totalQty, price: best[0]?.price ?? product.offers[0]?.price ?? 0 }
    },
    order: (orderId: string) => orders.find((order) => order.orderId === orderId),
    /** Charges and makes an order. @throws Refusal when nothing is charged */
    place: (wanted: Wanted): Order => {
      const product = products.find(({ productId }) => productId === wanted.productId)
      if (!product) throw new Refusal('ProductUnavailable', 'Unable to find any offer matching order request criteria.')
      if (product.isPreorder && wanted.keyType !== undefined) {
        throw new Refusal('Preorder', 'The "keyType" field is not allowed with pre-order.', 'products')
      }
      const isUsed = orders.some((order) => order.orderExternalId === wanted.orderExternalId)
      if (facts.secondReference === 'refused' && wanted.orderExternalId !== undefined && isUsed) {
        throw new Refusal('ConstraintViolation', 'This value is already used.', 'orderExternalId')
      }
      const lines = select(product, wanted)
      const total = lines.reduce((sum, { qty, price }) => sum + qty * price, 0)
      const charged = Math.round((total * (100 - facts.discountPercent)) / 100)
      if (charged > books.balance) throw new Refusal('InsufficientBalance', 'There are not enough funds.')
      const textsOnly = wanted.keyType === 'text' && facts.keyType === 'obeyed'
      const keys = lines.flatMap(({ offerId, qty }) => {
        const offer = product.offers.find((one) => one.offerId === offerId) as Offer
        return Array.from({ length: qty }, () => reserve(offer, textsOnly))
      })
      product.updatedAt = now()
      books.balance -= charged
      const order: Order = {
        orderId: `P${randomBytes(5).toString('hex').toUpperCase()}`,
        orderExternalId: wanted.orderExternalId,
        product,
        lines,
        keys,
        keyType: wanted.keyType,
        status: 'processing',
        createdAt: now(),
        charged,
      }
      orders.push(order)
      charges.push({ orderId: order.orderId, reference: wanted.orderExternalId ?? '', amount: charged })
      return order
    },
    /** Delivers the next key, or all that are left. The order is completed with the last one. */
    deliver: (order: Order, howMany = order.keys.length): void => {
      if (order.status !== 'processing') return
      for (const key of order.keys.filter(({ status }) => status === 'PENDING').slice(0, howMany))
        key.status = 'DELIVERED'
      if (order.keys.every(({ status }) => status === 'DELIVERED')) order.status = 'completed'
    },
    /** Ends an order without keys. Its money comes back, unless the facts say otherwise of a cancelled one. */
    end: (order: Order, status: 'canceled' | 'refunded'): void => {
      if (order.status === 'canceled' || order.status === 'refunded') return
      order.status = status
      for (const key of order.keys) key.status = status === 'canceled' ? 'CANCELED' : 'REFUNDED'
      if (status === 'canceled' && facts.canceled === 'kept') return
      books.balance += order.charged
      refunds.push({ orderId: order.orderId, reference: order.orderExternalId ?? '', amount: order.charged })
    },
  }
}

const PLATFORMS = ['Steam', 'EA App', 'GOG', 'Ubisoft Connect', 'PC Battle.net']

/** Products with one to three offers; every seventh has pictures too, every fiftieth is a pre-order. */
export function makeProducts(count: number, now = Date.now()): Product[] {
  return Array.from({ length: count }, (_, index) => {
    const price = 199 + ((index * 37) % 4_000)
    const kinguinId = 1_001 + index
    const offers = Array.from({ length: 1 + (index % 3) }, (_, place) => ({
      offerId: `5f7efe3b${kinguinId.toString(16).padStart(12, '0')}${String(place).padStart(4, '0')}`,
      // The first two offers of a product are equally cheap.
      price: price + (place > 1 ? 60 : 0),
      texts: 20 + ((index + place) % 9),
      pictures: index % 7 === 6 ? 5 : 0,
    }))
    return {
      kinguinId,
      productId: `5c9b5f6b${kinguinId.toString(16).padStart(16, '0')}`,
      name: `Game ${kinguinId} Steam CD Key`,
      platform: PLATFORMS[index % PLATFORMS.length] ?? 'Steam',
      isPreorder: index % 50 === 49,
      offers,
      updatedAt: now - 86_400_000 - index * 1_000,
    }
  })
}
