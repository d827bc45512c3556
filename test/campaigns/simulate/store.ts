/** A store: buys from us, hears our callbacks through the real adapter, and keeps a record of its own. */
import { createHmac, timingSafeEqual } from 'node:crypto'
import type { Dispatcher } from 'undici'
import type { SellingStore } from '../../../src/listings/assess.ts'
import { backendStore } from '../../../src/stores/backend/backend.ts'
import type { Store } from '../../../src/stores/store.ts'
import type { Vault } from '../../../src/vault/vault.ts'
import { sellingPolicy } from '../../support/selling.ts'
import type { Chance } from './chance.ts'
import { type Journey, type StoreTransit, storeConnections } from './connections.ts'
import type { Life } from './life.ts'
import type { Timeline } from './timeline.ts'

export const STORE = 'sim-ab12cd34'
const CALLBACK_URL = 'https://store.test/callbacks'

/** What a process knows of its store, and opens its adapter with. */
export interface SimStore {
  /** Faults, asked for each request. */
  hooks: Set<(transit: CallbackTransit) => void>
  /** Callbacks that a backend recorded; a shop records none. */
  heard: Heard[]
  /** Callbacks that came again with another body, each with when it came first, and what it says now. */
  changed: (Pick<Heard, 'id' | 'data'> & { firstAt: number })[]
  selling: SellingStore & { delayMinutes?: number; growth?: 'buy' | 'ask' }
  /** Where the store reaches Quayside; null: it sends nothing. */
  publicUrl: string | null
  open: (parts: OpeningParts) => Store
}

export interface OpeningParts {
  life: Life
  vault: Vault
  now: () => number
  newId: () => string
  timeout: (ms: number) => AbortSignal
}

/** One callback on its way, or one request to a shop. */
export interface CallbackTransit extends StoreTransit {
  /** Answered instead of 204; recorded all the same when `recorded`. */
  status: number
  recorded: boolean
}

/** A callback as it was recorded, once for each id. */
export interface Heard {
  id: string
  type: string
  at: number
  /** When a byte of it may have left for the first time. */
  begunAt: number
  /** The instant that it names: when it came to be, by the clock of the machine. */
  timestamp: number
  data: Record<string, unknown>
}

export interface StoreOptions {
  timeline: Timeline
  chance: Chance
  /** Signing secret, as both sides hold it. */
  secret: Buffer
}

/** What a shop sells, as its configuration may have it. */
export function shopSelling(chance: Chance, create: 'publish' | null): SimStore['selling'] {
  const unpublishGone = chance.odds(0.5)
  const delayMinutes = chance.pick([0, 0, 0, 5])
  const growth = chance.pick([undefined, 'buy', 'ask'] as const)
  const policy = { ...sellingPolicy(), products: { create, unpublishGone } }
  return { id: STORE, policy, delayMinutes, ...(growth && { growth }) }
}

/** What leaves for a store, bent by the faults of the moment. */
export function transitOf(chance: Chance, hooks: SimStore['hooks']): CallbackTransit {
  const transit: CallbackTransit = {
    travelMs: chance.between(1, 30),
    backMs: chance.between(1, 30),
    refused: undefined,
    status: 204,
    recorded: true,
    answerLost: false,
  }
  for (const hook of hooks) hook(transit)
  return transit
}

/** A process that hears of such a refusal has noted it after this time. */
const NOTED_MS = 1_000

/** Standard Webhooks' usual tolerance. */
const TOLERANCE_MS = 300_000

export function createStore({ timeline, chance, secret }: StoreOptions): SimStore {
  const hooks: SimStore['hooks'] = new Set()
  const heard: Heard[] = []
  /** Callback -> the body under which it came first. */
  const bodies = new Map<string, string>()
  const changed: SimStore['changed'] = []
  /** Callback -> its attempts of which a byte may have left, each by when. Two processes may try at once. */
  const begun = new Map<string, Set<{ at: number }>>()
  const counts = { repeated: 0, refused: 0 }

  function take(headers: Record<string, string>, body: string): boolean {
    const { 'webhook-id': id = '', 'webhook-timestamp': timestamp = '', 'webhook-signature': signature = '' } = headers
    const mac = createHmac('sha256', secret).update(`${id}.${timestamp}.${body}`).digest('base64')
    const fresh = Math.abs(timeline.now() - Number(timestamp) * 1_000) <= TOLERANCE_MS
    const authentic =
      signature.length === mac.length + 3 && timingSafeEqual(Buffer.from(`v1,${mac}`), Buffer.from(signature))
    if (!fresh || !authentic) {
      counts.refused += 1
      return false
    }
    const before = bodies.get(id)
    if (before !== undefined) {
      counts.repeated += 1
      const firstAt = heard.find((one) => one.id === id)?.at ?? 0
      if (before !== body) changed.push({ id, firstAt, data: (JSON.parse(body) as Heard).data })
      return true
    }
    bodies.set(id, body)
    const {
      type,
      timestamp: createdAt,
      data,
    } = JSON.parse(body) as Pick<Heard, 'type' | 'data'> & { timestamp: string }
    const at = timeline.now()
    const one = {
      id,
      type,
      data,
      at,
      begunAt: Math.min(at, ...[...(begun.get(id) ?? [])].map((attempt) => attempt.at)),
      timestamp: Date.parse(createdAt),
    }
    heard.push(one)
    return true
  }

  /** A callback leaves a process. */
  function depart(life: Life, options: Dispatcher.DispatchOptions): Journey {
    const transit = transitOf(chance, hooks)
    const headers = options.headers as Record<string, string>
    const id = String(headers['webhook-id'])
    // What was noted right before a pause leaves right after it.
    const attempt = { at: life.pausedFrom() }
    const attempts = begun.get(id) ?? new Set()
    begun.set(id, attempts.add(attempt))
    return {
      transit,
      arrive: () => {
        const taken = transit.recorded ? take(headers, String(options.body)) : true
        return { status: taken ? transit.status : 401, headers: {}, body: '' }
      },
      unsent: () =>
        void timeline.after(NOTED_MS, () => {
          if (!life.isDead()) attempts.delete(attempt)
        }),
    }
  }

  return {
    hooks,
    heard,
    changed,
    selling: { id: STORE, policy: sellingPolicy() },
    publicUrl: null,
    open: ({ life, vault, ...needs }) =>
      backendStore({
        id: STORE,
        ...needs,
        callbackUrl: CALLBACK_URL,
        secretsOf: () => [vault.subKey(`callback:${STORE}`)],
        connections: storeConnections({ timeline, life }, (options) => depart(life, options)),
      }),
  }
}
