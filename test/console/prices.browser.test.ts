import { afterAll, describe, expect, test } from 'vitest'
import { openApi } from '../support/api-world.ts'
import { closeBrowser, expectAccessible, hasBrowser, openPage, signInto, skipText } from '../support/browser.ts'
import { offer } from '../support/console-data.ts'

afterAll(closeBrowser)

describe.skipIf(!hasBrowser)(`prices in a browser (${hasBrowser ? 'Chromium' : skipText})`, () => {
  test.each([{}, { width: 390 }])('what is typed is previewed at once, then applied and undone: %j', async (look) => {
    const world = await openApi({ home: 'database' })
    await offer(world, 'a', { name: 'Sentrybird Total, 10 devices, 2 years' })
    await world.publish()
    const page = await openPage(look)
    await signInto(page, world, 'admin')
    await page.goto(`${world.pages.address()}/prices`)
    const markup = page.getByLabel('Everything else adds, in percent')
    await markup.fill('1,250')
    await page.getByText('A percentage such as "12.5", without a sign').waitFor()
    await markup.fill('85')
    await page.getByText('held +54 %').waitFor()
    expect(await page.getByRole('button', { name: /^Apply/ }).count(), 'of a sample').toBe(0)
    await markup.press('Enter')
    await page.getByRole('heading', { name: 'With these rules 1 price changes, and 1 of them is held.' }).waitFor()
    await page.evaluate("for (const one of document.querySelectorAll('details')) one.open = true")
    await expectAccessible(page)
    expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(look.width ?? 1360)
    await page.getByLabel('Reason, for the audit log').fill('spring sale')
    await page.getByRole('button', { name: 'Apply 1 change' }).click()
    await page.getByRole('button', { name: 'Undo' }).click()
    await page.getByRole('status').getByText('The rules before are in force again.').waitFor()
    expect(world.inForce().stores[0]?.pricing.markup.percent).toBe('20')
  })
})
