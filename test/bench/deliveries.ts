import { createHmac } from 'node:crypto'

export const BENCH_SECRET = 'whsec_bench_0123456789abcdef0123456789'
/** The service verifies, seals, stores, processes and settles it, and asks the supplier for nothing. */
export const BENCH_EVENT = 'bench.tick'
const BODY_BYTES = 1_024

export interface BenchRequest {
  method: 'POST'
  path: string
  headers: Record<string, string>
  body: string
}

/** A signed delivery of 1 KiB whose body, signature and ID no other number has. */
export function benchDelivery(number: number, forged = false, event = 'order.completed'): BenchRequest {
  const head = `{"event":"${event}","created_at":"2026-01-01T00:00:00Z","data":{"order_id":"ord_${number}","external_order_id":"q1.a.${number}.1.1.1","status":"completed"},"pad":"`
  const body = `${head}${'x'.repeat(BODY_BYTES - head.length - 2)}"}`
  const timestamp = String(Math.floor(Date.now() / 1000))
  const secret = forged ? `${BENCH_SECRET}?` : BENCH_SECRET
  const signature = createHmac('sha256', secret).update(`${timestamp}.${body}`).digest('hex')
  return {
    method: 'POST',
    path: '/webhooks/supplier',
    body,
    headers: {
      'content-type': 'application/json',
      'x-service-timestamp': timestamp,
      'x-service-signature': signature,
      'x-service-delivery-id': `dlv_${number}`,
    },
  }
}
