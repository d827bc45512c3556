import { once } from 'node:events'
import { type IncomingMessage, request } from 'node:http'
import { setImmediate as turn } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import { createTail, WATCHERS_MAX } from '../../src/log.ts'
import { openApi } from '../support/api-world.ts'
import { run, widest } from '../support/cli-run.ts'
import { STORE } from '../support/test-app.ts'

const quiet = { info: () => {}, warn: () => {}, error: () => {} }

describe('quayside trigger', () => {
  test('sends a signed example that is marked as a test, and keeps nothing of it', async () => {
    const world = await openApi()
    const { exitCode, stdout } = await run(
      ['trigger', 'line.fulfilled', '--store', STORE, '--url', world.url, '--json'],
      {
        env: { QUAYSIDE_TOKEN: world.tokens.operator },
      },
    )
    expect(exitCode).toBe(0)
    expect(JSON.parse(stdout)).toMatchObject({ type: 'line.fulfilled', outcome: 'confirmed', detail: null })
    expect(world.shop.refused(), 'the signature is right').toBe(0)
    expect(world.shop.received(), 'the demo store does not keep it').toEqual([])
    expect((await world.ask('GET', '/outbox')).body.data.items).toEqual([])
  })

  test.each(['line.fulfilled', 'line.failed', 'line.held', 'line.resumed', 'order.closed'])(
    'can send %s, with the fields of a real one',
    async (type) => {
      const world = await openApi()
      const bodies: string[] = []
      const { sendExample } = world.store
      world.ordering.storeOf = () => ({
        ...world.store,
        sendExample: async (update) => {
          bodies.push(JSON.stringify(update))
          return (await sendExample?.(update)) ?? { outcome: 'confirmed' }
        },
      })
      const answer = await world.ask('POST', `/stores/${STORE}/trigger`, { body: { type } })
      expect(answer.body.data).toMatchObject({ type, outcome: 'confirmed' })
      expect(bodies).toHaveLength(1)
      expect(bodies[0]).toContain('"reference":"test-')
    },
  )

  test('says why the store did not confirm, and ends with 1', async () => {
    const world = await openApi()
    await world.shop.close()
    const { exitCode, stdout } = await run(['trigger', 'order.closed', '--store', STORE, '--url', world.url], {
      env: { QUAYSIDE_TOKEN: world.tokens.operator },
    })
    expect(exitCode).toBe(1)
    expect(stdout).toContain('The store did not confirm order.closed')
    expect(stdout).toContain('nothing listens')
  })

  test('refuses a type that there is not, and a token that may not', async () => {
    const world = await openApi()
    const wrong = await world.ask('POST', `/stores/${STORE}/trigger`, { body: { type: 'line.lost' } })
    expect(wrong.status).toBe(400)
    expect(wrong.body.error.fields).toMatchObject([{ field: 'type' }])
    const viewer = await world.ask('POST', `/stores/${STORE}/trigger`, {
      token: world.tokens.viewer,
      body: { type: 'order.closed' },
    })
    expect(viewer.status).toBe(403)
  })
})

describe('quayside tail', () => {
  test('shows what happens while it watches, and says when the service has ended', async () => {
    const world = await openApi()
    const shown = run(['tail', '--url', world.url, '--json'], {
      env: { QUAYSIDE_TOKEN: world.tokens.viewer },
      stopped: new Promise(() => {}),
    })
    const answer = await fetch(`${world.url}/api/v1/events`, {
      headers: { authorization: `Bearer ${world.tokens.viewer}` },
    })
    expect(answer.status).toBe(200)
    const { log, end } = world.tail
    const heard: Promise<string> = answer.text()
    while (world.tail.watchers() < 2) await turn()
    log.info('purchase.accepted', { purchaseId: 'p-1', before: 'sending' })
    log.info('sync.started', { runId: 'r-1' })
    log.warn('callback.failed', { store: 'north', detail: undefined })
    end()
    const { exitCode, stdout, stderr } = await shown
    const events = stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line))
    expect(events).toMatchObject([
      { event: 'purchase.accepted', level: 'info', fields: { purchaseId: 'p-1', before: 'sending' } },
      { event: 'callback.failed', level: 'warn', fields: { store: 'north' } },
    ])
    expect(exitCode).toBe(3)
    expect(JSON.parse(stderr).error.message).toContain('has ended')
    expect(
      (await heard)
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line).event),
    ).toEqual(['purchase.accepted', 'sync.started', 'callback.failed'])
  })

  test('at one process of several was silent about what the others do, and did not say so', async () => {
    const world = await openApi({ workerAbsentSince: () => null })
    const given = { env: { QUAYSIDE_TOKEN: world.tokens.viewer }, stopped: new Promise<void>(() => {}) }
    const watching = [[], ['--json']].map((more) => run(['tail', '--url', world.url, ...more], given))
    while (world.tail.watchers() < 2) await turn()
    world.tail.end()
    const [shown, json] = await Promise.all(watching)
    expect(shown?.stderr).toMatch(/^Of several processes this shows one alone: purchases/m)
    expect(widest(shown?.stderr ?? '')).toBeLessThanOrEqual(80)
    expect(shown?.stdout).toBe('')
    expect(JSON.parse(json?.stdout ?? '')).toMatchObject({ event: 'tail.partial' })
  })

  test('counts what a slow watcher has missed, and keeps the newest', async () => {
    const { log, watch } = createTail(quiet)
    const records = watch()
    for (let count = 0; count < 1_005; count += 1) log.info('purchase.accepted', { count })
    const first = await records?.next()
    expect(first?.value).toMatchObject({ event: 'tail.skipped', fields: { count: 5 } })
    expect((await records?.next())?.value).toMatchObject({ fields: { count: 5 } })
  })

  test('is a sign of life after a while in which nothing happened', async () => {
    const { watch } = createTail(quiet, { idleMs: 1 })
    const records = watch()
    expect((await records?.next())?.value).toMatchObject({ event: 'tail.idle' })
    expect((await records?.next())?.value).toMatchObject({ event: 'tail.idle' })
  })

  test('lets a bounded number of people watch, and a new one once another has left', async () => {
    const world = await openApi()
    const watching = Array.from({ length: WATCHERS_MAX }, () => world.tail.watch())
    expect((await world.ask('GET', '/events')).body.error.code).toBe('too_many_watchers')
    await watching[0]?.return?.()
    expect(world.tail.watch()).toBeDefined()
  })

  test('forgets a watcher that has gone', async () => {
    const world = await openApi()
    const headers = { authorization: `Bearer ${world.tokens.viewer}` }
    const asking = request(`${world.url}/api/v1/events`, { headers })
    asking.end()
    const [answer] = (await once(asking, 'response')) as [IncomingMessage]
    expect(world.tail.watchers()).toBe(1)
    answer.destroy()
    while (world.tail.watchers() > 0) await turn()
  })
})
