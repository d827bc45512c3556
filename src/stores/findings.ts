/** The findings of `test` that shops of all kinds share. */
import { age } from '../domain/figures.ts'
import type { ShopFailure } from './shop-client.ts'
import type { StoreFinding } from './store.ts'

const finding =
  (state: StoreFinding['state']) =>
  (check: string, detail: string, fix: string | null = null): StoreFinding => ({ check, state, detail, fix })
export const sound = (check: string, detail: string): StoreFinding => finding('ok')(check, detail)
export const doubtful: (check: string, detail: string, fix: string) => StoreFinding = finding('doubtful')
export const failed = finding('failed')

export const failedCall = (check: string, { cause, fix }: ShopFailure): StoreFinding => failed(check, cause, fix)

/** When the clocks differ by more than this, a shop may take a fresh signature for an old one. */
const CLOCK_MAX_MS = 300_000

/** Compares the shop's clock with ours. @param answeredAt the time of the shop's clock; null where the shop did not say */
export function clockFindings(now: number, answeredAt: number | null): StoreFinding[] {
  if (answeredAt === null) return []
  const ahead = now - answeredAt
  if (Math.abs(ahead) <= CLOCK_MAX_MS) return [sound('clock', 'its clock and that of this machine agree')]
  const side = ahead > 0 ? 'behind' : 'ahead of'
  const detail = `its clock is ${age(Math.abs(ahead))} ${side} that of this machine`
  return [doubtful('clock', detail, 'Set both clocks by a time server.')]
}

/** @param configured null: there is no configuration of the shop yet, so any currency is right */
export function currencyFinding(ofShop: string | undefined, configured: string | null): StoreFinding {
  if (ofShop !== undefined && ofShop === (configured ?? ofShop)) return sound('currency', `it sells in ${ofShop}`)
  const detail =
    configured === null
      ? 'its currency cannot be read'
      : `it sells in ${ofShop ?? 'an unknown currency'}, the configuration says ${configured}`
  return failed('currency', detail, 'Configure the currency of the shop: prices in another one are not sent.')
}
