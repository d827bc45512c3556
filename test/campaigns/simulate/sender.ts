/** Sends the sandbox's deliveries to whatever listens, over a road on which faults may stand. */
import { type Delivery, signedHeaders, type Webhook } from '../../../src/sandbox/webhooks.ts'
import type { Chance } from './chance.ts'
import type { SimSupplier } from './supplier.ts'
import type { Timeline } from './timeline.ts'

/** One attempt at one delivery, as faults may change it. */
export interface Attempt {
  webhook: Webhook
  delivery: Delivery
  headers: Record<string, string>
  body: string
  /** On its way to us. */
  travelMs: number
  /** It never arrives. */
  lost: boolean
  /** It never arrives, and the sender believes that it did. */
  swallowed: boolean
  /** It arrives, and our answer does not: the sender comes again. */
  answerLost: boolean
  /** It arrives once more, this much later. */
  againMs: number | undefined
}

/** A delivery that was answered with 2xx: from here on it must be found in the database. */
export interface Acknowledged {
  deliveryId: string
  body: string
  at: number
}

/** Takes a delivery in; undefined when no process answers. */
export type WebhookEndpoint = (
  url: string,
  headers: Record<string, string[]>,
  body: Buffer,
) => Promise<number | undefined>

export interface SenderOptions {
  supplier: SimSupplier
  timeline: Timeline
  chance: Chance
  endpoint: WebhookEndpoint
}

/** A receiver that takes longer is counted as not reached. */
const PATIENCE_MS = 10_000

export type Sender = ReturnType<typeof createSender>

export function createSender({ supplier, timeline, chance, endpoint }: SenderOptions) {
  const { webhooks } = supplier.world
  const hooks = new Set<(attempt: Attempt) => void>()
  const acknowledged: Acknowledged[] = []
  const draining = new Set<string>()
  let kickAt = Number.POSITIVE_INFINITY

  const kick = (): void => {
    for (const webhook of webhooks.list()) {
      if (!draining.has(webhook.id) && webhooks.nextDue(webhook.id)) void drain(webhook)
    }
  }
  supplier.changed.add(kick)

  async function drain(webhook: Webhook): Promise<void> {
    draining.add(webhook.id)
    for (let next = webhooks.nextDue(webhook.id); next; next = webhooks.nextDue(webhook.id)) {
      const status = await attempt(webhook, next)
      webhooks.record(next, status ?? null)
      if (status === undefined || status >= 300) comeAgain()
    }
    draining.delete(webhook.id)
  }

  /** Wakes when the next delivery that failed is due again. */
  function comeAgain(): void {
    const due = webhooks.newest(200).filter(({ state, dueAt }) => state === 'due' && dueAt > timeline.now())
    const next = Math.min(...due.map(({ dueAt }) => dueAt))
    if (next === Number.POSITIVE_INFINITY || (kickAt > timeline.now() && kickAt <= next)) return
    kickAt = next
    timeline.after(next - timeline.now(), () => {
      kick()
      comeAgain()
    })
  }

  async function attempt(webhook: Webhook, delivery: Delivery): Promise<number | undefined> {
    const { deliveryId, body } = delivery
    const signed = signedHeaders(supplier.dialect, { secret: webhook.secret, deliveryId, body, at: timeline.now() })
    const one: Attempt = {
      webhook,
      delivery,
      body,
      headers: { 'content-type': 'application/json', ...signed },
      travelMs: chance.between(1, 30),
      lost: false,
      swallowed: false,
      answerLost: false,
      againMs: undefined,
    }
    for (const hook of hooks) hook(one)
    if (one.swallowed) return 200
    await timeline.sleep(Math.min(one.travelMs, PATIENCE_MS))
    if (one.lost) return undefined
    if (one.againMs !== undefined) timeline.after(one.againMs, () => void arrive(one))
    const late = one.travelMs > PATIENCE_MS
    if (late) timeline.after(one.travelMs - PATIENCE_MS, () => void arrive(one))
    const status = late ? undefined : await within(timeline, PATIENCE_MS - one.travelMs, arrive(one))
    return one.answerLost ? undefined : status
  }

  const arrive = ({ webhook, headers, body, delivery }: Attempt): Promise<number | undefined> =>
    bring(webhook.url, headers, body, delivery.deliveryId)

  /** Brings a delivery to the endpoint now, and notes it when it is acknowledged. */
  async function bring(
    url: string,
    headers: Record<string, string>,
    body: string,
    deliveryId: string,
  ): Promise<number | undefined> {
    const distinct = Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, [value]]))
    const status = await endpoint(url, distinct, Buffer.from(body))
    if (status !== undefined && status >= 200 && status < 300) {
      acknowledged.push({ deliveryId, body, at: timeline.now() })
    }
    return status
  }

  return { hooks, acknowledged, kick, bring }
}

/** @returns undefined when it takes longer */
function within<T>(timeline: Timeline, ms: number, work: Promise<T>): Promise<T | undefined> {
  return new Promise((resolve) => {
    const stop = timeline.after(ms, () => resolve(undefined))
    void work.then((value) => {
      stop()
      resolve(value)
    })
  })
}
