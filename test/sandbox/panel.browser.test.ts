import { afterAll, describe, expect, test } from 'vitest'
import { factsOf, faultTable } from '../../src/sandbox/faults.ts'
import { type ApiWorld, openApi } from '../support/api-world.ts'
import { closeBrowser, expectAccessible, hasBrowser, openPage, signInto, skipText } from '../support/browser.ts'
import { temporaryFolder } from '../support/cli-run.ts'
import { freePort } from '../support/free-port.ts'
import { startedDemo } from '../support/started-demo.ts'
import { STORE } from '../support/test-app.ts'

afterAll(closeBrowser)

const faults = (Object.keys(faultTable) as (keyof typeof faultTable)[]).filter((name) => factsOf(name).of !== 'list')
const [deliveries, others] = [true, false].map((isOf) =>
  faults.filter((name) => (factsOf(name).of === 'delivery') === isOf),
)

const chargesOf = ({ sandbox }: ApiWorld, reference: string) =>
  sandbox.world
    .report()
    .charges.filter(({ externalOrderId }) => externalOrderId?.startsWith(`q1.${STORE}.${reference}.`))

describe.skipIf(!hasBrowser)(`the sandbox in a browser (${hasBrowser ? 'Chromium' : skipText})`, () => {
  test.each([true, false])(
    'is broken by each button, and each order heals on the page, JavaScript %s',
    async (hasScript) => {
      const world = await openApi()
      await world.runtime.syncs.finish('test')
      const page = await openPage({ hasScript })
      await signInto(page, world, 'operator')
      await page.getByRole('link', { name: 'Sandbox' }).click()
      const references: string[] = []
      for (const fault of others ?? []) {
        await page.locator(`.faults button[value="${fault}"]`).click()
        await page.waitForURL(/seen=/)
        const reference = await page.locator('#stage h2 a').innerText()
        expect(references).not.toContain(reference)
        references.push(reference)
        await world.pass(5_000)
        if (!hasScript) await page.reload()
        await page.locator('#stage figure').getByText('POST /orders').first().waitFor()
      }
      await world.pass(60_000)
      await world.pass(7_200_000, 60_000)
      for (const [at, fault] of (others ?? []).entries()) {
        await page
          .locator('#seen')
          .getByRole('link', { name: references[at] ?? '', exact: true })
          .click()
        const heading = page.getByRole('heading', { level: 1 })
        const end =
          { 'failed-order': 'no key came', 'hold-open': 'the customer waits' }[String(fault)] ??
          'the customer has the key'
        await heading.getByText(`${end}`).waitFor()
        await heading.getByText('charged once.').waitFor()
        expect(chargesOf(world, references[at] ?? ''), fault).toHaveLength(1)
      }
      const row = page.locator('#now tr', { hasText: references[others?.indexOf('hold-open') ?? 0] ?? '' })
      await row.getByRole('button', { name: 'Hand out its keys' }).click()
      await page.getByRole('status').getByText('Completed').waitFor()
      await world.pass(600_000)
      await page.goto(page.url())
      await page.locator('#now').getByText('No order is open').waitFor()
      expect(await page.locator('#seen tbody tr', { hasText: 'healed' }).count()).toBe((others ?? []).length - 1)
      await expect.poll(() => page.locator('#ledger').innerText()).toContain('balanced to the cent')
      await page
        .locator('#seen')
        .getByRole('link', { name: references[0] ?? '', exact: true })
        .click()
      await page.getByText('As a list').click()
      await page.locator('#stage').getByText('Quayside: unknown').waitFor()
      if (hasScript) await expectAccessible(page)
      await page.locator('#stage h2 a').click()
      await page.getByRole('cell', { name: 'fulfilled' }).first().waitFor()
    },
    120_000,
  )

  test('draws, in a demo, each order to its keys, in the milliseconds that it really took', async () => {
    const demo = await startedDemo(temporaryFolder(), await freePort())
    const page = await openPage()
    await page.goto(demo.sandbox)
    const began = Date.now()
    for (const fault of ['answer-lost', ...(deliveries ?? [])]) {
      await page.locator(`.faults button[value="${fault}"]`).click()
      await page.locator('#stage figure').getByText('Shop').waitFor()
    }
    await expect
      .poll(() => page.locator('#seen tbody tr', { hasText: 'healed' }).count(), { timeout: 60_000 })
      .toBe(1 + (deliveries ?? []).length)
    const took = Date.now() - began
    const { charges } = (await (await fetch(`${demo.sandbox}/sandbox/ledger`)).json()) as {
      charges: { externalOrderId: string }[]
    }
    for (const link of await page.locator('#seen tbody th a').all()) {
      const ofOrder = `.${await link.innerText()}.1.`
      expect(charges.filter(({ externalOrderId }) => externalOrderId.includes(ofOrder))).toHaveLength(1)
      await link.click()
      await page.locator('#stage').getByText('healed in').waitFor()
      const steps = await page.locator('#stage figure .at').allTextContents()
      const instants = steps.map((text) => (text.endsWith('ms') ? 1 : 1000) * Number.parseFloat(text))
      expect(instants).toEqual(instants.toSorted((a, b) => a - b))
      expect(instants.at(-1)).toBeLessThan(took)
    }
    await expectAccessible(page)
  }, 120_000)

  test.each(['light', 'dark'] as const)(
    'fits a phone, %s, with what does not scrolled by the keyboard too',
    async (colours) => {
      const world = await openApi()
      await world.runtime.syncs.finish('test')
      const page = await openPage({ width: 390, colours })
      await page.goto(new URL(world.sandbox.baseUrl).origin)
      for (const fault of ['answer-lost', 'hold-open']) {
        await page.locator(`.faults button[value="${fault}"]`).click()
        await page.waitForURL(/seen=/)
      }
      await world.pass(600_000)
      await page.goto(page.url())
      await page.locator('#stage').getByText('As a list').click()
      await expectAccessible(page)
      expect(await page.evaluate('document.documentElement.scrollWidth')).toBeLessThanOrEqual(390)
    },
  )

  test('says that the sandbox does not answer, once it is gone', async () => {
    const world = await openApi()
    const page = await openPage()
    await page.goto(new URL(world.sandbox.baseUrl).origin)
    await page.locator('#live').getByText('live').waitFor()
    await world.supplierDown()
    await page.getByText('The sandbox does not answer.').waitFor({ timeout: 10_000 })
  })
})
