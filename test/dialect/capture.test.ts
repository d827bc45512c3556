import { randomBytes } from 'node:crypto'
import { setImmediate as turn } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import { createIds } from '../../src/ids.ts'
import { createCaptures } from '../../src/inbox/capture.ts'
import type { ReceivedRequest } from '../../src/inbox/receive.ts'
import { audit, captures } from '../../src/storage/schema.ts'
import { clearSetting } from '../../src/storage/settings.ts'
import { build } from '../../src/storage/statement.ts'
import { openApi } from '../support/api-world.ts'
import { run, startService } from '../support/cli-run.ts'
import { MARKER, orderEvent, SECRET, type SignedDelivery, signedDelivery } from '../support/delivery.ts'
import { openEndpoint } from '../support/webhook-endpoint.ts'

const MINUTE = 60_000
const FORGED = 'whsec_forged_0123456789abcdef0123456789abcdef'

/** Waits for a condition, for a bounded number of turns. */
async function until(isTrue: () => boolean | Promise<boolean>): Promise<void> {
  for (let round = 0; round < 500; round += 1) {
    if (await isTrue()) return
    await turn()
  }
  throw new Error('waited for too long')
}

/** An endpoint with an open capture. */
async function openCapture() {
  const endpoint = await openEndpoint()
  const { db, vault, clock, deps, inbox } = endpoint
  const now = () => clock.now
  const capture = createCaptures({ db, vault, now, newId: createIds(now, randomBytes), log: deps.log })
  const receive = capture.watch(inbox.receive)
  const requestOf = ({ headers, body }: SignedDelivery): ReceivedRequest => ({
    path: '/webhooks/supplier',
    headers: Object.fromEntries(headers.map(([name, value]) => [name, [value]])),
    body,
  })
  const kept = async () => db.query(build.select().from(captures))
  return {
    ...endpoint,
    capture,
    kept,
    /** @param by the signing secret (default: the right one) */
    send: async (secret = SECRET, deliveryId = 'dlv_1') =>
      receive(requestOf(signedDelivery({ secret, deliveryId, body: orderEvent({ order_id: deliveryId }) }))),
    receive,
    requestOf,
    /** Waits until this many are kept. */
    hasKept: async (count: number) => {
      await until(async () => (await kept()).length >= count)
      // A delivery beyond the count would be kept together with it.
      await turn()
      expect(await kept()).toHaveLength(count)
    },
  }
}

describe('a capture', () => {
  test('keeps nothing before it is started', async () => {
    const { send, kept, capture } = await openCapture()
    expect(await send(FORGED)).toMatchObject({ outcome: 'not_authentic' })
    expect(await kept()).toEqual([])
    expect(capture.open()).toBeUndefined()
  })

  test('keeps refused deliveries unchanged, and no accepted ones', async () => {
    const { send, hasKept, capture, receive, requestOf, clock } = await openCapture()
    await capture.start('anna')
    expect(await send()).toMatchObject({ outcome: 'stored' })
    expect(await send()).toMatchObject({ outcome: 'duplicate' })
    const forged = signedDelivery({ secret: FORGED })
    expect(await receive(requestOf(forged))).toMatchObject({ outcome: 'not_authentic' })
    expect(await receive({ ...requestOf(forged), path: '/webhooks/nowhere' })).toMatchObject({
      outcome: 'unknown_path',
    })
    const old = signedDelivery({ timestamp: String(clock.now / 1_000 - 900), deliveryId: 'dlv_old' })
    expect(await receive(requestOf(old))).toMatchObject({ outcome: 'stale' })
    await hasKept(2)
    const list = await capture.list()
    expect(list.map(({ reason }) => reason)).toEqual(['mismatch', 'stale'])
    const shown = await capture.show(list[0]?.id ?? '', 'anna')
    expect(shown.headers).toEqual(requestOf(forged).headers)
    expect(Buffer.from(shown.body, 'base64')).toEqual(forged.body)
  })

  test('keeps a delivery that comes again once, and shows how it is signed where the service holds its secret', async () => {
    const { send, hasKept, capture, receive, requestOf } = await openCapture()
    await capture.start('anna')
    // Another one is signed as ours is, in a header that the dialect does not know.
    const { headers, body } = requestOf(signedDelivery())
    const renamed = Object.fromEntries(
      Object.entries(headers).map(([name, value]) => [name.replace('x-', 'x-other-'), value]),
    )
    for (let retry = 1; retry <= 7; retry += 1) await send(FORGED, 'dlv_1')
    await receive({ path: '/webhooks/supplier', headers: renamed, body })
    await hasKept(2)
    const shown = await Promise.all((await capture.list()).map(({ id }) => capture.show(id, 'anna')))
    expect(shown.map(({ signature }) => signature?.header ?? null)).toEqual([null, 'x-other-service-signature'])
  })

  test('keeps ten, even when they come at once', async () => {
    const { send, hasKept, capture } = await openCapture()
    await capture.start('anna')
    await Promise.all(Array.from({ length: 25 }, (_, n) => send(FORGED, `dlv_${n}`)))
    await hasKept(10)
    expect(capture.open()).toMatchObject({ left: 0 })
    await send(FORGED)
    await hasKept(10)
  })

  test('ends after 15 minutes, and what it kept is deleted after another 15', async () => {
    const { send, hasKept, capture, clock } = await openCapture()
    await capture.start('anna')
    await send(FORGED)
    await hasKept(1)
    clock.now += 15 * MINUTE
    expect(capture.open()).toBeUndefined()
    await send(FORGED)
    await capture.refresh()
    await hasKept(1)
    clock.now += 15 * MINUTE
    await capture.refresh()
    await hasKept(0)
  })

  test('begins again when it is restarted', async () => {
    const { send, hasKept, capture } = await openCapture()
    await capture.start('anna')
    await send(FORGED)
    await hasKept(1)
    expect(await capture.start('anna')).toMatchObject({ left: 10 })
    await hasKept(0)
  })

  test('that one process begins is taken by every other, and ends for all', async () => {
    const { send, hasKept, capture, db, vault, deps, clock, inbox, requestOf } = await openCapture()
    const next = createCaptures({ db, vault, now: () => clock.now, newId: deps.newId, log: deps.log })
    await next.refresh()
    await capture.start('anna')
    await send(FORGED)
    await hasKept(1)
    expect(next.open()).toBeUndefined()
    await next.refresh()
    expect(next.open()).toMatchObject({ left: 9 })
    await next.watch(inbox.receive)(requestOf(signedDelivery({ secret: FORGED, deliveryId: 'dlv_2' })))
    await hasKept(2)
    clock.now += 30 * MINUTE
    await next.refresh()
    await capture.refresh()
    expect([next.open(), capture.open()]).toEqual([undefined, undefined])
    await hasKept(0)
  })

  test('of an earlier version is deleted', async () => {
    const { send, hasKept, capture, db, vault, deps, clock } = await openCapture()
    await capture.start('anna')
    await send(FORGED)
    await hasKept(1)
    await db.commit([clearSetting('capture')])
    const next = createCaptures({ db, vault, now: () => clock.now, newId: deps.newId, log: deps.log })
    await next.refresh()
    await hasKept(0)
  })

  test('is sealed in the database, and quiet in the log', async () => {
    const { send, hasKept, kept, capture, seen } = await openCapture()
    await capture.start('anna')
    await send(FORGED)
    await hasKept(1)
    const [row] = await kept()
    expect(
      Object.values(row ?? {})
        .map((value) => (Buffer.isBuffer(value) ? value.toString('latin1') : value))
        .join(),
    ).not.toMatch(new RegExp(`${MARKER}|x-service|order_id`))
    expect(seen.lines.join()).not.toContain(MARKER)
  })

  test('records in the audit who started it and who read it', async () => {
    const { send, hasKept, capture, db } = await openCapture()
    await capture.start('anna')
    await send(FORGED)
    await hasKept(1)
    const [entry] = await capture.list()
    await capture.show(entry?.id ?? '', 'bert')
    const rows = await db.query(build.select().from(audit).orderBy(audit.id))
    expect(rows.map(({ actor, action, subject }) => [actor, action, subject])).toEqual([
      ['anna', 'capture.start', 'webhooks'],
      ['bert', 'capture.reveal', entry?.id],
    ])
    await expect(capture.show('nowhere', 'bert')).rejects.toMatchObject({ code: 'not_found' })
  })

  test('that cannot write does not change the answer', async () => {
    const { send, capture, deps, seen } = await openCapture()
    await capture.start('anna')
    const commit = deps.db.commit
    deps.db.commit = () => Promise.reject(new Error('disk full'))
    expect(await send(FORGED)).toMatchObject({ outcome: 'not_authentic' })
    await until(() => seen.lines.some((line) => line.includes('capture.lost')))
    deps.db.commit = commit
  })
})

describe('quayside dialect capture', () => {
  const at = (ms: number) => new Date(1_700_000_000_000 + ms).toISOString()
  const now = () => 1_700_000_000_000
  const state = { closesAt: at(15 * MINUTE), keptUntil: at(30 * MINUTE), left: 10 }
  const entry = { id: 'c1', path: '/webhooks/supplier', reason: 'mismatch', receivedAt: at(-5_000) }
  const detail = { ...entry, headers: { 'x-signed': ['abc'] }, body: 'e30=' }

  test('starts, lists and shows', async () => {
    const { config } = await startService({
      'POST /captures': () => state,
      'GET /captures': () => ({ open: state, items: [entry] }),
      'GET /captures/c1': () => detail,
    })
    const started = await run(['dialect', 'capture', 'start', '--config', config], { now })
    expect(started).toMatchObject({ exitCode: 0 })
    expect(started.stdout).toContain('Taking up to 10 refused deliveries until 2023-11-14 22:28:20Z')
    const listed = await run(['dialect', 'capture', 'list', '--config', config], { now })
    expect(listed.stdout).toMatch(/c1 +\/webhooks\/supplier +mismatch +5 s/)
    const shown = await run(['dialect', 'capture', 'show', 'c1', '--config', config], { now })
    expect(JSON.parse(shown.stdout)).toEqual(detail)
  })

  test('says that nothing is kept', async () => {
    const { config } = await startService({ 'GET /captures': () => ({ open: null, items: [] }) })
    const { stdout } = await run(['dialect', 'capture', 'list', '--config', config])
    expect(stdout).toContain('Nothing is kept.')
    expect(stdout).toContain('quayside dialect capture start')
  })
})

describe('the API of captures', () => {
  test('starts, lists and shows to admins', async () => {
    const world = await openApi()
    const { ask, captures } = world
    const { admin } = world.tokens
    expect((await ask('GET', '/captures', { token: admin })).body.data).toEqual({ open: null, items: [] })
    const started = await ask('POST', '/captures', { token: admin })
    expect(started.status).toBe(201)
    expect(started.body.data).toMatchObject({ left: 10 })
    const refuse = captures.watch(() => Promise.resolve({ outcome: 'not_authentic', reason: 'mismatch' }))
    await refuse({ path: '/webhooks/supplier', headers: { 'x-signed': ['abc'] }, body: Buffer.from('{"a":1}') })
    await until(async () => (await captures.list()).length === 1)
    const listed = (await ask('GET', '/captures', { token: admin })).body.data
    expect(listed).toMatchObject({ open: { left: 9 }, items: [{ path: '/webhooks/supplier', reason: 'mismatch' }] })
    const shown = await ask('GET', `/captures/${listed.items[0]?.id}`, { token: admin })
    expect(shown.body.data).toMatchObject({ headers: { 'x-signed': ['abc'] }, body: 'eyJhIjoxfQ==' })
    expect((await ask('GET', '/captures/nowhere', { token: admin })).status).toBe(404)
    expect((await ask('GET', '/captures', { token: world.tokens.operator })).status).toBe(403)
  })
})
