/** Settings changed by the console: what each form does, and what it shows where something is wrong. */
import { expect, test } from 'vitest'
import { openApi } from '../support/api-world.ts'
import { signedIn, visit } from '../support/console-client.ts'
import { STORE } from '../support/test-app.ts'

async function consoleOf(home: 'file' | 'database', storeSettings = {}) {
  const world = await openApi({ home, storeSettings })
  const address = world.pages.address() ?? ''
  const cookie = await signedIn(world, 'admin')
  const get = (path: string) => visit(address, path, { cookie })
  const post = (path: string, form: Record<string, string>) => visit(address, path, { cookie, form })
  return { world, get, post }
}

test('a setting is changed by its form, and a wrong value is shown beside what was typed', async () => {
  const { world, get, post } = await consoleOf('database')
  const name = `stores.${STORE}.pricing.markup.percent`
  const page = await get(`/settings?change=${name}`)
  expect(page.text).toContain('Change this setting')
  expect(page.text).toContain('file only: an address of this process')
  const wrong = await post('/settings/change', { name, revision: '1', value: 'much', reason: 'a test' })
  expect(wrong.text).toContain('a percentage such as')
  expect(wrong.text).toContain('value="much"')
  await post('/settings/change', { name, revision: '1', value: '35', reason: 'a test' })
  expect(world.inForce().stores[0]?.pricing.markup.percent).toBe('35')
  expect((await get('/settings')).text).toContain('Undo revision 2')
})

test('a store, the key of the supplier and a channel have their forms where the database is the home', async () => {
  const { world, get, post } = await consoleOf('database')
  expect((await get(`/stores/${STORE}`)).text).toContain('Pause: sell nothing here')
  await post(`/stores/${STORE}/selling`, { selling: 'paused', reason: 'a test' })
  expect(world.inForce().stores[0]?.selling).toBe('paused')
  const refused = await post('/settings/rotate-api-key', { apiKey: 'sk_test_ffffffffffffffff', reason: 'a test' })
  expect(refused.status).toBeGreaterThanOrEqual(400)
  expect(refused.text).toContain('The supplier refused the API key with 401')
  expect(refused.text).not.toContain('ffffffff')
  const channel = { channel: 'duty', kind: 'webhook', least: 'warning', from: '', to: '' }
  await post('/alerts/channel', { ...channel, address: 'https://alerts.example/x', reason: 'a test' })
  expect(Object.keys(world.inForce().alerts.channels)).toEqual(['duty'])
})

test('where the file is the home, the page says so and offers no change', async () => {
  const { get } = await consoleOf('file')
  const page = await get('/settings')
  expect(page.text).toContain('quayside settings adopt')
  expect(page.text).not.toContain('Change…')
  expect((await get(`/stores/${STORE}`)).text).not.toContain('Pause: sell nothing here')
})

test('a store that is connected and not live is started on its page', async () => {
  const { world, get, post } = await consoleOf('database', { selling: 'off' })
  expect((await get(`/stores/${STORE}`)).text).toContain('Start selling here')
  await post(`/stores/${STORE}/selling`, { selling: 'paused', reason: 'a test' })
  expect(world.inForce().stores[0]?.selling, 'nothing is sold there that could be paused').toBe('off')
  await post(`/stores/${STORE}/selling`, { selling: 'on', reason: ' it is ready ' })
  expect(world.inForce().stores[0]?.selling).toBe('on')
})
