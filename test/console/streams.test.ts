import { get, type IncomingMessage } from 'node:http'
import { expect, test } from 'vitest'
import { pageStreams, streamLimits } from '../../src/console/streams.ts'
import { openApi } from '../support/api-world.ts'
import { signedIn, visit } from '../support/console-client.ts'
import { until } from '../support/service-process.ts'

/** Follows the stream of a page, as a browser does. */
function follow(address: string, cookie: string, seen = '') {
  const heard: string[] = []
  const state = { heard, status: 0, isOver: false, leave: () => {} }
  const asked = get(`${address}/stream?seen=${seen}`, { headers: { cookie, 'sec-fetch-site': 'same-origin' } })
  state.leave = () => asked.destroy()
  asked.on('error', () => {
    state.isOver = true
  })
  asked.on('response', (response: IncomingMessage) => {
    state.status = response.statusCode ?? 0
    response.on('data', (chunk) =>
      heard.push(...[...String(chunk).matchAll(/event: (\w+)/g)].map(([, event = '']) => event)),
    )
    response.on('close', () => {
      state.isOver = true
    })
  })
  return state
}

/** What a page of this moment hands to its stream. */
const seenOf = (markup: string): string => /data-stream="\/stream\?seen=([^"]*)"/.exec(markup)?.[1] ?? ''

test('a stream says that something was stored, beats meanwhile, and ends when its person signs out', async () => {
  const world = await openApi()
  const address = world.pages.address() ?? ''
  const cookie = await signedIn(world, 'viewer')
  const { text } = await visit(address, '/overview', { cookie })
  const stream = follow(address, cookie, seenOf(text))
  await until('the first beat', () => stream.heard.length > 0)
  expect(stream.heard).toEqual(['beat'])
  const offer = await world.offer()
  await world.order('1001', [{ sku: offer.sku }])
  await until('the change', () => stream.heard.includes('changed'))
  await visit(address, '/signout', { cookie, form: { scope: 'here' } })
  await until('the end', () => stream.isOver)
  expect(stream.heard.at(-1)).toBe('over')
  expect(world.pages.streams()).toBe(0)
})

test('a page that was drawn before a change hears of it first, and one that is left leaves nothing behind', async () => {
  const world = await openApi()
  const address = world.pages.address() ?? ''
  const cookie = await signedIn(world, 'viewer')
  const stream = follow(address, cookie, 'of-another-start')
  await until('the change', () => stream.heard.length > 0)
  expect(stream.heard[0]).toBe('changed')
  expect(world.pages.streams()).toBe(1)
  stream.leave()
  await until('the connection to be closed', () => world.pages.streams() === 0)
})

test('a fifth stream of a session, and one without a session, are refused, and their pages poll', async () => {
  const world = await openApi()
  const address = world.pages.address() ?? ''
  const cookie = await signedIn(world, 'viewer')
  const streams = Array.from({ length: streamLimits.ofSession }, () => follow(address, cookie))
  await until('the streams', () => world.pages.streams() === streamLimits.ofSession)
  expect((await visit(address, '/stream', { cookie })).status).toBe(204)
  expect((await visit(address, '/stream')).status).toBe(204)
  expect((await visit(address, '/stream', { cookie, site: 'cross-site' })).status).toBe(204)
  const other = follow(address, await signedIn(world, 'viewer', 'lu'))
  await until('the stream of another session', () => other.heard.length > 0)
  await world.pages.close()
  await until('the end of all streams', () => [...streams, other].every(({ isOver }) => isOver))
})

test('a service whose data others change too says with each beat that something may have changed', () => {
  expect(pageStreams({}).seen()).toBe('')
  expect(pageStreams({ commits: () => 7 }).seen()).toBe('7')
})

test('the navigation counts what waits on every page, and goes on counting', async () => {
  const world = await openApi()
  const address = world.pages.address() ?? ''
  const cookie = await signedIn(world, 'viewer')
  const { text } = await visit(address, '/audit', { cookie })
  const [, from = '', seen = ''] = /id="counts"[^>]*hx-get="([^"]+)".*?name="seen" value="([^"]+)"/.exec(text) ?? []
  expect(from).toBe('/frame?at=%2Faudit')
  expect((await visit(address, `${from}&seen=${seen}`, { cookie })).status).toBe(204)
  const offer = await world.offer()
  await world.order('1001', [{ sku: offer.sku, unitPriceMinor: 1 }])
  await world.pass(60_000)
  const { text: after } = await visit(address, `${from}&seen=${seen}`, { cookie })
  expect(after).toContain('Customers waiting<b><span class="hide">: </span>1<span class="hide"> waiting</span></b>')
  expect(after).toContain('<a href="/audit" aria-current="page">')
  expect((await visit(address, from)).status, 'a stranger does not see it').toBe(401)
})
