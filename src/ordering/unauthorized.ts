import { Failure } from '../errors.ts'
import type { Change } from '../storage/database.ts'
import { oweAlert } from '../storage/outbox.ts'
import type { Ordering } from './context.ts'

/** Until the key is mended each request would be refused again; a minute costs nobody an order. */
const PAUSE_MS = 60_000

/**
 * The supplier refuses the API key: buying pauses, whichever request met it first.
 *
 * @returns the alert, one an hour: the person who mends the key needs no second one
 */
export function pauseUnauthorized(ordering: Ordering): Change {
  const now = ordering.now()
  ordering.pace.pausedUntil = now + PAUSE_MS
  const payload = { note: 'the supplier refuses the API key: buying pauses until it is mended' }
  return oweAlert(ordering, { type: 'unauthorized', occasion: String(Math.floor(now / 3_600_000)), payload })
}

/** Whether a read failed because of the API key. */
export const isUnauthorized = (error: unknown): boolean => error instanceof Failure && error.reason === 'unauthorized'
