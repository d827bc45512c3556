import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { formatDecimal, parseDecimal } from '../../src/domain/money.ts'
import { priceOf } from '../../src/domain/pricing.ts'
import { publishedStock } from '../../src/domain/stock.ts'
import { ratesShape, sellingFaults, sellingShape, storePolicy } from '../../src/stores/store-settings.ts'
import { pricedOffer } from '../support/selling.ts'

const page = readFileSync(new URL('../../docs/pricing.md', import.meta.url), 'utf8')
const shape = z.strictObject(sellingShape)
const rates = ratesShape.parse(JSON.parse(/```json\n([\s\S]*?)```/.exec(page)?.[1] ?? '{}').rates)

/** Rows of all tables of the page, by the titles of their columns; code without its marks. */
const rows = page.split('\n\n').flatMap((block) => {
  const lines = block.split('\n').filter((line) => line.startsWith('|'))
  const cells = lines.map((line) =>
    line
      .slice(1, -1)
      .split(' | ')
      .map((cell) => cell.trim().replaceAll('`', '')),
  )
  const [titles = []] = cells
  return cells.slice(2).map((row) => Object.fromEntries(titles.map((title, place) => [title, row[place] ?? ''])))
})

const amountOf = (text: string | undefined) => {
  const [amount = '', currency = ''] = (text ?? '').split(' ')
  return { minor: parseDecimal(amount, currency), currency }
}

describe('the page on prices', () => {
  const priced = rows.filter((row) => 'rules' in row).map((row) => [row.rules, row.cost, row.price, row] as const)
  const stocked = rows.filter((row) => 'shown' in row).map((row) => [row.stock, row.local, row.provider, row] as const)

  test('has examples of everything that it speaks of', () => {
    // Every example of the page is tested.
    expect(priced.length + stocked.length).toBe(page.split('\n').filter((line) => line.startsWith('| `{')).length)
    expect(stocked.length).toBeGreaterThan(5)
    for (const word of ['markup', 'bands', 'categories', 'products', 'margin', 'rounding', 'compareAt'])
      expect(
        priced.some(([rules]) => rules?.includes(`"${word}"`)),
        word,
      ).toBe(true)
  })

  test.each(priced)('says what %s makes of %s: %s', (rules, cost, price, row) => {
    const { minor: costMinor, currency: from } = amountOf(cost)
    const { currency } = amountOf(price)
    const settings = shape.parse({ currency, pricing: JSON.parse(rules ?? '') })
    expect(sellingFaults([settings], rates, from)).toEqual([])
    const basePriceMinor = row['compare at'] === undefined ? null : 1_500
    const offer = pricedOffer({ costMinor: costMinor ?? 0, currency: from, basePriceMinor })
    const result = priceOf(offer, storePolicy(settings, rates, from).pricing, Date.parse(row.day ?? '2026-06-30'))
    const text = (minor: number) => `${formatDecimal({ minor, currency })} ${currency}`
    expect(result.outcome === 'priced' && text(result.priceMinor)).toBe(price)
    const compareAt = result.outcome === 'priced' ? result.compareAtMinor : null
    if (row['compare at']) expect(compareAt === null ? 'none' : text(compareAt)).toBe(row['compare at'])
  })

  test.each(stocked)('says what %s shows of %s and %s', (policy, local, provider, row) => {
    const { stock } = shape.parse({ stock: JSON.parse(policy ?? '') })
    const units = (text: string | undefined) => (text === 'not stated' ? null : Number(text))
    const offer = { localStock: units(local), providerStock: units(provider), available: true }
    expect(publishedStock(offer, stock).stock).toBe(row.shown === 'not counted' ? null : Number(row.shown))
  })
})
