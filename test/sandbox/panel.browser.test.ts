import { afterAll, describe, expect, test } from 'vitest'
import { openApi } from '../support/api-world.ts'
import { closeBrowser, expectAccessible, hasBrowser, openPage, signInto, skipText } from '../support/browser.ts'

afterAll(closeBrowser)

describe.skipIf(!hasBrowser)(`the sandbox in a browser (${hasBrowser ? 'Chromium' : skipText})`, () => {
  test.each([true, false])('is broken by a person, who watches it heal, JavaScript %s', async (hasScript) => {
    const world = await openApi()
    await world.runtime.syncs.finish('test')
    const page = await openPage({ hasScript })
    await signInto(page, world, 'operator')
    await page.getByRole('link', { name: 'Sandbox' }).click()
    await page.getByRole('button', { name: 'Lose the answer' }).click()
    await page.getByRole('status').getByText('it never pays twice').waitFor()
    await expect.poll(() => page.locator('#now').innerText()).toContain('Lose the answer: next purchase')
    await page.getByRole('button', { name: 'Order now' }).click()
    await page.getByRole('status').getByText('The customer has ordered D-0001.').waitFor()
    const now = async (text: string) => {
      if (!hasScript) await page.goto(page.url())
      await page.locator('#now').getByText(text).first().waitFor({ timeout: 20_000 })
    }
    await world.settle()
    await now('No fault is set')
    await now('1 open.')
    if (hasScript) await expectAccessible(page)
    await world.pass(600_000)
    await now('No order is open')
    await now('completed')
    await expect.poll(() => page.locator('#ledger').innerText()).toContain('balanced to the cent')
    world.expectLedger({ charges: 1, keys: world.shop.keys().get('D-0001/1')?.length ?? 0 })
    await page.locator('#now').getByRole('link', { name: 'D-0001' }).click()
    await page.getByRole('cell', { name: 'fulfilled' }).first().waitFor()
    if (hasScript) await expectAccessible(page)
  })

  test('fits a phone, with what does not scrolled by the keyboard too', async () => {
    const world = await openApi()
    await world.offers()
    await world.buy('1001')
    await world.pass(600_000)
    const page = await openPage({ width: 390 })
    await page.goto(new URL(world.sandbox.baseUrl).origin)
    await expectAccessible(page)
    expect(await page.evaluate('document.documentElement.scrollWidth')).toBeLessThanOrEqual(390)
  })
})
