/** An endpoint for deliveries in a process of its own: the real server, inbox and vault over a database that is handed in. */
import { randomBytes } from 'node:crypto'
import { healthRouter } from '../../src/http/probes.ts'
import { createHttpServer } from '../../src/http/server.ts'
import { webhookRouter } from '../../src/http/webhooks.ts'
import { createIds } from '../../src/ids.ts'
import { openInbox } from '../../src/inbox/receive.ts'
import { createLog } from '../../src/log.ts'
import { Secret } from '../../src/secret.ts'
import type { Database } from '../../src/storage/database.ts'
import { insertWebhook } from '../../src/storage/webhooks.ts'
import { openVault, type Vault } from '../../src/vault/vault.ts'
import { DIALECT, SECRET } from './delivery.ts'

const nothing = () => undefined

/** Opens the endpoint of a fresh database on a free port of loopback. */
export async function serveWebhooks(db: Database, key: string, now: () => number, dialect = DIALECT) {
  const vault = await openVault({ database: db, keyEncryptionKey: new Secret(key), now })
  await addWebhook(db, vault, { path: '', secret: SECRET, createdAt: now() })
  const log = createLog({ level: 'error', write: nothing })
  const newId = createIds(now, randomBytes)
  const inbox = await openInbox({
    db,
    vault,
    dialect,
    now,
    newId,
    log,
    count: nothing,
    countReceived: nothing,
    onStored: nothing,
    onStale: nothing,
  })
  const server = createHttpServer({
    webhooks: webhookRouter(inbox),
    api: [],
    health: healthRouter({ status: () => ({ reasons: [], notes: [] }) }),
    log,
    newId,
    monotonic: () => performance.now(),
  })
  const { port } = await server.listen('127.0.0.1', 0)
  return { port, close: () => server.close() }
}

export async function addWebhook(
  db: Database,
  vault: Vault,
  { path, secret, createdAt }: { path: string; secret: string; createdAt: number },
): Promise<void> {
  const id = `wh_${path || 'first'}`
  const { ciphertext, keyId } = vault.seal({ table: 'webhooks', row: id }, secret)
  const url = `https://quayside.test/webhooks/supplier/${path}`
  await db.commit([insertWebhook({ id, path, url, events: [], secret: ciphertext, keyId, createdAt })])
}
