import { clockFinding } from '../clock.ts'
import type { StoreFinding } from '../store.ts'
import { CURRENCY_PATH, currencyIn } from './catalogue.ts'
import type { ShopClient } from './client.ts'

export interface FindingsOptions {
  client: ShopClient
  now: () => number
  /** The currency that the configuration names; null: there is no configuration of it yet, and every one will do. */
  currency: string | null
}

/** Tries what the adapter needs of a shop. Empty batches show whether the key may write, and change nothing. */
export async function tryShop({ client, now, currency }: FindingsOptions): Promise<StoreFinding[]> {
  const settings = await client.call({ method: 'GET', path: CURRENCY_PATH })
  const findings: StoreFinding[] = []
  if (settings.answeredAt !== undefined && settings.answeredAt !== null) {
    findings.push(clockFinding(now() - settings.answeredAt))
  }
  if (!settings.ok) {
    return [{ check: 'connection', state: 'failed', detail: settings.cause, fix: settings.fix }, ...findings]
  }
  findings.unshift({ check: 'connection', state: 'ok', detail: 'it accepted the consumer key', fix: null })
  const shopCurrency = currencyIn(settings.body)
  findings.push(
    shopCurrency !== undefined && shopCurrency === (currency ?? shopCurrency)
      ? { check: 'currency', state: 'ok', detail: `it sells in ${shopCurrency}`, fix: null }
      : {
          check: 'currency',
          state: 'failed',
          detail:
            currency === null
              ? 'its currency cannot be read'
              : `it sells in ${shopCurrency ?? 'an unknown currency'}, the configuration says ${currency}`,
          fix: 'Configure the currency of the shop: prices in another one are not sent.',
        },
  )
  for (const [what, path] of [
    ['products', '/products/batch'],
    ['orders', '/orders/batch'],
  ] as const) {
    const write = await client.call({ method: 'POST', path, body: {} })
    findings.push(
      write.ok
        ? { check: 'permissions', state: 'ok', detail: `the key may write ${what}`, fix: null }
        : {
            check: 'permissions',
            state: 'failed',
            detail: isReadOnly(write.failure) ? `the key may read, and may not write ${what}` : write.cause,
            fix: isReadOnly(write.failure) ? 'Give the consumer key the permission read and write.' : write.fix,
          },
    )
  }
  return findings
}

/** The same key could read a moment ago. */
const isReadOnly = (failure: { outcome: string; status?: number }): boolean =>
  failure.outcome === 'refused' && (failure.status === 401 || failure.status === 403)
