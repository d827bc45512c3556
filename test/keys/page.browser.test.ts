/** The page of keys in the browser of a customer: on a phone and on a desk, with JavaScript and without, in light and in dark. */
import { mkdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import type { Page } from 'playwright-core'
import { afterAll, describe, expect, test } from 'vitest'
import { withdrawKeyPage } from '../../src/storage/key-pages.ts'
import { closeBrowser, expectAccessible, hasBrowser, openPage, skipText } from '../support/browser.ts'
import { PDF, PNG } from '../support/key-contents.ts'
import { type KeyPageOptions, openKeyPage } from '../support/key-page.ts'
import { ALL, CARD, LINK, openTyped } from '../support/typed-keys.ts'

afterAll(closeBrowser)

const MINUTE = 60_000
const PHONE = 390
const DESK = 1360

/** Keys that a page may break: markup, blanks, several lines, other writing, and one that is wider than a phone. */
const KEYS = [
  `<b>"A&amp;'B'</b> & <script>alert(1)</script>`,
  'two  blanks\tand a tab',
  'user: one\npass:  two\n\nurl: https://setup.example/?a=1&b=2',
  'ключ-鍵-مفتاح-🗝️-e\u0301',
  'X'.repeat(400),
]

const openWith = (options: KeyPageOptions = {}) =>
  openKeyPage({
    quantity: KEYS.length,
    stated: (order) => {
      order.keys = order.keys.map((_, place) => KEYS[place] ?? '')
    },
    ...options,
  })

const overflow = (page: Page) => page.evaluate('document.documentElement.scrollWidth - innerWidth') as Promise<number>

/** The states of a page that a customer may meet; each brings a browser to it. */
const redeem = [{ text: '1. Open the launcher.\n2. Choose **Redeem a code** at <https://setup.example>.' }]
const states: Record<string, (page: Page, options?: KeyPageOptions) => Promise<void>> = {
  late: async (page, options) => {
    const { url } = await openKeyPage(options)
    await page.goto(url)
  },
  closed: async (page, options) => {
    const { app, url } = await openKeyPage(options)
    await app.pass(MINUTE)
    await page.goto(url)
  },
  open: async (page, options) => {
    const { app, url } = await openKeyPage(options)
    await app.pass(MINUTE)
    await page.goto(url)
    await page.locator('form[method=post] button').click()
  },
  odd: async (page, options) => {
    const { app, url } = await openWith(options)
    await app.pass(MINUTE)
    await page.goto(url)
    await page.locator('form[method=post] button').click()
  },
  typed: async (page, options) => {
    const { app, url } = await openTyped(ALL, options)
    await app.pass(MINUTE)
    await page.goto(url)
    await page.locator('form[method=post] button').click()
  },
  withdrawn: async (page, options) => {
    const { app, url, open, orderId } = await openKeyPage(options)
    await app.pass(MINUTE)
    await open()
    await app.db.commit([withdrawKeyPage(orderId, 'kim', app.now())])
    await page.goto(url)
  },
  unknown: async (page, options) => {
    const { url } = await openKeyPage(options)
    await page.goto(url.slice(0, -2))
  },
}

describe.skipIf(!hasBrowser)(`the page of keys in a browser (${hasBrowser ? 'Chromium' : skipText})`, () => {
  test.each([
    { colours: 'light', width: PHONE, hasScript: true },
    { colours: 'dark', width: PHONE, hasScript: false },
    { colours: 'light', width: 320, hasScript: false },
    { colours: 'dark', width: DESK, hasScript: true },
  ] as const)(
    'shows each key byte for byte after a click: $colours, $width pixels, JavaScript $hasScript',
    async (options) => {
      const { app, url } = await openWith()
      await app.pass(MINUTE)
      const page = await openPage(options)
      await page.goto(url)
      expect(await page.locator('code').count()).toBe(0)
      await page.getByRole('button', { name: 'Show the 5 keys' }).click()
      expect(await page.locator('code').allTextContents()).toEqual(KEYS)
      expect(await overflow(page)).toBeLessThanOrEqual(0)
      expect(await page.getByRole('button', { name: 'Copy' }).count()).toBe(options.hasScript ? KEYS.length : 0)
    },
  )

  test('copies each key byte for byte', async () => {
    const { app, url } = await openWith()
    await app.pass(MINUTE)
    const page = await openPage({ width: PHONE })
    await page.context().grantPermissions(['clipboard-read', 'clipboard-write'])
    await page.goto(url)
    await page.getByRole('button', { name: 'Show the 5 keys' }).click()
    for (const [place, key] of KEYS.entries()) {
      await page.getByRole('button', { name: 'Copy', exact: true }).first().click()
      await page.getByRole('button', { name: 'Copied' }).nth(place).waitFor()
      expect(await page.evaluate('navigator.clipboard.readText()')).toBe(key)
    }
  })

  test('shows a picture, downloads it and a file, and copies each of two parts and a link alone', async () => {
    const { app, url } = await openTyped(ALL)
    await app.pass(MINUTE)
    const page = await openPage({ width: PHONE })
    await page.context().grantPermissions(['clipboard-read', 'clipboard-write'])
    await page.goto(url)
    expect(await page.locator('img').count()).toBe(0)
    await page.getByRole('button', { name: 'Show the 4 keys' }).click()
    expect(await page.locator('img').evaluate((one) => Reflect.get(one, 'naturalWidth'))).toBe(480)
    for (const copied of [CARD.code, CARD.pin, LINK]) {
      await page.getByRole('button', { name: 'Copy', exact: true }).first().click()
      await expect.poll(() => page.evaluate('navigator.clipboard.readText()')).toBe(copied)
    }
    for (const [button, name, content] of [
      ['Download the PNG', 'key-3.png', PNG],
      ['Download the PDF', 'key-4.pdf', PDF],
    ] as const) {
      const [download] = await Promise.all([
        page.waitForEvent('download'),
        page.getByRole('button', { name: button }).click(),
      ])
      expect(download.suggestedFilename()).toBe(name)
      expect(readFileSync(await download.path()).toString('base64')).toBe(content)
    }
    expect(await page.locator('img').count(), 'the page stays').toBe(1)
  })

  test('selects the key where the browser forbids to copy', async () => {
    const { app, url } = await openWith()
    await app.pass(MINUTE)
    const page = await openPage({ width: PHONE })
    await page.addInitScript('navigator.clipboard.writeText = () => Promise.reject(new Error("forbidden"))')
    await page.goto(url)
    await page.getByRole('button', { name: 'Show the 5 keys' }).click()
    await page.getByRole('button', { name: 'Copy', exact: true }).nth(1).click()
    await expect.poll(() => page.evaluate('String(getSelection())')).toBe(KEYS[1])
  })

  test('says when a key was seen first, also after a reload, and opens it again', async () => {
    const { app, url } = await openWith({ quantity: 1 })
    await app.pass(MINUTE)
    const page = await openPage({ width: PHONE, hasScript: false })
    await page.goto(url)
    await page.getByRole('button', { name: 'Show the key' }).click()
    const seen = await page.getByText('Shown for the first time on').innerText()
    await page.goto(url)
    expect(await page.locator('code').count()).toBe(0)
    expect(await page.getByText('Shown for the first time on').innerText()).toBe(seen)
    await page.getByRole('button', { name: 'Show the key' }).click()
    expect(await page.locator('code').allTextContents()).toEqual([KEYS[0]])
  })

  test('weighs at most 30 KB with its style and its script', async () => {
    const { app, url } = await openKeyPage({ shop: { redeem } })
    await app.pass(MINUTE)
    const page = await openPage({ width: PHONE })
    const sizes: Promise<number>[] = []
    page.on('response', (answer) => sizes.push(answer.body().then((body) => body.length)))
    await page.goto(url, { waitUntil: 'networkidle' })
    const sum = (await Promise.all(sizes)).reduce((all, one) => all + one, 0)
    expect(sizes).toHaveLength(3)
    expect(sum).toBeLessThan(30 * 1024)
  })

  test.each(
    Object.keys(states).flatMap((state) =>
      (['light', 'dark'] as const).flatMap((colours) => [PHONE, DESK].map((width) => ({ state, colours, width }))),
    ),
  )(
    'is accessible and no wider than its window: $state, $colours, $width pixels',
    async ({ state, colours, width }) => {
      const page = await openPage({ colours, width })
      await states[state]?.(page, { shop: { redeem, contact: 'mailto:help@shop.example' } })
      expect(await overflow(page)).toBeLessThanOrEqual(0)
      await expectAccessible(page, state)
      await picture(page, `${state}-${colours}-${width}`)
    },
  )

  test.each(['de', 'fr'])('speaks %s', async (language) => {
    const page = await openPage({ width: PHONE })
    await states.open?.(page, { shop: { language, redeem, contact: 'https://shop.example/help' } })
    expect(await page.locator('html').getAttribute('lang')).toBe(language)
    expect(await page.locator('code').count()).toBe(2)
    await expectAccessible(page, language)
    await picture(page, `open-${language}`)
  })
})

/** Keeps a picture in the folder that SCREENSHOTS names. */
async function picture(page: Page, name: string): Promise<void> {
  const folder = process.env.SCREENSHOTS
  if (folder === undefined) return
  mkdirSync(folder, { recursive: true })
  await page.screenshot({ path: path.join(folder, `keys-${name}.png`), fullPage: true })
}
