import { afterAll, describe, expect, test } from 'vitest'
import { openApi } from '../support/api-world.ts'
import { closeBrowser, expectAccessible, hasBrowser, openPage, signInto, skipText } from '../support/browser.ts'
import { offer } from '../support/console-data.ts'
import { STORE } from '../support/test-app.ts'

afterAll(closeBrowser)

describe.skipIf(!hasBrowser)(`held prices in a browser (${hasBrowser ? 'Chromium' : skipText})`, () => {
  test.each([true, false])('releases a held price, and the store gets it, JavaScript %s', async (hasScript) => {
    const world = await openApi()
    await offer(world, 'a', { name: 'Circuit Kings 25' })
    await world.publish()
    await offer(world, 'a', { name: 'Circuit Kings 25', costMinor: 3_000 })
    await world.ask('POST', `/stores/${STORE}/listings/SKU-a/retry`)
    await world.publish()
    const page = await openPage({ hasScript })
    await signInto(page, world, 'operator')
    await page.getByRole('link', { name: /^Held prices/ }).click()
    await page.getByText('Sales at 36.00 EUR leave 6.00 EUR a unit over the cost.').waitFor()
    if (hasScript) await expectAccessible(page)
    await page.getByRole('link', { name: 'Circuit Kings 25' }).click()
    await page.getByRole('heading', { name: 'How the price comes about' }).waitFor()
    if (hasScript) await expectAccessible(page)
    await page.goBack()
    await page.getByLabel('Reason, for the audit log').first().fill('the supplier confirmed it')
    await page.getByRole('button', { name: 'Release 36.00 EUR' }).click()
    await page.getByRole('status').getByText('gets the price 36.00').waitFor()
    await page.getByText('No price waits for a person.').waitFor()
    await world.publish()
    expect(world.shop.listings().get('SKU-a')).toMatchObject({ price: '36.00' })
    if (hasScript) await expectAccessible(page)
  })

  test('the pages of listings, syncs, discrepancies and the balance fit a phone, and axe-core finds nothing', async () => {
    const world = await openApi()
    await offer(world, 'a', { name: 'Circuit Kings 25' })
    await world.publish()
    for (const look of [{ colours: 'dark' }, { width: 390 }] as const) {
      const page = await openPage(look)
      await signInto(page, world, 'admin')
      for (const path of [
        ...['/listings', `/listings/${STORE}/SKU-a`, '/held-prices', '/dead-letters', '/syncs', '/syncs/dry-run'],
        ...['/deliveries', '/deliveries/refused', '/discrepancies', '/balance'],
      ]) {
        await page.goto(`${world.pages.address()}${path}`)
        await page.evaluate("for (const one of document.querySelectorAll('details')) one.open = true")
        await expectAccessible(page)
        const width = await page.evaluate('document.documentElement.scrollWidth')
        expect(width, `${path}: nothing is wider than the window`).toBe('width' in look ? look.width : 1360)
      }
    }
  })
})
