import type { Product } from './catalogue.ts'
import type { Webhooks } from './webhooks.ts'
import type { Ground } from './world.ts'

export interface Offer extends Product {
  /** Set when the product left the catalogue. Lists then omit it, and its address answers that it is gone. */
  withdrawnAt: number | null
  updatedAt: number
}

/** A change by hand; absent fields stay. `stock` sets the stock of the product's origin, local or provider; the other is 0. */
export interface OfferChange {
  stock?: number | undefined
  localStock?: number | undefined
  providerStock?: number | undefined
  priceMinor?: number | undefined
  available?: boolean | undefined
  withdrawn?: boolean | undefined
}

export interface OfferFilter {
  search?: string | undefined
  category?: string | undefined
  inStock?: boolean | undefined
}

export type Offers = ReturnType<typeof keepOffers>

export const sellable = (offer: Offer): number =>
  offer.available && offer.withdrawnAt === null ? offer.localStock + offer.providerStock : 0

/** Keeps the catalogue with its changes. Only products that were sold or changed have a row. */
export function keepOffers({ db, catalogue, now, startedAt }: Ground, webhooks: Webhooks) {
  const columns = `id, local_stock as localStock, provider_stock as providerStock, price_minor as priceMinor, available,
    withdrawn_at as withdrawnAt, updated_at as updatedAt`
  const changed = db.prepare<[string], Changed>(`select ${columns} from offers where id = ?`)
  const allChanged = db.prepare<[], Changed>(`select ${columns} from offers`)
  const anyChanged = db.prepare('select 1 from offers limit 1')
  const withdrawnIds = db.prepare<[], string>('select id from offers where withdrawn_at is not null').pluck()
  const put = db.prepare<[Changed]>(
    `insert or replace into offers (id, local_stock, provider_stock, price_minor, available, withdrawn_at, updated_at)
     values (@id, @localStock, @providerStock, @priceMinor, @available, @withdrawnAt, @updatedAt)`,
  )
  const join = (product: Product, row: Changed | undefined): Offer =>
    row
      ? { ...product, ...row, available: row.available === 1 }
      : { ...product, withdrawnAt: null, updatedAt: startedAt }

  /** The positions that lists omit, in order. There are few of them. */
  let hidden: number[] | undefined
  const hiddenPlaces = (): number[] => {
    const positions = withdrawnIds.all().map((id) => catalogue.find(id) ?? -1)
    hidden = positions.filter((position) => position >= 0).sort((a, b) => a - b)
    return hidden
  }

  const get = (id: string): Offer | undefined => {
    const index = catalogue.find(id)
    return index === undefined ? undefined : join(catalogue.at(index), changed.get(id))
  }

  const save = (before: Offer, after: Offer): void => {
    const { id, localStock, providerStock, priceMinor, withdrawnAt } = after
    const available = after.available ? 1 : 0
    hidden = undefined
    put.run({ id, localStock, providerStock, priceMinor, available, withdrawnAt, updatedAt: now() })
    const [had, has] = [sellable(before) > 0, sellable(after) > 0]
    if (had && !has) webhooks.emit('product.out_of_stock', { productId: id })
    if (!had && has) webhooks.emit('product.restocked', { productId: id })
    if (before.priceMinor !== priceMinor) webhooks.emit('product.price_changed', { productId: id })
  }

  return {
    get,
    /** Returns one page in the catalogue's order. A filter reads the whole catalogue, but only the page is kept. */
    list: (filter: OfferFilter, offset: number, limit: number): { items: Offer[]; total: number } => {
      const filtered = Object.values(filter).some((value) => value !== undefined && value !== false)
      if (!filtered) {
        const left = hidden ?? hiddenPlaces()
        const total = catalogue.size - left.length
        const positions = shownPositions(left, offset, Math.max(0, Math.min(limit, total - offset)))
        const asMade = anyChanged.get() === undefined
        const items = positions.map((position) => {
          const product = catalogue.at(position)
          return join(product, asMade ? undefined : changed.get(product.id))
        })
        return { items, total }
      }
      const rows = new Map(allChanged.all().map((row) => [row.id, row]))
      const items: Offer[] = []
      let total = 0
      for (let index = 0; index < catalogue.size; index += 1) {
        const product = catalogue.at(index)
        const offer = join(product, rows.get(product.id))
        if (offer.withdrawnAt !== null || !passes(offer, filter)) continue
        if (total >= offset && items.length < limit) items.push(offer)
        total += 1
      }
      return { items, total }
    },
    /** Takes units out of stock, local units first. In dialects where stock is a `hint`, more units can be sold than are left. */
    sell: (offer: Offer, quantity: number): void => {
      const local = Math.min(offer.localStock, quantity)
      const providerStock = Math.max(0, offer.providerStock - (quantity - local))
      save(offer, { ...offer, localStock: offer.localStock - local, providerStock })
    },
    /** Raises the price of each product whose position is a multiple of `every` by one minor unit. @returns how many prices */
    reprice: db.transaction((every: number): number => {
      let count = 0
      for (let position = 0; position < catalogue.size; position += every) {
        const product = catalogue.at(position)
        const before = join(product, changed.get(product.id))
        save(before, { ...before, priceMinor: before.priceMinor + 1 })
        count += 1
      }
      return count
    }),
    /** @returns the changed offer; undefined when there is no such product */
    change: db.transaction((id: string, change: OfferChange): Offer | undefined => {
      const before = get(id)
      if (!before) return undefined
      save(before, changedOffer(before, change, now()))
      return get(id)
    }),
  }
}

/** Returns the positions of a page in a list with omitted positions. @param hidden the omitted positions, in order */
function shownPositions(hidden: number[], offset: number, count: number): number[] {
  let position = offset
  let next = 0
  while (next < hidden.length && (hidden[next] as number) <= position) {
    position += 1
    next += 1
  }
  const positions: number[] = []
  for (; positions.length < count; position += 1) {
    if (hidden[next] === position) next += 1
    else positions.push(position)
  }
  return positions
}

/** A row of `offers`. `available` is a number, because SQLite has no booleans. */
type Changed = Pick<Offer, 'id' | 'localStock' | 'providerStock' | 'priceMinor' | 'withdrawnAt' | 'updatedAt'> & {
  available: number
}

function changedOffer(before: Offer, change: OfferChange, at: number): Offer {
  const { stock, withdrawn } = change
  const ofOrigin = (origin: Offer['origin']) => (stock === undefined ? undefined : origin === before.origin ? stock : 0)
  return {
    ...before,
    localStock: change.localStock ?? ofOrigin('local') ?? before.localStock,
    providerStock: change.providerStock ?? ofOrigin('provider') ?? before.providerStock,
    priceMinor: change.priceMinor ?? before.priceMinor,
    available: change.available ?? before.available,
    withdrawnAt: withdrawn === undefined ? before.withdrawnAt : withdrawn ? at : null,
  }
}

function passes(offer: Offer, { search, category, inStock }: OfferFilter): boolean {
  if (category !== undefined && offer.category !== category) return false
  if (inStock && sellable(offer) === 0) return false
  if (search === undefined) return true
  const wanted = search.toLowerCase()
  return offer.name.toLowerCase().includes(wanted) || offer.sku.toLowerCase().includes(wanted)
}
