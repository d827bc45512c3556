import { clockFindings, currencyFinding, failed, failedCall, sound } from '../findings.ts'
import type { StoreFinding } from '../store.ts'
import { CURRENCY_PATH, currencyIn } from './catalogue.ts'
import { call, type Shop } from './client.ts'

/**
 * Checks all that the adapter needs of a shop. Empty batches show whether the key may write, and change nothing.
 *
 * @param currency the configured currency; null: there is no configuration of the shop yet, so any currency is right
 */
export async function tryShop(shop: Shop, currency: string | null): Promise<StoreFinding[]> {
  const settings = await call(shop, { method: 'GET', path: CURRENCY_PATH })
  const clock = clockFindings(shop.now(), settings.answeredAt)
  if (!settings.ok) return [failedCall('connection', settings), ...clock]
  return [
    sound('connection', 'it accepted the consumer key'),
    ...clock,
    currencyFinding(currencyIn(settings.body), currency),
    await writeFinding(shop, 'products', '/products/batch'),
    await writeFinding(shop, 'orders', '/orders/batch'),
  ]
}

async function writeFinding(shop: Shop, what: string, path: string): Promise<StoreFinding> {
  const write = await call(shop, { method: 'POST', path, body: {} })
  if (write.ok) return sound('permissions', `the key may write ${what}`)
  const { failure } = write
  // The same key could read a moment ago, so a refusal means that it may not write.
  const isReadOnly = failure.outcome === 'refused' && (failure.status === 401 || failure.status === 403)
  if (!isReadOnly) return failedCall('permissions', write)
  const fix = 'Give the consumer key the permission read and write.'
  return failed('permissions', `the key may read, and may not write ${what}`, fix)
}
