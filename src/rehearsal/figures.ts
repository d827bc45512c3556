/**
 * The figures by which a rehearsed upgrade compares two versions: what each would do with one database at one instant. No
 * request is sent.
 *
 * Format 1, which every later version keeps: lines of JSON. First a `FiguresHead`, then figures in the order of their keys, piece
 * by piece and byte by byte, then `{"end": <number of figures>}`. Fields and kinds may be added: what one side lacks is no difference.
 */
import { createInterface } from 'node:readline'
import type { Readable } from 'node:stream'
import { priceTexts } from '../domain/money.ts'
import { type PurchaseInput, transition } from '../domain/purchase.ts'
import { Failure } from '../errors.ts'
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

export type Compared = Awaited<ReturnType<typeof compareFigures>>

const FIRST_MAX = 10

/**
 * Compares the figures of two programs as they come, in bounded memory.
 *
 * @param before undefined: only checks of the new version that fail are a difference
 * @param onProgress called now and then with the number of figures so far
 * @throws Failure `unavailable` where figures break off
 */
export async function compareFigures(
  before: Readable | undefined,
  after: Readable,
  onProgress: (figures: number) => void,
) {
  /** What differs, by kind and field: how often, and the first ones. */
  const found = new Map<string, { what: string; count: number; first: { of: string; from: string; to: string }[] }>()
  const note = (what: string, of: string, ...values: unknown[]): void => {
    const { count = 0, first = [] } = found.get(what) ?? {}
    const [from = '', to = ''] = values.map((value) => String(value ?? 'none'))
    if (first.length < FIRST_MAX) first.push({ of, from, to })
    found.set(what, { what, count: count + 1, first })
  }
  const [old, next] = [before && linesOf(before), linesOf(after)]
  await old?.()
  /** The migrations that the new version made in the copy. */
  const { migrations } = (await next()) as FiguresHead
  const read = async (from = old) => {
    const line = (await from?.()) as Figure | { end: number } | undefined
    return line && 'key' in line ? line : undefined
  }
  let [a, b] = [await read(), await read(next)]
  let figures = 0
  while (a || b) {
    const order = a && b ? keyOrder(a.key, b.key) : a ? -1 : 1
    if (a && order < 0) note(a.kind, a.of, said(a), null)
    else if (b && order > 0 && (old || b.is.level === 'fail')) note(b.kind, b.of, null, said(b))
    else if (a && b) {
      for (const [field, is] of Object.entries(b.is)) {
        const was = a.is[field]
        if (was !== undefined && was !== is) note(`${b.kind} ${field}`, b.of, was, is)
      }
    }
    if (order >= 0) figures += 1
    if (figures % 1_000 === 0) onProgress(figures)
    if (order <= 0) a = await read()
    if (order >= 0) b = await read(next)
  }
  return { migrations, figures, differences: [...found.values()] }
}

const said = ({ is }: Figure): string =>
  Object.values(is)
    .filter((value) => value !== null)
    .join(' ')

function keyOrder(a: string[], b: string[]): number {
  const at = a.findIndex((piece, index) => piece !== b[index])
  return at < 0 ? a.length - b.length : Buffer.compare(Buffer.from(a[at] ?? ''), Buffer.from(b[at] ?? ''))
}

function linesOf(input: Readable): () => Promise<unknown> {
  const lines = createInterface({ input })[Symbol.asyncIterator]()
  return async () => {
    const { value, done } = await lines.next()
    if (done) throw new Failure('unavailable', 'the figures break off')
    return JSON.parse(value)
  }
}
