/** What the campaign asks of a shop, whatever its kind. */
import type { KeyWay } from '../../../src/domain/store-update.ts'
import type { LedgerReport } from '../../../src/sandbox/ledger.ts'
import type { Chance } from '../torture/chance.ts'
import type { createEntitled, OrderNow } from './entitled.ts'
import type { OpenedOrder } from './pages.ts'

/** No licence key: the merchant sends it. */
export const SHIRT = 'SHIRT'
/** What the merchant asked before the service was there. */
export const OLD_PRICE = '99.00'
/** Names of products that were there before the service begin with this. */
export const OWN = 'Own '
/** Longest wait for money, and for a merchant who deals with an order. */
export const LATER_MAX_MS = 4_000
/** Of the paid orders so many are changed by their merchant, once or twice. */
export const CHANGED = 1 / 3
/** Longest wait before a change, and before it is taken back. */
export const CHANGE_MAX_MS = 8_000

/** What the supplier knows, beside which a shop is judged. */
export interface SupplierBooks {
  ledger: Pick<LedgerReport, 'charges' | 'refunds' | 'keysIssued' | 'closes'>
  /** Of every offer of the supplier. */
  skus: readonly string[]
  /** What the shop sells beside the supplier's offers. */
  others: readonly string[]
  /** Most units of one purchase. */
  quantityMax: number
  /** What customers see behind the links that the shop brought them, by order; undefined: the shop brings none. */
  opened: ReadonlyMap<string, OpenedOrder> | undefined
}

export interface ShopOpening {
  now: () => number
  /** What the merchant sells before the service comes. */
  own: readonly { sku: string; name: string }[]
  /** How the keys reach customers (default: that of the kind). */
  deliver?: KeyWay | undefined
}

export interface PlayedShop extends Exposed {
  /** What the configuration says of it. */
  settings: { kind: string; url: string; create: 'draft' | 'publish'; growth?: 'buy'; deliver: KeyWay }
  /** Its two credentials, joined by a colon. */
  credentials: string
  /** SKUs that have a price of the service, and are shown to customers. */
  onSale: () => string[]
  /** The merchant looks through what the service made. */
  merchantLooks?: () => void
  /** A customer buys, pays at once, later or never; with some orders the merchant deals by hand. */
  buy: (lines: { sku: string; quantity: number }[], chance: Chance) => Promise<void>
  orders: () => PlacedOrder[]
  /** What the orders entitle their customers to, over time. */
  entitled: ReturnType<typeof createEntitled>
  /** How the orders are now. */
  ordersNow: () => OrderNow[]
  /** Products that the service made. */
  created: () => number
  /** The links that the customer of an order finds in its mails and on the shop's own page of it. */
  linksOf: (order: string) => string[]
  /** @returns one sentence for each thing that is wrong; none where all is right */
  faultsIn: (books: SupplierBooks) => string[]
  /** What the outcome says of this kind alone. */
  figures?: () => Record<string, number>
  /** Takes no connection any more, until `start`. */
  stop: () => Promise<void>
  start: () => Promise<void>
  close: () => Promise<void>
}

export interface PlacedOrder {
  paidAt: number | null
  /** Its customer has everything. */
  isDone: boolean
}

/** What of a shop the weather strikes. */
export interface Exposed {
  /** Calls `draw` once for each request before it is answered; the fault that it names befalls the request. */
  expose: (draw: (request: ExposedRequest) => string | undefined, chance: Chance) => void
  takeDeliveries: () => { send: () => void; lose: () => void }[]
  /** From now on the service hears no answer, and may not have stored the last ones. */
  interrupted: () => void
  /** The end of one interruption; others may go on. To be called before the service can write anything. */
  resumed: () => void
}

export interface ExposedRequest {
  kind: string
  /** It makes products, or prices them. */
  isPush: boolean
  /** What can befall it. */
  faults: readonly string[]
  /** What befalls it in every run. */
  certain?: string | undefined
}
