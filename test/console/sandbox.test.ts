import { expect, test } from 'vitest'
import { faultWords } from '../../src/console/sandbox.ts'
import { faultTable } from '../../src/sandbox/faults.ts'
import { openApi } from '../support/api-world.ts'
import { auditOf, peopleOf } from '../support/console-data.ts'
import { STORE } from '../support/test-app.ts'

const worldOf = async () => {
  const world = await openApi()
  await world.offers()
  return { ...world, ...peopleOf(world) }
}

test('each fault of the sandbox has its words, and each is a button', async () => {
  expect(Object.keys(faultWords).sort()).toEqual(Object.keys(faultTable).sort())
  const { page } = await worldOf()
  const { text } = await page('operator', '/sandbox')
  for (const [name, { title }] of Object.entries(faultWords)) {
    expect(text).toContain(`<button name="fault" value="${name}">${title}<small>`)
  }
})

test('a fault is set by its button, is said until it has fired, and the order recovers from it', async () => {
  const world = await worldOf()
  const done = await world.act('operator', '/sandbox/break', { fault: 'answer-lost' })
  expect(done.status).toBe(303)
  const armed = (await world.page('operator', '/sandbox')).text
  expect(armed).toContain('Lose the answer: next purchase')
  expect(armed).toContain('it never pays twice')
  const id = await world.buy('1001')
  await world.pass(1_000)
  expect(world.sandbox.faults.list()[0]).toMatchObject({ fault: 'answer-lost', left: 0, fired: 1 })
  const healing = (await world.page('operator', '/sandbox')).text
  expect(healing).toContain('No fault is set')
  expect(healing).toContain('1 order under way')
  await world.pass(600_000)
  expect(await world.state(id)).toBe('fulfilled')
  expect((await world.page('operator', '/sandbox')).text).toContain('every order has ended')
  world.expectLedger({ charges: 1, keys: 1 })
  expect((await auditOf(world)).map(({ action, subject }) => `${action} ${subject}`)).toContain(
    'sandbox.fault answer-lost',
  )
})

test('the button that fails an order said that Quayside buys it once more: it does not, and a person retries it', async () => {
  const world = await worldOf()
  await world.act('operator', '/sandbox/break', { fault: 'failed-order' })
  expect((await world.page('operator', '/sandbox')).text).toContain('a person retries the order')
  const id = await world.buy('1001')
  await world.pass(600_000)
  expect(await world.state(id)).toBe('failed')
  const { id: purchase } = await world.purchase(id)
  await world.act('operator', `/orders/${STORE}/1001/retry`, { purchase })
  await world.pass(600_000)
  expect(world.shop.keys().get('1001/1')).toHaveLength(1)
})

test('the button that holds a key back said that the others go out at once: they wait for it', async () => {
  const world = await worldOf()
  await world.act('operator', '/sandbox/break', { fault: 'partial-keys' })
  expect((await world.page('operator', '/sandbox')).text).toContain('go to the store together with the others')
  const id = await world.buy('1001', { quantity: 2 })
  await world.pass(10_000)
  expect((await world.page('operator', `/orders/${STORE}/1001`)).text).toContain('1 key came')
  expect(world.shop.keys().get('1001/1')).toBeUndefined()
  await world.pass(600_000)
  expect(await world.state(id)).toBe('fulfilled')
  expect(world.shop.keys().get('1001/1')).toHaveLength(2)
})

test('every fault can be set by its button: the sandbox reads the options that it is sent', async () => {
  const world = await worldOf()
  for (const fault of Object.keys(faultTable)) {
    expect((await world.act('operator', '/sandbox/break', { fault })).status, fault).toBe(303)
  }
  expect(world.sandbox.faults.list()).toHaveLength(Object.keys(faultTable).length)
  expect((await world.act('operator', '/sandbox/break', { fault: 'nonsense' })).status).toBe(400)
  await world.act('operator', '/sandbox/clear', {})
  expect(world.sandbox.faults.list()).toEqual([])
  expect((await world.page('operator', '/sandbox')).text).toContain('The supplier works as it should again.')
})

test('an order that stands still leaves the page once eight newer ones came, and is said to have ended', async () => {
  const world = await worldOf()
  world.sandbox.faults.add({ fault: 'hold-open' })
  for (const reference of ['1001', ...Array.from({ length: 9 }, (_, index) => `20${index}`)]) {
    await world.buy(reference)
    await world.pass(10_000)
  }
  const { text } = await world.page('operator', '/sandbox')
  expect(text).toContain('1 order under way')
  expect(text).toContain(`href="/orders/${STORE}/1001"`)
  expect(text).toContain(`href="/orders/${STORE}/208"`)
  expect(text).not.toContain(`href="/orders/${STORE}/200"`)
})

test('the ledger is shown newest first, each entry with the balance after it', async () => {
  const world = await worldOf()
  await world.buy('1001')
  await world.pass(5_000)
  await world.act('operator', '/sandbox/top-up', { add: '12.50' })
  const { charges, balanceMinor } = world.sandbox.world.report()
  const [charge] = charges
  const summary = world.sandbox.world.summary(20)
  expect(summary.newest.map(({ kind, balanceMinor: after }) => [kind, after])).toEqual([
    ['top_up', balanceMinor],
    ['charge', balanceMinor - 1_250],
  ])
  const { text } = await world.page('viewer', '/sandbox')
  expect(text).toContain('balanced to the cent')
  expect(text).toContain(`−${((charge?.amountMinor ?? 0) / 100).toFixed(2)}`)
  expect(text).toContain('+12.50')
  expect(text).toMatch(/One charge, 0 refunds, 1 licence key handed out/)
})

test('an amount that is none is said beside its field', async () => {
  const world = await worldOf()
  const answer = await world.act('operator', '/sandbox/top-up', { add: 'a lot' })
  expect(answer.status).toBe(400)
  expect(answer.text).toContain('id="f-add-fault"')
  expect(answer.text).toContain('value="a lot"')
  expect(world.sandbox.world.summary(1).topUps.count).toBe(0)
})

test('an order that was left open is ended on the page', async () => {
  const world = await worldOf()
  await world.act('operator', '/sandbox/break', { fault: 'hold-open' })
  const id = await world.buy('1001')
  await world.pass(60_000)
  expect(await world.state(id)).toBe('open')
  const stuck = (await world.page('operator', `/orders/${STORE}/1001`)).text
  expect(stuck).toContain('the keys of the supplier. Its order is read again and again by itself.')
  expect(stuck).toMatch(/href="\/reviews\/\w+">See the evidence, or decide/)
  const { text } = await world.page('operator', '/sandbox')
  expect(text).toContain('End the open order of 1 key for')
  const [, order = ''] = /name="id" value="([^"]+)"/.exec(text) ?? []
  expect((await world.act('operator', '/sandbox/end', { id: order, as: 'complete' })).status).toBe(303)
  await world.pass(60_000)
  expect(await world.state(id)).toBe('fulfilled')
  expect((await world.act('operator', '/sandbox/end', { id: order, as: 'fail' })).status).toBeLessThan(500)
  expect((await world.act('operator', '/sandbox/end', { id: 'none', as: 'fail' })).status).toBe(404)
})

test('the customer orders at once where a person wants it, is started and stopped, and its references go on', async () => {
  const world = await worldOf()
  await world.publish()
  expect((await world.page('viewer', '/sandbox')).text).toContain('The demo customer is stopped')
  const ordered = await world.act('operator', '/sandbox/customer', { do: 'order' })
  expect(ordered.status).toBe(303)
  await world.act('operator', '/sandbox/customer', { do: 'order' })
  const { text } = await world.page('viewer', '/sandbox')
  expect(text).toContain('href="/orders?q=D-0002"')
  await world.act('operator', '/sandbox/customer', { do: 'start' })
  expect((await world.page('viewer', '/sandbox')).text).toContain('A demo customer orders about twice a minute')
  await world.act('operator', '/sandbox/customer', { do: 'stop' })
  expect((await world.page('viewer', '/sandbox')).text).toContain('The demo customer is stopped')
})

test('a viewer sees it all and breaks nothing', async () => {
  const world = await worldOf()
  const { text } = await world.page('viewer', '/sandbox')
  expect(text).not.toContain('action="/sandbox/')
  expect(text).toContain('setting them needs the role operator')
  expect((await world.act('viewer', '/sandbox/break', { fault: 'slow' })).status).toBe(403)
})

test('where the supplier is another service there is no such page, and no such operation', async () => {
  const world = await openApi({ isDemo: false })
  const { page, act } = peopleOf(world)
  expect((await page('admin', '/sandbox')).status).toBe(404)
  expect((await page('admin', '/overview')).text).not.toContain('href="/sandbox"')
  expect((await world.ask('GET', '/sandbox')).status).toBe(404)
  expect((await act('admin', '/sandbox/break', { fault: 'slow' })).status).toBe(404)
})
