/** The way of a customer in a browser: from the mail that a store of each kind writes, by the link in it, to the keys. */
import { afterAll, describe, expect, test } from 'vitest'
import { closeBrowser, expectAccessible, hasBrowser, openPage, skipText } from '../support/browser.ts'
import { openEveryStore } from '../support/every-store.ts'
import { orderOf } from '../support/references.ts'

afterAll(closeBrowser)

const PHONE = 390
const BYTES_MAX = 30 * 1024

describe.skipIf(!hasBrowser)(`the way from a mail to the keys (${hasBrowser ? 'Chromium' : skipText})`, () => {
  test.each([{ hasScript: true }, { hasScript: false }])(
    'ends at the keys that the supplier issued, byte for byte, in a store of each kind, on a phone: JavaScript $hasScript',
    { timeout: 240_000 },
    async ({ hasScript }) => {
      const { stores, sandbox, buy } = await openEveryStore()
      for (const [kind, store] of stores) {
        const reference = await buy(store)
        const { keysIssued } = sandbox.world.report()
        const issued = Object.entries(keysIssued).flatMap(([own, keys]) => (orderOf(own) === reference ? keys : []))
        const page = await openPage({ width: PHONE, hasScript })
        await page.setContent(store.mails(reference).at(-1) ?? '')
        const sizes: Promise<number>[] = []
        page.on('response', (answer) => sizes.push(answer.body().then((body) => body.length)))
        await page.locator('a').last().click()
        const buttons = page.getByRole('button', { name: /^Show the/ })
        const lines = await buttons.count()
        expect(lines, kind).toBe(2)
        const seen: string[] = []
        for (let line = 0; line < lines; line += 1) {
          // After a click the keys of that line are open, and those of the others wait for their own.
          await page
            .locator('form[method=post] button')
            .nth(line === 0 ? 0 : -1)
            .click()
          seen.push(...(await page.locator('code').allTextContents()))
        }
        expect(seen.toSorted(), kind).toEqual(issued.toSorted())
        const overflow = await page.evaluate('document.documentElement.scrollWidth - innerWidth')
        expect(overflow, kind).toBeLessThanOrEqual(0)
        if (hasScript) await expectAccessible(page, kind)
        const weights = await Promise.all(sizes.slice(0, 3))
        expect(
          weights.reduce((sum, one) => sum + one, 0),
          kind,
        ).toBeLessThanOrEqual(BYTES_MAX)
      }
    },
  )
})
