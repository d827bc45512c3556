/** Who may do the set-up: one person, in the demo and in the installation that takes its place. */
import { describe, expect, onTestFinished, test } from 'vitest'
import { createLink, LINK_MS } from '../../src/access/sessions.ts'
import { createConsole } from '../../src/console/console.ts'
import { apiOperations } from '../../src/http/api/api.ts'
import { SET_UP, setFreeze } from '../../src/storage/freezes.ts'
import { type ApiOptions, openApi } from '../support/api-world.ts'
import { cookieIn, type Form, signedIn, visit } from '../support/console-client.ts'

const MINUTE_MS = 60_000

/** Two people at the same pages. */
async function openWorld(options: ApiOptions, founded: string[] = []) {
  const world = await openApi(options)
  const firstRun = {
    found: async (_: object, person: string) => {
      founded.push(person)
      return { link: 'http://127.0.0.1:9/signin?link=x', file: 'config/quayside.json' }
    },
  }
  const operations = apiOperations({ ...world.api, ...(options.isDemo && { firstRun }) })
  const pages = createConsole({ ...world.consoleParts, operations })
  await pages.listen('127.0.0.1', 0)
  onTestFinished(() => pages.close())
  const address = pages.address() ?? ''
  const person = async (name: string) => {
    const cookie = await signedIn({ pages, access: world.access }, 'admin', name)
    return {
      look: () => visit(address, '/setup', { cookie }),
      post: (action: string, form: Form = {}) => visit(address, `/setup/${action}`, { cookie, form }),
    }
  }
  return { ...world, address, person, founded }
}

const actions = [
  'test-supplier',
  'found',
  'add-store',
  'try-callback',
  'products',
  'prices',
  'guards',
  'dry-run',
  'start',
]

describe('the set-up in a demo', () => {
  const open = async () => {
    const world = await openWorld({ isDemo: true })
    const [owner, mira] = [await world.person('owner'), await world.person('mira')]
    const supplier = {
      baseUrl: world.sandbox.baseUrl,
      apiKey: world.api.config.apiKey.reveal(),
      dialect: 'reseller-v1.1',
    }
    return { ...world, owner, mira, supplier }
  }

  test('refuses a second person, and is free again ten minutes after the last step of the first', async () => {
    const { owner, mira, person, supplier, founded, move } = await open()
    expect((await owner.post('test-supplier', supplier)).text).toContain('Yes, these are right')
    for (const action of actions) {
      const refused = await mira.post(action, supplier)
      expect([refused.status, refused.text], action).toEqual([409, expect.stringContaining('owner is at the set-up')])
    }
    expect((await mira.look()).text).not.toContain('action="/setup/')
    move(10 * MINUTE_MS - 1)
    expect((await mira.look()).text).toContain('free again ten minutes after')
    move(1)
    expect((await mira.look()).text).toContain('action="/setup/test-supplier"')
    const untried = await mira.post('found')
    expect([untried.status, untried.text], 'what another person has tested is not confirmed').toEqual([
      409,
      expect.stringContaining('test it first'),
    ])
    expect((await mira.post('test-supplier', supplier)).status).toBe(200)
    expect((await owner.post('found')).status).toBe(409)
    // A person who came back by another link was refused as a second one.
    const back = await person('mira')
    expect((await back.post('found')).text, 'these products were not shown here').toContain('test it first')
    expect((await back.post('test-supplier', supplier)).status).toBe(200)
    expect((await back.post('found')).text).toContain('Your installation starts')
    expect(founded).toEqual(['mira'])
  })
})

describe('the set-up in the installation that took the place of the demo', () => {
  const open = async () => {
    const world = await openWorld({ home: 'database', isFresh: true, isDemo: false })
    const { db, now } = world.ordering
    await db.commit([setFreeze({ reason: 'the set-up is not finished', actor: 'owner', at: now() }, SET_UP)])
    return world
  }

  test('is never open to a second person, however long the first one is away', async () => {
    const { person, move } = await open()
    const mira = await person('mira')
    for (const away of [0, 10 * MINUTE_MS, 60 * MINUTE_MS]) {
      move(away)
      for (const action of away === 0 ? actions : ['start']) {
        const refused = await mira.post(action, {
          keyBegins: 'x',
          name: 'x',
          address: 'http://127.0.0.1:9/',
          kind: 'backend',
        })
        expect([refused.status, refused.text], action).toEqual([409, expect.stringContaining('owner is at the set-up')])
      }
    }
    const page = (await mira.look()).text
    expect(page).not.toContain('action="/setup/')
    expect(page).toContain('quayside console --name owner')
    const owner = await person('owner')
    expect((await owner.look()).text).toContain('action="/setup/add-store"')
  })

  test('opens to no link that has expired or was used', async () => {
    const { address, access, move } = await open()
    const linkOf = async () => (await createLink(access, { name: 'owner', role: 'admin' }, 'set-up')).link.reveal()
    const redeem = (link: string) => visit(address, '/signin', { form: { link, to: '/setup' } })
    const [used, late] = [await linkOf(), await linkOf()]
    const first = await redeem(used)
    expect([first.status, first.headers.location]).toEqual([303, '/setup'])
    expect((await visit(address, '/setup', { cookie: cookieIn(first) })).text).toContain('Connect your shop')
    move(LINK_MS)
    for (const link of [used, late]) {
      const shown = await visit(address, `/signin?link=${link}&to=/setup`)
      expect([shown.status, shown.text]).toEqual([401, expect.stringContaining('quayside console')])
      const refused = await redeem(link)
      expect([refused.status, refused.headers['set-cookie']]).toEqual([401, undefined])
    }
    expect((await visit(address, '/setup')).status).toBe(401)
    expect((await visit(address, '/setup/start', { form: {} })).status).toBe(401)
  })
})
