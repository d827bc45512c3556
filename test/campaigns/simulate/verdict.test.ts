/** The judge of a simulated seed must be able to find what it is there for. */
import { describe, expect, onTestFinished, test } from 'vitest'
import { freeze } from '../../../src/ordering/freeze.ts'
import { orderBody } from '../../../src/supplier/client.ts'
import type { Cancellation } from '../../support/cancelled-keys.ts'
import { groundlessFreezes } from '../../support/freeze-causes.ts'
import { watchEntitled } from './entitled.ts'
import { BUG } from './fault-store.ts'
import { API_KEY } from './host.ts'
import type { Trip } from './network.ts'
import { createBook, type Decided, type Operator } from './operator.ts'
import { detectionOf } from './outside.ts'
import { planOf } from './plan.ts'
import type { KeyWrite } from './shop.ts'
import { STORE } from './store.ts'
import { watchUnlisted } from './unlisted.ts'
import { verdictOf, type Witnesses } from './verdict.ts'
import { createWatch, type Watch } from './watch.ts'
import { MINUTE, openWorld, type StoreKind, settleIn, shipped, type World } from './world.ts'

const noReplacements = { lines: [], given: new Map<string, string>(), look: async () => {} }

async function simWorld(store: StoreKind = 'backend', isFiltered = true, seed = 1) {
  const { settings } = planOf(seed, store)
  const orders = { ...settings.dialect.orders, externalOrderId: isFiltered ? shipped.orders.externalOrderId : null }
  const world = await openWorld(seed, { ...settings, dialect: { ...settings.dialect, orders } })
  onTestFinished(world.close)
  return world
}

const reference = (generation: number): string => `q1.${STORE}.s1.1.1.${generation}`
const retryOf = (generation: number): Decided => ({
  type: 'retry',
  reference: reference(generation),
  at: 0,
  orders: [],
  writesOff: true,
})

interface HeardWhen {
  at?: number
  begunAt?: number
  timestamp?: number
  complete?: boolean
  replaces?: true
}

/** One part of a line, and what the supplier charged for its generations. */
async function partOf({ quantity, store, isFiltered }: { quantity: number; store?: StoreKind; isFiltered?: boolean }) {
  const world = await simWorld(store, isFiltered)
  const { supplier, dialect } = world
  const [offer] = supplier.world.offers.list({}, 0, 1).items
  if (!offer) throw new Error('the supplier has no offer')
  supplier.changeOffer(offer.id, { stock: 100 })
  const decided: Decided[] = []
  const claimed = new Set<string>()
  const cancellations: Cancellation[] = []
  const deaths: number[] = []
  const groundless = new Set<string>()
  const lines = [{ id: '1', sku: offer.sku, quantity, unitPriceMinor: null, currency: null }]
  const witnesses = {
    world,
    customers: {
      placed: [{ name: 's1', reference: 's1', lines, orderId: undefined, cancelledAt: undefined }],
      cancellations: () => cancellations,
      unheard: () => [],
    },
    operator: {
      ...{ decided, claimed, overrides: [], groundless, left: new Set<string>(), surplus: new Set<string>() },
      replacements: noReplacements,
    },
    watch: { broken: [], deaths, clockHasMoved: () => false },
    entitled: { judge: () => ({ beyond: [], excused: new Map() }) },
    unlisted: watchUnlisted(world),
  }
  const verdict = () => verdictOf(witnesses as unknown as Witnesses)
  return {
    world,
    unlisted: witnesses.unlisted,
    decided,
    claimed,
    /** The supplier runs an order for this generation, charges it and issues its keys. */
    charge: (generation: number, key = `key-of-${generation}`, externalOrderId = reference(generation)) => {
      const given = supplier.handle({
        method: 'POST',
        path: '/orders',
        query: new URLSearchParams(),
        headers: {
          'content-type': 'application/json',
          [dialect.headers.apiKey]: API_KEY,
          [dialect.headers.idempotencyKey]: key,
        },
        body: orderBody(dialect, { productId: offer.id, quantity, externalOrderId }),
      })
      expect(given.status).toBe(201)
      const order = supplier.world.orders.known(1)[0]
      if (!order) throw new Error('the supplier has no order')
      supplier.world.orders.complete(order)
      return order
    },
    refund: (order: Parameters<typeof supplier.world.orders.refund>[0]) => supplier.world.orders.refund(order),
    cancellations,
    deaths,
    groundless,
    /** The store hears of all keys of a generation. */
    handOver: (generation: number, when: HeardWhen = {}): void => {
      const { at = 0, begunAt = at, timestamp = begunAt, complete = true, replaces } = when
      const keys = supplier.world.report().keysIssued[reference(generation)]
      const data = { reference: 's1', line: '1', keys, complete, ...(replaces && { replaces }) }
      world.store.heard.push({ id: `keys of ${generation}`, type: 'line.fulfilled', at, begunAt, timestamp, data })
    },
    /** The store hears that a part of the line has failed, after a restore. */
    failLine: ({ restoredAt, at }: { restoredAt: number; at: number }): void => {
      world.restoredAt = restoredAt
      const data = { reference: 's1', line: '1' }
      world.store.heard.push({ id: 'failed', type: 'line.failed', at, begunAt: at, timestamp: at, data })
    },
    verdict,
    /** What the verdict says of lines with more keys than units. */
    tooMany: () => verdict().broken.filter((text) => text.includes('keys for a quantity')),
    detection: () => detectionOf(world, witnesses.operator as unknown as Operator),
  }
}

/** The database has this purchase, with its keys handed over. */
function storePurchase({ host }: World, externalOrderId: string): void {
  host.connection().pragma('foreign_keys = OFF')
  host.connection().prepare(STORED).run(externalOrderId)
}

const STORED = `insert into purchases (id, order_id, line_id, part, generation, state, idempotency_key, external_order_id, body,
    quantity, currency, supplier_product_id, ceiling_minor, deadline_at, created_at, changed_at, sends, first_sent_at)
  values ('p', 'o', 'l', 1, 1, 'fulfilled', 'k', ?, '', 1, 'EUR', 'x', 1, 1, 1, 1, 1, 1)`

/** Both generations of a part of two units are handed over, the second one first: the store has four keys. */
async function handedOverTwice() {
  const part = await partOf({ quantity: 2 })
  const second = part.charge(2)
  part.handOver(2, { at: 10 })
  part.charge(1)
  part.handOver(1, { at: 30 })
  return { ...part, second }
}

describe('an order of a shop', () => {
  test('is not paid, and no keys of it are waited for, once its whole money went back, also where it does not add up', async () => {
    const { shop, chance, supplier } = await simWorld('woocommerce')
    if (!shop) throw new Error('the seed has no shop')
    const [offer] = supplier.world.offers.list({}, 0, 1).items
    const { reference } = shop.counter.buy([{ sku: offer?.sku ?? '', quantity: 1 }] as never, 'does not add up', chance)
    expect(shop.orderIn(reference)).toMatchObject({ isPaid: true, isFaulty: true })
    for (const edit of ['a price refunded', 'set to paid'])
      shop.act(() => shop.counter.edits[edit]?.(reference, chance))
    expect(shop.counter.status(reference)).toBe('processing')
    expect(shop.orderIn(reference)).toMatchObject({ isPaid: false, isFaulty: true })
  })
})

describe('an order of Shopify that was paid whole while its risk held it', () => {
  test('is paid as to its first units once the risk is released, also where a line was added in between that is not paid', async () => {
    // The shop of this seed holds orders at risk.
    const { shop, chance, supplier } = await simWorld('shopify', true, 4)
    if (!shop) throw new Error('the seed has no shop')
    const [offer] = supplier.world.offers.list({}, 0, 1).items
    const lines = [{ sku: offer?.sku ?? '', quantity: 2 }] as never
    const { reference } = shop.act(() => {
      const bought = shop.counter.buy(lines, undefined, chance)
      shop.counter.edits['risk found']?.(bought.reference, chance)
      return bought
    })
    expect(shop.facts.now(reference)?.standing).toBe('waits')
    for (const edit of ['line added', 'risk released']) shop.act(() => shop.counter.edits[edit]?.(reference, chance))
    expect(shop.counter.status(reference)).toBe('PARTIALLY_PAID')
    const { standing, units } = shop.facts.now(reference) ?? {}
    expect([standing, [...(units?.values() ?? [])]]).toEqual(['paid', [2, 0]])
  })
})

describe('a line of which a shop holds units back', () => {
  test('waits where a purchase has more units than the shop allows to be delivered', async () => {
    // The shop of this seed holds orders at risk.
    const { shop, chance, supplier } = await simWorld('shopify', true, 4)
    if (!shop) throw new Error('the seed has no shop')
    const [offer] = supplier.world.offers.list({}, 0, 1).items
    const { reference, lines } = shop.counter.buy([{ sku: offer?.sku ?? '', quantity: 2 }] as never, undefined, chance)
    const mayShip = () => shop.facts.now(reference)?.mayShip?.get(lines[0] ?? '')
    const edit = (name: string) => shop.act(() => shop.counter.edits[name]?.(reference, chance))
    edit('paid')
    expect(mayShip()).toBeUndefined()
    edit('fulfilment scheduled')
    expect(mayShip()).toBe(0)
    edit('line grown and paid')
    expect(mayShip()).toBe(1)
    edit('fulfilment released')
    expect(mayShip()).toBeUndefined()
  })
})

describe('the verdict of a seed', () => {
  test('finds a double charge after the retry of a failed and refunded purchase', async () => {
    const { decided, charge, refund, verdict } = await partOf({ quantity: 1 })
    refund(charge(1))
    decided.push(retryOf(1))
    charge(2)
    expect(verdict().doubleCharges).toBe(0)
    charge(3)
    expect(verdict().doubleCharges).toBe(1)
  })

  test('allows one more charge for a write-off whose own charge stands, and no third one', async () => {
    const { decided, charge, verdict } = await partOf({ quantity: 1 })
    charge(1)
    decided.push(retryOf(1))
    charge(2)
    expect(verdict().doubleCharges).toBe(0)
    charge(2, 'another-key')
    expect(verdict().doubleCharges).toBe(1)
  })

  test('finds keys above the quantity of a line although one of its purchases was written off', async () => {
    const { decided, charge, handOver, tooMany } = await partOf({ quantity: 2 })
    const { id } = charge(1)
    handOver(1)
    decided.push({ ...retryOf(1), orders: [id] })
    charge(2)
    expect(tooMany()).toEqual([])
    handOver(2)
    expect(tooMany()).toEqual(['s1/1: 4 keys for a quantity of 2'])
  })

  test('allows the keys of a claimed order only where a restore took their hand-over out of the database', async () => {
    const { world, claimed, second, tooMany } = await handedOverTwice()
    claimed.add(second.id)
    storePurchase(world, reference(2))
    expect(tooMany()).toHaveLength(1)
    world.restoredAt = 5
    expect(tooMany()).toHaveLength(1)
    world.restoredAt = 20
    expect(tooMany()).toEqual([])
  })

  test('allows the keys of a purchase that was closed only where a restore had forgotten their hand-over by then', async () => {
    const { world, decided, tooMany } = await handedOverTwice()
    storePurchase(world, reference(2))
    const close: Decided = { type: 'close', reference: reference(2), at: 15, orders: [], writesOff: false }
    decided.push(close)
    expect(tooMany()).toHaveLength(1)
    world.restoredAt = 20
    expect(tooMany()).toHaveLength(1)
    close.at = 25
    expect(tooMany()).toEqual([])
  })

  test('allows the keys of a purchase that a restore took out of the database and that no order led back to', async () => {
    const { world, tooMany } = await handedOverTwice()
    expect(tooMany()).toHaveLength(1)
    world.restoredAt = 20
    expect(tooMany()).toEqual([])
    storePurchase(world, reference(2))
    expect(tooMany()).toHaveLength(1)
  })

  test('allows a charge for a write-off that is made once more because a restore forgot it and what was bought for it', async () => {
    const { world, decided, charge, verdict } = await partOf({ quantity: 1 })
    const { timeline } = world
    const pass = () => timeline.runUntil(timeline.now() + MINUTE)
    const writeOff = () => decided.push({ ...retryOf(1), at: timeline.now() })
    charge(1)
    await pass()
    writeOff()
    charge(2)
    await pass()
    const restoredAt = timeline.now()
    await pass()
    charge(3)
    expect(verdict().doubleCharges).toBe(1)
    world.restoredAt = restoredAt
    expect(verdict().doubleCharges).toBe(1)
    writeOff()
    expect(verdict().doubleCharges).toBe(0)
    charge(4)
    expect(verdict().doubleCharges).toBe(1)
  })
})

describe('a second charge after a restore', () => {
  interface Meanwhile {
    listedAfterMs?: number
    isFiltered?: boolean
    isRestored?: boolean
    /** The copy has the request of the first charge. */
    isKnown?: boolean
    /** Between the restore and the second charge. */
    passesMs?: number
    /** The list is read right before the second charge. */
    isRead?: boolean
  }
  /** The first generation is charged, its order is listed later, the database is put back, and the part is bought again. */
  async function boughtAgain(meanwhile: Meanwhile = {}) {
    const { listedAfterMs = 10 * MINUTE, isFiltered = true, isRestored = true, isKnown = false } = meanwhile
    const { passesMs = 0, isRead = false } = meanwhile
    const part = await partOf({ quantity: 1, isFiltered })
    const { supplier, timeline, restored, log, road } = part.world
    const match = { externalOrderId: reference(1) }
    supplier.faults.add({ fault: 'list-lag', times: 1, delayMs: listedAfterMs, match })
    const { id } = part.charge(1)
    await timeline.runUntil(timeline.now() + 5 * MINUTE)
    if (isKnown) storePurchase(part.world, reference(1))
    if (isRestored) {
      for (const tell of restored) tell()
      log.add('p1', 'sweep.complete', { cause: 'restore' })
    }
    await timeline.runUntil(timeline.now() + passesMs)
    if (isRead) {
      const trip = { asked: { method: 'GET', path: '/orders' } } as Trip
      for (const watcher of road.watchers) watcher.written(trip)
      await timeline.runUntil(timeline.now() + 1)
    }
    part.charge(2)
    return { ...part, id }
  }
  const judged = async (meanwhile?: Meanwhile) => {
    const { doubleCharges, excused } = (await boughtAgain(meanwhile)).verdict()
    return { doubleCharges, excused: excused.length }
  }
  const isWrong = { doubleCharges: 1, excused: 0 }
  const isExcused = { doubleCharges: 0, excused: 1 }

  test('is excused by name where the list showed the order of the first one later than the dialect says, after the orders were reattached', async () => {
    const { id, verdict } = await boughtAgain()
    const { doubleCharges, excused } = verdict()
    expect(doubleCharges).toBe(0)
    expect(excused).toEqual([
      expect.stringMatching(`^${reference(2)} was sent although .* its order ${id} came .* after 10 minutes`),
    ])
  })

  test('is wrong where the order was listed in time, was in the copy, or was no matter of a restore', async () => {
    expect(await judged({ listedAfterMs: MINUTE })).toEqual(isWrong)
    expect(await judged({ listedAfterMs: 4 * MINUTE })).toEqual(isWrong)
    expect(await judged({ isKnown: true })).toEqual(isWrong)
    expect(await judged({ isRestored: false })).toEqual(isWrong)
  })

  test('is wrong once the order can be found: by a filter at once, else when the list was read again', async () => {
    const passesMs = 6 * MINUTE
    expect(await judged({ passesMs })).toEqual(isWrong)
    expect(await judged({ passesMs, isFiltered: false })).toEqual(isExcused)
    expect(await judged({ passesMs, isFiltered: false, isRead: true })).toEqual(isWrong)
  })

  test('excuses no third one', async () => {
    const { charge, verdict } = await boughtAgain()
    charge(3)
    expect(verdict()).toMatchObject({ doubleCharges: 1, excused: [expect.stringMatching(reference(2))] })
  })
})

describe('a line of which the store has all keys', () => {
  test('must be reported as complete, unless people gave a part of it up after a restore', async () => {
    const { charge, handOver, failLine, verdict } = await partOf({ quantity: 1 })
    charge(1)
    handOver(1, { at: 100, complete: false })
    const incomplete = () => verdict().broken.filter((text) => text.includes('never saw complete'))
    expect(incomplete()).toEqual(['s1/1: the store never saw complete'])
    failLine({ restoredAt: 200, at: 300 })
    expect(incomplete()).toEqual([])
  })

  test('need not be reported as complete where it was after a restore, by a callback that the store has from before', async () => {
    const { world, charge, handOver, verdict } = await partOf({ quantity: 1 })
    charge(1)
    handOver(1, { at: 100, complete: false })
    storePurchase(world, reference(1))
    const incomplete = () => verdict().broken.filter((text) => text.includes('never saw complete'))
    world.restoredAt = 200
    const data = { reference: 's1', line: '1', complete: true }
    world.store.changed.push({ id: 'msg', firstAt: 100, data: { ...data, line: '2' } })
    expect(incomplete()).toHaveLength(1)
    world.store.changed.push({ id: 'msg', firstAt: 100, data })
    expect(incomplete()).toEqual([])
    world.restoredAt = 50
    expect(incomplete()).toHaveLength(1)
  })

  test('need not be reported as complete where keys of a claimed order came before a restore that took them away', async () => {
    const { world, claimed, charge, handOver, verdict } = await partOf({ quantity: 1 })
    const { id } = charge(1)
    handOver(1, { at: 100, complete: false })
    storePurchase(world, reference(1))
    const incomplete = () => verdict().broken.filter((text) => text.includes('never saw complete'))
    world.restoredAt = 200
    expect(incomplete()).toHaveLength(1)
    claimed.add(id)
    expect(incomplete()).toEqual([])
    world.restoredAt = 50
    expect(incomplete()).toHaveLength(1)
  })
})

describe('a key that came in place of another one', () => {
  test('makes no line complete when it comes once more after a restore that forgot the claim', async () => {
    const { world, charge, handOver, verdict } = await partOf({ quantity: 1 })
    charge(1)
    handOver(1, { at: 100, complete: false, replaces: true })
    handOver(1, { at: 300, complete: false })
    const incomplete = () => verdict().broken.filter((text) => text.includes('never saw complete'))
    expect(incomplete()).toHaveLength(1)
    world.restoredAt = 200
    expect(incomplete()).toEqual([])
    world.restoredAt = 50
    expect(incomplete()).toHaveLength(1)
  })
})

test('a purchase that could not be handled is found, but for the bug that a fault makes on purpose', async () => {
  const world = await simWorld()
  const { broken } = createWatch(world)
  world.log.add('p1', 'purchase.error', { error: 'the supplier is away' })
  world.log.add('p1', 'purchase.error', { error: BUG, isError: true })
  expect(broken).toEqual([])
  world.log.add('p1', 'purchase.error', { error: 'NOT NULL constraint failed', isError: true })
  expect(broken).toEqual(['a purchase could not be handled: NOT NULL constraint failed'])
})

describe('a line of an order that the store knows as closed', () => {
  test('must have keys or a failure for each of its units', async () => {
    const { world, charge, handOver, verdict } = await partOf({ quantity: 2 })
    const hears = (type: string, data: object) =>
      world.store.heard.push({
        id: `${type} ${world.store.heard.length}`,
        type,
        at: 0,
        begunAt: 0,
        timestamp: 0,
        data: { reference: 's1', ...data },
      })
    const silent = () => verdict().broken.filter((text) => text.includes('neither came nor failed'))
    hears('line.failed', { line: '1', quantity: 1 })
    expect(silent()).toEqual([])
    hears('order.closed', { state: 'cancelled' })
    expect(silent()).toEqual(['s1/1: its order was closed with units that neither came nor failed'])
    charge(1)
    handOver(1)
    expect(silent()).toEqual([])
  })
})

describe('a second charge of a part', () => {
  test('is known to people who claimed its money, also after a restore took it off the record', async () => {
    const { decided, claimed, charge, refund, verdict } = await partOf({ quantity: 1 })
    const order = charge(1)
    decided.push({ ...retryOf(1), type: 'buy_again' })
    charge(2)
    const unknown = () => verdict().broken.filter((text) => text.includes('are on record'))
    expect(unknown()).toEqual(['s1/1/1: 2 charges, and 0 of them are on record'])
    refund(order)
    claimed.add(order.id)
    expect(unknown()).toEqual([])
  })
})

describe('a charge whose purchase a restore took out of the database', () => {
  test('is excused where the list showed its order too late for the restore, once it is on record', async () => {
    const { world, unlisted, charge, verdict } = await partOf({ quantity: 1 })
    const [late, listed] = [charge(1), charge(2, 'another key', reference(1).replace('.1.1.1', '.2.1.1'))]
    unlisted.missed = (id) => (id === late.id ? late : undefined)
    expect(verdict().orphanCharges).toBe(2)
    for (const { id } of [late, listed]) {
      const record = "insert into discrepancies values (?, 'orphan', ?, ?, null, '', 0)"
      world.host.connection().prepare(record).run(`d-${id}`, id, id)
    }
    expect(verdict()).toMatchObject({ orphanCharges: 1, excused: [expect.stringContaining(late.id)] })
  })

  test('is excused where its shop says that a part of its money is open, also after a refund, and it is on record', async () => {
    const { world, charge, verdict } = await partOf({ quantity: 1, store: 'shopify' })
    const { shop, host, supplier } = world
    if (!shop) throw new Error('a shop sells')
    const { edits, sells, buy } = shop.counter
    const sold = supplier.world.offers.list({}, 0, 100).items.find(({ sku }) => sells(sku))
    const line = { id: '1', sku: sold?.sku ?? '', quantity: 2, unitPriceMinor: null, currency: null }
    const { reference, lines } = buy([line], undefined, world.chance)
    const { id } = charge(1, 'a key', `q1.${STORE}.${reference}.${lines[0]}.1.1`) ?? { id: '' }
    const record = "insert into discrepancies values ('d', 'orphan', ?, ?, null, '', 0)"
    host.connection().prepare(record).run(id, id)
    world.restoredAt = 1
    shop.act(() => edits['a price refunded']?.(reference, world.chance))
    expect(verdict().orphanCharges).toBe(1)
    shop.act(() => edits['line added']?.(reference, world.chance))
    expect(verdict().orphanCharges).toBe(0)
  })

  test('is excused where its shop has refunded its whole line and it is on record, and no other line is', async () => {
    const { world, charge, verdict } = await partOf({ quantity: 1, store: 'woocommerce' })
    const { shop, host, supplier } = world
    if (!shop) throw new Error('a shop sells')
    const [one, other] = supplier.world.offers.list({}, 0, 100).items.filter(({ sku }) => shop.counter.sells(sku))
    const line = { quantity: 1, unitPriceMinor: null, currency: null }
    const bought = shop.counter.buy(
      [
        { ...line, id: '1', sku: one?.sku ?? '' },
        { ...line, id: '2', sku: other?.sku ?? '' },
      ],
      undefined,
      world.chance,
    )
    const putOnRecord = ({ id }: { id: string }) =>
      host
        .connection()
        .prepare("insert into discrepancies values (?, 'orphan', ?, ?, null, '', 0)")
        .run(`d-${id}`, id, id)
    const [first, second] = bought.lines.map((id) =>
      charge(1, `key of ${id}`, `q1.${STORE}.${bought.reference}.${id}.1.1`),
    )
    if (!first || !second) throw new Error('both lines are charged')
    putOnRecord(second)
    expect(verdict().orphanCharges).toBe(2)
    shop.act(() =>
      shop.counter.edits['unit refunded']?.(bought.reference, { ...world.chance, pick: ([first]) => first as never }),
    )
    putOnRecord(first)
    expect(verdict().orphanCharges).toBe(2)
    world.restoredAt = 1
    expect(verdict().orphanCharges).toBe(1)
  })
})

describe('units that are bought beyond what the customer has paid for', () => {
  /**
   * Two units in two parts. The customer has the key of the second one, a person has that part bought again, and then the first
   * one is bought.
   *
   * @param key when the customer got the first key, and when a restore came; `isKnown`: the database still knows of it
   */
  async function boughtAgain(key: { at: number; restoredAt?: number; isKnown?: boolean }) {
    const { world: played, charge } = await partOf({ quantity: 1, store: 'woocommerce' })
    const { shop, host, supplier, timeline, road } = played
    if (!shop) throw new Error('a shop sells')
    const sku = supplier.world.offers.list({}, 0, 100).items.find((one) => shop.counter.sells(one.sku))?.sku ?? ''
    const lines = [{ id: '1', sku, quantity: 2, unitPriceMinor: null, currency: null }]
    const order = shop.act(() => shop.counter.buy(lines, undefined, played.chance))
    const line = `${order.reference}/${order.lines[0]}`
    const nameOf = (part: string) => `q1.${STORE}.${line.replace('/', '.')}.${part}`
    const writes: KeyWrite[] = []
    const placesOf = (one: string) => (writes.some(({ body }) => body === one) ? [line] : [])
    const world: World = { ...played, shop: { ...shop, writes, placesOf }, restoredAt: key.restoredAt }
    const watch = { clockMovedAt: () => Number.NEGATIVE_INFINITY } as Watch
    const { judge } = watchEntitled(world, watch, { ofLine: () => [], ofPart: () => [], missed: () => undefined })
    const decided: Decided[] = []
    const insert = (part: string, state: string) =>
      host
        .connection()
        .prepare(
          `insert into purchases (id, order_id, line_id, part, generation, state, idempotency_key, external_order_id, body,
            supplier_product_id, quantity, ceiling_minor, currency, deadline_at, last_sent_at, created_at, changed_at)
          values (?, 'o', 'l', ?, ?, ?, ?, ?, '', 'p', 1, 0, 'EUR', 0, ?, 0, 0)`,
        )
        .run(part, ...part.split('.'), state, `key of ${part}`, nameOf(part), timeline.now())
    const deliver = (part: string, at: number) => {
      charge(1, `key of ${part}`, nameOf(part))
      for (const body of supplier.world.report().keysIssued[nameOf(part)] ?? []) {
        writes.push({ at, order: order.reference, body })
      }
    }
    host.connection().pragma('foreign_keys = OFF')
    deliver('2.1', key.at)
    if (key.isKnown) {
      insert('2.1', 'cancelled')
      host
        .connection()
        .prepare("insert into licence_keys values ('2.1', 1, x'', 1, x'', 0, null, ?, null, 'text')")
        .run(key.at)
    }
    const decision = { reference: nameOf('2.1'), at: 0, orders: [], writesOff: false }
    decided.push({ ...decision, type: 'close' }, { ...decision, type: 'retry', writesOff: true })
    deliver('2.2', 30)
    insert('1.1', 'sending')
    const trip = { key: 'key of 1.1', asked: { body: JSON.stringify({ reference: nameOf('1.1') }) } } as Trip
    for (const watcher of road.watchers) watcher.written(trip)
    return judge({ decided, claimed: new Set(), said: [], replacements: noReplacements }).beyond
  }
  const tooMany = [expect.stringMatching(/bought, so that its line has 3 units, and the shop had 2 as paid$/)]

  test('leave out a key whose hand-over a restore took away, where a person had its part bought again', async () => {
    expect(await boughtAgain({ at: 10, restoredAt: 20 })).toEqual([])
  })

  test('have the key of a part that is bought again where no restore took its hand-over away', async () => {
    expect(await boughtAgain({ at: 10 })).toEqual(tooMany)
    expect(await boughtAgain({ at: 25, restoredAt: 20 })).toEqual(tooMany)
    expect(await boughtAgain({ at: 10, restoredAt: 20, isKnown: true })).toEqual(tooMany)
  })
})

describe('a double charge outside the promises', () => {
  test('is counted apart from what the operator bought again', async () => {
    const { decided, charge, detection } = await partOf({ quantity: 1 })
    charge(1)
    decided.push(retryOf(1))
    charge(2)
    expect(detection()).toEqual({ outside: 0, outsideDetected: 0 })
    charge(2, 'another-key')
    expect(detection()).toEqual({ outside: 1, outsideDetected: 0 })
  })
})

describe('keys that the store got although it had cancelled', () => {
  const breaks = [expect.stringMatching(/^s1\/1: key .* was handed over after an acknowledged cancellation$/)]

  /** Bought, cancelled at 100 with the answer at 110, and handed over at 200. */
  async function cancelled(handedOver: { begunAt?: number; timestamp?: number } = {}) {
    const part = await partOf({ quantity: 1 })
    part.charge(1)
    part.cancellations.push({ reference: 's1', askedAt: 100, at: 110 })
    part.handOver(1, { at: 200, ...handedOver })
    return part
  }

  test('are found', async () => {
    expect((await cancelled()).verdict().broken).toEqual(breaks)
  })

  test('are right when an operator has decided it since the cancellation, and not before it', async () => {
    const { decided, verdict } = await cancelled()
    const decision: Decided = { type: 'hand_over', reference: reference(1), at: 99, orders: [], writesOff: false }
    decided.push(decision)
    expect(verdict().broken).toEqual(breaks)
    decided.push({ ...decision, type: 'close', at: 150 })
    expect(verdict().broken).toEqual(breaks)
    decided.push({ ...decision, at: 150 })
    expect(verdict().broken).toEqual([])
  })

  test('are right when their hand-over had begun before the cancellation was acknowledged', async () => {
    expect((await cancelled({ begunAt: 110 })).verdict().broken).toEqual([])
  })

  test('are right when a process died that may have begun their hand-over', async () => {
    const { deaths, verdict } = await cancelled({ timestamp: 90 })
    deaths.push(80)
    expect(verdict().broken).toEqual(breaks)
    deaths.push(95)
    expect(verdict().broken).toEqual([])
  })
})

describe('a freeze for many reviews', () => {
  const causes = [{ reason: "4 purchases within an hour need a person's decision" }]

  test('whose only causes are cancellations is found', async () => {
    const { groundless, verdict } = await partOf({ quantity: 1 })
    for (const text of groundlessFreezes(causes, 3)) groundless.add(text)
    expect(verdict().broken).toEqual([
      "buying was frozen (4 purchases within an hour need a person's decision), and only 3 reviews left money in doubt",
    ])
  })

  test('is right when enough of them leave money in doubt, and so is one for another cause', () => {
    expect(groundlessFreezes(causes, 4)).toEqual([])
    expect(groundlessFreezes([{ reason: 'a look at the books' }], 0)).toEqual([])
  })
})

describe("the operator's book", () => {
  test('has no decision whose process died before it was committed, and has one whose answer alone was lost', async () => {
    const world = await simWorld()
    const { host, timeline } = world
    const book = createBook(world)
    const inRecord = (actor: string): boolean =>
      host.connection().prepare('select 1 from audit where actor = ?').get(actor) !== undefined
    for (const [generation, dies] of [
      [1, () => true],
      [2, inRecord],
    ] as const) {
      await settleIn(world)
      const process = host.awake()
      if (!process) throw new Error('no process runs')
      let asked = ''
      const diesAt = (point: string): boolean => asked !== '' && point.startsWith('commit') && dies(asked)
      host.faults.diesAt.add(diesAt)
      const note = () => void book.decided.push(retryOf(generation))
      void book.ask(process, note, (actor) => {
        asked = actor
        return freeze(process.ordering, 'anything that is audited', actor)
      })
      await timeline.runUntil(timeline.now() + 60_000)
      host.faults.diesAt.delete(diesAt)
      expect(process.life.isDead()).toBe(true)
    }
    expect(book.decided.map(({ reference: one }) => one)).toEqual([reference(2)])
  })
})
