import { afterAll, describe, expect, test } from 'vitest'
import { openApi } from '../support/api-world.ts'
import { closeBrowser, expectAccessible, hasBrowser, openPage, signInto, skipText } from '../support/browser.ts'
import { insertDeliveries } from '../support/console-data.ts'

afterAll(closeBrowser)

describe.skipIf(!hasBrowser)(`deliveries in a browser (${hasBrowser ? 'Chromium' : skipText})`, () => {
  test.each([true, false])('finds a dead delivery and replays it, JavaScript %s', async (hasScript) => {
    const world = await openApi()
    await insertDeliveries(world, [
      { state: 'applied', event: 'product.price_changed' },
      { state: 'dead', event: 'order.completed', lastError: 'the supplier answered 503', attempts: 10 },
    ])
    const page = await openPage({ hasScript })
    await signInto(page, world, 'operator')
    await page.getByRole('link', { name: /^Dead letters/ }).click()
    await page.getByRole('link', { name: 'order.completed' }).click()
    await page.getByRole('heading', { name: 'Why it stopped' }).waitFor()
    await expect.poll(() => page.getByText('The supplier answered 503.').count()).toBe(1)
    if (hasScript) await expectAccessible(page)
    await page.getByRole('button', { name: 'Replay this delivery' }).click()
    await page.getByRole('status').getByText('in the inbox again').waitFor()
    await page.reload()
    expect(await page.getByRole('status').count(), 'a notice is said once').toBe(0)
    await world.settle()
    await page.getByRole('link', { name: /^Dead letters/ }).click()
    await page.getByText('Nothing has used up its attempts.').waitFor()
    if (hasScript) await expectAccessible(page)
  })

  test.each([true, false])('selects some of a filtered list and replays them, JavaScript %s', async (hasScript) => {
    const world = await openApi()
    await insertDeliveries(
      world,
      ['order.completed', 'order.failed', 'balance.low'].map((event) => ({ state: 'dead', event, attempts: 10 })),
    )
    const page = await openPage({ hasScript, width: 390 })
    await signInto(page, world, 'operator')
    await page.goto(`${world.pages.address()}/deliveries`)
    await page.getByLabel('State').selectOption('dead')
    await page.getByRole('button', { name: 'Show' }).click()
    await page.getByRole('heading', { name: 'Deliveries in state dead' }).waitFor()
    if (hasScript) await expectAccessible(page)
    await page.getByRole('checkbox', { name: /order\.failed/ }).check()
    await page.getByRole('checkbox', { name: /balance\.low/ }).check()
    await page.getByText('Replay: several at once…').click()
    if (hasScript) await expectAccessible(page)
    await page.getByRole('button', { name: 'Replay what is selected' }).click()
    await page.getByRole('status').getByText('Two deliveries are in the inbox again.').waitFor()
    await expect.poll(() => page.getByRole('link', { name: 'order.completed' }).count()).toBe(1)
    expect(await page.getByRole('link', { name: 'order.failed' }).count()).toBe(0)
  })

  test.each([true, false])(
    'reveals a body by a step of its own, which leaving hides, JavaScript %s',
    async (hasScript) => {
      const world = await openApi()
      const [id] = await insertDeliveries(world, [{ state: 'applied', body: '{"note":"marker-77"}' }])
      const page = await openPage({ hasScript })
      await signInto(page, world, 'admin')
      await page.goto(`${world.pages.address()}/deliveries/${id}`)
      expect(await page.content()).not.toContain('marker-77')
      await page.getByText('Reveal the body…').click()
      await page.getByRole('button', { name: 'Reveal the body' }).click()
      await page.getByText('marker-77').waitFor()
      if (hasScript) await expectAccessible(page)
      await page.goto(`${world.pages.address()}/deliveries/${id}`)
      expect(await page.content()).not.toContain('marker-77')
    },
  )
})
