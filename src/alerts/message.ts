/** Writes messages about alerts, one fact a line. The text depends on the alerts alone, so a repeated message is identical. */
import { createHash } from 'node:crypto'
import { aboutAlert, alertPath, alertText, type StoredKind } from '../domain/alert-kinds.ts'
import type { DueMessage, NoticeKind, NoticeSubject, Severity } from '../domain/alert-notice.ts'
import { cut, plain } from '../domain/text-layout.ts'
import type { Alert } from '../storage/alerts.ts'
import { commandOf, orderIn, ruleOf } from './kinds.ts'

export type NoticedAlert = NoticeSubject & Alert

/** What a channel sends. */
export interface AlertMessage {
  /** A message that is sent again has the same id, so that receivers recognise the repeat. */
  id: string
  /** The kind of the alerts, such as `freeze`; `test` for a message that a person asked for. */
  type: StoredKind | 'test'
  severity: Severity
  /** The title of the message, in one line. */
  title: string
  text: string
  /** The alerts that the text names. */
  alerts: MessageAlert[]
  /** How many further alerts the message only counts. */
  more: number
}

/** One alert as programs read it. Instants are ISO 8601, in UTC. */
export type MessageAlert = ReturnType<typeof shown>

/** The most alerts that a message names. The others are counted. */
const NAMED_MAX = 5
/** The longest note: a sentence or two, to be read on a telephone. */
const NOTE_MAX = 500

/** Writes the message about alerts of one kind. @param console where people reach the console; null: there is no link */
export function messageOf(
  channel: string,
  { type, severity, notices }: DueMessage<NoticedAlert>,
  console: string | null,
): AlertMessage {
  // Open alerts come before alerts that are over.
  const sorted = notices.toSorted((a, b) => order.indexOf(a.kind) - order.indexOf(b.kind))
  const base = console?.replace(/\/+$/, '') ?? null
  const named = sorted.slice(0, NAMED_MAX).map(({ kind, alert }) => shown(kind, alert, base))
  const more = sorted.length - named.length
  const says = notices.map(({ kind, alert }) => `${alert.id}:${kind}:${(alert.times ?? 0) + 1}`).sort()
  const all = notices.length
  const isOver = notices.every(({ kind }) => kind === 'ended')
  const title = `${isOver ? 'ended' : severity}: ${alertText(type)}${all > 1 ? `, ${all} alerts` : ''}`
  const left = more > 0 ? [`And ${more} more of this kind${base === null ? ': quayside alerts list' : ''}`] : []
  const link = base === null ? [] : [`All alerts: ${base}/alerts`]
  return {
    id: idOf([channel, type, ...says]),
    type,
    severity,
    title,
    text: [...named.map((one) => textOf(type, severity, one)), ...left, ...link].join('\n\n'),
    alerts: named,
    more,
  }
}

const order: readonly NoticeKind[] = ['raised', 'repeated', 'ended']

const idOf = (parts: readonly string[]): string =>
  createHash('sha256').update(JSON.stringify(parts)).digest('hex').slice(0, 32)

function shown(state: NoticeKind, alert: NoticedAlert, console: string | null) {
  const { id, subject, note, raisedAt, endedAt, type, payload } = alert
  const order = orderIn(payload)
  const command = commandOf(alert)
  const { store, reference } = payload
  const path = alertPath({
    type,
    command,
    subject,
    order,
    store: store ?? undefined,
    reference: reference ?? undefined,
  })
  return {
    id,
    state,
    subject: subject === null ? null : plain(subject),
    /** The number of the order in its store. */
    order: order === null ? null : plain(order),
    note: note === null ? null : cut(plain(note), NOTE_MAX),
    since: new Date(raisedAt).toISOString(),
    endedAt: endedAt === null ? null : new Date(endedAt).toISOString(),
    advice: ruleOf(type).advice,
    command,
    /** The page of what the alert is about; null where there is none, or where nothing says how people reach the console. */
    link: console === null || path === undefined ? null : `${console}${path}`,
  }
}

function textOf(
  type: StoredKind,
  severity: Severity,
  { state, subject, order, note, since, endedAt, advice, command, link }: MessageAlert,
) {
  const subjectText = aboutAlert({ type, command, subject, order }, new Map())
  const about = subjectText === '' ? [] : [`About: ${subjectText}`]
  const what = note === null ? [] : [`What: ${note}`]
  const head = state === 'ended' ? 'ENDED' : `${state === 'repeated' ? 'STILL OPEN, ' : ''}${severity.toUpperCase()}`
  const rest =
    state === 'ended'
      ? [`It was open from ${minute(since)} to ${minute(endedAt)} UTC.`]
      : [`Since: ${minute(since)} UTC`, `Do: ${advice}${link === null ? `: ${command}` : ''}`]
  const see = link === null ? [] : [`See: ${link}`]
  return [`${head}: ${alertText(type)}`, ...about, ...what, ...rest, ...see].join('\n')
}

/** `2026-03-01 09:30` */
const minute = (instant: string | null): string => (instant ?? '').slice(0, 16).replace('T', ' ')

/** A message that shows whether a channel works. @param id of the message */
export const testMessage = (id: string): AlertMessage => ({
  id,
  type: 'test',
  severity: 'warning',
  title: 'test: this channel works',
  text: 'TEST: this channel works.\nNothing is wrong. A person asked for this message.',
  alerts: [],
  more: 0,
})
