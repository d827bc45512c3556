import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { loadConfig } from '../../src/config/config.ts'
import { DEMO_STORE, writeDemoConfig } from '../../src/demo/files.ts'
import { readDialect } from '../../src/dialect/dialect.ts'
import { openSetUp } from '../../src/installation.ts'
import { openForService } from '../../src/storage/database-place.ts'
import { licenceKeys, purchases } from '../../src/storage/schema.ts'
import { build } from '../../src/storage/statement.ts'
import { openVault } from '../../src/vault/vault.ts'
import { freePort } from '../support/free-port.ts'
import { isNeeded } from '../support/needs.ts'
import { startShop } from '../support/recording-store.ts'
import { lineOf } from '../support/references.ts'
import { until } from '../support/service-process.ts'
import { addWebhook } from '../support/webhook-server.ts'
import { type Fault, fields, productsOf, startDouble } from './double.ts'
import { delivery, everything, SECRET } from './of-everything.ts'
import { openStranger } from './quayside.ts'

const dialectFile = path.join(import.meta.dirname, 'everything.json')
const MINUTE = 60_000

/** The references of what was asked for, one for each request to buy. */
const referencesIn = (bodies: { json: unknown }[]): string[] =>
  bodies.map(({ json }) => String(fields(fields(json).purchase).external))

describe('a supplier that has the hardest of all habits at once, and repeats nothing safely', () => {
  test('has twelve orders with lost answers, ended tokens and three kills, and the books agree', async () => {
    const stranger = await openStranger(everything, readDialect(dialectFile))
    const { double, world } = stranger
    const offers = await stranger.offers()
    const faults: Fault[] = [
      'none',
      'lost',
      'none',
      'cut',
      'none',
      'broken',
      'none',
      'lost',
      'none',
      'unheard',
      'refused',
      'none',
    ]
    const kills = { 3: 'answered', 6: 'intended', 8: 'read' } as const
    for (const [place, fault] of faults.entries()) {
      double.faults.push(fault)
      if (place % 4 === 2) world.tokens.clear()
      const kill = kills[place as keyof typeof kills]
      if (kill) stranger.crash.at = kill
      await stranger.order(String(1_000 + place), offers[place]?.sku ?? '', 1 + (place % 3))
      expect(await stranger.pass(MINUTE)).toBe(kill === undefined)
      if (kill) await stranger.restart()
    }
    await stranger.pass(30 * MINUTE)
    const all = await stranger.purchases()
    const undone = all.filter(({ state }) => state !== 'fulfilled')
    // What never ran, or was not sent when the process died, waits for a person: it is not bought again.
    expect(undone.map(({ state, note }) => `${state}: ${note}`)).toEqual(
      undone.map(
        () => 'review: no order was found and the supplier takes no idempotency key: it cannot be repeated safely',
      ),
    )
    const charged = world.ledger.charges.length
    expect(charged + undone.length).toBe(12)
    expect(undone.length).toBeLessThanOrEqual(3)
    await stranger.expectTie({ charges: charged, keys: world.ledger.issued.length })
    const asked = referencesIn(double.bought)
    expect(new Set(asked).size).toBe(asked.length)
  })

  const declare = isNeeded('campaigns') ? test : test.skip
  declare(
    `has sixty orders, three kill -9 of a real process, and the books agree${isNeeded('campaigns') ? '' : ' (skipped: .ci/run runs it)'}`,
    { timeout: 600_000 },
    async () => {
      const { double, shop, service, order, waits, log, ledgerOfOurs } = await openProcess()
      const { world, watch, bought } = double
      const plan: Fault[] = Array.from({ length: 60 }, (_, place) => {
        if (place % 9 === 4) return 'lost'
        if (place % 13 === 6) return 'cut'
        if (place % 17 === 8) return 'broken'
        return place === 20 || place === 44 ? 'unheard' : place === 33 ? 'refused' : 'none'
      })
      double.faults.push(...plan)
      let kills = 0
      watch.onSold = (sold) => {
        const count = world.orders.length
        // The charge is made, and no answer has left.
        if (count === 12 || count === 28 || count === 45) {
          kills += 1
          service.kill()
        }
        if (count % 11 === 5) world.tokens.clear()
        setTimeout(() => {
          sold.status = 'done'
          const { headers, body } = delivery(sold, Date.now())
          fetch(service.hookUrl, { method: 'POST', headers, body }).then(
            ({ status }) => service.hooked.push(status),
            () => {},
          )
        }, 100)
      }
      await service.start()
      for (let place = 0; place < 60; place += 1) {
        await until('a process that takes the order', async () => {
          await service.startAgain()
          return order(String(1_000 + place), place)
        })
      }
      await until('every order to be handed over, or to wait for a person', async () => {
        await service.startAgain()
        const closed = shop.received().filter(({ type }) => type === 'order.closed').length
        return closed + (await waits()) === 60
      })
      await service.end()
      const ours = await ledgerOfOurs()
      const { charges, issued } = world.ledger
      const done = ours.purchases.filter(({ state }) => state === 'fulfilled')
      const undone = ours.purchases.filter(({ state }) => state !== 'fulfilled')
      expect(kills).toBe(3)
      expect(service.hooked.filter((status) => status === 200).length).toBeGreaterThan(20)
      expect(done.map((one) => `${one.externalOrderId} ${one.amountMinor}`).toSorted()).toEqual(
        charges.map((one) => `${one.reference} ${one.amountMinor}`).toSorted(),
      )
      expect(undone.map(({ state, note }) => `${state} ${note}`)).toEqual(
        undone.map(
          () => 'review no order was found and the supplier takes no idempotency key: it cannot be repeated safely',
        ),
      )
      expect(ours.purchases).toHaveLength(60)
      expect(ours.keys).toBe(issued.length)
      const asked = referencesIn(bought)
      expect(new Set(asked).size).toBe(asked.length)
      // Where one key of a line is a picture, its customer gets all of them on the page of keys.
      for (const [line, texts] of shop.keys()) {
        const cards = issued.filter(({ reference }) => lineOf(reference) === line).map(({ card }) => card)
        if (cards.some(({ type }) => type === 'image')) expect(new Set(texts).size).toBe(1)
        else expect(texts.toSorted()).toEqual(cards.map(({ text }) => text).toSorted())
        expect(texts).toHaveLength(cards.length)
      }
      expect(shop.keys().size).toBe(charges.length)
      const secrets = [
        everything.apiKey,
        ...everything.apiKey.split(':').slice(1),
        SECRET,
        'token-',
        ...issued.map(({ card }) => card.text),
      ]
      expect(secrets.filter((secret) => log().includes(secret))).toEqual([])
    },
  )
})

/** A real process of the service before the supplier, with a backend, on the clock of the machine. */
async function openProcess() {
  const folder = mkdtempSync(path.join(tmpdir(), 'quayside-hardest-'))
  const double = await startDouble(
    { ...everything, readsUntilDone: Number.POSITIVE_INFINITY },
    productsOf(30),
    Date.now,
  )
  const [port, storePort] = [await freePort(), await freePort()]
  const { baseUrl, habits } = double
  const more = { ordering: { tickSeconds: 1 } }
  const place = { folder, baseUrl, apiKey: habits.apiKey, port, storePort, dialect: dialectFile, more }
  const configFile = writeDemoConfig(place)
  const setUp = await openSetUp(configFile, {})
  const token = (await setUp.createStoreToken(DEMO_STORE, 'test')).reveal()
  const shop = await startShop({ secret: (await setUp.callbackSecret(DEMO_STORE)).reveal(), port: storePort })
  await setUp.close()
  const config = loadConfig(configFile, {})
  const { db } = await openForService(config, { now: Date.now })
  const vault = await openVault({ database: db, keyEncryptionKey: config.keyEncryptionKey, now: Date.now })
  await addWebhook(db, vault, { path: 'hardest', secret: SECRET, createdAt: Date.now() })
  await db.close()
  const url = `http://127.0.0.1:${port}`
  const headers = { authorization: `Bearer ${token}`, connection: 'close' }
  const read = (route: string) => fetch(`${url}${route}`, { headers }).catch(() => undefined)
  let child: ChildProcess | undefined
  const output: string[] = []
  onTestFinished(async () => {
    child?.kill('SIGKILL')
    await Promise.all([shop.close(), double.close()])
    rmSync(folder, { recursive: true, force: true })
  })
  const start = async () => {
    const entry = path.join(import.meta.dirname, '../../src/quayside.js')
    child = spawn(process.execPath, [entry, 'serve', '--config', configFile], { stdio: ['ignore', 'pipe', 'pipe'] })
    for (const stream of [child.stdout, child.stderr]) stream?.on('data', (chunk) => output.push(String(chunk)))
    await until('the service', async () => (await read('/readyz'))?.ok)
    await until('the catalogue', async () =>
      (await (await read('/api/v1/listings?limit=1'))?.text())?.includes('"sku"'),
    )
  }
  const isDead = () => child === undefined || child.exitCode !== null || child.signalCode !== null
  return {
    double,
    shop,
    log: () => output.join(''),
    service: {
      hookUrl: `${url}/webhooks/supplier/hardest`,
      /** What was answered to the supplier's deliveries. */
      hooked: [] as number[],
      start,
      kill: () => child?.kill('SIGKILL'),
      startAgain: async () => {
        if (child?.killed && !isDead()) await once(child, 'exit')
        if (isDead()) await start()
      },
      end: async () => {
        child?.kill('SIGTERM')
        if (child && !isDead()) await once(child, 'exit')
      },
    },
    /** @returns whether it is taken: after a kill it may be taken already */
    order: async (reference: string, at: number): Promise<boolean> => {
      const lines = [{ id: '1', sku: `SKU-${at % 30}`, quantity: 1 + (at % 3) }]
      const body = JSON.stringify({ reference, lines })
      const sent = { method: 'POST', headers: { ...headers, 'content-type': 'application/json' }, body }
      return (await fetch(`${url}/api/v1/orders`, sent).catch(() => undefined))?.ok ?? false
    },
    /** How many orders wait for a person to decide. */
    waits: async (): Promise<number> => {
      const answer = await read('/api/v1/orders?limit=100')
      const { data } = ((await answer?.json()) ?? {}) as {
        data?: { items: { lines: { waitsFor: string | null }[] }[] }
      }
      return (data?.items ?? []).filter(({ lines }) => lines.some(({ waitsFor }) => waitsFor === 'review')).length
    },
    ledgerOfOurs: async () => {
      const opened = await openForService(config, { now: Date.now })
      const all = await opened.db.query(build.select().from(purchases))
      const keys = await opened.db.query(build.select().from(licenceKeys))
      await opened.db.close()
      return { purchases: all, keys: keys.length }
    },
  }
}
