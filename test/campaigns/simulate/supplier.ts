/** The sandbox without its server: the real world and endpoints, answering requests that never were on a wire. */
import type { Dialect, ErrorKind } from '../../../src/dialect/dialect.ts'
import { createBuckets } from '../../../src/sandbox/api.ts'
import { generatedCatalogue } from '../../../src/sandbox/catalogue.ts'
import { idFrom } from '../../../src/sandbox/chance.ts'
import { type Answer, routesOf } from '../../../src/sandbox/endpoints.ts'
import { createFaults } from '../../../src/sandbox/faults.ts'
import type { OrderRequest } from '../../../src/sandbox/orders.ts'
import { errorBody } from '../../../src/sandbox/records.ts'
import { Refusal, refusalFacts } from '../../../src/sandbox/refusal.ts'
import { type ApiCall, readIdempotencyKey, readOrderRequest } from '../../../src/sandbox/requests.ts'
import { openWorld } from '../../../src/sandbox/world.ts'
import type { Chance } from './chance.ts'
import type { Timeline } from './timeline.ts'

/** A request as it reaches the supplier. */
export interface Asked {
  method: 'GET' | 'POST'
  /** Path under the base address. */
  path: string
  query: URLSearchParams
  headers: Record<string, string>
  body: string
}

/** An answer as it leaves the supplier. */
export interface Given {
  status: number
  headers: Record<string, string>
  body: Buffer
}

/** What a fault does instead of running a request; undefined leaves it alone. */
export type Instead = (asked: Asked) => ErrorKind | Given | undefined

export interface SupplierOptions {
  /** What the supplier does, which may be less than its documentation promises. */
  dialect: Dialect
  timeline: Timeline
  chance: Chance
  apiKey: string
  balanceMinor: number
  offers: number
}

/** An answer of an endpoint, or whatever a fault put in its place. */
type Reply = Answer & { headers?: Record<string, string> }

export const COMPLETE_AFTER_MS = 400
const REQUESTS_PER_MINUTE = 600

export type SimSupplier = ReturnType<typeof openSupplier>

export function openSupplier({ dialect, timeline, chance, apiKey, balanceMinor, offers }: SupplierOptions) {
  const { now } = timeline
  const random = chance.next
  const faults = createFaults()
  const seed = chance.between(1, 2 ** 31)
  const world = openWorld({
    dialect,
    faults,
    now,
    random,
    seed,
    balanceMinor,
    balanceLowMinor: 5_000,
    catalogue: generatedCatalogue(offers, seed),
    completeAfterMs: COMPLETE_AFTER_MS,
  })
  const routes = routesOf({ world, dialect, faults, requestsPerMinute: REQUESTS_PER_MINUTE, openapi: {} })
  const take = createBuckets(REQUESTS_PER_MINUTE, now)
  const instead = new Set<Instead>()
  const waits = new Set([COMPLETE_AFTER_MS])
  const changed = new Set<() => void>()
  const said = { limited: 0 }
  const settings = {
    apiKey,
    /** Stock is looked at before the key is: a repeat may be answered that there is none. */
    stockBeforeKey: false,
    /** Two requests with one key that overlap are both run. */
    notAtomic: false,
  }

  /** Something may have moved: orders that are due, deliveries that are due. */
  const move = (): void => {
    if (world.advance() > 0) later()
    for (const tell of changed) tell()
  }
  const later = (): void => {
    for (const ms of waits) timeline.after(ms, move)
  }

  const refusal = (kind: ErrorKind, message: string, requestId: string): Answer => ({
    status: refusalFacts(dialect, kind).status,
    body: errorBody(dialect, kind, message, requestId),
  })

  function run(asked: Asked, overlapped: boolean, requestId: string): Reply {
    const route = routes.find(({ method, path }) => method === asked.method.toLowerCase() && meets(path, asked.path))
    if (!route) return refusal('not_found', 'There is no such address.', requestId)
    if (!route.open && asked.headers[dialect.headers.apiKey] !== settings.apiKey) {
      return refusal('unauthenticated', 'A valid API key is required.', requestId)
    }
    for (const act of instead) {
      const other = act(asked)
      if (typeof other === 'string') return refusal(other, 'The request could not be run.', requestId)
      if (other) return other
    }
    const headers = Object.fromEntries(Object.entries(asked.headers).map(([name, value]) => [name, [value]]))
    const id = route.path.endsWith('/:id') ? decodeURIComponent(asked.path.split('/').at(-1) ?? '') : ''
    const call: ApiCall = { query: asked.query, headers, body: Buffer.from(asked.body), id }
    try {
      if (route.createsOrder) lookAtKey(call, overlapped)
      return route.endpoint(call)
    } catch (error) {
      if (error instanceof Refusal) return refusal(error.kind, error.message, requestId)
      throw error
    }
  }

  function lookAtKey(call: ApiCall, overlapped: boolean): void {
    const name = dialect.headers.idempotencyKey
    // The ledger shows the mark, so that a reader sees which charge came of it.
    if (settings.notAtomic && overlapped) call.headers[name] = [`${readIdempotencyKey(dialect, call)}#again`]
    if (!settings.stockBeforeKey) return
    const wanted: OrderRequest = readOrderRequest(dialect, call)
    const offer = world.offers.get(wanted.productId)
    const left = offer && offer.withdrawnAt === null ? offer.localStock + offer.providerStock : 0
    if (left < wanted.quantity) throw new Refusal('out_of_stock', 'The product is currently out of fulfilment stock.')
  }

  return {
    world,
    faults,
    instead,
    settings,
    waits,
    changed,
    dialect,
    said,
    move,
    /** Runs a request now. @param overlapped another one with the same key was run since this one came in */
    handle: (asked: Asked, overlapped = false): Given => {
      const allowance = take('key')
      const requestId = idFrom(random, 'req')
      const headers: Record<string, string> = {
        'content-type': 'application/json',
        [dialect.headers.requestId]: requestId,
        [dialect.headers.rateLimit]: String(allowance.limit),
        [dialect.headers.rateRemaining]: String(allowance.remaining),
        [dialect.headers.rateReset]: String(Math.ceil(allowance.fullAt / 1_000)),
      }
      if (!allowance.allowed) {
        said.limited += 1
        headers[dialect.headers.retryAfter] = String(Math.ceil(allowance.waitMs / 1_000))
      }
      const answer: Reply = allowance.allowed
        ? run(asked, overlapped, requestId)
        : refusal('rate_limited', 'Too many requests.', requestId)
      if (asked.method === 'POST') {
        later()
        for (const tell of changed) tell()
      }
      const body = Buffer.isBuffer(answer.body) ? answer.body : Buffer.from(JSON.stringify(answer.body))
      return { status: answer.status, headers: { ...headers, ...answer.headers }, body }
    },
    /** Changes an offer by hand; subscribers are notified. */
    changeOffer: (id: string, change: Parameters<typeof world.offers.change>[1]): void => {
      world.offers.change(id, change)
      for (const tell of changed) tell()
    },
  }
}

function meets(pattern: string, path: string): boolean {
  const pieces = path.split('/')
  const wanted = pattern.split('/')
  return pieces.length === wanted.length && wanted.every((piece, place) => piece === ':id' || piece === pieces[place])
}
