/**
 * The figures by which a rehearsed upgrade compares two versions: what each would do with one database at one instant. No
 * request is sent.
 *
 * Format 1, which every later version keeps: lines of JSON. First a `FiguresHead`, then figures in the order of their keys, piece
 * by piece and byte by byte, then `{"end": <number of figures>}`. Fields and kinds may be added: what one side lacks is no difference.
 */
import { priceTexts } from '../domain/money.ts'
import { type PurchaseInput, transition } from '../domain/purchase.ts'
import { assess, type SellingStore } from '../listings/assess.ts'
import { factsOf } from '../ordering/advance.ts'
import { freshPace } from '../ordering/context.ts'
import { firstFailingGuard, type Guarding } from '../ordering/guards.ts'
import { standingBy } from '../ordering/order-view.ts'
import { keysOfPurchases } from '../storage/licence-keys.ts'
import { pageOfListings } from '../storage/listings.ts'
import { purchasesOfOrders } from '../storage/purchases.ts'
import { linesOfOrders, openOrders } from '../storage/store-orders.ts'

export interface FiguresHead {
  quayside: string
  format: 1
  /** The migrations that the copy lacked, with the time that each took. */
  migrations: { name: string; ms: number }[]
}

export interface Figure {
  kind: 'finding' | 'listing' | 'order' | 'purchase'
  key: string[]
  /** What it is about, for people. */
  of: string
  is: Record<string, string | number | boolean | null>
}

interface Parts extends Pick<Guarding, 'db' | 'policy' | 'dialect'> {
  /** Epoch ms: the instant at which both versions decide. */
  at: number
  stores: readonly SellingStore[]
}

const LISTINGS_PAGE = 500
/** An order has up to a thousand purchases. */
const ORDERS_PAGE = 20

/** Yields a page at a time: every listing of the stores, then every open order, each followed by its purchases. */
export async function* figuresOf(parts: Parts): AsyncGenerator<Figure[]> {
  const { db, at } = parts
  const silent = { refreshOffer: async () => {}, checkBalance: async () => {} }
  const guarding = { ...parts, ...silent, now: () => at, monotonic: () => 0, random: () => 0, pace: freshPace() }
  for (const store of parts.stores.toSorted((a, b) => Buffer.compare(Buffer.from(a.id), Buffer.from(b.id)))) {
    for (let after: string | undefined; ; ) {
      const rows = await db.query(pageOfListings({ store: store.id, after, limit: LISTINGS_PAGE }))
      if (rows.length === 0) break
      after = rows.at(-1)?.variant
      yield (await assess(db, store, { offers: [], rows }, at)).map(({ row, decision: { content, state, reason } }) => {
        const { currency = null, stock = null, available = null, name = null } = content ?? {}
        const prices = content ? priceTexts(content) : { price: null, compareAt: null }
        const is = { ...prices, currency, state, reason, stock, available, name }
        return { kind: 'listing', key: ['2', store.id, row.variant], of: `${store.id} ${row.sku}`, is }
      })
    }
  }
  for (let after: string | undefined; ; ) {
    const orders = await db.query(openOrders({ after, limit: ORDERS_PAGE }))
    if (orders.length === 0) return
    after = orders.at(-1)?.id
    const ids = orders.map(({ id }) => id)
    const [lines, all] = [await db.query(linesOfOrders(ids)), await db.query(purchasesOfOrders(ids))]
    const keys = all.length === 0 ? [] : await db.query(keysOfPurchases(all.map(({ id }) => id)))
    for (const { id, store, reference } of orders) {
      const purchases = all.filter(({ orderId }) => orderId === id).sort((a, b) => (a.id < b.id ? -1 : 1))
      const standing = standingBy({ lines: lines.filter(({ orderId }) => orderId === id), purchases, keys })
      const ofLines = standing.lines.map(({ line, state, delivered }) => `${line.line} ${state} ${delivered}`)
      const figure = { key: ['3', id], of: `${store} ${reference}` }
      const figures: Figure[] = [{ ...figure, kind: 'order', is: { state: standing.state, lines: ofLines.join(', ') } }]
      for (const purchase of purchases) {
        const { state, holdReason, lineId, part, quantity } = purchase
        const generations = purchases.filter((one) => one.lineId === lineId && one.part === part)
        const own = keys.filter(({ purchaseId }) => purchaseId === purchase.id)
        const facts = factsOf({ purchase, generations, keys: own })
        const isUnsent = state === 'planned' || state === 'waiting'
        const failing = isUnsent ? await firstFailingGuard(guarding, purchase) : undefined
        const guard = typeof failing === 'object' ? failing.guard : null
        const read = { type: 'read', keysElsewhere: false, areText: true } as const
        const inputs: PurchaseInput[] = [
          { type: 'clock' },
          { type: 'due', guard, notBefore: null, orphans: [] },
          { type: 'lost' },
          { type: 'absent', frozen: false },
          { ...read, status: 'completed', keys: quantity, newKeys: quantity - own.length },
          { ...read, status: 'failed', keys: own.length, newKeys: 0 },
          { type: 'confirmed' },
        ]
        const next = inputs.map((input) => `${input.type} ${transition(facts, input, at)?.next ?? '-'}`).join(', ')
        const is = { state, holdReason, guard, next }
        figures.push({ ...figure, kind: 'purchase', key: ['3', id, purchase.id], is })
      }
      yield figures
    }
  }
}
