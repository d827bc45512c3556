/**
 * Decides which messages a channel sends about alerts, from the state of each alert and the last message of the channel about it.
 * Only the newest state counts: a channel that was out of reach reports what is true when it is back.
 */

import type { StoredKind } from './alert-kinds.ts'

export const severities = ['warning', 'critical'] as const
/** `critical`: money or keys are at stake, or nothing is sold. */
export type Severity = (typeof severities)[number]

/** One alert, and the last message of a channel about it. Instants in epoch milliseconds, here and below. */
export interface NoticeSubject {
  id: string
  type: StoredKind
  severity: Severity
  raisedAt: number
  endedAt: number | null
  acknowledgedAt: number | null
  mutedUntil: number | null
  /** The last message of the channel about this alert; null: there was none yet. */
  said: 'raised' | 'ended' | null
  at: number | null
  times: number | null
}

export interface ChannelPolicy {
  /** Alerts that are less severe than this are not sent. */
  least: Severity
  /** An open alert that no person has acknowledged is sent again after this time. */
  repeatMs: number
  /** An alert that was raised before this instant, and is over, is not sent. */
  connectedAt: number
}

export type NoticeKind = 'raised' | 'repeated' | 'ended'

/** One message about all alerts of one kind that are due. */
export interface DueMessage<A> {
  type: StoredKind
  severity: Severity
  notices: { kind: NoticeKind; alert: A }[]
}

const HOUR = 3_600_000

/** A channel gets at most one message of a kind in this time: a flood of alerts is one message. */
export const MESSAGE_GAP_MS = HOUR

/** @returns the notice that is due for an alert; undefined when none is due */
export function noticeOf(alert: NoticeSubject, policy: ChannelPolicy, now: number): NoticeKind | undefined {
  const { raisedAt, endedAt, acknowledgedAt, mutedUntil, said, at } = alert
  if (policy.least === 'critical' && alert.severity !== 'critical') return undefined
  if (mutedUntil !== null && mutedUntil > now) return undefined
  if (said === 'ended') return undefined
  if (said === 'raised') {
    if (endedAt !== null) return 'ended'
    // If the clock was put back, the last notice lies in the future. So the distance of the instants counts, not their order.
    return acknowledgedAt === null && at !== null && Math.abs(now - at) >= policy.repeatMs ? 'repeated' : undefined
  }
  if (endedAt === null) return 'raised'
  const wasMuted = mutedUntil !== null && endedAt <= mutedUntil
  return wasMuted || raisedAt < policy.connectedAt ? undefined : 'ended'
}

/**
 * The messages that a channel is to send now, the most severe first.
 *
 * @param lastAt when the channel last had a message of each kind
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
    // If the clock was put back, the last message lies in the future. So the distance of the instants counts, not their order.
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
