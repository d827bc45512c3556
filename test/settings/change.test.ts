/** Other settings in force without a restart: what goes on meanwhile, what waits, and what a failure leaves. Over real sockets. */
import { readFileSync } from 'node:fs'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { openApp } from '../../src/app.ts'
import { createLog } from '../../src/log.ts'
import { readConfig } from '../../src/settings/stored.ts'
import '../support/fixed-seed.ts'
import { type Installation, openInstallation, until } from '../support/service-process.ts'
import { settingDocuments } from '../support/settings-arbitrary.ts'

type Document = { ordering?: object; spendCaps?: object } & Record<string, unknown>

/** What an admin asks of a service: with the token that it keeps for the command line on its machine. */
function adminOf({ url, folder }: Installation) {
  const ask = async (method: string, route: string, body?: object, headers: Record<string, string> = {}) => {
    const answer = await fetch(`${url}/api/v1${route}`, {
      method,
      headers: {
        authorization: `Bearer ${readFileSync(path.join(folder, 'owner.token'), 'utf8').trim()}`,
        'content-type': 'application/json',
        connection: 'close',
        ...headers,
      },
      ...(body && { body: JSON.stringify(body) }),
    })
    return { status: answer.status, body: (await answer.json()) as { data: Record<string, unknown> } }
  }
  const settings = async () =>
    (await ask('GET', '/settings/document')).body.data as { revision: number; document: Document }
  return {
    ask,
    settings,
    /** Puts the settings in force with some of them changed. @returns the status of the answer */
    change: async (changed: Document) => {
      const { revision, document } = await settings()
      const body = { document: { ...document, ...changed }, reason: 'a test' }
      return (await ask('POST', '/settings/document', body, { 'if-match': `"${revision}"` })).status
    },
  }
}

/** Sends orders and deliveries one after the other, and asks whether the service is ready, until it is stopped. */
function traffic(service: Installation, item: string) {
  const answers: Record<'orders' | 'deliveries' | 'ready', (number | string | undefined)[]> = {
    orders: [],
    deliveries: [],
    ready: [],
  }
  let isRunning = true
  const keep = async (kind: keyof typeof answers, send: (id: string) => Promise<number | string | undefined>) => {
    for (let n = 0; isRunning; n += 1) {
      answers[kind].push(await send(`${kind}-${n}`))
      await sleep(20)
    }
  }
  const over = Promise.all([
    keep('orders', (id) => service.order(id, item, false)),
    keep('deliveries', (id) => service.deliver(id, false)),
    keep('ready', async () => (await service.probe('/readyz'))?.status),
  ])
  return {
    answers,
    stop: async () => {
      isRunning = false
      await over
    },
  }
}

describe('other settings', () => {
  test.concurrent('come into force while deliveries and orders are taken', async ({ onTestFinished }) => {
    const service = await openInstallation(onTestFinished, {}, {}, {}, 'database')
    await service.start()
    const item = (await service.sku()) ?? ''
    const admin = adminOf(service)
    const sending = traffic(service, item)
    onTestFinished(sending.stop)
    for (const percent of ['11', '12', '13', '14', '15']) {
      expect(await admin.change({ ordering: { tickSeconds: 1, ceilingPercent: percent } })).toBe(200)
      const known = sending.answers.orders.length
      await until('another order', () => sending.answers.orders.length > known)
    }
    await sending.stop()
    const { orders, deliveries, ready } = sending.answers
    expect([new Set(orders), new Set(deliveries), new Set(ready)]).toEqual([
      new Set([202]),
      new Set([200]),
      new Set([200]),
    ])
    await until('the orders', () => {
      const closed = service.shop.received().filter(({ type }) => type === 'order.closed')
      return new Set(closed.map(({ data }) => data.reference)).size === orders.length
    })
    expect(service.sandbox.world.report().charges).toHaveLength(orders.length)
    expect((await admin.settings()).revision).toBe(6)
  })

  test.concurrent('wait for a request to the supplier that hangs, and other writes do not', async ({
    onTestFinished,
  }) => {
    const service = await openInstallation(onTestFinished, {}, {}, {}, 'database')
    await service.start()
    const item = (await service.sku()) ?? ''
    const admin = adminOf(service)
    service.sandbox.faults.add({ fault: 'slow', delayMs: 3_000, times: 1, match: { method: 'POST' } })
    expect(await service.order('hangs', item, false)).toBe(202)
    await until('the request', () => service.sandbox.world.report().charges.length === 1)
    let isChanged = false
    const changed = admin.change({ spendCaps: { order: '900.00' } }).finally(() => {
      isChanged = true
    })
    for (let n = 0; n < 3; n += 1) {
      expect(await service.order(`beside-${n}`, item, false)).toBe(202)
      expect((await admin.ask('POST', '/tokens', { name: `token ${n}`, role: 'viewer' })).status).toBe(201)
    }
    expect(isChanged).toBe(false)
    expect(await changed).toBe(200)
    await Promise.all(['hangs', 'beside-0', 'beside-1', 'beside-2'].map((reference) => service.closed(reference)))
    const charged = service.sandbox.world.report().charges.map(({ externalOrderId }) => externalOrderId)
    expect(new Set(charged).size).toBe(4)
    expect(charged).toHaveLength(4)
  })

  test.concurrent('that cannot be used, or be stored, leave those before in force', async ({ onTestFinished }) => {
    const service = await openInstallation(onTestFinished, {}, {}, {}, 'database')
    const { app, config } = await openHere(service)
    onTestFinished(app.close)
    await app.sync()
    const item = (await service.sku()) ?? ''
    const stores = config.stores.map((store) => ({ ...store, kind: 'no kind' as never }))
    const unusable = { ...config, stores, revision: 2 }
    let commits = 0
    const commit = async (): Promise<void> => {
      commits += 1
      throw new Error('the disk is full')
    }
    await expect(app.change(unusable, commit)).rejects.toThrow()
    expect(commits).toBe(0)
    await expect(app.change({ ...config, revision: 2 }, commit)).rejects.toThrow('the disk is full')
    expect(commits).toBe(1)
    expect(app.api.config.revision).toBe(1)
    expect(await service.order('after', item, false)).toBe(202)
    await service.closed('after')
    expect(service.sandbox.world.report().charges).toHaveLength(1)
  })
})

test('any revision that is accepted starts, at once and when the service is opened again', async ({
  onTestFinished,
}) => {
  const service = await openInstallation(onTestFinished, {}, {}, {}, 'database')
  let { app } = await openHere(service)
  onTestFinished(() => app.close())
  await app.sync()
  const admin = adminOf(service)
  const outcomes = { accepted: 0, refused: 0 }
  await fc.assert(
    fc.asyncProperty(settingDocuments, async (wanted) => {
      const { revision, document } = await admin.settings()
      const { supplier: _, stores, ...others } = JSON.parse(JSON.stringify(wanted)) as Document & { stores: object[] }
      // The store that answers here, with the prices, filter and stock that a store of the document has.
      const own = (document.stores as Document[]).map((one) => {
        const { id, kind, name, callbackUrl } = one
        return { ...one, ...stores[0], id, kind, name, callbackUrl }
      })
      const status = await admin.change({ ...others, stores: own })
      if (status !== 200) {
        outcomes.refused += 1
        expect([400, 422]).toContain(status)
        expect((await admin.settings()).revision).toBe(revision)
        return
      }
      outcomes.accepted += 1
      expect(app.api.config.revision).toBe(revision + 1)
      expect((await service.probe('/readyz'))?.status).toBe(200)
      await app.close()
      app = (await openHere(service)).app
      expect(app.api.config.revision).toBe(revision + 1)
      expect((await service.probe('/readyz'))?.status).toBe(200)
    }),
    { numRuns: 20 },
  )
  expect(outcomes.accepted).toBeGreaterThan(5)
  expect(outcomes.refused).toBeGreaterThan(0)
})

test('many changes leave no timer and no listener behind', async ({ onTestFinished }) => {
  const service = await openInstallation(onTestFinished, {}, {}, {}, 'database')
  const { app, config } = await openHere(service)
  onTestFinished(app.close)
  await app.sync()
  const change = async (times: number) => {
    for (let n = 0; n < times; n += 1) await app.change({ ...config }, async () => undefined)
  }
  await change(2)
  const before = held()
  await change(20)
  const after = held()
  expect(after.listeners).toEqual(before.listeners)
  // A generation that is not ended keeps more than five of its own.
  expect(after.timers).toBeLessThan(before.timers + 20)
})

/** Timers of this process, and listeners at it. */
function held() {
  const counts: Record<string, number> = {}
  for (const one of process.getActiveResourcesInfo()) counts[one] = (counts[one] ?? 0) + 1
  const listeners = process.eventNames().map((name) => [name, process.listenerCount(name)])
  return { timers: counts.Timeout ?? 0, listeners }
}

/** Opens the service in this process. */
async function openHere({ configFile }: Installation) {
  const config = await readConfig(configFile, {})
  const log = createLog({ level: 'error', write: () => undefined })
  const onFatal = (failure: Error) => {
    throw failure
  }
  return { config, app: await openApp({ config, log, onFatal }) }
}
