/** The sandbox's own levers and books, reached beside the network that is damaged: what a phone call to the supplier is. */
import type { LedgerReport } from '../../../src/sandbox/ledger.ts'

export interface SupplierOrder {
  id: string
  externalOrderId: string | null
  status: 'open' | 'completed' | 'failed' | 'refunded'
  quantity: number
  /** When something happens to it next; null when only a hand moves it. */
  dueAt: number | null
  createdAt: number
  keys: string[]
}

export interface SentDelivery {
  seq: number
  deliveryId: string
  event: string
  orderId: string | null
  state: 'due' | 'delivered' | 'dropped' | 'dead'
  lastStatus: number | null
  dueAt: number
}

export interface BackOffice {
  ledger: () => Promise<LedgerReport>
  orders: () => Promise<SupplierOrder[]>
  deliveries: () => Promise<SentDelivery[]>
  post: (route: string, body?: object) => Promise<void>
  clearFaults: () => Promise<void>
}

const DEADLINE_MS = 10_000

export function createBackOffice(port: number): BackOffice {
  async function ask(method: string, route: string, body?: object): Promise<unknown> {
    const answer = await fetch(`http://127.0.0.1:${port}/sandbox${route}`, {
      method,
      headers: { connection: 'close', 'content-type': 'application/json' },
      ...(body ? { body: JSON.stringify(body) } : {}),
      signal: AbortSignal.timeout(DEADLINE_MS),
    })
    const text = await answer.text()
    if (!answer.ok) throw new Error(`${method} ${route}: ${answer.status} ${text}`)
    return text === '' ? undefined : JSON.parse(text)
  }
  return {
    ledger: async () => (await ask('GET', '/ledger')) as LedgerReport,
    orders: async () => ((await ask('GET', '/orders')) as { orders: SupplierOrder[] }).orders,
    deliveries: async () => ((await ask('GET', '/deliveries')) as { deliveries: SentDelivery[] }).deliveries,
    post: async (route, body) => void (await ask('POST', route, body)),
    clearFaults: async () => void (await ask('DELETE', '/faults')),
  }
}
