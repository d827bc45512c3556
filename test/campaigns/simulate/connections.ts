/** The road between one process and a store: under the real adapter, in place of its sockets. */
import { Dispatcher } from 'undici'
import type { Life } from './life.ts'
import type { Timeline } from './timeline.ts'

/** One request to a store on its way, as faults may change it. */
export interface StoreTransit {
  travelMs: number
  /** No answer: the code of the error. */
  refused: string | undefined
  backMs: number
  answerLost: boolean
  /** The connection breaks in the middle of the answer. */
  cut?: true
}

export interface StoreAnswer {
  status: number
  headers: Record<string, string | string[]>
  body: string
}

/** A request that has begun its way. */
export interface Journey {
  transit: StoreTransit
  /** What the store does when the request arrives; undefined: it gives no answer. */
  arrive: () => StoreAnswer | undefined
  /** The request was refused before a byte of it left, and its sender knows. */
  unsent?: () => void
}

/** Refusals that come before a byte of a request has left. */
const UNSENT: readonly (string | undefined)[] = ['ECONNREFUSED', 'ENOTFOUND']

/** @param depart begins the way of a request */
export function storeConnections(
  { timeline, life }: { timeline: Timeline; life: Life },
  depart: (options: Dispatcher.DispatchOptions) => Journey,
): Dispatcher {
  return new Connections(timeline, life, depart)
}

class Connections extends Dispatcher {
  readonly timeline: Timeline
  readonly life: Life
  readonly depart: (options: Dispatcher.DispatchOptions) => Journey

  constructor(timeline: Timeline, life: Life, depart: Connections['depart']) {
    super()
    this.timeline = timeline
    this.life = life
    this.depart = depart
  }

  override dispatch(options: Dispatcher.DispatchOptions, handler: Dispatcher.DispatchHandler): boolean {
    const { timeline, life } = this
    const { transit, arrive, unsent } = this.depart(options)
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
    const answer = ({ status, headers, body }: StoreAnswer): void => {
      if (over) return
      over = true
      // The body is a stream, which takes up to three turns of the event loop to end.
      const ended = timeline.underway()
      setImmediate(() => setImmediate(() => setImmediate(ended)))
      handler.onResponseStart?.(controller, status, headers, '')
      const bytes = Buffer.from(body)
      if (bytes.length > 0)
        handler.onResponseData?.(controller, transit.cut ? bytes.subarray(0, bytes.length >> 1) : bytes)
      if (transit.cut) handler.onResponseError?.(controller, broken('UND_ERR_SOCKET'))
      else handler.onResponseEnd?.(controller, {})
    }
    const { refused } = transit
    if (!UNSENT.includes(refused)) handler.onRequestStart?.(controller, {})
    timeline.after(transit.travelMs, () => {
      if (refused !== undefined) {
        life.reach(() => {
          fail(broken(refused))
          if (UNSENT.includes(refused)) unsent?.()
        })
        return
      }
      const answered = arrive()
      if (transit.answerLost || !answered) return
      timeline.after(transit.backMs, () => life.reach(() => answer(answered)))
    })
    return true
  }
}

const broken = (code: string): Error => Object.assign(new Error(code), { code })
