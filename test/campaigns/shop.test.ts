/** The short form of `npm run shop`. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { KILLS, type Kind, runShopCampaign } from './shop/campaign.ts'

async function play(kind: Kind, orders: number, offers: number, struckUntil: number) {
  const folder = mkdtempSync(path.join(tmpdir(), 'quayside-shop-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const outcome = await runShopCampaign({ kind, orders, offers, seed: 1, folder, struckUntil })
  expect(outcome.faults, JSON.stringify(outcome)).toEqual([])
  expect(outcome.kills).toHaveLength(KILLS)
  expect(outcome.created).toBe(offers - Math.ceil(offers / 3))
  expect(Object.keys(outcome.struck).length).toBeGreaterThan(2)
  expect(outcome.paidWhileDown).toBeGreaterThan(0)
  return outcome
}

test('a shop gives each customer the keys once, while its requests fail, it is away and the service is killed', async () => {
  const { charges, paid } = await play('woocommerce', 30, 12, 0)
  expect(charges).toBeGreaterThan(paid)
})

test('a shop of Shopify fulfils each unit once and writes once about it, under the same', async () => {
  const { figures } = await play('shopify', 10, 6, 0.3)
  expect(figures.unansweredFulfilments).toBeGreaterThan(0)
  expect(figures.staleQuantities).toBeGreaterThan(0)
})
