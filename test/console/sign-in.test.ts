import { once } from 'node:events'
import { type ClientRequest, type IncomingMessage, request } from 'node:http'
import { describe, expect, test } from 'vitest'
import { createLink, forgetEnded } from '../../src/access/sessions.ts'
import { sessionCookie } from '../../src/console/signin.ts'
import { audit, consoleLinks, consoleSessions } from '../../src/storage/schema.ts'
import { build } from '../../src/storage/statement.ts'
import { openApi } from '../support/api-world.ts'
import { cookieIn, signedIn, visit } from '../support/console-client.ts'

const MINUTE_MS = 60_000
// As the pages and the documentation say.
const LINK_MS = 10 * MINUTE_MS
const IDLE_MS = 12 * 60 * MINUTE_MS
const SESSION_MS = 7 * 24 * 60 * MINUTE_MS

async function openWorld() {
  const world = await openApi()
  const address = world.pages.address() ?? ''
  const linkFor = async (role: 'viewer' | 'operator' | 'admin', name = 'mira') =>
    (await createLink(world.access, { name, role }, 'test')).link.reveal()
  const redeem = (link: string) => visit(address, '/signin', { form: { link } })
  const open = (cookie?: string) => visit(address, '/session', { cookie })
  return { ...world, address, linkFor, redeem, open }
}

describe('a link into the console', () => {
  test('signs in once, with its role, and nothing of it is stored but a digest', async () => {
    const { linkFor, redeem, open, db } = await openWorld()
    const link = await linkFor('operator')
    const answer = await redeem(link)
    expect([answer.status, answer.headers.location]).toEqual([303, '/overview'])
    expect(answer.headers['set-cookie']).toEqual([
      expect.stringMatching(/^quayside-\d+=[\w-]{43}; Max-Age=604800; Path=\/; HttpOnly; SameSite=Lax$/),
      expect.stringMatching(/^quayside-page-\d+=; Max-Age=0; /),
    ])
    const page = await open(cookieIn(answer))
    expect(page.status).toBe(200)
    expect(page.text).toContain('You are signed in as mira')
    expect(page.text).toContain('operator')
    expect((await redeem(link)).status).toBe(401)
    const stored = JSON.stringify([
      await db.query(build.select().from(consoleSessions)),
      await db.query(build.select().from(audit)),
    ])
    expect(stored).not.toContain(link)
    expect(stored).not.toContain(cookieIn(answer).split('=')[1])
  })

  test('is not used up by a program that opens it in advance', async () => {
    const { linkFor, redeem, address } = await openWorld()
    const link = await linkFor('viewer')
    for (const method of ['GET', 'HEAD', 'GET']) {
      const answer = await visit(address, `/signin?link=${link}`, { method, site: 'none' })
      expect(answer.status).toBe(200)
      expect(answer.headers['set-cookie']).toBeUndefined()
    }
    expect((await redeem(link)).status).toBe(303)
  })

  test('is worth nothing after ten minutes', async () => {
    const { linkFor, redeem, move, address } = await openWorld()
    const [link, used] = [await linkFor('viewer'), await linkFor('viewer')]
    move(LINK_MS - 1)
    expect((await redeem(used)).status).toBe(303)
    move(1)
    const shown = await visit(address, `/signin?link=${link}`)
    expect(shown.status).toBe(401)
    expect(shown.text).toContain('quayside console')
    expect((await redeem(link)).status).toBe(401)
  })

  test('signs in one of two browsers that redeem it at the same moment', async () => {
    const { linkFor, redeem } = await openWorld()
    const link = await linkFor('viewer')
    const answers = await Promise.all([redeem(link), redeem(link)])
    expect(answers.map(({ status }) => status).sort()).toEqual([303, 401])
  })

  test('redeems nothing when another site sends it', async () => {
    const { linkFor, redeem, address } = await openWorld()
    const link = await linkFor('viewer')
    const answer = await visit(address, '/signin', { form: { link }, site: 'cross-site' })
    expect(answer.status).toBe(403)
    expect((await redeem(link)).status).toBe(303)
  })

  test('is made over the API, and its address is that of the console', async () => {
    const { ask, tokens, redeem, address } = await openWorld()
    const body = { name: 'anna', role: 'viewer' }
    expect((await ask('POST', '/console/links', { token: tokens.viewer, body })).status).toBe(403)
    const made = await ask('POST', '/console/links', { token: tokens.admin, body })
    expect(made.status).toBe(201)
    const link = new URL(String(made.body.data.link))
    expect(link.origin).toBe(address)
    expect((await redeem(link.searchParams.get('link') ?? '')).status).toBe(303)
    const store = await ask('POST', '/console/links', { body: { name: 'anna', role: 'store' } })
    expect(store.status).toBe(400)
    // Read backwards or with nothing in between, each looks like another person's in the audit log.
    for (const name of ['\u202eanna', 'an\u200bna', 'anna\u2066']) {
      expect(
        (await ask('POST', '/console/links', { token: tokens.admin, body: { name, role: 'viewer' } })).status,
      ).toBe(400)
      const token = { name, role: 'viewer' }
      expect((await ask('POST', '/tokens', { token: tokens.admin, body: token })).status).toBe(400)
    }
  })
})

test('wrong links are refused by network after twenty of them, and keep out neither a good link nor another network', async () => {
  const { linkFor, address, pass } = await openWorld()
  const redeem = (link: string, from: string) =>
    visit(address, '/signin', { form: { link }, headers: { 'x-forwarded-for': from } })
  const wrong = async (from: string) => (await redeem('x'.repeat(43), from)).status
  for (let count = 0; count < 20; count += 1) expect(await wrong('198.51.100.7')).toBe(401)
  const refused = await redeem('x'.repeat(43), '198.51.100.7')
  expect(refused.status).toBe(429)
  expect(refused.text).toContain('A link that is good still works.')
  expect(await wrong('203.0.113.9')).toBe(401)
  expect((await redeem(await linkFor('admin'), '198.51.100.7')).status).toBe(303)
  await pass(10 * MINUTE_MS)
  expect(await wrong('198.51.100.7')).toBe(401)
})

/** Begins a sign-in whose form has yet to come. @returns once the console waits for the form */
async function signInBegun(address: string, length: number): Promise<ClientRequest> {
  const asked = request(`${address}/signin`, {
    method: 'POST',
    agent: false,
    headers: {
      'sec-fetch-site': 'same-origin',
      'content-type': 'application/x-www-form-urlencoded',
      'content-length': String(length),
      expect: '100-continue',
    },
  })
  asked.flushHeaders()
  await once(asked, 'continue')
  return asked
}

async function statusOf(asked: ClientRequest, body: string): Promise<number | undefined> {
  asked.end(body)
  const [response] = (await once(asked, 'response')) as [IncomingMessage]
  response.resume()
  return response.statusCode
}

test('failed sign-ins that begin at the same moment are twenty at most, too', async () => {
  const { address } = await openWorld()
  const body = new URLSearchParams({ link: 'x'.repeat(43) }).toString()
  const begun = await Promise.all(Array.from({ length: 25 }, () => signInBegun(address, body.length)))
  const statuses = await Promise.all(begun.map((asked) => statusOf(asked, body)))
  expect(statuses.filter((status) => status === 401)).toHaveLength(20)
  expect(statuses.filter((status) => status === 429)).toHaveLength(5)
})

describe('a session', () => {
  test('ends twelve hours after its last use', async () => {
    const world = await openWorld()
    const cookie = await signedIn(world, 'viewer')
    world.move(6 * MINUTE_MS)
    expect((await world.open(cookie)).status).toBe(200)
    world.move(IDLE_MS - 1)
    expect((await world.open(cookie)).status).toBe(200)
    world.move(IDLE_MS)
    expect((await world.open(cookie)).status).toBe(401)
  })

  test('ends after seven days, however much it is used', async () => {
    const world = await openWorld()
    const cookie = await signedIn(world, 'viewer')
    const begun = world.now()
    while (world.now() + IDLE_MS / 2 < begun + SESSION_MS) {
      world.move(IDLE_MS / 2)
      expect((await world.open(cookie)).status).toBe(200)
    }
    world.move(IDLE_MS / 2)
    expect((await world.open(cookie)).status).toBe(401)
  })

  test('is ended here, for one person everywhere, or for all people by an admin', async () => {
    const world = await openWorld()
    const [one, two] = [await signedIn(world, 'operator'), await signedIn(world, 'operator')]
    const other = await signedIn(world, 'admin', 'anna')
    const out = (cookie: string, scope: string) =>
      visit(world.address, '/signout', { cookie, form: { scope } }).then(({ status }) => status)
    const standing = async () =>
      (await Promise.all([one, two, other].map((cookie) => world.open(cookie)))).map(({ status }) => status)
    expect(await out(one, 'here')).toBe(303)
    expect(await standing()).toEqual([401, 200, 200])
    expect(await out(two, 'all')).toBe(403)
    expect(await out(two, 'everything')).toBe(400)
    const [unused, another] = [await world.linkFor('operator'), await world.linkFor('viewer', 'bert')]
    expect(await out(two, 'own')).toBe(303)
    expect(await standing()).toEqual([401, 401, 200])
    expect((await world.redeem(unused)).status).toBe(401)
    expect((await world.redeem(another)).status).toBe(303)
    const third = await signedIn(world, 'viewer')
    const last = await world.linkFor('viewer', 'bert')
    expect(await out(other, 'all')).toBe(303)
    expect((await world.redeem(last)).status).toBe(401)
    expect(await standing()).toEqual([401, 401, 401])
    expect((await world.open(third)).status).toBe(401)
  })

  test('is in the audit log under a name that says where the person was', async () => {
    const world = await openWorld()
    const cookie = await signedIn(world, 'operator')
    await visit(world.address, '/signout', { cookie, form: { scope: 'here' } })
    const rows = await world.db.query(build.select().from(audit))
    const seen = rows.filter(({ action }) => action.startsWith('console.'))
    expect(seen.map(({ action }) => action)).toEqual(['console.link', 'console.sign_in', 'console.sign_out'])
    expect(seen[2]?.actor).toMatch(/^mira \(console [0-9a-z]{26}\)$/)
  })

  test('is forgotten ninety days after it ended, and a link after a day', async () => {
    const world = await openWorld()
    await signedIn(world, 'viewer')
    await world.linkFor('viewer')
    const rows = async () => [
      (await world.db.query(build.select().from(consoleSessions))).length,
      (await world.db.query(build.select().from(consoleLinks))).length,
    ]
    await forgetEnded(world.access)
    const later = async (ms: number) => {
      world.move(ms)
      await forgetEnded(world.access)
      return rows()
    }
    expect(await rows()).toEqual([1, 1])
    expect(await later(LINK_MS + 24 * 60 * MINUTE_MS)).toEqual([1, 1])
    expect(await later(1)).toEqual([1, 0])
    expect(await later(IDLE_MS - LINK_MS + 89 * 24 * 60 * MINUTE_MS - 1)).toEqual([1, 0])
    expect(await later(1)).toEqual([0, 0])
  })
})

test('behind TLS the cookie is bound to its host and to TLS', () => {
  const { set, read } = sessionCookie('https://console.example')
  expect(set('abc')).toBe('__Host-quayside=abc; Max-Age=604800; Path=/; HttpOnly; SameSite=Lax; Secure')
  expect(sessionCookie('https://console.example:8443').set('abc')).toMatch(/^__Host-quayside-8443=abc; /)
  expect(read({ cookie: 'quayside=plain; __Host-quayside=abc' })).toBe('abc')
  expect(read({ cookie: 'quayside=plain' })).toBeUndefined()
})

describe('a person who is signed in', () => {
  /** What a browser says of a link that a person followed from another site. */
  const followed = { 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'document', 'sec-fetch-user': '?1' }

  test('was signed out by a link in a mail', async () => {
    const world = await openWorld()
    const cookie = await signedIn(world, 'viewer')
    const headers = { ...followed, 'accept-encoding': 'gzip' }
    const answer = await visit(world.address, '/alerts', { cookie, site: 'cross-site', headers })
    expect(answer.status).toBe(200)
    expect(answer.headers['content-encoding'], 'its length tells nothing to who chose the address').toBeUndefined()
  })

  test('reads nothing for another site in any other way than by following its link', async () => {
    const world = await openWorld()
    const cookie = await signedIn(world, 'admin')
    const others: Record<string, string>[] = [
      {},
      { 'sec-fetch-mode': 'no-cors', 'sec-fetch-dest': 'image' },
      { 'sec-fetch-mode': 'no-cors', 'sec-fetch-dest': 'script' },
      { 'sec-fetch-mode': 'cors', 'sec-fetch-dest': 'empty' },
      { 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'iframe' },
      { 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'object' },
    ]
    for (const headers of others) {
      const answer = await visit(world.address, '/settings', { cookie, site: 'cross-site', headers })
      expect(answer.status, JSON.stringify(headers)).toBe(401)
    }
  })

  test('downloads nothing by a link of another site, which would leave an entry in the audit', async () => {
    const world = await openWorld()
    const cookie = await signedIn(world, 'admin')
    const ask = (site: string | null, headers = {}) =>
      visit(world.address, '/orders.csv', { cookie, site, headers: { ...followed, ...headers } })
    const exports = async () =>
      (await world.db.query(build.select().from(audit))).filter(({ action }) => action === 'order.export')
    const elsewhere = { referer: 'http://127.0.0.1:1/orders' }
    for (const answer of [
      await ask('cross-site'),
      await ask('same-site'),
      await ask(null),
      await ask(null, elsewhere),
    ]) {
      expect(answer.status).toBe(403)
      expect(answer.headers['content-disposition']).toBeUndefined()
    }
    expect(await exports()).toEqual([])
    const own = { referer: `${world.address}/orders?state=open` }
    for (const answer of [await ask('same-origin'), await ask('none'), await ask(null, own)])
      expect(answer.status).toBe(200)
    expect(await exports()).toHaveLength(3)
    const signedOut = await visit(world.address, '/orders.csv')
    expect([signedOut.status, signedOut.headers['set-cookie']]).toEqual([401, undefined])
  })

  test('writes nothing for another site, also by a form that navigates', async () => {
    const world = await openWorld()
    const cookie = await signedIn(world, 'admin')
    const before = (await world.db.query(build.select().from(audit))).length
    const forms: [string, Record<string, string>][] = [
      ['/overview/freeze', { reason: 'x' }],
      ['/people/invite', { name: 'eve', role: 'admin' }],
      ['/people/remove', { person: 'mira' }],
      ['/signout', { scope: 'all' }],
    ]
    for (const [path, form] of forms) {
      for (const site of ['cross-site', 'same-site', 'none', null]) {
        const answer = await visit(world.address, path, { cookie, site, headers: followed, form })
        expect(answer.status, `${path} ${site}`).toBe(403)
        if (site === 'cross-site') expect(answer.text).not.toContain('mira')
      }
      const asLink = `${path}?${new URLSearchParams(form)}`
      expect([303, 404]).toContain(
        (await visit(world.address, asLink, { cookie, site: 'cross-site', headers: followed })).status,
      )
    }
    expect(await world.db.query(build.select().from(audit))).toHaveLength(before)
    expect((await world.open(cookie)).status).toBe(200)
  })
})

describe('a sign-in leads to', () => {
  const asking = async (path: string) => {
    const world = await openWorld()
    const answer = await visit(world.address, path, { site: 'cross-site' })
    expect(answer.status).toBe(401)
    return { world, answer, kept: answer.headers['set-cookie'] === undefined ? '' : cookieIn(answer) }
  }

  test('the page that was asked for, once', async () => {
    const { world, kept, answer } = await asking('/orders?q=%231042&state=open')
    expect(answer.text).toContain('the page that you asked for opens')
    const redeem = async (cookie: string) =>
      visit(world.address, '/signin', { cookie, form: { link: await world.linkFor('viewer') } })
    const begun = await redeem(kept)
    expect(begun.headers.location).toBe('/orders?q=%231042&state=open')
    expect(String(begun.headers['set-cookie'])).toContain('quayside-page-')
    expect((await redeem('')).headers.location).toBe('/overview')
  })

  test('the first page, where only a part, an action or no page was asked for', async () => {
    for (const path of ['/overview/parts/health', '/frame?at=/overview', '/signin']) {
      expect((await asking(path)).kept, path).toBe('')
    }
    const world = await openWorld()
    expect((await visit(world.address, '/overview/freeze', { form: {} })).headers['set-cookie']).toBeUndefined()
  })

  test('no other host, whatever stands in the cookie', async () => {
    const { linkFor, address } = await openWorld()
    const { port } = new URL(address)
    const evil = [
      '//evil.example',
      '///evil.example',
      '/\\evil.example',
      '\\\\evil.example',
      'https://evil.example',
      'javascript:alert(1)',
      '/\t/evil.example',
      '/\n/evil.example',
      '/orders\r\nset-cookie: a=b',
      ' //evil.example',
      'evil.example',
      '',
      '/\u0000',
      '/é',
    ]
    for (const path of evil) {
      const cookie = `quayside-page-${port}=${Buffer.from(path).toString('base64url')}`
      const answer = await visit(address, '/signin', { cookie, form: { link: await linkFor('viewer') } })
      expect([answer.status, answer.headers.location], JSON.stringify(path)).toEqual([303, '/overview'])
    }
    for (const value of ['%2F%2Fevil.example', '//evil.example', 'x'.repeat(2_001)]) {
      const answer = await visit(address, '/signin', {
        cookie: `quayside-page-${port}=${value}`,
        form: { link: await linkFor('viewer') },
      })
      expect(answer.headers.location).toBe('/overview')
    }
  })

  test('the first page where the address was longer than a cookie holds', async () => {
    const { answer } = await asking(`/orders?q=${'x'.repeat(1_000)}`)
    expect(String(answer.headers['set-cookie'])).toMatch(/^quayside-page-\d+=; Max-Age=0/)
  })
})

test('two installations on one host signed each other out', async () => {
  const [one, two] = [await openWorld(), await openWorld()]
  const both = `${await signedIn(one, 'viewer')}; ${await signedIn(two, 'viewer')}`
  expect([(await one.open(both)).status, (await two.open(both)).status]).toEqual([200, 200])
  const out = await visit(one.address, '/signout', { cookie: both, form: { scope: 'here' } })
  expect(String(out.headers['set-cookie'])).toContain(`quayside-${new URL(one.address).port}=;`)
  expect([(await one.open(both)).status, (await two.open(both)).status]).toEqual([401, 200])
})
