/** A store: buys from us, hears our callbacks through the real adapter, and keeps a record of its own. */
import { createHmac, timingSafeEqual } from 'node:crypto'
import { Dispatcher } from 'undici'
import type { Chance } from './chance.ts'
import type { Life } from './life.ts'
import type { Timeline } from './timeline.ts'

export const CALLBACK_URL = 'https://store.test/callbacks'

/** One callback on its way, as faults may change it. */
export interface CallbackTransit {
  travelMs: number
  refused: string | undefined
  /** Answered instead of 204; recorded all the same when `recorded`. */
  status: number
  recorded: boolean
  backMs: number
  answerLost: boolean
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

/** Refusals that come before a byte of a callback has left. */
const UNSENT: readonly (string | undefined)[] = ['ECONNREFUSED', 'ENOTFOUND']
/** A process that hears of such a refusal has noted it after this time. */
const NOTED_MS = 1_000

/** Standard Webhooks' usual tolerance. */
const TOLERANCE_MS = 300_000

export type SimStore = ReturnType<typeof createStore>

export function createStore({ timeline, chance, secret }: StoreOptions) {
  const hooks = new Set<(transit: CallbackTransit) => void>()
  const listeners = new Set<(heard: Heard) => void>()
  const heard: Heard[] = []
  /** Callback -> the body under which it came first. */
  const bodies = new Map<string, string>()
  /** Callbacks that came again with another body, and when they came first. */
  const changed: { id: string; firstAt: number }[] = []
  /** Callback -> when a byte of it may have left for the first time. */
  const begun = new Map<string, number>()
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
      if (before !== body) changed.push({ id, firstAt: heard.find((one) => one.id === id)?.at ?? 0 })
      return true
    }
    bodies.set(id, body)
    const {
      type,
      timestamp: createdAt,
      data,
    } = JSON.parse(body) as Pick<Heard, 'type' | 'data'> & { timestamp: string }
    const at = timeline.now()
    const one = { id, type, data, at, begunAt: begun.get(id) ?? at, timestamp: Date.parse(createdAt) }
    heard.push(one)
    for (const listener of listeners) listener(one)
    return true
  }

  /** Connections of one process to the store. */
  class Connections extends Dispatcher {
    readonly life: Life

    constructor(life: Life) {
      super()
      this.life = life
    }

    override dispatch(options: Dispatcher.DispatchOptions, handler: Dispatcher.DispatchHandler): boolean {
      const { life } = this
      const transit: CallbackTransit = {
        travelMs: chance.between(1, 30),
        backMs: chance.between(1, 30),
        refused: undefined,
        status: 204,
        recorded: true,
        answerLost: false,
      }
      for (const hook of hooks) hook(transit)
      const id = String((options.headers as Record<string, string>)['webhook-id'])
      const isFirst = !begun.has(id)
      // What was noted right before a pause leaves right after it.
      if (isFirst) begun.set(id, life.pausedFrom())
      let over = false
      const controller = {
        paused: false,
        aborted: false,
        reason: null,
        rawHeaders: null,
        rawTrailers: null,
        pause: () => {},
        resume: () => {},
        abort: (reason: Error) => fail(reason),
      }
      const fail = (error: Error): void => {
        if (over) return
        over = true
        handler.onResponseError?.(controller, error)
      }
      const answer = (status: number): void => {
        if (over) return
        over = true
        // The body is a stream, which takes up to three turns of the event loop to end.
        const ended = timeline.underway()
        setImmediate(() => setImmediate(() => setImmediate(ended)))
        handler.onResponseStart?.(controller, status, {}, '')
        handler.onResponseEnd?.(controller, {})
      }
      const { refused } = transit
      if (!UNSENT.includes(refused)) handler.onRequestStart?.(controller, {})
      timeline.after(transit.travelMs, () => {
        if (refused !== undefined) {
          life.reach(() => {
            fail(Object.assign(new Error(refused), { code: refused }))
            timeline.after(NOTED_MS, () => {
              if (isFirst && UNSENT.includes(refused) && !life.isDead()) begun.delete(id)
            })
          })
          return
        }
        const taken = transit.recorded ? take(options.headers as Record<string, string>, String(options.body)) : true
        if (transit.answerLost) return
        timeline.after(transit.backMs, () => life.reach(() => answer(taken ? transit.status : 401)))
      })
      return true
    }
  }

  return {
    hooks,
    listeners,
    heard,
    changed,
    counts,
    connections: (life: Life): Dispatcher => new Connections(life),
  }
}
