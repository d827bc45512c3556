import { afterAll, describe, expect, test } from 'vitest'
import { openApi } from '../support/api-world.ts'
import { closeBrowser, expectAccessible, hasBrowser, openPage, signInto, skipText } from '../support/browser.ts'
import { STORE } from '../support/test-app.ts'

afterAll(closeBrowser)

describe.skipIf(!hasBrowser)(`secrets in a browser (${hasBrowser ? 'Chromium' : skipText})`, () => {
  test.each([true, false])('are rotated by a person, shown once, and audited, JavaScript %s', async (hasScript) => {
    const world = await openApi()
    const page = await openPage({ hasScript })
    const look = async () => {
      if (hasScript) await expectAccessible(page)
    }
    await signInto(page, world, 'admin')
    await page.goto(`${world.pages.address()}/stores/${STORE}`)
    await page.getByText('Rotate the callback secret…').click()
    const hours = page.getByLabel('Hours for which the previous secret stays valid')
    await hours.fill('a week')
    await page.getByRole('button', { name: 'Rotate the secret of' }).click()
    await page.getByText('It is said beside the field.').waitFor()
    expect(await hours.inputValue()).toBe('a week')
    await look()
    await hours.fill('24')
    await page.getByRole('button', { name: 'Rotate the secret of' }).click()
    const secret = await page.locator('#secret').innerText()
    expect(secret).toMatch(/^whsec_/)
    await look()
    await page.getByRole('link', { name: 'Stores' }).first().click()
    await page.getByRole('link', { name: STORE }).click()
    expect(await page.content()).not.toContain(secret)
    await expect.poll(() => page.locator('main').innerText()).toContain('valid until')

    await page.getByRole('link', { name: 'Settings' }).click()
    await look()
    await page.getByText('Rotate the key-encryption key…').click()
    await page.getByRole('button', { name: 'Rotate to' }).click()
    await page.getByRole('status').getByText('The database is sealed under').waitFor()

    await page.getByRole('link', { name: 'Audit log' }).click()
    const rows = page.locator('tbody tr')
    await expect.poll(() => rows.nth(0).innerText()).toContain('rotated the key-encryption key')
    await expect.poll(() => rows.nth(1).innerText()).toContain('rotated a callback secret')
    await look()
    await page.getByLabel('Subject').fill(STORE)
    await page.getByRole('button', { name: 'Show' }).click()
    await expect.poll(() => page.locator('tbody tr').count()).toBe(1)
  })
})
