/**
 * `npm run demo`: the whole story against the sandbox, with everything that usually goes wrong, line by line.
 *
 * The service runs as a process of its own, so that it can be killed; the sandbox and the store live here and are
 * the judges: charges are counted in the sandbox's ledger, keys in the store's own record and on the page to which the link of the mail
 * leads, never in Quayside's database.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { DEMO_STORE, freePort, writeDemoConfig } from '../../src/demo/files.ts'
import { readDialect } from '../../src/dialect/dialect.ts'
import { sentence } from '../../src/domain/text-layout.ts'
import { Failure } from '../../src/errors.ts'
import { openSetUp } from '../../src/installation.ts'
import { startSandbox } from '../../src/sandbox/server.ts'
import { shopifyOfStory } from './shopify-story.ts'
import { backendOfStory, type StoryStore, seenIn } from './story-store.ts'
import { wooCommerceOfStory } from './woocommerce-story.ts'

/** The supplier's times as the demo states them, so that no step takes minutes: the rules stay the same. */
const SHORT = { settleSeconds: 6, listLagSeconds: 1, scanGapSeconds: 2 }
const STORES = { backend: backendOfStory, woocommerce: wooCommerceOfStory, shopify: shopifyOfStory }
type Kind = keyof typeof STORES
const KINDS = Object.keys(STORES) as Kind[]
const HELP = `usage: npm run demo -- [--store ${KINDS.join('|')}] [--dialect <name>]

  --store <kind>    where customers buy (default: ${KINDS[0]}): a backend that takes
                    callbacks, or a shop that answers as WooCommerce
                    or Shopify does
  --dialect <name>  how the supplier answers, by a file in config/dialects
                    (default: reseller-v1.1)
`
const { dialect: DIALECT, ...given } = parseArgs({
  options: {
    dialect: { type: 'string', default: 'reseller-v1.1' },
    store: { type: 'string', default: KINDS[0] },
    help: { type: 'boolean', short: 'h', default: false },
  },
}).values
const ENTRY = path.join(import.meta.dirname, '../../src/quayside.js')
/** A run with a seeded mistake must end badly. */
const PRELOAD = process.env.QUAYSIDE_MISTAKE
  ? ['--import', path.join(import.meta.dirname, '../campaigns/mistakes/register.ts')]
  : []
/**
 * Nothing in the story takes longer; whatever does has failed. A shop that was read before the first offers were there is read again a
 * minute later.
 */
const PATIENCE_MS = 120_000

const startedAt = Date.now()
const say = (text: string): void => {
  const lead = `${((Date.now() - startedAt) / 1_000).toFixed(1).padStart(6)} s  `
  process.stdout.write(sentence(text, 80, { lead, hang: lead.length + 2 }))
}

async function until<T>(what: string, look: () => T | undefined | false | Promise<T | undefined | false>): Promise<T> {
  for (const end = Date.now() + PATIENCE_MS; Date.now() < end; await sleep(50)) {
    const seen = await look()
    if (seen !== undefined && seen !== false) return seen
  }
  throw new Error(`waited in vain for: ${what}`)
}

async function story(
  kind: Kind,
  folder: string,
  closing: (() => unknown)[],
): Promise<Record<string, number | boolean>> {
  const dialect = { ...readDialect(new URL(`../../config/dialects/${DIALECT}.json`, import.meta.url)), ...SHORT }
  const apiKey = `demo-${randomBytes(8).toString('hex')}`
  const sandbox = await startSandbox({ dialect, apiKey, file: path.join(folder, 'sandbox.db') })
  closing.push(() => sandbox.close())
  const port = await freePort()
  const storePort = await freePort()
  const url = `http://127.0.0.1:${port}`
  const api = async (
    method: string,
    route: string,
    bearer: string,
    body?: object,
  ): Promise<Record<string, unknown>> => {
    const answer = await fetch(`${url}/api/v1${route}`, {
      method,
      headers: { authorization: `Bearer ${bearer}`, 'content-type': 'application/json' },
      ...(body ? { body: JSON.stringify(body) } : {}),
    })
    const { data, error } = (await answer.json()) as { data: Record<string, unknown>; error?: { message: string } }
    if (error) throw new Error(`${method} ${route}: ${error.message}`)
    return data
  }
  const store = await STORES[kind]({ id: DEMO_STORE, folder, storePort, sandbox, api })
  closing.push(() => store.close())
  const dialectFile = path.join(folder, 'dialect.json')
  writeFileSync(dialectFile, JSON.stringify(dialect))
  const place = { folder, baseUrl: sandbox.baseUrl, apiKey, port, storePort, dialect: dialectFile }
  const configFile = writeDemoConfig({ ...place, more: { ordering: { tickSeconds: 1 }, ...store.settings } })
  const setUp = await openSetUp(configFile, {})
  await setUp.createWebhook()
  await store.connect(setUp)
  await setUp.close()
  say(`the sandbox plays the supplier, ${store.about}`)
  say(`settle and list lag are shortened to ${SHORT.settleSeconds} s and ${SHORT.listLagSeconds} s for this demo`)

  let service: ChildProcess | undefined
  closing.push(() => service?.kill('SIGKILL'))
  const start = async (): Promise<void> => {
    service = startService(folder, configFile)
    await until('the service to be ready', async () => (await fetch(`${url}/readyz`).catch(() => undefined))?.ok)
  }
  await start()
  const owner = () => readFileSync(path.join(folder, 'owner.token'), 'utf8').trim()
  const synced = await until('a complete sync run', async () => {
    const { items } = (await api('GET', '/sync/runs', owner())) as { items: { state: string; offersSeen: number }[] }
    return items.find(({ state }) => state === 'complete')
  })
  say(`catalogue read: ${synced.offersSeen} offers`)
  const [one, other] = await until('two products to be sold', store.sells)
  const closed = (reference: string) => until(`order ${reference} to be closed`, () => store.isClosed(reference))

  sandbox.faults.add({ fault: 'duplicate-delivery', match: { event: 'order.completed' } })
  const first = await store.buy([
    { sku: one, quantity: 2 },
    { sku: one, quantity: 1 },
  ])
  say(`order ${first}: ${one} twice on line 1 and once on line 2`)
  await closed(first)
  say(
    `  its customer reads ${(await seenIn(store, first)).length} keys, bought with ${sandbox.world.report().charges.length} charges, one a line`,
  )
  const duplicatesIgnored = await until('the duplicate delivery', async () => {
    const counted = (await duplicates(url, owner())) - (store.repeats?.() ?? 0)
    return counted > 0 && counted
  })
  say(`  a delivery came twice: stored once, acted on once`)

  let recovered = 0
  sandbox.faults.add({ fault: 'answer-lost' })
  const second = await store.buy([{ sku: other, quantity: 1 }])
  say(`order ${second}: charged by the supplier, and then the answer is lost on its way`)
  await closed(second)
  recovered += 1
  say('  looked up by its reference, found and taken over: nothing was bought twice')

  const before = sandbox.world.report().charges.length
  sandbox.faults.add({ fault: 'slow', delayMs: 10_000, stage: 'after' })
  const third = await store.buy([{ sku: other, quantity: 2 }])
  await until('the charge', () => sandbox.world.report().charges.length > before)
  const dying = service
  dying?.kill('SIGKILL')
  await until('the end of the service', () => dying?.exitCode !== null || dying.signalCode !== null)
  say(`order ${third}: charged, and kill -9 hits Quayside before it can write that down`)
  await start()
  say('  started again: the purchase may have been charged, so it is looked up before anything is sent')
  await closed(third)
  recovered += 1
  say(`  found: its customer reads ${(await seenIn(store, third)).length} keys`)
  const seen = (await Promise.all([first, second, third].map((reference) => seenIn(store, reference)))).flat()
  return verdict(sandbox.world.report(), store, seen, { duplicatesIgnored, recovered })
}

/** Held against what was ordered: three orders, four lines, six keys. @param seen what their customers see */
function verdict(
  report: ReturnType<Awaited<ReturnType<typeof startSandbox>>['world']['report']>,
  store: StoryStore,
  seen: string[],
  counts: { duplicatesIgnored: number; recovered: number },
): Record<string, number | boolean> {
  const references = report.charges.map((charge) => charge.externalOrderId)
  const keys = store.keys()
  const orders = store.fulfilled()
  const passed =
    orders === 3 &&
    report.charges.length === 4 &&
    new Set(references).size === 4 &&
    keys.length === 6 &&
    new Set(keys).size === 6 &&
    store.duplicates().length === 0 &&
    seen.length === keys.length &&
    seen.toSorted().join() === Object.values(report.keysIssued).flat().toSorted().join() &&
    counts.duplicatesIgnored >= 1 &&
    counts.recovered === 2
  return {
    orders,
    charges: report.charges.length,
    keysFulfilled: keys.length,
    keysSeen: seen.length,
    ...counts,
    passed,
  }
}

async function duplicates(url: string, bearer: string): Promise<number> {
  const answer = await fetch(`${url}/metrics`, { headers: { authorization: `Bearer ${bearer}` } })
  const count = /^quayside_deliveries_total\{[^}]*outcome="duplicate"[^}]*\} (\d+)$/m.exec(await answer.text())?.[1]
  return Number(count ?? 0)
}

function startService(folder: string, configFile: string): ChildProcess {
  const log = openSync(path.join(folder, 'quayside.log'), 'a')
  return spawn(process.execPath, [...PRELOAD, ENTRY, 'serve', '--config', configFile], { stdio: ['ignore', log, log] })
}

const kind = KINDS.find((one) => one === given.store)
if (given.help) process.stdout.write(HELP)
else if (kind) await play(kind)
else {
  process.stderr.write(`there is no story of a store called ${given.store}\n\n${HELP}`)
  process.exitCode = 2
}

async function play(kind: Kind): Promise<void> {
  const folder = mkdtempSync(path.join(tmpdir(), 'quayside-demo-'))
  const closing: (() => unknown)[] = []
  try {
    const figures = await story(kind, folder, closing)
    say(figures.passed ? 'every key once, every charge once' : 'something is off: see the figures')
    process.stdout.write(`${JSON.stringify(figures)}\n`)
    process.exitCode = figures.passed ? 0 : 1
  } catch (error) {
    say(`failed: ${error instanceof Error ? error.message : String(error)}`)
    process.exitCode = 2
    // Nothing was started: the sandbox does not speak this dialect, or its file has faults.
    if (error instanceof Failure && error.code === 'invalid') return
    process.stdout.write(readFileSync(path.join(folder, 'quayside.log'), 'utf8').split('\n').slice(-20).join('\n'))
    process.stdout.write(`${JSON.stringify({ passed: false })}\n`)
    process.exitCode = 1
  } finally {
    for (const end of closing.reverse()) await end()
    rmSync(folder, { recursive: true, force: true })
  }
}
