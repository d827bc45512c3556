/** Every page of the console in a browser, by the table of routes: light and dark, on a desk and on a phone, with JavaScript and without. */
import type { Page } from 'playwright-core'
import { afterAll, describe, expect, test } from 'vitest'
import { consolePages } from '../../src/console/pages.ts'
import { routesOf } from '../../src/console/router.ts'
import { type ApiWorld, OTHER_STORE } from '../support/api-world.ts'
import { accessibilityFaults, closeBrowser, hasBrowser, openPage, signInto, skipText } from '../support/browser.ts'
import { signedIn, visit } from '../support/console-client.ts'
import { openDay } from '../support/console-day.ts'
import { walkConsole } from '../support/console-walk.ts'
import { tracedDatabase } from '../support/database.ts'
import { putStrangeTexts, strangeTexts } from '../support/strange-texts.ts'
import { STORE } from '../support/test-app.ts'

afterAll(closeBrowser)

/** A day, and two addresses of each page that it leads to: with one id and another, or with a filter. */
async function openPages(world: ApiWorld) {
  const address = world.pages.address() ?? ''
  const cookie = await signedIn(world, 'admin')
  const stops = await walkConsole({
    routes: routesOf(consolePages),
    searches: ['nothing-has-this-name'],
    read: async ({ to }) => (await visit(address, to, { cookie })).text,
  })
  const addresses = consolePages.flatMap((page) =>
    stops
      .filter(({ route }) => route?.page === page && route.part === undefined && route.file === undefined)
      .map(({ to }) => to)
      .filter((_, index, all) => index === 0 || index === all.length - 1),
  )
  return { world, address, addresses }
}

/** A day whose texts of others are all strange. */
async function openStrangeDay() {
  const { database, connection } = tracedDatabase()
  const [name = '', other = ''] = strangeTexts.map((text) => text.slice(0, 100))
  const world = await openDay({ database, storeNames: { [STORE]: name, [OTHER_STORE]: other } })
  const pages = await openPages(world)
  putStrangeTexts(connection)
  return pages
}

const overflow = (page: Page) => page.evaluate('document.documentElement.scrollWidth - innerWidth') as Promise<number>

interface Look {
  width: number
  colours?: 'light' | 'dark'
  /** Which rules of axe-core are checked (default: all). */
  rules?: string[]
}

/** A desk by day and by night, a phone, a desk at 200 %, and the narrowest window: what is a matter of width alone is checked at each. */
const LOOKS: Look[] = [
  { width: 1360 },
  { width: 1360, colours: 'dark' },
  { width: 390 },
  { width: 680, rules: ['target-size', 'color-contrast'] },
  { width: 320, rules: ['target-size'] },
]

/** Opens each page with all its actions, and looks at it. What is wider than the window, and what axe-core finds, fails the test in the end. */
async function expectAllFit(page: Page, address: string, addresses: readonly string[], looks: readonly Look[]) {
  const faults: object[] = []
  for (const to of addresses) {
    const answer = await page.goto(`${address}${to}`)
    expect(answer?.status(), to).toBe(200)
    for (const { width, colours = 'light', rules } of looks) {
      await page.setViewportSize({ width, height: 900 })
      await page.emulateMedia({ colorScheme: colours })
      await page.evaluate("for (const one of document.querySelectorAll('details')) one.open = true")
      const tooWide = await overflow(page)
      if (tooWide > 0) faults.push({ to, width, tooWide })
      for (const fault of await accessibilityFaults(page, rules)) faults.push({ to, width, colours, ...fault })
    }
  }
  expect(faults).toEqual([])
}

/** A hundred pages, each searched by axe-core: minutes beside other tests. */
const WALK_MS = 600_000

describe.skipIf(!hasBrowser)(`every page in a browser (${hasBrowser ? 'Chromium' : skipText})`, () => {
  test(
    'is accessible with every action open, and no wider than its window',
    async () => {
      const { world, address, addresses } = await openPages(await openDay())
      const page = await openPage()
      await signInto(page, world, 'admin')
      await expectAllFit(page, address, addresses, LOOKS)
    },
    WALK_MS,
  )

  test(
    'does not scroll sideways for words of 300 letters, emoji and names from right to left',
    async () => {
      const { world, address, addresses } = await openStrangeDay()
      const page = await openPage()
      await signInto(page, world, 'admin')
      await expectAllFit(page, address, addresses, [
        { width: 1360 },
        ...[680, 390, 320].map((width) => ({ width, rules: ['target-size'] })),
      ])
    },
    WALK_MS,
  )

  test.each(['لعبة 2024', '\u202elive\u2066 2024', 'משחק, Deluxe'])(
    'has the number of units before the name %j, and the rest behind it',
    async (name) => {
      const { database, connection } = tracedDatabase()
      const world = await openDay({ database })
      connection.prepare('update offers set name = ?').run(name)
      connection.prepare('update listings set known_name = ?').run(name)
      const page = await openPage()
      await signInto(page, world, 'viewer')
      await page.goto(`${world.pages.address()}/orders`)
      const places = (await page.evaluate(`(() => {
        const cell = [...document.querySelectorAll('tbody td')].find((one) => one.querySelector('bdi'))
        const of = (node) => {
          const range = document.createRange()
          range.selectNode(node)
          return range.getBoundingClientRect().toJSON()
        }
        return { units: of(cell.childNodes[0]), name: of(cell.querySelector('bdi')), text: cell.textContent }
      })()`)) as { units: { right: number }; name: { left: number }; text: string }
      expect(places.units.right).toBeLessThanOrEqual(places.name.left + 1)
      expect(places.text).not.toMatch(/[\u202a-\u202e\u2066-\u2069]/)
    },
  )

  test(
    'says the same without JavaScript',
    async () => {
      const { world, address, addresses } = await openPages(await openDay())
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
