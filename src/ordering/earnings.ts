/** Earnings are summed in the background, and read as sums: no page adds up a million orders. */
import { filterText } from '../domain/data-export.ts'
import {
  addedUp,
  DAY_MS,
  dayStart,
  type EarningStep,
  type EarningSums,
  monthStart,
  partsToSum,
  type Span,
  spansIn,
  wholeAt,
} from '../domain/earnings.ts'
import { idBound } from '../ids.ts'
import { first, StaleWrite } from '../storage/database.ts'
import {
  addToMonth,
  dueStale,
  earnedByDay,
  forgetSums,
  markLater,
  markStale,
  monthOfProducts,
  productsOfMonth,
  productsOfSpan,
  type StaleTime,
  spanOfProducts,
  staleBetween,
  sumOfDay,
  sumOrders,
  sumProducts,
  takeFromMonth,
  takeMark,
} from '../storage/earnings.ts'
import { audited } from '../storage/evidence.ts'
import { offersByProduct } from '../storage/offers.ts'
import type { Ordering } from './context.ts'

type Summing = Pick<Ordering, 'db' | 'now'>

/** How many stale times are read at once. Between two of them other work of the process goes on. */
const AT_ONCE = 50

/**
 * Sums all times again whose orders have changed, the newest first.
 *
 * @param rest is awaited after each time, so that a process with much to sum still answers
 */
export async function sumEarnings({ db, now }: Summing, rest: () => Promise<unknown> = async () => {}): Promise<void> {
  for (;;) {
    const stale = await db.query(dueStale(now(), AT_ONCE))
    for (const one of stale) {
      await sumAgain({ db, now }, one).catch((error: unknown) => {
        // An order of this time has changed meanwhile: the time is due again.
        if (!(error instanceof StaleWrite)) throw error
      })
      await rest()
    }
    if (stale.length < AT_ONCE) return
  }
}

/** Sums one stale time. The sums, their month and the mark are changed in one commit. */
async function sumAgain({ db, now }: Summing, { at, endAt: until, changes }: StaleTime): Promise<void> {
  const day = dayStart(at)
  const whole = await first(db, sumOfDay(day, day + DAY_MS))
  const parts = partsToSum({ at, until }, whole !== undefined, now())
  const [from = { at, until }, to = { at, until }] = [parts[0], parts.at(-1)]
  await db.commit([
    takeMark(at, until, changes),
    takeFromMonth(monthStart(at), from.at, to.until),
    forgetSums(from.at, to.until),
    ...parts.flatMap((part) => [
      sumOrders({ ...part, from: idBound(part.at), to: idBound(part.until) }),
      sumProducts(part.at, part.until),
    ]),
    addToMonth(monthStart(at), from.at, to.until),
    ...(from.until - from.at < DAY_MS
      ? [markLater({ at: day, endAt: day + DAY_MS, dueAt: wholeAt(day), changes: 0 })]
      : []),
  ])
}

/** A process of an earlier version does not mark what it changes. It may have run beside this version until now. */
const DISTRUSTED_DAYS = 35

/** Has the last days summed again, at each start where several processes share the database: a file's migration marks all days. */
export async function distrustEarnings({ db, now }: Summing): Promise<void> {
  const today = dayStart(now())
  const days = Array.from({ length: DISTRUSTED_DAYS }, (_, index) => today - index * DAY_MS)
  await db.commit(days.map((at) => markStale({ at, endAt: at + DAY_MS, dueAt: 0, changes: 1 })))
}

export const earningGroups = ['none', 'store', 'product'] as const
export type EarningGroup = (typeof earningGroups)[number]

export interface EarningsAsked extends Span {
  by: EarningStep
  group: EarningGroup
  store?: string | undefined
}

/** What a store, a product, or all of them earned in a day, a week or a month. */
export interface EarningsRow extends Span {
  store: string | null
  productId: string | null
  sku: string | null
  name: string | null
  sums: EarningSums[]
}

/** Reads the sums of a span by day, and says since when they are not complete; null: they are. */
export async function readEarnings({ db, now }: Summing, { at, until, store }: Omit<EarningsAsked, 'group' | 'by'>) {
  const [days, stale] = await Promise.all([
    db.query(earnedByDay(at, until, store)),
    first(db, staleBetween(at, until, now())),
  ])
  return { days, incompleteFrom: stale ? Math.max(stale.at, at) : null }
}

/** How many rows of products are read at once. */
const PRODUCTS_AT_ONCE = 500

/** A page of rows of products: those of one period, from a number of rows on. */
export interface ProductPage {
  rows: EarningsRow[]
  /** Where the rows go on; null: there are no more. */
  next: { at: number; offset: number } | null
}

type Reading = Pick<Ordering, 'db' | 'now'>

/**
 * Returns the rows of stores, or of all of them, in the periods of a span, the newest period first; for products, their pages one
 * after the other.
 */
export async function* earningsRows(reading: Reading, asked: EarningsAsked): AsyncGenerator<EarningsRow[]> {
  if (asked.group !== 'product') {
    yield storeRows((await readEarnings(reading, asked)).days, asked)
    return
  }
  for (let from: ProductPage['next'] | undefined; from !== null; ) {
    const page: ProductPage = await productPage(reading, asked, from, PRODUCTS_AT_ONCE)
    yield page.rows
    from = page.next
  }
}

/** Returns the same for a file. Before the first row, the audit notes who asked for what. */
export async function exportEarnings(
  exporting: Reading & Pick<Ordering, 'newId'>,
  asked: EarningsAsked,
  actor: string,
): Promise<AsyncGenerator<EarningsRow[]>> {
  const { at: from, until: to, store, by, group } = asked
  const named = filterText('money', { from, to, store }, group === 'none' ? `by ${by}` : `by ${by} and ${group}`)
  await exporting.db.commit([audited(exporting, actor, 'money.export', 'money', named)])
  return earningsRows(exporting, asked)
}

type EarnedDays = Awaited<ReturnType<typeof readEarnings>>['days']

/** Returns the rows of each period, the newest first, and of its stores by their ids. @param days of the span that was asked for */
export function storeRows(days: EarnedDays, { by, group, ...asked }: EarningsAsked): EarningsRow[] {
  const none = { store: asked.store ?? null, productId: null, sku: null, name: null }
  return spansIn(by, asked)
    .reverse()
    .flatMap((span) => {
      const own = days.filter(({ day }) => day >= span.at && day < span.until)
      if (group === 'none') return [{ ...span, ...none, sums: addedUp(own) }]
      const byStore = [...Map.groupBy(own, (one) => one.store)].sort(([a], [b]) => (a < b ? -1 : 1))
      return byStore.map(([store, some]) => ({ ...span, ...none, store, sums: addedUp(some) }))
    })
}

/**
 * Returns the products of the newest period that has some, the largest margin first.
 *
 * @param from where an earlier page ended; undefined for the first page
 */
export async function productPage(
  { db, now }: Reading,
  { by, store, ...span }: EarningsAsked,
  from: NonNullable<ProductPage['next']> | undefined,
  limit: number,
): Promise<ProductPage> {
  const spans = spansIn(by, span)
    .filter(({ at }) => from === undefined || at <= from.at)
    .reverse()
  for (const [index, { at, until }] of spans.entries()) {
    const offset = index === 0 && at === from?.at ? from.offset : 0
    const page = { store, limit, offset }
    // Months have sums of their own. No order comes after now: a month that is cut later is whole.
    const isMonth = at === monthStart(at) && (until === monthStart(at, 1) || (until > now() && by === 'month'))
    const best = await db.query(
      isMonth ? productsOfMonth({ ...page, month: at }) : productsOfSpan({ ...page, from: at, to: until }),
    )
    if (best.length === 0) continue
    const ids = [...new Set(best.map(({ productId }) => productId))]
    const [all, offers] = await Promise.all([
      db.query(isMonth ? monthOfProducts({ month: at, ids }) : spanOfProducts({ from: at, to: until, ids })),
      db.query(offersByProduct(ids)),
    ])
    const sums = Map.groupBy(all, nameOf)
    const offerOf = new Map(offers.map((offer) => [offer.productId, offer]))
    const rows = best.flatMap((one) => {
      const own = addedUp(sums.get(nameOf(one)) ?? [])
      // A product with several currencies was found once for each. Its first currency stands for all.
      if (own[0]?.currency !== one.currency) return []
      const { sku = null, name = null } = offerOf.get(one.productId) ?? {}
      return [{ at, until, store: one.store, productId: one.productId, sku, name, sums: own }]
    })
    const older = spans[index + 1]
    const next = best.length === limit ? { at, offset: offset + limit } : older ? { at: older.at, offset: 0 } : null
    return { rows, next }
  }
  return { rows: [], next: null }
}

const nameOf = ({ store, productId }: { store: string; productId: string }): string =>
  JSON.stringify([store, productId])
