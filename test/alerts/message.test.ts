/** The words of a message about alerts. */
import { expect, test } from 'vitest'
import { messageOf, type NoticedAlert } from '../../src/alerts/message.ts'
import type { DueMessage, NoticeKind } from '../../src/domain/alert-notice.ts'

const AT = Date.UTC(2026, 2, 1, 9, 30, 59)

const alert = (id: string, given: Partial<NoticedAlert> = {}): NoticedAlert => ({
  id,
  type: 'order_held',
  severity: 'critical',
  subject: '1001',
  note: 'it waits for its price',
  payload: { note: null },
  raisedAt: AT,
  endedAt: null,
  acknowledgedAt: null,
  acknowledgedBy: null,
  mutedUntil: null,
  said: null,
  at: null,
  times: null,
  ...given,
})

const about = (...notices: [NoticeKind, NoticedAlert][]): DueMessage<NoticedAlert> => ({
  type: 'order_held',
  severity: 'critical',
  notices: notices.map(([kind, alert]) => ({ kind, alert })),
})
const ended = alert('e', { endedAt: AT + 3_600_000, said: 'raised', at: AT, times: 1 })
const idOf = (channel: string, ...notices: [NoticeKind, NoticedAlert][]) =>
  messageOf(channel, about(...notices), null).id

test('a message says what stands first and what is over last, and has its severity while one alert of it stands', () => {
  const { title, text, alerts, more } = messageOf(
    'duty',
    about(
      ['ended', ended],
      ['repeated', alert('r', { payload: { note: null, store: 'demo', reference: '1002' }, subject: '1002' })],
      ['raised', alert('a', { note: null, subject: null })],
    ),
    'https://console.example/',
  )
  expect(title).toBe('critical: paid order waits, 3 alerts')
  expect(text.split('\n\n')).toEqual([
    [
      'CRITICAL: paid order waits',
      'Since: 2026-03-01 09:30 UTC',
      'Do: see what it waits for',
      'See: https://console.example/orders?q=',
    ].join('\n'),
    [
      'STILL OPEN, CRITICAL: paid order waits',
      'About: order 1002',
      'What: it waits for its price',
      'Since: 2026-03-01 09:30 UTC',
      'Do: see what it waits for',
      'See: https://console.example/orders/demo/1002',
    ].join('\n'),
    [
      'ENDED: paid order waits',
      'About: order 1001',
      'What: it waits for its price',
      'It was open from 2026-03-01 09:30 to 2026-03-01 10:30 UTC.',
      'See: https://console.example/orders?q=1001',
    ].join('\n'),
    'All alerts: https://console.example/alerts',
  ])
  expect(more).toBe(0)
  expect(alerts.map(({ id, state, order, endedAt }) => [id, state, order, endedAt])).toEqual([
    ['a', 'raised', null, null],
    ['r', 'repeated', '1002', null],
    ['e', 'ended', null, '2026-03-01T10:30:59.000Z'],
  ])
  expect(messageOf('duty', about(['ended', ended]), null)).toMatchObject({
    title: 'ended: paid order waits',
    text: expect.not.stringMatching(/https?:/),
  })
})

test('a message about a review or a message to a store prints an id of ours where nothing says how people reach the console, and else a link', () => {
  const of = (console: string | null, given: Partial<NoticedAlert>) => {
    const type = given.type ?? 'order_held'
    return messageOf(
      'duty',
      { type, severity: 'critical', notices: [{ kind: 'raised', alert: alert('a', given) }] },
      console,
    )
  }
  const review = {
    type: 'missing',
    subject: '01k3',
    payload: { note: null, store: 'demo', reference: '7', number: '#7' },
  } as const
  expect(of('https://console.example', review).text).not.toContain('quayside')
  expect(of('https://console.example', review).alerts[0]?.link).toBe('https://console.example/reviews/01k3')
  const dead = { type: 'dead_letter', subject: '01k4', payload: { note: null } } as const
  const { text } = of('https://console.example', dead)
  expect(text).toMatch(/About: a message to a store\n[\s\S]*See: https:\/\/console\.example\/dead-letters/)
  expect(text).not.toContain('01k4')
  expect(of(null, dead).text).toContain('send it again: quayside outbox redeliver 01k4')
  expect(of(null, dead).alerts[0]?.link).toBeNull()
})

test('a message names five alerts and counts the others; a long note is cut, and nothing in it moves the cursor', () => {
  const many = Array.from({ length: 7 }, (_, n): [NoticeKind, NoticedAlert] => ['raised', alert(`a${n}`)])
  const { alerts, more, text } = messageOf('duty', about(...many), null)
  expect([alerts.length, more]).toEqual([5, 2])
  expect(text).toMatch(/\n\nAnd 2 more of this kind: quayside alerts list$/)
  const [first] = messageOf('duty', about(['raised', alert('a', { note: `\u001b[2J${'x'.repeat(600)}` })]), null).alerts
  expect(first?.note).toMatch(/^[ -~]{499}…$/)
  expect(messageOf('duty', about(...many.slice(0, 5)), null)).toMatchObject({ more: 0 })
})

test('a message has one id however often it is tried, and another one where anything else is said', () => {
  const said = alert('a', { said: 'raised', at: AT, times: 1 })
  const once = idOf('duty', ['raised', alert('a')], ['raised', alert('b')])
  expect(idOf('duty', ['raised', alert('b')], ['raised', alert('a')])).toBe(once)
  const others = [
    idOf('mail', ['raised', alert('a')], ['raised', alert('b')]),
    idOf('duty', ['raised', alert('a')]),
    idOf('duty', ['repeated', said]),
    idOf('duty', ['repeated', { ...said, times: 2 }]),
    idOf('duty', ['ended', said]),
  ]
  expect(new Set([once, ...others]).size).toBe(6)
})
