/** What people do about alerts over the API: list, acknowledge, mute, try the channels. */
import { describe, expect, test } from 'vitest'
import type { AlertKind } from '../../src/domain/alert-kinds.ts'
import { readStatus } from '../../src/observe/status.ts'
import { auditOf } from '../../src/storage/evidence.ts'
import { enqueueAlert } from '../../src/storage/outbox.ts'
import { alertNotices, audit } from '../../src/storage/schema.ts'
import { build } from '../../src/storage/statement.ts'
import { startAlertReceiver } from '../support/alert-receiver.ts'
import { type ApiWorld, OTHER_STORE, openApi } from '../support/api-world.ts'

const HOUR = 3_600_000
const DAY = 24 * HOUR

interface Alert {
  id: string
  type: string
  subject: string | null
  order: string | null
  state: string
  severity: string
  acknowledgedBy: string | null
  mutedUntil: string | null
}

async function openAlerting() {
  const receiver = await startAlertReceiver()
  const world = await openApi({
    alerts: { channels: { duty: { kind: 'webhook' } }, syncStaleHours: 720 },
    alertAddresses: { QUAYSIDE_ALERT_DUTY: receiver.url },
  })
  const raise = async (occasion: string, reference = '11') => {
    const payload = { note: `changed ${occasion}`, store: OTHER_STORE, reference }
    await world.db.commit([enqueueAlert(world.ordering, { type: 'order_changed', occasion, payload })])
    await world.alertRound()
  }
  const pass = async (ms: number) => {
    for (let left = ms; left > 0; left -= HOUR) {
      world.move(HOUR)
      await world.alertRound()
    }
  }
  const said = () =>
    receiver.received.flatMap(({ data: { kind, alerts } }) =>
      kind === 'order_changed' ? [alerts.map(({ state }) => state).join(' ')] : [],
    )
  return { ...world, receiver, raise, pass, said }
}

const listOf = async (world: ApiWorld, query = '') =>
  (await world.ask('GET', `/alerts${query}`)).body.data.items as unknown as Alert[]

describe('an alert', () => {
  test('that is acknowledged is not repeated, and its end is sent', async () => {
    const world = await openAlerting()
    await world.raise('1')
    const [alert] = await listOf(world, '?state=open')
    const acknowledge = (token: string) =>
      world.ask('POST', `/alerts/${alert?.id}/acknowledge`, { token, body: { reason: 'the shop is asked' } })
    expect((await acknowledge(world.tokens.viewer)).status).toBe(403)
    const { body } = await acknowledge(world.tokens.operator)
    expect(body.data).toMatchObject({ type: 'order_changed', state: 'open', severity: 'warning' })
    expect(body.data.acknowledgedBy).toMatch(/^operator/)
    expect(await world.db.query(auditOf(alert?.id ?? ''))).toMatchObject([
      { action: 'alert.acknowledge', detail: 'the shop is asked' },
    ])
    await world.pass(4 * DAY)
    expect(world.said()).toEqual(['raised', 'ended'])
    expect((await acknowledge(world.tokens.operator)).status).toBe(409)
    expect((await listOf(world, '?state=open')).map(({ id }) => id)).not.toContain(alert?.id)
    expect((await listOf(world, '?state=ended')).map(({ id }) => id)).toEqual([alert?.id])
  })

  test.each([
    [29, ['order_before_connection']],
    [31, []],
  ])('that the service takes %d days after it was raised is news for a month', async (days, kinds) => {
    const world = await openAlerting()
    const payload = { note: 'it is open', store: OTHER_STORE, reference: '11' }
    await world.db.commit([enqueueAlert(world.ordering, { type: 'order_before_connection', occasion: '1', payload })])
    world.move(days * DAY)
    await world.alertRound()
    const heard = world.receiver.received.map(({ data }) => data.kind)
    expect(heard.filter((kind) => kind.startsWith('order'))).toEqual(kinds)
  })

  test('that is over is on record for a quarter of a year, and no longer', async () => {
    const world = await openAlerting()
    await world.raise('1')
    await world.pass(4 * DAY)
    const ended = async (days: number) => {
      world.move(days * DAY)
      await world.alertRound()
      return (await listOf(world, '?state=ended')).filter(({ type }) => type === 'order_changed')
    }
    expect(await ended(80)).toHaveLength(1)
    expect(await ended(20)).toEqual([])
  })

  test('about a purchase names the order that it is for, as its store does', async () => {
    const world = await openAlerting()
    const orderId = await world.buy('#1001')
    const { id } = await world.purchase(orderId)
    const alert = {
      type: 'reversed',
      occasion: '1',
      payload: { note: 'money came back', purchaseId: id },
      orderId,
    } as const
    await world.db.commit([enqueueAlert(world.ordering, alert)])
    await world.alertRound()
    expect(await listOf(world, '?state=open')).toMatchObject([{ type: 'reversed', subject: id, order: '#1001' }])
  })

  test('that two people acknowledge has the first of them on record', async () => {
    const world = await openAlerting()
    await world.raise('1')
    const [alert] = await listOf(world)
    const acknowledge = async (token: string) =>
      (await world.ask('POST', `/alerts/${alert?.id}/acknowledge`, { token, body: {} })).body.data
    const looked = await acknowledge(world.tokens.operator)
    expect(looked.acknowledgedBy).toMatch(/^operator/)
    world.move(HOUR)
    const { acknowledgedBy, acknowledgedAt } = looked
    expect(await acknowledge(world.tokens.admin)).toMatchObject({ acknowledgedBy, acknowledgedAt })
  })

  test('that is muted sends nothing, nor the next one of its subject; another subject is heard', async () => {
    const world = await openAlerting()
    await world.raise('1')
    const [alert] = await listOf(world)
    const muted = await world.ask('POST', `/alerts/${alert?.id}/mute`, { body: { hours: 48, reason: 'it is known' } })
    expect(muted.body.data.mutedUntil).toBe(new Date(world.now() + 48 * HOUR).toISOString())
    await world.pass(2 * HOUR)
    await world.raise('2')
    await world.raise('3', '12')
    await world.pass(HOUR)
    expect(world.said()).toEqual(['raised', 'raised'])
    expect(world.receiver.received.at(-1)?.data.alerts).toMatchObject([{ subject: '12' }])
    const unmuted = await world.ask('POST', `/alerts/${alert?.id}/unmute`, {})
    expect(unmuted.body.data.mutedUntil).toBeNull()
    await world.pass(2 * HOUR)
    expect(world.said().slice(2)).toEqual(['raised'])
    expect(await world.db.query(auditOf(alert?.id ?? ''))).toMatchObject([
      { action: 'alert.mute', detail: expect.stringMatching(/^until 2023-11-16T\S+: it is known$/) },
      { action: 'alert.unmute', detail: null },
    ])
  })

  test('that is muted after an older one of its subject was muted for less stays so for those that come', async () => {
    const world = await openAlerting()
    const muteFirst = async (hours: number) => {
      const newest = (await listOf(world)).find(({ type }) => type === 'order_changed')
      return world.ask('POST', `/alerts/${newest?.id}/mute`, { body: { hours } })
    }
    await world.raise('1')
    await muteFirst(2)
    // Its kind is over after some days.
    await world.pass(4 * DAY)
    await world.raise('2')
    expect(world.said().slice(-2), 'that mute is over').toEqual(['ended', 'raised'])
    expect((await listOf(world, '?state=open'))[0]).toMatchObject({ type: 'order_changed', mutedUntil: null })
    expect((await muteFirst(20 * 24)).status).toBe(200)
    const before = world.said().length
    for (const occasion of ['3', '4', '5']) {
      await world.pass(4 * DAY)
      await world.raise(occasion)
    }
    expect(world.said().slice(before)).toEqual([])
    const muted = (await listOf(world, '?state=open')).filter(({ type }) => type === 'order_changed')
    expect(muted.length).toBeGreaterThan(0)
    for (const { mutedUntil } of muted) expect(mutedUntil).not.toBeNull()
    await world.raise('6', '12')
    expect(world.said().slice(before), 'another order').toEqual(['raised'])
  })

  test('that is muted by an older one of its subject, which is over, is not sent', async () => {
    const world = await openAlerting()
    await world.raise('1')
    const older = (await listOf(world)).find(({ type }) => type === 'order_changed')
    await world.pass(4 * DAY)
    await world.ask('POST', `/alerts/${older?.id}/mute`, { body: { hours: 48 } })
    const before = world.said().length
    await world.raise('2')
    await world.pass(2 * HOUR)
    expect(world.said().slice(before)).toEqual([])
    await world.pass(48 * HOUR)
    expect(world.said().slice(before)).toEqual(['raised'])
  })

  test('of another kind about the same order, or about the service as a whole, is heard beside one that is muted', async () => {
    const world = await openAlerting()
    const enqueue = (type: AlertKind, occasion = '1') =>
      enqueueAlert(world.ordering, { type, occasion, payload: { note: occasion, store: OTHER_STORE, reference: '11' } })
    await world.db.commit([enqueue('order_changed'), enqueue('balance_low'), enqueue('order_refused')])
    await world.alertRound()
    for (const { id, type } of await listOf(world)) {
      if (type !== 'order_refused') await world.ask('POST', `/alerts/${id}/mute`, { body: { hours: 48 } })
    }
    await world.db.commit([enqueue('orphan'), enqueue('order_before_connection'), enqueue('order_changed', '2')])
    await world.pass(24 * HOUR)
    const heard = world.receiver.received.slice(3).map(({ data: { kind, alerts } }) => [kind, alerts[0]?.state])
    expect(heard.toSorted()).toEqual([
      ['order_before_connection', 'raised'],
      ['order_refused', 'repeated'],
      ['orphan', 'raised'],
    ])
    const muted = async () =>
      (await listOf(world)).flatMap(({ type, mutedUntil }) => (mutedUntil === null ? [] : type)).toSorted()
    expect(await muted()).toEqual(['balance_low', 'order_changed', 'order_changed'])
    const named = async (kind: string) => (await listOf(world)).find(({ type }) => type === kind)
    await world.ask('POST', `/alerts/${(await named('order_refused'))?.id}/mute`, { body: { hours: 48 } })
    const changed = await named('order_changed')
    await world.ask('POST', `/alerts/${changed?.id}/unmute`, { body: { reason: 'the shop has moved' } })
    expect(await muted()).toEqual(['balance_low', 'order_refused'])
    expect(await world.db.query(auditOf(changed?.id ?? ''))).toMatchObject([
      { action: 'alert.unmute', detail: 'the shop has moved' },
    ])
  })

  test('is listed newest first, page by page, and kept for ninety days after its end', async () => {
    const world = await openAlerting()
    for (const occasion of ['1', '2', '3']) {
      await world.raise(occasion, occasion)
      world.move(1)
    }
    const shown = (await world.ask('GET', '/status')).body.data.alerts as unknown as Alert[]
    expect(shown.map(({ subject }) => subject)).toEqual(['3', '2', '1'])
    const first = await listOf(world, '?limit=2')
    expect(first.map(({ subject }) => subject)).toEqual(['3', '2'])
    expect((await listOf(world, `?limit=2&before=${first[1]?.id}`)).map(({ subject }) => subject)).toEqual(['1'])
    const counted = async () => (await readStatus(world.db)).openAlerts
    expect(await counted()).toEqual([{ type: 'order_changed', total: 3 }])
    await world.pass(3 * DAY + HOUR)
    expect((await counted()).map(({ type }) => type)).toEqual(['backup_missing'])
    const kept = async () => [
      (await listOf(world, '?state=ended')).length,
      (await world.db.query(build.select().from(alertNotices))).filter(({ said }) => said === 'ended').length,
    ]
    world.move(90 * DAY - HOUR)
    await world.alertRound()
    expect(await kept()).toEqual([3, 3])
    world.move(2 * HOUR)
    await world.alertRound()
    expect(await kept()).toEqual([0, 0])
  })

  test('that was raised a month ago and is taken only now is no news', async () => {
    const world = await openAlerting()
    const raise = (reference: string) =>
      world.db.commit([
        enqueueAlert(world.ordering, {
          type: 'order_refused',
          occasion: reference,
          payload: { note: 'its SKU is ambiguous', store: OTHER_STORE, reference },
        }),
      ])
    await raise('old')
    world.move(DAY)
    await raise('new')
    world.move(30 * DAY)
    await world.alertRound()
    expect((await listOf(world)).flatMap(({ subject }) => subject ?? [])).toEqual(['new'])
  })

  test('that is unknown cannot be acknowledged or muted', async () => {
    const world = await openAlerting()
    expect((await world.ask('POST', '/alerts/x/acknowledge', {})).status).toBe(404)
    expect((await world.ask('POST', '/alerts/x/mute', {})).status).toBe(404)
    expect((await world.ask('POST', '/alerts/x/unmute', {})).status).toBe(404)
    expect((await world.ask('POST', '/alerts/x/mute', { body: { hours: 0 } })).status).toBe(400)
  })

  test('is shown with its id before it was taken, and can be acknowledged', async () => {
    const world = await openAlerting()
    const payload = { note: 'the disk is full' }
    await world.db.commit([enqueueAlert(world.ordering, { type: 'backup_failed', occasion: '1', payload })])
    const { alerts } = (await world.ask('GET', '/status')).body.data as unknown as { alerts: Alert[] }
    expect((await world.ask('POST', `/alerts/${alerts[0]?.id}/acknowledge`, {})).status).toBe(200)
  })
})

describe('the channels', () => {
  test('are tried, and each says what became of it', async () => {
    const world = await openAlerting()
    const { body } = await world.ask('POST', '/alerts/test', {})
    expect(body.data.items).toMatchObject([{ channel: 'duty', kind: 'webhook', outcome: 'sent', detail: null }])
    expect(world.receiver.received.at(-1)?.data.text).toMatch(/^TEST: this channel works/)
    world.receiver.answer = (response) => void response.writeHead(404).end()
    const failing = await world.ask('POST', '/alerts/test', { body: { channel: 'duty' } })
    expect(failing.body.data.items).toMatchObject([
      { outcome: 'not_sent', detail: 'answered 404: there is nothing at this address' },
    ])
    expect((await world.ask('POST', '/alerts/test', { body: { channel: 'other' } })).status).toBe(404)
    const audited = await world.db.query(build.select().from(audit))
    expect(audited.flatMap(({ action, subject }) => (action === 'alert.test' ? subject : []))).toEqual([
      'channels',
      'duty',
    ])
  })

  test('that take nothing are seen in the status and the metrics', async () => {
    const world = await openAlerting()
    const channels = async () => (await world.ask('GET', '/status')).body.data.alertChannels
    expect(await channels()).toMatchObject([{ channel: 'duty', failingSince: null, error: null }])
    world.receiver.answer = (response) => void response.writeHead(500).end()
    await world.raise('1')
    expect(await channels()).toMatchObject([
      { channel: 'duty', failingSince: new Date(world.now()).toISOString(), error: 'answered 500' },
    ])
    expect((await world.ask('GET', '/alerts/channels')).body.data.items).toEqual(await channels())
  })
})
