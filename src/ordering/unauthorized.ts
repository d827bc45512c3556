import { Failure } from '../errors.ts'
import type { Change } from '../storage/database.ts'
import { oweEffect } from '../storage/outbox.ts'
import type { Ordering } from './context.ts'

/** Until the key is mended each request would be refused again; a minute costs nobody an order. */
const PAUSE_MS = 60_000

/**
 * The supplier refuses the API key: buying pauses, whichever request met it first.
 *
 * @returns the alert, one an hour: the person who mends the key needs no second one
 */
export function pauseUnauthorized({ newId, now: clock, pace }: Ordering): Change {
  const now = clock()
  pace.pausedUntil = now + PAUSE_MS
  return oweEffect({
    id: newId(),
    kind: 'alert',
    type: 'unauthorized',
    dedupeKey: `alert:unauthorized:${Math.floor(now / 3_600_000)}`,
    payload: JSON.stringify({ note: 'the supplier refuses the API key: buying pauses until it is mended' }),
    state: 'due',
    notBefore: now,
    createdAt: now,
  })
}

/** Whether a read failed because of the API key. */
export const isUnauthorized = (error: unknown): boolean => error instanceof Failure && error.reason === 'unauthorized'
