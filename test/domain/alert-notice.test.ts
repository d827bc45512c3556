/** What a channel hears of an alert, and when. */
import { describe, expect, it } from 'vitest'
import { type ChannelPolicy, dueMessages, MESSAGE_GAP_MS, noticeOf } from '../../src/domain/alert-notice.ts'

const NOW = 1_000 * 3_600_000
const policy: ChannelPolicy = { least: 'warning', repeatMs: 1_000, connectedAt: 500 }
type Subject = Parameters<typeof noticeOf>[0]
const subject: Subject = {
  id: 'a',
  type: 'freeze',
  severity: 'warning',
  raisedAt: 1_000,
  endedAt: null,
  acknowledgedAt: null,
  mutedUntil: null,
  said: null,
  at: null,
  times: null,
}

describe('of an alert', () => {
  const raised = { said: 'raised', at: NOW - 1_000 } as const
  it.each<[what: string, notice: string | undefined, differs: Partial<Subject>]>([
    ['that was not said yet', 'raised', {}],
    ['that stands since before the channel was connected', 'raised', { raisedAt: 400 }],
    ['that is muted', undefined, { mutedUntil: NOW + 1 }],
    ['whose mute is over', 'raised', { mutedUntil: NOW }],
    ['that was said a while ago', 'repeated', raised],
    ['that was said a moment ago', undefined, { ...raised, at: NOW - 999 }],
    ['that was said later than now, by far', 'repeated', { ...raised, at: NOW + 1_000 }],
    ['that a person has acknowledged', undefined, { ...raised, acknowledgedAt: 1 }],
    ['that was said, and is over', 'ended', { ...raised, at: NOW, endedAt: 2_000 }],
    ['whose end was said', undefined, { said: 'ended', at: 1, endedAt: 2_000 }],
    ['that was over before it was said', 'ended', { endedAt: 2_000 }],
    ['that began and ended while it was muted', undefined, { endedAt: 2_000, mutedUntil: 2_000 }],
    ['that ended after its mute', 'ended', { endedAt: 2_001, mutedUntil: 2_000 }],
    ['that was over, and began before the channel was connected', undefined, { endedAt: 2_000, raisedAt: 499 }],
    ['that was over, and began as the channel was connected', 'ended', { endedAt: 2_000, raisedAt: 500 }],
  ])('%s a channel hears: %s', (_, notice, differs) => {
    expect(noticeOf({ ...subject, ...differs }, policy, NOW)).toBe(notice)
  })

  it('a channel for what is critical hears of nothing else', () => {
    const critical: ChannelPolicy = { ...policy, least: 'critical' }
    expect(noticeOf(subject, critical, NOW)).toBeUndefined()
    expect(noticeOf({ ...subject, severity: 'critical' }, critical, NOW)).toBe('raised')
  })
})

it('one message says all of a kind, the critical ones first, each kind once an hour', () => {
  const alerts = [
    { ...subject, type: 'order_held' },
    { ...subject, type: 'freeze', severity: 'critical' },
    { ...subject, type: 'dead_letter' },
    { ...subject, type: 'dead_letter', mutedUntil: NOW + 1 },
    { ...subject, type: 'order_held', raisedAt: 2_000 },
  ] as Subject[]
  const due = (...lastAt: [Subject['type'], number][]) =>
    dueMessages(alerts, new Map(lastAt), policy, NOW).map(({ type, notices }) => `${type} ${notices.length}`)
  expect(due()).toEqual(['freeze 1', 'dead_letter 1', 'order_held 2'])
  expect(due(['freeze', NOW - MESSAGE_GAP_MS + 1], ['order_held', NOW + 1])).toEqual(['dead_letter 1'])
  expect(due(['freeze', NOW - MESSAGE_GAP_MS])).toEqual(['freeze 1', 'dead_letter 1', 'order_held 2'])
  expect(MESSAGE_GAP_MS).toBe(3_600_000)
})
