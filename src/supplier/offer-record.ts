import { type Dialect, parentOf } from '../dialect/dialect.ts'
import { type CostFault, UNDATED } from '../domain/offer.ts'
import type { SupplierOffer } from '../domain/supplier.ts'
import {
  asAmount,
  asCount,
  asCurrency,
  asDescription,
  asFlag,
  asId,
  asImage,
  asInstant,
  asMoney,
  asText,
  pathReader,
  type Read,
  unreadField,
} from './records.ts'

/* Records of the catalogue. A sync run reads up to a million of them: the dialect's paths are parsed only once. */

type Reader = (record: unknown) => Read<SupplierOffer>

const readers = new WeakMap<Dialect, Reader>()

/**
 * Reads one product.
 *
 * A record is still an offer when its cost is invalid (`costFault`) or an optional field cannot be read (`unread`): without
 * the record, the offer would be sold at the price and from the stock of yesterday.
 */
export function parseOffer(record: unknown, dialect: Dialect): Read<SupplierOffer> {
  let reader = readers.get(dialect)
  if (!reader) {
    reader = offerReader(dialect)
    readers.set(dialect, reader)
  }
  return reader(record)
}

function offerReader(dialect: Dialect): Reader {
  const { product, money } = dialect
  const [idAt, skuAt, nameAt] = [pathReader(product.id), pathReader(product.sku), pathReader(product.name)]
  const [costAt, aroundCost] = [pathReader(product.cost), pathReader(parentOf(product.cost))]
  const [availableAt, currencyAt] = [pathReader(product.available), pathReader(product.currency)]
  const minor = asMoney(dialect, money.currency)
  const flag = asFlag(dialect.flags.available)
  const optional = optionalReader(dialect)
  return (record) => {
    const productId = asId(idAt(record))
    if (productId === undefined) return unreadField('product.id', product.id, idAt(record))
    const sku = asId(skuAt(record))
    if (sku === undefined) return unreadField('product.sku', product.sku, skuAt(record))
    const name = asText(nameAt(record))
    if (name === undefined) return unreadField('product.name', product.name, nameAt(record))
    const available = flag(availableAt(record))
    if (available === undefined) return unreadField('product.available', product.available, availableAt(record))
    const stated = currencyAt(record) ?? money.currency
    const own = stated === money.currency
    const currency = own ? money.currency : (asCurrency(stated) ?? money.currency)
    const readCost = own ? minor : asMoney(dialect, currency)
    const cost = readCost(costAt(record), aroundCost(record)) ?? Number.NaN
    const costFault = own ? faultOf(cost) : 'currency'
    const offer: SupplierOffer = { productId, sku, name, costMinor: cost > 0 ? cost : 0, currency, available }
    if (costFault !== undefined) offer.costFault = costFault
    optional(record, offer, own)
    return { ok: true, value: offer }
  }
}

/** @param cost minor units; NaN when the record states no readable cost */
const faultOf = (cost: number): CostFault | undefined =>
  cost > 0 ? undefined : cost < 0 ? 'negative' : cost === 0 ? 'zero' : 'missing'

/**
 * Reads the optional fields into the offer. An unreadable field counts as not stated, with two exceptions: an unreadable stock
 * counts as no units, and an unreadable instant as the beginning of time.
 */
function optionalReader(dialect: Dialect) {
  const { product, money } = dialect
  const amount = asAmount(dialect, money.currency)
  const fields: Optional[] = [
    { path: product.category, key: 'category', read: asText },
    { path: product.description, key: 'description', read: asDescription },
    { path: product.image, key: 'image', read: asImage },
    // These amounts are not read when the record is in another currency than the dialect's.
    { path: product.basePrice, key: 'basePriceMinor', read: amount, ofOwn: true },
    { path: product.cashback, key: 'cashbackMinor', read: amount, ofOwn: true },
    { path: product.localStock, key: 'localStock', read: asCount, unread: 0 },
    { path: product.providerStock, key: 'providerStock', read: asCount, unread: 0 },
    { path: product.origin, key: 'origin', read: asText },
    { path: product.updatedAt, key: 'asOf', read: asInstant(dialect), unread: UNDATED },
  ]
  const steps = fields.flatMap(({ path, ...field }) =>
    path === null ? [] : [{ ...field, path, at: pathReader(path), around: pathReader(parentOf(path)) }],
  )
  return (record: unknown, offer: SupplierOffer, own: boolean): void => {
    const target = offer as unknown as Record<string, unknown>
    for (const { path, key, at, around, read, ofOwn, unread } of steps) {
      if (ofOwn && !own) continue
      const value = at(record)
      if (value === undefined || value === null) continue
      const result = read(value, around(record))
      if (result === undefined) {
        offer.unread ??= []
        offer.unread.push(path)
      }
      const kept = result ?? unread
      if (kept !== undefined) target[key] = kept
    }
  }
}

interface Optional {
  path: string | null
  key: keyof SupplierOffer
  read: (value: unknown, around: unknown) => unknown
  /** The value of a field that cannot be read (default: not stated). */
  unread?: number
  /** The field is read only when the record's amounts are in the currency of the dialect. */
  ofOwn?: true
}
