/** What became of the orders of a shop: by its own orders, notes and mails, whatever Quayside believes. */
import { textsIn } from '../../../src/keys/texts.ts'
import { isOurs, lineOf } from '../../support/references.ts'
import type { Placed } from './customers.ts'
import type { ShopFact } from './facts.ts'
import type { OrderInShop, SimShop } from './shop.ts'
import type { World } from './world.ts'

const { texts } = textsIn('en')

type Issued = Record<string, string[]>

/** Keys by the line of the shop that they stand in, and what is wrong with them. */
export interface KeyRecord {
  keys: Map<string, string>
  /** Keys that customers got twice from us. */
  duplicates: number
  broken: string[]
}

/** @param givenUp keys of purchases that the operator gave up, or that a restore took away for good: see `keysGivenUp` */
export function shopRecord(
  { log, restoredAt = 0 }: World,
  shop: SimShop,
  { placed, issued, givenUp }: { placed: readonly Placed[]; issued: Issued; givenUp: ReadonlySet<string> },
): KeyRecord {
  const keys = new Map<string, string>()
  const broken: string[] = []
  const perLine = new Map<string, number>()
  let duplicates = 0
  for (const [key, line] of linesOfKeys(issued)) {
    const places = shop.placesOf(key, line)
    const [place] = places
    if (place === undefined) continue
    keys.set(key, place)
    const mails = shop.newsOf(key)
    if (places.length > 1 || mails.length > 1) {
      duplicates += Math.max(places.length, mails.length) - 1
      log.add('verdict', 'key twice', { key, places, mails: mails.map(({ kind, at }) => [kind, at]) })
    }
    const first = shop.writes.find(({ body }) => body.includes(key))
    // A hand-over that a restore took out of the database is not known to the operator who buys again or closes.
    if (!givenUp.has(key) || (first?.at ?? 0) > restoredAt) perLine.set(place, (perLine.get(place) ?? 0) + 1)
  }
  const ofLine = Map.groupBy(linesOfKeys(issued), ([, line]) => line)
  broken.push(...shop.faultsIn(new Map([...ofLine].map(([line, all]) => [line, all.map(([key]) => key)]))))
  for (const { reference } of placed) {
    const late = shop.orderIn(reference)?.notes.filter(({ note }) => note.startsWith(texts.late)).length ?? 0
    if (late > 1) broken.push(`${reference}: its customer learned ${late} times that keys are late`)
    for (const { id } of shop.orderIn(reference)?.lines ?? []) {
      const got = perLine.get(`${reference}/${id}`) ?? 0
      const most = Math.max(...shop.facts.of(reference).map(({ units }) => units.get(id) ?? 0))
      if (got > most) broken.push(`${reference}/${id}: ${got} keys for a quantity of ${most}`)
    }
  }
  return { keys, duplicates, broken }
}

function* linesOfKeys(issued: Issued): Generator<[key: string, line: string]> {
  for (const [reference, keys] of Object.entries(issued)) {
    if (isOurs(reference)) for (const key of keys) yield [key, lineOf(reference)]
  }
}

export interface ShopRecord {
  placed: readonly Placed[]
  /** Orders that were changed in the shop, and when they were last. */
  changed: ReadonlyMap<string, number>
  /** Orders of which an alert said that nothing more comes of them by itself. */
  refused: ReadonlySet<string>
  /** Orders that wait for a word of a person, who leaves them as they are. */
  left: ReadonlySet<string>
}

/** Paid orders whose customer lacks keys, and of these units no remark on the order says that they will not come. */
export function silentOrders(
  { supplier, log }: World,
  shop: SimShop,
  { placed, changed, refused, left }: ShopRecord,
): Placed[] {
  // An order that a person has adopted may be at the supplier under a reference that is not ours.
  const keys = Object.values(supplier.world.report().keysIssued).flat()
  return placed.filter(({ reference }) => {
    const order = shop.orderIn(reference)
    const fact = shop.facts.now(reference)
    if (!order?.isPaid || !fact || (fact.standing !== 'paid' && !order.isFaulty)) return false
    const mayRefuse = changed.has(reference) || order.isFaulty
    if ((mayRefuse && refused.has(reference)) || left.has(reference)) return false
    const failed = failedUnits(order)
    return [...Map.groupBy(order.lines, ({ sku }) => sku)].some(([sku, ofSku]) => {
      if (!shop.isOurs(sku)) return false
      const due = ofSku.reduce((sum, { id }) => sum + unitsDueOf(fact, id), 0)
      const shown = ofSku.flatMap(({ id }) => order.textsOf(id))
      const handedOver = keys.filter((key) => shown.some((text) => text.includes(key)))
      const mailed = handedOver.filter((key) => order.isKnown(key)).length
      if (mailed + (failed.get(sku) ?? 0) >= due) return false
      log.add('verdict', 'missing', { reference, sku, due, mailed, failed: failed.get(sku) ?? 0 })
      return true
    })
  })
}

const unitsDueOf = ({ units, mayShip }: ShopFact, line: string): number =>
  mayShip?.has(line) ? 0 : (units.get(line) ?? 0)

/** Units by SKU of which a remark says that they will not come. The remark that closes an order names none, and excuses none. */
function failedUnits({ notes }: OrderInShop): Map<string, number> {
  const units = new Map<string, number>()
  for (const { note } of notes) {
    const [, count, sku = ''] = /^Quayside: (\d+) of \d+ × (\S+) will not come/.exec(note) ?? []
    if (count !== undefined) units.set(sku, (units.get(sku) ?? 0) + Number(count))
  }
  return units
}

/** The order that an alert names. */
export const orderOfAlert = (detail: unknown): string | undefined =>
  /\border (\d+) of /.exec(String(detail))?.[1] ?? undefined
