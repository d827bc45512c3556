import type { OutboxRow } from '../storage/outbox.ts'

/** What makes an alert; the flows of the inbox have it among their needs. */
interface Making {
  newId: () => string
  /** Epoch milliseconds. */
  now: () => number
}

/**
 * One alert for people, as a row of the outbox.
 *
 * @param occasion with the type, what is told once: an hour, an id. A second alert of the same occasion is not stored
 * @param payload what to say: ids and a sentence, nothing secret
 */
export function alert(
  { newId, now }: Making,
  type: string,
  occasion: string,
  payload: { note: string; [field: string]: string },
) {
  const at = now()
  return {
    id: newId(),
    kind: 'alert',
    type,
    dedupeKey: `alert:${type}:${occasion}`,
    payload: JSON.stringify(payload),
    state: 'due',
    notBefore: at,
    createdAt: at,
  } satisfies Partial<OutboxRow>
}

/** An occasion that comes at most once an hour for one source. */
export const hourly = (source: string, at: number): string => `${source}:${Math.floor(at / 3_600_000)}`
