import { Failure } from '../errors.ts'
import type { Secret } from '../secret.ts'
import { type Database, StaleWrite } from '../storage/database.ts'
import { insertAudit } from '../storage/evidence.ts'
import { listText } from '../storage/lists.ts'
import type { Vault } from '../storage/vault.ts'
import { allWebhooks, insertWebhook, markRetired, type Webhook } from '../storage/webhooks.ts'
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
export const DOOR = '/webhooks/supplier'

/**
 * Creates a webhook at the supplier and keeps its secret, sealed. The first one gets the bare path, later ones a piece
 * of their own: each secret has its own door, so that one can take over from another without losing a delivery.
 *
 * @param publicUrl address under which the supplier reaches this service
 * @param first false when another webhook at the supplier has the bare path, although we do not know of any
 * @throws Failure `unknown_outcome` when it may exist at the supplier without our holding its secret
 */
export async function createWebhook(
  deps: WebhookDeps,
  publicUrl: string,
  actor: string,
  first = true,
): Promise<Webhook> {
  const { db, vault, supplier, now, newId } = deps
  const existing = await db.query(allWebhooks())
  const path = !first || existing.some((webhook) => webhook.path === '') ? newId().slice(-12) : ''
  const url = `${publicUrl.replace(/\/+$/, '')}${DOOR}${path === '' ? '' : `/${path}`}`
  const { webhook, events, secret } = await supplier.createWebhook({ url, events: [...eventNames] })
  assertUsable(secret)
  const sealed = vault.seal({ table: 'webhooks', row: webhook.id }, secret.reveal())
  const at = now()
  const row: Webhook = {
    ...{ id: webhook.id, path, url, events: listText(events), createdAt: at },
    ...{ secret: sealed.ciphertext, keyId: sealed.keyId, retiredAt: null },
  }
  await db.commit([
    insertWebhook(row),
    insertAudit({ id: newId(), at, actor, action: 'webhook.create', subject: webhook.id, detail: url }),
  ])
  return row
}

/** A webhook that took over, and those that it took over from: they stay valid until each is retired. */
export interface Rotation {
  webhook: Webhook
  replaces: string[]
}

/**
 * Takes a new signing secret into use: a second webhook beside the one that there is. Both are verified from here on,
 * each on its own path, so that no delivery is lost in between; an event that comes through both has one effect.
 *
 * @throws Failure `conflict` when there is no webhook yet
 * @throws Failure `unknown_outcome` when it may exist at the supplier without our holding its secret
 */
export async function rotateWebhook(deps: WebhookDeps, publicUrl: string, actor: string): Promise<Rotation> {
  const live = (await deps.db.query(allWebhooks())).filter(({ retiredAt }) => retiredAt === null)
  if (live.length === 0) {
    throw new Failure('conflict', 'there is no webhook whose secret could be rotated: create one', {
      reason: 'no_webhook',
    })
  }
  return { webhook: await createWebhook(deps, publicUrl, actor), replaces: live.map(({ id }) => id) }
}

/**
 * Takes the secret of a webhook out of use, once another one has taken over. What is still signed with it is answered
 * 200 and counted, and has no effect. Retiring twice is harmless.
 *
 * @throws Failure `not_found` for an unknown id
 * @throws Failure `conflict` when no later one has taken over: every delivery would be thrown away
 */
export async function retireWebhook(
  { db, now, newId }: Pick<WebhookDeps, 'db' | 'now' | 'newId'>,
  id: string,
  actor: string,
): Promise<Webhook> {
  const read = async () => (await db.query(allWebhooks())).find((one) => one.id === id)
  const row = await read()
  if (!row) throw new Failure('not_found', `there is no webhook ${id}`)
  if (row.retiredAt !== null) return row
  const at = now()
  try {
    const audit = insertAudit({ id: newId(), at, actor, action: 'webhook.retire', subject: id, detail: row.url })
    await db.commit([markRetired(row, at), audit])
  } catch (error) {
    if (!(error instanceof StaleWrite)) throw error
    // Somebody else was faster, or it is the one that all the others gave way to.
    const now = await read()
    if (now && now.retiredAt !== null) return now
    throw new Failure('conflict', `no webhook has taken over from ${id} yet: rotate first`, { reason: 'not_replaced' })
  }
  return { ...row, retiredAt: at }
}

/** A secret that the verifier would refuse must not be stored: every later start would stop at it. */
function assertUsable(secret: Secret): void {
  try {
    signingKey(secret)
  } catch (cause) {
    throw new Failure('unavailable', 'the supplier gave a signing secret that is too weak to be used', { cause })
  }
}
