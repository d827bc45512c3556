import { createHmac } from 'node:crypto'
import { Agent, fetch } from 'undici'
import type { Dialect } from '../supplier/dialect.ts'
import type { Delivery, Webhook, Webhooks } from './webhooks.ts'

/** A receiver that takes longer is counted as not reached: it is to store the delivery, not to act on it. */
const deadlineMs = 10_000

export interface Sender {
  /** Sends what is due, webhook by webhook in order; resolves with the number of attempts that were made. */
  deliverDue: () => Promise<number>
  /** Breaks off what is on its way; that stays due. */
  close: () => Promise<void>
}

export function createSender({
  webhooks,
  dialect,
  now,
}: {
  webhooks: Webhooks
  dialect: Dialect
  now: () => number
}): Sender {
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
      // Refused, reset, too late: for the schedule it is all the same.
      return null
    }
  }

  const drain = async (webhook: Webhook): Promise<number> => {
    let attempts = 0
    // A failed attempt is due later, so this ends unless the clock runs away.
    for (let next = webhooks.nextDue(webhook.id); next; next = webhooks.nextDue(webhook.id)) {
      const status = await attempt(webhook, next)
      if (closing.signal.aborted) break
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
    deliverDue: async () => {
      if (closing.signal.aborted) return 0
      const counts = await Promise.all(webhooks.list().map((webhook) => running.get(webhook.id) ?? start(webhook)))
      return counts.reduce((total, count) => total + count, 0)
    },
    close: async () => {
      closing.abort()
      await Promise.allSettled(running.values())
      await agent.destroy()
    },
  }
}

/** HMAC-SHA256 over `timestamp.body`, keyed with the secret's text. The contract's section 6, rule 2. */
export const sign = (secret: string, timestamp: string, body: string): Buffer =>
  createHmac('sha256', secret).update(`${timestamp}.${body}`).digest()

/** The headers that authenticate one attempt, laid out as the dialect says. `at` in epoch milliseconds. */
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
