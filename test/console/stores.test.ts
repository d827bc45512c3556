import { expect, test } from 'vitest'
import { updateTypes } from '../../src/stores/examples.ts'
import { OTHER_STORE, openApi } from '../support/api-world.ts'
import { auditOf, peopleOf } from '../support/console-data.ts'
import { STORE } from '../support/test-app.ts'

const worldOf = async () => {
  const world = await openApi()
  return { ...world, ...peopleOf(world) }
}

test('the list says whether all stores are up to date, with kind, address and listings of each', async () => {
  const { page } = await worldOf()
  const { text } = await page('viewer', '/stores')
  expect(text).toContain('Both stores are up to date.')
  expect(text).toContain(`href="/stores/${STORE}"`)
  expect(text).toContain('your backend')
  expect(text).toContain('http://127.0.0.1:9/')
})

test('a store that is not there is not found', async () => {
  const { page } = await worldOf()
  expect((await page('viewer', '/stores/nowhere')).status).toBe(404)
})

test('the connection is tested, and what was found is shown', async () => {
  const world = await worldOf()
  const answer = await world.act('operator', `/stores/${STORE}/test`, {})
  expect(answer.status).toBe(200)
  expect(answer.text).toContain('What the test found')
  expect((await world.act('viewer', `/stores/${STORE}/test`, {})).status).toBe(403)
})

test('an example of each callback is offered, and the answer of the store is said', async () => {
  const world = await worldOf()
  const { text } = await world.page('operator', `/stores/${STORE}`)
  for (const type of updateTypes) expect(text).toContain(`<option value="${type}"`)
  await world.act('operator', `/stores/${STORE}/example`, { type: 'line.held' })
  expect((await world.page('operator', `/stores/${STORE}`)).text).toContain('The store took the example of line.held')
  await world.shop.close()
  await world.act('operator', `/stores/${STORE}/example`, { type: 'line.held' })
  expect((await world.page('operator', `/stores/${STORE}`)).text).toContain('did not take the example of line.held')
})

test('no example is offered that the API refuses', async () => {
  const world = await worldOf()
  const { text } = await world.page('operator', `/stores/${STORE}`)
  expect([...text.matchAll(/<option value="([^"]+)"/g)].map(([, type]) => type)).toEqual(updateTypes)
})

test('a callback secret is rotated by an admin: shown once, audited, and then in use', async () => {
  const world = await worldOf()
  const before = (await world.page('admin', `/stores/${STORE}`)).text
  expect(before).toContain('Takes generation 2 into use')
  const rotated = await world.act('admin', `/stores/${STORE}/rotate-secret`, { overlapHours: '24' })
  expect(rotated.status).toBe(200)
  const [, secret = ''] = /<pre tabindex="0" id="secret">(whsec_[^<]+)<\/pre>/.exec(rotated.text) ?? []
  expect(secret).not.toBe('')
  expect(rotated.headers['cache-control']).toBe('no-store')
  const after = (await world.page('admin', `/stores/${STORE}`)).text
  expect(after).not.toContain(secret)
  expect(after).toContain('valid until')
  expect((await auditOf(world)).map(({ action, subject }) => [action, subject])).toContainEqual([
    'store.rotate_secret',
    STORE,
  ])
  expect((await world.act('operator', `/stores/${STORE}/rotate-secret`, { overlapHours: '24' })).status).toBe(403)
})

test('hours that are none are said beside the field, and nothing is rotated', async () => {
  const world = await worldOf()
  const answer = await world.act('admin', `/stores/${OTHER_STORE}/rotate-secret`, { overlapHours: 'a week' })
  expect(answer.status).toBe(400)
  expect(answer.text).toContain('id="f-overlapHours-fault"')
  expect(answer.text).toContain('value="a week"')
  expect((await world.page('admin', `/stores/${OTHER_STORE}`)).text).toContain('never: it is the first one')
})

test('a store that refused its listings, or whose orders cannot be read, is named first', async () => {
  const world = await worldOf()
  const { pausePublishing, putPublishing } = await import('../../src/storage/publications.ts')
  const at = world.now()
  await world.db.commit([
    putPublishing({
      store: STORE,
      policy: 'p',
      epoch: 1,
      attempts: 0,
      pausedUntil: null,
      lastError: null,
      changedAt: at,
    }),
    pausePublishing(STORE, {
      attempts: 1,
      pausedUntil: at + 60_000,
      lastError: 'the store answered 500',
      changedAt: at,
    }),
  ])
  const { text } = await world.page('viewer', '/stores')
  expect(text).toContain(`${STORE} needs a look: it refused its listings, and is tried again later.`)
  expect((await world.page('viewer', `/stores/${STORE}`)).text).toContain('the store answered 500')
})

test('a store whose customers get a link is not proven before one of them opens a key, or a person confirms a mail', async () => {
  const world = await openApi({ keyPagesAt: 'https://quayside.example' })
  const { page, act } = peopleOf(world)
  Object.assign(world.api.stores[0] ?? {}, { deliver: 'link' })
  const [offer] = await world.offers()
  await world.order('1001', [{ sku: offer?.sku ?? '' }])
  await world.pass(10_000)
  const address = `/stores/${STORE}`
  expect((await page('viewer', '/overview')).text).toContain(`${STORE} is not proven`)
  expect((await page('viewer', '/stores')).text).toContain('not proven')
  expect((await page('viewer', address)).text).not.toContain('Confirm a mail')
  expect((await page('operator', `/stores/${OTHER_STORE}`)).text).not.toContain('Confirm a mail')
  const walked = await act('operator', `${address}/test`, { order: '1001' })
  expect(walked.text).toContain('no key was opened yet')
  const wrong = await act('operator', `${address}/confirm`, { order: '' })
  expect(wrong.status).toBe(400)
  await act('operator', `${address}/confirm`, { order: '1001' })
  const { text } = await page('operator', address)
  expect(text).toContain('The mail of order 1001 proves the store.')
  expect(text).toContain('by the mail of an order')
  expect((await page('viewer', '/overview')).text).not.toContain('is not proven')
})
