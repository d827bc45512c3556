import { afterAll, describe, expect, test } from 'vitest'
import { type ApiWorld, openApi } from '../support/api-world.ts'
import { closeBrowser, expectAccessible, hasBrowser, openPage, signInto, skipText } from '../support/browser.ts'
import { STORE } from '../support/test-app.ts'

afterAll(closeBrowser)

const MINUTE = 60_000

/** Orders as a bad morning leaves them: a review, a failure, a lost answer, a held line and what went well. */
async function openMorning() {
  const world = await openApi({ balanceMinor: 2_500_000 })
  const offers = await world.offers()
  const sku = (index: number) => offers[index % offers.length]?.sku ?? ''
  const { faults } = world.sandbox
  faults.add({ fault: 'partial-keys', first: 2, delayMs: 20 * 60 * MINUTE })
  await world.order('10471', [{ sku: sku(1), quantity: 3 }])
  await world.pass(120 * MINUTE)
  for (let count = 0; count < 6; count += 1) {
    await world.order(`1047${count + 2}`, [{ sku: sku(count), quantity: 1 + (count % 2) }])
    await world.pass(3 * MINUTE)
  }
  faults.add({ fault: 'failed-order' })
  await world.order('10480', [{ sku: sku(2) }])
  await world.pass(30 * MINUTE)
  faults.add({ fault: 'answer-lost' })
  await world.order('10481', [{ sku: sku(0), quantity: 2 }])
  await world.pass(10 * MINUTE)
  await world.order('10482', [
    { sku: sku(0), quantity: 2 },
    { sku: sku(3), unitPriceMinor: 100 },
  ])
  await world.pass(11 * MINUTE)
  return world
}

const review = async ({ ask }: ApiWorld) => String((await ask('GET', '/purchases?state=review')).body.data.items[0]?.id)

describe.skipIf(!hasBrowser)(`orders and reviews in a browser (${hasBrowser ? 'Chromium' : skipText})`, () => {
  test.each([true, false])('find a stuck order and retry it, JavaScript %s', async (hasScript) => {
    const world = await openMorning()
    const page = await openPage({ hasScript })
    await signInto(page, world, 'operator')
    await page.getByRole('link', { name: 'Orders', exact: true }).click()
    await page.getByRole('link', { name: 'Failed', exact: true }).click()
    await expect.poll(() => page.locator('tbody tr').count()).toBe(1)
    await page.getByLabel('Search').fill('10480')
    await page.getByRole('button', { name: 'Show' }).click()
    await page.getByRole('link', { name: '10480' }).click()
    await page.getByRole('heading', { name: 'Order 10480', exact: true }).waitFor()
    await expect.poll(() => page.getByRole('heading', { name: 'The supplier did not deliver' }).count()).toBe(1)
    await page.getByText('Retry…').click()
    await page.getByRole('button', { name: /^Buy 1 × .* again$/ }).click()
    await page.getByRole('status').getByText('Retried').waitFor()
    await expect.poll(() => page.getByRole('heading', { name: 'mira had a part bought again' }).count()).toBe(1)
    await world.pass(MINUTE)
    if (hasScript) await page.locator('#answer').getByText('The key is with the store.').waitFor({ timeout: 20_000 })
    await page.reload()
    await expect.poll(() => page.locator('#answer').innerText()).toContain('fulfilled')
    if (hasScript) await expectAccessible(page)
  })

  test.each([true, false])('reveal a key and see the audit entry, JavaScript %s', async (hasScript) => {
    const world = await openMorning()
    const page = await openPage({ hasScript })
    await signInto(page, world, 'admin')
    await page.goto(`${world.pages.address()}/orders/${STORE}/10481`)
    const [key = ''] = world.shop.keys().get('10481/1') ?? []
    expect(await page.content()).not.toContain(key)
    await page.getByText('Reveal the 2 keys…').click()
    await page.getByLabel('Reason, for the audit log').fill('the customer lost the mail')
    await page.getByRole('button', { name: 'Reveal 2 keys' }).click()
    await page.getByText(key, { exact: true }).waitFor()
    if (hasScript) await expectAccessible(page)
    await page.getByRole('link', { name: 'Back to the order, and mask them' }).click()
    expect(await page.content()).not.toContain(key)
    await expect.poll(() => page.getByText('2 keys of line 1: the customer lost the mail.').count()).toBe(1)
  })

  test.each([true, false])('decide a review, JavaScript %s', async (hasScript) => {
    const world = await openMorning()
    const page = await openPage({ hasScript })
    await signInto(page, world, 'operator')
    await page.getByRole('link', { name: /^Reviews/ }).click()
    await page.locator('tbody a').first().click()
    await page.getByRole('heading', { name: 'Order 10471 is 1 key short' }).waitFor()
    if (hasScript) await page.getByText('They were read for this page.').waitFor()
    await page.getByRole('link', { name: /^Read the orders at the supplier/ }).click()
    expect(await page.locator('input[name=decision]:checked').count(), 'nothing is chosen before').toBe(0)
    if (hasScript) await expectAccessible(page)
    await page.getByLabel('Hand over the keys that came').check()
    await page.getByLabel('Reason, for the audit log').fill('the customer takes two')
    await page.getByRole('button', { name: 'Carry out the chosen decision' }).click()
    await page.getByRole('status').getByText('Decided: hand over what came').waitFor()
    await world.pass(MINUTE)
    await page.reload()
    await expect.poll(() => page.locator('#answer').innerText()).toContain('2 of 3')
    expect(world.shop.keys().get('10471/1')).toHaveLength(2)
  })

  test('show themselves in the light, in the dark and on a phone, and axe-core finds nothing', async () => {
    const world = await openMorning()
    const history = (await world.ask('GET', '/orders/10481/history')).body.data as never as {
      lines: { keys: { purchaseId: string }[] }[]
    }
    const id = history.lines[0]?.keys[0]?.purchaseId
    const note = 'the game says that the key was redeemed before'
    for (const ordinal of [1, 2]) await world.ask('POST', `/purchases/${id}/claims`, { body: { ordinal, note } })
    const refused = await world.ask('POST', '/claims/1/refuse', { body: { reason: 'the customer redeemed it' } })
    expect(refused.status).toBe(200)
    const paths = {
      orders: '/orders',
      'order-held': `/orders/${STORE}/10482`,
      'order-lost': `/orders/${STORE}/10481`,
      'order-failed': `/orders/${STORE}/10480`,
      reviews: '/reviews',
      review: `/reviews/${await review(world)}?read=true`,
      purchases: '/purchases',
      empty: '/orders?q=nothing',
    }
    for (const look of [{ colours: 'light' }, { colours: 'dark' }, { width: 390 }] as const) {
      const page = await openPage(look)
      await signInto(page, world, 'admin')
      for (const [name, path] of Object.entries(paths)) {
        await page.goto(`${world.pages.address()}${path}`)
        await expectAccessible(page)
        const width = await page.evaluate('document.documentElement.scrollWidth')
        expect(width, `${path}: nothing is wider than the window`).toBe('width' in look ? look.width : 1360)
        const { SCREENSHOTS } = process.env
        if (SCREENSHOTS)
          await page.screenshot({ path: `${SCREENSHOTS}/${name}-${Object.values(look)[0]}.png`, fullPage: true })
      }
    }
  })
})
