import { afterAll, describe, expect, test } from 'vitest'
import { audited } from '../../src/storage/evidence.ts'
import { openApi } from '../support/api-world.ts'
import { closeBrowser, expectAccessible, hasBrowser, openPage, signInto, skipText } from '../support/browser.ts'

afterAll(closeBrowser)

const DAY = 86_400_000

/** Two orders, and 120 entries in the audit of yesterday. */
async function openMonths() {
  const world = await openApi()
  const [offer] = await world.offers()
  await world.order('1001', [{ sku: offer?.sku ?? '' }])
  world.move(40 * DAY)
  for (let entry = 0; entry < 120; entry += 1) {
    await world.db.commit([audited(world.access, 'anna', 'freeze', 'buying', `because of ${entry}`)])
  }
  world.move(DAY)
  await world.order('1002', [{ sku: offer?.sku ?? '' }])
  return world
}

describe.skipIf(!hasBrowser)(`lists in a browser (${hasBrowser ? 'Chromium' : skipText})`, () => {
  test.each([true, false])('go on and back in what a colleague did yesterday, JavaScript %s', async (hasScript) => {
    const world = await openMonths()
    const page = await openPage({ hasScript })
    await signInto(page, world, 'viewer')
    await page.getByRole('link', { name: 'Audit log' }).click()
    await page.getByRole('link', { name: 'Yesterday: anna' }).click()
    await page.getByText('120 entries', { exact: true }).waitFor()
    expect(await page.getByLabel('Actor').inputValue()).toBe('anna')
    const first = await page.locator('tbody').innerText()
    await page.getByRole('link', { name: 'Next page' }).click()
    await page.getByRole('link', { name: 'Previous page' }).click()
    await expect.poll(() => page.locator('tbody').innerText()).toBe(first)
  })

  test.each([
    ['light', 1360],
    ['dark', 1360],
    ['light', 390],
  ] as const)('have nothing that axe finds, and scroll no page sideways: %s, %i px', async (colours, width) => {
    const world = await openMonths()
    const page = await openPage({ colours, width })
    await signInto(page, world, 'operator')
    for (const path of ['/orders', '/audit', '/audit?actor=anna&from=2020-01-01', '/deliveries', '/syncs']) {
      await page.goto(`${world.pages.address()}${path}`)
      expect(await page.evaluate('document.documentElement.scrollWidth'), path).toBeLessThanOrEqual(width)
      await expectAccessible(page)
    }
  })
})
