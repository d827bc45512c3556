import { createHmac } from 'node:crypto'
import { Agent, fetch } from 'undici'
import type { Dialect, EventName } from '../dialect/dialect.ts'
import { bytesFrom, idFrom } from './chance.ts'
import type { Order } from './orders.ts'
import { recordOf, recordsOf } from './records.ts'
import type { Ground } from './world.ts'

export interface Webhook {
  id: string
  url: string
  /** Our names of the events that the webhook is registered for. */
  events: EventName[]
  /** The secret is shown once, in the answer that creates the webhook. */
  secret: string
  createdAt: number
}

/** One queued signed request. Two rows with one delivery ID are a duplicate delivery. */
export interface Delivery {
  seq: number
  deliveryId: string
  webhookId: string
  event: EventName
  orderId: string | null
  /** The signed bytes, the same at every attempt. */
  body: string
  state: 'due' | 'delivered' | 'dropped' | 'dead'
  attempts: number
  dueAt: number
  lastStatus: number | null
  createdAt: number
}

export interface EventSubject {
  order?: Order
  /** The keys of the order; sent only when the dialect has a path for them. */
  keys?: string[]
  productId?: string
}

export type Webhooks = ReturnType<typeof keepWebhooks>

/** The most webhooks. Rotations need far fewer: only a client in an endless loop creates more. */
export const webhooksMax = 50

/** Waits between attempts: 1 s, 5 s, 30 s, 2 min, 10 min, 1 h, 6 h, 24 h. If the ninth attempt fails too, a delivery is dead. */
const waitsMs = [1_000, 5_000, 30_000, 120_000, 600_000, 3_600_000, 21_600_000, 86_400_000]

/** A reordered delivery waits for the next delivery of its webhook, but not longer than this. */
const reorderMaxMs = 5_000

/** Keeps webhooks and their deliveries. `emit` runs in the transaction of its cause: both are stored, or neither is. */
export function keepWebhooks({ db, dialect, faults, now, random }: Ground) {
  const rows = db.prepare<[], WebhookRow>(
    'select id, url, events, secret, created_at as createdAt from webhooks order by created_at, rowid',
  )
  const insert = db.prepare<[WebhookRow]>(
    'insert into webhooks (id, url, events, secret, created_at) values (@id, @url, @events, @secret, @createdAt)',
  )
  const columns = `seq, delivery_id as deliveryId, webhook_id as webhookId, event, order_id as orderId, body, state,
    attempts, due_at as dueAt, last_status as lastStatus, created_at as createdAt`
  const add = db.prepare(
    `insert into deliveries (delivery_id, webhook_id, event, order_id, body, state, rank, held, due_at, created_at)
     select ?, ?, ?, ?, ?, ?, coalesce(max(seq), 0) + 1, ?, ?, ? from deliveries`,
  )
  // A held delivery goes right behind the newest delivery. Its rank ends in .5, between the whole ranks of the others.
  const release = db.prepare(
    `update deliveries set held = 0, due_at = ?, rank = (select max(seq) from deliveries) + 0.5
     where webhook_id = ? and held = 1 and state = 'due' and seq < ?`,
  )
  const nextDue = db.prepare<[string, number], Delivery>(
    `select ${columns} from deliveries where webhook_id = ? and state = 'due' and due_at <= ?
     order by rank, seq limit 1`,
  )
  const record = db.prepare(
    'update deliveries set state = ?, attempts = attempts + 1, last_status = ?, due_at = ?, held = 0 where seq = ?',
  )
  const resend = db.prepare(
    `update deliveries set state = 'due', attempts = 0, held = 0, due_at = ?
     where seq = (select min(seq) from deliveries where delivery_id = ?)`,
  )
  const newest = db.prepare<[number], Delivery>(`select ${columns} from deliveries order by seq desc limit ?`)
  const list = (): Webhook[] => rows.all().map((row) => ({ ...row, events: JSON.parse(row.events) as EventName[] }))

  const enqueue = (webhook: Webhook, event: EventName, subject: EventSubject, body: string): void => {
    const about = { event, externalOrderId: subject.order?.externalOrderId, productId: productOf(subject) }
    const deliveryId = idFrom(random, 'dlv')
    const dropped = faults.take('drop-delivery', about)
    const held = dropped ? undefined : faults.take('reorder-deliveries', about)
    const copies = dropped || !faults.take('duplicate-delivery', about) ? 1 : 2
    const dueAt = now() + (held ? (held.delayMs ?? reorderMaxMs) : 0)
    const state = dropped ? 'dropped' : 'due'
    let firstSeq: number | bigint = 0
    for (let copy = 1; copy <= copies; copy += 1) {
      const order = subject.order?.id ?? null
      const added = add.run(deliveryId, webhook.id, event, order, body, state, held ? 1 : 0, dueAt, now())
      if (copy === 1) firstSeq = added.lastInsertRowid
    }
    if (!held && !dropped) release.run(now(), webhook.id, firstSeq)
  }

  return {
    list,
    /** Creates a webhook with a new secret of 32 random bytes. */
    create: (url: string, events: EventName[]): Webhook => {
      const secret = `whsec_${bytesFrom(random, 32).toString('hex')}`
      const webhook = { id: idFrom(random, 'wh'), url, events, secret, createdAt: now() }
      insert.run({ ...webhook, events: JSON.stringify(events) })
      return webhook
    },
    emit: (event: EventName, subject: EventSubject): void => {
      if (dialect.event.names[event] === null) return
      const wanting = list().filter((webhook) => webhook.events.includes(event))
      if (wanting.length === 0) return
      // In a dialect without event ids, none is drawn. Otherwise the draw would change all later ids of a seeded run.
      const id = dialect.eventId === null ? '' : idFrom(random, 'evt')
      const body = JSON.stringify(recordOf(recordsOf(dialect).event(event), { ...subject, id, at: now() }))
      for (const webhook of wanting) enqueue(webhook, event, subject, body)
    },
    nextDue: (webhookId: string): Delivery | undefined => nextDue.get(webhookId, now()),
    /** @param status the status of the answer, or null without an answer */
    record: ({ seq, attempts }: Delivery, status: number | null): void => {
      const wait = waitsMs[attempts]
      const delivered = status !== null && status >= 200 && status < 300
      const state = delivered ? 'delivered' : wait === undefined ? 'dead' : 'due'
      record.run(state, status, now() + (wait ?? 0), seq)
    },
    /** Queues a delivery again, whatever its state. Returns false when no delivery has this ID. */
    resend: (deliveryId: string): boolean => resend.run(now(), deliveryId).changes > 0,
    newest: (count: number): Delivery[] => newest.all(count),
  }
}

type WebhookRow = Omit<Webhook, 'events'> & { events: string }

const productOf = ({ order, productId }: EventSubject): string | undefined => productId ?? order?.productId

/** A receiver that takes longer counts as not reached: it should store the delivery first, and act on it later. */
const deadlineMs = 10_000

/** @param onAttempt learns of each attempt, with the instant at which it began and the status of its answer, null without one */
export function createSender(
  { dialect, now }: Pick<Ground, 'dialect' | 'now'>,
  webhooks: Webhooks,
  onAttempt: (delivery: Delivery, at: number, status: number | null) => void,
) {
  const agent = new Agent()
  const closing = new AbortController()
  const running = new Map<string, Promise<number>>()

  const attempt = async (webhook: Webhook, delivery: Delivery): Promise<number | null> => {
    const { deliveryId, body } = delivery
    try {
      const response = await fetch(webhook.url, {
        method: 'POST',
        headers: {
          'content-type': 'application/json',
          ...signedHeaders(dialect, { secret: webhook.secret, deliveryId, body, at: now() }),
        },
        body,
        redirect: 'manual',
        signal: AbortSignal.any([closing.signal, AbortSignal.timeout(deadlineMs)]),
        dispatcher: agent,
      })
      await response.body?.cancel()
      return response.status
    } catch {
      // The schedule treats a refused, a reset and a late connection alike.
      return null
    }
  }

  const drain = async (webhook: Webhook): Promise<number> => {
    let attempts = 0
    // After a failed attempt a delivery is due later, so this loop ends.
    for (let next = webhooks.nextDue(webhook.id); next; next = webhooks.nextDue(webhook.id)) {
      const at = now()
      const status = await attempt(webhook, next)
      if (closing.signal.aborted) break
      onAttempt(next, at, status)
      webhooks.record(next, status)
      attempts += 1
    }
    return attempts
  }

  const start = (webhook: Webhook): Promise<number> => {
    const started = drain(webhook).finally(() => running.delete(webhook.id))
    running.set(webhook.id, started)
    return started
  }

  return {
    /** Sends due deliveries, in order for each webhook; resolves with the number of attempts. */
    deliverDue: async (): Promise<number> => {
      if (closing.signal.aborted) return 0
      const counts = await Promise.all(webhooks.list().map((webhook) => running.get(webhook.id) ?? start(webhook)))
      return counts.reduce((total, count) => total + count, 0)
    },
    /** Aborts the deliveries in flight, which stay due. */
    close: async (): Promise<void> => {
      closing.abort()
      await Promise.allSettled(running.values())
      await agent.destroy()
    },
  }
}

/** Returns the HMAC-SHA256 of `timestamp.body`, keyed with the secret's text, by section 6, rule 2 of the contract. */
export const sign = (secret: string, timestamp: string, body: string): Buffer =>
  createHmac('sha256', secret).update(`${timestamp}.${body}`).digest()

/** Returns the headers that authenticate one attempt, by the dialect. `at` is in epoch milliseconds. */
export function signedHeaders(
  { signature }: Dialect,
  { secret, deliveryId, body, at }: { secret: string; deliveryId: string; body: string; at: number },
): Record<string, string> {
  const timestamp = String(signature.timestampUnit === 'ms' ? at : Math.floor(at / 1000))
  const text = `${signature.prefix}${sign(secret, timestamp, body).toString(signature.encoding)}`
  const id = signature.deliveryIdHeader === null ? {} : { [signature.deliveryIdHeader]: deliveryId }
  return signature.timestamp.in === 'header'
    ? { [signature.header]: text, [signature.timestamp.header]: timestamp, ...id }
    : { [signature.header]: `${signature.timestamp.field}=${timestamp}${signature.separator ?? ','}${text}`, ...id }
}
