/** Every page of the console in a browser, by the table of routes: light and dark, on a desk and on a phone, with JavaScript and without. */
import type { Page } from 'playwright-core'
import { afterAll, describe, expect, test } from 'vitest'
import { consolePages } from '../../src/console/pages.ts'
import { routesOf } from '../../src/console/router.ts'
import { closeBrowser, expectAccessible, hasBrowser, openPage, signInto, skipText } from '../support/browser.ts'
import { signedIn, visit } from '../support/console-client.ts'
import { openDay } from '../support/console-day.ts'
import { walkConsole } from '../support/console-walk.ts'

afterAll(closeBrowser)

/** A day, and two addresses of each page that it leads to: with one id and another, or with a filter. */
async function openPages() {
  const world = await openDay()
  const address = world.pages.address() ?? ''
  const cookie = await signedIn(world, 'admin')
  const stops = await walkConsole({
    routes: routesOf(consolePages),
    searches: ['nothing-has-this-name'],
    read: async ({ to }) => (await visit(address, to, { cookie })).text,
  })
  const addresses = consolePages.flatMap((page) =>
    stops
      .filter(({ route }) => route?.page === page && route.part === undefined)
      .map(({ to }) => to)
      .filter((_, index, all) => index === 0 || index === all.length - 1),
  )
  return { world, address, addresses }
}

const overflow = (page: Page) => page.evaluate('document.documentElement.scrollWidth - innerWidth') as Promise<number>

/** A hundred pages, each searched by axe-core: minutes beside other tests. */
const WALK_MS = 600_000

describe.skipIf(!hasBrowser)(`every page in a browser (${hasBrowser ? 'Chromium' : skipText})`, () => {
  test.each([
    { colours: 'light', width: 1360 },
    { colours: 'dark', width: 1360 },
    { colours: 'light', width: 390 },
    { colours: 'light', width: 320 },
  ] as const)(
    'is accessible with every action open, and no wider than its window: $colours, $width pixels',
    async ({ colours, width }) => {
      const { world, address, addresses } = await openPages()
      const page = await openPage({ colours, width })
      await signInto(page, world, 'admin')
      const wide: string[] = []
      for (const to of addresses) {
        const answer = await page.goto(`${address}${to}`)
        expect(answer?.status(), to).toBe(200)
        await page.evaluate("for (const one of document.querySelectorAll('details')) one.open = true")
        if ((await overflow(page)) > 0) wide.push(to)
        await expectAccessible(page, to)
      }
      expect(wide).toEqual([])
    },
    WALK_MS,
  )

  test(
    'says the same without JavaScript',
    async () => {
      const { world, address, addresses } = await openPages()
      const page = await openPage({ hasScript: false })
      await signInto(page, world, 'admin')
      for (const to of addresses) {
        const answer = await page.goto(`${address}${to}`)
        expect(answer?.status(), to).toBe(200)
        expect(await page.locator('h1').first().isVisible(), to).toBe(true)
        expect(await page.locator('main').innerText(), to).not.toBe('')
      }
    },
    WALK_MS,
  )
})
