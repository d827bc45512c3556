/** The page about the API in a real browser, without scripts. */
import { afterAll, describe, expect, test } from 'vitest'
import { openApi } from '../support/api-world.ts'
import { closeBrowser, expectAccessible, hasBrowser, openPage, skipText } from '../support/browser.ts'

afterAll(closeBrowser)

describe.runIf(hasBrowser)(`the page about the API, in a browser${hasBrowser ? '' : ` (skipped: ${skipText})`}`, () => {
  test.each([
    { colours: 'light', width: 1360 },
    { colours: 'dark', width: 390 },
  ] as const)('can be read by all, in the $colours on $width pixels', { timeout: 60_000 }, async (look) => {
    const { url } = await openApi()
    const page = await openPage(look)
    await page.goto(`${url}/api/v1/docs`)
    expect(await page.evaluate('document.documentElement.scrollWidth - innerWidth')).toBe(0)
    await expectAccessible(page)
  })

  test('opens an operation by its link, also without scripts', { timeout: 60_000 }, async () => {
    const { url } = await openApi()
    const page = await openPage({ hasScript: false })
    const asked: string[] = []
    page.on('request', (request) => asked.push(new URL(request.url()).pathname))
    await page.goto(`${url}/api/v1/docs`)
    const body = page.locator('#takeOrder')
    expect(await body.isVisible()).toBe(false)
    await page.getByRole('navigation').getByText('Orders', { exact: true }).click()
    await page.getByRole('link', { name: 'takeOrder', exact: true }).click()
    expect(await body.isVisible()).toBe(true)
    await body.getByRole('link', { name: 'TakeOrderBody' }).click()
    await expect.poll(() => page.url()).toContain('#/components/schemas/TakeOrderBody')
    expect(asked.filter((path) => !path.startsWith('/api/v1/docs') && !path.startsWith(','))).toEqual([])
  })
})
