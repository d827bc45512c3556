/** The page on which a customer opens the keys of an order, over real sockets. */
import { expect, test } from 'vitest'
import { truncated } from '../../src/http/server.ts'
import { openLine } from '../../src/keys/key-pages.ts'
import { buyAgain, raiseClaim } from '../../src/ordering/claims.ts'
import { revealsOfOrder, withdrawKeyPage } from '../../src/storage/key-pages.ts'
import { openKeyPage } from '../support/key-page.ts'

const MINUTE = 60_000
const DAY = 24 * 60 * MINUTE

test('shows each key after a click, and the first click is evidence', async () => {
  const { app, orderId, call, open, keys, logged, url } = await openKeyPage()
  await app.pass(MINUTE)
  expect(keys()).toHaveLength(2)
  const closed = await call('GET')
  expect(closed.status).toBe(200)
  expect(closed.text).toContain('Your 2 keys are here.')
  expect(closed.text).toContain('Nordic &lt;Keys&gt;')
  for (const key of keys()) expect(closed.text).not.toContain(key)
  await call('HEAD')
  expect(await app.db.query(revealsOfOrder(orderId)), 'a link that is only fetched opens nothing').toEqual([])
  const opened = await open()
  for (const key of keys()) expect(opened.text).toContain(`<code translate="no">${key}</code>`)
  expect(await app.db.query(revealsOfOrder(orderId))).toMatchObject([
    { at: app.now(), network: '127.0.0.0/24' },
    { at: app.now(), network: '127.0.0.0/24' },
  ])
  expect((await call('GET')).text, 'a page that is fetched again shows no key').not.toContain('<code')
  expect(logged.join('\n'), 'the token is in no log').not.toContain(url.slice(url.lastIndexOf('/') + 1))
})

test('says what is still being bought', async () => {
  const { call } = await openKeyPage()
  expect((await call('GET')).text).toContain('Your 2 keys are being bought.')
})

test('shows no key any more once it is withdrawn, and says which were opened', async () => {
  const { app, orderId, open } = await openKeyPage()
  await app.pass(MINUTE)
  await open()
  await app.db.commit([withdrawKeyPage(orderId, 'kim', app.now())])
  const { text } = await open()
  expect(text).toContain('This page is closed.')
  expect(text).toContain('Opened on')
  expect(text).not.toContain('<code')
})

test('opens no key to a customer who polls while a shop refuses the hand-over again and again', async () => {
  const { app, orderId, open } = await openKeyPage()
  const polled: string[] = []
  const refuses = async () => {
    polled.push((await open()).text)
    return { outcome: 'not_entitled', standing: 'paid', units: 0, detail: 'the refund is not read yet' }
  }
  Object.assign(app.store, { fulfil: refuses })
  await app.pass(20 * MINUTE)
  expect(polled.length).toBeGreaterThan(0)
  expect(polled.filter((text) => text.includes('<code'))).toEqual([])
  expect(await app.db.query(revealsOfOrder(orderId))).toEqual([])
})

test('opens a key whose hand-over was never answered, once its store can no longer refuse it', async () => {
  const { app, orderId, open } = await openKeyPage({ quantity: 1 })
  Object.assign(app.store, {
    fulfil: () => Promise.resolve({ outcome: 'unavailable', mayHaveLeft: true, detail: 'no answer' }),
  })
  await app.pass(MINUTE)
  expect(await app.purchase(orderId)).toMatchObject({ handOverBegunAt: expect.any(Number) })
  expect((await open()).text).not.toContain('<code')
  app.move(5 * MINUTE)
  expect((await open()).text).toContain('<code')
})

test('opens no key where the page is withdrawn between the look at it and the evidence', async () => {
  const { app, pages, token, orderId } = await openKeyPage()
  await app.pass(MINUTE)
  const commit: typeof app.db.commit = async (changes) => {
    await app.db.commit([withdrawKeyPage(orderId, 'kim', app.now())]).catch(() => {})
    return app.db.commit(changes)
  }
  const opened = await openLine({ ...pages, db: { ...app.db, commit } }, token, '1', '203.0.113.0/24')
  expect(opened).toMatchObject({ page: { closed: 'withdrawn' }, keys: new Map() })
  expect(await app.db.query(revealsOfOrder(orderId))).toEqual([])
})

test('closes after its days', async () => {
  const { app, call } = await openKeyPage()
  await app.pass(MINUTE)
  app.move(365 * DAY)
  expect((await call('GET')).text).toContain('The time of this page is over.')
})

test('may not be framed, kept or found, and loads nothing from elsewhere', async () => {
  const { call } = await openKeyPage()
  const { headers, text } = await call('GET')
  expect(headers.get('content-security-policy')).toContain("frame-ancestors 'none'")
  expect(headers.get('referrer-policy')).toBe('no-referrer')
  expect(headers.get('cache-control')).toBe('no-store')
  expect(headers.get('x-robots-tag')).toContain('noindex')
  const files = [...text.matchAll(/(?:href|src)="(files\/[^"]+)"/g)].map(([, file]) => file ?? '')
  expect(files).toHaveLength(2)
  expect(text.length).toBeLessThan(8_000)
})

test('has its style and its script also where a proxy serves it under a path of its own', async () => {
  const { call } = await openKeyPage()
  const { text } = await call('GET')
  const page = 'https://shop.example/quayside/k/token'
  const files = [...text.matchAll(/(?:href|src)="([^"]+\.(?:css|js))"/g)].map(
    ([, file = '']) => new URL(file, page).href,
  )
  expect(files).toEqual([
    expect.stringMatching(/^https:\/\/shop\.example\/quayside\/k\/files\/[0-9a-f]{12}\/keys\.css$/),
    expect.stringMatching(/^https:\/\/shop\.example\/quayside\/k\/files\/[0-9a-f]{12}\/copy\.js$/),
  ])
  expect(text, 'its form goes to the page itself').not.toContain(' action=')
})

test.each([
  ['203.0.113.77', '203.0.113.0/24'],
  ['::ffff:203.0.113.77', '203.0.113.0/24'],
  ['2001:db8:1:2:3:4:5:6', '2001:db8:1::/48'],
  ['<script>:8080', 'unknown'],
])('notes of the network of %s only %s', (address, network) => {
  expect(truncated(address)).toBe(network)
})

test('shows the new key before the one that it replaces, which says so', async () => {
  const { app, orderId, call, open, keys } = await openKeyPage({ quantity: 1 })
  await app.pass(MINUTE)
  const [purchase] = await app.purchases(orderId)
  const given = { ordinal: 1, note: 'it was redeemed before', days: 3 }
  const { number } = await raiseClaim(app.ordering, purchase?.id ?? '', given, 'ann')
  await buyAgain(app.ordering, number, 'ann')
  expect((await call('GET')).text).toContain('A new key is being bought')
  await app.pass(MINUTE)
  expect((await call('GET')).text).toContain('Your key is here.')
  const { text } = await open()
  const [dead = '', fresh = ''] = keys()
  expect(text.indexOf(fresh)).toBeGreaterThan(0)
  expect(text.indexOf(dead)).toBeGreaterThan(text.indexOf(fresh))
  expect(text).toMatch(/Replaced on [^<]+: use the new key/)
})
