/** Tries settings before they are in force: the supplier and the shops that a change is about are asked. Nothing changes there. */
import { isDeepStrictEqual } from 'node:util'
import type { Config } from '../config/config.ts'
import { messageOf } from '../errors.ts'
import { Secret } from '../secret.ts'
import { failed } from '../stores/findings.ts'
import { type ConfiguredStore, kindOf } from '../stores/kinds.ts'
import type { StoreFinding } from '../stores/store.ts'
import type { NewShop, ShopAnswers, ShopQuestions, ShopStanding } from '../stores/store-kind.ts'
import { trySupplier } from './supplier-trial.ts'

/** What was found at the supplier or a shop. `field`: the part of the settings that it is about: `supplier` or `stores.<id>`. */
export type SettingsFinding = StoreFinding & { field: string }

/** Asks those whose access differs between two configurations. @param before null: all are asked */
export async function findingsOf(next: Config, before: Config | null, now: () => number): Promise<SettingsFinding[]> {
  const shops = next.stores.filter((store) => {
    const known = before?.stores.find(({ id }) => id === store.id)
    return store.credentials !== undefined && !isDeepStrictEqual(accessOf(store), known && accessOf(known))
  })
  const found = await Promise.all([
    ...(isDeepStrictEqual(supplierAccess(next), before && supplierAccess(before)) ? [] : [supplierFindings(next)]),
    ...shops.map((store) => shopFindings(store, now)),
  ])
  return found.flat()
}

const supplierAccess = ({ supplier, dialectFacts, apiKey }: Config) => ({
  supplier,
  dialectFacts,
  key: apiKey.reveal(),
})

async function supplierFindings({ supplier: { baseUrl }, dialectFacts, apiKey }: Config): Promise<SettingsFinding[]> {
  const tried = await trySupplier({ baseUrl, dialect: dialectFacts, apiKey })
  const finding = { field: 'supplier', check: 'supplier' }
  return 'fault' in tried
    ? [{ ...finding, state: 'failed', detail: tried.fault.message, fix: null }]
    : [{ ...finding, state: 'ok', detail: `it answers, with ${tried.products.length} products`, fix: null }]
}

/** What a shop is reached by. */
function accessOf({ kind, address, currency, credentials }: ConfiguredStore) {
  const texts = Object.entries(credentials ?? {}).map(([name, secret]) => [
    name,
    secret instanceof Secret && secret.reveal(),
  ])
  return { kind, address, currency, texts }
}

async function shopFindings(store: ConfiguredStore, now: () => number): Promise<SettingsFinding[]> {
  const { id, address: url, credentials } = store
  const { shop } = kindOf(store)
  if (!shop || !credentials) return []
  const { findings } = await tryShop(await shop.questions(), { url, credentials, settings: {} }, now)
  return findings.map((finding) => ({ ...finding, field: `stores.${id}` }))
}

/**
 * Tries a shop, which may be in no settings yet. Nothing changes there.
 *
 * @param more reads more of the shop; called where nothing failed
 * @returns a failed finding where the shop cannot be asked
 */
export async function tryShop<T = undefined>(
  { look }: Pick<ShopQuestions, 'look'>,
  answers: ShopAnswers,
  now: () => number,
  more?: (shop: NewShop) => Promise<T>,
): Promise<ShopStanding & { more?: T | undefined }> {
  const shop = look(answers, now)
  try {
    const standing = await shop.test().catch(notReached)
    return hasFailed(standing.findings) ? standing : { ...standing, more: await more?.(shop) }
  } finally {
    await shop.close()
  }
}

const notReached = (error: unknown): ShopStanding => ({
  findings: [failed('connection', messageOf(error), 'Correct the address, then try again.')],
  currency: null,
  cannotPublish: null,
})

export const hasFailed = (findings: readonly StoreFinding[]): boolean =>
  findings.some(({ state }) => state === 'failed')
