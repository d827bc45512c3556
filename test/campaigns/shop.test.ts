/** The short form of `npm run shop`. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { KILLS, runShopCampaign } from './shop/campaign.ts'

const ORDERS = 30
const OFFERS = 12

test('a shop gives each customer the keys once, while its requests fail, it is away and the service is killed', async () => {
  const folder = mkdtempSync(path.join(tmpdir(), 'quayside-shop-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const outcome = await runShopCampaign({ orders: ORDERS, offers: OFFERS, seed: 1, folder })
  expect(outcome.faults, JSON.stringify(outcome)).toEqual([])
  expect(outcome.kills).toHaveLength(KILLS)
  expect(outcome.created).toBe(OFFERS - Math.ceil(OFFERS / 3))
  expect(Object.keys(outcome.struck).length).toBeGreaterThan(2)
  expect(outcome.paidWhileDown).toBeGreaterThan(0)
  expect(outcome.charges).toBeGreaterThan(outcome.paid)
})
