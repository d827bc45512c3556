/** What must hold at every instant, checked when a request for an order is written: by the row that its key names. */
import type Connection from 'better-sqlite3'
import { generationOf, isOurs } from '../../support/references.ts'
import { BUSY_MAX_MS } from './disk.ts'
import { BUG } from './fault-store.ts'
import { SUPPLIER_ORIGIN, type Trip } from './network.ts'
import type { World } from './world.ts'

interface Row {
  state: string
  body: string
  externalOrderId: string
  leaseUntil: number | null
  lastSentAt: number | null
  cancelRequestedAt: number | null
  sent: number
}

const ROW = `
  select p.state, p.body, p.external_order_id as externalOrderId, p.lease_until as leaseUntil,
    p.last_sent_at as lastSentAt, p.cancel_requested_at as cancelRequestedAt,
    (select count(*) from purchase_attempts a where a.purchase_id = p.id and a.kind = 'place' and a.stage = 'sent'
      and a.number = p.sends) as sent
  from purchases p where p.idempotency_key = ?`

export type Watch = ReturnType<typeof createWatch>

export function createWatch(world: World) {
  const { road, host, timeline, log, dialect } = world
  const broken: string[] = []
  /** Key -> the bytes it was first sent with, and their reference. */
  const firstSent = new Map<string, { body: string; reference: string }>()
  /** Key -> its requests that a sender waits for. */
  const inFlight = new Map<string, number>()
  const sends: { at: number; repeat: boolean }[] = []
  /** The wall clock was moved lately: instants in rows mean little. */
  let clockMovedAt = Number.NEGATIVE_INFINITY
  const row = (() => {
    let of: Connection.Database | undefined
    let statement: Connection.Statement<[string], Row> | undefined
    return (key: string): Row | undefined => {
      // A restore opens another database.
      if (of !== host.connection()) {
        of = host.connection()
        statement = of.prepare<[string], Row>(ROW)
      }
      return statement?.get(key)
    }
  })()

  function violate(text: string): void {
    broken.push(text)
    log.add('watch', 'broken', { text })
  }

  function written(trip: Trip): void {
    if (trip.origin !== SUPPLIER_ORIGIN) violate(`a request went to ${trip.origin}`)
    const { key } = trip
    if (trip.asked.method !== 'POST' || key === undefined) return
    const reference = referenceIn(trip)
    if (!isOurs(reference)) return
    sends.push({ at: timeline.now(), repeat: firstSent.has(key) })
    const first = firstSent.get(key) ?? { body: trip.asked.body, reference }
    firstSent.set(key, first)
    if (first.body !== trip.asked.body) violate(`${reference}: one key, other bytes`)
    inFlight.set(key, (inFlight.get(key) ?? 0) + 1)
    if ((inFlight.get(key) ?? 0) > 1) violate(`${reference}: two requests with one key at once`)
    const intent = row(key)
    if (intent?.state !== 'sending' || intent.sent === 0) {
      violate(`${reference}: sent without a stored intent (${intent?.state ?? 'no row'})`)
      return
    }
    if (intent.body !== trip.asked.body) violate(`${reference}: other bytes than are stored`)
    const wall = timeline.now() + host.clockOffsetMs()
    if (timeline.now() - clockMovedAt < 1_800_000) return
    const deadlineMs = (dialect.settleSeconds * 1_000) / 3
    if ((intent.leaseUntil ?? 0) < wall + deadlineMs) violate(`${reference}: its lease ends before its request may`)
    // A busy disk stores a cancellation that much later than it was asked for, and an intent may come before it.
    const cancelledAt = (intent.cancelRequestedAt ?? Number.POSITIVE_INFINITY) + BUSY_MAX_MS
    if ((intent.lastSentAt ?? 0) > cancelledAt) {
      violate(`${reference}: sent after its cancellation was stored`)
    }
  }

  log.listeners.add((what, { isError, error }) => {
    // A supplier that is away and a lost race are warnings: nothing else may keep a purchase from being handled.
    if (what === 'purchase.error' && isError && error !== BUG) violate(`a purchase could not be handled: ${error}`)
  })
  road.watchers.add({
    written,
    ended: ({ key }) => {
      if (key !== undefined) inFlight.set(key, (inFlight.get(key) ?? 1) - 1)
    },
  })
  world.restored.add(() => {
    // What a restore took out is read from its shop once more, with fewer units where some were refunded since. A backend hands the
    // same units in, but what is bought again of them depends on the keys that came: the restored database lacks some of them.
    for (const [key, { reference }] of firstSent) {
      if (world.settings.store !== 'backend' || generationOf(reference) > 1) firstSent.delete(key)
    }
  })
  const deaths: number[] = []
  host.deaths.add(() => {
    // A dead process waits for nothing any more.
    inFlight.clear()
    deaths.push(timeline.now())
  })
  return {
    broken,
    violate,
    sends,
    deaths,
    clockHasMoved: (): boolean => clockMovedAt > 0,
    clockMovedAt: (): number => clockMovedAt,
    clockMoved: (): void => {
      clockMovedAt = timeline.now()
    },
  }
}

/** The body is ours and JSON; whatever is not has no reference. */
function referenceIn({ asked }: Trip): string | null {
  const match = /"(q1\.[^"]+)"/.exec(asked.body)
  return match?.[1] ?? null
}
