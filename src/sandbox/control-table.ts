/**
 * The controls of the sandbox, for tests and for people: what each control does, what it takes, and how it is run.
 *
 * The control API, its page, the help of the command line and docs/sandbox.md all go by this table.
 */
import { z } from 'zod'
import type { Dialect } from '../dialect/dialect.ts'
import { parseDecimal } from '../domain/money.ts'
import { type Faults, readFault } from './faults.ts'
import type { Order } from './orders.ts'
import { Refusal } from './refusal.ts'
import type { World } from './world.ts'

/** The most records in a list, newest first. Tests with more records than this read the ledger. */
const listedMax = 10_000

export interface ControlParts {
  world: World
  faults: Faults
  dialect: Dialect
}

export interface Control {
  /** Method and path under the address of the controls: `POST /orders/{id}/complete`. */
  call: `${'GET' | 'POST' | 'DELETE'} /${string}`
  does: string
  /** An example of a body. */
  fields?: string
  /** The status of the answer. Default: 200. */
  status?: 201
  /** @returns the value that is answered as JSON; undefined is answered by 204 */
  run: (parts: ControlParts, input: { id: string; body: unknown }) => unknown
}

const stock = z.number().int().min(0).max(1_000_000_000)
const amount = z.string()
const offerChange = z.strictObject({
  stock: stock.optional(),
  localStock: stock.optional(),
  providerStock: stock.optional(),
  price: amount.optional(),
  available: z.boolean().optional(),
  withdrawn: z.boolean().optional(),
})
const repricing = z.strictObject({ every: z.number().int().min(1) })
const balanceChange = z.strictObject({ add: amount })

export const controls: readonly Control[] = [
  {
    call: 'GET /ledger',
    does: 'every charge, refund, top-up and licence key, and whether the sums close',
    run: ({ world, dialect }) => ({ currency: dialect.money.currency, ...world.report() }),
  },
  {
    call: 'POST /balance',
    does: 'adds to the balance',
    fields: '{"add": "100.00"}',
    run: ({ world, dialect }, { body }) => {
      world.topUp(minorOf(dialect, 'add', balanceChange.parse(body).add))
      return { currency: dialect.money.currency, balanceMinor: world.balanceMinor() }
    },
  },
  {
    call: 'POST /offers/{id}',
    does: `changes the product with this id: ${Object.keys(offerChange.shape)
      .map((name) => `\`${name}\``)
      .join(', ')}`,
    fields: '{"stock": 0, "price": "12.50"}',
    run: ({ world, dialect }, { id, body }) => {
      const { price, ...change } = offerChange.parse(body)
      const priceMinor = price === undefined ? undefined : minorOf(dialect, 'price', price)
      return world.offers.change(id, { ...change, priceMinor }) ?? missing()
    },
  },
  {
    call: 'POST /offers',
    does: 'raises the price of every so many products by the smallest amount',
    fields: '{"every": 10}',
    run: ({ world }, { body }) => ({ changed: world.offers.reprice(repricing.parse(body).every) }),
  },
  {
    call: 'GET /orders',
    does: 'all orders with their licence keys, the newest first',
    run: ({ world }) => ({
      orders: world.orders.known(listedMax).map((order) => ({ ...order, keys: world.orders.keysOf(order.id) })),
    }),
  },
  {
    call: 'POST /orders/{id}/complete',
    does: 'hands out all keys of the order and completes it',
    run: decide(({ orders }, order) => orders.complete(order)),
  },
  {
    call: 'POST /orders/{id}/fail',
    does: 'fails the order and gives the money back',
    run: decide(({ orders }, order) => orders.fail(order, 'The order was failed by hand.')),
  },
  {
    call: 'POST /orders/{id}/refund',
    does: 'gives the money of the order back',
    run: decide(({ orders }, order) => orders.refund(order)),
  },
  {
    call: 'GET /deliveries',
    does: 'the deliveries to all webhooks, the newest first',
    run: ({ world }) => ({
      deliveries: world.webhooks.newest(listedMax).map(({ body: _body, ...delivery }) => delivery),
    }),
  },
  {
    call: 'POST /deliveries/{id}/resend',
    does: 'sends the delivery once more, in whatever state it is',
    run: ({ world }, { id }) => {
      if (!world.webhooks.resend(id)) missing()
    },
  },
  {
    call: 'GET /faults',
    does: 'the faults that are set, how often each has fired and can still fire',
    run: ({ faults }) => ({ faults: faults.list() }),
  },
  {
    call: 'POST /faults',
    does: 'sets a fault',
    fields: '{"fault": "slow", "times": 2, "delayMs": 5000}',
    status: 201,
    run: ({ faults }, { body }) => faults.add(readFault(body)),
  },
  { call: 'DELETE /faults', does: 'clears all faults', run: ({ faults }) => faults.clear() },
]

function decide(change: (world: World, order: Order) => Order | undefined): Control['run'] {
  return ({ world }, { id }) => {
    const changed = change(world, world.orders.get(id) ?? missing())
    if (!changed) throw new Refusal('invalid', 'The money of that order went back already.', 409)
    return changed
  }
}

function minorOf({ money: { currency } }: Dialect, field: string, text: string): number {
  const minor = parseDecimal(text, currency)
  if (minor !== undefined && minor > 0) return minor
  throw new Refusal('invalid', `${field}: must be a positive amount of ${currency}, as decimal text`, 400)
}

export function missing(): never {
  throw new Refusal('not_found', 'There is no such thing.', 404)
}
