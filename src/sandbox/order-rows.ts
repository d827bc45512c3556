import type { OrderStatus } from '../supplier/dialect.ts'
import type { OrderFilter, OrderRequest } from './orders.ts'
import type { Tables } from './tables.ts'

/** What becomes of an order when it is due. */
export type OrderPlan =
  | { kind: 'complete' }
  | { kind: 'fail' }
  | { kind: 'partial'; first: number; status: 'open' | 'completed'; delayMs: number }

/** An order of the supplier. Amounts in minor units, instants in epoch milliseconds. */
export interface Order extends OrderRequest {
  id: string
  status: OrderStatus
  amountMinor: number
  failureCode: string | null
  failureMessage: string | null
  plan: OrderPlan
  /** When something happens to it next; null when only a hand moves it. */
  dueAt: number | null
  /** Lists leave it out until then; its own address does not. */
  hiddenUntil: number
  createdAt: number
  updatedAt: number
}

/** Orders settled in one go: keeps an advance after a long stop from blocking the server for seconds. */
const settledAtOnceMax = 500

/** The statements over the orders. */
export function orderRows(db: Tables) {
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
