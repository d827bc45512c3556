import type { Context } from '../context.ts'
import { type Dialect, eventNames, pathsOf, SECRET_ALONE } from '../dialect/dialect.ts'
import { conflict, Failure, messageOf } from '../errors.ts'
import { idBound } from '../ids.ts'
import type { Log } from '../log.ts'
import { Secret } from '../secret.ts'
import { commitUnlessStale } from '../storage/database.ts'
import { listDeliveries } from '../storage/deliveries.ts'
import { audited, insertAudit } from '../storage/evidence.ts'
import { enqueueAlert } from '../storage/outbox.ts'
import {
  allWebhooks,
  insertWebhook,
  markRetired,
  putUnheldWebhooks,
  type UnheldWebhooks,
  unheldWebhooks,
  type Webhook,
} from '../storage/webhooks.ts'
import { doubtful, failed, sound } from '../stores/findings.ts'
import type { Store } from '../stores/store.ts'
import type { Supplier } from '../supplier/client.ts'
import { readJson, textAt } from '../supplier/records.ts'
import { type Exchange, exchange, headerText, openAgent } from '../supplier/request.ts'
import { signedHeaders, signingKey } from '../supplier/signature.ts'
import type { Inbox } from './receive.ts'
import { openSecret, proofOfTest, SUPPLIER_PATH, supplierSourceId, TEST_AGENT, testBody } from './sources.ts'

export interface WebhookDeps extends Pick<Context, 'db' | 'vault' | 'now' | 'newId'> {
  supplier: Pick<Supplier, 'createWebhook'>
  dialect: Pick<Dialect, 'signature' | 'paths'>
}

const urlOf = (publicUrl: string, path: string): string =>
  `${publicUrl.replace(/\/+$/, '')}${SUPPLIER_PATH}${path === '' ? '' : `/${path}`}`

/** The path of the next webhook that a person makes by hand: its address is known before the supplier gives a secret. */
const pathByHand = (existing: readonly Webhook[]): string =>
  existing.some(({ path }) => path === '') ? String(existing.length + 1) : ''

/**
 * Creates a webhook at the supplier and keeps its secret, sealed. The first webhook gets the bare path, and each later webhook
 * gets a longer path of its own. So each secret has its own endpoint, and webhooks replace each other without lost deliveries.
 *
 * @param publicUrl address under which the supplier reaches this service
 * @param first false when a webhook whose secret we do not hold may have the bare path at the supplier
 * @throws Failure `conflict`, reason `made_by_hand`, where people make webhooks in the supplier's dashboard
 * @throws Failure `unknown_outcome` when the webhook may exist at the supplier although we do not hold its secret
 */
export async function createWebhook(
  deps: WebhookDeps,
  publicUrl: string,
  actor: string,
  first = true,
): Promise<Webhook> {
  const { db, supplier, newId, dialect } = deps
  const existing = await db.query(allWebhooks())
  if (pathsOf(dialect).webhooks === null) {
    const url = urlOf(publicUrl, pathByHand(existing))
    const then = 'then run "quayside webhooks add --secret-file <file>" with its secret'
    throw conflict('made_by_hand', `webhooks are made in the supplier's dashboard: make one there to ${url}, ${then}`)
  }
  const path = !first || existing.some((webhook) => webhook.path === '') ? newId().slice(-12) : ''
  const url = urlOf(publicUrl, path)
  const { webhook, events, secret } = await supplier.createWebhook({ url, events: [...eventNames] })
  try {
    signingKey(secret, dialect.signature.secret)
  } catch (cause) {
    // It must not be stored, because every later start would fail.
    throw new Failure('unavailable', 'the supplier gave a signing secret that is too weak to be used', { cause })
  }
  return keep(deps, { id: webhook.id, path, url, events }, secret, { actor, action: 'webhook.create' })
}

/** Stores a webhook with its secret, sealed. */
async function keep(
  { db, vault, now, newId }: WebhookDeps,
  webhook: { id: string; path: string; url: string; events: string[] },
  secret: Secret,
  by: { actor: string; action: 'webhook.create' | 'webhook.add' },
): Promise<Webhook> {
  const { ciphertext, keyId } = vault.seal({ table: 'webhooks', row: webhook.id }, secret.reveal())
  const at = now()
  const row: Webhook = { ...webhook, createdAt: at, secret: ciphertext, keyId, retiredAt: null }
  const audit = insertAudit({ id: newId(), at, ...by, subject: webhook.id, detail: webhook.url })
  await db.commit([insertWebhook(row), audit])
  return row
}

/**
 * Keeps the secret of a webhook that a person made in the supplier's dashboard. Each has an address of its own, so that two are valid
 * at once during a rotation. Adding a secret again changes nothing.
 *
 * @throws Failure `invalid` when the secret cannot be used as the dialect says
 */
export async function addWebhook(deps: CheckDeps, publicUrl: string, secret: Secret, actor: string): Promise<Webhook> {
  const { db, vault, supplier, newId, dialect } = deps
  signingKey(secret, dialect.signature.secret)
  const existing = await db.query(allWebhooks())
  const text = signingKey(secret)
  const known = existing.find((row) => row.retiredAt === null && openSecret(vault, row).equals(text))
  if (known) return known
  const path = pathByHand(existing)
  const url = urlOf(publicUrl, path)
  // Where the supplier lists its webhooks, it has an id for this one. Without it the check would take it for a stranger.
  const none = { items: [] }
  const listing = pathsOf(dialect).webhooks === null ? none : await supplier.webhooks().catch(() => none)
  const listed: { id: string; url: string }[] = listing.items
  const id = listed.find((one) => one.url === url && existing.every((row) => row.id !== one.id))?.id ?? newId()
  return keep(deps, { id, path, url, events: [] }, secret, { actor, action: 'webhook.add' })
}

/**
 * Takes a new signing secret into use by a second webhook beside the existing webhook. From now on both are verified, each on
 * its own path, so that no delivery is lost in between. An event that comes through both webhooks has one effect.
 *
 * @returns the new webhook, and the ids of the webhooks that it replaces: each of these stays valid until it is retired
 * @throws Failure `conflict` when there is no webhook yet
 * @throws Failure `unknown_outcome` when the new webhook may exist at the supplier although we do not hold its secret
 */
export async function rotateWebhook(deps: WebhookDeps, publicUrl: string, actor: string) {
  const live = (await deps.db.query(allWebhooks())).filter(({ retiredAt }) => retiredAt === null)
  if (live.length === 0) {
    throw conflict('no_webhook', 'there is no webhook whose secret could be rotated: create one')
  }
  return { webhook: await createWebhook(deps, publicUrl, actor), replaces: live.map(({ id }) => id) }
}

/**
 * Takes the secret of a webhook out of use, once another webhook has taken over. A delivery that is still signed with the
 * secret is answered 200 and counted, and has no effect. Retiring twice is harmless.
 *
 * @throws Failure `not_found` for an unknown id
 * @throws Failure `conflict` when no later webhook has taken over: every delivery would be thrown away
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
  const audit = insertAudit({ id: newId(), at, actor, action: 'webhook.retire', subject: id, detail: row.url })
  if (await commitUnlessStale(db, [markRetired(row, at), audit])) return { ...row, retiredAt: at }
  // A concurrent call has retired the webhook, or it is the newest one, which nothing has replaced.
  const after = await read()
  if (after && after.retiredAt !== null) return after
  throw conflict('not_replaced', `no webhook has taken over from ${id} yet: rotate first`)
}

export interface CheckDeps extends WebhookDeps {
  supplier: Pick<Supplier, 'createWebhook' | 'webhooks'>
  /** The address where the supplier reaches this service; null when the supplier cannot reach it. */
  publicUrl: string | null
  log: Log
}

/** A webhook is healthy when it brought one of the last `DELIVERIES_MAX` deliveries within `DELIVERED_MS`. */
const DELIVERIES_MAX = 200
const DELIVERED_MS = 7 * 24 * 3_600_000

/** The check creates at most one webhook a day. Otherwise lost answers would leave one webhook after the other at the supplier. */
const REPLACE_GAP_MS = 24 * 3_600_000

/**
 * Compares the supplier's webhooks with the webhooks whose secret we hold.
 *
 * A webhook may lead here although we do not hold its secret, after a lost answer or after a restore from a backup. Only people can
 * remove such a webhook, so an alert names it. A healthy webhook of ours takes its place, else a new one.
 *
 * @returns `unheld`: the webhooks whose secret we do not hold; `gone`: the ids of our webhooks, without the retired ones, that the
 *   supplier does not list any more
 * @throws Failure when the supplier's webhooks cannot be read
 */
export async function checkWebhooks(deps: CheckDeps) {
  const { db, supplier, now, log, publicUrl } = deps
  const held = await db.query(allWebhooks())
  // The supplier has no list, or cannot reach this service, and never could: none of its webhooks can lead here.
  const hasNone = publicUrl === null && held.length === 0
  if (hasNone || pathsOf(deps.dialect).webhooks === null) return { unheld: [], gone: [] }
  const [theirs, before] = await Promise.all([supplier.webhooks(), unheldWebhooks(db)])
  const ids = new Set(held.map(({ id }) => id))
  const bases = [publicUrl?.replace(/\/+$/, ''), ...held.map(({ url }) => baseOf(url))]
  const leadsHere = (url: string): boolean => baseOf(url) !== undefined && bases.includes(baseOf(url))
  const at = now()
  const there = new Set(theirs.items.map(({ id }) => id))
  const live = held.filter(({ retiredAt }) => retiredAt === null)
  const newest = await db.query(listDeliveries({ from: idBound(at - DELIVERED_MS), limit: DELIVERIES_MAX }))
  // A webhook that delivers is healthy, even if the supplier lists it under another id, or not at all.
  const healthy = live.filter(({ path }) => newest.some(({ source }) => source === supplierSourceId(path)))
  const isHealthy = (one: string) => healthy.some(({ id, url }) => url === one && !there.has(id))
  const webhooks = theirs.items
    .filter(({ id, url }) => !ids.has(id) && leadsHere(url) && !isHealthy(url))
    .map(({ id, url }) => {
      const known = before.webhooks.find((one) => one.id === id) ?? { id, url, seenAt: at, replacedBy: null }
      return { ...known, replacedBy: known.replacedBy ?? healthy.at(-1)?.id ?? null }
    })
  const gone = live.filter((one) => !there.has(one.id) && !healthy.includes(one)).map(({ id }) => id)
  for (const id of gone) log.warn('webhook.gone', { id, detail: 'the supplier does not list it any more' })

  let seen: UnheldWebhooks = { webhooks, replacedAt: before.replacedAt }
  await db.commit([putUnheldWebhooks(seen, at), ...webhooks.map(({ id, url }) => unheldAlert(deps, id, url))])
  const open = webhooks.filter(({ replacedBy }) => replacedBy === null)
  const [first] = open
  if (first === undefined || at - before.replacedAt < REPLACE_GAP_MS) return { unheld: webhooks, gone }

  // The time is noted before the attempt, so that an attempt whose answer is lost counts too.
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

/** Returns the public address at the head of a webhook's address; undefined when the address does not lead to the endpoint. */
function baseOf(url: string): string | undefined {
  const end = url.lastIndexOf(SUPPLIER_PATH)
  return end > 0 && /^(\/[A-Za-z0-9_-]{1,64})?$/.test(url.slice(end + SUPPLIER_PATH.length))
    ? url.slice(0, end)
    : undefined
}

/** Makes the alert about a webhook whose secret we do not hold: once for each webhook, however often webhooks are compared. */
function unheldAlert(deps: CheckDeps, id: string, url: string) {
  const note =
    'a webhook at the supplier leads here under a secret that is not held: remove it in the pages of the supplier'
  return enqueueAlert(deps, { type: 'webhook_unheld', occasion: id, payload: { note, webhook: id, url } })
}

interface TestDeps extends CheckDeps {
  dialect: Pick<Dialect, 'signature' | 'paths' | 'event'>
  /** How long a whole answer may take. Default: 10 s, as suppliers wait. */
  testDeadlineMs?: number | undefined
}

/** Our answers to a test have a hundred bytes. */
const TEST_ANSWER_MAX = 64 * 1024

/** What may become of a test, and what a person does about it. */
const testFixes = {
  arrived: null,
  changed:
    'Let the proxy pass every header on, above all those that the dialect names. If a copy of this installation answers there, let the address lead here.',
  not_authentic:
    'Let the proxy pass body and headers on as they come, without reading or rewriting JSON. If another installation answers there, let the address lead here. With several processes, compare the clocks of their machines.',
  unresolved: 'Make a DNS record for the name, or correct publicUrl, then wait until the record is known everywhere.',
  unreachable:
    'Start the proxy, open the port in the firewall, or correct publicUrl. Some networks do not lead back to their own public address: then try it from elsewhere.',
  no_tls:
    'Give the proxy a complete and valid certificate for this name, or correct the scheme or port of publicUrl. An authority of your own belongs in NODE_EXTRA_CA_CERTS, and the supplier must know it too.',
  no_answer: 'Look whether the proxy reaches Quayside, and how long it waits for it.',
  redirected:
    'Suppliers do not follow redirects: set publicUrl to the final address, and end the redirect of this path.',
  another_program:
    'Let the proxy pass the path /webhooks to Quayside, unchanged. The port is listen.port, not that of the console.',
  not_let_in:
    'Let /webhooks pass without a password, a login page or a bot check: the signature protects it. If only addresses of the supplier are let in, this is what a test from here finds.',
  too_large: 'Let the proxy take bodies up to 256 KiB.',
  failing:
    'The proxy does not reach Quayside, or Quayside cannot store: see "quayside doctor" and the log of the proxy.',
  refused: 'Look into the log of the proxy: it does not pass on what the supplier sends.',
} as const

export type TestOutcome = keyof typeof testFixes
export const testOutcomes = Object.keys(testFixes) as [TestOutcome, ...TestOutcome[]]

/** Whether an answer is the 401 of our endpoint of deliveries, and not that of a proxy. */
const isNotAuthentic = (answer: unknown): boolean =>
  (answer as { error?: { code?: unknown } } | undefined)?.error?.code === 'unauthenticated'

/** @param proof what an installation answers that got the test as it was sent */
function outcomeOf(ended: Exchange, host: string, proof: string): [TestOutcome, detail: string] {
  if (ended.stage !== 'answered' && (ended.stage === 'not_sent' || ended.cause !== 'answer_too_large')) {
    const { cause } = ended
    if (/^(ENOTFOUND|EAI_)/.test(cause)) return ['unresolved', `the name of ${host} cannot be resolved (${cause})`]
    if (/CERT|SIGNATURE|ISSUER|_TLS_|_SSL_|EPROTO/.test(cause)) return ['no_tls', `TLS with ${host} fails (${cause})`]
    if (ended.stage === 'lost') return ['no_answer', `${host} took the delivery and gave no whole answer (${cause})`]
    return ['unreachable', `${host} takes no connection (${cause})`]
  }
  const { status } = ended
  const answer = ended.stage === 'answered' ? readJson(ended.body) : undefined
  const shown = textAt(answer, 'data.test')
  const said = `${host} answered ${status}`
  if (shown === proof) return ['arrived', `${host} took the delivery, and its signature was verified`]
  if (shown !== undefined)
    return ['changed', 'the signature was verified, but the delivery is not the one that was sent']
  if (status === undefined) return ['no_answer', `${host} gave no whole answer`]
  if (status >= 300 && status < 400) {
    return ['redirected', `${said}, a redirect to ${headerText(ended.headers, 'location') ?? 'nowhere'}`]
  }
  if (status === 401 && isNotAuthentic(answer)) {
    return ['not_authentic', 'a Quayside answered that the delivery is not authentic']
  }
  if ([401, 403, 407, 429].includes(status)) return ['not_let_in', `${said}, before Quayside had the delivery`]
  if (status < 300 || status === 404 || status === 405) return ['another_program', `${said}, and not as Quayside does`]
  if (status === 413) return ['too_large', `${said}: it does not take a body of a few kilobytes`]
  return status >= 500 ? ['failing', said] : ['refused', said]
}

/**
 * Sends a delivery to the public address of a webhook, signed with the secret that is held, and says whether it came back to this
 * installation. It has no effect, is stored nowhere, and is not counted among those of the supplier. Redirects are not followed.
 *
 * @param id default: the newest webhook that is valid
 * @throws Failure `not_found`; `conflict`, `no_webhook`; `invalid` where the secret itself would be sent to another address
 */
async function testWebhook(
  deps: TestDeps,
  publicUrl: string,
  { webhook: id, isElsewhere }: { webhook: string | undefined; isElsewhere: boolean },
  actor: string,
) {
  const { db, vault, dialect, newId, now, testDeadlineMs = 10_000 } = deps
  const rows = await db.query(allWebhooks())
  const row = rows.findLast((one) => (id === undefined ? one.retiredAt === null : one.id === id))
  if (!row && id !== undefined) throw new Failure('not_found', `there is no webhook ${id}`)
  if (!row) throw conflict('no_webhook', 'there is no webhook that could be tested: create one')
  if (row.retiredAt !== null) throw conflict('no_webhook', `the webhook ${row.id} is retired: nothing comes through it`)
  const to = new URL(urlOf(publicUrl, row.path))
  const url = `${to.origin}${to.pathname}`
  if (isElsewhere && dialect.signature.string === SECRET_ALONE && url !== row.url) {
    const message = `the dialect sends the secret itself, which goes to no address but ${row.url}`
    throw new Failure('invalid', message, { fields: [{ field: 'url', message }] })
  }
  const body = testBody(newId())
  const secret = openSecret(vault, row, dialect.signature.secret)
  const headers = {
    'content-type': 'application/json',
    'user-agent': TEST_AGENT,
    ...(dialect.event.header && { [dialect.event.header]: 'quayside.test' }),
    ...signedHeaders(dialect, { secret, id: newId(), body, at: now() }),
  }
  await db.commit([audited(deps, actor, 'webhook.test', row.id, url)])
  const agent = openAgent(1)
  const ended = await exchange(agent, {
    method: 'POST',
    origin: to.origin,
    path: to.pathname,
    headers,
    body: body.toString('utf8'),
    deadlineMs: testDeadlineMs,
    bodyMaxBytes: TEST_ANSWER_MAX,
  })
  await agent.destroy()
  const [outcome, detail] = outcomeOf(ended, to.host, proofOfTest(vault, dialect, headers, body))
  const fix = testFixes[outcome]
  const elsewhere = `the supplier sends to ${row.url}, and the test went to ${url}`
  const findings = [
    fix === null ? sound('delivery', detail) : failed('delivery', detail, fix),
    ...(url === row.url
      ? []
      : [doubtful('address', elsewhere, 'Rotate the webhook, so that the supplier has the address that is right.')]),
  ]
  const status = ended.stage === 'not_sent' ? null : (ended.status ?? null)
  return { webhook: row.id, url, healthy: outcome === 'arrived', outcome, status, findings }
}

/** What people do with webhooks, one after the other. */
export type WebhookActions = ReturnType<typeof webhookActions>

/** @param inbox reloads at once after every change: a delivery signed with a new secret may come before our answer is sent */
export function webhookActions({ inbox, ...deps }: TestDeps & { inbox: Pick<Inbox, 'reload'> }) {
  let last: Promise<unknown> = Promise.resolve()
  /** Runs actions one by one. A check after a webhook is created and before its secret is stored would replace the webhook. */
  function inTurn<T>(work: () => Promise<T>): Promise<T> {
    const turn = last.then(work).finally(inbox.reload)
    last = turn.catch(() => undefined)
    return turn
  }
  /** @param url our public address; default: the configured address */
  const address = (url: string | undefined): string => {
    const publicUrl = url ?? deps.publicUrl
    if (publicUrl !== null) return publicUrl
    throw new Failure('invalid', 'a webhook needs an address that the supplier can reach', {
      fields: [{ field: 'url', message: 'name one, or set publicUrl in the configuration' }],
    })
  }
  return {
    create: (url: string | undefined, actor: string) => inTurn(async () => createWebhook(deps, address(url), actor)),
    rotate: (url: string | undefined, actor: string) => inTurn(async () => rotateWebhook(deps, address(url), actor)),
    add: ({ secret, url }: { secret: string; url?: string | undefined }, actor: string) =>
      inTurn(async () => addWebhook(deps, address(url), new Secret(secret), actor)),
    retire: (id: string, actor: string) => inTurn(() => retireWebhook(deps, id, actor)),
    check: () => inTurn(() => checkWebhooks(deps)),
    /** Changes nothing, so that it waits for no other action, and none for it. */
    test: async ({ url, webhook }: { url?: string | undefined; webhook?: string | undefined }, actor: string) =>
      testWebhook(deps, address(url), { webhook, isElsewhere: url !== undefined }, actor),
  }
}

interface Provisioning extends Pick<Context, 'db' | 'now' | 'newId' | 'log'> {
  stores: readonly { id: string }[]
  storeOf: (id: string) => Pick<Store, 'provision'> | undefined
  /** Our public address; null when no shop can reach us. */
  publicUrl: string | null
}

const DAY_MS = 24 * 3_600_000

/**
 * Makes every shop send its orders here, again and again, because a shop switches a webhook off after a few failures. Without a
 * public address there are no webhooks, and the orders are polled. People are alerted once a day of a shop that refuses.
 */
export async function provisionShops({ stores, storeOf, publicUrl, ...context }: Provisioning): Promise<void> {
  if (publicUrl === null) return
  for (const { id: store } of stores) {
    const made = await storeOf(store)?.provision?.(storeWebhookUrl(publicUrl, store))
    if (!made) continue
    if (made.outcome === 'confirmed') {
      if (made.detail !== null) context.log.info('shop.webhook', { store, detail: made.detail })
      continue
    }
    context.log.warn('shop.webhook', { store, outcome: made.outcome, detail: made.detail })
    if (made.outcome === 'unavailable') continue
    const note = `${store} does not let Quayside make its webhook, so its orders are only polled: ${made.detail}`
    const occasion = `${store}:${Math.floor(context.now() / DAY_MS)}`
    await context.db.commit([enqueueAlert(context, { type: 'store_webhook', occasion, payload: { note, store } })])
  }
}

export const storeWebhookUrl = (publicUrl: string, store: string): string => `${publicUrl}/webhooks/stores/${store}`
