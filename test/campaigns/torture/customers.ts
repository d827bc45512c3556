/** The customers of the store: orders, each handed in until it is acknowledged, and now and then cancelled. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Cancellation } from '../../support/cancelled-keys.ts'
import { orderOf } from '../../support/references.ts'
import type { BackOffice } from './back-office.ts'
import type { Chance } from './chance.ts'

export interface Line {
  id: string
  quantity: number
}

export interface PlannedOrder {
  reference: string
  /** When it is handed in, in milliseconds from the start. */
  atMs: number
  lines: Line[]
  /** How long after its acknowledgement it is cancelled; null for nearly all. */
  cancelAfterMs: number | null
}

/** Lines of one to five units, in orders of one to three lines, until there are enough purchases. */
export function planOrders(
  chance: Chance,
  { purchases, durationMs, quantityMax }: { purchases: number; durationMs: number; quantityMax: number },
): PlannedOrder[] {
  const orders: PlannedOrder[] = []
  let planned = 0
  while (planned < purchases) {
    const lines: Line[] = []
    for (let count = chance.between(1, 3); count > 0 && planned < purchases; count -= 1) {
      const quantity = chance.between(1, Math.min(5, (purchases - planned) * quantityMax))
      planned += Math.ceil(quantity / quantityMax)
      lines.push({ id: String(lines.length + 1), quantity })
    }
    const cancelAfterMs = chance.happens(0.03) ? chance.between(0, 3_000) : null
    orders.push({
      reference: `t${orders.length + 1}`,
      atMs: Math.floor(chance.next() * durationMs),
      lines,
      cancelAfterMs,
    })
  }
  return orders.toSorted((a, b) => a.atMs - b.atMs)
}

export const purchasesOf = ({ lines }: { lines: Line[] }, quantityMax: number): number =>
  lines.reduce((sum, { quantity }) => sum + Math.ceil(quantity / quantityMax), 0)

export interface Shopping {
  /** Orders that were acknowledged, by reference. */
  taken: Map<string, PlannedOrder>
  /** Answers that no good order gets. */
  refused: string[]
  /** Cancellations that were acknowledged; epoch milliseconds of this machine. */
  cancellations: Cancellation[]
}

interface ShopAccess {
  /** Base address of the REST API, through the proxy. */
  api: string
  token: string
  skus: string[]
}

/** A store asks again this soon; its customer has paid. */
const AGAIN_MS = [200, 1_000] as const
const DEADLINE_MS = 5_000

/** Hands in every order at its time, each until it is acknowledged. @returns when all of them are */
export async function shop(
  orders: PlannedOrder[],
  access: ShopAccess,
  { chance, shopping, stopped }: { chance: Chance; shopping: Shopping; stopped: () => boolean },
): Promise<void> {
  const startedAt = performance.now()
  const pending = orders.map(async (order, place) => {
    const draws = chance.fork(order.reference)
    await sleep(Math.max(0, startedAt + order.atMs - performance.now()))
    const body = bodyOf(order, place, access)
    // An impatient store asks twice at once.
    const again = draws.happens(0.05) ? send(access, '/orders', body).catch(() => 0) : undefined
    await repeat(draws, stopped, async () => {
      const status = await send(access, '/orders', body)
      if (REFUSED.includes(status)) shopping.refused.push(`${order.reference}: ${status}`)
      return status === 200 || status === 202
    })
    await again
    if (stopped()) return
    shopping.taken.set(order.reference, order)
    if (order.cancelAfterMs === null) return
    await sleep(order.cancelAfterMs)
    await cancel(order.reference, access, { chance: draws, shopping, stopped })
  })
  await Promise.all(pending)
}

function bodyOf({ reference, lines }: PlannedOrder, place: number, { skus }: ShopAccess): string {
  const priced = lines.map(({ id, quantity }, index) => ({ id, quantity, sku: skus[(place + index) % skus.length] }))
  return JSON.stringify({ reference, lines: priced })
}

/** What a store does when it hears that the service may have lost orders and cancellations: it hands them in again. */
export async function handInAgain(
  orders: readonly PlannedOrder[],
  { taken, cancelled }: { taken: ReadonlySet<string>; cancelled: ReadonlySet<string> },
  { access, round }: { access: ShopAccess; round: Round },
): Promise<void> {
  const { chance, shopping, stopped } = round
  await Promise.all(
    orders.map(async (order, place) => {
      const { reference } = order
      if (taken.has(reference)) {
        await repeat(chance, stopped, async () => {
          const status = await send(access, '/orders', bodyOf(order, place, access))
          if (REFUSED.includes(status)) shopping.refused.push(`${reference}, once more: ${status}`)
          return status === 200 || status === 202
        })
      }
      if (cancelled.has(reference)) await cancel(reference, access, round)
    }),
  )
}

/** Answers that no good order gets. */
const REFUSED = [400, 409, 422]

interface Round {
  chance: Chance
  shopping: Shopping
  stopped: () => boolean
}

async function cancel(reference: string, access: ShopAccess, { chance, shopping, stopped }: Round): Promise<void> {
  await repeat(chance, stopped, async () => {
    const askedAt = Date.now()
    const isAcknowledged = (await send(access, `/orders/${reference}/cancel`)) === 200
    if (isAcknowledged) shopping.cancellations.push({ reference, askedAt, at: Date.now() })
    return isAcknowledged
  })
}

/** One order in so many is cancelled while the supplier is at work on it. */
const WHILE_OPEN = 0.05

/** Cancels orders at the instant that hurts: they are paid for at the supplier, and their keys have not come. */
export async function cancelWhileOpen(
  orders: PlannedOrder[],
  { access, office, durationMs }: { access: ShopAccess; office: BackOffice; durationMs: number },
  round: Round,
): Promise<void> {
  const everyMs = durationMs / (orders.length * WHILE_OPEN)
  for (let from = performance.now(); !round.stopped(); await sleep(LOOK_MS)) {
    if (performance.now() - from < everyMs) continue
    const atWork = await office.orders().catch(() => [])
    const open = atWork
      .filter(({ status }) => status === 'open')
      .map(({ externalOrderId }) => orderOf(externalOrderId ?? ''))
    const order = orders.find(({ reference, cancelAfterMs }) => cancelAfterMs === null && open.includes(reference))
    if (!order) continue
    from = performance.now()
    order.cancelAfterMs = 0
    await cancel(order.reference, access, round)
  }
}

/** Between two looks for an order that is open. */
const LOOK_MS = 100

async function repeat(chance: Chance, stopped: () => boolean, act: () => Promise<boolean>): Promise<void> {
  while (!stopped() && !(await act().catch(() => false))) await sleep(chance.between(...AGAIN_MS))
}

async function send({ api, token }: ShopAccess, path: string, body?: string): Promise<number> {
  const answer = await fetch(`${api}${path}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, connection: 'close', 'content-type': 'application/json' },
    ...(body === undefined ? {} : { body }),
    signal: AbortSignal.timeout(DEADLINE_MS),
  })
  // A status alone is no answer: the body may still break off.
  await answer.text()
  return answer.status
}
