import { expect, test } from 'vitest'
import { faultTable } from '../../src/sandbox/faults.ts'
import { faultButtons } from '../../src/sandbox/panel.ts'
import { type ApiWorld, openApi } from '../support/api-world.ts'
import { visit } from '../support/console-client.ts'
import { peopleOf } from '../support/console-data.ts'
import { openSandbox } from '../support/sandbox-caller.ts'
import { STORE } from '../support/test-app.ts'

/** A browser at the address of a sandbox. */
function panelOf({ baseUrl }: { baseUrl: string }) {
  const { origin } = new URL(baseUrl)
  const headers = { accept: 'text/html', origin }
  return {
    origin,
    read: async () => (await visit(origin, '/', { headers })).text,
    press: (form: Record<string, string>, more: Record<string, string> = {}) =>
      visit(origin, '/', { headers: { ...headers, ...more }, form }),
  }
}

const worldOf = async () => {
  const world = await openApi()
  await world.offers()
  return { ...world, ...peopleOf(world), ...panelOf(world.sandbox) }
}

const ordersOf = async (world: Pick<ApiWorld, 'sandbox'>) =>
  (await panelOf(world.sandbox).read()).split('<h2>Orders</h2>')[1]?.split('</table>')[0] ?? ''

test('each fault of the sandbox is a button', async () => {
  const { read } = await worldOf()
  const text = await read()
  for (const [name, { title }] of Object.entries(faultButtons)) {
    expect(text).toContain(`<button name="fault" value="${name}"><b>${title}</b>`)
  }
})

test('a fault is set by its button, is said until it has fired, and the order recovers from it', async () => {
  const world = await worldOf()
  const done = await world.press({ do: 'fault', fault: 'answer-lost' })
  expect(done.status).toBe(303)
  const armed = await world.read()
  expect(armed).toContain('<b>Lose the answer</b>: next purchase')
  expect(armed).toContain('it never pays twice')
  const id = await world.buy('1001')
  await world.pass(1_000)
  expect(world.sandbox.faults.list()[0]).toMatchObject({ fault: 'answer-lost', left: 0, fired: 1 })
  expect(await world.read()).toContain('No fault is set')
  await world.pass(600_000)
  expect(await world.state(id)).toBe('fulfilled')
  expect(await world.read()).toContain('No order is open')
  world.expectLedger({ charges: 1, keys: 1 })
})

test('the button that fails an order said that Quayside buys it once more: it does not, and a person retries it', async () => {
  const world = await worldOf()
  await world.press({ do: 'fault', fault: 'failed-order' })
  expect(await world.read()).toContain('a person retries the order')
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
  await world.press({ do: 'fault', fault: 'partial-keys' })
  expect(await world.read()).toContain('go to the store together with the others')
  const id = await world.buy('1001', { quantity: 2 })
  await world.pass(10_000)
  expect(await ordersOf(world)).toContain('<td>1 of 2<td')
  expect((await world.page('operator', `/orders/${STORE}/1001`)).text).toContain('1 key came')
  expect(world.shop.keys().get('1001/1')).toBeUndefined()
  await world.pass(600_000)
  expect(await world.state(id)).toBe('fulfilled')
  expect(world.shop.keys().get('1001/1')).toHaveLength(2)
})

test('every fault can be set by its button: the sandbox reads the options that it is sent', async () => {
  const world = await worldOf()
  for (const fault of Object.keys(faultTable)) {
    expect((await world.press({ do: 'fault', fault })).status, fault).toBe(303)
  }
  expect(world.sandbox.faults.list()).toHaveLength(Object.keys(faultTable).length)
  expect((await world.press({ do: 'fault', fault: 'nonsense' })).status).toBe(400)
  expect((await world.press({ do: 'nonsense' })).status).toBe(400)
  await world.press({ do: 'clear' })
  expect(world.sandbox.faults.list()).toEqual([])
  expect(await world.read()).toContain('The supplier works as it should again.')
})

test('an order that stands still leaves the page once eight newer ones came, and is said to have ended', async () => {
  const world = await worldOf()
  world.sandbox.faults.add({ fault: 'hold-open' })
  for (const reference of ['1001', ...Array.from({ length: 9 }, (_, index) => `20${index}`)]) {
    await world.buy(reference)
    await world.pass(10_000)
  }
  const [oldest, newest] = [world.sandbox.world.orders.known(10).at(-1), world.sandbox.world.orders.known(1)[0]]
  const [, second] = world.sandbox.world.orders.known(10).reverse()
  const orders = await ordersOf(world)
  expect(orders).toContain('1 open')
  expect(orders).toContain(String(oldest?.externalOrderId))
  expect(orders).toContain(String(newest?.externalOrderId))
  expect(orders).not.toContain(String(second?.externalOrderId))
})

test('the ledger is shown newest first, each entry with the balance after it', async () => {
  const world = await worldOf()
  await world.buy('1001')
  await world.pass(5_000)
  await world.press({ do: 'top-up', add: '12.50' })
  const { charges, balanceMinor } = world.sandbox.world.report()
  const [charge] = charges
  const summary = world.sandbox.world.summary(20)
  expect(summary.newest.map(({ kind, balanceMinor: after }) => [kind, after])).toEqual([
    ['top_up', balanceMinor],
    ['charge', balanceMinor - 1_250],
  ])
  const text = await world.read()
  expect(text).toContain('balanced to the cent')
  expect(text).toContain(`−${((charge?.amountMinor ?? 0) / 100).toFixed(2)}`)
  expect(text).toContain('+12.50')
  expect(text).toMatch(/1 charged with .*, 0 refunded with 0.00, 1 topped up with 12.50. Licence keys handed out: 1\./)
})

test('an amount that is none is said, and stands in its field', async () => {
  const world = await worldOf()
  const answer = await world.press({ do: 'top-up', add: 'a lot' })
  expect(answer.status).toBe(400)
  expect(answer.text).toContain('Nothing was done. add: must be a positive amount')
  expect(answer.text).toContain('value="a lot"')
  expect(world.sandbox.world.summary(1).topUps.count).toBe(0)
})

test('an order that was left open is ended on the page', async () => {
  const world = await worldOf()
  await world.press({ do: 'fault', fault: 'hold-open' })
  const id = await world.buy('1001')
  await world.pass(60_000)
  expect(await world.state(id)).toBe('open')
  const stuck = (await world.page('operator', `/orders/${STORE}/1001`)).text
  expect(stuck).toContain('the keys of the supplier. Its order is read again and again by itself.')
  expect(stuck).toMatch(/href="\/reviews\/\w+">See the evidence, or decide/)
  const [, order = ''] = /name="id" value="([^"]+)"/.exec(await world.read()) ?? []
  expect((await world.press({ do: 'complete', id: order })).status).toBe(303)
  await world.pass(60_000)
  expect(await world.state(id)).toBe('fulfilled')
  expect((await world.press({ do: 'fail', id: order })).status).toBeLessThan(500)
  expect((await world.press({ do: 'fail', id: 'none' })).status).toBe(404)
})

test('the customer orders at once where a person wants it, is started and stopped, and its references go on', async () => {
  const world = await worldOf()
  await world.publish()
  expect(await world.read()).toContain('The demo customer is stopped')
  const ordered = await world.press({ do: 'order' })
  expect(ordered.status).toBe(303)
  await world.press({ do: 'order' })
  expect(await world.read()).toContain(`href="${world.pages.address()}/orders?q=D-0002"`)
  await world.press({ do: 'start' })
  expect(await world.read()).toContain('A demo customer orders about twice a minute')
  await world.press({ do: 'stop' })
  expect(await world.read()).toContain('The demo customer is stopped')
})

test('in a demo the console leads to the page of the sandbox; elsewhere there is no such link and no customer', async () => {
  const { page, sandbox } = await worldOf()
  expect((await page('viewer', '/overview')).text).toContain(`href="${new URL(sandbox.baseUrl).origin}"`)
  const world = await openApi({ isDemo: false })
  expect((await peopleOf(world).page('admin', '/overview')).text).not.toContain('Sandbox')
  const { read, press } = panelOf(world.sandbox)
  expect(await read()).not.toContain('customer is')
  expect((await press({ do: 'order' })).status).toBe(404)
})

test.each([
  ['another site', { origin: 'https://elsewhere.example' }],
  ['a name elsewhere that leads to this machine', { host: 'elsewhere.example', origin: 'http://elsewhere.example' }],
  ['a frame without an origin', { origin: 'null' }],
])('%s cannot press the buttons in the browser of a person', async (_who, headers) => {
  const sandbox = await openSandbox()
  const { press } = panelOf(sandbox)
  expect((await press({ do: 'fault', fault: 'answer-lost' }, headers)).status).toBe(403)
  expect(sandbox.faults.list()).toEqual([])
  await sandbox.close()
})

test('under a name elsewhere the page has no ledger and no buttons', async () => {
  const sandbox = await openSandbox()
  const { text } = await visit(new URL(sandbox.baseUrl).origin, '/', {
    headers: { accept: 'text/html', host: 'elsewhere.example' },
  })
  expect(text).toContain('<code>answer-lost</code>')
  expect(text).not.toMatch(/<button|Ledger/)
  await sandbox.close()
})
