import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, type TestContext, test } from 'vitest'
import { DEMO_STORE, freePort, writeDemoConfig } from '../src/demo-files.ts'
import type { CrashPoint } from '../src/ordering/context.ts'
import { startSandbox } from '../src/sandbox/server.ts'
import { startShop } from '../src/sandbox/shop.ts'
import { openSetUp } from '../src/set-up.ts'
import { defaultDialect } from './harbour.ts'

/** Whatever this waits for takes a few seconds; a minute means that it does not come. */
async function until(what: string, look: () => unknown): Promise<void> {
  for (const end = Date.now() + 45_000; Date.now() < end; await sleep(25)) if (await look()) return
  throw new Error(`waited in vain for ${what}`)
}

/** A real service process with a sandbox and a demo store around it; the supplier settles within two seconds. */
async function openInstallation(onTestFinished: TestContext['onTestFinished']) {
  const folder = mkdtempSync(path.join(tmpdir(), 'quayside-crash-'))
  const dialect = { ...defaultDialect(), settleSeconds: 6, listLagSeconds: 0.2, scanGapSeconds: 0.5 }
  const apiKey = 'sk_test_0123456789abcdef'
  const sandbox = await startSandbox({ dialect, apiKey })
  const dialectFile = path.join(folder, 'dialect.json')
  writeFileSync(dialectFile, JSON.stringify(dialect))
  const [port, storePort] = [await freePort(), await freePort()]
  const configFile = writeDemoConfig({
    ...{ folder, baseUrl: sandbox.baseUrl, apiKey, port, storePort, dialect: dialectFile },
    more: { ordering: { tickSeconds: 1 } },
  })
  const setUp = await openSetUp(configFile, {})
  await setUp.createWebhook()
  const token = (await setUp.createStoreToken(DEMO_STORE, 'test')).reveal()
  const shop = await startShop({ secret: (await setUp.callbackSecret(DEMO_STORE)).reveal(), port: storePort })
  await setUp.close()
  const url = `http://127.0.0.1:${port}`
  let service: ChildProcess | undefined
  onTestFinished(async () => {
    service?.kill('SIGKILL')
    await Promise.all([shop.close(), sandbox.close()])
    rmSync(folder, { recursive: true, force: true })
  })
  return {
    sandbox,
    shop,
    start: async (crash?: string) => {
      const env = { ...process.env, ...(crash ? { QUAYSIDE_CRASH: crash } : {}) }
      const entry = path.join(import.meta.dirname, '..', 'src', 'quayside.js')
      service = spawn(process.execPath, [entry, 'serve', '--config', configFile], { env, stdio: 'ignore' })
      await until('the service', async () => (await fetch(`${url}/readyz`).catch(() => undefined))?.ok)
      await until('the catalogue', async () => (await listings()).length > 0)
    },
    died: () => until('the crash', () => service?.signalCode === 'SIGKILL'),
    order: async (reference: string) => {
      const sku = (await listings()).find(({ stock }) => (stock ?? 0) > 10)?.sku
      const answer = await fetch(`${url}/api/v1/orders`, {
        method: 'POST',
        headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
        body: JSON.stringify({ reference, lines: [{ id: '1', sku, quantity: 2 }] }),
      })
      expect(answer.status).toBe(202)
    },
    closed: (reference: string) =>
      until('the order to be closed', () =>
        shop.received().some(({ type, data }) => type === 'order.closed' && data.reference === reference),
      ),
  }

  async function listings(): Promise<{ sku: string; stock: number | null }[]> {
    const answer = await fetch(`${url}/api/v1/listings?limit=100`, {
      headers: { authorization: `Bearer ${token}`, connection: 'close' },
    })
    const { data } = (await answer.json()) as { data: { items: { sku: string; stock: number | null }[] } }
    return data.items
  }
}

const points: { point: CrashPoint; when: string }[] = [
  { point: 'claiming', when: 'before the lease is committed' },
  { point: 'claimed', when: 'after the lease is committed' },
  { point: 'intending', when: 'before the intent is committed' },
  { point: 'intended', when: 'after the intent is committed, before a byte is sent' },
  { point: 'answered', when: 'after the supplier charged and answered, before that is recorded' },
  { point: 'recorded', when: 'after the answer is recorded' },
]

describe('a process killed with kill -9', () => {
  for (const { point, when } of points) {
    test.concurrent(`${when}: buys once, hands over once`, async ({ onTestFinished }) => {
      const installation = await openInstallation(onTestFinished)
      await installation.start(point)
      await installation.order('1001')
      await installation.died()
      await installation.start()
      await installation.closed('1001')
      const { charges, refunds } = installation.sandbox.world.report()
      expect({ charges: charges.length, refunds: refunds.length }).toEqual({ charges: 1, refunds: 0 })
      expect(installation.shop.keys().get('1001/1')).toHaveLength(2)
      expect(installation.shop.duplicates()).toEqual([])
    })
  }
})
