import { messageOf } from '../errors.ts'
import type { Log } from '../log.ts'
import { oweAlert } from '../storage/outbox.ts'
import { allWebhooks, putUnheldWebhooks, type UnheldWebhooks, unheldWebhooks } from '../storage/webhooks.ts'
import type { Supplier } from '../supplier/client.ts'
import { createWebhook, DOOR, type WebhookDeps } from './webhooks.ts'

export interface CheckDeps extends WebhookDeps {
  supplier: Pick<Supplier, 'createWebhook' | 'webhooks'>
  /** Where the supplier reaches this service; null when that is nowhere. */
  publicUrl: string | null
  log: Log
}

/** What differs between the supplier's webhooks and ours. */
export interface WebhookCheck {
  /** Those that lead here and whose secret we do not hold: all that they send is refused. */
  unheld: UnheldWebhooks['webhooks']
  /** Ids of ours that are gone at the supplier, those that are retired left out. */
  gone: string[]
}

/** By itself one is replaced a day at most: a supplier whose answers get lost must not be given one after the other. */
const REPLACE_GAP_MS = 24 * 3_600_000

/**
 * Compares the supplier's webhooks with those whose secret we hold.
 *
 * One that leads here under a secret that we do not hold was made by a request whose answer was lost, or is older than
 * the backup that this database came from. It is told to people, who alone can remove it, and replaced by one of ours.
 *
 * @throws Failure when the supplier's webhooks cannot be read
 */
export async function checkWebhooks(deps: CheckDeps): Promise<WebhookCheck> {
  const { db, supplier, now, log, publicUrl } = deps
  const held = await db.query(allWebhooks())
  // Nowhere to be reached, and never was: nothing at the supplier can lead here.
  if (publicUrl === null && held.length === 0) return { unheld: [], gone: [] }
  const [theirs, before] = await Promise.all([supplier.webhooks(), unheldWebhooks(db)])
  const ids = new Set(held.map(({ id }) => id))
  const bases = [publicUrl?.replace(/\/+$/, ''), ...held.map(({ url }) => baseOf(url))]
  const leadsHere = (url: string): boolean => {
    const base = baseOf(url)
    return base !== undefined && bases.includes(base)
  }
  const at = now()
  const webhooks = theirs.items
    .filter(({ id, url }) => !ids.has(id) && leadsHere(url))
    .map(({ id, url }) => {
      return before.webhooks.find((known) => known.id === id) ?? { id, url, seenAt: at, replacedBy: null }
    })
  const there = new Set(theirs.items.map(({ id }) => id))
  const gone = held.filter(({ id, retiredAt }) => retiredAt === null && !there.has(id)).map(({ id }) => id)
  for (const id of gone) log.warn('webhook.gone', { id, detail: 'the supplier does not list it any more' })

  let seen: UnheldWebhooks = { webhooks, replacedAt: before.replacedAt }
  await db.commit([putUnheldWebhooks(seen, at), ...webhooks.map(({ id, url }) => unheldAlert(deps, id, url))])
  const open = webhooks.filter(({ replacedBy }) => replacedBy === null)
  const [first] = open
  if (first === undefined || at - before.replacedAt < REPLACE_GAP_MS) return { unheld: webhooks, gone }

  // Noted before it is tried: one that is lost on the way counts as tried too.
  seen = { webhooks, replacedAt: at }
  await db.commit([putUnheldWebhooks(seen, at)])
  try {
    const { id } = await createWebhook(deps, baseOf(first.url) ?? '', 'service', false)
    seen.webhooks = webhooks.map((one) => (one.replacedBy === null ? { ...one, replacedBy: id } : one))
    await db.commit([putUnheldWebhooks(seen, now())])
    log.warn('webhook.replaced', { id, detail: `instead of ${open.map((one) => one.id).join(', ')}` })
  } catch (error) {
    log.error('webhook.not_replaced', { id: first.id, error: messageOf(error) })
  }
  return { unheld: seen.webhooks, gone }
}

/** The public address that a webhook's address begins with; undefined when it does not lead to the door of deliveries. */
function baseOf(url: string): string | undefined {
  const end = url.lastIndexOf(DOOR)
  return end > 0 && /^(\/[A-Za-z0-9_-]{1,64})?$/.test(url.slice(end + DOOR.length)) ? url.slice(0, end) : undefined
}

/** Once for each of them, however often they are compared. */
const unheldAlert = (deps: CheckDeps, id: string, url: string) =>
  oweAlert(deps, {
    ...{ type: 'webhook_unheld', occasion: id },
    payload: {
      note: 'a webhook at the supplier leads here under a secret that is not held: remove it in the pages of the supplier',
      ...{ webhook: id, url },
    },
  })
