import { describe, expect, test } from 'vitest'
import { audit, tokens } from '../../src/storage/schema.ts'
import { build } from '../../src/storage/statement.ts'
import { type ApiWorld, openApi } from '../support/api-world.ts'
import { exchange, requestBytes } from '../support/raw-http.ts'
import { STORE } from '../support/test-app.ts'
import { leastRole, storesMay } from './least-roles.ts'

const DAY_MS = 24 * 60 * 60 * 1000

/** Whether an operation admits a token: every answer but 401 and 403 comes from the operation itself. */
async function passes(world: ApiWorld, method: string, path: string, token: string): Promise<boolean> {
  // A store token is let into its own store alone.
  const place = path.replace(':store', STORE).replace(/:\w+/g, 'nowhere')
  const asked = world.ask(method, place, { token })
  const answer = await (path === '/events' ? world.unwatched(asked) : asked)
  expect(answer.status).not.toBe(401)
  return answer.status !== 403
}

describe('a token', () => {
  test('opens exactly what its role and scope allow, on every operation', async () => {
    const world = await openApi()
    const rank = { viewer: 1, operator: 2, admin: 3 }
    const names = world.operations.map(({ name }) => name)
    expect(names, 'no name is used twice').toHaveLength(new Set(names).size)
    expect(new Set(names)).toEqual(new Set([...leastRole.keys(), ...storesMay]))
    for (const { method, path, name } of world.operations) {
      const least = leastRole.get(name)
      for (const role of ['viewer', 'operator', 'admin'] as const) {
        const may = least !== undefined && rank[role] >= rank[least]
        expect(await passes(world, method, path, world.tokens[role]), `${role} ${method} ${path}`).toBe(may)
      }
      const may = storesMay.has(name)
      expect(await passes(world, method, path, world.tokens.store), `store ${method} ${path}`).toBe(may)
    }
  })

  test('is asked for by every operation', async () => {
    const world = await openApi()
    for (const { method, path } of world.operations) {
      const answer = await world.ask(method, path.replace(/:\w+/g, 'nowhere'), { token: null })
      expect(answer.status, `${method} ${path}`).toBe(401)
      expect(answer.headers.get('www-authenticate')).toBe('Bearer')
    }
  })

  test.each([
    ['an unknown token', `qs_a_${'x'.repeat(43)}`],
    ['a token cut short', 'qs_a_x'],
    ['a token with a letter more', 'OWNERx'],
    ['nothing', ''],
    ['bytes that no token has', 'ä ö'],
  ])('is refused when it is %s', async (_what, text) => {
    const world = await openApi()
    const authorization = `Bearer ${text.replace('OWNER', world.tokens.owner)}`
    const headers = { authorization: Buffer.from(authorization).toString('latin1') }
    const answer = await world.ask('GET', '/status', { token: null, headers })
    expect(answer.status).toBe(401)
    expect(answer.body.error.code).toBe('unauthenticated')
  })

  test.each([
    ['equal', (token: string) => [token, token]],
    ['different', (token: string) => [token, 'qs_a_x']],
    ['different, the right one last', (token: string) => ['qs_a_x', token]],
  ])('is refused when two come with one request: %s', async (_what, tokensOf) => {
    const world = await openApi()
    const headers = tokensOf(world.tokens.owner).map((token): [string, string] => ['authorization', `Bearer ${token}`])
    const bytes = requestBytes({ method: 'GET', target: '/api/v1/status', headers })
    const answer = await exchange(Number(new URL(world.url).port), bytes)
    expect(answer).toMatchObject({ status: 401, headers: { 'www-authenticate': 'Bearer' } })
    expect(answer?.body).toContain('send one Authorization header')
  })

  test('is refused under another scheme, whose name any case may have', async () => {
    const world = await openApi()
    const lower = { authorization: `bearer ${world.tokens.owner}` }
    expect((await world.ask('GET', '/status', { token: null, headers: lower })).status).toBe(200)
    const headers = { authorization: `Basic ${world.tokens.owner}` }
    expect((await world.ask('GET', '/status', { token: null, headers })).status).toBe(401)
  })

  test('ends at its expiry, and not before', async () => {
    const world = await openApi()
    const token = await world.mint({ role: 'viewer', expiresInDays: 1 })
    world.move(DAY_MS - 1)
    expect((await world.ask('GET', '/status', { token })).status).toBe(200)
    world.move(1)
    const answer = await world.ask('GET', '/status', { token })
    expect(answer.status).toBe(401)
    expect(answer.body.error.message).toContain('expired')
  })

  test('is refused from its revocation on', async () => {
    const world = await openApi()
    const made = await world.ask('POST', '/tokens', { body: { name: 'till', role: 'viewer' } })
    const { id, token } = made.body.data as unknown as { id: string; token: string }
    expect((await world.ask('GET', '/status', { token })).status).toBe(200)
    const revoked = await Promise.all([1, 2].map(() => world.ask('DELETE', `/tokens/${id}`)))
    expect(revoked.map(({ status }) => status).sort()).toEqual([200, 404])
    expect((await world.ask('GET', '/status', { token })).status).toBe(401)
    expect((await world.ask('DELETE', `/tokens/${id}`)).status).toBe(404)
    const audited = (await world.db.query(build.select().from(audit))).filter(({ subject }) => subject === id)
    expect(audited.map(({ action, actor, detail }) => [action, actor, detail])).toEqual([
      ['token.create', 'owner', 'viewer'],
      ['token.revoke', 'owner', null],
    ])
  })

  test('lacking a role or scope gets the name of the one that is needed', async () => {
    const world = await openApi()
    const message = async (method: string, path: string, token: string) =>
      (await world.ask(method, path, { token, body: {} })).body.error.message
    expect(await message('POST', '/unfreeze', world.tokens.viewer)).toBe(
      'this needs the role operator; the token has the role viewer',
    )
    expect(await message('POST', '/sync', world.tokens.store)).toContain('role operator')
    expect(await message('POST', '/orders', world.tokens.owner)).toContain('scope orders')
    const keysOnly = await world.mint({ role: 'store', store: STORE, scopes: ['keys'] })
    expect(await message('POST', '/orders', keysOnly)).toContain('scope orders')
  })
})

describe('making a token', () => {
  test('shows it once, stores its digest only, and is audited', async () => {
    const world = await openApi()
    const body = { name: 'till', role: 'store', store: STORE, scopes: ['orders', 'keys'], expiresInDays: 90 }
    const made = await world.ask('POST', '/tokens', { token: world.tokens.admin, body })
    expect(made.status).toBe(201)
    const { token, id } = made.body.data as unknown as { token: string; id: string }
    expect(token).toMatch(/^qs_s_[A-Za-z0-9_-]{43}$/)
    expect(made.body.data).toMatchObject({ hint: token.slice(0, 9), store: STORE, scopes: ['orders', 'keys'] })
    expect(made.headers.get('cache-control')).toBe('no-store')

    const listed = await world.ask('GET', '/tokens')
    expect(listed.body.data.items.map((item) => item.id)).toContain(id)
    expect(JSON.stringify(listed.body)).not.toContain(token)
    expect(JSON.stringify(await world.db.query(build.select().from(tokens)))).not.toContain(token)
    expect(world.lines.join('')).not.toContain(token)
    const entries = await world.db.query(build.select().from(audit))
    expect(entries.find((entry) => entry.subject === id)).toMatchObject({
      action: 'token.create',
      actor: expect.stringMatching(/^admin \(/),
      detail: `store ${STORE} orders keys`,
    })
  })
})
