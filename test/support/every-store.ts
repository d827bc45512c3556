/** A store of each kind as the demo has it, and a Quayside that sells in all of them in one process. */
import { expect, onTestFinished } from 'vitest'
import { openApp } from '../../src/app.ts'
import { loadConfig } from '../../src/config/config.ts'
import { writeDemoConfig } from '../../src/demo/files.ts'
import { openSetUp } from '../../src/installation.ts'
import { createLog } from '../../src/log.ts'
import type { StoreSettings } from '../../src/stores/kinds.ts'
import { shopifyOfStory } from '../shops/shopify-story.ts'
import { backendOfStory, type StoryStore } from '../shops/story-store.ts'
import { wooCommerceOfStory } from '../shops/woocommerce-story.ts'
import { startCheckedSandbox } from './checked-sandbox.ts'
import { temporaryFolder } from './cli-run.ts'
import { freePort } from './free-port.ts'
import { defaultDialect } from './test-app.ts'

const KINDS = {
  backend: backendOfStory,
  woocommerce: wooCommerceOfStory,
  shopify: shopifyOfStory,
} satisfies Record<StoreSettings['kind'], unknown>
/** A shop that was read before the first offers were there is read again a minute later. */
const PATIENCE = { timeout: 100_000, interval: 50 }

/** @param isSaid whether the configuration says how the keys of each shop reach its customers */
export async function openEveryStore({ isSaid = true } = {}) {
  const folder = temporaryFolder()
  const apiKey = 'sk_test_0123456789abcdef'
  const sandbox = await startCheckedSandbox({ dialect: defaultDialect(), apiKey, requestsPerMinute: 100_000 })
  onTestFinished(() => sandbox.close())
  const port = await freePort()
  const api = async (method: string, route: string, bearer: string, body?: object) => {
    const answer = await fetch(`http://127.0.0.1:${port}/api/v1${route}`, {
      method,
      headers: { authorization: `Bearer ${bearer}`, 'content-type': 'application/json' },
      ...(body && { body: JSON.stringify(body) }),
    })
    return ((await answer.json()) as { data: Record<string, unknown> }).data
  }
  const stores: [kind: string, store: StoryStore][] = []
  const settings: object[] = []
  for (const [kind, open] of Object.entries(KINDS)) {
    const id = `${kind}-quaysi00`
    const storePort = await freePort()
    const store = await open({ id, folder, storePort, sandbox, api })
    onTestFinished(() => store.close())
    stores.push([kind, store])
    const backend = { id, kind, name: kind, callbackUrl: `http://127.0.0.1:${storePort}/callbacks` }
    const own = (store.settings as { stores?: object[] }).stores ?? [backend]
    settings.push(...own.map((one) => (isSaid ? one : { ...one, deliver: undefined })))
  }
  const configFile = writeDemoConfig({
    folder,
    baseUrl: sandbox.baseUrl,
    apiKey,
    port,
    storePort: 0,
    dialect: 'reseller-v1.1',
    more: { stores: settings, ordering: { tickSeconds: 1 } },
  })
  const setUp = await openSetUp(configFile, {})
  await setUp.createWebhook()
  for (const [, store] of stores) await store.connect(setUp)
  await setUp.close()
  const errors: string[] = []
  const warnings: string[] = []
  const log = createLog({
    level: 'warn',
    write: (line) => void (line.includes('"level":"error"') ? errors : warnings).push(line),
  })
  const config = loadConfig(configFile, {})
  const app = await openApp({ config, log, onFatal: (failure) => void errors.push(failure.message) })
  onTestFinished(() => app.close())
  /** A customer buys two units of one product and one of another, and the order comes to its end. @returns its reference */
  const buy = async (store: StoryStore): Promise<string> => {
    let sells: [string, string] | undefined
    const look = async () => {
      sells = await store.sells()
      return sells
    }
    await expect.poll(look, PATIENCE).toBeDefined()
    const [one, other] = sells ?? ['', '']
    const reference = await store.buy([
      { sku: one, quantity: 2 },
      { sku: other, quantity: 1 },
    ])
    await expect.poll(() => store.isClosed(reference), PATIENCE).toBe(true)
    return reference
  }
  return { stores, sandbox, errors, warnings, buy }
}
