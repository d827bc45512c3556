/** Alerts reach people: raised, repeated, ended, over channels that may be down. */
import { createHmac } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { openAlerts } from '../../src/alerts/alerts.ts'
import { testMessage } from '../../src/alerts/message.ts'
import { webhookChannel } from '../../src/alerts/webhook-channel.ts'
import type { AlertKind } from '../../src/domain/alert-kinds.ts'
import { Secret } from '../../src/secret.ts'
import { alertChannelNamed } from '../../src/storage/alerts.ts'
import { type Alert, enqueueAlert, enqueueUpdate, postponeEffect } from '../../src/storage/outbox.ts'
import { putPublishing, resumePublishing } from '../../src/storage/publications.ts'
import { alertChannels, alertNotices, outbox } from '../../src/storage/schema.ts'
import { build } from '../../src/storage/statement.ts'
import { connectStore, insertLateOrder, putStoreReading } from '../../src/storage/stores.ts'
import { createReach } from '../../src/supplier/request.ts'
import { startAlertReceiver } from '../support/alert-receiver.ts'
import { type ApiOptions, type ApiWorld, OTHER_STORE, openApi } from '../support/api-world.ts'
import { SECRET, signedDelivery, timestampOf } from '../support/delivery.ts'
import { startSmtpServer } from '../support/smtp-server.ts'
import { STORE, until } from '../support/test-app.ts'
import { addWebhook } from '../support/webhook-server.ts'

const MINUTE = 60_000
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR

async function openAlerting(alerts: object = {}, options: ApiOptions = {}) {
  const receiver = await startAlertReceiver()
  const world = await openApi({
    ...options,
    alerts: { channels: { duty: { kind: 'webhook' } }, syncStaleHours: 720, ...alerts },
    alertAddresses: { QUAYSIDE_ALERT_DUTY: receiver.url, ...options.alertAddresses },
  })
  await world.alertRound()
  /** What the channel has said of these kinds. */
  const saidOf = (...kinds: AlertKind[]) =>
    receiver.received.filter(({ data }) => kinds.some((kind) => kind === data.kind)).map(({ data }) => saidIn(data))
  return { ...world, receiver, saidOf }
}

const saidIn = ({ kind, alerts }: { kind: string; alerts: { state: string }[] }): string =>
  `${kind} ${alerts.map(({ state }) => state).join(' ')}`

const raise = ({ ordering, db }: ApiWorld, alert: Alert) => db.commit([enqueueAlert(ordering, alert)])
const freeze = (world: ApiWorld, reason = 'checking prices') => world.ask('POST', '/freeze', { body: { reason } })
const low = (occasion: string): Alert => ({
  type: 'balance_low',
  occasion,
  payload: { note: 'the supplier says that the balance is low' },
})

/** Lets time pass, and alerts work every minute. */
async function pass(world: ApiWorld, ms: number, stepMs = MINUTE): Promise<void> {
  for (let left = ms; left > 0; left -= stepMs) {
    world.move(Math.min(stepMs, left))
    await world.alertRound()
  }
}

describe('a channel', () => {
  test('is sent an alert once, and its end', async () => {
    const world = await openAlerting()
    await raise(world, { type: 'backup_failed', occasion: '1', payload: { note: 'the disk is full' } })
    await world.alertRound()
    await pass(world, HOUR)
    expect(world.saidOf('backup_failed')).toEqual(['backup_failed raised'])
    expect(world.receiver.received[0]?.data).toMatchObject({
      kind: 'backup_failed',
      severity: 'warning',
      title: 'warning: backup failed',
      text: [
        'WARNING: backup failed',
        'What: the disk is full',
        'Since: 2023-11-14 22:13 UTC',
        'Do: fix what the note says, then make one: quayside backup',
      ].join('\n'),
    })
    expect((await world.ask('POST', '/backups')).status).toBe(201)
    await pass(world, HOUR)
    expect(world.saidOf('backup_failed')).toEqual(['backup_failed raised', 'backup_failed ended'])
    expect(world.receiver.received[1]?.data.text).toContain(
      'It was open from 2023-11-14 22:13 to 2023-11-14 23:14 UTC.',
    )
    await pass(world, 2 * DAY, HOUR)
    expect(world.saidOf('backup_failed')).toHaveLength(2)
  })

  test('is sent a freeze again each day until a person lifts it', async () => {
    const world = await openAlerting()
    for (const occasion of ['1', '2', '3']) {
      await raise(world, { type: 'freeze', occasion, payload: { note: 'many reviews' } })
      await freeze(world, 'many reviews')
      await pass(world, HOUR, 10 * MINUTE)
    }
    expect(world.saidOf('freeze')).toEqual(['freeze raised'])
    await pass(world, 2 * DAY, HOUR)
    expect(world.saidOf('freeze')).toEqual(['freeze raised', 'freeze repeated', 'freeze repeated'])
    const freezes = world.receiver.received.filter(({ data }) => data.kind === 'freeze')
    // A receiver drops what comes again under one id.
    expect(new Set(freezes.map(({ headers }) => headers['webhook-id'])).size).toBe(3)
    const [, again] = freezes
    expect(again?.data.title).toBe('critical: buying is frozen')
    expect(again?.data.text).toMatch(/^STILL OPEN, CRITICAL: buying is frozen\n/)
  })

  test('that was down is sent what stands when it is up, and what began and ended meanwhile', async () => {
    const world = await openAlerting()
    world.receiver.answer = (response) => void response.writeHead(503).end()
    await raise(world, { type: 'backup_failed', occasion: '1', payload: { note: 'the disk is full' } })
    await raise(world, { type: 'dead_letter', occasion: '1', payload: { note: 'a callback is dead', callback: 'c' } })
    await pass(world, 20 * MINUTE)
    expect((await world.ask('POST', '/backups')).status).toBe(201)
    // Orders do not wait for it.
    const order = await world.buy('1001')
    await world.pass(MINUTE)
    expect(await world.state(order)).toBe('fulfilled')
    await pass(world, 5 * HOUR)
    const asked = world.receiver.received.length
    // Five tries within the first minutes, then one each quarter of an hour.
    expect(asked).toBeLessThan(30)
    await raise(world, low('1'))
    world.receiver.answer = (response) => void response.writeHead(204).end()
    await pass(world, 20 * MINUTE)
    expect(
      world.receiver.received
        .slice(asked)
        .map(({ data }) => saidIn(data))
        .toSorted(),
    ).toEqual(['backup_failed ended', 'balance_low raised', 'dead_letter ended'])
  })

  test('is sent a thousand dead letters as one message', async () => {
    const world = await openAlerting()
    const { db, ordering } = world
    const dead = (index: number) =>
      enqueueAlert(ordering, {
        type: 'order_changed',
        occasion: `${index}`,
        payload: { note: 'it was changed in the shop', store: OTHER_STORE, reference: String(10_000 + index) },
      })
    await db.commit(Array.from({ length: 1_000 }, (_, index) => dead(index)))
    await pass(world, 30 * MINUTE)
    const [message, ...others] = world.receiver.received
    expect(others).toEqual([])
    expect(message?.data).toMatchObject({ title: 'warning: order changed in the shop, 1000 alerts', more: 995 })
    expect(message?.data.alerts).toHaveLength(5)
    expect(message?.data.text).toContain('And 995 more of this kind: quayside alerts list')
  })

  test('that did not answer, but took the message, gets it again under the same id', async () => {
    const world = await openAlerting()
    world.receiver.answer = (response) => void response.destroy()
    await raise(world, low('1'))
    await pass(world, MINUTE)
    world.receiver.answer = (response) => void response.writeHead(204).end()
    await pass(world, HOUR)
    const ids = world.receiver.received.map(({ headers }) => headers['webhook-id'])
    expect(ids.length).toBeGreaterThan(1)
    expect(new Set(ids).size).toBe(1)
    expect(new Set(world.receiver.received.map(({ body }) => body)).size).toBe(1)
  })

  test('gets JSON that any library of Standard Webhooks verifies, and Slack its own shape', async () => {
    const key = Buffer.alloc(32, 7)
    const receiver = await startAlertReceiver()
    const world = await openAlerting(
      { channels: { duty: { kind: 'webhook' }, chat: { kind: 'slack', least: 'critical' } } },
      {
        alertAddresses: {
          QUAYSIDE_ALERT_DUTY: `${receiver.url} whsec_${key.toString('base64')}`,
          QUAYSIDE_ALERT_CHAT: receiver.url,
        },
      },
    )
    await raise(world, low('1'))
    await world.alertRound()
    const [signed] = receiver.received
    const { 'webhook-id': id, 'webhook-timestamp': at, 'webhook-signature': signature } = signed?.headers ?? {}
    const mac = createHmac('sha256', key).update(`${id}.${at}.${signed?.body}`).digest('base64')
    expect(signature).toBe(`v1,${mac}`)
    await freeze(world, 'a <b> & c')
    await raise(world, { type: 'freeze', occasion: '1', payload: { note: 'a <b> & c' } })
    await world.alertRound()
    const texts = receiver.received.slice(1).map(({ body }) => (JSON.parse(body) as { text?: string }).text)
    expect(texts.filter(Boolean)).toEqual([expect.stringContaining('What: a &lt;b&gt; &amp; c')])
  })

  test('heard after a restart that it was over what only the process before knew', async () => {
    const world = await openAlerting()
    const kinds: AlertKind[] = ['unauthorized', 'unreadable_answer', 'deliveries_refused', 'all_stale']
    const payload = { note: 'raised before the restart', request: 'GET /webhooks', field: 'data' }
    for (const type of kinds) await raise(world, { type, occasion: '1', payload })
    const reach = createReach(world.now)
    const supplier = { ...world.supplier, reach: reach.read }
    const started = await openAlerts({ ...world.alertParts, service: { ...world.alertParts.service, supplier } })
    const round = async () => {
      world.move(10 * MINUTE)
      for (const work of started.work) while ((await work()) > 0);
    }
    for (let count = 0; count < 18; count += 1) await round()
    expect(world.saidOf(...kinds).toSorted()).toEqual(kinds.map((kind) => `${kind} raised`).toSorted())
    reach.note({ stage: 'answered', status: 200, headers: {}, body: Buffer.from('') }, 1)
    await world.supplier.webhooks()
    await addWebhook(world.db, world.vault, { path: '', secret: SECRET, createdAt: 1 })
    await world.runtime.inbox.reload()
    const { headers, body } = signedDelivery({ timestamp: timestampOf(world.now()) })
    const answer = await fetch(`${world.url}/webhooks/supplier`, { method: 'POST', headers: [...headers], body })
    expect(answer.status).toBe(200)
    await round()
    expect(world.saidOf(...kinds).filter((text) => text.endsWith('ended'))).toHaveLength(4)
    await started.close()
  })

  test('heard as still open what had ended while the service was away', async () => {
    const world = await openAlerting()
    await raise(world, { type: 'backup_failed', occasion: '1', payload: { note: 'the disk is full' } })
    await world.alertRound()
    world.move(MINUTE)
    expect((await world.ask('POST', '/backups')).status).toBe(201)
    world.move(3 * DAY)
    const { work, close } = await openAlerts(world.alertParts)
    const [watch, ...channels] = work
    for (const send of channels) expect(await send()).toBe(0)
    while ((await watch?.()) ?? 0);
    for (const send of channels) while ((await send()) > 0);
    await close()
    expect(world.saidOf('backup_failed')).toEqual(['backup_failed raised', 'backup_failed ended'])
  })

  test('is sent the end alone of what was over before the service took it, after a start', async () => {
    const world = await openAlerting()
    await raise(world, { type: 'backup_failed', occasion: '1', payload: { note: 'the disk is full' } })
    world.move(MINUTE)
    expect((await world.ask('POST', '/backups')).status).toBe(201)
    const { work, close } = await openAlerts(world.alertParts)
    const rounds: number[] = []
    // Each worker runs for itself: a channel may have its turn after every batch of the watcher.
    for (let round = 0; round < 3; round += 1) for (const one of work) rounds.push(await one())
    await close()
    expect(rounds.slice(0, 2)).toEqual([1, 0])
    expect(world.saidOf('backup_failed')).toEqual(['backup_failed ended'])
  })

  test('is sent what is known while what is watched cannot be read', async () => {
    const world = await openAlerting()
    const diskFreeMb = () => Promise.reject(new Error('the disk does not answer'))
    const { work, close } = await openAlerts({
      ...world.alertParts,
      watched: { ...world.alertParts.watched, diskFreeMb },
    })
    const [watch, send] = work
    await raise(world, low('1'))
    expect(await watch?.()).toBe(1)
    await expect(watch?.()).rejects.toThrow('the disk does not answer')
    expect(await send?.()).toBe(1)
    await close()
    expect(world.saidOf('balance_low')).toEqual(['balance_low raised'])
  })

  test('was sent the ends of what it had not been sent while it was muted, when it was unmuted', async () => {
    const world = await openAlerting()
    world.disk.freeMb = 10
    await pass(world, MINUTE)
    const { body } = await world.ask('GET', '/alerts')
    const id = body.data.items.find(({ type }) => type === 'disk_low')?.id
    expect((await world.ask('POST', `/alerts/${id}/mute`, { body: { hours: 48 } })).status).toBe(200)
    for (let hour = 0; hour < 6; hour += 1) {
      world.disk.freeMb = hour % 2 === 0 ? 10_000 : 10
      await pass(world, HOUR, 10 * MINUTE)
    }
    expect((await world.ask('POST', `/alerts/${id}/unmute`, { body: {} })).status).toBe(200)
    await pass(world, 10 * MINUTE)
    world.disk.freeMb = 10_000
    await pass(world, 2 * HOUR, 10 * MINUTE)
    const messages = world.receiver.received.filter(({ data }) => data.kind === 'disk_low')
    // The first one, which was sent before, has ended; the last one stood when they were unmuted.
    expect(messages.flatMap(({ data }) => data.alerts.map(({ state }) => state))).toEqual([
      'raised',
      'raised',
      'ended',
      'ended',
    ])
  })

  test('heard nothing of an alert that another version had raised, of a kind that is not known here', async () => {
    const world = await openAlerting()
    const row = {
      id: world.ordering.newId(),
      kind: 'alert',
      type: 'keys_withdrawn',
      dedupeKey: 'alert:keys_withdrawn:1',
      payload: { note: 'the supplier withdrew 3 keys' },
      state: 'due' as const,
      notBefore: world.now(),
      createdAt: world.now(),
    }
    await world.db.commit([{ statement: build.insert(outbox).values(row), rows: 1 }])
    const said = () => world.receiver.received.filter(({ data }) => data.kind === row.type)
    const shown = async () => (await world.ask('GET', '/status')).body.data.alerts
    const standing = {
      type: row.type,
      severity: 'critical',
      note: row.payload.note,
      advice: 'read its note, which another version of Quayside wrote',
      command: 'quayside status',
      state: 'open',
    }
    expect(await shown()).toMatchObject([standing])
    await pass(world, 10 * MINUTE)
    expect(said().map(({ data }) => data.title)).toEqual(['critical: keys withdrawn'])
    const { items } = (await world.ask('GET', '/alerts?state=open')).body.data
    expect(items).toMatchObject([standing])
    await world.ask('POST', `/alerts/${items[0]?.id}/mute`, { body: { hours: 48 } })
    await pass(world, 47 * HOUR, HOUR)
    expect(said()).toHaveLength(1)
    await pass(world, 2 * DAY, HOUR)
    expect(said().map(({ data }) => saidIn(data))).toEqual([
      'keys_withdrawn raised',
      'keys_withdrawn repeated',
      'keys_withdrawn ended',
    ])
  })

  test.each([
    ['user and password', 'du%40ty:p%3Ass@', 'du@ty:p:ss'],
    ['user, which is a token', 'a%2Btoken@', 'a+token:'],
    ['password alone', ':secret@', ':secret'],
  ])('was asked with the %s of its address as a header', async (_what, inAddress, pair) => {
    const receiver = await startAlertReceiver()
    const address = receiver.url.replace('://', `://${inAddress}`)
    const world = await openAlerting({}, { alertAddresses: { QUAYSIDE_ALERT_DUTY: address } })
    await raise(world, low('1'))
    await world.alertRound()
    expect(receiver.received.map(({ headers }) => headers.authorization)).toEqual([
      `Basic ${Buffer.from(pair).toString('base64')}`,
    ])
  })

  test('heard each day of a shop that gave no orders and was removed since', async () => {
    const world = await openAlerting()
    const { db, now } = world
    await db.commit([
      connectStore('shop', now()),
      putStoreReading('shop', { failingSince: now() }),
      insertLateOrder({ store: 'shop', reference: '11', attempts: 3, notBefore: now(), lastError: 'it failed' }),
    ])
    const kinds: AlertKind[] = ['store_unreachable', 'order_unread', 'order_refused']
    for (const type of kinds) {
      await raise(world, { type, occasion: '1', payload: { note: 'no answer', store: 'shop', reference: '11' } })
    }
    await pass(world, 3 * DAY, HOUR)
    expect(world.saidOf(...kinds).filter((text) => text.endsWith('repeated'))).toEqual([])
  })

  test('heard nothing for a month of what still stood after the clock was put back by a month', async () => {
    const world = await openAlerting()
    world.disk.freeMb = 10
    await pass(world, MINUTE)
    world.move(-30 * DAY)
    await pass(world, 30 * HOUR, HOUR)
    expect(world.saidOf('disk_low')).toEqual(['disk_low raised', 'disk_low repeated', 'disk_low repeated'])
  })

  test('heard nothing more of a full disk behind a flood of other alerts', async () => {
    const world = await openAlerting()
    const { db, ordering } = world
    world.disk.freeMb = 10
    await pass(world, MINUTE)
    const payload = { note: 'it was changed in the shop', store: OTHER_STORE }
    for (let reference = 0; reference < 5_200; reference += 100) {
      const alerts = Array.from({ length: 100 }, (_, index) => {
        const occasion = String(reference + index)
        return enqueueAlert(ordering, { type: 'order_changed', occasion, payload: { ...payload, reference: occasion } })
      })
      await db.commit(alerts)
    }
    await pass(world, 30 * MINUTE)
    const { body } = await world.ask('GET', '/status')
    expect(body.data.alerts).toContainEqual(expect.objectContaining({ type: 'disk_low', state: 'open' }))
    world.disk.freeMb = 10_000
    await pass(world, HOUR, 30 * MINUTE)
    expect(world.saidOf('disk_low')).toEqual(['disk_low raised', 'disk_low ended'])
  }, 60_000)

  test('that redirects is not followed', async () => {
    const world = await openAlerting()
    const elsewhere = await startAlertReceiver()
    world.receiver.answer = (response) => void response.writeHead(307, { location: elsewhere.url }).end()
    await raise(world, low('1'))
    await pass(world, HOUR)
    expect(elsewhere.received).toEqual([])
  })

  test.each([301, 302, 303, 308])(
    'that answers %i was not sent the message, and gets it once it takes it',
    async (status) => {
      const world = await openAlerting()
      const elsewhere = await startAlertReceiver()
      world.receiver.answer = (response) => void response.writeHead(status, { location: elsewhere.url }).end()
      await raise(world, low('1'))
      const failingSince = new Date(world.now() + MINUTE).toISOString()
      await pass(world, 10 * MINUTE)
      expect(elsewhere.received).toEqual([])
      const { body } = await world.ask('GET', '/alerts/channels')
      expect(body.data.items).toMatchObject([
        {
          sentAt: null,
          failingSince,
          error: expect.stringMatching(`^answered ${status}: redirects`),
        },
      ])
      world.receiver.received.length = 0
      world.receiver.answer = (response) => void response.writeHead(204).end()
      await pass(world, HOUR)
      expect(world.saidOf('balance_low')).toEqual(['balance_low raised'])
      const after = (await world.ask('GET', '/alerts/channels')).body.data
      expect(after.items).toMatchObject([
        { sentAt: expect.stringMatching(/^2023-11-14T22:\d\d:/), failingSince: null, nextTryAt: null, error: null },
      ])
    },
  )

  test.each([
    [200, null],
    [299, null],
    [400, 'answered 400'],
    [401, 'answered 401: it does not accept the address or the signature'],
    [403, 'answered 403: it does not accept the address or the signature'],
    [404, 'answered 404: there is nothing at this address'],
    [410, 'answered 410: there is nothing at this address'],
  ])('that answers %i has taken the message, or says why not: %s', async (status, detail) => {
    const receiver = await startAlertReceiver()
    receiver.answer = (response) => void response.writeHead(status).end()
    const channel = webhookChannel({ format: 'json', address: new Secret(receiver.url), now: () => 1 })
    const result = await channel.send(testMessage('t'))
    expect(result).toEqual(detail === null ? { outcome: 'sent' } : { outcome: 'not_sent', detail })
    await channel.close()
  })

  test('is not alone: the log has at once what stands, and once', async () => {
    const world = await openAlerting()
    let woken = 0
    const wakeOutbox = () => {
      woken += 1
    }
    const { work, close } = await openAlerts({ ...world.alertParts, wakeOutbox })
    const counts: number[] = []
    for (const freeMb of [10_000, 10, 10]) {
      world.disk.freeMb = freeMb
      for (const one of work) while ((await one()) > 0);
      counts.push(woken)
      world.move(MINUTE)
    }
    expect(counts).toEqual([0, 1, 1])
    await close()
  })

  test('that was away for six days is sent what began and ended meanwhile, and after eight it is no news', async () => {
    for (const [days, said] of [
      [6, ['disk_low ended']],
      [8, []],
    ] as const) {
      const world = await openAlerting()
      world.receiver.answer = (response) => void response.writeHead(503).end()
      world.disk.freeMb = 10
      await pass(world, MINUTE)
      world.disk.freeMb = 10_000
      await pass(world, MINUTE)
      await pass(world, days * DAY, HOUR)
      world.receiver.received.length = 0
      world.receiver.answer = (response) => void response.writeHead(204).end()
      await pass(world, HOUR)
      expect(world.saidOf('disk_low')).toEqual(said)
    }
  })

  test('that fails while the clock is put back by a month is tried again within the quarter of an hour', async () => {
    const world = await openAlerting()
    world.receiver.answer = (response) => void response.writeHead(503).end()
    await raise(world, low('1'))
    await pass(world, HOUR)
    world.move(-30 * DAY)
    world.receiver.received.length = 0
    world.receiver.answer = (response) => void response.writeHead(204).end()
    await pass(world, 15 * MINUTE)
    expect(world.saidOf('balance_low')).toEqual(['balance_low raised'])
  })

  test('beside one that was down is sent its own messages, and the other one its own as soon as it is up', async () => {
    const late = await startAlertReceiver()
    const world = await openAlerting(
      { channels: { duty: { kind: 'webhook' }, late: { kind: 'webhook' } }, repeatHours: 6 },
      { alertAddresses: { QUAYSIDE_ALERT_LATE: late.url } },
    )
    late.answer = (response) => void response.writeHead(500).end()
    await raise(world, { type: 'backup_failed', occasion: '1', payload: { note: 'the disk is full' } })
    await world.alertRound()
    const failing = (await world.ask('GET', '/alerts/channels')).body.data.items
    expect(failing.map(({ channel, error }) => [channel, error])).toEqual([
      ['duty', null],
      ['late', 'answered 500'],
    ])
    late.answer = (response) => void response.writeHead(204).end()
    late.received.length = 0
    // It is not silent because the other one has had a message of the kind within the hour.
    await pass(world, 15 * MINUTE)
    expect(late.received.map(({ data }) => saidIn(data))).toEqual(['backup_failed raised'])
    await pass(world, 6 * HOUR, 5 * MINUTE)
    expect(late.received.map(({ data }) => saidIn(data))).toEqual(['backup_failed raised', 'backup_failed repeated'])
    expect(world.saidOf('backup_failed')).toEqual(['backup_failed raised', 'backup_failed repeated'])
    const sent = [late, world.receiver].map(({ received }) => received.at(-1)?.headers['webhook-id'])
    expect(new Set(sent).size).toBe(2)
  })

  test('that is taken out of the configuration and comes back is a new one: what ended before is not sent over it', async () => {
    const { url: QUAYSIDE_ALERT_KEPT } = await startAlertReceiver()
    const world = await openAlerting(
      { channels: { duty: { kind: 'webhook' }, kept: { kind: 'webhook' } } },
      { alertAddresses: { QUAYSIDE_ALERT_KEPT } },
    )
    await raise(world, { type: 'backup_failed', occasion: '1', payload: { note: 'the disk is full' } })
    await world.alertRound()
    const config = { ...world.alertParts.config }
    const { duty, kept } = config.alerts.channels
    const withChannels = async (channels: object) => {
      const parts = { ...world.alertParts, config: { ...config, alerts: { ...config.alerts, channels } } }
      const started = await openAlerts(parts as typeof world.alertParts)
      for (const work of started.work) while ((await work()) > 0);
      await started.close()
    }
    await withChannels({ kept })
    const rows = async (table: typeof alertChannels | typeof alertNotices) =>
      (await world.db.query(build.select().from(table))).map(({ channel }) => channel)
    expect([await rows(alertChannels), await rows(alertNotices)]).toEqual([['kept'], ['kept']])
    world.move(MINUTE)
    await world.ask('POST', '/backups')
    await withChannels({ kept })
    world.move(2 * HOUR)
    await withChannels({ duty, kept })
    expect(world.saidOf('backup_failed')).toEqual(['backup_failed raised'])
  })

  test('is sent of two stores with the same trouble that each has it, and of each when it is over there', async () => {
    const world = await openAlerting()
    const stores = [STORE, OTHER_STORE]
    const attempts = (store: string, count: number) =>
      putPublishing({
        store,
        policy: 'p',
        epoch: 0,
        attempts: count,
        pausedUntil: world.now() + 2 * HOUR,
        lastError: 'answered 500',
        changedAt: world.now(),
      })
    const heard = () =>
      world.receiver.received
        .filter(({ data }) => data.kind === 'listings_not_taken')
        .flatMap(({ data }) => data.alerts.map(({ state, subject }) => `${subject} ${state}`))
    // One after the other, so that the second one begins while an alert of the first is open.
    await world.db.commit([attempts(STORE, 5)])
    await pass(world, 2 * HOUR, 10 * MINUTE)
    await world.db.commit([attempts(OTHER_STORE, 5)])
    await pass(world, 2 * HOUR, 10 * MINUTE)
    expect(heard()).toEqual(stores.map((store) => `${store} raised`))
    await world.db.commit([resumePublishing(STORE, world.now())])
    await pass(world, 2 * HOUR, 10 * MINUTE)
    expect(heard().slice(2)).toEqual([`${STORE} ended`])
    const { items } = (await world.ask('GET', '/alerts?state=open')).body.data
    expect(items).toMatchObject([{ type: 'listings_not_taken', subject: OTHER_STORE }])
    // It begins again where it was over, while the other one goes on.
    await world.db.commit([attempts(STORE, 5)])
    await pass(world, 2 * HOUR, 10 * MINUTE)
    expect(heard().slice(3)).toEqual([`${STORE} raised`])
  })

  test('is sent that a store takes nothing after three failures in a row and not after two, and of a removed store nothing', async () => {
    const world = await openAlerting()
    const fail = (store: string, attempts: number) => [
      putPublishing({
        store,
        policy: 'p',
        epoch: 0,
        attempts,
        pausedUntil: world.now() + 2 * HOUR,
        lastError: 'answered 500',
        changedAt: world.now(),
      }),
      enqueueUpdate(
        { kind: 'callback', type: 'order.closed', payload: { state: 'fulfilled' } },
        { id: `${store} ${attempts}`, store, orderId: 'o', dedupeKey: `${store} ${attempts}`, at: world.now() },
      ),
      postponeEffect(`${store} ${attempts}`, attempts, world.now() + 30 * DAY, 'answered 500', null),
    ]
    await world.db.commit([...fail(STORE, 2), ...fail('removed', 5)])
    await pass(world, 2 * MINUTE)
    expect(world.receiver.received).toEqual([])
    await world.db.commit(fail(OTHER_STORE, 3))
    await pass(world, 2 * MINUTE)
    const said = world.receiver.received.map(({ data }) => [data.kind, ...data.alerts.map(({ subject }) => subject)])
    expect(said.toSorted()).toEqual([
      ['listings_not_taken', OTHER_STORE],
      ['updates_not_taken', OTHER_STORE],
    ])
  })

  test('is sent of two stores at once one message that names both, and a mute of one is none of the other', async () => {
    const world = await openAlerting()
    const payload = { note: 'answered 500', reference: '11' }
    const both = (occasion: string) =>
      [STORE, OTHER_STORE].map((store) =>
        enqueueAlert(world.ordering, {
          type: 'order_fulfilled_early',
          occasion: `${store} ${occasion}`,
          payload: { ...payload, store },
        }),
      )
    await world.db.commit(both('1'))
    await pass(world, MINUTE)
    const messages = () => world.receiver.received.filter(({ data }) => data.kind === 'order_fulfilled_early')
    expect(messages().map(({ data }) => data.alerts.map(({ subject }) => subject).toSorted())).toEqual([
      [STORE, OTHER_STORE].toSorted(),
    ])
    const { items } = (await world.ask('GET', '/alerts')).body.data
    const muted = items.find(({ subject }) => subject === STORE)
    await world.ask('POST', `/alerts/${muted?.id}/mute`, { body: { hours: 200 } })
    await pass(world, 2 * DAY, HOUR)
    expect(
      messages()
        .slice(1)
        .map(({ data }) => data.alerts.map(({ subject }) => subject)),
    ).toEqual([[OTHER_STORE], [OTHER_STORE]])
  })

  test('is sent one message an hour of a disk that is full every other minute', async () => {
    const world = await openAlerting()
    for (let minute = 0; minute < 12 * 60; minute += 1) {
      world.disk.freeMb = minute % 2 === 0 ? 10 : 10_000
      await pass(world, MINUTE)
    }
    const messages = world.saidOf('disk_low')
    expect(messages.length).toBeGreaterThan(6)
    expect(messages.length).toBeLessThanOrEqual(13)
  })

  test.each(['webhook', 'email'])('that does not answer held up the end of the service: %s', async (kind) => {
    const smtp = await startSmtpServer()
    smtp.isSilent = true
    const settings = kind === 'email' ? { kind, from: 'q@shop.example', to: ['a@shop.example'] } : { kind }
    const world = await openAlerting(
      { channels: { duty: settings } },
      {
        alertAddresses: kind === 'email' ? { QUAYSIDE_ALERT_DUTY: smtp.url } : {},
      },
    )
    world.receiver.answer = () => {}
    await raise(world, low('1'))
    const sending = world.alertRound()
    await until(() => world.receiver.received.length + smtp.connections === 1)
    const began = performance.now()
    await world.alerting.close()
    await sending
    expect(performance.now() - began).toBeLessThan(5_000)
    // It is no failure of the channel: the message goes under the same id after the next start.
    expect(await world.db.query(alertChannelNamed('duty'))).toMatchObject([{ attempts: 0, failingSince: null }])
  })
})
