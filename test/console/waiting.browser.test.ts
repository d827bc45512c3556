/** The customers who wait, in a browser: on the first page and on their own, in the dark and on a phone. */
import { afterAll, describe, expect, test } from 'vitest'
import { closeBrowser, expectAccessible, hasBrowser, openPage, signInto, skipText } from '../support/browser.ts'
import { STORE } from '../support/test-app.ts'
import { openWaiting } from '../support/waiting-world.ts'

afterAll(closeBrowser)

const { SCREENSHOTS } = process.env

describe.skipIf(!hasBrowser)(`customers who wait, in a browser (${hasBrowser ? 'Chromium' : skipText})`, () => {
  test('are on the first page and on one of their own, and axe-core finds nothing', async () => {
    const world = await openWaiting()
    const address = world.pages.address() ?? ''
    for (const look of [{ colours: 'dark' }, { width: 390 }] as const) {
      const page = await openPage(look)
      await signInto(page, world, 'operator')
      const orders = ['1001-review', '1002-fine', '1003-known', '1007-stock', '1008-ceiling'].map(
        (name) => `/orders/${STORE}/${name}`,
      )
      const lists = ['/overview', '/waiting', '/waiting?cause=balance', '/waiting?cause=frozen']
      for (const to of [...lists, ...orders]) {
        await page.goto(`${address}${to}`)
        await expectAccessible(page, to)
        const width = await page.evaluate('document.documentElement.scrollWidth')
        expect(width, `${to} is wider than the window`).toBe('width' in look ? look.width : 1360)
        if (SCREENSHOTS) {
          const name = `${to.replaceAll(/\W+/g, '-')}-${Object.values(look)[0]}.png`
          await page.screenshot({ path: `${SCREENSHOTS}/${name}`, fullPage: true })
        }
      }
    }
  })

  test.each([true, false])(
    'a row has one button, which acts at once and comes back, JavaScript %s',
    async (hasScript) => {
      const world = await openWaiting()
      const page = await openPage({ hasScript, width: 390 })
      await signInto(page, world, 'operator')
      await page.getByRole('link', { name: /^All 13$/ }).click()
      await page.getByRole('button', { name: 'Send again of order 1012-away' }).click()
      await page.getByRole('status').getByText('Queued').waitFor()
      expect(new URL(page.url()).pathname).toBe('/waiting')
      await page.getByRole('link', { name: 'Balance 1' }).click()
      expect(await page.locator('.queue tbody tr').count()).toBe(1)
      await page.getByRole('link', { name: 'Top up… of order 1009-balance' }).click()
      expect(new URL(page.url()).pathname).toBe('/balance')
    },
  )
})
