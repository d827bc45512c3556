/** Every route of the console, walked with every caller that must not pass. */
import { describe, expect, test } from 'vitest'
import { SESSION_MS } from '../../src/access/sessions.ts'
import { consolePages } from '../../src/console/pages.ts'
import { type Route, routesOf } from '../../src/console/router.ts'
import { openApi } from '../support/api-world.ts'
import { type ConsoleAnswer, signedIn, visit } from '../support/console-client.ts'

const RANK = { viewer: 1, operator: 2, admin: 3 }
const roles = ['viewer', 'operator', 'admin'] as const

/** Besides the pages: signing out is for people who are signed in, too. */
const routes = [
  ...routesOf(consolePages),
  { method: 'post', path: '/signout', role: 'viewer' } as Omit<Route, 'page'> as Route,
]
const pathOf = ({ path }: Route) => path.replaceAll(/:\w+/g, 'nowhere')
const nameOf = ({ method, path }: Route) => `${method.toUpperCase()} ${path}`

/** What no answer may lack, also to strangers. */
function expectHeaders({ headers }: ConsoleAnswer): void {
  const policy = String(headers['content-security-policy'])
  expect(policy).toContain("default-src 'none'")
  expect(policy).not.toMatch(/unsafe|\*|data:/)
  expect(headers['x-content-type-options']).toBe('nosniff')
  expect(headers['referrer-policy']).toBe('same-origin')
  expect(headers['cache-control']).toBe('no-store')
}

const worldOf = async () => {
  const world = await openApi()
  const address = world.pages.address() ?? ''
  const go = (
    route: Route,
    cookie: string | undefined,
    more: { site?: string; headers?: Record<string, string> } = {},
  ) => visit(address, pathOf(route), { cookie, ...more, ...(route.method === 'post' && { form: {} }) })
  return { ...world, address, go }
}

test('the pages have paths of their own, and each is in one place', () => {
  const names = routes.map(nameOf)
  expect(names).toEqual([...new Set(names)])
  expect(
    consolePages.every(({ below }) => below === undefined || consolePages.some(({ path }) => path === below)),
  ).toBe(true)
})

describe('every route of the console', () => {
  test('refuses those who are signed out, and shows them nothing', async () => {
    const { go } = await worldOf()
    for (const route of routes) {
      const answer = await go(route, undefined)
      expect(answer.status, nameOf(route)).toBe(401)
      expect(answer.text).toContain('You are signed out')
      expectHeaders(answer)
    }
  })

  test('refuses a session that has ended, was signed out, or never was', async () => {
    const world = await worldOf()
    const { go, move, address } = world
    const name = `quayside-${new URL(address).port}`
    const gone = await signedIn(world, 'admin')
    const out = await visit(address, '/signout', { cookie: gone, form: { scope: 'here' } })
    expect(out.status).toBe(303)
    const expired = await signedIn(world, 'admin')
    move(SESSION_MS)
    for (const route of routes) {
      for (const cookie of [gone, expired, `${name}=nothing`, `${name}=`, `${expired}; ${expired}`]) {
        expect((await go(route, cookie)).status, `${nameOf(route)} ${cookie}`).toBe(401)
      }
    }
  })

  test('refuses what another site sends with the cookie of a person who is signed in', async () => {
    const world = await worldOf()
    const cookie = await signedIn(world, 'admin')
    for (const route of routes) {
      const answer = await world.go(route, cookie, { site: 'cross-site' })
      expect(answer.status, nameOf(route)).toBe(route.method === 'get' && !route.file ? 401 : 403)
      expectHeaders(answer)
    }
    for (const route of routes.filter(({ method }) => method === 'post')) {
      for (const site of ['same-site', 'none']) {
        const answer = await world.go(route, cookie, { site })
        expect(answer.status, nameOf(route)).toBe(403)
      }
    }
  })

  test('refuses a role that is too low, and lets the others in', async () => {
    const world = await worldOf()
    for (const role of roles) {
      for (const route of routes) {
        const answer = await world.go(route, await signedIn(world, role))
        const isAllowed = RANK[role] >= RANK[route.role]
        if (isAllowed) expect([401, 403], `${role} ${nameOf(route)}`).not.toContain(answer.status)
        else expect(answer.status, `${role} ${nameOf(route)}`).toBe(403)
        expect(answer.status, `${role} ${nameOf(route)}`).toBeLessThan(500)
        expectHeaders(answer)
      }
    }
  })

  test('refuses a host that is not ours: another name may lead to this machine', async () => {
    const world = await worldOf()
    const cookie = await signedIn(world, 'admin')
    const { port } = new URL(world.address)
    for (const route of routes) {
      for (const host of [`rebound.example:${port}`, '127.0.0.1', '127.0.0.1:1', `localhost.:${port}`]) {
        const answer = await world.go(route, cookie, { headers: { host } })
        expect(answer.status, `${nameOf(route)} ${host}`).toBe(421)
        expectHeaders(answer)
      }
    }
    for (const host of [`127.0.0.1:${port}`, `localhost:${port}`, `[::1]:${port}`]) {
      expect((await visit(world.address, '/session', { cookie, headers: { host } })).status).toBe(200)
    }
  })
})

describe('an action', () => {
  test('comes from a page of the console where the browser names only its origin', async () => {
    const world = await worldOf()
    const { port } = new URL(world.address)
    const send = async (headers: Record<string, string>) => {
      const cookie = await signedIn(world, 'viewer')
      return visit(world.address, '/signout', { cookie, site: null, headers, form: { scope: 'here' } })
    }
    expect((await send({ origin: world.address })).status).toBe(303)
    expect((await send({})).status).toBe(403)
    for (const origin of ['https://elsewhere.example', `http://localhost:${port}`, 'null']) {
      expect((await send({ origin })).status, origin).toBe(403)
    }
  })

  test('is a form, and nothing else is read', async () => {
    const world = await worldOf()
    const cookie = await signedIn(world, 'viewer')
    const headers = { 'content-type': 'application/json' }
    const answer = await visit(world.address, '/signout', { cookie, headers, form: { scope: 'here' } })
    expect(answer.status).toBe(415)
    const large = await visit(world.address, '/signout', {
      cookie,
      form: { scope: 'here', reason: 'x'.repeat(262_144) },
    })
    expect([large.status, large.headers.connection]).toEqual([413, 'close'])
    expect((await visit(world.address, '/session', { cookie })).status, 'neither signed out').toBe(200)
  })
})
