/** What belongs to every page: whether it is current, what waits, and whose times it shows. */
import type { Page } from 'playwright-core'
import { afterAll, describe, expect, onTestFinished, test } from 'vitest'
import { createConsole } from '../../src/console/console.ts'
import { consolePages } from '../../src/console/pages.ts'
import { openApi } from '../support/api-world.ts'
import { closeBrowser, expectAccessible, hasBrowser, openPage, signInto, skipText } from '../support/browser.ts'
import { openDay } from '../support/console-day.ts'
import { until } from '../support/service-process.ts'
import { STORE } from '../support/test-app.ts'

afterAll(closeBrowser)

const STALE = /This page is \d+ seconds old/

async function isLive(page: Page): Promise<void> {
  await page.locator('#live-mark').getByText('live', { exact: true }).waitFor()
  expect(await page.getByText(STALE).isVisible()).toBe(false)
}

describe.skipIf(!hasBrowser)(`the frame of every page (${hasBrowser ? 'Chromium' : skipText})`, () => {
  test('says within ten seconds that the service is gone, on every page, and goes on by itself once it is back', async () => {
    const world = await openDay()
    const origin = world.pages.address() ?? ''
    const first = await openPage()
    await signInto(first, world, 'admin')
    const paths = consolePages.map(({ path }) => path).filter((path) => !path.includes(':'))
    const open = [first]
    for (const path of [
      ...paths,
      `/orders/${STORE}/1001`,
      `/listings/${STORE}/SKU-a`,
      `/stores/${STORE}`,
      '/syncs/run1',
    ]) {
      const page = await first.context().newPage()
      await page.goto(`${origin}${path}`)
      open.push(page)
    }
    for (const page of open) await isLive(page)
    expect(world.pages.streams(), 'the others poll: a browser has six connections to a host').toBe(4)
    await world.pages.close()
    // The script says so after nine seconds. A busy machine draws so many pages later.
    for (const page of open) await page.getByText(STALE).waitFor({ timeout: 60_000 })
    expect(await open[0]?.getByText(STALE).textContent()).toMatch(/is \d\d? seconds old/)
    await expectAccessible(open.at(-1) ?? first)
    const again = createConsole(world.consoleParts)
    onTestFinished(() => again.close())
    await again.listen('127.0.0.1', Number(new URL(origin).port))
    for (const page of open) await page.getByText(STALE).waitFor({ state: 'hidden', timeout: 60_000 })
    for (const page of open) await isLive(page)
  }, 180_000)

  test('counts what comes to wait while a page is read, and a page that is left has no stream', async () => {
    const world = await openApi()
    const page = await openPage()
    await signInto(page, world, 'viewer')
    await page.goto(`${world.pages.address()}/audit`)
    await isLive(page)
    const waiting = page.locator('#counts').getByRole('link', { name: /^Customers waiting *: 1 waiting$/ })
    expect(await waiting.count()).toBe(0)
    const offer = await world.offer()
    await world.order('1001', [{ sku: offer.sku, unitPriceMinor: 1 }])
    await world.pass(60_000)
    await waiting.waitFor({ timeout: 10_000 })
    await page.goto('about:blank')
    await until('the stream to be closed', () => world.pages.streams() === 0)
  })

  test('shows times as the reader has them, with UTC beside, and a year where it is another one', async () => {
    const world = await openDay()
    const page = await openPage({ timezone: 'Asia/Tokyo' })
    await signInto(page, world, 'viewer')
    await page.goto(`${world.pages.address()}/orders`)
    const time = page.locator('tbody time').first()
    const at = new Date((await time.getAttribute('datetime')) ?? '')
    const inTokyo = new Date(at.getTime() + 9 * 3_600_000).toISOString().slice(11, 19)
    await expect.poll(() => time.innerText()).toBe(inTokyo)
    expect(await time.getAttribute('title')).toBe(`${at.toISOString().slice(0, 19).replace('T', ' ')} UTC`)
    await page.getByText('Times are yours, Asia/Tokyo').waitFor()
    // The session ends, and what was asked for is forgotten.
    await page.goto('about:blank')
    await page.context().clearCookies()
    world.move(400 * 24 * 3_600_000)
    await signInto(page, world, 'viewer')
    await page.goto(`${world.pages.address()}/orders`)
    await expect.poll(() => time.innerText()).toMatch(/^\w{3} 15 November 2023, /)
  })

  test('shows UTC, and when it was read, without JavaScript', async () => {
    const world = await openDay()
    const page = await openPage({ hasScript: false, timezone: 'Asia/Tokyo' })
    await signInto(page, world, 'viewer')
    expect(await page.locator('#live-mark').innerText()).toMatch(/^\s*as of\s+\d\d:\d\d:\d\d$/)
    await page.getByText('All times are UTC.').waitFor()
  })
})
