import type { Config } from '../config.ts'
import { isClearText } from '../domain/clear-text.ts'

/** What this configuration sends over a public network unencrypted, in sentences. */
export function clearTextWarnings({
  supplier,
  stores,
}: {
  supplier?: Pick<Config['supplier'], 'baseUrl'>
  stores: Pick<Config['stores'][number], 'id' | 'callbackUrl'>[]
}): string[] {
  const ofStores = stores.filter(({ callbackUrl }) => isClearText(callbackUrl))
  return [
    ...(supplier && isClearText(supplier.baseUrl)
      ? [`the API key and licence keys travel unencrypted to and from the supplier at ${supplier.baseUrl}`]
      : []),
    ...ofStores.map(({ id, callbackUrl }) => `licence keys travel unencrypted to ${callbackUrl} of ${id}`),
  ]
}

/** What to do about each of them. */
export const ENCRYPT = 'use an https:// address; http:// is for this machine and private networks'
