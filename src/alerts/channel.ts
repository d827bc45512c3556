/** Sends the messages of one channel. A message reports the newest state of one kind of alerts, at most once an hour. */
import type { Context } from '../context.ts'
import { type ChannelPolicy, type DueMessage, dueMessages, MESSAGE_GAP_MS } from '../domain/alert-notice.ts'
import { refreshDelayMs } from '../domain/pace.ts'
import {
  type AlertChannel,
  alertChannelNamed,
  changeChannel,
  connectChannel,
  endedForChannel,
  lastMessages,
  openForChannel,
  putNotices,
} from '../storage/alerts.ts'
import { need } from '../storage/database.ts'
import { severityOf } from './kinds.ts'
import { type AlertMessage, messageOf, type NoticedAlert } from './message.ts'

/** `detail` of `sent` says how many recipients the mail server refused. */
export type SendResult = { outcome: 'sent'; detail?: string } | { outcome: 'not_sent'; detail: string }

export interface Channel extends Pick<ChannelPolicy, 'least'> {
  name: string
  kind: 'webhook' | 'slack' | 'email'
  /** Never throws. */
  send: (message: AlertMessage) => Promise<SendResult>
  close: () => Promise<void>
}

export interface Notifying extends Pick<Context, 'db' | 'now' | 'log'> {
  repeatMs: number
  /** Where people reach the console; null: messages have no link. */
  consoleUrl: string | null
  /** True once the channels are closed. A message that closing cut off is sent after the next start, under the same id. */
  isClosed: () => boolean
}

const DAY = 24 * 3_600_000
/** For how long a channel still tries to report the end of an alert. */
const ENDED_MS = 7 * DAY
/** The most alerts that one batch reads, newest first. Older alerts follow once these are sent. */
const ALERTS_MAX = 5_000

/**
 * Sends the next message that is due. After a crash before the sending is recorded, sends the message again with the same id.
 *
 * @returns 1 when a message was sent, else 0
 */
export async function notifyNext(notifying: Notifying, channel: Channel): Promise<number> {
  const { db, now, log, consoleUrl, isClosed } = notifying
  const at = now()
  const standing = await standingOf(notifying, channel.name)
  if (isWaiting(standing, at)) return 0
  const [due] = await messagesDue(notifying, channel, standing, at)
  if (!due) return 0
  const message = messageOf(channel.name, due, consoleUrl)
  const result = await channel.send(message)
  if (result.outcome === 'not_sent') {
    if (isClosed()) return 0
    const attempts = standing.attempts + 1
    const failing = {
      attempts,
      nextTryAt: now() + refreshDelayMs(attempts),
      failingSince: standing.failingSince ?? at,
      lastError: result.detail,
    }
    await db.commit([changeChannel(channel.name, failing)])
    log.warn('alerts.not_sent', { kind: channel.name, type: due.type, attempts, detail: result.detail })
    return 0
  }
  const notices = due.notices.map(({ kind, alert }) => ({
    channel: channel.name,
    alert: alert.id,
    said: kind === 'ended' ? ('ended' as const) : ('raised' as const),
    at: now(),
    times: (alert.times ?? 0) + 1,
  }))
  const { detail = null } = result
  const works = { attempts: 0, nextTryAt: null, failingSince: null, lastError: detail, sentAt: now() }
  await db.commit([...putNotices(notices), changeChannel(channel.name, works)])
  log.info('alerts.sent', { kind: channel.name, type: due.type, count: notices.length, id: message.id, detail })
  return 1
}

async function standingOf({ db, now }: Notifying, channel: string): Promise<AlertChannel> {
  const [standing] = await db.query(alertChannelNamed(channel))
  if (standing) return standing
  await db.commit([connectChannel(channel, now())])
  return need(db, alertChannelNamed(channel), 'channel', channel)
}

/** A wait longer than the longest wait between two tries is ignored: it was computed before the clock was put back. */
const isWaiting = ({ nextTryAt }: AlertChannel, now: number): boolean =>
  nextTryAt !== null && nextTryAt > now && nextTryAt - now <= refreshDelayMs(Number.POSITIVE_INFINITY)

async function messagesDue(
  { db, repeatMs }: Notifying,
  { name, least }: Channel,
  { connectedAt }: AlertChannel,
  now: number,
): Promise<DueMessage<NoticedAlert>[]> {
  const rows = [
    ...(await db.query(openForChannel(name, ALERTS_MAX))),
    ...(await db.query(endedForChannel(name, now - ENDED_MS, ALERTS_MAX))),
  ]
  if (rows.length === 0) return []
  const lastAt = new Map((await db.query(lastMessages(name, now - MESSAGE_GAP_MS))).map(({ type, at }) => [type, at]))
  const alerts = rows.map((row): NoticedAlert => ({ ...row, severity: severityOf(row.type) }))
  return dueMessages(alerts, lastAt, { least, repeatMs, connectedAt }, now)
}

export const readChannels = (rows: readonly AlertChannel[], channels: readonly Channel[]) =>
  channels.map(({ name, kind, least }) => {
    const row = rows.find(({ channel }) => channel === name)
    return {
      channel: name,
      kind,
      least,
      sentAt: row?.sentAt ?? null,
      failingSince: row?.failingSince ?? null,
      nextTryAt: row?.nextTryAt ?? null,
      error: row?.lastError ?? null,
    }
  })
