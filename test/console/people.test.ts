/** The page of people: who may let in whom, and who is let in. */
import { expect, onTestFinished, test } from 'vitest'
import { createConsole } from '../../src/console/console.ts'
import type { Log } from '../../src/log.ts'
import { consoleLinks } from '../../src/storage/schema.ts'
import { build } from '../../src/storage/statement.ts'
import { openApi } from '../support/api-world.ts'
import { cookieIn, signedIn, visit } from '../support/console-client.ts'
import { auditOf, peopleOf } from '../support/console-data.ts'

const HOUR_MS = 3_600_000

async function openWorld() {
  const world = await openApi()
  const address = world.pages.address() ?? ''
  const { page, act } = peopleOf(world)
  const invite = (by: 'viewer' | 'operator' | 'admin', name: string, role: string) =>
    act(by, '/people/invite', { name, role })
  const redeem = (link: string) =>
    visit(address, '/signin', { form: { link: new URL(link).searchParams.get('link') ?? '' } })
  const open = async (cookie: string) => (await visit(address, '/session', { cookie })).status
  return { ...world, address, page, act, invite, redeem, open }
}

const linkIn = (text: string): string => /<pre tabindex="0" id="link">([^<]+)<\/pre>/.exec(text)?.[1] ?? ''
const rowOf = (text: string, name: string): string =>
  text
    .split('<tr')
    .find((row) => row.includes(`<bdi>${name}</bdi>`))
    ?.replaceAll(/<[^>]*>/g, ' ')
    .replaceAll(/\s+/g, ' ') ?? ''

test('an operator invites an operator: the link is shown once, works once, and within a day', async () => {
  const world = await openWorld()
  const made = await world.invite('operator', 'Jonas', 'operator')
  expect(made.status).toBe(200)
  expect(made.text).toContain('It is shown once, works once, and ends')
  const link = linkIn(made.text)
  expect((await world.page('operator', '/people')).text).not.toContain(link)
  expect(rowOf((await world.page('operator', '/people')).text, 'Jonas')).toContain('operator never invited')
  world.move(24 * HOUR_MS - 1)
  const seen = await visit(world.address, link.slice(world.address.length), { method: 'GET', site: 'none' })
  expect([seen.status, seen.headers['set-cookie']], 'a preview uses nothing up').toEqual([200, undefined])
  expect(seen.text).toContain('<bdi>Jonas</bdi>')
  const answers = await Promise.all([world.redeem(link), world.redeem(link)])
  expect(answers.map(({ status }) => status).sort()).toEqual([303, 401])
  expect((await world.redeem(link)).status).toBe(401)
  const cookie = await signedIn(world, 'viewer')
  expect(rowOf((await visit(world.address, '/people', { cookie })).text, 'Jonas')).toContain('signed in')
})

test('an invitation is worth nothing after a day', async () => {
  const { invite, redeem, move } = await openWorld()
  const link = linkIn((await invite('operator', 'Jonas', 'viewer')).text)
  move(24 * HOUR_MS)
  expect((await redeem(link)).status).toBe(401)
})

test('no person invites above the own role, and a viewer invites no one', async () => {
  const world = await openWorld()
  expect((await world.invite('viewer', 'Jonas', 'viewer')).status).toBe(403)
  expect((await world.page('viewer', '/people')).text).toContain('Invite: it needs the role operator; you are viewer.')
  const { text } = await world.page('operator', '/people')
  expect(text).toContain('value="operator"')
  expect(text).not.toContain('value="admin"')
  const refused = await world.invite('operator', 'Jonas', 'admin')
  expect([refused.status, linkIn(refused.text)]).toEqual([403, ''])
  expect(refused.text).toContain('A link of the role admin needs that role; you are operator.')
  expect(linkIn((await world.invite('admin', 'Jonas', 'admin')).text)).not.toBe('')
  for (const role of ['owner', 'store', '', 'Operator']) {
    expect((await world.invite('admin', 'Kim', role)).status, role).toBe(400)
  }
  const { ask, tokens } = world
  const body = { name: 'Kim', role: 'admin' }
  expect((await ask('POST', '/console/links', { token: tokens.operator, body })).status).toBe(403)
})

test('an operator signed in under the name of an admin, and acted in the audit log as that admin', async () => {
  const world = await openWorld()
  await signedIn(world, 'admin', 'Mira Stern')
  for (const name of ['Mira Stern', 'mira stern', 'Ｍira Stern', 'Mira  Stern']) {
    const refused = await world.invite('operator', name, 'operator')
    expect([refused.status, linkIn(refused.text)], name).toEqual([403, ''])
  }
  const invited = linkIn((await world.invite('admin', 'Kim', 'admin')).text)
  expect((await world.invite('operator', 'Kim', 'viewer')).status, 'nor of one who has only a link').toBe(403)
  expect((await world.redeem(invited)).status).toBe(303)
  // Signing out does not free the name.
  const { text } = await world.act('admin', '/people/end-sessions', { person: 'Kim' })
  expect(text).not.toContain('<main')
  expect((await world.invite('operator', 'Kim', 'viewer')).status).toBe(403)
  expect((await world.invite('admin', 'Kim', 'viewer')).status).toBe(200)
})

test('a colleague makes the next link of a person whose session has ended', async () => {
  const world = await openWorld()
  await signedIn(world, 'operator', 'Tom Aalto')
  world.move(13 * HOUR_MS)
  const row = rowOf((await world.page('operator', '/people')).text, 'Tom Aalto')
  expect(row).toContain('operator 13 h ago signed out')
  const { text } = await world.page('operator', '/people?name=Tom+Aalto')
  expect(text).toContain('<input type="hidden" name="name" value="Tom Aalto">')
  const link = linkIn((await world.invite('operator', 'Tom Aalto', 'operator')).text)
  expect(await world.open(cookieIn(await world.redeem(link)))).toBe(200)
})

test('an admin ends the sessions of a person, or removes the person with every link; others do neither', async () => {
  const world = await openWorld()
  const [one, two] = [await signedIn(world, 'operator', 'Tom'), await signedIn(world, 'viewer', 'Tom')]
  const other = await signedIn(world, 'viewer', 'Tomas')
  for (const role of ['viewer', 'operator'] as const) {
    for (const action of ['end-sessions', 'remove']) {
      expect((await world.act(role, `/people/${action}`, { person: 'Tom' })).status).toBe(403)
    }
  }
  expect((await world.act('admin', '/people/end-sessions', { person: 'Tom' })).status).toBe(303)
  expect([await world.open(one), await world.open(two), await world.open(other)]).toEqual([401, 401, 200])
  const link = linkIn((await world.invite('operator', 'Tom', 'operator')).text)
  const third = await signedIn(world, 'operator', 'Tom')
  const gone = await world.act('admin', '/people/remove', { person: 'Tom', reason: 'works elsewhere' })
  expect(gone.status).toBe(303)
  expect((await world.redeem(link)).status).toBe(401)
  expect([await world.open(third), await world.open(other)]).toEqual([401, 200])
  expect(rowOf((await world.page('admin', '/people')).text, 'Tom')).toBe('')
  expect((await world.act('admin', '/people/remove', { person: 'Tom' })).status).toBe(404)
  const rows = (await auditOf(world)).map(({ actor, action, subject, detail }) => [
    actor.replace(/ \(.*/, ''),
    action,
    subject,
    detail?.replace(/until .*/, 'until'),
  ])
  expect(rows).toContainEqual(['mira', 'console.link', 'Tom', 'operator, until'])
  expect(rows).toContainEqual(['mira', 'console.remove_person', 'Tom', 'works elsewhere'])
  expect(rows.filter(([, action]) => action === 'console.end_session')).toHaveLength(2)
})

test('a name is text: markup, quotes, and scripts that are written from right to left', async () => {
  const world = await openWorld()
  const names = [
    '<script>alert(1)</script>',
    '"><img src=x onerror=alert(1)>',
    'سلمى حداد',
    "O'Neil & Søn",
    'a/b?c=d#e',
  ]
  for (const name of names) {
    const made = await world.invite('admin', name, 'viewer')
    expect([made.status, linkIn(made.text) !== ''], name).toEqual([200, true])
    const signIn = await visit(world.address, linkIn(made.text).slice(world.address.length))
    for (const text of [
      made.text,
      signIn.text,
      (await world.page('admin', `/people?${new URLSearchParams({ name })}`)).text,
    ]) {
      expect(text).not.toMatch(/<script>|<img/)
      expect(text).toMatch(/<bdi>/)
    }
    expect((await world.act('admin', '/people/remove', { person: name })).status, name).toBe(303)
  }
  for (const name of ['', ' ', '\u202eanna', 'an\u200bna', 'x'.repeat(101)]) {
    const refused = await world.invite('admin', name, 'viewer')
    expect([refused.status, linkIn(refused.text)], JSON.stringify(name)).toEqual([400, ''])
    expect(refused.text).toContain('id="f-name-fault"')
  }
})

test('the page of an invitation does not travel compressed, and the link is in no log and no row', async () => {
  const world = await openWorld()
  const logged: string[] = []
  const note = (event: string, given?: object) => void logged.push(JSON.stringify({ event, ...given }))
  const log = { info: note, warn: note, error: note, debug: note } as unknown as Log
  const pages = createConsole({ ...world.consoleParts, log })
  onTestFinished(() => pages.close())
  await pages.listen('127.0.0.1', 0)
  const address = pages.address() ?? ''
  const made = await visit(address, '/people/invite', {
    cookie: await signedIn({ pages, access: world.access }, 'admin'),
    form: { name: 'Jonas', role: 'viewer' },
    headers: { 'accept-encoding': 'gzip' },
  })
  expect(made.headers['content-encoding']).toBeUndefined()
  const secret = new URL(linkIn(made.text)).searchParams.get('link') ?? ''
  expect(secret).toHaveLength(43)
  const shown = await visit(address, `/signin?link=${secret}`, { headers: { 'accept-encoding': 'gzip' } })
  expect([shown.status, shown.headers['content-encoding']]).toEqual([200, undefined])
  await visit(address, '/signin', { form: { link: secret } })
  await visit(address, '/signin', { form: { link: secret } })
  expect(logged.length).toBeGreaterThan(4)
  const kept = [logged, await auditOf(world), await world.db.query(build.select().from(consoleLinks))]
  expect(JSON.stringify(kept)).not.toContain(secret)
})
