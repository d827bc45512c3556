/** A shop that sells: what every kind of it shows to its customers, to the faults and to the verdict. */
import type { Chance } from './chance.ts'
import type { Customers } from './customers.ts'
import type { Life } from './life.ts'
import type { ShopTrouble } from './shop-trouble.ts'
import type { SimStore } from './store.ts'
import type { Timeline } from './timeline.ts'

export interface ShopOptions {
  timeline: Timeline
  chance: Chance
  publicUrl: string
  offers: readonly { sku: string; name: string; priceMinor: number }[]
  /** kill -9 of the process that has this life. */
  kill: (life: Life) => void
}

/** A request of ours that may have brought a customer keys. */
export interface KeyWrite {
  at: number
  order: string
  body: string
  /** For how long the order was cancelled by then; 0: it was not. */
  cancelledMs: number
}

/** A delivery that the shop is about to send. */
export interface ShopDelivery {
  url: string
  headers: Record<string, string>
  body: string
  /** Tells the shop what became of it; null: there was no answer. */
  answered: (status: number | null) => void
}

/** An order as its shop has it. */
export interface OrderInShop {
  /** Its keys are to come. */
  isPaid: boolean
  /** It must not be bought as it is. */
  isFaulty: boolean
  notes: readonly { note: string; createdAt: number }[]
  /** Units of a line that are neither refunded nor removed. */
  unitsDue: (line: string) => number
  /** What a line has of ours, keys among it. */
  textsOf: (line: string) => string[]
  /** Whether the customer, or who handed over by hand, knows of a key. */
  isKnown: (key: string) => boolean
}

/** What becomes of an order once it is there: a deed, and in some one that takes it back. */
export interface Whim {
  deed?: (reference: string) => void
  back?: (reference: string) => void
}

/** Where customers buy, and what they and the merchant do to orders. */
export interface Counter {
  /** One of them is picked; what is there twice happens more often. */
  names: readonly string[]
  whims: Record<string, Whim>
  /** Whether a product is there and has a price. */
  sells: (sku: string) => boolean
  /** @returns its reference and the ids of its lines in order */
  buy: (
    lines: Parameters<Customers['order']>[1],
    whim: string | undefined,
    chance: Chance,
  ) => { reference: string; lines: string[] }
  cancel: (reference: string, isRefunded: boolean) => void
  status: (reference: string) => string | undefined
}

export interface SimShop {
  store: SimStore
  counter: Counter
  /** A customer or the merchant does something in the shop. */
  act: <T>(deed: () => T) => T
  /** Called when something was done in the shop. */
  changed: Set<() => void>
  trouble: ShopTrouble
  takeDeliveries: () => ShopDelivery[]
  signatureHeader: string
  isCancelled: (reference: string) => boolean
  orderIn: (reference: string) => OrderInShop | undefined
  /** Lines that a key stands in. @param line that it was bought for */
  placesOf: (key: string, line: string) => string[]
  /** Mails of ours that gave a customer a key; none of a shop whose mails repeat all keys. */
  newsOf: (key: string) => { kind: string; at: number }[]
  writes: readonly KeyWrite[]
  /** Order and line -> units that were paid for when we read the order, and when we first did. */
  shown: ReadonlyMap<string, { units: number; at: number }>
  /** What else its record shows to be wrong. @param keys of each line */
  faultsIn: (keys: ReadonlyMap<string, readonly string[]>) => string[]
}

const MINUTE = 60_000

/** How long an order may have been cancelled when a key is written into it: we look first, and a request may take its time. */
export const CANCELLED_MAX_MS = 10 * MINUTE
