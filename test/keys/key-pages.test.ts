/** The page on which a customer opens the keys of an order, over real sockets. */
import { Router } from 'express'
import { expect, onTestFinished, test } from 'vitest'
import { createHttpServer } from '../../src/http/server.ts'
import { newPage, pathOfOrder } from '../../src/keys/key-pages.ts'
import { keysRouter, truncated } from '../../src/keys/router.ts'
import { revealsOfOrder, withdrawKeyPage } from '../../src/storage/key-pages.ts'
import { openTestApp, type TestAppOptions } from '../support/test-app.ts'

const MINUTE = 60_000
const DAY = 24 * 60 * MINUTE

/** An order of `quantity` units with its page, served at an address. */
async function openPage(quantity = 2, options: TestAppOptions = {}) {
  const app = await openTestApp(options)
  const { db, ordering } = app
  const { vault, now, newId, monotonic } = ordering
  const orderId = await app.buy('1001', { quantity })
  await db.commit([newPage({ vault, now }, orderId)])
  const path = (await pathOfOrder({ db, vault }, orderId)) ?? ''
  const shop = { name: 'Nordic <Keys>', url: 'https://shop.example', contact: null, language: 'en' }
  const logged: string[] = []
  const server = createHttpServer({
    webhooks: Router().use(keysRouter({ db, vault, now, newId, pageDays: 365, monotonic, shopOf: () => shop })),
    log: { ...ordering.log, info: (event, fields) => logged.push(JSON.stringify({ event, ...fields })) },
    newId,
    monotonic,
  })
  const { port } = await server.listen('127.0.0.1', 0)
  onTestFinished(server.close)
  const url = `http://127.0.0.1:${port}${path}`
  const call = async (method: string, address = url, body?: string) => {
    const headers = body === undefined ? {} : { 'content-type': 'application/x-www-form-urlencoded' }
    const answer = await fetch(address, { method, headers, ...(body !== undefined && { body }) })
    return { status: answer.status, headers: answer.headers, text: await answer.text() }
  }
  return { app, orderId, url, call, logged, keys: () => [...app.shop.keys().values()].flat() }
}

test('shows each key after a click, and the first click is evidence', async () => {
  const { app, orderId, call, keys, logged, url } = await openPage()
  await app.pass(MINUTE)
  expect(keys()).toHaveLength(2)
  const closed = await call('GET')
  expect(closed.status).toBe(200)
  expect(closed.text).toContain('Your 2 keys are here.')
  expect(closed.text).toContain('Nordic &lt;Keys&gt;')
  for (const key of keys()) expect(closed.text).not.toContain(key)
  await call('HEAD')
  expect(await app.db.query(revealsOfOrder(orderId)), 'a link that is only fetched opens nothing').toEqual([])
  const opened = await call('POST', url, 'line=1')
  for (const key of keys()) expect(opened.text).toContain(`<code>${key}</code>`)
  expect(await app.db.query(revealsOfOrder(orderId))).toMatchObject([
    { at: app.now(), network: '127.0.0.0/24' },
    { at: app.now(), network: '127.0.0.0/24' },
  ])
  expect((await call('GET')).text, 'a page that is fetched again shows no key').not.toContain('<code>')
  expect(logged.join('\n'), 'the token is in no log').not.toContain(url.slice(url.lastIndexOf('/') + 1))
})

test('says what is still being bought', async () => {
  const { call } = await openPage()
  expect((await call('GET')).text).toContain('Your 2 keys are being bought.')
})

test('shows no key any more once it is withdrawn, and says which were opened', async () => {
  const { app, orderId, call, url } = await openPage()
  await app.pass(MINUTE)
  await call('POST', url, 'line=1')
  await app.db.commit([withdrawKeyPage(orderId, 'kim', app.now())])
  const { text } = await call('POST', url, 'line=1')
  expect(text).toContain('This page is closed.')
  expect(text).toContain('Opened on')
  expect(text).not.toContain('<code>')
})

test('closes after its days', async () => {
  const { app, call } = await openPage()
  await app.pass(MINUTE)
  app.move(365 * DAY)
  expect((await call('GET')).text).toContain('The time of this page is over.')
})

test('may not be framed, kept or found, and loads nothing from elsewhere', async () => {
  const { call } = await openPage()
  const { headers, text } = await call('GET')
  expect(headers.get('content-security-policy')).toContain("frame-ancestors 'none'")
  expect(headers.get('referrer-policy')).toBe('no-referrer')
  expect(headers.get('cache-control')).toBe('no-store')
  expect(headers.get('x-robots-tag')).toContain('noindex')
  const files = [...text.matchAll(/(?:href|src)="(\/[^"]+)"/g)].map(([, file]) => file ?? '')
  expect(files).toHaveLength(2)
  expect(text.length).toBeLessThan(8_000)
})

test('refuses wrong tokens of a network after twenty, and never the right one', async () => {
  const { call, url } = await openPage()
  const wrong = `${url.slice(0, -1)}${url.endsWith('A') ? 'B' : 'A'}`
  const statuses = []
  for (let guess = 0; guess < 25; guess += 1) statuses.push((await call('GET', wrong)).status)
  expect(statuses).toEqual([...Array(20).fill(404), ...Array(5).fill(429)])
  expect((await call('GET')).status).toBe(200)
})

test.each([
  ['203.0.113.77', '203.0.113.0/24'],
  ['::ffff:203.0.113.77', '203.0.113.0/24'],
  ['2001:db8:1:2:3:4:5:6', '2001:db8:1::/48'],
])('notes of the network of %s only %s', (address, network) => {
  expect(truncated(address)).toBe(network)
})
