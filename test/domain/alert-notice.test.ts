/** What a channel is to say of an alert, moment by moment. */
import { expect, test } from 'vitest'
import { alertRules, severityOf } from '../../src/alerts/kinds.ts'
import { alertKinds, storedKind } from '../../src/domain/alert-kinds.ts'
import {
  type ChannelPolicy,
  dueMessages,
  MESSAGE_GAP_MS,
  type NoticeSubject,
  noticeOf,
} from '../../src/domain/alert-notice.ts'

const HOUR = 3_600_000
const NOW = 100 * HOUR
const policy: ChannelPolicy = { least: 'warning', repeatMs: 24 * HOUR, connectedAt: 50 * HOUR }
const alert: NoticeSubject = {
  id: 'a',
  type: 'disk_low',
  severity: 'warning',
  raisedAt: 60 * HOUR,
  endedAt: null,
  acknowledgedAt: null,
  mutedUntil: null,
  said: null,
  at: null,
  times: null,
}
const said = { said: 'raised', times: 1 } as const
const critical = { severity: 'critical' } as const

test.each<[string, Partial<NoticeSubject>, ReturnType<typeof noticeOf>, Partial<ChannelPolicy>?]>([
  ['that stands and was not said is said', {}, 'raised'],
  ['that began before the channel was connected, and stands, is said', { raisedAt: 40 * HOUR }, 'raised'],
  ['that people look after before it was said is said all the same', { acknowledgedAt: NOW - 1 }, 'raised'],
  ['that is muted is not said', { mutedUntil: NOW + 1 }, undefined],
  ['whose mute ends now is said', { mutedUntil: NOW }, 'raised'],
  ['that was said a moment less than a day ago is not repeated', { ...said, at: NOW - 24 * HOUR + 1 }, undefined],
  ['that was said a day ago is repeated', { ...said, at: NOW - 24 * HOUR }, 'repeated'],
  [
    'that was said a day in the future, before the clock was put back, is repeated',
    { ...said, at: NOW + 24 * HOUR },
    'repeated',
  ],
  ['that was said an hour in the future is not repeated', { ...said, at: NOW + HOUR }, undefined],
  ['that people look after is not repeated', { ...said, at: 61 * HOUR, acknowledgedAt: 62 * HOUR }, undefined],
  [
    'that is over is said to be, also of one that people look after',
    { ...said, at: NOW - 1, acknowledgedAt: NOW - 1, endedAt: NOW },
    'ended',
  ],
  [
    'whose end is muted is not said to be over yet',
    { ...said, at: NOW - 1, endedAt: NOW, mutedUntil: NOW + 1 },
    undefined,
  ],
  [
    'that was said to be over is never said again',
    { said: 'ended', at: 70 * HOUR, endedAt: 70 * HOUR, times: 2 },
    undefined,
  ],
  ['that began and ended while the channel was away is said to be over', { endedAt: 80 * HOUR }, 'ended'],
  [
    'that began just when the channel was connected is said to be over',
    { raisedAt: 50 * HOUR, endedAt: 80 * HOUR },
    'ended',
  ],
  [
    'that began before the channel was connected, and is over, is not said',
    { raisedAt: 50 * HOUR - 1, endedAt: 80 * HOUR },
    undefined,
  ],
  ['that ended unsaid while it was muted is no news', { endedAt: 80 * HOUR, mutedUntil: 80 * HOUR }, undefined],
  ['that ended unsaid after its mute is said to be over', { endedAt: 80 * HOUR, mutedUntil: 80 * HOUR - 1 }, 'ended'],
  ['that is a warning is not said where critical ones are wanted', {}, undefined, { least: 'critical' }],
  ['that is critical is said where critical ones are wanted', critical, 'raised', { least: 'critical' }],
  ['that is critical is said where warnings are wanted', critical, 'raised'],
])('an alert %s', (_what, given, notice, changed) => {
  expect(noticeOf({ ...alert, ...given }, { ...policy, ...changed }, NOW)).toBe(notice)
})

test('a kind of which a channel had a message within the hour waits, and no other kind waits with it', () => {
  const alerts = [alert, { ...alert, id: 'b', type: 'sync_stale' } as const]
  const typesAt = (at: number) => dueMessages(alerts, new Map([['disk_low', at]]), policy, NOW).map(({ type }) => type)
  expect(MESSAGE_GAP_MS).toBe(HOUR)
  expect(typesAt(NOW - HOUR + 1)).toEqual(['sync_stale'])
  expect(typesAt(NOW - HOUR)).toEqual(['disk_low', 'sync_stale'])
  // The clock was put back since.
  expect(typesAt(NOW + HOUR - 1)).toEqual(['sync_stale'])
  expect(typesAt(NOW + HOUR)).toEqual(['disk_low', 'sync_stale'])
})

test('all that is to be said of one kind is one message, and the critical ones go first', () => {
  const alerts = [
    { ...alert, id: 'w', type: 'backup_failed' },
    { ...alert, id: 'f', ...critical, type: 'freeze' },
    { ...alert, id: 'd', ...critical },
    { ...alert, id: 'd2', ...critical, ...said, at: NOW, endedAt: NOW },
    { ...alert, id: 'quiet', ...critical, mutedUntil: NOW + 1 },
  ] as const
  expect(
    dueMessages(alerts, new Map(), policy, NOW).map(({ type, severity, notices }) => [
      type,
      severity,
      ...notices.map(({ kind, alert: { id } }) => `${id} ${kind}`),
    ]),
  ).toEqual([
    ['disk_low', 'critical', 'd raised', 'd2 ended'],
    ['freeze', 'critical', 'f raised'],
    ['backup_failed', 'warning', 'w raised'],
  ])
})

test('an alert is critical where money or keys are at stake or nothing is sold, and no other is', () => {
  const warnings = [
    'all_stale',
    'backup_failed',
    'backup_missing',
    'balance_below',
    'balance_low',
    'balance_runs_out',
    'claim_overdue',
    'deliveries_refused',
    'delivery_dead',
    'delivery_quarantined',
    'id_conflict',
    'late',
    'listing_failed',
    'listings_not_taken',
    'order_before_connection',
    'order_changed',
    'order_fulfilled_early',
    'order_mismatch',
    'orphan_delivery',
    'over_ceiling',
    'store_webhook',
    'sync_stale',
    'webhook_unheld',
  ]
  expect(alertKinds.filter((kind) => severityOf(kind) === 'warning').toSorted()).toEqual(warnings)
  expect(severityOf(storedKind('of another version'))).toBe('critical')
})

test('an alert names what it is about: of one about the service as a whole there is nothing to name', () => {
  const bySubject = Object.groupBy(Object.entries(alertRules), ([, { subject }]) => subject ?? 'service')
  const named = Object.entries(bySubject).map(([subject, rules]) => [subject, rules?.map(([kind]) => kind).toSorted()])
  expect(Object.fromEntries(named)).toEqual({
    service: [
      'all_stale',
      'backup_failed',
      'backup_missing',
      'balance_below',
      'balance_low',
      'balance_runs_out',
      'balance_unexplained',
      'deliveries_refused',
      'disk_low',
      'orphan',
      'restored',
      'supplier_unreachable',
      'sync_stale',
      'unauthorized',
    ],
    purchaseId: [
      'double_charge',
      'freeze',
      'late',
      'look_ups_fail',
      'missing',
      'over_ceiling',
      'reversed',
      'store_not_configured',
    ],
    claim: ['claim_overdue'],
    delivery: ['delivery_dead', 'delivery_quarantined', 'id_conflict', 'order_mismatch', 'orphan_delivery'],
    store: [
      'listing_failed',
      'listings_not_taken',
      'order_fulfilled_early',
      'order_unread',
      'store_unreachable',
      'store_webhook',
      'updates_not_taken',
    ],
    reference: ['order_before_connection', 'order_changed', 'order_held', 'order_refused'],
    callback: ['dead_letter'],
    webhook: ['webhook_unheld'],
    request: ['unreadable_answer'],
  })
  // Of the others the command would end in the air.
  const about = bySubject.service?.filter(([, { command }]) => command.endsWith(' '))
  expect(about).toEqual([])
})
