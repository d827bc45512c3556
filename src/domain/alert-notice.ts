/**
 * What a channel is to say of alerts, from how they stand and what it has said: the newest state counts, so that a channel that was
 * away says what is true then.
 */

import type { StoredKind } from './alert-kinds.ts'

export const severities = ['warning', 'critical'] as const
/** `critical`: money or keys are at stake, or nothing is sold. */
export type Severity = (typeof severities)[number]

/** One alert, and what a channel has said of it. Instants in epoch milliseconds, here and below. */
export interface NoticeSubject {
  id: string
  type: StoredKind
  severity: Severity
  raisedAt: number
  endedAt: number | null
  acknowledgedAt: number | null
  mutedUntil: number | null
  /** Null: nothing yet. */
  said: 'raised' | 'ended' | null
  at: number | null
  times: number | null
}

export interface ChannelPolicy {
  /** Less severe alerts are not sent. */
  least: Severity
  /** After this time an open alert that no person has acknowledged is said again. */
  repeatMs: number
  /** What was over before is not sent. */
  connectedAt: number
}

export type NoticeKind = 'raised' | 'repeated' | 'ended'

/** All that is to be said of one kind of alert, in one message. */
export interface DueMessage<A> {
  type: StoredKind
  severity: Severity
  notices: { kind: NoticeKind; alert: A }[]
}

const HOUR = 3_600_000

/** A channel gets at most one message of a kind in this time: a flood of alerts is one message. */
export const MESSAGE_GAP_MS = HOUR

/** @returns what is to be said of an alert now; undefined where nothing is */
export function noticeOf(alert: NoticeSubject, policy: ChannelPolicy, now: number): NoticeKind | undefined {
  const { raisedAt, endedAt, acknowledgedAt, mutedUntil, said, at } = alert
  if (policy.least === 'critical' && alert.severity !== 'critical') return undefined
  if (mutedUntil !== null && mutedUntil > now) return undefined
  if (said === 'ended') return undefined
  if (said === 'raised') {
    if (endedAt !== null) return 'ended'
    // Where the clock was put back, the last notice lies in the future: then the distance counts, not the order.
    return acknowledgedAt === null && at !== null && Math.abs(now - at) >= policy.repeatMs ? 'repeated' : undefined
  }
  if (endedAt === null) return 'raised'
  const wasMuted = mutedUntil !== null && endedAt <= mutedUntil
  return wasMuted || raisedAt < policy.connectedAt ? undefined : 'ended'
}

/**
 * The messages that a channel is to send now, the most severe first.
 *
 * @param lastAt when it last had a message of a kind
 */
export function dueMessages<A extends NoticeSubject>(
  alerts: readonly A[],
  lastAt: ReadonlyMap<StoredKind, number>,
  policy: ChannelPolicy,
  now: number,
): DueMessage<A>[] {
  const byType = new Map<StoredKind, DueMessage<A>>()
  for (const alert of alerts) {
    const { type, severity } = alert
    // A message that is dated later than now was sent before the clock was put back.
    if (Math.abs(now - (lastAt.get(type) ?? Number.NEGATIVE_INFINITY)) < MESSAGE_GAP_MS) continue
    const kind = noticeOf(alert, policy, now)
    if (!kind) continue
    const message = byType.get(type) ?? { type, severity, notices: [] }
    message.notices.push({ kind, alert })
    byType.set(type, message)
  }
  return [...byType.values()].sort(
    (a, b) => Number(b.severity === 'critical') - Number(a.severity === 'critical') || (a.type < b.type ? -1 : 1),
  )
}
