/** A webhook of a app at its sandbox, and the real endpoint and inbox behind it: what the sandbox sends comes in here. */
import { randomBytes } from 'node:crypto'
import { Router } from 'express'
import { onTestFinished } from 'vitest'
import type { Dialect } from '../../src/dialect/dialect.ts'
import { createHttpServer } from '../../src/http/server.ts'
import { webhookRouter } from '../../src/http/webhooks.ts'
import { createIds } from '../../src/ids.ts'
import { type ProcessDeps, processDue } from '../../src/inbox/process.ts'
import { openInbox } from '../../src/inbox/receive.ts'
import { createWebhook } from '../../src/inbox/webhooks.ts'
import { deliveries } from '../../src/storage/schema.ts'
import { build } from '../../src/storage/statement.ts'
import type { TestApp } from './test-app.ts'

export async function openDeliveryEndpoint(app: TestApp, dialect: Dialect) {
  const { db, vault, now, ordering, supplier } = app
  const newId = createIds(now, randomBytes)
  const received: string[] = []
  const refreshed: string[] = []
  const inbox = await openInbox({
    db,
    vault,
    dialect,
    now,
    newId,
    log: ordering.log,
    countReceived: (outcome) => void received.push(outcome),
    onStored: () => {},
    onStale: () => {},
  })
  const server = createHttpServer({
    webhooks: webhookRouter(inbox),
    api: [],
    health: Router(),
    log: ordering.log,
    newId,
    monotonic: now,
  })
  const { port } = await server.listen('127.0.0.1', 0)
  onTestFinished(() => server.close())
  await createWebhook({ db, vault, supplier, now, newId }, `http://127.0.0.1:${port}`, 'test')
  await inbox.reload()
  const work: ProcessDeps = {
    db,
    vault,
    dialect,
    now,
    newId,
    log: ordering.log,
    random: () => 0.5,
    countProcessed: () => {},
    wake: () => {},
    readBalance: async () => {},
    refreshOffer: async (productId) => void refreshed.push(productId),
  }
  const rows = () => db.query(build.select().from(deliveries).orderBy(deliveries.id))
  return {
    port,
    received,
    refreshed,
    rows,
    states: async () => (await rows()).map(({ state }) => state),
    events: async () => [...new Set((await rows()).map(({ event }) => event))],
    /** Processes until nothing is due. */
    process: async () => {
      while ((await processDue(work)) > 0);
    },
  }
}
