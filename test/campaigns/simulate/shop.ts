/** A shop that sells: what every kind of it shows to its customers, to the faults and to the verdict. */
import type { Chance } from './chance.ts'
import type { Customers } from './customers.ts'
import type { Facts } from './facts.ts'
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
}

/**
 * @param chainFrom when the unbroken chain of requests of one process about this order began
 * @returns what is called once the shop has run the request, or has lost it
 */
export type Departing = Set<(body: string, chainFrom: number) => (() => void) | undefined>

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
  /** Some of its money came, and not all. */
  isShort: boolean
  /** It must not be bought as it is. */
  isFaulty: boolean
  notes: readonly { note: string; createdAt: number }[]
  lines: readonly { id: string; sku: string }[]
  /** Units of a line that are neither refunded nor removed. */
  unitsDue: (line: string) => number
  /** What a line has of ours, keys among it. */
  textsOf: (line: string) => string[]
  /** Whether the customer, or who handed over by hand, knows of a key. */
  isKnown: (key: string) => boolean
}

/** Does something to an order, where that is possible. */
export type Edit = (reference: string, chance: Chance) => void

/** Where customers buy, and what they and the merchant do to orders. */
export interface Counter {
  /** How an order is placed, and what its customer came for by that. */
  ways: Record<string, readonly string[]>
  edits: Record<string, Edit>
  /** Those by which an order is put right. */
  rights: readonly string[]
  /** The one by which what ended is tried again; undefined where there is none for that alone. */
  wish?: string
  /** Whether a product is there and has a price. */
  sells: (sku: string) => boolean
  /** @returns its reference and the ids of its lines in order */
  buy: (
    lines: Parameters<Customers['order']>[1],
    way: string | undefined,
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
  orderIn: (reference: string) => OrderInShop | undefined
  /** Lines that a key stands in. @param line that it was bought for */
  placesOf: (key: string, line: string) => string[]
  /** Mails of ours that gave a customer a key; none of a shop whose mails repeat all keys. */
  newsOf: (key: string) => { kind: string; at: number }[]
  writes: readonly KeyWrite[]
  /** Called when a request of ours leaves that changes something in the shop. */
  departing: Departing
  /** Called when the shop has answered with an order, and when a request of ours has changed one. */
  moments: Set<(moment: 'read' | 'written', reference: string) => void>
  facts: Facts
  /** Whether it sells this for us. */
  isOurs: (sku: string) => boolean
  /** How often the merchant has asked for what ended to be tried again. */
  wishes: (reference: string) => number
  /** What else its record shows to be wrong. @param keys of each line */
  faultsIn: (keys: ReadonlyMap<string, readonly string[]>) => string[]
}
