import { describe, expect, it } from 'vitest'
import { explainPrice, type PricedOffer } from '../../src/domain/pricing.ts'
import { explainStock } from '../../src/domain/stock.ts'
import { Price } from '../../src/http/api/listings.ts'
import { newListing } from '../../src/listings/assess.ts'
import type { ListingRow } from '../../src/storage/listings.ts'
import { run, startService, widest } from '../support/cli-run.ts'
import { TEST_NOW } from '../support/database.ts'
import { pricedOffer, sellingPolicy } from '../support/selling.ts'

const STORE = 'shop-4f7k2m9q'

/** A service that explains one offer as the real one does. */
function serviceFor(
  settings: Parameters<typeof sellingPolicy>[0],
  fields: Partial<PricedOffer> = {},
  stores: string[] = [STORE],
  listings: ListingRow[] = [],
) {
  const policy = sellingPolicy(settings)
  const stocks = { localStock: 3, providerStock: 40, available: true }
  const offer = { ...pricedOffer(fields), ...stocks, productId: 'p-1', name: 'Railway Empire IV' }
  const price = explainPrice(offer, policy.pricing, TEST_NOW)
  const stock = explainStock(offer, policy.stock)
  return startService({
    'GET /stores': () => ({ items: stores.map((id) => ({ id })) }),
    [`GET /stores/${STORE}/prices/SKU-1`]: () =>
      Price.parse({ store: STORE, offer, price, stock, listings, takenBy: null, passes: listings.length === 0 }),
  })
}

describe('price explain', () => {
  const everything: Parameters<typeof sellingPolicy>[0] = {
    currency: 'USD',
    rates: [{ from: 'EUR', to: 'USD', rate: '1.0834' }],
    pricing: {
      bands: [{ upTo: '10.00', percent: '30', flat: '0.50' }, { percent: '15' }],
      margin: { percent: '12', flat: '1.50' },
      rounding: { endings: ['.99', '.49'], direction: 'down' },
      compareAt: { percent: '25' },
    },
    stock: { buffer: 5, cap: 20, zeroUnder: 3 },
  }

  it('shows each step to the price and the stock, in 80 columns', async () => {
    const { config } = await serviceFor(everything)
    const { stdout, stderr } = await run(['price', 'explain', 'SKU-1', '--config', config], { terminal: true })
    expect(stderr).toBe('')
    expect(stdout).toBe(`Product     Railway Empire IV (Games)
SKU         SKU-1
Store       shop-4f7k2m9q
Price       13.49 USD
Compare at  16.49 USD
Stock       20 units
Listing     none yet

STEP            AFTER  WHY
cost        10.00 EUR  what the supplier charges for one unit
currency    10.84 USD  1 EUR is 1.0834 USD, rounded up
rule        12.47 USD  the last band: the cost plus 15 %
band        13.50 USD  dearer is never cheaper: the end of the bands before
floor       13.50 USD  the floor is 12.34 USD: the cost plus the larger of 12 %
                       and 1.50 USD
rounding    13.49 USD  down to an ending of .99 or .49
compare at  16.49 USD  the price plus 25 %, rounded like the price

source       43 units  local 3 plus provider 40
buffer       38 units  5 kept back
cap          20 units  at most 20 are shown
`)
    expect(widest(stdout)).toBeLessThanOrEqual(80)
  })

  it('says why there is no price', async () => {
    const { config } = await serviceFor({ currency: 'USD' })
    const argv = ['price', 'explain', 'SKU-1', '--store', STORE, '--config', config]
    const { stdout } = await run(argv, { terminal: true })
    expect(stdout).toBe(`Product     Railway Empire IV (Games)
SKU         SKU-1
Store       shop-4f7k2m9q
Price       none, held: no_rate
Compare at  -
Stock       none while there is no price
Listing     none yet

STEP          AFTER  WHY
cost      10.00 EUR  what the supplier charges for one unit
no price          -  no rate from EUR to USD is in force

source     43 units  local 3 plus provider 40
`)
  })

  it('says how the listing stands where the store has something else', async () => {
    const row: ListingRow = {
      ...newListing(STORE, { variant: 'v-1', sku: 'SKU-1', linkedBy: 'sku' }, 0),
      state: 'failed',
      reason: 'refused',
      detail: 'price locked',
      knownPriceMinor: 900,
      knownCurrency: 'EUR',
      knownStock: 0,
      knownAvailable: false,
      knownName: 'x',
    }
    const { config } = await serviceFor({}, {}, [STORE], [row])
    const { stdout } = await run(['price', 'explain', 'SKU-1', '--config', config, '--json'])
    expect(JSON.parse(stdout)).toMatchObject({ listings: [{ id: 'v-1', state: 'failed', known: { price: '9.00' } }] })
    const { stdout: text } = await run(['price', 'explain', 'SKU-1', '--config', config], { terminal: true })
    expect(text.replaceAll(/\s+/g, ' ')).toContain(
      'Listing v-1 is failed, refused: price locked; the store has 9.00 EUR, stock 0',
    )
  })

  it('asks which store where there are several, and takes the only one otherwise', async () => {
    const several = await serviceFor({}, {}, [STORE, 'other-4f7k2m9q'])
    const unsure = await run(['price', 'explain', 'SKU-1', '--config', several.config])
    expect(unsure.exitCode).toBe(2)
    expect(unsure.stderr).toContain(`--store: one of ${STORE}, other-4f7k2m9q`)
    const { config } = await serviceFor({})
    const { stdout } = await run(['price', 'explain', 'SKU-1', '--config', config, '--json'])
    expect(JSON.parse(stdout)).toMatchObject({ store: STORE, price: '12.00', stock: { stock: 43, available: true } })
  })

  it('obeys nothing that a name of the supplier says to the terminal', async () => {
    const { config } = await serviceFor({}, { category: '\u001b[2Jgone' })
    const { stdout } = await run(['price', 'explain', 'SKU-1', '--store', STORE, '--config', config], {
      terminal: true,
    })
    expect(stdout).not.toContain('\u001b')
  })
})
