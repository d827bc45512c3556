/** Who is not the customer at a page of keys: scanners, guessers, other sites, proxies. None of them sees a key or locks a customer out. */
import { connect } from 'node:net'
import { describe, expect, test } from 'vitest'
import { createGuesses } from '../../src/http/server.ts'
import { openLine, pageOfToken } from '../../src/keys/key-pages.ts'
import { changeEntitlement, entitlementOfOrder } from '../../src/storage/entitlements.ts'
import { revealsOfOrder, withdrawKeyPage } from '../../src/storage/key-pages.ts'
import { type KeyPageOptions, openKeyPage } from '../support/key-page.ts'
import { exchange, requestBytes } from '../support/raw-http.ts'
import { first } from '../support/test-app.ts'

const MINUTE = 60_000

/** A page whose keys are here. */
async function openWithKeys(options: KeyPageOptions = {}) {
  const world = await openKeyPage(options)
  await world.app.pass(MINUTE)
  const reveals = () => world.app.db.query(revealsOfOrder(world.orderId))
  const raw = (method: string, target: string, more: { headers?: [string, string][]; body?: string } = {}) =>
    exchange(
      world.port,
      requestBytes({
        method,
        target,
        headers: more.headers ?? [],
        ...(more.body !== undefined && { body: Buffer.from(more.body) }),
      }),
    )
  const expectNoKey = (text: string) => {
    for (const key of world.keys()) expect(text).not.toContain(key)
  }
  expect(world.keys()).toHaveLength(options.quantity ?? 2)
  return { ...world, reveals, raw, expectNoKey, path: `/k/${world.token}` }
}

const form = 'application/x-www-form-urlencoded'

describe('what fetches a link by itself', () => {
  test.each([
    { as: 'a scanner', method: 'GET', headers: {} },
    { as: 'a scanner that asks for the head alone', method: 'HEAD', headers: {} },
    { as: 'a prefetch', method: 'GET', headers: { purpose: 'prefetch' } },
    { as: 'a prerendering browser', method: 'GET', headers: { 'sec-purpose': 'prefetch;prerender' } },
    { as: 'a preview', method: 'GET', headers: { 'user-agent': 'Slackbot-LinkExpanding 1.0', range: 'bytes=0-32768' } },
    { as: 'a scanner that adds the line to the address', method: 'GET', headers: {}, query: '?line=1' },
    { as: 'a POST without a body', method: 'POST', headers: {} },
    { as: 'a POST of JSON', method: 'POST', headers: { 'content-type': 'application/json' }, body: '{"line":"1"}' },
    { as: 'a POST of text', method: 'POST', headers: { 'content-type': 'text/plain' }, body: 'line=1' },
    { as: 'a POST without a type', method: 'POST', headers: { 'content-type': '' }, body: 'line=1' },
    { as: 'a POST of another field', method: 'POST', headers: { 'content-type': form }, body: 'key=1&line[]=1' },
    { as: 'a POST of two lines', method: 'POST', headers: { 'content-type': form }, body: 'line=1&line=1' },
  ] as { as: string; method: string; headers: Record<string, string>; query?: string; body?: string }[])(
    'sees no key and counts as nothing: $as',
    async ({ method, headers, query = '', body }) => {
      const { call, url, reveals, expectNoKey } = await openWithKeys()
      const answer = await call(method, `${url}${query}`, { headers, ...(body !== undefined && { body }) })
      expect(answer.status).toBe(200)
      expectNoKey(answer.text)
      expect(answer.text).toContain(method === 'HEAD' ? '' : 'Show the 2 keys')
      expect(await reveals()).toEqual([])
    },
  )

  test('gets for a HEAD what a GET says, without its body', async () => {
    const { call } = await openWithKeys()
    const names = ['content-type', 'content-length', 'content-security-policy', 'cache-control', 'referrer-policy']
    const [head, get] = [await call('HEAD'), await call('GET')]
    expect(head.text).toBe('')
    expect(names.map((name) => head.headers.get(name))).toEqual(names.map((name) => get.headers.get(name)))
  })

  test.each([
    { as: 'too large', headers: [['content-type', form]], body: `line=1&x=${'x'.repeat(5_000)}`, status: 413 },
    {
      as: 'compressed',
      headers: [
        ['content-type', form],
        ['content-encoding', 'gzip'],
      ],
      body: 'line=1',
      status: 415,
    },
    { as: 'of an unknown charset', headers: [['content-type', `${form}; charset=x`]], body: 'line=1', status: 415 },
  ] as { as: string; headers: [string, string][]; body: string; status: number }[])(
    'is refused with a form that is $as',
    async ({ headers, body, status }) => {
      const { raw, path, reveals } = await openWithKeys()
      const answer = await raw('POST', path, { headers, body })
      expect(answer?.status).toBe(status)
      expect(answer?.headers['content-security-policy']).toContain("default-src 'none'")
      expect(await reveals()).toEqual([])
    },
  )
})

describe('a guesser', () => {
  const wrong = (index: number) => Buffer.from(String(index).padStart(32, 'x')).toString('base64url')

  test('finds no page by a hundred thousand tokens', async () => {
    const { pages, token } = await openWithKeys()
    let found = 0
    for (let index = 0; index < 100_000; index += 1) if (await pageOfToken(pages, wrong(index))) found += 1
    expect(found).toBe(0)
    expect(await pageOfToken(pages, token)).toBeDefined()
  })

  test.each([
    { as: 'one address', address: () => '203.0.113.7', answered: 20 },
    { as: 'many addresses', address: (index: number) => `10.${index >> 8}.${index & 255}.1`, answered: 10_000 },
  ])('is refused from $as, and the right link opens in between and afterwards', async ({ address, answered }) => {
    const { port, call, open, token } = await openWithKeys({ proxies: ['127.0.0.1'] })
    const statuses: Record<string, number> = {}
    const from = (index: number) => ({ headers: { 'x-forwarded-for': address(index) } })
    for (let round = 0; round < 10; round += 1) {
      const indices = Array.from({ length: 1_000 }, (_, index) => round * 1_000 + index)
      const requests = indices.map(
        (index) => `GET /k/${wrong(index)} HTTP/1.1\r\nhost: a\r\nx-forwarded-for: ${address(index)}\r\n\r\n`,
      )
      for (const status of await pipelined(port, requests)) statuses[status] = (statuses[status] ?? 0) + 1
      expect((await call('GET', undefined, from(round))).status).toBe(200)
    }
    expect(statuses).toEqual({ 404: answered, ...(answered < 10_000 && { 429: 10_000 - answered }) })
    expect((await open()).text).toContain('<code')
    expect(token).toHaveLength(43)
  })

  test('of ten thousand networks is counted as one in all others, and clears no count', () => {
    let clock = 0
    const { count } = createGuesses(() => clock)
    for (let guess = 0; guess < 20; guess += 1) expect(count('first')).toBe(false)
    let answered = 0
    for (let index = 0; index < 100_000; index += 1) if (!count(`network ${index}`)) answered += 1
    expect(answered, 'one for each network that is remembered, and twenty for all others').toBe(9_999 + 20)
    expect(count('first')).toBe(true)
    clock += 10 * MINUTE
    expect([count('first'), count('network 99999')], 'after ten minutes each begins again').toEqual([false, false])
  })

  test('is answered the same whatever is wrong with the token, and never by a fault', async () => {
    const { raw, token, logged, reveals } = await openWithKeys()
    const targets = [
      `/k/${token.slice(1)}`,
      `/k/${token}A`,
      `/k/${token}%00`,
      `/k/%00${token.slice(1)}`,
      `/k/${token.toLowerCase().replace(/^./, '-')}`,
      `/K/${token}`,
      `/k//${token}`,
      `//k/${token}`,
      `/k/${token}/`,
      `/k/./${token}`,
      `/k/x/../${token}`,
      `/k/${'A'.repeat(10_000)}`,
      `/k/${token}%0d%0aset-cookie:a=b`,
      `/k/${encodeURIComponent("' or 1=1 --")}`,
      '/k/__proto__',
      '/k/files',
      '/k/files/000000000000/keys.css',
      '/k/',
      '/k',
    ]
    for (const target of targets) {
      for (const method of ['GET', 'POST']) {
        const answer = await raw(method, target, { headers: [['content-type', form]], body: 'line=1' })
        expect(answer?.status, `${method} ${target}`).toBe(404)
        expect(answer?.body, target).not.toContain(token)
        expect(answer?.headers.location).toBeUndefined()
      }
    }
    expect((await raw('GET', `/k/${token}%`))?.status, 'no path at all').toBe(400)
    expect(await reveals()).toEqual([])
    expect(logged.filter((line) => !line.includes('http.request'))).toEqual([])
  })

  test('opens nothing by an encoded token but what the token opens', async () => {
    const { raw, token } = await openWithKeys()
    const encoded = `%${(token.codePointAt(0) ?? 0).toString(16)}${token.slice(1)}`
    expect((await raw('GET', `/k/${encoded}`))?.status).toBe(200)
  })
})

/** Sends requests over one connection, without waiting for answers in between. @returns their statuses */
const pipelined = (port: number, requests: string[]): Promise<string[]> =>
  new Promise((resolve, reject) => {
    let text = ''
    const socket = connect({ port, host: '127.0.0.1' }, () => socket.write(requests.join('')))
    socket.on('error', reject)
    socket.on('data', (chunk) => {
      text += chunk.toString('latin1')
      const statuses = [...text.matchAll(/^HTTP\/1\.1 (\d+)/gm)].map(([, status]) => status ?? '')
      if (statuses.length < requests.length || !text.endsWith('</html>\n')) return
      socket.destroy()
      resolve(statuses)
    })
  })

describe('a form', () => {
  test('that is sent twice shows the same keys; the first time counts, and a minute later it is evidence again', async () => {
    const { app, open, reveals } = await openWithKeys({ quantity: 1 })
    const shown = (text: string) => [/<code[^<]*/.exec(text)?.[0], /Shown for the first time on[^<]*/.exec(text)?.[0]]
    const opened = shown((await open()).text)
    expect(shown((await open()).text)).toEqual(opened)
    expect(await reveals()).toHaveLength(1)
    await app.pass(MINUTE)
    expect(shown((await open()).text)).toEqual(opened)
    expect(await reveals()).toHaveLength(2)
  })

  test('that is sent without end from ever new networks stores twenty rows for a key, and then nothing at all', async () => {
    const { app, pages, token, reveals } = await openWithKeys()
    let commits = 0
    const commit: typeof app.db.commit = (changes) => {
      commits += 1
      return app.db.commit(changes)
    }
    const click = (network: string) => openLine({ ...pages, db: { ...app.db, commit } }, token, '1', network)
    await click('network 0')
    await click('network 0')
    expect(commits, 'a form that is sent again commits nothing').toBe(1)
    for (let network = 1; network < 40; network += 1) expect((await click(`network ${network}`))?.keys.size).toBe(2)
    expect([(await reveals()).length, commits]).toEqual([2 * 20, 20])
  })

  test('that is sent from two networks in one minute is evidence of both', async () => {
    const { call, url, reveals } = await openWithKeys({ quantity: 1, proxies: ['127.0.0.1'] })
    for (const address of ['203.0.113.9', '198.51.100.9', '203.0.113.10']) {
      const headers = { 'content-type': form, 'x-forwarded-for': address }
      await call('POST', url, { headers, body: 'line=1' })
    }
    expect((await reveals()).map(({ network }) => network)).toEqual(['203.0.113.0/24', '198.51.100.0/24'])
  })

  test('names a line of its own order, or opens nothing', async () => {
    const { app, order, open, reveals, orderId, expectNoKey } = await openWithKeys()
    const other = await order('1002')
    await app.pass(MINUTE)
    const lines = await app.db.query(revealsOfOrder(other.orderId))
    expect(lines).toEqual([])
    for (const line of ['2', orderId, '1 ', '01', '', '__proto__', 'x'.repeat(3_000)]) {
      expectNoKey((await open(line, other.url)).text)
    }
    const { text } = await open('1', other.url)
    expect(text.match(/<code/g)).toHaveLength(2)
    expect(await reveals(), 'the form of another page opens the keys of that page alone').toEqual([])
  })

  test('that comes after the page was withdrawn shows no key', async () => {
    const { app, orderId, open, reveals, expectNoKey } = await openWithKeys()
    await app.db.commit([withdrawKeyPage(orderId, 'kim', app.now())])
    const { status, text } = await open()
    expect(status).toBe(200)
    expect(text).toContain('This page is closed.')
    expectNoKey(text)
    expect(await reveals()).toEqual([])
  })

  test('that comes after the order was cancelled in its store shows no key', async () => {
    const { app, orderId, open, reveals, expectNoKey } = await openWithKeys()
    const entitlement = first(await app.db.query(entitlementOfOrder(orderId)))
    const { revision } = entitlement
    await app.db.commit([changeEntitlement(entitlement, { standing: 'cancelled', revision: revision + 1 })])
    expectNoKey((await open()).text)
    expect(await reveals()).toEqual([])
  })
})

describe('another site', () => {
  test('frames no page, reads none of its answers, and learns of none by a referrer', async () => {
    const { call, open, url } = await openWithKeys()
    const wrong = `${url.slice(0, -1)}${url.endsWith('A') ? 'E' : 'A'}`
    const answers = [
      await call('GET'),
      await open(),
      await call('GET', wrong),
      await call('PUT'),
      await open('1', wrong),
    ]
    for (let guess = 0; guess < 20; guess += 1) await call('GET', wrong)
    answers.push(await call('GET', wrong))
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 404, 405, 404, 429])
    for (const { headers } of answers) {
      expect(Object.fromEntries(headers)).toMatchObject({
        'content-security-policy': expect.stringMatching(
          /^default-src 'none'.*form-action 'self'; frame-ancestors 'none'; base-uri 'none'$/,
        ),
        'x-frame-options': 'DENY',
        'referrer-policy': 'no-referrer',
        'cross-origin-opener-policy': 'same-origin',
        'cross-origin-resource-policy': 'same-origin',
        'x-content-type-options': 'nosniff',
        'x-robots-tag': 'noindex, nofollow',
        'cache-control': 'no-store',
      })
      expect(headers.get('access-control-allow-origin')).toBeNull()
      expect(headers.get('set-cookie')).toBeNull()
    }
  })

  test('is sent nothing by the page: its own two files alone are loaded, and they hold no token', async () => {
    const { call, url, token } = await openWithKeys()
    const { text } = await call('GET')
    const loaded = [...text.matchAll(/<(?:link|script)[^>]+(?:href|src)="([^"]+)"/g)].map(([, to]) => to ?? '')
    expect(loaded).toHaveLength(2)
    expect(text).not.toContain(token)
    for (const to of loaded) {
      expect(to).toMatch(/^files\/[0-9a-f]{12}\/[a-z]+\.(css|js)$/)
      const { status, headers } = await call('GET', new URL(to, url).href)
      expect([status, headers.get('cache-control')]).toEqual([200, 'public, max-age=31536000, immutable'])
    }
  })
})

test('an answer is never compressed, because its length would tell of what is in it', async () => {
  const { call, url } = await openWithKeys()
  const headers = { 'accept-encoding': 'gzip, deflate, br, zstd', 'content-type': form }
  for (const answer of [await call('GET', url, { headers }), await call('POST', url, { headers, body: 'line=1' })]) {
    expect(answer.headers.get('content-encoding')).toBeNull()
    expect(answer.headers.get('content-length')).toBe(String(Buffer.byteLength(answer.text)))
  }
})

test('the token is in no log line and in no label of a metric', async () => {
  const { call, open, url, token, logged, counted, raw } = await openWithKeys()
  await call('GET')
  await open()
  await call('DELETE')
  await call('POST', url, { headers: { 'content-type': `${form}; charset=x` }, body: 'line=1' })
  await raw('GET', `/k/${token}%`)
  await raw('GET', `//k/${token}`)
  await raw('GET', `/k/${token}/x`)
  expect(logged.length).toBeGreaterThan(6)
  expect(logged.filter((line) => line.includes(token.slice(0, 12)))).toEqual([])
  expect(new Set(counted)).toEqual(new Set(['/k/:token 200', '/k/:token 405', '/k/:token 415', 'none 400', 'none 404']))
})

describe('the network in the evidence', () => {
  const networkFor = async (proxies: string[], forwarded: string) => {
    const { call, url, reveals } = await openWithKeys({ proxies, quantity: 1 })
    await call('POST', url, { headers: { 'content-type': form, 'x-forwarded-for': forwarded }, body: 'line=1' })
    return first(await reveals()).network
  }

  test.each([
    { as: 'of the sender, where no proxy is named', proxies: [], forwarded: '203.0.113.9', network: '127.0.0.0/24' },
    { as: 'that the proxy states', proxies: ['127.0.0.1'], forwarded: '203.0.113.9', network: '203.0.113.0/24' },
    {
      as: 'that the last proxy states',
      proxies: ['127.0.0.0/8'],
      forwarded: '9.9.9.9, 203.0.113.9',
      network: '203.0.113.0/24',
    },
    {
      as: 'before the last of two proxies',
      proxies: ['127.0.0.1', '10.0.0.0/8'],
      forwarded: '2001:db8::1, 10.0.0.4',
      network: '2001:db8:0::/48',
    },
    { as: 'unknown, where it is no address', proxies: ['127.0.0.1'], forwarded: '<b>', network: 'unknown' },
  ])('is that $as', async ({ proxies, forwarded, network }) => {
    expect(await networkFor(proxies, forwarded)).toBe(network)
  })
})
