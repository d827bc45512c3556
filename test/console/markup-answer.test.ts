import { request } from 'node:http'
import { gunzipSync } from 'node:zlib'
import { expect, test } from 'vitest'
import { createLink } from '../../src/access/sessions.ts'
import { isolated } from '../../src/console/markup-answer.ts'
import { openApi } from '../support/api-world.ts'
import { signedIn } from '../support/console-client.ts'
import { STORE } from '../support/test-app.ts'

/** What a browser gets that takes gzip: the encoding, the bytes on the way, and what they say. */
function visitCompressed(address: string, path: string, cookie = '', form?: string) {
  return new Promise<{ encoding: unknown; varies: unknown; bytes: number; text: string }>((resolve, reject) => {
    const headers = {
      ...{ cookie, 'accept-encoding': 'gzip, br', 'sec-fetch-site': 'same-origin', connection: 'close' },
      ...(form !== undefined && { 'content-type': 'application/x-www-form-urlencoded', 'content-length': form.length }),
    }
    const asked = request(`${address}${path}`, { headers, agent: false, method: form === undefined ? 'GET' : 'POST' })
    asked.on('error', reject)
    asked.on('response', async (response) => {
      const body = Buffer.concat(await response.toArray())
      const { 'content-encoding': encoding, vary: varies } = response.headers
      const text = (encoding === 'gzip' ? gunzipSync(body) : body).toString()
      resolve({ encoding, varies, bytes: body.length, text })
    })
    asked.end(form)
  })
}

test('pages, style and scripts travel compressed', async () => {
  const world = await openApi()
  const address = world.pages.address() ?? ''
  const cookie = await signedIn(world, 'admin')
  const page = await visitCompressed(address, '/overview', cookie)
  expect([page.encoding, page.varies]).toEqual(['gzip', 'accept-encoding'])
  expect(page.text).toContain('</html>')
  expect(page.bytes).toBeLessThan(page.text.length / 2)
  const assets = [...page.text.matchAll(/(?:href|src)="(\/assets\/[^"]+\.(?:css|js))"/g)].map(([, to = '']) => to)
  expect(assets).toHaveLength(3)
  for (const to of assets) {
    const { encoding, bytes, text } = await visitCompressed(address, to)
    expect(encoding, to).toBe(text.length > 1_400 ? 'gzip' : undefined)
    expect(bytes, to).toBeLessThanOrEqual(text.length)
  }
})

test('a page that reveals a secret is not compressed, because its length would tell of it', async () => {
  const world = await openApi()
  const address = world.pages.address() ?? ''
  const cookie = await signedIn(world, 'admin')
  const offer = await world.offer()
  await world.order('1001', [{ sku: offer.sku }])
  await world.pass(60_000)
  const keys = await visitCompressed(address, `/orders/${STORE}/1001/reveal`, cookie, 'line=1&reason=asked')
  expect(keys.text).toContain('Keys of order 1001')
  const secret = await visitCompressed(address, `/stores/${STORE}/rotate-secret`, cookie, 'overlapHours=1')
  expect(secret.text).toContain('shown this once')
  const token = await visitCompressed(address, '/settings/create-token', cookie, 'name=till&role=viewer')
  expect(token.text).toContain('till')
  const { link } = await createLink(world.access, { name: 'lu', role: 'viewer' }, 'test')
  const signIn = await visitCompressed(address, `/signin?link=${link.reveal()}`)
  expect(signIn.text).toContain(link.reveal())
  for (const { encoding } of [keys, secret, token, signIn]) expect(encoding).toBeUndefined()
})

test('a name from right to left, or one that turns what follows, reorders nothing beside it', () => {
  expect(isolated('<td>1 × مكتب 2024 مايكروسافت, 12 months</td>')).toBe(
    '<td>1 × \u2068مكتب 2024 مايكروسافت\u2069, 12 months</td>',
  )
  expect(isolated('<p>1 × \u202eevil\u2066 for 19.90 EUR</p>')).toBe('<p>1 × evil for 19.90 EUR</p>')
  expect(isolated('<bdi>\u202eמשחק 2</bdi> 3'), 'a bdi isolates by itself').toBe('<bdi>משחק 2</bdi> 3')
  expect(isolated('<a title="משחק">x</a>'), 'an attribute keeps its value').toBe('<a title="משחק">x</a>')
  expect(isolated('<pre>{"name":"משחק"}</pre>'), 'evidence stays as it came').toBe('<pre>{"name":"משחק"}</pre>')
  expect(isolated('<p>Plain — “text”</p>')).toBe('<p>Plain — “text”</p>')
})
