/**
 * The sources of deliveries: each webhook that we have at the supplier, and each store that signs what it sends. A source
 * knows who may send to its path and how an authentic body is read. Storing, repeats and retries are the same for all sources.
 */
import type { Context } from '../context.ts'
import { type Dialect, type EventName, eventNames, valueAt } from '../dialect/dialect.ts'
import { Failure } from '../errors.ts'
import { Secret } from '../secret.ts'
import type { Change } from '../storage/database.ts'
import type { Delivery } from '../storage/deliveries.ts'
import { enqueueAlert } from '../storage/outbox.ts'
import { hintPurchase, type Purchase, purchasesNamed } from '../storage/purchases.ts'
import { allWebhooks, type Webhook } from '../storage/webhooks.ts'
import type { Store, StoreOrderRead, StoreRequest } from '../stores/store.ts'
import { readJson, textAt } from '../supplier/records.ts'
import { faultOfHeaders, signingKey, verify } from '../supplier/signature.ts'
import type { Vault } from '../vault/vault.ts'

export interface Source {
  /** The id that is stored with each delivery: `supplier`, `supplier/<webhook>` or `stores/<store>`. */
  id: string
  /** The path of the source's endpoint, as a request names it. */
  path: string
  /** `replaced`: a newer webhook took over, and each counts its own deliveries. `retired`: its secret proves nothing any more. */
  state: 'live' | 'replaced' | 'retired'
  /** Returns the fault that the headers have, whatever the body is; undefined when only the body can show a fault. */
  faultOfHeaders(headers: Headers): string | undefined
  /** @param now epoch milliseconds */
  verify(request: StoreRequest, now: number): SourceVerification
}

/**
 * Reads from an authentic body what the delivery is about. Status and amounts are read from the supplier or store instead.
 *
 * @param named the event by a header, which no signature covers: it only chooses what is read
 */
export type ReadDelivery = (body: Buffer, named?: string | null) => DeliveryReading

export interface StoreSource extends Source {
  read: ReadDelivery
}

/** Node's `headersDistinct`. */
export type Headers = Record<string, string[] | undefined>

/** The values that identify an authentic delivery, beside its body. */
export interface DeliveryProof {
  deliveryId: string
  /** The 32 bytes of the signature: equal for equal deliveries. */
  mac: Buffer
  /** Epoch milliseconds; null where the signature covers no time. Such a delivery is never stale. */
  signedAt: number | null
  /** Epoch milliseconds, before which nothing acts on the delivery; left out: the time of its receipt. */
  notBefore?: number | undefined
  /** The event by a header, which no signature covers; left out where the body names it. */
  eventHeader?: string | undefined
}

export type SourceVerification =
  | ({ outcome: 'authentic' | 'stale' } & DeliveryProof)
  | { outcome: 'ping' }
  /** `reason` is for the metrics, never for the sender. */
  | { outcome: 'not_authentic'; reason: string }

/**
 * How the body begins that `webhooks test` sends. The spaces and the accent are there so that a proxy shows itself that writes JSON
 * again, or its text in another encoding.
 */
const TEST_BEGINS = Buffer.from('{ "quayside":  "a test of this webhook, d\u00e9j\u00e0 sign\u00e9", "test": "')
/** Makes a test longer than most deliveries are, so that a limit of a proxy shows itself. */
const TEST_PADDING = 'quayside '.repeat(900)
/** The sender of a test. No signature covers it: it only keeps a test that is refused out of what is counted of the supplier. */
export const TEST_AGENT = 'quayside webhooks test'

export const testBody = (id: string): Buffer =>
  Buffer.concat([TEST_BEGINS, Buffer.from(`${id}", "padding": "${TEST_PADDING}" }`)])

export const isTestBody = (body: Buffer): boolean => body.subarray(0, TEST_BEGINS.length).equals(TEST_BEGINS)

export const isSentByTest = (headers: Headers): boolean => headers['user-agent']?.[0] === TEST_AGENT

/**
 * Returns the text by which an installation shows that a test came here, unchanged: a MAC under a key that no other has, over the
 * body and the headers that the dialect reads and does not sign.
 */
export function proofOfTest(
  vault: Pick<Vault, 'bodyHmac'>,
  { signature, event }: Pick<Dialect, 'signature' | 'event'>,
  headers: Record<string, string | string[] | undefined>,
  body: Buffer,
): string {
  const read = [signature.deliveryIdHeader, event.header].map((name) => String(headers[name ?? ''] ?? ''))
  return vault.bodyHmac(Buffer.concat([Buffer.from(JSON.stringify(read)), body])).toString('hex')
}

/** The path under the public address where the supplier's deliveries come in. */
export const SUPPLIER_PATH = '/webhooks/supplier'

/** Returns the source id of a webhook. @param webhook the last piece of the webhook's path; empty for the first webhook */
export const supplierSourceId = (webhook: string): string => (webhook === '' ? 'supplier' : `supplier/${webhook}`)

/** Opens the signing secret of a webhook. @throws Failure `invalid` when the secret cannot be used */
export const openSecret = (vault: Vault, { id, secret, keyId }: Webhook, form?: 'utf8' | 'base64') =>
  signingKey(new Secret(vault.open({ table: 'webhooks', row: id }, secret, keyId).toString('utf8')), form)

/** A secret that was kept before the dialect said base64 fits nothing any more: it must not keep the service from starting. */
function keysOf(vault: Vault, row: Webhook, { signature }: Dialect) {
  const text = openSecret(vault, row)
  try {
    return [signature.secret === 'base64' ? openSecret(vault, row, 'base64') : text]
  } catch {
    return []
  }
}

/**
 * Returns a source for each webhook at the supplier. Opens every secret once, so that a request finds its keys in memory.
 *
 * @throws Failure `invalid` when the secret of a webhook cannot be used
 */
export async function supplierSources(context: Pick<Context, 'db' | 'vault'>, dialect: Dialect): Promise<Source[]> {
  const { db, vault } = context
  const rows = await db.query(allWebhooks())
  const newest = rows.findLast(({ retiredAt }) => retiredAt === null)?.id
  return rows.map((row) => {
    const { id, path, retiredAt } = row
    const secrets = keysOf(vault, row, dialect)
    return {
      id: supplierSourceId(path),
      path: path === '' ? SUPPLIER_PATH : `${SUPPLIER_PATH}/${path}`,
      state: retiredAt !== null ? 'retired' : id === newest ? 'live' : 'replaced',
      faultOfHeaders: (headers) => faultOfHeaders(dialect, headers),
      verify: ({ headers, body }, nowMs) => {
        const verified = verify({ dialect, secrets, headers, body, nowMs })
        if (!verified.valid && verified.reason !== 'stale') {
          return { outcome: 'not_authentic', reason: verified.reason }
        }
        const { valid, deliveryId, mac, timestampMs, notBefore } = verified
        const eventHeader = eventHeaderIn(headers, dialect)
        const outcome = valid ? 'authentic' : 'stale'
        return { outcome, deliveryId, mac, signedAt: timestampMs, notBefore, eventHeader }
      },
    }
  })
}

/** Longest name of an event; a longer one is none that a dialect has. */
const EVENT_MAX_LENGTH = 200

function eventHeaderIn(headers: Headers, { event }: Dialect): string | undefined {
  const [name, ...others] = (event.header === undefined ? undefined : headers[event.header]) ?? []
  return others.length > 0 ? undefined : name?.slice(0, EVENT_MAX_LENGTH)
}

/**
 * Returns the function that reads deliveries of a source. The source id is stored with each delivery, so any process can also
 * read the deliveries of a retired webhook.
 *
 * @throws Error when the configuration no longer has the store
 */
export function readerOf(source: string, dialect: Dialect, stores: readonly StoreSource[]): ReadDelivery {
  if (!source.startsWith(STORE_SOURCES)) return (body, named) => readDelivery(body, dialect, named)
  const store = stores.find(({ id }) => id === source)
  if (!store) throw new Error(`the configuration has no store that sends as ${source}`)
  return store.read
}

const STORE_SOURCES = 'stores/'

export const storeSourceId = (store: string): string => `${STORE_SOURCES}${store}`

/**
 * Returns the source of a store. The body only names an order. The order is read from the store, and taken as it is there now.
 *
 * @param asking called before the store is asked. The returned function takes in an order that was read after this call
 *
 * @returns undefined for a kind of store that sends no deliveries: its orders come over the API
 */
export function storeSource(
  id: string,
  { verify, readOrder }: Pick<Store, 'verify' | 'readOrder'>,
  asking: () => Promise<TakeOrder>,
): StoreSource | undefined {
  if (!verify || !readOrder) return undefined
  return {
    id: storeSourceId(id),
    path: `/webhooks/stores/${id}`,
    state: 'live',
    faultOfHeaders: () => undefined,
    verify: (request) => {
      const verified = verify(request)
      return verified.outcome === 'authentic' ? { ...verified, signedAt: null } : verified
    },
    read: (body) => ({
      kind: 'store_order',
      event: 'order',
      take: async () => {
        const takeRead = await asking()
        const read = await readOrder(body)
        if (read.outcome === 'ignored' || read.outcome === 'unreadable') return read
        if (read.outcome !== 'order')
          throw new Failure('unavailable', `the store did not answer for the order: ${read.detail}`)
        const taken = await takeRead(read.order)
        if (taken.outcome === 'unfinished') throw new Failure('unavailable', taken.detail)
        return taken
      },
    }),
  }
}

/** The part of a delivery that is believed: the event, and the ids of the order or product that it is about. */
export type DeliveryReading =
  | { kind: 'order'; event: EventName; supplierOrderId: string | undefined; externalOrderId: string | undefined }
  | { kind: 'product'; event: EventName; productId: string }
  | { kind: 'balance'; event: EventName }
  /** An event of a product, without the id of the product. */
  | { kind: 'nameless'; event: EventName }
  /** An order of a store. `take` reads the order from the store and takes it. */
  | { kind: 'store_order'; event: string; take: () => Promise<StoreOrderTaken> }
  | { kind: 'unknown_event' }
  | { kind: 'unreadable'; why: string }

/** `unfinished`: the readings of the order do not agree yet, so the order must be read again. */
export type StoreOrderTaken =
  | { outcome: 'taken' }
  | { outcome: 'ignored' | 'unreadable' | 'unfinished'; detail: string }

export type TakeOrder = (order: StoreOrderRead) => Promise<StoreOrderTaken>

/** The next state of a delivery, and the changes that are committed together with it. */
export interface DeliveryVerdict {
  set: Partial<Delivery> & Pick<Delivery, 'state'>
  changes: Change[]
}

export type HandlerDeps = Pick<Context, 'db' | 'now' | 'newId'>

/**
 * Reads the event and the ids from the body of an authentic delivery, and nothing else. A status, an amount or a key in the
 * body is ignored, because a GET request to the supplier decides.
 *
 * @param named the value of the header that names the event, where the dialect has one
 */
export function readDelivery(body: Buffer, { event: paths }: Dialect, named?: string | null): DeliveryReading {
  const json = readJson(body)
  if (json === undefined) return { kind: 'unreadable', why: 'the body is not JSON' }
  const name = paths.header === undefined ? textAt(json, paths.name) : named
  if (!name) return { kind: 'unreadable', why: `no event at ${paths.header ?? paths.name}` }
  const event = eventNames.find((known) => paths.names[known] === name)
  if (event === undefined) return { kind: 'unknown_event' }
  if (event === 'balance.low') return { kind: 'balance', event }

  const read = (event.startsWith('order.') ? [paths.orderId, paths.externalOrderId] : [paths.productId]).filter(
    (path) => path !== null,
  )
  const fault = read.find((path) => isPresent(json, path) && textAt(json, path) === undefined)
  if (fault !== undefined) return { kind: 'unreadable', why: `no id at ${fault}` }
  if (event.startsWith('order.')) {
    const supplierOrderId = textAt(json, paths.orderId)
    const externalOrderId = textAt(json, paths.externalOrderId)
    if (supplierOrderId === undefined && externalOrderId === undefined) {
      return { kind: 'unreadable', why: `no id at ${read.join(' nor at ')}` }
    }
    return { kind: 'order', event, supplierOrderId, externalOrderId }
  }
  // The dialect says that these events do not name their product: the next sync run reads what changed.
  if (paths.productId === null) return { kind: 'nameless', event }
  const productId = textAt(json, paths.productId)
  return productId === undefined
    ? { kind: 'unreadable', why: `no id at ${paths.productId}` }
    : { kind: 'product', event, productId }
}

const isPresent = (json: unknown, path: string): boolean => (valueAt(json, path) ?? null) !== null

/**
 * Joins an order event to our purchase and asks for a read of the purchase.
 *
 * The ids are first matched with our own rows. A delivery whose ids belong to different purchases changes no purchase, because
 * an order of another line must not bring its keys to this line.
 */
export async function joinOrder(
  { db, newId, now }: HandlerDeps,
  row: Delivery,
  { event, supplierOrderId, externalOrderId }: Extract<DeliveryReading, { kind: 'order' }>,
): Promise<DeliveryVerdict> {
  const [found, other] = await db.query(purchasesNamed(supplierOrderId ?? '', externalOrderId ?? ''))
  const read = { event, supplierOrderId: supplierOrderId ?? null, externalOrderId: externalOrderId ?? null }
  if (!found) return orphan(row, { newId, now }, read, 'no purchase of ours has this order id or reference')

  const agrees = (purchase: Purchase): boolean =>
    (externalOrderId === undefined || purchase.externalOrderId === externalOrderId) &&
    (supplierOrderId === undefined || (purchase.supplierOrderId ?? supplierOrderId) === supplierOrderId)
  if (other || !agrees(found)) {
    const verdict = orphan(row, { newId, now }, read, 'order id and reference do not belong to one purchase')
    const note = `a delivery names this purchase and another order or reference: ${supplierOrderId ?? 'no order id'}`
    const payload = { note, purchaseId: found.id, delivery: row.id }
    const mismatch = enqueueAlert({ newId, now }, { type: 'order_mismatch', occasion: found.id, payload })
    return { ...verdict, changes: [...verdict.changes, mismatch] }
  }
  return {
    set: { ...read, state: 'applied', purchaseId: found.id, finishedAt: now(), lastError: null },
    changes: [hintPurchase(found.id, now())],
  }
}

/** An event may come before its order is stored, or after a restore has lost the order. An orphan of a day was never ours. */
const ORPHAN_MAX_MS = 24 * 60 * 60_000

/** People are alerted of a delivery that is an orphan for this long. A delivery that only came too early is joined earlier. */
const ORPHAN_ALERT_MS = 15 * 60_000

function orphan(
  row: Delivery,
  { newId, now }: Pick<HandlerDeps, 'newId' | 'now'>,
  read: Partial<Delivery>,
  lastError: string,
): DeliveryVerdict {
  const at = now()
  const ageMs = at - row.receivedAt
  if (ageMs >= ORPHAN_MAX_MS) return { set: { ...read, state: 'ignored', finishedAt: at, lastError }, changes: [] }
  const note = 'the supplier announced an order that no purchase of ours knows'
  const payload = { note, source: row.source, delivery: row.id }
  // The occasion names the hour of receipt, so that an orphan causes one alert, and not one for each hour that it waits.
  const occasion = hourly(row.source, row.receivedAt)
  const late = enqueueAlert({ newId, now }, { type: 'orphan_delivery', occasion, payload })
  return {
    set: { ...read, state: 'orphan', notBefore: at + orphanDelayMs(ageMs), lastError },
    changes: ageMs >= ORPHAN_ALERT_MS ? [late] : [],
  }
}

/** An orphan waits for half its age: 5 s at first, 15 minutes from half an hour on. These are some 110 tries in a day. */
const orphanDelayMs = (ageMs: number): number => Math.min(Math.max(ageMs / 2, 5_000), 15 * 60_000)

/** Returns the verdict after the supplier was read. Of what the delivery says, only the event is kept. */
export const applied = ({ now }: Pick<HandlerDeps, 'now'>, event: string): DeliveryVerdict => ({
  set: { event, state: 'applied', finishedAt: now(), lastError: null },
  changes: [],
})

/** Returns the verdict on a low balance after the balance was read and recorded. Adds an alert, since only people can pay. */
export function balanceLow({ newId, now }: HandlerDeps, row: Delivery, event: EventName): DeliveryVerdict {
  const note = 'the supplier says that the balance is low'
  const payload = { note, delivery: row.id }
  const low = enqueueAlert({ newId, now }, { type: 'balance_low', occasion: hourly(row.source, now()), payload })
  return { ...applied({ now }, event), changes: [low] }
}

/** Returns the occasion of an alert that comes at most once an hour for one source. */
export const hourly = (source: string, at: number): string => `${source}:${Math.floor(at / 3_600_000)}`
