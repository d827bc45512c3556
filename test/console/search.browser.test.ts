/** The search and the copies of ids, with the keyboard, with the mouse and without JavaScript. */
import type { Locator } from 'playwright-core'
import { afterAll, describe, expect, test } from 'vitest'
import { closeBrowser, expectAccessible, hasBrowser, openPage, signInto, skipText } from '../support/browser.ts'
import { openDay } from '../support/console-day.ts'
import { STORE } from '../support/test-app.ts'

afterAll(closeBrowser)

const openSearch = async (options: Parameters<typeof openPage>[0] = {}) => {
  const world = await openDay()
  const page = await openPage(options)
  await signInto(page, world, 'operator')
  const origin = world.pages.address() ?? ''
  return { world, page, go: (path: string) => page.goto(`${origin}${path}`) }
}
const isFocused = (field: Locator) => field.evaluate((one) => one.matches(':focus'))
const FIELD = 'Find orders, products, deliveries, pages'

describe.skipIf(!hasBrowser)(`the search (${hasBrowser ? 'Chromium' : skipText})`, () => {
  test('is reached by / from every page, and opens a single hit with Enter', async () => {
    const { page, go } = await openSearch()
    await go('/audit')
    await page.keyboard.press('/')
    const field = page.getByRole('searchbox', { name: FIELD })
    await expect.poll(() => isFocused(field)).toBe(true)
    expect(await field.inputValue()).toBe('')
    await page.keyboard.type('#1002')
    await page.keyboard.press('Enter')
    await page.waitForURL(`**/orders/${STORE}/1002`)
  })

  test('leaves / to the field in which it is typed', async () => {
    const { page, go } = await openSearch()
    await go('/orders')
    const filter = page.locator('#f-q')
    await filter.focus()
    await page.keyboard.type('a/b')
    expect(await filter.inputValue()).toBe('a/b')
    await page.keyboard.press('Control+/')
    expect(await isFocused(filter)).toBe(true)
  })

  test('opens the form of an action', async () => {
    const { page, go } = await openSearch()
    await go('/search?q=reconcile')
    await page.waitForURL('**/discrepancies#sweep')
    await page.locator('#sweep').getByRole('button').waitFor()
  })

  test('shows what it found without sideways scrolling or a fault that axe finds, in every way of looking', async () => {
    for (const [colours, width] of [
      ['light', 1360],
      ['dark', 1360],
      ['light', 320],
    ] as const) {
      const { page, go } = await openSearch({ colours, width })
      for (const q of ['100', 'nothing-has-this-name', '']) {
        await go(`/search?q=${q}`)
        await expectAccessible(page, `${q} ${colours} ${width}`)
        expect(await page.evaluate('document.documentElement.scrollWidth')).toBeLessThanOrEqual(width)
      }
    }
  })

  test('works without JavaScript, and an id is selected whole by one tap', async () => {
    const { page, go } = await openSearch({ hasScript: false })
    await go('/audit')
    expect(await page.locator('.find kbd').isVisible()).toBe(false)
    await page.getByRole('searchbox', { name: FIELD }).fill('100')
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { name: /^“100”: \d+ found\.$/ }).waitFor()
    await page.getByRole('link', { name: '1003' }).click()
    await page.waitForURL(`**/orders/${STORE}/1003`)
    expect(await page.evaluate("getComputedStyle(document.querySelector('.id')).userSelect")).toBe('all')
    expect(await page.locator('.copy').count()).toBe(0)
  })
})

describe.skipIf(!hasBrowser)(`the copy of an id (${hasBrowser ? 'Chromium' : skipText})`, () => {
  test('is made whole by the button beside it, with the keyboard, and says what was copied', async () => {
    const { page, go } = await openSearch()
    await page.context().grantPermissions(['clipboard-read', 'clipboard-write'])
    await go('/deliveries?state=dead')
    await page.locator('tbody th a').first().click()
    const id = page.locator('dd .id').first()
    const text = await id.innerText()
    const button = page.getByRole('button', { name: `Copy ${text}` }).last()
    const { width, height } = (await button.boundingBox()) ?? { width: 0, height: 0 }
    expect(Math.min(width, height)).toBeGreaterThanOrEqual(24)
    await button.focus()
    await page.keyboard.press('Enter')
    await page.locator('#said').getByText(`Copied ${text}`).waitFor()
    expect(await page.evaluate('navigator.clipboard.readText()')).toBe(text)
    await expect.poll(() => button.innerText()).toBe('copy')
  })

  test('stays where a live part is read again', async () => {
    const { world, page, go } = await openSearch()
    await go(`/orders/${STORE}/1001`)
    const log = page.locator('#log')
    const before = await log.innerText()
    await world.ask('POST', `/orders/1001/cancel`)
    await expect.poll(() => log.innerText(), { timeout: 20_000 }).not.toBe(before)
    const ids = await log.locator('.id').count()
    expect(ids).toBeGreaterThan(0)
    expect(await log.locator('.copy').count()).toBe(ids)
  })

  test('is selected instead where the browser forbids to write to the clipboard', async () => {
    const { page, go } = await openSearch()
    await page.addInitScript("Object.defineProperty(navigator, 'clipboard', { value: undefined })")
    await go(`/search?q=dlv_`)
    const link = page.locator('.hits a').first()
    await page.locator('.hits .copy').first().click()
    await page
      .locator('#said')
      .getByText(/^Selected dlv_/)
      .waitFor()
    expect(await page.evaluate('String(getSelection())')).toBe(await link.innerText())
  })
})
