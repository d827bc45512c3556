/**
 * A person on duty, scripted: looks every few minutes at what waits for a decision, and decides by the same flows as the
 * console and the command line do. The script knows nothing that is not shown to a person in that place.
 */
import { inArray } from 'drizzle-orm'
import { Failure, messageOf } from '../../../src/errors.ts'
import { releasePurchase, retryPurchase, unfreeze } from '../../../src/ordering/actions.ts'
import { type Loaded, load, ordersOf, unitsLeft } from '../../../src/ordering/advance.ts'
import { refusalOf } from '../../../src/ordering/choices.ts'
import { type Decision, decidePurchase } from '../../../src/ordering/decide.ts'
import { takeByHand } from '../../../src/ordering/shop-orders.ts'
import { first } from '../../../src/storage/database.ts'
import { listDiscrepancies } from '../../../src/storage/discrepancies.ts'
import { attemptsOf, transitionsOf } from '../../../src/storage/evidence.ts'
import { currentFreeze } from '../../../src/storage/freezes.ts'
import { listOutbox, redeliverEffect } from '../../../src/storage/outbox.ts'
import { type Purchase, purchaseById, purchasesBySupplierOrder } from '../../../src/storage/purchases.ts'
import { purchases } from '../../../src/storage/schema.ts'
import { build } from '../../../src/storage/statement.ts'
import { groundlessFreezes } from '../../support/freeze-causes.ts'
import { isOurs, lineOf, orderOf, partOf } from '../../support/references.ts'
import { replacing } from './claims.ts'
import type { SimProcess } from './process.ts'
import { STORE } from './store.ts'
import { HOUR, MINUTE, type World } from './world.ts'

/** What was decided, in the operator's own book. */
export interface Decided {
  type: Decision['type'] | 'retry'
  /** The external reference of the purchase that was decided on. */
  reference: string
  at: number
  /** Orders of the supplier that the person was shown. */
  orders: readonly string[]
  /** The supplier's order that was adopted: its keys are still to come. */
  adopts?: string
  /** The operator took the money of this purchase for lost. If it is, one more charge for its part is meant. */
  writesOff: boolean
}

/**
 * The operator's book. A decision stands in it once it was carried out: acknowledged, or, where the process died first,
 * found in the database that the process left behind. A decision that the process did not live to commit is none.
 */
export function createBook({ host, timeline }: Pick<World, 'host' | 'timeline'>) {
  const decided: Decided[] = []
  /** Parts that may exceed the spend caps, from when on. */
  const overrides: { part: string; at: number }[] = []
  /** Actor -> what was asked for and not answered yet. Each decision is signed with an actor of its own. */
  const asked = new Map<string, { note: () => void; process: SimProcess }>()
  let number = 0
  const isCommitted = (actor: string): boolean =>
    host.connection().prepare<[string]>('select 1 from audit where actor = ?').get(actor) !== undefined
  const settle = (): void => {
    for (const [actor, { note, process }] of asked) {
      if (!process.life.isDead() || !isCommitted(actor)) continue
      asked.delete(actor)
      note()
    }
  }
  host.deaths.add(() => {
    settle()
    // A commit that the database had begun may end in the same instant.
    timeline.after(0, settle)
  })
  return {
    decided,
    overrides,
    /** @param note writes the decision into the book */
    ask: async (process: SimProcess, note: () => void, carryOut: (actor: string) => Promise<void>): Promise<void> => {
      number += 1
      const actor = `operator ${number}`
      asked.set(actor, { note, process })
      try {
        await carryOut(actor)
      } catch (error) {
        asked.delete(actor)
        throw error
      }
      asked.delete(actor)
      note()
    },
  }
}

export interface Temper {
  /** Between two looks. */
  everyMs: number
  /** A review that nothing was found for is left alone for so long: an order may still turn up. */
  patienceMs: number
  /** How often a part that failed is bought again. */
  retries: number
}

const LATE_MS = 25 * HOUR
/** A person looks again at what was held no longer for a moment. */
const AGAIN_MS = 10_000

export type Operator = ReturnType<typeof createOperator>

export function createOperator(world: World, temper: Temper) {
  const { host, timeline, log } = world
  const chance = world.chance.named('operator')
  const book = createBook(world)
  const { decided, overrides } = book
  /** Orders that the supplier's support took back, because they were reported and no purchase has them. */
  const claimed = new Set<string>()
  const counts = { decisions: 0, unfreezes: 0 }
  let retriesUntil = Number.POSITIVE_INFINITY
  let looksUntil = Number.POSITIVE_INFINITY
  const replacements = replacing(world, book, () => timeline.now() > retriesUntil)
  /** Freezes for reviews that cancellations caused, in words. */
  const groundless = new Set<string>()
  /** How often each question was answered before: what was refused once is answered otherwise the next time. */
  const answered = new Map<string, number>()
  /** Orders that wait for a word of a person, who leaves them as they are. */
  const left = new Set<string>()
  /** Orders that went on by a word of a person. */
  const said: { reference: string; at: number }[] = []
  /** Commands that alerts have named: an order that waits, or a line of it that grew. */
  const asked = new Set<string>()
  /** By who said it, as the audit names them: what a restored database does not have on record is said again. */
  const words = new Map<string, string>()
  world.restored.add(() => {
    const onRecord = host.connection().prepare<[string], unknown>('select 1 from audit where actor = ?')
    for (const [actor, command] of words) if (onRecord.get(actor) === undefined) asked.add(command)
  })
  /** Lines, as `order/line`, of which units were bought that are not ordered any more. */
  const surplus = new Set<string>()
  log.listeners.add((what, { detail }) => {
    if (what !== 'alert') return
    const text = String(detail)
    const [, order, line] = SURPLUS.exec(text) ?? []
    if (order && line) surplus.add(`${order}/${line}`)
    const command = /quayside orders (?:take|release) .*/.exec(text)?.[0]
    const held = FOR_PERSON.exec(text)?.[1]
    const early = BEFORE_CONNECTION.exec(text)?.[1]
    if (command) asked.add(command)
    if (early) asked.add(`quayside orders take ${early}`)
    if (held) asked.add(`quayside orders release ${held}`)
  })
  const times = (question: string): number => {
    const before = answered.get(question) ?? 0
    answered.set(question, before + 1)
    return before
  }

  async function look(process: SimProcess): Promise<void> {
    const { ordering } = process
    const all = await ordering.db.query(unsettled)
    const reports = await ordering.db.query(newestReports)
    const reported = new Set(reports.map(({ subject }) => subject))
    for (const { kind, supplierOrderId } of reports) {
      if (kind === 'double_charge' && supplierOrderId !== null) await claim(process, supplierOrderId)
    }
    for (const purchase of all) {
      if (purchase.state === 'review' && !mayResolve(purchase)) await decide(process, purchase)
      const doubtful = isLate(purchase) || reported.has(purchase.id)
      if (purchase.state === 'accepted' && doubtful && (chance.odds(0.3) || isLongDoubtful(purchase))) {
        await decide(process, purchase)
      }
      if (purchase.holdReason === 'ceiling') await release(process, purchase)
      if (purchase.holdReason === 'spend_cap' && isLongHeld(purchase)) await override(process, purchase)
      if (isOver(purchase) && isNewest(purchase, all)) await retry(process, purchase)
    }
    for (const command of asked) await say(process, command)
    await replacements.look(process)
    const freeze = await currentFreeze(ordering.db)
    if (freeze) {
      const inDoubt = host.connection().prepare<[], { total: number }>(REVIEWS_IN_DOUBT).get()?.total ?? 0
      for (const text of groundlessFreezes(freeze.causes, inDoubt)) groundless.add(text)
      const open = all.some(({ state }) => state === 'review')
      if (!open || chance.odds(0.5)) await lift(process)
    }
    for (const effect of await ordering.db.query(queuedCallbacks)) {
      if (effect.state === 'done' || effect.attempts < 2) continue
      await ordering.db.commit([{ ...redeliverEffect(effect.id, ordering.now()), rows: 'any' }])
      ordering.wake('outbox')
    }
  }

  const seenAt = new Map<string, number>()
  const firstSeen = (id: string): number => {
    const at = seenAt.get(id) ?? timeline.now()
    seenAt.set(id, at)
    return at
  }
  const isLate = ({ acceptedAt }: Purchase): boolean => acceptedAt !== null && timeline.now() - acceptedAt > LATE_MS
  /** A report that stays is not left to chance. */
  const isLongDoubtful = ({ id }: Purchase): boolean => timeline.now() - firstSeen(`${id} in doubt`) > HOUR
  const mayResolve = (purchase: Purchase): boolean =>
    purchase.supplierOrderId === null &&
    purchase.ordersSeen.length === 0 &&
    timeline.now() - firstSeen(purchase.id) < temper.patienceMs

  /** An hour has room again by itself; what is held for longer, or urgent, an operator lets pass. */
  const isLongHeld = (purchase: Purchase): boolean =>
    timeline.now() - firstSeen(`${partOf(purchase.externalOrderId)} held`) > 30 * MINUTE || chance.odds(0.1)

  /** What the operator has bought again is wanted at once: a cap that holds it is overridden. */
  const letPassSoon = (reference: string): void =>
    void timeline.after(2 * MINUTE, () => letPass((part) => part === partOf(reference)))

  /** Overrides the caps that hold a purchase of one of these parts. */
  const letPass = (isMeant: (part: string) => boolean = () => true): void =>
    void host.ask(async (process) => {
      for (const purchase of await process.ordering.db.query(unsettled)) {
        const isHeld = purchase.holdReason === 'spend_cap' && isMeant(partOf(purchase.externalOrderId))
        if (isHeld) await override(process, purchase)
      }
    })

  async function decide(process: SimProcess, purchase: Purchase): Promise<void> {
    const { ordering } = process
    const loaded = await load(ordering, purchase.id)
    if (!loaded) return
    const orders = ordersOf(loaded, await ordering.db.query(attemptsOf([purchase.id])))
    const history = await ordering.db.query(transitionsOf([purchase.id]))
    const options = optionsFor(loaded, orders, new Set(history.map(({ row }) => row)))
    // What is refused is answered otherwise at once: the reason of the refusal is on the screen.
    for (let tries = 0; tries < options.length; tries += 1) {
      if (await decides(process, purchase, orders, options[times(purchase.id) % options.length] as Decision)) return
    }
  }

  /** @returns false where it was refused */
  async function decides(process: SimProcess, { id, externalOrderId }: Purchase, orders: string[], decision: Decision) {
    const reference = externalOrderId
    const writesOff = decision.type === 'buy_again'
    const entry: Decided = { type: decision.type, reference, at: timeline.now(), orders, writesOff }
    if (decision.type === 'adopt') entry.adopts = decision.orderId
    try {
      await book.ask(process, noted(entry), (actor) =>
        decidePurchase(process.ordering, id, decision, { actor, reason: 'as the script says' }),
      )
      counts.decisions += 1
      log.add('operator', 'decided', { ...decision, reference })
      if (writesOff) letPassSoon(reference)
      return true
    } catch (error) {
      log.add('operator', 'refused', { ...decision, reference, error: messageOf(error) })
      return false
    }
  }

  /** What a careful person would do with what is shown, the best first. */
  function optionsFor(loaded: Loaded, orders: readonly string[], history: ReadonlySet<string>): Decision[] {
    const { purchase } = loaded
    // The order that it has is not adopted once more while it is waited for, or when it gave too few keys: that would change nothing.
    const isKnown = purchase.state === 'accepted' || purchase.note?.includes('keys came')
    const shown = isKnown ? orders.filter((id) => id !== purchase.supplierOrderId) : orders
    // The supplier's dashboard says of an order that another client of the supplier has made it.
    const others = shown.filter((id) => {
      const order = world.supplier.world.orders.get(id)
      return !order || isOurs(order.externalOrderId)
    })
    const adopt = others.map((orderId): Decision => ({ type: 'adopt', orderId }))
    const handOver: Decision = { type: 'hand_over' }
    const close: Decision = { type: 'close' }
    const again: Decision = { type: 'buy_again' }
    const both = chance.odds(0.5) ? [close, again] : [again, close]
    // The evidence says that the store has one of its keys for another line: an operator does not hand that over again, unless all
    // keys of this one are there before.
    if (history.has('key_seen_elsewhere')) return refusalOf(loaded, 'close') ? [handOver] : both
    // Nothing is handed over in a shop that has other keys for all units of the line, or that has the order as cancelled.
    const kept = [refusalOf(loaded, 'close') ? handOver : close]
    if (hasOtherKeys(purchase)) return kept
    if (purchase.cancelRequestedAt !== null && chance.odds(0.5)) return [close, handOver]
    const isCancelled = world.shop?.facts.now(orderOf(purchase.externalOrderId))?.standing === 'cancelled'
    if (isCancelled || purchase.holdReason === 'not_entitled') return kept
    // The customer has some of the keys: the operator buys the others again, or settles for what came.
    const left = unitsLeft(loaded)
    if (left > 0 && left < purchase.quantity && chance.odds(0.5)) return [again, handOver, ...adopt, close]
    if (purchase.handOverHeldAt !== null) return [handOver, ...adopt, ...both]
    return [...adopt, handOver, ...both]
  }

  /** Whether the shop shows keys of other purchases for all units of the line. */
  function hasOtherKeys({ externalOrderId }: Purchase): boolean {
    const [reference = '', line = ''] = lineOf(externalOrderId).split('/')
    const order = world.shop?.orderIn(reference)
    if (!order) return false
    const texts = order.textsOf(line)
    const others = Object.entries(world.supplier.world.report().keysIssued).filter(([name]) => name !== externalOrderId)
    const there = others.flatMap(([, keys]) => keys.filter((key) => texts.some((text) => text.includes(key))))
    return there.length >= order.unitsDue(line)
  }

  /** Asks the supplier's support for the money of an order that was reported and that no purchase has. */
  async function claim({ ordering }: SimProcess, orderId: string): Promise<void> {
    const order = world.supplier.world.orders.get(orderId)
    const [owner] = await ordering.db.query(purchasesBySupplierOrder([orderId]))
    if (claimed.has(orderId) || !order || owner) return
    // What came back by itself need not be asked for.
    if (!world.supplier.world.orders.refund(order)) return
    claimed.add(orderId)
    log.add('operator', 'claimed', { orderId })
  }

  const noted = (entry: Decided) => () => void decided.push(entry)

  async function release({ ordering }: SimProcess, purchase: Purchase): Promise<void> {
    const change = { ceilingMinor: purchase.ceilingMinor * 3 }
    await releasePurchase(ordering, purchase.id, change, 'operator').catch(refused('release', purchase))
    // A release has the others looked at again, so that one of them may be held no longer for the moment.
    if (timeline.now() < looksUntil) {
      timeline.after(AGAIN_MS, () => void host.ask((process) => lookAgain(process, purchase.id)))
    }
  }

  async function lookAgain({ ordering }: SimProcess, id: string): Promise<void> {
    const purchase = await first(ordering.db, purchaseById(id))
    if (purchase?.holdReason !== 'ceiling') return
    const change = { ceilingMinor: purchase.ceilingMinor * 3 }
    await releasePurchase(ordering, id, change, 'operator').catch(refused('release', purchase))
  }

  /** Has an order go on that waits for a person, or takes the units that a line of it has gained; leaves some as they are. */
  async function say(process: SimProcess, command: string): Promise<void> {
    const [, verb = '', reference = '', line] =
      /orders (take|release) (\S+?)(?: --line (\S+))?(?:[ ;]|$)/.exec(command) ?? []
    if (times(command) === 0 && chance.odds(0.3)) left.add(reference)
    if (left.has(reference)) return void asked.delete(command)
    const word = verb === 'release' ? 'release' : { take: line === undefined ? ('all' as const) : { line } }
    const all = await process.ordering.db.query(unsettled)
    // What was closed before the order came back is bought once more, whatever it cost the first time.
    const closed = all.filter(
      (purchase) =>
        lineOf(purchase.externalOrderId) === `${reference}/${line}` &&
        purchase.state === 'cancelled' &&
        purchase.takenBackBy !== null &&
        purchase.decidedRevision !== null &&
        isNewest(purchase, all),
    )
    const entries = closed.map(
      (purchase): Decided => ({
        type: 'retry',
        reference: purchase.externalOrderId,
        at: timeline.now(),
        orders: ordersOf({ purchase }, []),
        writesOff: true,
      }),
    )
    try {
      await book.ask(
        process,
        () => void decided.push(...entries),
        async (actor) => {
          await takeByHand(process.ordering, STORE, reference, word, actor)
          words.set(actor, command)
        },
      )
      said.push({ reference, at: timeline.now() })
      log.add('operator', 'said', { command })
    } catch (error) {
      log.add('operator', 'refused', { command, error: messageOf(error) })
      // The shop is away for the moment.
      if (error instanceof Failure && error.code === 'unavailable') return
    }
    asked.delete(command)
  }

  async function override(process: SimProcess, purchase: Purchase): Promise<void> {
    const entry = { part: partOf(purchase.externalOrderId), at: timeline.now() }
    log.add('operator', 'overrides the spend caps', { part: entry.part })
    const change = { overrideSpendCap: true }
    await book
      .ask(
        process,
        () => void overrides.push(entry),
        (actor) => releasePurchase(process.ordering, purchase.id, change, actor),
      )
      .catch(refused('override', purchase))
  }

  async function retry(process: SimProcess, purchase: Purchase): Promise<void> {
    // What the store has cancelled, or the shop took back, is wanted no more.
    if (purchase.cancelRequestedAt !== null || purchase.takenBackBy !== null) return
    if (purchase.generation > temper.retries || !chance.odds(0.5)) return
    if (timeline.now() > retriesUntil || times(`retry ${purchase.id}`) > 0) return
    const reference = purchase.externalOrderId
    // That one was rejected says that nothing was charged for it: no second payment is meant then.
    const charged = purchase.maybeChargedAt !== null || purchase.ordersSeen.length > 0
    const writesOff = purchase.state === 'failed' || (purchase.state === 'cancelled' && charged)
    const orders = ordersOf({ purchase }, [])
    const entry: Decided = { type: 'retry', reference, at: timeline.now(), orders, writesOff }
    try {
      await book.ask(process, noted(entry), (actor) => retryPurchase(process.ordering, purchase.id, actor))
      log.add('operator', 'retried', { reference })
      letPassSoon(reference)
    } catch (error) {
      refused('retry', purchase)(error)
    }
  }

  async function lift({ ordering }: SimProcess): Promise<void> {
    try {
      await unfreeze(ordering, 'operator')
      counts.unfreezes += 1
      log.add('operator', 'unfrozen')
    } catch (error) {
      log.add('operator', 'refused', { type: 'unfreeze', error: messageOf(error) })
    }
  }

  const refused =
    (type: string, { externalOrderId }: Purchase) =>
    (error: unknown) =>
      log.add('operator', 'refused', { type, reference: externalOrderId, error: messageOf(error) })

  const round = (): void => {
    timeline.after(temper.everyMs, round)
    void host.ask(look)
  }
  timeline.after(temper.everyMs, round)
  return {
    decided,
    claimed,
    overrides,
    groundless,
    left,
    said,
    surplus,
    letPass,
    replacements,
    counts,
    /** A retry that comes later would not be over when the seed is. @param endsAt the seed is over then */
    endRetries: (at: number, endsAt: number): void => {
      retriesUntil = at
      looksUntil = endsAt - 2 * AGAIN_MS
    },
  }
}

const isOver = ({ state }: Purchase): boolean => state === 'rejected' || state === 'failed' || state === 'cancelled'

const isNewest = (purchase: Purchase, all: Purchase[]): boolean =>
  all.every(
    (other) =>
      other.lineId !== purchase.lineId || other.part !== purchase.part || other.generation <= purchase.generation,
  )

/** What is said of an order that waits for a word of a person. */
const FOR_PERSON =
  /\border (\d+) of .* waits since .*(?:was fulfilled in the shop before|had money refunded without|is paid less than before)/

/** Such an order is taken where its customer has no keys, as the alert of it says. */
const BEFORE_CONNECTION = /\border (\d+) of .* was placed before the shop was connected/

const SURPLUS = /\border (\d+) of .* of line (\d+)\b.* bought already and not ordered any more/

/** As the timeline of a purchase names them. */
const REVIEWS_IN_DOUBT = `select count(distinct purchase_id) as total from transitions
  where after = 'review' and before <> 'review' and row not like '%cancel%'`

const newestReports = listDiscrepancies({ limit: 50 })
const queuedCallbacks = listOutbox({ kind: 'callback', limit: 50 })

/** All but those whose keys are with the store; a run has a few dozen. */
const unsettled = build
  .select()
  .from(purchases)
  .where(inArray(purchases.state, ['planned', 'waiting', 'review', 'accepted', 'rejected', 'failed', 'cancelled']))
  .orderBy(purchases.id)
