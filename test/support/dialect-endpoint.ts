/** A webhook of an app at its sandbox, and the real endpoint before its inbox: what the sandbox sends comes in here. */
import { Router } from 'express'
import { onTestFinished } from 'vitest'
import { createHttpServer } from '../../src/http/server.ts'
import { webhookRouter } from '../../src/http/webhooks.ts'
import { createWebhook } from '../../src/inbox/webhooks.ts'
import { deliveries } from '../../src/storage/schema.ts'
import { build } from '../../src/storage/statement.ts'
import type { TestApp } from './test-app.ts'

export async function openDeliveryEndpoint({ db, ordering, runtime, supplier }: TestApp) {
  const { inbox, work } = runtime
  const received: string[] = []
  const server = createHttpServer({
    webhooks: webhookRouter({
      ...inbox,
      receive: async (request) => {
        const receipt = await inbox.receive(request)
        received.push(receipt.outcome)
        return receipt
      },
    }),
    api: [],
    health: Router(),
    log: ordering.log,
    newId: ordering.newId,
    monotonic: ordering.monotonic,
  })
  const { port } = await server.listen('127.0.0.1', 0)
  onTestFinished(() => server.close())
  await createWebhook({ ...ordering, supplier }, `http://127.0.0.1:${port}`, 'test')
  await inbox.reload()
  const rows = () => db.query(build.select().from(deliveries).orderBy(deliveries.id))
  return {
    received,
    rows,
    states: async () => (await rows()).map(({ state }) => state),
    events: async () => [...new Set((await rows()).map(({ event }) => event))],
    /** Processes until nothing is due. */
    process: async () => {
      while ((await work.inbox()) > 0);
    },
  }
}
