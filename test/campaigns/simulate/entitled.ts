/**
 * What was bought and delivered beyond what customers were entitled to. The records of the shop and of the supplier say it alone,
 * but for the first of these:
 *
 * - What is stored of an order when an intent becomes durable covers all that is bought or under way of the line.
 * - A first request for units is covered where the shop had the order paid, with so many units, at some instant of the
 *   `entitlementMs` before the intent. All that the supplier has for the line by then counts.
 * - The first request that carries a key is covered where the order had so many units at some instant of the unbroken chain of
 *   requests about this order that it ends.
 *
 * Left out is what a person had decided on this part, or had said of the order, since the shop last took something away, what was bought within two minutes
 * of a jump of the clock, and the rest of a delivery of which the shop has a part already. So are keys of a part that a person had
 * bought again or has closed, where a restore took their delivery out of the database: other parts of the line are bought beside them.
 * Units of an order that the supplier's list showed too late for a restore are excused apart, see `unlisted.ts`.
 */
import type Connection from 'better-sqlite3'
import { isOurs, lineOf, orderOf, partOf } from '../../support/references.ts'
import { type DatedFact, unitsOf } from './facts.ts'
import type { Decided, Operator } from './operator.ts'
import type { SimShop } from './shop.ts'
import { excuseOf, type Unlisted } from './unlisted.ts'
import type { Watch } from './watch.ts'
import type { World } from './world.ts'

const SECOND = 1_000
const CLOCK_MS = 120 * SECOND

interface Units {
  /** External reference of a generation. */
  reference: string
  units: number
  /** Of these, those whose keys are in the shop. */
  inShop: number
  /** Of these, those whose delivery a restore took out of the database. */
  forgotten: number
}

interface Bought {
  reference: string
  at: number
  /** That, and all others of its line. */
  units: Units[]
}

interface Delivered {
  reference: string
  key: string
  at: number
  chainFrom: number
  /** All keys of its line that were ever carried, this one included: by generation. */
  carried: string[]
}

export interface Entitled {
  judge: (operator: Pick<Operator, 'decided' | 'claimed' | 'said' | 'replacements'>) => Judged
}

export interface Judged {
  /** In words, once for each purchase and key. */
  beyond: string[]
  /** By the purchase that was beyond it: why that is excused. */
  excused: Map<string, string>
}

export function watchEntitled(world: World, watch: Watch, unlisted: Unlisted): Entitled {
  const { shop, road, host, timeline, supplier, settings, dialect } = world
  const stored = watchIntents(world)
  if (!shop) return { judge: ({ replacements }) => ({ beyond: stored(replacements.lines), excused: new Map() }) }
  const bought: Bought[] = []
  const delivered: Delivered[] = []
  const carried = new Map<string, string>()
  /** In how many requests that are on their way to the shop a key is. */
  const flying = new Map<string, number>()
  const underway = new Map<string, Units & { since: number }>()
  const { entitlementMs = 60 * SECOND } = settings.policy

  road.watchers.add({
    written: ({ key, asked }) => {
      const reference = /"(q1\.[^"]+)"/.exec(asked.body)?.[1]
      if (key === undefined || !isOurs(reference ?? null) || reference === undefined) return
      const row = host.connection().prepare<[string], Intent>(INTENT).get(key)
      if (!row) return
      const own = { reference, units: row.quantity, inShop: 0, forgotten: 0 }
      underway.set(key, { ...own, since: timeline.now() })
      if (row.before === 'unknown' || timeline.now() - watch.clockMovedAt() < CLOCK_MS) return
      const at = row.lastSentAt - host.clockOffsetMs()
      // One of a process that died has no end, and runs by then or never.
      const runsUntil = ({ since }: { since: number }) => since + dialect.settleSeconds * SECOND
      const others = [...underway].flatMap(([other, one]) =>
        other !== key && timeline.now() <= runsUntil(one) ? [one] : [],
      )
      bought.push({ reference, at, units: [own, ...unitsAt(reference, others)] })
    },
    ended: ({ key }) => {
      if (key !== undefined) underway.delete(key)
    },
  })

  /** What the supplier has or may get for the line of a purchase, besides that one. */
  function unitsAt(reference: string, requested: readonly Units[]): Units[] {
    const all = supplier.world.orders.known(1_000)
    const standing = all.filter(({ status }) => status === 'open' || status === 'completed')
    const known = standing.map((order): Units => {
      const keys = supplier.world.orders.keysOf(order.id)
      const line = lineOf(order.externalOrderId ?? '')
      const inShop = keys.filter((key) => shop?.placesOf(key, line).length)
      const reference = order.externalOrderId ?? ''
      const isKnown = host.connection().prepare<[string]>(DELIVERED).get(reference) !== undefined
      const forgotten = isKnown ? [] : inShop.filter((key) => writtenAt(key) <= (world.restoredAt ?? -1))
      return { reference, units: order.quantity, inShop: inShop.length, forgotten: forgotten.length }
    })
    // One that became an order is no request any more, also where the process died before it heard of it.
    const asked = requested.filter((one) => all.every(({ externalOrderId }) => externalOrderId !== one.reference))
    const isOther = (one: Units) => isOurs(one.reference) && one.reference !== reference
    return [...known, ...asked].filter((one) => isOther(one) && lineOf(one.reference) === lineOf(reference))
  }

  const writtenAt = (key: string): number => shop.writes.find(({ body }) => body.includes(key))?.at ?? 0

  shop.departing.add((body, chainFrom) => {
    const { keysIssued } = supplier.world.report()
    for (const [reference, keys] of Object.entries(keysIssued)) {
      if (!isOurs(reference)) continue
      const fresh = keys.filter((key) => !carried.has(key) && body.includes(key))
      const isBegun = keys.some((key) => carried.has(key) && shop.placesOf(key, lineOf(reference)).length > 0)
      for (const key of fresh) carried.set(key, reference)
      if (isBegun) continue
      // What an earlier request carried, and the shop does not have, is lost.
      const counts = (key: string, line: string) =>
        fresh.includes(key) || (flying.get(key) ?? 0) > 0 || shop.placesOf(key, line).length > 0
      for (const key of fresh) {
        const ofLine = [...carried].flatMap(([other, one]) =>
          lineOf(one) === lineOf(reference) && counts(other, lineOf(one)) ? [one] : [],
        )
        delivered.push({ reference, key, at: timeline.now(), chainFrom, carried: ofLine })
      }
    }
    const inBody = [...carried.keys()].filter((key) => body.includes(key))
    const count = (by: number) => {
      for (const key of inBody) flying.set(key, (flying.get(key) ?? 0) + by)
    }
    count(1)
    return () => count(-1)
  })

  return {
    judge: ({ decided, claimed, said, replacements }) => {
      const isOn = (one: Decided, reference: string, at: number) => one.reference === reference && one.at <= at
      const lost = (reference: string, at: number) =>
        decided.some((one) => isOn(one, reference, at) && ENDED.has(one.type)) ||
        [...claimed].some((id) => supplier.world.orders.get(id)?.externalOrderId === reference)
      const left = ({ reference, units, inShop, forgotten }: Units, at: number) =>
        lost(reference, at) ? inShop - forgotten : units
      const beyond = new Set<string>(stored(replacements.lines))
      const excused = new Map<string, string>()
      for (const { reference, at, units } of bought) {
        const sumOf = (some: readonly Units[]) =>
          some.reduce((total, one) => total + (one.reference === reference ? one.units : left(one, at)), 0)
        const sum = sumOf(units)
        const most = mostUnits(reference, at - entitlementMs, at)
        if (sum <= most || isDecided(reference, at, at - entitlementMs)) continue
        const late = unlisted.ofLine(lineOf(reference), at).filter((one) => one.externalOrderId !== reference)
        const known = units.filter((one) => !late.some(({ externalOrderId }) => externalOrderId === one.reference))
        const [cause] = late
        if (cause && sumOf(known) <= most) excused.set(reference, excuseOf(reference, cause))
        else beyond.add(`${reference}: bought, so that its line has ${sum} units, and the shop had ${most} as paid`)
      }
      for (const { reference, key, at, chainFrom, carried: all } of delivered) {
        const sum = all.filter((one) => one === reference || !lost(one, at)).length
        const most = mostUnits(reference, chainFrom, at, true)
        if (sum > most && !isDecided(reference, at, chainFrom)) {
          beyond.add(`${reference}: ${key} was delivered as unit ${sum} of its line, and the shop had ${most} as paid`)
        }
      }
      return { beyond: [...beyond], excused }

      /** A person decided on its part, and the shop has taken nothing away since. */
      function isDecided(reference: string, at: number, from: number): boolean {
        const ofPart = decided.filter((one) => partOf(one.reference) === partOf(reference) && one.at <= at)
        const ofOrder = said.filter((one) => one.reference === orderOf(reference) && one.at <= at)
        const times = [...ofPart.filter(({ type }) => type !== 'close'), ...ofOrder].map((one) => one.at)
        const last = Math.max(...times)
        if (times.length === 0 || !shop) return false
        return last >= from || !lowers(shop.facts.between(orderOf(reference), last, from))
      }
    },
  }

  function mostUnits(reference: string, from: number, to: number, isDelivery = false): number {
    const [order = '', line = ''] = lineOf(reference).split('/')
    const facts = (shop as SimShop).facts.between(order, from, to)
    const units = facts.map((fact) => {
      const isHeld = isDelivery && fact.mayShip?.get(line) === 0
      return isHeld ? Math.min(unitsOf(fact, line), fact.shipped?.get(line) ?? 0) : unitsOf(fact, line)
    })
    return Math.max(0, ...units)
  }
}

/** Decisions after which a person expects no more keys of what they were shown. */
const ENDED = new Set<string>(['close', 'buy_again', 'retry'])

const lowers = (facts: readonly DatedFact[]): boolean =>
  facts.some((fact, place) => {
    const before = facts[place - 1]
    return before && [...before.units.keys()].some((line) => unitsOf(fact, line) < unitsOf(before, line))
  })

/** The database knows that keys of a purchase have left, or may have. */
const DELIVERED = `select 1 from licence_keys join purchases on purchases.id = purchase_id
  where external_order_id = ? and coalesce(begun_at, handed_over_at) is not null`

interface Intent {
  quantity: number
  lastSentAt: number
  /** The state that it was sent from. */
  before: string
}

const INTENT = `select quantity, last_sent_at as lastSentAt, coalesce((select before from transitions
    where purchase_id = purchases.id and after = 'sending' order by at desc, rowid desc limit 1), '') as before
  from purchases where idempotency_key = ?`

/** Reads, in the commit of each intent, what is stored of its order and of its line. */
function watchIntents({ host, restored }: World): (replaced: readonly string[]) => string[] {
  const seen = new Map<string, StoredIntent>()
  let connection: Connection.Database | undefined
  const read = (): void => {
    for (const intent of connection?.prepare<[], StoredIntent>(STORED).all() ?? []) {
      seen.set(JSON.stringify(intent), intent)
    }
  }
  const begin = (): void => {
    connection = host.connection()
    connection.exec(STORE)
  }
  begin()
  host.loading.add(read)
  restored.add(begin)
  // A person has decided on further keys in place of others: as many units may be bought beside those of the order.
  return (replaced) => {
    read()
    const broken = [...seen.values()].flatMap(({ reference, standing, isDecided, units, planned }) => {
      const most = units + replaced.filter((line) => line === lineOf(reference)).length
      if (isDecided || (standing === 'paid' && planned <= most)) return []
      return [
        `${reference}: its intent makes ${planned} units of its line, and ${most} of the order, ${standing}, were stored`,
      ]
    })
    return [...new Set(broken)]
  }
}

interface StoredIntent {
  reference: string
  standing: string
  isDecided: number
  units: number
  planned: number
}

const STORED = 'select reference, standing, is_decided as isDecided, units, planned from intents'
const STORE = `
  create temp table intents (reference text, standing text, is_decided integer, units integer, planned integer);
  create temp trigger intent after update of state on purchases when new.state = 'sending' and old.state <> 'sending' begin
    insert into intents
    select new.external_order_id, entitlements.standing, coalesce(new.decided_revision = entitlements.revision, 0),
      coalesce((select units from entitlement_lines join store_order_lines using (line)
        where store_order_lines.id = new.line_id and entitlement_lines.store = entitlements.store
          and entitlement_lines.reference = entitlements.reference), 0),
      new.quantity + coalesce((select sum(case
          when state in ('planned', 'waiting') then 0
          when state in ('fulfilled', 'rejected', 'failed', 'cancelled') then (select count(*) from licence_keys
            where purchase_id = purchases.id and coalesce(begun_at, handed_over_at) is not null)
          else quantity end)
        from purchases where line_id = new.line_id and id <> new.id), 0)
    from entitlements where order_id = new.order_id;
  end`
