import { expect, test } from 'vitest'
import { dayStart } from '../../src/domain/earnings.ts'
import { cancelOrder } from '../../src/ordering/actions.ts'
import { sumEarnings } from '../../src/ordering/earnings.ts'
import { type ApiOptions, openApi } from '../support/api-world.ts'
import { signedIn, visit } from '../support/console-client.ts'
import { auditOf } from '../support/console-data.ts'

const HOUR = 3_600_000
const DAY = 24 * HOUR
const MINUTE = 60_000

async function openWorld(options: ApiOptions = {}) {
  const world = await openApi({ balanceMinor: 1_000_000, storeNames: { 'demo-ab12cd34': 'Nordic <Keys>' }, ...options })
  const page = async (to = '/money') => {
    await sumEarnings(world.ordering)
    return visit(world.pages.address() ?? '', to, { cookie: await signedIn(world, 'viewer') })
  }
  return { ...world, page }
}

/** The text of a page, without its marks. */
const plain = (text: string) => text.replaceAll(/<[^>]*>/g, ' ').replaceAll(/\s+/g, ' ')

test('says what was earned: the price as the store states it, less what the supplier charged', async () => {
  const world = await openWorld()
  expect((await world.page()).text).toContain('<h1>Nothing was sold in 30 days.</h1>')
  const { sku, costMinor } = await world.offer()
  await world.order('1001', [{ sku, quantity: 2, unitPriceMinor: costMinor * 2 }])
  await world.pass(HOUR)
  const earned = ((costMinor * 2) / 100).toFixed(2)
  const { text } = await world.page()
  expect(text).toContain(`<h1>You earned ${earned} EUR in 30 days, 50.0 % of the revenue.</h1>`)
  expect(text).toContain('<bdi>Nordic &lt;Keys&gt;</bdi>')
})

test('shows the margin of last week beside that of this week', async () => {
  const world = await openWorld()
  const { sku, costMinor } = await world.offer()
  await world.order('1001', [{ sku, unitPriceMinor: costMinor + 1_234 }])
  await world.pass(HOUR)
  world.move(7 * DAY)
  const text = plain((await world.page()).text)
  expect(text).toContain('This week’s margin – nothing was sold')
  expect(text).toContain('Last week’s margin 12.34 EUR')
})

test('says how much to top up, by the money that is free, and which orders that frees', async () => {
  const world = await openWorld({ balanceMinor: 100 })
  const { sku, costMinor, name } = await world.offer()
  await world.order('1001', [{ sku }])
  await world.order('1002', [{ sku, quantity: 2 }])
  await world.pass(2 * HOUR)
  const missing = ((3 * costMinor - 100) / 100).toFixed(2)
  const text = plain((await world.page()).text)
  expect(text).toContain(`Top up at least ${missing} EUR to free 2 orders.`)
  expect(text).toContain(`Missing ${missing} EUR`)
  expect(text).toContain(name)
  expect(plain((await world.page('/overview')).text)).toContain(`Top up at least ${missing} EUR to free 2 orders.`)
  world.sandbox.world.topUp(3 * costMinor)
  await world.pass(2 * HOUR)
  expect(plain((await world.page()).text)).toContain('No order waits for money.')
})

test('names the order whose money is owed back, until the balance shows that it came back', async () => {
  const world = await openWorld()
  const { sku, costMinor } = await world.offer()
  await world.ordering.checkBalance()
  world.sandbox.faults.add({ fault: 'failed-order' })
  await world.order('1001', [{ sku, unitPriceMinor: 9_900 }])
  await world.pass(2 * 60_000)
  const amount = (costMinor / 100).toFixed(2)
  const text = plain((await world.page()).text)
  expect(text).toContain('Owed back to you')
  expect(text).toContain(`Charged ${amount} EUR, then failed.`)
  for (let reading = 0; reading < 4; reading += 1) {
    await world.pass(10 * 60_000)
    await world.ordering.checkBalance()
  }
  expect(plain((await world.page()).text)).toContain('Owed back to you 0.00 EUR')
})

test('saves what it shows as a file that no spreadsheet runs', async () => {
  const world = await openWorld()
  const { sku, costMinor, productId } = await world.offer()
  await world.order('1001', [{ sku, unitPriceMinor: costMinor + 500 }])
  await world.pass(HOUR)
  const day = new Date(dayStart(world.now())).toISOString().slice(0, 10)
  const { text } = await world.page()
  const links = [...text.matchAll(/href="(\/money\.csv[^"]*)"/g)].map(([, link = '']) => link.replaceAll('&amp;', '&'))
  expect(links).toHaveLength(3)
  const file = await world.page(links.at(-1))
  expect(file.headers['content-type']).toContain('text/csv')
  const [head, row] = file.text.split('\r\n')
  expect(head).toContain('from,to,isOver,store,product,sku,name,currency,keys')
  expect(row).toContain(`${productId},${sku}`)
  expect(row).toMatch(/,5\.00$/)
  expect((await world.page(`/money.csv?from=${day}&to=${day}&by=day`)).text.split('\r\n')).toHaveLength(3)
})

test('the audit did not have who saved money as a file', async () => {
  const world = await openWorld()
  await world.page('/money.csv?from=2023-11-01&to=2023-11-30&by=month&group=store')
  const [entry] = (await auditOf(world)).filter(({ action }) => action === 'money.export')
  expect(entry).toMatchObject({
    subject: 'money',
    detail: 'money from 2023-11-01T00:00:00.000Z, to 2023-12-01T00:00:00.000Z, by month and store',
  })
})

test('the page said that it is being summed whenever an order had just come', async () => {
  const world = await openWorld()
  const { sku, costMinor } = await world.offer()
  const shown = async () =>
    (await visit(world.pages.address() ?? '', '/money', { cookie: await signedIn(world, 'viewer') })).text
  await world.page()
  await world.order('1001', [{ sku, unitPriceMinor: costMinor }])
  await world.pass(MINUTE)
  expect(await shown()).not.toContain('Being summed')
  world.move(2 * HOUR)
  expect(await shown()).toContain('Being summed')
})

test('a loss in the file was text that no spreadsheet adds up', async () => {
  const world = await openWorld()
  const { sku, costMinor } = await world.offer()
  const { orderId } = await world.order('1001', [{ sku, unitPriceMinor: costMinor * 2 }])
  await world.pass(HOUR)
  await cancelOrder(world.ordering, orderId, 'shop')
  const { text } = await world.page('/money.csv?by=whole')
  expect(text).toMatch(new RegExp(`,-${(costMinor / 100).toFixed(2)}\\r\\n`))
})

test('names the field of a time that cannot be asked for', async () => {
  const world = await openWorld()
  const { status, text } = await world.page('/money?from=2026-05-01&to=2026-04-01')
  expect(status).toBe(400)
  expect(text).toContain('must not lie after')
})
