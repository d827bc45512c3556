/** The road between one process and the supplier: under the real client, in place of its sockets. */
import type { Dispatcher } from 'undici'
import type { Network } from '../../../src/supplier/request.ts'
import type { Chance } from './chance.ts'
import type { Life } from './life.ts'
import type { Asked, Given, SimSupplier } from './supplier.ts'
import type { Timeline } from './timeline.ts'

export const SUPPLIER_ORIGIN = 'https://supplier.test'
const BASE_PATH = '/v1'

/** One request on its way, as faults may change it before it leaves. */
export interface Trip {
  asked: Asked
  /** Where it was to be sent. */
  origin: string
  /** Name of the process that sends it. */
  from: string
  /** Its idempotency key, when it is to create an order. */
  key: string | undefined
  connectMs: number
  /** No connection: the code of the error. */
  refused: string | undefined
  /** From the first byte to the supplier, and there until it is run. Together at most the time to settle. */
  travelMs: number
  runAfterMs: number
  /** It never arrives. */
  lost: boolean
  backMs: number
  /** What becomes of the answer: it arrives, it does not, the connection breaks, or breaks in the middle of the body. */
  answer: 'whole' | 'silence' | 'reset' | 'cut'
  /** What the answer is changed to on its way, one after the other. */
  changes: ((given: Given) => Given)[]
}

export interface Road {
  /** Faults, asked for each request. */
  hooks: Set<(trip: Trip) => void>
  /** Called with each request right after its first byte was written, and when its sender no longer waits for it. */
  watchers: Set<{ written(trip: Trip): void; ended(trip: Trip): void }>
  /** The network as one process sees it. */
  of(process: { name: string; life: Life }): Network
}

export interface RoadOptions {
  supplier: SimSupplier
  timeline: Timeline
  chance: Chance
}

export function createRoad({ supplier, timeline, chance }: RoadOptions): Road {
  const hooks: Road['hooks'] = new Set()
  const watchers: Road['watchers'] = new Set()
  /** Idempotency key -> how often it was run. */
  const runs = new Map<string, number>()

  function tripOf(options: Dispatcher.DispatchOptions, from: string): Trip {
    const url = new URL(options.path, SUPPLIER_ORIGIN)
    const asked: Asked = {
      method: options.method as Asked['method'],
      path: url.pathname.slice(BASE_PATH.length),
      query: url.searchParams,
      headers: options.headers as Record<string, string>,
      body: typeof options.body === 'string' ? options.body : '',
    }
    const creates = asked.method === 'POST' && asked.path === '/orders'
    return {
      asked,
      origin: String(options.origin),
      from,
      refused: undefined,
      lost: false,
      answer: 'whole',
      changes: [],
      key: creates ? asked.headers[supplier.dialect.headers.idempotencyKey] : undefined,
      connectMs: chance.between(0, 5),
      travelMs: chance.between(2, 40),
      runAfterMs: 0,
      backMs: chance.between(2, 40),
    }
  }

  function arrive(trip: Trip, answered: (given: Given) => void): void {
    const before = trip.key === undefined ? 0 : (runs.get(trip.key) ?? 0)
    const run = (): void => {
      const times = trip.key === undefined ? 0 : (runs.get(trip.key) ?? 0)
      if (trip.key !== undefined) runs.set(trip.key, times + 1)
      answered(supplier.handle(trip.asked, times > before))
    }
    if (trip.runAfterMs > 0) timeline.after(trip.runAfterMs, run)
    else run()
  }

  function send(trip: Trip, life: Life, handler: Dispatcher.DispatchHandler): void {
    let abandoned = false
    const controller = {
      paused: false,
      aborted: false,
      reason: null,
      rawHeaders: null,
      rawTrailers: null,
      pause: () => {},
      resume: () => {},
      abort: () => {
        abandoned = true
        end()
      },
    } satisfies Dispatcher.DispatchController
    let waits = false
    const end = (): void => {
      if (waits) for (const watcher of watchers) watcher.ended(trip)
      waits = false
    }
    const hear = (act: () => void) => () => life.reach(() => (abandoned ? undefined : act()))
    const broken = (code: string): void => {
      end()
      handler.onResponseError?.(controller, Object.assign(new Error(code), { code }))
    }
    const answered = (given: Given): void => {
      const seen = trip.changes.reduce((now, change) => change(now), given)
      if (trip.answer === 'silence') return
      const arrived = () => {
        if (trip.answer === 'reset') {
          broken('ECONNRESET')
          return
        }
        handler.onResponseStart?.(controller, seen.status, seen.headers, '')
        const body = trip.answer === 'cut' ? seen.body.subarray(0, seen.body.length >> 1) : seen.body
        if (!abandoned) handler.onResponseData?.(controller, body)
        if (abandoned) return
        if (trip.answer === 'cut') broken('UND_ERR_SOCKET')
        else {
          end()
          handler.onResponseEnd?.(controller, {})
        }
      }
      timeline.after(trip.backMs, hear(arrived))
    }
    const connected = (): void => {
      if (trip.refused !== undefined) {
        broken(trip.refused)
        return
      }
      try {
        handler.onRequestStart?.(controller, {})
      } catch (error) {
        handler.onResponseError?.(controller, error as Error)
        return
      }
      waits = true
      for (const watcher of watchers) watcher.written(trip)
      if (!trip.lost) timeline.after(trip.travelMs, () => arrive(trip, answered))
    }
    timeline.after(trip.connectMs, hear(connected))
  }

  return {
    hooks,
    watchers,
    of: ({ name, life }) => ({
      open: () => ({
        dispatch: (options, handler) => {
          const trip = tripOf(options, name)
          for (const hook of hooks) hook(trip)
          send(trip, life, handler)
          return true
        },
        close: () => Promise.resolve(),
      }),
      after: life.after,
    }),
  }
}
