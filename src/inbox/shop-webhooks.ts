/**
 * The webhooks by which shops send us their orders. We make and watch these webhooks, because a shop switches a webhook off after
 * a few failures. Without a public address there are no webhooks, and the orders are polled.
 */
import type { Context } from '../context.ts'
import { enqueueAlert } from '../storage/outbox.ts'
import type { Store } from '../stores/store.ts'

interface Provisioning extends Pick<Context, 'db' | 'now' | 'newId' | 'log'> {
  stores: readonly { id: string }[]
  storeOf: (id: string) => Pick<Store, 'provision'> | undefined
  /** Our public address; null when no shop can reach us. */
  publicUrl: string | null
}

const DAY_MS = 24 * 3_600_000

/** Makes every shop send its orders here. People are alerted once a day of a shop that refuses; such a shop is polled. */
export async function provisionShops({ stores, storeOf, publicUrl, ...context }: Provisioning): Promise<void> {
  if (publicUrl === null) return
  for (const { id: store } of stores) {
    const made = await storeOf(store)?.provision?.(storeWebhookUrl(publicUrl, store))
    if (!made) continue
    if (made.outcome === 'confirmed') {
      if (made.detail !== null) context.log.info('shop.webhook', { store, detail: made.detail })
      continue
    }
    context.log.warn('shop.webhook', { store, outcome: made.outcome, detail: made.detail })
    if (made.outcome === 'unavailable') continue
    const note = `${store} does not let Quayside make its webhook, so its orders are only polled: ${made.detail}`
    const occasion = `${store}:${Math.floor(context.now() / DAY_MS)}`
    await context.db.commit([enqueueAlert(context, { type: 'store_webhook', occasion, payload: { note, store } })])
  }
}

/** Returns the address to which a shop sends its orders. */
export const storeWebhookUrl = (publicUrl: string, store: string): string => `${publicUrl}/webhooks/stores/${store}`
