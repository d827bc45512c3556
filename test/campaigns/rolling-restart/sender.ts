/** Sends signed deliveries and store orders at a steady pace, whether or not those before are answered; repeats what was not taken. */
import { setTimeout as sleep } from 'node:timers/promises'
import { Pool } from 'undici'
import { BENCH_PATH } from '../../bench/bench-webhook.ts'
import { BENCH_EVENT, benchDelivery } from '../../bench/deliveries.ts'

export interface Sent {
  /** Those that were taken: answered 200, or 202. */
  deliveries: Set<string>
  orders: Set<string>
  /** How many answers there were of each kind: `200`, `503`, `503 without Retry-After`, `no answer`. */
  answers: Record<string, number>
  /** The longest that one waited from its first request until it was taken. */
  longestMs: number
}

/** Sooner than a supplier, so that the run is not long. */
const REPEAT_MS = 1_000

interface Pace {
  url: string
  token: string
  deliveriesPerSecond: number
  ordersPerSecond: number
  /** What the orders are of. */
  skus: readonly string[]
  /** Called before the first request of an order. */
  onOrder?: (reference: string) => void
}

export function startSending({ url, token, deliveriesPerSecond, ordersPerSecond, skus, onOrder }: Pace) {
  const pool = new Pool(url, { connections: 64 })
  const sent: Sent = { deliveries: new Set(), orders: new Set(), answers: {}, longestMs: 0 }
  const open = new Set<Promise<void>>()

  async function ask(path: string, headers: Record<string, string>, body: string): Promise<string> {
    try {
      const answer = await pool.request({ method: 'POST', path, headers, body })
      await answer.body.dump()
      const isBare = answer.statusCode === 503 && answer.headers['retry-after'] === undefined
      // What the balancer could not pass on has no answer.
      if (answer.statusCode === 502) return 'no answer'
      return isBare ? '503 without Retry-After' : String(answer.statusCode)
    } catch {
      return 'no answer'
    }
  }

  async function untilTaken(ask: () => Promise<string>, taken: string): Promise<void> {
    for (const from = performance.now(); ; await sleep(REPEAT_MS)) {
      const answer = await ask()
      sent.answers[answer] = (sent.answers[answer] ?? 0) + 1
      if (answer !== taken) continue
      sent.longestMs = Math.max(sent.longestMs, Math.round(performance.now() - from))
      return
    }
  }

  async function deliver(number: number): Promise<void> {
    const { headers, body } = benchDelivery(number, false, BENCH_EVENT)
    await untilTaken(() => ask(BENCH_PATH, headers, body), '200')
    sent.deliveries.add(headers['x-service-delivery-id'] ?? '')
  }

  async function order(number: number): Promise<void> {
    const reference = `r${number}`
    onOrder?.(reference)
    const body = JSON.stringify({ reference, lines: [{ id: '1', sku: skus[number % skus.length], quantity: 1 }] })
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
    await untilTaken(() => ask('/api/v1/orders', headers, body), '202')
    sent.orders.add(reference)
  }

  const timers = [paced(deliveriesPerSecond, deliver), paced(ordersPerSecond, order)]

  function paced(perSecond: number, send: (number: number) => Promise<void>) {
    const startedAt = performance.now()
    let number = 0
    return setInterval(() => {
      for (const due = ((performance.now() - startedAt) / 1_000) * perSecond; number < due; number += 1) {
        const one = send(number).finally(() => open.delete(one))
        open.add(one)
      }
    }, 5)
  }

  return {
    sent,
    /** Begins no more; resolves when all that was begun is taken. */
    end: async (): Promise<void> => {
      for (const timer of timers) clearInterval(timer)
      await Promise.all(open)
      await pool.close()
    },
  }
}
