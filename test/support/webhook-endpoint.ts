/** The whole way of a delivery for tests: HTTP server, inbox and processing over a database of their own. */
import { randomBytes } from 'node:crypto'
import { onTestFinished } from 'vitest'
import type { Dialect } from '../../src/dialect/dialect.ts'
import { type BodyLimits, createRawBodies } from '../../src/http/bodies.ts'
import { healthRouter } from '../../src/http/probes.ts'
import { createHttpServer, type ServerLimits } from '../../src/http/server.ts'
import { webhookRouter } from '../../src/http/webhooks.ts'
import { createIds } from '../../src/ids.ts'
import { type ProcessDeps, processDue } from '../../src/inbox/process.ts'
import { openInbox, type ReceiveDeps } from '../../src/inbox/receive.ts'
import type { StoreSource } from '../../src/inbox/sources.ts'
import { createLog } from '../../src/log.ts'
import { Secret } from '../../src/secret.ts'
import type { Database } from '../../src/storage/database.ts'
import { insertPurchase, type NewPurchase, type Purchase } from '../../src/storage/purchases.ts'
import { deliveries, outbox, purchases } from '../../src/storage/schema.ts'
import { build } from '../../src/storage/statement.ts'
import { insertLine, insertStoreOrder } from '../../src/storage/store-orders.ts'
import { openVault } from '../../src/vault/vault.ts'
import { memoryDatabase, TEST_NOW } from './database.ts'
import { DIALECT, SECRET, type SignedDelivery } from './delivery.ts'
import { type Answer, exchange, type RawRequest, requestBytes } from './raw-http.ts'
import { addWebhook } from './webhook-server.ts'

export const VAULT_KEY = new Secret('QTrGnJ7+vkHvxYbWkC6B1w0yq5qkq3dZJ4m6yX2n8tA=')

export interface EndpointOptions {
  database?: Database
  dialect?: Dialect
  /** Path piece -> signing secret, oldest first. */
  webhooks?: Record<string, string>
  limits?: Partial<ServerLimits>
  bodies?: Partial<BodyLimits>
  /** What the routers get instead of the opened inbox. */
  receive?: Awaited<ReturnType<typeof openInbox>>['receive']
  refreshOffer?: ProcessDeps['refreshOffer']
  checkBalance?: ProcessDeps['checkBalance']
  storeSources?: StoreSource[]
}

export type WebhookEndpoint = Awaited<ReturnType<typeof openEndpoint>>

/** Opens an endpoint on a free port of loopback; it is closed when the test has finished. */
export async function openEndpoint(options: EndpointOptions = {}) {
  const clock = { now: TEST_NOW }
  const now = () => clock.now
  const db = options.database ?? memoryDatabase()
  const vault = await openVault({ database: db, keyEncryptionKey: VAULT_KEY, now })
  const { dialect = DIALECT } = options
  for (const [place, [path, secret]] of Object.entries(options.webhooks ?? { '': SECRET }).entries()) {
    await addWebhook(db, vault, { path, secret, createdAt: TEST_NOW + place })
  }

  const seen = {
    lines: [] as string[],
    counts: [] as string[],
    wakes: [] as string[],
    refreshed: [] as string[],
    balanceReads: 0,
    earlySweeps: 0,
  }
  const deps: ReceiveDeps & ProcessDeps = {
    db,
    vault,
    dialect,
    storeSources: options.storeSources ?? [],
    now,
    random: () => 0.5,
    newId: createIds(now, randomBytes),
    log: createLog({ level: 'info', write: (line) => seen.lines.push(line) }),
    count: () => {},
    countReceived: (outcome, reason) => seen.counts.push(reason ? `${outcome}:${reason}` : outcome),
    countProcessed: (state) => seen.counts.push(state),
    announced: () => {},
    onStored: () => seen.wakes.push('inbox'),
    onStale: () => {
      seen.earlySweeps += 1
    },
    wake: (pump) => seen.wakes.push(pump),
    refreshOffer: async (productId) => {
      seen.refreshed.push(productId)
      await options.refreshOffer?.(productId)
    },
    checkBalance: async () => {
      seen.balanceReads += 1
      await options.checkBalance?.()
    },
  }
  const inbox = await openInbox(deps)
  const bodies = createRawBodies(options.bodies)
  const server = createHttpServer({
    webhooks: webhookRouter({ ...inbox, receive: options.receive ?? inbox.receive }, bodies),
    api: [],
    health: healthRouter({
      status: () => ({ reasons: [], notes: inbox.clockSuspect() ? ['clock_suspect'] : [] }),
    }),
    log: deps.log,
    newId: deps.newId,
    monotonic: () => performance.now(),
    count: (route, status) => seen.counts.push(`${route} ${status}`),
    limits: { drainMs: 1_000, ...options.limits },
  })
  const { port } = await server.listen('127.0.0.1', 0)
  onTestFinished(() => server.close())

  const send = (request: RawRequest): Promise<Answer | undefined> =>
    exchange(port, requestBytes({ target: '/webhooks/supplier', ...request }))
  return {
    port,
    clock,
    db,
    vault,
    inbox,
    server,
    bodies,
    deps,
    seen,
    send,
    deliver: (delivery: SignedDelivery, target = '/webhooks/supplier') => send({ target, ...delivery }),
    /** Processes until nothing is due. */
    process: async () => {
      while ((await processDue(deps)) > 0);
    },
    rows: () => db.query(build.select().from(deliveries).orderBy(deliveries.id)),
    alerts: async () => (await db.query(build.select().from(outbox).orderBy(outbox.id))).map(({ type }) => type),
    purchases: () => db.query(build.select().from(purchases).orderBy(purchases.id)),
  }
}

/** Stores a purchase with its order and line: accepted as `ord_<n>` under the reference `ref_<n>`, but for what is said. */
export async function addPurchase(db: Database, n: number, set: Partial<NewPurchase> = {}): Promise<Purchase['id']> {
  const id = set.id ?? `purchase_${n}`
  const receivedAt = TEST_NOW
  await db.commit([
    insertStoreOrder({ id: `order_${n}`, store: 'demo-12345678', reference: `R-${n}`, bodyDigest: 'x', receivedAt }),
    insertLine({ id: `line_${n}`, orderId: `order_${n}`, line: '1', sku: 'SKU', productId: 'prod_1', quantity: 1 }),
    insertPurchase({
      id,
      orderId: `order_${n}`,
      lineId: `line_${n}`,
      part: 1,
      generation: 1,
      state: 'accepted',
      idempotencyKey: `key_${n}`,
      externalOrderId: `ref_${n}`,
      body: '{}',
      supplierProductId: 'prod_1',
      quantity: 1,
      ceilingMinor: 1_000,
      supplierOrderId: `ord_${n}`,
      currency: 'EUR',
      deadlineAt: TEST_NOW + 1,
      createdAt: TEST_NOW,
      changedAt: TEST_NOW,
      ...set,
    }),
  ])
  return id
}
