/** Several things at once, in a browser: what is selected, and how the lists look. */
import { afterAll, describe, expect, test } from 'vitest'
import { closeBrowser, expectAccessible, hasBrowser, openPage, signInto, skipText } from '../support/browser.ts'
import { openAfterOutage, openDead, openHeld, openReviews } from '../support/several-world.ts'

afterAll(closeBrowser)

const { SCREENSHOTS } = process.env

describe.skipIf(!hasBrowser)(`several things at once, in a browser (${hasBrowser ? 'Chromium' : skipText})`, () => {
  test('a list from which a person selects keeps what is selected, and a link selects none', async () => {
    const world = await openAfterOutage(2)
    const page = await openPage()
    await signInto(page, world, 'operator')
    await page.goto(`${world.pages.address()}/waiting?cause=outage`)
    await page.getByRole('link', { name: 'none', exact: true }).click()
    const boxes = page.getByRole('checkbox')
    expect(await boxes.evaluateAll((all) => all.map((one) => one.matches(':checked')))).toEqual([false, false])
    await boxes.first().check()
    await page.getByLabel('Reason, for the audit log').fill('one of them')
    await page.getByRole('button', { name: 'Retry what is selected' }).click()
    await page.getByRole('heading', { name: '1 of 1 retried' }).waitFor()
  })

  test('fits a phone and a dark desk, and axe-core finds nothing', async () => {
    const worlds = {
      '/waiting?cause=outage': await openAfterOutage(3),
      '/held-prices': await openHeld(['a', 'b', 'c', 'x'.repeat(150)]),
      '/dead-letters': await openDead(2),
      '/reviews': await openReviews(2),
    }
    for (const look of [{ colours: 'dark' }, { width: 390 }] as const) {
      for (const [to, world] of Object.entries(worlds)) {
        const page = await openPage(look)
        await signInto(page, world, 'operator')
        await page.goto(`${world.pages.address()}${to}`)
        await page.evaluate("for (const one of document.querySelectorAll('details')) one.open = true")
        await expectAccessible(page, to)
        const width = await page.evaluate('document.documentElement.scrollWidth')
        expect(width, `${to} is wider than the window`).toBe('width' in look ? look.width : 1360)
        if (SCREENSHOTS) {
          const name = `several${to.replaceAll(/\W+/g, '-')}-${Object.values(look)[0]}.png`
          await page.screenshot({ path: `${SCREENSHOTS}/${name}`, fullPage: true })
        }
      }
    }
    if (SCREENSHOTS) {
      const page = await openPage()
      const world = worlds['/held-prices']
      await signInto(page, world, 'operator')
      await page.goto(`${world.pages.address()}/held-prices`)
      await page.getByLabel('Reason, for the audit log').first().fill('because')
      await world.ask('POST', '/stores/demo-ab12cd34/listings/SKU-b/ignore', { body: { reason: 'x' } })
      await page.getByRole('button', { name: 'Release what is selected' }).click()
      await page.getByRole('heading', { name: 'Each of them' }).waitFor()
      await page.screenshot({ path: `${SCREENSHOTS}/several-result.png`, fullPage: true })
    }
  })
})
