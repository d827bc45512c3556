import { Failure } from '../errors.ts'
import type { Secret } from '../secret.ts'
import type { Database } from '../storage/database.ts'
import { insertAudit } from '../storage/evidence.ts'
import type { Vault } from '../storage/vault.ts'
import { allWebhooks, insertWebhook, type Webhook } from '../storage/webhooks.ts'
import type { Supplier } from '../supplier/client.ts'
import { eventNames } from '../supplier/dialect.ts'
import { signingKey } from '../supplier/signature.ts'

export interface WebhookDeps {
  db: Database
  vault: Vault
  supplier: Pick<Supplier, 'createWebhook'>
  /** Epoch milliseconds. */
  now: () => number
  newId: () => string
}

/** Where the supplier's deliveries come in, under the public address. */
const DOOR = '/webhooks/supplier'

/**
 * Creates a webhook at the supplier and keeps its secret, sealed. The first one gets the bare path, later ones a piece
 * of their own: each secret has its own door, so that one can take over from another without losing a delivery.
 *
 * @param publicUrl address under which the supplier reaches this service
 * @throws Failure `unknown_outcome` when it may exist at the supplier without our holding its secret
 */
export async function createWebhook(deps: WebhookDeps, publicUrl: string, actor: string): Promise<Webhook> {
  const { db, vault, supplier, now, newId } = deps
  const existing = await db.query(allWebhooks())
  const path = existing.some((webhook) => webhook.path === '') ? newId().slice(-12) : ''
  const url = `${publicUrl.replace(/\/+$/, '')}${DOOR}${path === '' ? '' : `/${path}`}`
  const { webhook, secret } = await supplier.createWebhook({ url, events: [...eventNames] })
  assertUsable(secret)
  const sealed = vault.seal({ table: 'webhooks', row: webhook.id }, secret.reveal())
  const at = now()
  const row: Webhook = {
    ...{ id: webhook.id, path, url, events: eventNames.join(' '), createdAt: at },
    ...{ secret: sealed.ciphertext, keyId: sealed.keyId },
  }
  await db.commit([
    insertWebhook(row),
    insertAudit({ id: newId(), at, actor, action: 'webhook.create', subject: webhook.id, detail: url }),
  ])
  return row
}

/** A secret that the verifier would refuse must not be stored: every later start would stop at it. */
function assertUsable(secret: Secret): void {
  try {
    signingKey(secret)
  } catch (cause) {
    throw new Failure('unavailable', 'the supplier gave a signing secret that is too weak to be used', { cause })
  }
}
