/**
 * The inbox verifies a delivery, stores it once and answers it. Nothing acts on a delivery in the request that brought it.
 *
 * An acknowledged delivery is committed and fsynced. A delivery that is not authentic leaves no row. `process.ts` works on
 * stored deliveries, also after a crash. A delivery is only a reason to read from the supplier or the store.
 */
import { strict as assert } from 'node:assert'
import type { Context } from '../context.ts'
import type { Dialect } from '../dialect/dialect.ts'
import type { CountActivity } from '../domain/activity.ts'
import { messageOf } from '../errors.ts'
import { first } from '../storage/database.ts'
import { deliveryTwins, insertDelivery } from '../storage/deliveries.ts'
import { enqueueAlert } from '../storage/outbox.ts'
import {
  type DeliveryProof,
  type Headers,
  hourly,
  isSentByTest,
  isTestBody,
  proofOfTest,
  type Source,
  supplierSources,
} from './sources.ts'

export interface ReceiveDeps extends Pick<Context, 'db' | 'vault' | 'now' | 'newId' | 'log'> {
  dialect: Dialect
  /** The stores that send deliveries. Default: none. */
  storeSources?: readonly Source[]
  /** Counts the outcome of a request. Reasons are for people who run the service, never for the sender. */
  countReceived: (outcome: Receipt['outcome'] | 'refused', reason: string) => void
  /** Counts an event for the plots by the hour. */
  count: CountActivity
  /** Called when a row was stored, so that there is a delivery to process. */
  onStored: () => void
  /** Asks for a sweep, at most once a minute: an authentic delivery was stale and never stored, so others may be lost. */
  onStale: () => void
}

/** The part of a request that is known before its body is read. */
export interface RequestHead {
  /** The path as the request names it, such as `/webhooks/supplier`. */
  path: string
  headers: Headers
}

export interface ReceivedRequest extends RequestHead {
  /** The raw bytes. */
  body: Buffer
}

export type Receipt =
  | { outcome: 'stored'; id: string }
  /** This delivery was stored before, under the given id. */
  | { outcome: 'duplicate'; id: string }
  | { outcome: 'not_authentic'; reason: string }
  /** The delivery is authentic, never stored, and outside the tolerated time. Only its first copy makes the clock suspect. */
  | { outcome: 'stale' }
  /** The delivery is authentic and came through a retired webhook. It is counted and not kept, and has no effect. */
  | { outcome: 'retired' }
  /** The sender only tests whether the address answers. */
  | { outcome: 'ping' }
  /** We sent it ourselves, to try the address. It is authentic, and nothing of it is kept. */
  | { outcome: 'test'; proof: string }
  /** No source has this path. */
  | { outcome: 'unknown_path' }

/** The refusals that path and headers alone can cause. */
export type HeadRefusal = Extract<Receipt, { outcome: 'unknown_path' | 'not_authentic' }>

export type Inbox = Awaited<ReturnType<typeof openInbox>>

/** Deliveries of one kind: the authentic and fresh deliveries of one source, or the deliveries refused for one reason. */
interface Traffic {
  count: number
  /** Epoch milliseconds. */
  lastAt: number
}

/** @throws Failure `invalid` when the secret of a webhook cannot be used */
export async function openInbox(deps: ReceiveDeps) {
  const { db, vault, now, countReceived } = deps
  let sources = await readSources(deps)
  const traffic = new Map<string, Traffic>()
  const refused = new Map<string, Traffic>()
  const openedAt = now()
  const misfits = watchMisfits(now)
  const countRefusal = (reason: string): void => {
    countIn(refused, reason, now())
    deps.count('refused')
  }
  const staleness = watchStaleness(deps, () => alertAllStale(deps))

  function refuse(refusal: HeadRefusal, headers: Headers): HeadRefusal {
    const reason = refusal.outcome === 'not_authentic' ? refusal.reason : ''
    if (isSentByTest(headers)) {
      countReceived('refused', 'test')
      return refusal
    }
    if (reason !== '') misfits.sawMisfit()
    countReceived(refusal.outcome, reason)
    countRefusal(reason || refusal.outcome)
    return refusal
  }

  /** Judges path and headers. @returns undefined when the body must be read, since only the body shows whether it was signed */
  function judge({ path, headers }: RequestHead): HeadRefusal | undefined {
    const source = sources.get(path)
    if (!source) return refuse({ outcome: 'unknown_path' }, headers)
    const reason = source.faultOfHeaders(headers)
    return reason === undefined ? undefined : refuse({ outcome: 'not_authentic', reason }, headers)
  }

  /**
   * Verifies and stores one delivery.
   *
   * @returns `stored` and `duplicate` only when the row is committed with an fsync
   * @throws Failure `unavailable` or `unknown_outcome` when the database fails: the sender must send the delivery again
   */
  async function receive({ path, headers, body }: ReceivedRequest): Promise<Receipt> {
    const source = sources.get(path)
    if (!source) return refuse({ outcome: 'unknown_path' }, headers)
    const receivedAt = now()
    const verified = source.verify({ headers, body }, receivedAt)
    if (verified.outcome === 'not_authentic') return refuse(verified, headers)
    if (verified.outcome === 'ping') {
      countReceived('ping', '')
      return verified
    }
    if (isTestBody(body)) {
      // A test says nothing about the supplier: neither about its clock, nor about its secret, nor whether it sends.
      countReceived('test', verified.outcome)
      if (verified.outcome === 'stale') return { outcome: 'stale' }
      return { outcome: 'test', proof: proofOfTest(vault, deps.dialect, headers, body) }
    }
    misfits.sawFit()
    if (verified.outcome === 'stale') return stale(source, verified, body)
    countIn(traffic, source.id, receivedAt)
    if (source.state === 'retired') {
      countReceived('retired', 'retired_webhook')
      return { outcome: 'retired' }
    }
    if (verified.signedAt !== null) staleness.sawFresh()
    const receipt = await storeDelivery(deps, source, receivedAt, verified, body)
    countReceived(receipt.outcome, source.state === 'replaced' ? 'replaced_webhook' : '')
    return receipt
  }

  /** Answers a stale delivery. A repeat changes nothing, whether the supplier or an attacker sends the delivery again. */
  async function stale({ id: source, state }: Source, proof: DeliveryProof, body: Buffer): Promise<Receipt> {
    const { deliveryId, mac, signedAt } = proof
    const identity = { source, deliveryId, bodyHmac: vault.bodyHmac(body), mac, signedAt: signedAt ?? now() }
    const twin = await first(db, deliveryTwins(identity))
    if (twin) {
      countReceived('duplicate', 'stale')
      return { outcome: 'duplicate', id: twin.id }
    }
    // A delivery signed with a retired secret says nothing about the clock.
    const seen = state === 'retired' ? 'counted' : staleness.sawStale(mac)
    countReceived('stale', seen === 'counted' ? 'stale' : 'repeated')
    countRefusal('stale')
    return { outcome: 'stale' }
  }

  return {
    judge,
    receive,
    /**
     * Reads the webhooks and their secrets again.
     *
     * @throws Failure `invalid` when a secret is too short, empty or padded; the secrets in use then stay in use
     */
    reload: async () => {
      sources = await readSources(deps)
    },
    /** Counts a delivery whose body was not read. @param reason such as `too_large` */
    countRefused: (reason: string) => {
      countReceived('refused', reason)
      countRefusal(reason)
    },
    /** Returns the traffic of each source since the start, by the id of the source. */
    traffic: () => new Map(traffic),
    /** Returns the refused deliveries since the start of the service, by reason. */
    refused: () => ({ since: openedAt, reasons: new Map(refused) }),
    /** Returns true while every authentic delivery is stale: the clock of this machine is probably wrong. */
    clockSuspect: staleness.suspect,
    /** Returns true while deliveries come and no signature fits: the secret is probably wrong. */
    secretSuspect: misfits.suspect,
  }
}

function countIn(kinds: Map<string, Traffic>, kind: string, at: number): void {
  kinds.set(kind, { count: (kinds.get(kind)?.count ?? 0) + 1, lastAt: at })
}

/** Stores a delivery once, before it is acknowledged. */
async function storeDelivery(
  deps: ReceiveDeps,
  { id: source }: Source,
  receivedAt: number,
  { deliveryId, mac, signedAt, notBefore = receivedAt, eventHeader }: DeliveryProof,
  body: Buffer,
): Promise<Receipt> {
  const { db, vault, newId } = deps
  const id = newId()
  // Where the supplier signs no time, the end of the moment is that of all equal MACs: see `MOMENT_MS` of the signature.
  const identity = { source, deliveryId, bodyHmac: vault.bodyHmac(body), mac, signedAt: signedAt ?? notBefore }
  const sealed = vault.seal({ table: 'deliveries', row: id }, body)
  const [stored] = await db.commit([
    insertDelivery({ id, ...identity, ...sealed, receivedAt, state: 'stored', notBefore, eventHeader }),
  ])
  deps.count('deliveries')
  if (stored === 1) {
    deps.onStored()
    return { outcome: 'stored', id }
  }
  // A refused insert does not prove that the row is there. So the row of the first copy is read before this copy is acknowledged.
  const twin = await first(db, deliveryTwins(identity))
  assert(twin, 'a delivery that was refused as a duplicate has a twin')
  return { outcome: 'duplicate', id: twin.id }
}

/** One or two wrong signatures come from strangers who try. Three within an hour, and no right signature, mean a wrong secret. */
const MISFITS_MIN = 3
const MISFITS_MS = 3_600_000

/** Watches whether deliveries come of which none has a right signature. */
function watchMisfits(now: () => number) {
  let misfitsAt: number[] = []
  return {
    sawMisfit: () => {
      misfitsAt = [...misfitsAt, now()].slice(-MISFITS_MIN)
    },
    sawFit: () => {
      misfitsAt = []
    },
    suspect: () => misfitsAt.length === MISFITS_MIN && misfitsAt.every((at) => Math.abs(now() - at) < MISFITS_MS),
  }
}

async function readSources(deps: ReceiveDeps): Promise<Map<string, Source>> {
  const sources = [...(await supplierSources(deps, deps.dialect)), ...(deps.storeSources ?? [])]
  return new Map(sources.map((source) => [source.path, source]))
}

/** Alerts people that all deliveries are stale. A later stale delivery tries again if this alert fails. */
function alertAllStale({ db, newId, now, log }: ReceiveDeps): void {
  const note =
    'three different deliveries were authentic and outside the tolerated time, and none was fresh: ' +
    'run "quayside doctor", which compares the clock of this machine with the supplier'
  const occasion = hourly('supplier', now())
  db.commit([enqueueAlert({ newId, now }, { type: 'all_stale', occasion, payload: { note } })]).catch(
    (error: unknown) => log.error('inbox.alert_lost', { type: 'all_stale', error: messageOf(error) }),
  )
}

/** Long enough for a few deliveries of a small shop, and so short that the suspicion ends soon after the clock is right. */
const WINDOW_MS = 10 * 60_000

/** One or two stale deliveries are replays or a slow queue. Three different ones and no fresh delivery mean a wrong clock. */
const STALE_MIN = 3

/** A stale delivery may stand for lost deliveries. Many stale deliveries within this time cause one sweep. */
const SWEEP_GAP_MS = 60_000

/** A wrong clock makes every delivery stale. One alert within this time is enough. */
const ALERT_GAP_MS = 3_600_000

/**
 * How many counted deliveries are remembered; the oldest are dropped first. Only a sender who replays more captured
 * deliveries than this number gets a delivery counted twice. The remembered deliveries take about 1 MB.
 */
const COUNTED_MAX = 10_000

/**
 * Watches whether deliveries are stale because the clock of this machine is wrong, and not because of the sender.
 *
 * Each delivery counts once. `onStale` runs at most once a minute, `onSuspect` at most once an hour.
 */
function watchStaleness({ now, onStale }: Pick<ReceiveDeps, 'now' | 'onStale'>, onSuspect: () => void) {
  const counted = new Set<string>()
  let staleAt: number[] = []
  let freshAt = Number.NEGATIVE_INFINITY
  let sweptAt = Number.NEGATIVE_INFINITY
  let alertedAt = Number.NEGATIVE_INFINITY

  function suspect(): boolean {
    const at = now()
    const since = at - WINDOW_MS
    // When `freshAt` lies in the future, the clock was put back after that delivery came.
    if (freshAt > since && freshAt <= at) return false
    return staleAt.length === STALE_MIN && staleAt.every((seenAt) => seenAt > since)
  }

  function countOnce(mac: Buffer): boolean {
    const key = mac.toString('base64')
    if (counted.has(key)) return false
    counted.add(key)
    for (const oldest of counted) {
      if (counted.size <= COUNTED_MAX) break
      counted.delete(oldest)
    }
    return true
  }

  return {
    suspect,
    sawFresh() {
      freshAt = now()
    },
    /** @param mac the `mac` of the delivery. A delivery that was counted before is a replay and is not counted again */
    sawStale(mac: Buffer): 'counted' | 'repeated' {
      if (!countOnce(mac)) return 'repeated'
      const at = now()
      staleAt = [...staleAt, at].slice(-STALE_MIN)
      // A clock that was put back must not silence `onStale` or `onSuspect` until the clock has caught up.
      if (Math.abs(at - sweptAt) >= SWEEP_GAP_MS) {
        sweptAt = at
        onStale()
      }
      if (suspect() && Math.abs(at - alertedAt) >= ALERT_GAP_MS) {
        alertedAt = at
        onSuspect()
      }
      return 'counted'
    },
  }
}
