/** What people open the console for, in a browser: each task from the first page, in at most so many clicks. Typing is no click. */
import { readFile } from 'node:fs/promises'
import type { Locator, Page } from 'playwright-core'
import { afterAll, describe, expect, test } from 'vitest'
import { sumEarnings } from '../../src/ordering/earnings.ts'
import { audited } from '../../src/storage/evidence.ts'
import { type ApiWorld, openApi } from '../support/api-world.ts'
import { closeBrowser, hasBrowser, openPage, signInto, skipText } from '../support/browser.ts'
import { offer } from '../support/console-data.ts'
import { openDay } from '../support/console-day.ts'
import { openAfterOutage, openDead, openHeld } from '../support/several-world.ts'

afterAll(closeBrowser)

const HOUR = 3_600_000
const DAY = 24 * HOUR

interface Hand {
  page: Page
  click: (what: Locator) => Promise<void>
  /** Clicks the link of this name. */
  follow: (name: string | RegExp) => Promise<void>
  /** Clicks the button of this name. */
  press: (name: string) => Promise<void>
  /** Types into the search of the frame, and presses Enter. */
  find: (text: string) => Promise<void>
  /** Waits until the page says so. */
  read: (text: string | RegExp) => Promise<void>
}

interface Task {
  task: string
  /** The most clicks. */
  most: number
  /** Opens an installation in which there is this to do. @returns it, and how a person does it */
  open: () => Promise<{ world: ApiWorld; does: (hand: Hand) => Promise<void> }>
}

const tasks: Task[] = [
  {
    task: 'learns why order 1042 has no key',
    most: 1,
    open: async () => {
      const world = await openApi()
      const sold = await world.offer()
      world.sandbox.world.offers.change(sold.productId, { stock: 0 })
      await world.order('1042', [{ sku: sold.sku }])
      await world.pass(HOUR)
      return {
        world,
        does: async ({ page, click, read }) => {
          await click(page.locator('.queue').getByRole('link', { name: '1042', exact: true }))
          await page.waitForURL('**/1042')
          await read(/out of stock/i)
        },
      }
    },
  },
  {
    task: 'retries everything that failed by an outage',
    most: 3,
    open: async () => ({
      world: await openAfterOutage(),
      does: async ({ page, follow, press, read }) => {
        await follow(/^Outage 4$/)
        await read(/At most [\d.]+ EUR for all 4\./)
        await page.getByLabel('Reason, for the audit log').fill('the supplier was away')
        await press('Retry what is selected')
        await read('4 of 4 retried')
      },
    }),
  },
  {
    task: 'approves three held prices',
    most: 3,
    open: async () => ({
      world: await openHeld(),
      does: async ({ page, follow, press, read }) => {
        await follow(/^Held prices/)
        await page.getByLabel('Reason, for the audit log').first().fill('the supplier confirmed them')
        await press('Release what is selected')
        await read('3 of 3 released')
      },
    }),
  },
  {
    task: 'finds a delivery by its ID, and its verdict',
    most: 1,
    open: async () => {
      const world = await openDay()
      const { body } = await world.ask('GET', '/deliveries?state=dead')
      const id = String(body.data.items[0]?.id)
      return {
        world,
        does: async ({ page, find, read }) => {
          await find(id)
          await page.waitForURL(`**/deliveries/${id}`)
          await read('the order cannot be read')
        },
      }
    },
  },
  {
    task: 'learns why a price changed, from what and to what',
    most: 2,
    open: async () => {
      const world = await openApi()
      await offer(world, 'a', { name: 'Circuit Kings' })
      await world.publish()
      world.move(HOUR)
      await offer(world, 'a', { name: 'Circuit Kings', costMinor: 1_050 })
      await world.publish()
      const { body } = await world.ask('GET', '/stores/demo-ab12cd34/listings/SKU-a')
      const [now = '', before = ''] = (body.data.prices as { price: string }[]).map(({ price }) => price)
      return {
        world,
        does: async ({ page, find, read }) => {
          await find('sku-a')
          await page.waitForURL('**/listings/*/SKU-a')
          const row = page.getByRole('row').filter({ hasText: now }).filter({ hasText: before })
          await row.first().waitFor()
          await read(/cost/i)
        },
      }
    },
  },
  {
    task: 'learns what waits for money, and how much',
    most: 1,
    open: async () => {
      const world = await openApi({ balanceMinor: 100 })
      const sold = await world.offer()
      await world.order('1001', [{ sku: sold.sku }])
      await world.pass(2 * HOUR)
      return {
        world,
        does: async ({ page, follow, read }) => {
          const missing = ((sold.costMinor - 100) / 100).toFixed(2)
          await follow(`Top up at least ${missing} EUR to free 1 order.`)
          await page.waitForURL('**/money')
          await read(`Top up at least ${missing} EUR to free 1 order.`)
          await page.getByRole('link', { name: 'Order 1001', exact: false }).first().waitFor()
        },
      }
    },
  },
  {
    task: 'invites a colleague',
    most: 3,
    open: async () => ({
      world: await openApi(),
      does: async ({ page, click, follow, press, read }) => {
        await follow('People')
        await page.getByLabel('Name, as the audit log shows it').fill('Jonas')
        await click(page.getByLabel('Operator'))
        await press('Make the link')
        await read('Give this link to Jonas now.')
      },
    }),
  },
  {
    task: "takes this month's orders away as a file",
    most: 3,
    open: async () => {
      const world = await openApi()
      const { sku } = await world.offer()
      await world.order('1001', [{ sku }])
      world.move(40 * DAY)
      await world.order('1002', [{ sku }])
      return {
        world,
        does: async ({ page, follow }) => {
          await follow('Orders')
          await follow('This month')
          await page.waitForURL('**/orders?from=*')
          const begun = page.waitForEvent('download')
          await follow('Download as CSV')
          const text = await readFile(await (await begun).path(), 'utf8')
          expect(text).toContain(',1002,')
          expect(text).not.toContain(',1001,')
        },
      }
    },
  },
  {
    task: "learns last week's margin",
    most: 1,
    open: async () => {
      const world = await openApi({ balanceMinor: 1_000_000 })
      const { sku, costMinor } = await world.offer()
      await world.order('1001', [{ sku, unitPriceMinor: costMinor + 1_234 }])
      await world.pass(HOUR)
      world.move(7 * DAY)
      await sumEarnings(world.ordering)
      return {
        world,
        does: async ({ page, follow }) => {
          await follow('Money')
          await expect.poll(() => page.locator('main').innerText()).toMatch(/Last week’s margin\s+12\.34\s+EUR/i)
        },
      }
    },
  },
  {
    task: 'sends all dead letters of one store again',
    most: 3,
    open: async () => ({
      world: await openDead(3),
      does: async ({ page, follow, press, read }) => {
        await follow(/^Dead letters/)
        await follow('Main store')
        await page.waitForURL('**/dead-letters?store=*')
        await press('Send again what is selected')
        await read('3 of 3 sent again')
      },
    }),
  },
  {
    task: 'learns what a colleague did yesterday',
    most: 2,
    open: async () => {
      const world = await openApi()
      await world.db.commit([audited(world.access, 'anna', 'freeze', 'buying', 'because of a price')])
      world.move(DAY)
      return {
        world,
        does: async ({ follow, read }) => {
          await follow('Audit log')
          await follow('Yesterday: anna')
          await read('because of a price')
          await read('1 entry')
        },
      }
    },
  },
  {
    task: 'stops all buying',
    most: 2,
    open: async () => ({
      world: await openApi(),
      does: async ({ page, click, press, read }) => {
        await click(page.getByText('Freeze buying…', { exact: true }))
        await page.getByLabel('Reason, for the audit log').fill('prices look wrong')
        await press('Freeze buying now')
        await read('Buying is frozen')
      },
    }),
  },
]

describe.skipIf(!hasBrowser)(`a person in the console (${hasBrowser ? 'Chromium' : skipText})`, () => {
  // Without JavaScript, the tasks that forms do.
  const ways = tasks.flatMap((one) =>
    (one.most === 3 ? [true, false] : [true]).map((hasScript) => ({ ...one, hasScript })),
  )
  test.each(ways)('$task by at most $most clicks, JavaScript $hasScript', async ({ most, open, hasScript }) => {
    const { world, does } = await open()
    const page = await openPage({ hasScript })
    await signInto(page, world, 'operator')
    let clicks = 0
    const click = async (what: Locator): Promise<void> => {
      clicks += 1
      await what.click()
    }
    await does({
      page,
      click,
      follow: (name) => click(page.getByRole('link', { name, exact: true }).first()),
      press: (name) => click(page.getByRole('button', { name, exact: true }).first()),
      find: async (text) => {
        await page.getByRole('searchbox').first().fill(text)
        await page.keyboard.press('Enter')
      },
      read: (text) => page.locator('main, .pier, header').getByText(text).first().waitFor(),
    })
    expect(clicks).toBeLessThanOrEqual(most)
  })
})
