import type { ErrorKind, OrderStatus } from '../dialect/dialect.ts'
import { bytesFrom, uuidOf } from './chance.ts'
import type { FaultName, SandboxFault } from './faults.ts'
import type { Ledger } from './ledger.ts'
import { type Offer, type Offers, sellable } from './offers.ts'
import { refusalFacts } from './refusal.ts'
import type { Tables } from './tables.ts'
import type { Webhooks } from './webhooks.ts'
import type { Ground } from './world.ts'

export interface OrderRequest {
  productId: string
  quantity: number
  externalOrderId: string | null
}

export type Decision = { kind: 'ordered'; order: Order } | { kind: 'refused'; error: ErrorKind; message: string }

/** The filters of the list. Instants are in epoch milliseconds, `from` is inclusive, `before` is exclusive. */
export interface OrderFilter {
  externalOrderId?: string | undefined
  status?: OrderStatus | undefined
  from?: number | undefined
  before?: number | undefined
}

export type Orders = ReturnType<typeof keepOrders>

/**
 * Keeps the orders of the account.
 *
 * ```
 * open --due--> completed --by hand--> refunded
 *  |  \--by hand, or a fault--> failed (refunded in the same transaction)
 *  +--partial-keys--> completed or open with some keys --due--> completed
 * ```
 */
export function keepOrders(ground: Ground, ledger: Ledger, offers: Offers, webhooks: Webhooks) {
  const { db, dialect, now } = ground
  const rows = orderRows(db)
  const memory = createMemory(db, dialect.idempotencyMemorySeconds * 1000)
  const book: Book = { ...ground, rows, ledger, offers, webhooks }
  const byHand = <Rest extends unknown[]>(act: (order: Order, ...rest: Rest) => Order) =>
    db.transaction(({ id }: Pick<Order, 'id'>, ...rest: Rest): Order | undefined => {
      const order = rows.get(id)
      return order?.status === 'open' || order?.status === 'completed' ? act(order, ...rest) : undefined
    })

  return {
    /** Returns the outcome of the first request with a key, while it is remembered. Refuses another request with the same key. */
    recall: (key: string, fingerprint: string): Decision | undefined => memory.recall(key, fingerprint, now()),
    /** Decides a well-formed request. Decision, charge and memory of the key are one transaction. */
    place: db.transaction((key: string, fingerprint: string, request: OrderRequest): Decision => {
      const earlier = memory.recall(key, fingerprint, now())
      if (earlier) return earlier
      const offer = offers.get(request.productId)
      const refusal = refusalOf(ground, request, offer, ledger.balanceMinor())
      const decision: Decision =
        refusal || !offer
          ? { kind: 'refused', ...(refusal ?? { error: 'not_found', message: 'There is no such product.' }) }
          : { kind: 'ordered', order: create(book, request, offer, key) }
      memory.keep(key, fingerprint, decision, now())
      return decision
    }),
    get: rows.get,
    /** Returns one page, newest first, without orders that are hidden for now. `total` counts all matches. */
    list: (filter: OrderFilter, offset: number, limit: number) => rows.list(filter, now(), offset, limit),
    /** Returns orders, newest first, hidden orders included: what the supplier knows, not what it shows. */
    known: (limit: number, status?: OrderStatus): Order[] =>
      rows.list({ status }, Number.MAX_SAFE_INTEGER, 0, limit).items,
    keysOf: ledger.keysOf,
    /** Settles due orders, each in a transaction of its own. Returns how many moved. */
    advance: (): number => {
      const due = rows.due(now())
      for (const order of due) db.transaction(settle)(book, order)
      memory.forget(now())
      return due.length
    },
    /** The next three functions end an order by hand, for tests. They return undefined when its state does not allow that. */
    complete: byHand((order) => complete(book, order)),
    fail: byHand((order, message: string) => comeBack(book, order, 'failed', message)),
    refund: byHand((order) => comeBack(book, order, 'refunded', '')),
  }
}

/** The parts of the world that an order moves. */
interface Book extends Ground {
  rows: ReturnType<typeof orderRows>
  ledger: Ledger
  offers: Offers
  webhooks: Webhooks
}

function create(book: Book, request: OrderRequest, offer: Offer, idempotencyKey: string): Order {
  const { rows, ledger, offers, now, random, completeAfterMs } = book
  const { plan, held, hiddenUntil } = planOf(book, request)
  const order: Order = {
    ...request,
    id: uuidOf(bytesFrom(random, 16)),
    status: 'open',
    amountMinor: offer.priceMinor * request.quantity,
    failureCode: null,
    failureMessage: null,
    plan,
    dueAt: held ? null : now() + completeAfterMs,
    hiddenUntil,
    createdAt: now(),
    updatedAt: now(),
  }
  rows.add(order)
  ledger.charge(order, idempotencyKey)
  offers.sell(offer, request.quantity)
  return order
}

function settle(book: Book, order: Order): Order {
  if (order.plan.kind === 'partial') return handPart(book, order, order.plan)
  if (order.plan.kind === 'fail') return comeBack(book, order, 'failed', 'The provider could not fulfil the order.')
  return complete(book, order)
}

function complete(book: Book, order: Order): Order {
  const { ledger } = book
  ledger.issue(order, order.quantity - ledger.keysOf(order.id).length)
  return change(book, order, { status: 'completed', plan: { kind: 'complete' }, dueAt: null })
}

function handPart(book: Book, order: Order, { first, status, delayMs }: OrderPlan & { kind: 'partial' }): Order {
  book.ledger.issue(order, Math.min(first, order.quantity))
  return change(book, order, { status, plan: { kind: 'complete' }, dueAt: book.now() + delayMs })
}

function comeBack(book: Book, order: Order, status: 'failed' | 'refunded', message: string): Order {
  book.ledger.refund(order)
  const failureCode = refusalFacts(book.dialect, 'out_of_stock').code
  const failure = status === 'failed' ? { failureCode, failureMessage: message } : {}
  return change(book, order, { status, ...failure, dueAt: null })
}

/** Stores the changed order, and announces an order that has ended. */
function change({ rows, ledger, webhooks, now }: Book, order: Order, changes: Partial<Order>): Order {
  const changed = { ...order, ...changes, updatedAt: now() }
  rows.update(changed)
  if (changed.status === 'completed')
    webhooks.emit('order.completed', { order: changed, keys: ledger.keysOf(order.id) })
  else if (changed.status !== 'open') webhooks.emit('order.failed', { order: changed })
  return changed
}

/** Returns why nothing is sold. The checks are in the order of the contract: quantity maximum, product, stock, balance. */
function refusalOf(
  { dialect, faults }: Ground,
  request: OrderRequest,
  offer: Offer | undefined,
  balanceMinor: number,
): { error: ErrorKind; message: string } | undefined {
  const asked = (name: FaultName) => faults.take(name, request) !== undefined
  const { quantity } = request
  if (quantity > dialect.quantityMax)
    return { error: 'limit_exceeded', message: `At most ${dialect.quantityMax} units can be ordered at once.` }
  if (!offer) return { error: 'not_found', message: 'There is no such product.' }
  if (offer.withdrawnAt !== null) return { error: 'gone', message: 'The product is not sold any more.' }
  const needed = dialect.stock === 'promise' ? quantity : 1
  if (sellable(offer) < needed || asked('out-of-stock'))
    return { error: 'out_of_stock', message: 'The product is currently out of fulfilment stock.' }
  if (balanceMinor < offer.priceMinor * quantity || asked('insufficient-balance'))
    return { error: 'insufficient_balance', message: 'The API balance does not cover the order.' }
  return undefined
}

/** Returns the plan of a new order, and uses up the faults that apply to the order. */
function planOf({ dialect, faults, now, completeAfterMs }: Ground, request: OrderRequest) {
  const lag = faults.take('list-lag', request)
  const hiddenUntil = lag ? now() + (lag.delayMs ?? dialect.listLagSeconds * 1000) : 0
  const held = faults.take('hold-open', request) !== undefined
  if (faults.take('failed-order', request)) return { plan: { kind: 'fail' } as OrderPlan, held, hiddenUntil }
  const partial = faults.take('partial-keys', request)
  const plan: OrderPlan = partial ? partialPlan(partial, request.quantity, completeAfterMs) : { kind: 'complete' }
  return { plan, held, hiddenUntil }
}

const partialPlan = (fault: SandboxFault, quantity: number, completeAfterMs: number): OrderPlan => ({
  kind: 'partial',
  first: fault.first ?? Math.floor(quantity / 2),
  status: fault.status,
  delayMs: fault.delayMs ?? completeAfterMs,
})

/**
 * Remembers the outcome of each idempotency key, for as long after the first use of the key as the dialect says.
 *
 * The sandbox has one account, so a key needs no owner. Orders and refusals are kept; malformed requests are not.
 */
function createMemory(db: Tables, memoryMs: number) {
  const find = db.prepare<[string], { fingerprint: string; decision: string; at: number }>(
    'select fingerprint, decision, at from idempotency where key = ?',
  )
  const put = db.prepare('insert or replace into idempotency (key, fingerprint, decision, at) values (?, ?, ?, ?)')
  const forget = db.prepare('delete from idempotency where at <= ?')
  return {
    /** @param fingerprint a text that is equal for equal requests only */
    recall: (key: string, fingerprint: string, now: number): Decision | undefined => {
      const row = find.get(key)
      if (!row || now - row.at >= memoryMs) return undefined
      if (row.fingerprint === fingerprint) return JSON.parse(row.decision) as Decision
      const message = 'The idempotency key was used before with a different request.'
      return { kind: 'refused', error: 'key_reused', message }
    },
    keep: (key: string, fingerprint: string, decision: Decision, now: number): void =>
      void put.run(key, fingerprint, JSON.stringify(decision), now),
    forget: (now: number): void => void forget.run(now - memoryMs),
  }
}

/** What happens to an order when it is due. */
type OrderPlan =
  | { kind: 'complete' }
  | { kind: 'fail' }
  | { kind: 'partial'; first: number; status: 'open' | 'completed'; delayMs: number }

/** An order of the supplier. Amounts are in minor units, instants in epoch milliseconds. */
export interface Order extends OrderRequest {
  id: string
  status: OrderStatus
  amountMinor: number
  failureCode: string | null
  failureMessage: string | null
  plan: OrderPlan
  /** When the order moves next; null when only the control API moves the order. */
  dueAt: number | null
  /** Lists omit the order until this instant. The order's own address shows it at once. */
  hiddenUntil: number
  createdAt: number
  updatedAt: number
}

/** The most orders that one batch settles: an advance after a long stop must not block the server for seconds. */
const settledAtOnceMax = 500

function orderRows(db: Tables) {
  const columns = `id, external_order_id as externalOrderId, product_id as productId, quantity, status,
    amount_minor as amountMinor, failure_code as failureCode, failure_message as failureMessage, plan,
    due_at as dueAt, hidden_until as hiddenUntil, created_at as createdAt, updated_at as updatedAt`
  const add = db.prepare<[OrderRow]>(
    `insert into orders (id, external_order_id, product_id, quantity, status, amount_minor, failure_code,
       failure_message, plan, due_at, hidden_until, created_at, updated_at)
     values (@id, @externalOrderId, @productId, @quantity, @status, @amountMinor, @failureCode,
       @failureMessage, @plan, @dueAt, @hiddenUntil, @createdAt, @updatedAt)`,
  )
  const update = db.prepare<[OrderRow]>(
    `update orders set status = @status, failure_code = @failureCode, failure_message = @failureMessage,
       plan = @plan, due_at = @dueAt, updated_at = @updatedAt where id = @id`,
  )
  const byId = db.prepare<[string], OrderRow>(`select ${columns} from orders where id = ?`)
  const due = db.prepare<[number, number], OrderRow>(
    `select ${columns} from orders where due_at is not null and due_at <= ? order by due_at, seq limit ?`,
  )
  return {
    add: (order: Order): void => void add.run(rowOf(order)),
    update: (order: Order): void => void update.run(rowOf(order)),
    get: (id: string): Order | undefined => {
      const row = byId.get(id)
      return row && orderOf(row)
    },
    due: (at: number): Order[] => due.all(at, settledAtOnceMax).map(orderOf),
    list: (filter: OrderFilter, at: number, offset: number, limit: number): { items: Order[]; total: number } => {
      const { where, values } = conditions(filter, at)
      const count = db.prepare<unknown[], { total: number }>(`select count(*) as total from orders where ${where}`)
      const page = db.prepare<unknown[], OrderRow>(
        `select ${columns} from orders where ${where} order by created_at desc, seq desc limit ? offset ?`,
      )
      const items = page.all(...values, limit, offset).map(orderOf)
      return { items, total: count.get(...values)?.total ?? 0 }
    },
  }
}

type OrderRow = Omit<Order, 'plan'> & { plan: string }

const rowOf = (order: Order): OrderRow => ({ ...order, plan: JSON.stringify(order.plan) })
const orderOf = (row: OrderRow): Order => ({ ...row, plan: JSON.parse(row.plan) as OrderPlan })

function conditions({ externalOrderId, status, from, before }: OrderFilter, at: number) {
  const wanted: [string, string | number | undefined][] = [
    ['hidden_until <= ?', at],
    ['external_order_id = ?', externalOrderId],
    ['status = ?', status],
    ['created_at >= ?', from],
    ['created_at < ?', before],
  ]
  const set = wanted.filter(([, value]) => value !== undefined)
  return { where: set.map(([text]) => text).join(' and '), values: set.map(([, value]) => value) }
}
