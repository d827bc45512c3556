import { describe, expect, onTestFinished, test } from 'vitest'
import type { Dialect } from '../../src/dialect/dialect.ts'
import { checkDialect } from '../../src/fitting/check.ts'
import { readSample } from '../../src/fitting/sample.ts'
import { isFault } from '../../src/fitting/verdicts.ts'
import { Secret } from '../../src/secret.ts'
import { sandboxWorld } from '../support/catalogue-world.ts'
import { refusingDialect } from '../support/contract-dialects.ts'
import { standard } from '../support/dialect-pair.ts'
import { openSandbox } from '../support/sandbox-caller.ts'
import { openTestApp } from '../support/test-app.ts'

const MINUTE = 60_000

describe.each(['decimals', 'power_of_ten'] as const)(
  'a supplier that writes amounts with an exponent of %s',
  (counts) => {
    const representation = { amount: 'units', exponent: 'places', counts }
    const dialect = { ...standard, money: { currency: 'EUR', representation } }

    test('is read, bought from and booked at the right amounts', async () => {
      const world = await sandboxWorld({ dialect })
      const [known] = world.sandbox.world.offers.list({}, 0, 1).items
      await world.sync()
      const [stored] = (await world.offers()).filter(({ productId }) => productId === known?.id)
      expect(stored).toMatchObject({ costMinor: known?.priceMinor, basePriceMinor: known?.basePriceMinor })

      const app = await openTestApp({ dialect })
      const { sku, costMinor } = await app.offer()
      const { orderId } = await app.order('1001', [{ sku, quantity: 2 }])
      await app.pass(MINUTE)
      expect(await app.state(orderId)).toBe('fulfilled')
      expect(await app.purchase(orderId)).toMatchObject({ amountMinor: 2 * costMinor })
      const balance = await app.supplier.balance()
      expect(balance.amountMinor).toBe(app.sandbox.world.balanceMinor())
      app.expectLedger({ charges: 1, keys: 2 })
    })
  },
)

describe('a supplier that refuses with HTTP 200 and success: false', () => {
  test('has an order held that it has no stock for, and gets a new one after the restock', async () => {
    const app = await openTestApp({ dialect: refusingDialect })
    app.sandbox.faults.add({ fault: 'out-of-stock' })
    const orderId = await app.buy('1001')
    await app.settle()
    expect((await app.purchases(orderId)).map(({ state, holdReason }) => `${state} ${holdReason}`)).toEqual([
      'rejected null',
      'planned out_of_stock',
    ])
    await app.pass(30 * MINUTE)
    expect(await app.state(orderId)).toBe('fulfilled')
    app.expectLedger({ charges: 1, keys: 1 })
  })

  test('is checked without a fault by its dialect, and the check of another dialect reports its refusals', async () => {
    const sandbox = await openSandbox({ dialect: refusingDialect })
    onTestFinished(() => sandbox.close())
    const checked = async (dialect: Dialect) => {
      const { baseUrl } = sandbox
      const apiKey = new Secret('test-api-key')
      const now = () => 1_767_225_601_000
      const sample = await readSample({ baseUrl, dialect, apiKey, now, sleep: () => Promise.resolve() })
      return checkDialect(dialect, sample).filter(isFault)
    }
    expect(await checked(refusingDialect)).toEqual([])
    const { errors } = standard
    const faults = (await checked({ ...refusingDialect, errors })).map(({ fact, value }) => `${fact}: ${value}`)
    expect(faults).toEqual([
      'errors.unauthenticated.status: GET /balance answered 200',
      expect.stringMatching(/^errors\.not_found\.status: GET \/products\/.* answered 200$/),
    ])
  })

  test('has an order looked up whose answer is such a refusal after all was charged', async () => {
    const app = await openTestApp({ dialect: refusingDialect })
    app.sandbox.faults.add({ fault: 'error-after', kind: 'internal' })
    const orderId = await app.buy('1001')
    await app.settle()
    expect(await app.purchase(orderId)).toMatchObject({ state: 'unknown' })
    await app.pass(MINUTE)
    expect(await app.state(orderId)).toBe('fulfilled')
    expect(app.sent).toHaveLength(1)
    app.expectLedger({ charges: 1, keys: 1 })
  })
})
