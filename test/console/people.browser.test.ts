/** People in a real browser: a colleague is invited in three clicks, and links from elsewhere find the session. */
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Locator, Page } from 'playwright-core'
import { afterAll, describe, expect, onTestFinished, test } from 'vitest'
import { openApi } from '../support/api-world.ts'
import { closeBrowser, expectAccessible, hasBrowser, openPage, signInto, skipText } from '../support/browser.ts'
import { signedIn } from '../support/console-client.ts'

afterAll(closeBrowser)

/** A page of another site, under another name of this machine: browsers call `localhost` and `127.0.0.1` two sites. */
async function anotherSite(markup: string): Promise<string> {
  const server = createServer((_request, response) => void response.setHeader('content-type', 'text/html').end(markup))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(async () => {
    server.closeAllConnections()
    server.close()
    await once(server, 'close')
  })
  return `http://localhost:${(server.address() as AddressInfo).port}/`
}

const linkOn = async (page: Page): Promise<string> => (await page.locator('#link').textContent()) ?? ''

describe.skipIf(!hasBrowser)(`people in a browser (${hasBrowser ? 'Chromium' : skipText})`, () => {
  test.each([true, false])('a colleague is invited in three clicks and signs in, JavaScript %s', async (hasScript) => {
    const world = await openApi()
    const page = await openPage({ hasScript })
    await signInto(page, world, 'operator')
    let clicks = 0
    const click = async (one: Locator) => {
      clicks += 1
      await one.click()
    }
    await click(page.getByRole('link', { name: 'People' }))
    await page.getByLabel('Name, as the audit log shows it').fill('Jonas <b>')
    await click(page.getByLabel('Operator'))
    await click(page.getByRole('button', { name: 'Make the link' }))
    await page.getByText('Give this link to Jonas <b> now.').waitFor()
    expect(clicks).toBeLessThanOrEqual(3)
    if (hasScript) await expectAccessible(page)
    const colleague = await openPage({ hasScript })
    await colleague.goto(`${world.pages.address()}/orders?q=1042`)
    await colleague.getByText('the page that you asked for opens').waitFor()
    if (hasScript) await expectAccessible(colleague)
    await colleague.goto(await linkOn(page))
    if (hasScript) await expectAccessible(colleague)
    await colleague.getByRole('button', { name: 'Sign in' }).click()
    await colleague.waitForURL('**/orders?q=1042')
    await page.getByRole('link', { name: 'People' }).click()
    await page.getByRole('link', { name: 'Jonas <b>' }).click()
    await page.getByText('Make a new sign-in link…').click()
    if (hasScript) await expectAccessible(page)
    await page.getByRole('button', { name: 'Make the link' }).first().click()
    await page.getByText('Give this link to Jonas <b> now.').waitFor()
  })

  test('a link of another site opened the page that says one is signed out', async () => {
    const world = await openApi()
    const site = await anotherSite(`<a href="${world.pages.address()}/alerts">the alert</a>`)
    const page = await openPage()
    await signInto(page, world, 'viewer')
    await page.goto(site)
    await page.getByRole('link', { name: 'the alert' }).click()
    await page.getByRole('heading', { name: 'Alerts' }).waitFor()
  })

  test('a form of another site does nothing', async () => {
    const world = await openApi()
    const address = world.pages.address()
    const site =
      await anotherSite(`<form method="post" action="${address}/signout"><input name="scope" value="here"><button>Win</button></form>
<img src="${address}/overview" alt="">`)
    const page = await openPage()
    await signInto(page, world, 'admin')
    await page.goto(site)
    await page.getByRole('button', { name: 'Win' }).click()
    await page.getByText('An action must come from a page of the console itself. Nothing was done.').waitFor()
    await page.goto(`${address}/session`)
    await page.getByRole('heading', { name: 'You are signed in as mira' }).waitFor()
  })

  test('the page of people fits a phone, in the dark too, with long names and names from right to left', async () => {
    const world = await openApi()
    for (const name of ['w'.repeat(100), 'سلمى حداد', '🙂 Tom']) await signedIn(world, 'operator', name)
    for (const look of [{}, { colours: 'dark' }, { width: 390 }] as const) {
      const page = await openPage(look)
      await signInto(page, world, 'admin')
      for (const name of ['سلمى حداد', 'w'.repeat(100)]) {
        await page.goto(`${world.pages.address()}/people?${new URLSearchParams({ name })}`)
        await page.evaluate("for (const one of document.querySelectorAll('details')) one.open = true")
        await expectAccessible(page)
        const width = await page.evaluate('document.documentElement.scrollWidth')
        expect(width, 'nothing is wider than the window').toBe('width' in look ? look.width : 1360)
      }
    }
  })
})
