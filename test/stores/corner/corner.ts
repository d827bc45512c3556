import type { Store, StoreFinding } from '../../../src/stores/store.ts'
import type { ShopCredentials } from '../../../src/stores/store-kind.ts'

interface CornerOptions {
  url: string
  credentials: ShopCredentials
  /** Epoch milliseconds. */
  now: () => number
}

/** A corner shop: it has products and orders, and sells none of ours. */
export function cornerStore(options: CornerOptions): Store {
  const confirmed = async () => ({ outcome: 'confirmed' }) as const
  return {
    batchSize: 100,
    variants: async () => ({ outcome: 'read', items: [], next: null }),
    publish: async () => ({ outcome: 'answered', answers: 'all' }),
    fulfil: confirmed,
    reportFailure: confirmed,
    closeOrder: confirmed,
    ordersSince: async () => ({ outcome: 'read', orders: [], unread: [], cursor: '1', more: false }),
    test: () => tryTill(options),
    close: async () => {},
  }
}

export async function tryTill({
  url,
  credentials: { key, secret },
}: Omit<CornerOptions, 'now'>): Promise<StoreFinding[]> {
  const answer = await fetch(`${url}/till`, { headers: { till: `${key.reveal()}:${secret.reveal()}` } })
  await answer.body?.cancel()
  return answer.ok
    ? [{ check: 'connection', state: 'ok', detail: 'the till is open', fix: null }]
    : [{ check: 'connection', state: 'failed', detail: 'the till stays shut', fix: 'Compare the PIN.' }]
}
