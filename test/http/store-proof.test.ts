/** A store is ready once it is proven: a key was opened on a page of its orders, or a person confirmed a mail. */
import { describe, expect, test } from 'vitest'
import type { KeyWay } from '../../src/domain/store-update.ts'
import { sendsLinks } from '../../src/domain/store-update.ts'
import { orderFindings } from '../../src/http/api/store-proof.ts'
import { openLine } from '../../src/keys/key-pages.ts'
import { type ApiWorld, OTHER_STORE, openApi } from '../support/api-world.ts'
import { auditOf } from '../support/console-data.ts'
import { STORE } from '../support/test-app.ts'

const PUBLIC = 'https://quayside.example'

/** A store whose customers get keys in this way, with one paid order of two keys. */
async function worldOf(deliver: KeyWay = 'both', kind = 'backend') {
  const world = await openApi({ keyPagesAt: PUBLIC })
  Object.assign(world.api.stores[0] ?? {}, { deliver, kind })
  const [offer] = await world.offers()
  await world.order('1001', [{ sku: offer?.sku ?? '', quantity: 2 }])
  return world
}

const provenIn = async ({ ask }: ApiWorld) => {
  const [store] = (await ask('GET', '/stores')).body.data.items
  const [same] = (await ask('GET', '/status')).body.data.stores as Record<string, unknown>[]
  expect(same?.proven, 'the status and the list of stores agree').toEqual(store?.proven)
  expect(same?.needsProof).toEqual(store?.needsProof)
  return { proven: store?.proven, needsProof: store?.needsProof }
}

const confirm = ({ ask, tokens }: ApiWorld, order: string, whose: 'operator' | 'viewer' = 'operator') =>
  ask('POST', `/stores/${STORE}/confirm-mail`, { token: tokens[whose], body: { order } })

const walk = async ({ ask }: ApiWorld, order: string) => {
  const { data } = (await ask('POST', `/stores/${STORE}/test`, { body: { order } })).body
  const findings = data.findings as Record<'check' | 'state' | 'detail' | 'fix', string>[]
  const walked = findings.slice(findings.findIndex(({ check }) => check === 'order'))
  return {
    healthy: data.healthy,
    says: walked.map(({ check, state, detail }) => `${check} ${state}: ${detail}`),
    walked,
  }
}

async function open(world: ApiWorld) {
  const { keysUrl } = (await world.ask('GET', '/orders/1001', { token: world.tokens.store })).body.data
  const token = String(keysUrl).slice(`${PUBLIC}/k/`.length)
  const links = () => sendsLinks(world.api.stores[0])
  return openLine({ ...world.ordering, pageDays: 365, sendsLinks: links }, token, '1', '203.0.113.0/24')
}

describe('a store', () => {
  test('whose customers get a link, and each shop, needs a proof; a backend that is given keys needs none', async () => {
    expect(await provenIn(await worldOf('link'))).toEqual({ proven: null, needsProof: true })
    expect(await provenIn(await worldOf('both'))).toEqual({ proven: null, needsProof: true })
    expect(await provenIn(await worldOf('keys'))).toEqual({ proven: null, needsProof: false })
    expect(await provenIn(await worldOf('keys', 'shopify'))).toEqual({ proven: null, needsProof: true })
  })

  test('is proven by the first key that is opened on a page of its orders, and stays so', async () => {
    const world = await worldOf()
    await world.pass(10_000)
    const at = new Date(world.now()).toISOString()
    await open(world)
    expect(await provenIn(world)).toMatchObject({ proven: { at, by: 'page' } })
    world.move(60_000)
    await open(world)
    expect((await confirm(world, '1001')).body.data).toEqual({ store: STORE, proven: { at, by: 'page' } })
  })

  test('whose mails bring no link is not proven by the page that its staff opened', async () => {
    const world = await worldOf('keys', 'shopify')
    await world.pass(10_000)
    expect((await open(world))?.keys.size).toBe(2)
    expect(await provenIn(world)).toEqual({ proven: null, needsProof: true })
    const { walked } = await walk(world, '1001')
    expect(walked.at(-1)).toMatchObject({ check: 'proof', fix: 'It is, once its mail is confirmed.' })
  })

  test('is not proven by a click that opens no key', async () => {
    const world = await worldOf()
    await open(world)
    expect(await provenIn(world)).toMatchObject({ proven: null })
  })

  test('is proven by a person who saw the mail of an order that has its keys, and the audit says who', async () => {
    const world = await worldOf()
    expect((await confirm(world, '1001')).body.error).toMatchObject({ code: 'no_keys' })
    await world.pass(10_000)
    expect((await confirm(world, '1001', 'viewer')).status).toBe(403)
    const unknown = await confirm(world, '4711')
    expect(unknown.status).toBe(404)
    expect(unknown.body.error.message).toBe(`${STORE} has no order 4711 here`)
    expect((await confirm(world, '')).body.error.fields).toMatchObject([{ field: 'order' }])
    expect((await confirm(world, '1001')).body.data.proven).toMatchObject({ by: 'mail' })
    const noted = (await auditOf(world)).filter(({ action }) => action === 'store.confirm_mail')
    expect(noted).toMatchObject([{ actor: expect.stringMatching(/^operator/), subject: STORE, detail: 'order 1001' }])
  })
})

describe('a walk along an order', () => {
  test('says how far the order came, and what to do next, up to the customer who opens the keys', async () => {
    const world = await worldOf()
    const early = await walk(world, '1001')
    expect(early.says).toEqual([
      expect.stringMatching(/^order ok: taken 20.*; 1 of 1 line matched a listing$/),
      'keys doubtful: the store took 0 of 2 keys',
      'proof doubtful: it is not known that its customers get at their keys',
    ])
    expect(early.walked[1]?.fix).toBe(`See quayside orders show 1001 --store ${STORE}.`)
    await world.pass(10_000)
    const taken = await walk(world, '1001')
    expect(taken.healthy).toBe(true)
    expect(taken.says).toEqual([
      expect.stringMatching(/^order ok/),
      expect.stringMatching(/^keys ok: the store took 2 of 2 keys, the last one 20/),
      'link ok: customers get the keys and the link',
      'mail doubtful: the mail of a store is not seen here',
      'opened doubtful: no key was opened yet',
      expect.stringMatching(/^proof doubtful/),
    ])
    expect(taken.walked[3]?.fix).toContain(`: quayside stores confirm ${STORE} --order 1001.`)
    await open(world)
    expect((await walk(world, '1001')).says.slice(-2)).toEqual([
      expect.stringMatching(/^opened ok: 2 keys, the first 20/),
      expect.stringMatching(/^proof ok: by the page of order 1001, 20/),
    ])
  })

  test('shows the mail that a person confirmed, and the page that was withdrawn', async () => {
    const world = await worldOf('link')
    await world.pass(10_000)
    await confirm(world, '1001')
    await world.ask('POST', '/orders/1001/keys-page/withdraw', { body: { reason: 'charged back' } })
    const { healthy, says } = await walk(world, '1001')
    expect(healthy).toBe(false)
    expect(says).toContainEqual(expect.stringMatching(/^mail ok: confirmed by operator .*, 20/))
    expect(says).toContainEqual(expect.stringMatching(/^link failed: the page was withdrawn 20/))
  })

  test('finds no order that is not of the store, and says whose it is', async () => {
    const world = await worldOf()
    const { healthy, says, walked } = await walk(world, '4711')
    expect(healthy).toBe(false)
    expect(says[0]).toBe(`order failed: ${STORE} has no order 4711 here`)
    expect(walked[0]?.fix).toBe('Compare the number with quayside orders list. A paid order is taken within minutes.')
    const other = world.api.stores.find(({ id }) => id === OTHER_STORE)
    const found = other && (await orderFindings(world.ordering, other, '1001'))
    expect(found).toMatchObject([{ state: 'failed', detail: `${OTHER_STORE} has no order 1001 here` }])
    expect(found?.[0]?.fix).toContain(`${STORE} has one.`)
  })
})
