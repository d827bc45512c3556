import { clockFindings, currencyFinding, failed, failedCall, sound } from '../findings.ts'
import type { StoreFinding } from '../store.ts'
import { CURRENCY_PATH, currencyIn } from './catalogue.ts'
import type { ShopClient } from './client.ts'

export interface FindingsOptions {
  client: ShopClient
  now: () => number
  /** The currency that the configuration names; null: there is no configuration of the shop yet, so any currency is right. */
  currency: string | null
}

/** Checks all that the adapter needs of a shop. Empty batches show whether the key may write, and change nothing. */
export async function tryShop({ client, now, currency }: FindingsOptions): Promise<StoreFinding[]> {
  const settings = await client.call({ method: 'GET', path: CURRENCY_PATH })
  const clock = clockFindings(now(), settings.answeredAt)
  if (!settings.ok) return [failedCall('connection', settings), ...clock]
  return [
    sound('connection', 'it accepted the consumer key'),
    ...clock,
    currencyFinding(currencyIn(settings.body), currency),
    await writeFinding(client, 'products', '/products/batch'),
    await writeFinding(client, 'orders', '/orders/batch'),
  ]
}

async function writeFinding(client: ShopClient, what: string, path: string): Promise<StoreFinding> {
  const write = await client.call({ method: 'POST', path, body: {} })
  if (write.ok) return sound('permissions', `the key may write ${what}`)
  const { failure } = write
  // This key was allowed to read a moment ago.
  const isReadOnly = failure.outcome === 'refused' && (failure.status === 401 || failure.status === 403)
  if (!isReadOnly) return failedCall('permissions', write)
  const fix = 'Give the consumer key the permission read and write.'
  return failed('permissions', `the key may read, and may not write ${what}`, fix)
}
