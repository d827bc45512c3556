import { afterAll, describe, expect, test } from 'vitest'
import { openApi } from '../support/api-world.ts'
import { closeBrowser, expectAccessible, hasBrowser, openPage, signInto, skipText } from '../support/browser.ts'

afterAll(closeBrowser)

/** A day of orders, and one purchase that waits for a person. */
async function openDay() {
  const world = await openApi({ balanceMinor: 2_500_000 })
  const offers = await world.offers()
  for (let hour = 0; hour < 24; hour += 1) {
    for (let count = 0; count < (hour * 7) % 5; count += 1) {
      const offer = offers[(hour + count) % offers.length]
      if (offer) await world.order(`${hour}-${count}`, [{ sku: offer.sku, quantity: 1 + (count % 2) }])
    }
    await world.pass(3_600_000, 1_200_000)
    if (hour === 17) for (let count = 0; count < 3; count += 1) world.runtime.inbox.countRefused('mismatch')
    await world.runtime.hourly.write()
  }
  return world
}

describe.skipIf(!hasBrowser)(`the overview in a browser (${hasBrowser ? 'Chromium' : skipText})`, () => {
  test.each([true, false])('freezes and unfreezes buying, with its reason, JavaScript %s', async (hasScript) => {
    const world = await openApi()
    const page = await openPage({ hasScript })
    await signInto(page, world, 'operator')
    await page.getByText('Freeze buying…').click()
    await page.getByLabel('Reason, for the audit log').fill('checking prices')
    await page.getByRole('button', { name: 'Freeze buying now' }).click()
    await page.getByRole('status').getByText('Buying is frozen').waitFor()
    await expect.poll(() => page.locator('#health h1').innerText()).toContain('Buying is frozen.')
    await expect.poll(() => page.locator('.buying').innerText()).toContain('Buying is frozen')
    await page.getByText('Unfreeze…').click()
    await expect.poll(() => page.getByText('“checking prices”, by mira').count()).toBe(1)
    await page.getByRole('button', { name: 'Lift the chosen causes' }).click()
    await page.getByRole('status').getByText('Buying is on').waitFor()
    await page.reload()
    expect(await page.getByRole('status').count(), 'a notice is said once').toBe(0)
    if (hasScript) await expectAccessible(page)
  })

  test('says a fault of a form beside its field, and keeps what was typed', async () => {
    const world = await openApi()
    const page = await openPage()
    await signInto(page, world, 'operator')
    await page.getByText('Freeze buying…').click()
    const field = page.getByLabel('Reason, for the audit log')
    // More than the audit log keeps; a person cannot type it.
    await field.evaluate((input) => input.removeAttribute('maxlength'))
    await field.fill('x'.repeat(2_000))
    await page.getByRole('button', { name: 'Freeze buying now' }).click()
    await page.getByText('It is said beside the field.').waitFor()
    expect(await field.getAttribute('aria-invalid')).toBe('true')
    expect(await field.inputValue()).toHaveLength(2_000)
    await expectAccessible(page)
  })

  test('shows a day to all people, in the light, in the dark and on a phone, and axe-core finds nothing', async () => {
    const world = await openDay()
    for (const look of [{ colours: 'light' }, { colours: 'dark' }, { width: 390 }] as const) {
      const page = await openPage(look)
      await signInto(page, world, 'viewer')
      await expectAccessible(page)
      const { SCREENSHOTS } = process.env
      if (SCREENSHOTS) {
        await page.screenshot({ path: `${SCREENSHOTS}/overview-${Object.values(look)[0]}.png`, fullPage: true })
      }
      const width = await page.evaluate('document.documentElement.scrollWidth')
      expect(width, 'nothing is wider than the window').toBe('width' in look ? look.width : 1360)
      for (const period of ['Week', 'Month']) {
        await page.getByRole('link', { name: period, exact: true }).click()
        await page.getByRole('heading', { name: period === 'Week' ? 'Last 7 days' : 'Last 30 days' }).waitFor()
      }
      await expectAccessible(page)
    }
  })

  test('counts a new order while it is open, and says so when the service is gone', async () => {
    const world = await openApi()
    const offer = await world.offer()
    const page = await openPage()
    await signInto(page, world, 'viewer')
    await expect.poll(() => page.locator('#tide').innerText()).toContain('0 orders')
    await page.evaluate("document.getElementById('tide').dataset.kept = 'yes'")
    await world.order('1001', [{ sku: offer.sku }])
    await world.runtime.hourly.write()
    world.move(3_000)
    await page.locator('#tide').getByText('1 order', { exact: true }).waitFor({ timeout: 20_000 })
    expect(await page.locator('#tide').getAttribute('data-kept'), 'the page itself was not loaded again').toBe('yes')
    await world.pages.close()
    await page.getByText(/This page is \d+ seconds old/).waitFor({ timeout: 12_000 })
    expect(await page.locator('#health').isVisible()).toBe(false)
  })
})
