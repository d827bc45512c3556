/** Pictures of every page after a busy day, in the light, in the dark and on a phone: `npm run screenshots`. */
import { mkdirSync } from 'node:fs'
import path from 'node:path'
import type { Page } from 'playwright-core'
import { afterAll, describe, expect, test } from 'vitest'
import { consolePages } from '../../src/console/pages.ts'
import { closeBrowser, expectAccessible, hasBrowser, openPage, signInto, skipText } from '../support/browser.ts'
import { type BusyDay, openBusyDay } from '../support/busy-day.ts'
import { STORE } from '../support/test-app.ts'

afterAll(closeBrowser)

/** Set by `npm run screenshots`. */
const folder = process.env.SCREENSHOTS ?? ''
const LOOKS = { light: {}, dark: { colours: 'dark' }, phone: { width: 390 } } as const

/** Where each page is: one whose path varies is found by a link of another page. */
async function addressesIn(page: Page, origin: string): Promise<Map<string, string>> {
  const fixed = consolePages.filter(({ path: at }) => !at.includes(':'))
  const found = new Map(fixed.map(({ path: at }) => [at, at]))
  for (const { path: at } of fixed) {
    await page.goto(`${origin}${at}`)
    const links = await page.$$eval('main a', (all) =>
      all.map((link) => link.getAttribute('href')?.replace(/#.*/, '') ?? ''),
    )
    for (const { path: wanted } of consolePages) {
      const pattern = new RegExp(`^${wanted.replaceAll(/:\w+/g, '[^/?]+')}$`)
      const link = links.find((one) => pattern.test(one) && !found.has(one))
      if (link !== undefined && !found.has(wanted)) found.set(wanted, link)
    }
  }
  return found
}

/** The order of the day whose answer was lost. */
const LOST = '20506'

/** The pictures of docs/console.md: one window each, so that none is larger than a reader waits for. */
const PICTURES = [
  ['overview', '/overview', 'light'],
  ['order', `/orders/${STORE}/${LOST}`, 'light'],
  ['review', '/reviews/:id', 'dark'],
  // The page at the address of the sandbox itself.
  ['sandbox', '/', 'dark'],
] as const

async function keepForDocuments(world: BusyDay, addresses: Map<string, string>, to: string): Promise<void> {
  mkdirSync(path.join(to, 'docs'), { recursive: true })
  for (const [name, at, colours] of PICTURES) {
    const page = await openPage({ colours, width: 1180 })
    await page.setViewportSize({ width: 1180, height: 760 })
    await signInto(page, world, 'admin')
    const origin = at === '/' ? world.sandbox.baseUrl : world.pages.address()
    await page.goto(new URL(addresses.get(at) ?? at, origin ?? '').href)
    await page.screenshot({ path: path.join(to, 'docs', `console-${name}.png`) })
  }
}

const why = folder === '' ? 'npm run screenshots takes them' : hasBrowser ? 'Chromium' : skipText

describe.skipIf(!hasBrowser || folder === '')(`pictures of every page (${why})`, () => {
  test('are taken in the light, in the dark and on a phone, and axe-core finds nothing', async () => {
    const world = await openBusyDay()
    const origin = world.pages.address() ?? ''
    mkdirSync(folder, { recursive: true })
    let addresses: Map<string, string> | undefined
    for (const [look, options] of Object.entries(LOOKS)) {
      const page = await openPage(options)
      await signInto(page, world, 'admin')
      addresses ??= await addressesIn(page, origin)
      for (const [name, at] of addresses) {
        await page.goto(`${origin}${at}`)
        await expectAccessible(page)
        const width = await page.evaluate('document.documentElement.scrollWidth')
        expect(width, `${name} is wider than a window of ${look}`).toBeLessThanOrEqual('width' in options ? 390 : 1360)
        const file = `${name.slice(1).replaceAll(/\/:?/g, '-')}-${look}.png`
        // The check has scrolled the page, and the navigation with it.
        await page.evaluate('scrollTo(0, 0)')
        await page.screenshot({ path: path.join(folder, file), fullPage: true })
      }
    }
    await keepForDocuments(world, addresses ?? new Map(), folder)
    const missing = consolePages.map(({ path: at }) => at).filter((at) => !addresses?.has(at))
    expect(missing, 'pages to which no link of the day leads').toEqual([])
  }, 600_000)
})
