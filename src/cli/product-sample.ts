/**
 * Three products as the dialect reads them, for a person to compare with the supplier's own pages.
 *
 * A dialect that leads to the wrong field, or to cents where it says euros, reads every record without a fault. Only a
 * person who knows a price sees it.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Dialect } from '../dialect/dialect.ts'
import { formatDecimal } from '../domain/money.ts'
import type { SupplierOffer } from '../domain/supplier.ts'
import { Failure } from '../errors.ts'
import type { Secret } from '../secret.ts'
import { createSupplier, type Supplier } from '../supplier/client.ts'
import { Unreadable } from '../supplier/unreadable.ts'
import { type Columns, right, table } from './output.ts'

const COUNT = 3

/** Enough to find some that can be bought, few enough for one quick request. */
const PAGE = 25

/** Those that say most: what can be bought and has a cost comes first. */
export const chooseProducts = (offers: SupplierOffer[]): SupplierOffer[] =>
  offers.toSorted((one, other) => Number(tellsMore(other)) - Number(tellsMore(one))).slice(0, COUNT)

const tellsMore = ({ available, costFault }: SupplierOffer): boolean => available && costFault === undefined

/**
 * Reads three products.
 *
 * @throws Failure `unavailable` when none can be read, or none has a cost: what the supplier or the first record says
 */
export async function readProducts(supplier: Pick<Supplier, 'products'>): Promise<SupplierOffer[]> {
  const { items, unreadable, requestId } = await supplier.products({ page: 1, limit: PAGE })
  const [fault] = unreadable
  if (items.length > 0) {
    if (items.some(({ costFault }) => costFault === undefined)) return chooseProducts(items)
    const shown = chooseProducts(items).map(productText).join('; ')
    throw new Failure('unavailable', `no product has a cost that can be read: ${shown}`, { reason: 'cost' })
  }
  if (!fault) throw new Failure('unavailable', 'the supplier lists no product', { reason: 'empty' })
  const message = `no product can be read: ${fault.setting} of the dialect is ${fault.field}, and ${fault.seen} is there`
  throw new Unreadable(fault, message, requestId)
}

/** What a supplier is asked with. */
export interface SupplierAccess {
  /** Ends in `/v1`. */
  baseUrl: string
  dialect: Dialect
  apiKey: Secret
}

/** For one try of three: a person waits for it. */
const PERSON_WAITS_MS = 5_000

/**
 * Reads three products from a supplier that may not be set up yet.
 *
 * @throws Failure `unavailable` or `rejected` when none can be read
 */
export async function sampleOf({ baseUrl, dialect, apiKey }: SupplierAccess): Promise<SupplierOffer[]> {
  const supplier = createSupplier({
    baseUrl,
    dialect,
    apiKey,
    now: () => Date.now(),
    random: Math.random,
    sleep: (ms) => sleep(ms),
    fetchDeadlineMs: PERSON_WAITS_MS,
  })
  try {
    return await readProducts(supplier)
  } finally {
    await supplier.close()
  }
}

/** As a table: name, cost, stock. */
export function productTable(offers: SupplierOffer[], width: number): string {
  const columns: Columns<SupplierOffer> = { NAME: 'name', COST: right(costText), STOCK: stockText }
  return table(offers, columns, width)
}

/** In one line. */
export const productText = (offer: SupplierOffer): string =>
  `${offer.name}, cost ${costText(offer)}, stock ${stockText(offer)}`

/** For `--json`. */
export const productView = (offer: SupplierOffer) => ({
  productId: offer.productId,
  sku: offer.sku,
  name: offer.name,
  cost: costText(offer),
  stock: stockText(offer),
})

const costFaults = {
  missing: 'cannot be read',
  zero: 'is 0',
  negative: 'is below 0',
  currency: 'in another currency',
} satisfies Record<NonNullable<SupplierOffer['costFault']>, string>

function costText({ costMinor, currency, costFault }: SupplierOffer): string {
  const amount = `${formatDecimal({ minor: costMinor, currency })} ${currency}`
  if (costFault === undefined) return amount
  return costMinor > 0 ? `${amount}, ${costFaults[costFault]}` : costFaults[costFault]
}

function stockText({ available, localStock, providerStock }: SupplierOffer): string {
  if (!available) return 'cannot be bought'
  if (localStock === undefined && providerStock === undefined) return 'not counted'
  if (localStock === undefined || providerStock === undefined) return String(localStock ?? providerStock)
  return `${localStock + providerStock} (${localStock} local, ${providerStock} provider)`
}
