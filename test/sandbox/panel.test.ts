import { expect, test } from 'vitest'
import { faultTable } from '../../src/sandbox/faults.ts'
import { faultButtons } from '../../src/sandbox/panel.ts'
import { openApi } from '../support/api-world.ts'
import { visit } from '../support/console-client.ts'
import { peopleOf } from '../support/console-data.ts'
import { openSandbox, productOf } from '../support/sandbox-caller.ts'
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
  await world.publish()
  return { ...world, ...peopleOf(world), ...panelOf(world.sandbox) }
}

type PanelWorld = Awaited<ReturnType<typeof worldOf>>

/** Presses the button of a fault. Returns the order that was placed for it, and reads what the page draws of it. */
async function pressed(world: PanelWorld, fault: string) {
  const { status, headers } = await world.press({ do: 'fault', fault })
  expect(status, fault).toBe(303)
  const read = async () =>
    (await visit(world.origin, String(headers.location), { headers: { accept: 'text/html' } })).text
  const [, reference = ''] = />(D-\d+)<\/a><\/h2>/.exec(await read()) ?? []
  expect(reference, fault).not.toBe('')
  const ofOrder = ({ externalOrderId }: { externalOrderId: string | null }) =>
    externalOrderId?.startsWith(`q1.${STORE}.${reference}.`)
  return {
    reference,
    read,
    /** The steps in the list below the drawing. */
    steps: async () => {
      const [, list = ''] = /<ol class="steps">(.*?)<\/ol>/s.exec(await read()) ?? []
      return [...list.matchAll(/<span>(.*?)<\/span>/g)].map(([, step]) => step)
    },
    charges: () => world.sandbox.world.report().charges.filter(ofOrder).length,
    refunds: () => world.sandbox.world.report().refunds.filter(ofOrder).length,
  }
}

test('each fault that an order can meet is a button; faults of lists are, too, where no customer orders', async () => {
  const { read } = await worldOf()
  const alone = await openSandbox()
  const [inDemo, text] = [await read(), await panelOf(alone).read()]
  for (const [name, { title }] of Object.entries(faultButtons)) {
    const button = new RegExp(`<button name="fault" value="${name}"[^>]*><b>${title}</b>`)
    expect(text).toMatch(button)
    if (faultTable[name as keyof typeof faultTable].of === 'list') expect(inDemo).not.toMatch(button)
    else expect(inDemo).toMatch(button)
  }
  await alone.close()
})

const BOUGHT = 'Supplier to Quayside: taken, charged, '
test.each([
  [
    'answer-lost',
    ['Supplier to Quayside: lost, charged, ', 'Quayside: unknown, for ', 'Supplier to Quayside: found, 1 order'],
  ],
  ['error-before', ['Supplier to Quayside: 500: internal', 'Supplier to Quayside: found, 0 orders', BOUGHT]],
  ['error-after', ['Supplier to Quayside: 500: internal, charged, ', 'Supplier to Quayside: found, 1 order']],
  ['rate-limit', ['Supplier to Quayside: 429: rate limited', 'Quayside: tries later, for ', BOUGHT]],
  ['out-of-stock', ['Supplier to Quayside: 409: out of stock', 'Quayside to Shop: waits', BOUGHT]],
  ['insufficient-balance', ['Supplier to Quayside: 402: insufficient balance', 'Quayside to Shop: waits', BOUGHT]],
  ['list-lag', [BOUGHT]],
  ['partial-keys', [BOUGHT, 'Supplier to Quayside: 1 of 2 keys', 'Supplier to Quayside: 2 keys']],
])(
  'the button of %s places one order, which is drawn until it has its keys, and is charged once',
  async (fault, drawn) => {
    const world = await worldOf()
    const order = await pressed(world, fault)
    await world.pass(60_000)
    await world.pass(7_200_000, 60_000)
    expect(world.sandbox.faults.list()).toMatchObject([{ fault, left: 0, fired: 1 }])
    const text = await order.read()
    expect(text).toMatch(/healed in [\d.]+ (ms|s|min)/)
    expect(text).toMatch(/the customer has the key [\d.]+ (ms|s|min).* later, and the supplier charged once\./)
    expect(order.charges()).toBe(1)
    expect(order.refunds()).toBe(0)
    const steps = await order.steps()
    let from = 0
    for (const step of [`Shop to Quayside: order ${order.reference}`, ...drawn, 'Quayside to Shop: the keys']) {
      from = steps.findIndex((one, at) => at >= from && one?.startsWith(step)) + 1
      expect(from, `${step} in ${steps.join(' | ')}`).toBeGreaterThan(0)
    }
    expect(world.shop.keys().get(`${order.reference}/1`)).toHaveLength(fault === 'partial-keys' ? 2 : 1)
  },
)

test('two buttons at once placed one order for two faults: each order meets its own fault, and no other order does', async () => {
  const world = await worldOf()
  const faults = ['answer-lost', 'failed-order', 'answer-lost', 'error-after']
  const [other, ...orders] = await Promise.all([
    world.buy('1001'),
    ...faults.map((fault) => pressed(world, fault)),
  ] as const)
  await world.pass(600_000)
  expect(new Set(orders.map(({ reference }) => reference)).size).toBe(4)
  expect(world.sandbox.faults.list().map(({ fired }) => fired)).toEqual([1, 1, 1, 1])
  expect(await world.state(other)).toBe('fulfilled')
  for (const [at, order] of orders.entries()) {
    const isFailed = faults[at] === 'failed-order'
    expect(order.charges()).toBe(1)
    expect(order.refunds()).toBe(isFailed ? 1 : 0)
    expect(await order.read()).toMatch(isFailed ? /no key came, and the supplier charged once/ : /healed in \d/)
  }
  expect(world.sandbox.world.report().charges).toHaveLength(5)
  expect(await world.read(), 'they stay on the page').toMatch(/Seen so far(.*D-000\d){4}/s)
})

test('an order that fails says that a person retries it, and heals by that', async () => {
  const world = await worldOf()
  const order = await pressed(world, 'failed-order')
  expect(await order.read()).toContain('a person retries the order')
  await world.pass(600_000)
  expect(await order.read()).toContain('failed</span>')
  const { body } = await world.ask('GET', `/orders/${order.reference}`)
  const [{ purchases }] = body.data.lines as [{ purchases: { id: string }[] }]
  const purchase = purchases[0]?.id ?? ''
  await world.act('operator', `/orders/${STORE}/${order.reference}/retry`, { purchase })
  await world.pass(600_000)
  expect(await order.read()).toMatch(/healed in \d/)
  expect(order.charges()).toBe(2)
})

test('a fault whose order Quayside does not take is taken back, and says why', async () => {
  const world = await openApi()
  const { press } = panelOf(world.sandbox)
  const answer = await press({ do: 'fault', fault: 'answer-lost' })
  expect(answer.status).toBe(503)
  expect(answer.text).toContain('Nothing was done. the store sells nothing now')
  expect(world.sandbox.faults.list()).toEqual([])
})

test('a fault is set by its button, and taken back by another one', async () => {
  const sandbox = await openSandbox()
  const { press, read } = panelOf(sandbox)
  for (const fault of Object.keys(faultTable)) expect((await press({ do: 'fault', fault })).status, fault).toBe(303)
  expect(sandbox.faults.list()).toHaveLength(Object.keys(faultTable).length)
  expect((await press({ do: 'fault', fault: 'nonsense' })).status).toBe(400)
  expect((await press({ do: 'nonsense' })).status).toBe(400)
  await press({ do: 'clear' })
  expect(sandbox.faults.list()).toEqual([])
  expect(await read()).toContain('The supplier works as it should again.')
  await sandbox.close()
})

test('a sandbox by itself draws what the supplier saw of the next order of any client', async () => {
  const sandbox = await openSandbox()
  const { press, read } = panelOf(sandbox)
  await press({ do: 'fault', fault: 'error-after' })
  expect(await read()).toContain('Fail after: set for the next purchase.')
  const { id: productId } = productOf(sandbox, 'GAM-DEEPHARB')
  const order = { productId, externalOrderId: 'shop-<1>' }
  expect((await sandbox.order('k', order)).status).toBe(500)
  sandbox.clock.now += 20
  const { body } = await sandbox.get('/orders?external_order_id=shop-%3C1%3E')
  sandbox.pass(400)
  await sandbox.get(`/orders/${(body as { data: { items: { id: string }[] } }).data.items[0]?.id}`)
  await sandbox.order('other', { productId, externalOrderId: 'shop-<1>0' })
  const text = await read()
  expect(text).toContain('Fail after: its keys were read 0.4 s later, and the supplier charged once.')
  expect(text).toContain('<bdi>shop-&lt;1&gt;</bdi>')
  expect(text).toContain('Supplier to Quayside: found, 1 order</span><b>20 ms</b>')
  expect(text).toContain('Supplier to Quayside: 1 key</span><b>420 ms</b>')
  expect(text).not.toContain('>Shop</text>')
  await sandbox.close()
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
  const held = await pressed(world, 'hold-open')
  await world.pass(60_000)
  const stuck = (await world.page('operator', `/orders/${STORE}/${held.reference}`)).text
  expect(stuck).toContain('the keys of the supplier. Its order is read again and again by itself.')
  expect(stuck).toMatch(/href="\/reviews\/\w+">See the evidence, or decide/)
  const [, order = ''] = /name="id" value="([^"]+)"/.exec(await world.read()) ?? []
  expect((await world.press({ do: 'complete', id: order })).status).toBe(303)
  await world.pass(60_000)
  expect(await held.read()).toContain('charged once')
  expect(await held.read()).toMatch(/healed in \d/)
  expect(await held.steps(), 'equal reads are one step').toContainEqual(expect.stringMatching(/open, \d+ times$/))
  expect((await world.press({ do: 'fail', id: order })).status).toBeLessThan(500)
  expect((await world.press({ do: 'fail', id: 'none' })).status).toBe(404)
})

test('what a button did was never said where the script of the page read it again before the next page came', async () => {
  const { press, origin, read } = panelOf(await openSandbox())
  await press({ do: 'clear' })
  const done = 'The supplier works as it should again.'
  const refresh = await visit(origin, '/', { headers: { accept: 'text/html', 'sec-fetch-dest': 'empty' } })
  expect(refresh.text).not.toContain(done)
  expect(await read()).toContain(done)
  expect(await read(), 'once').not.toContain(done)
})

test('the customer orders at once where a person wants it, is started and stopped, and its references go on', async () => {
  const world = await worldOf()
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
  expect(text).toContain('answer-lost')
  expect(text).not.toMatch(/<button|The whole ledger/)
  await sandbox.close()
})
