/** The shipped dialect against the mock: what Quayside makes of each answer, and each fact that the documents leave open both ways. */
import { describe, expect, onTestFinished, test } from 'vitest'
import type { Placement } from '../../src/domain/supplier.ts'
import { Secret } from '../../src/secret.ts'
import { createSupplier, orderBody } from '../../src/supplier/client.ts'
import { type KinguinOptions, type OrderFault, startKinguin } from './kinguin.ts'
import type { ErrorKind } from './kinguin-ledger.ts'
import { KINGUIN } from './kinguin-service.ts'

async function open(options: KinguinOptions = {}) {
  const kinguin = await startKinguin({ deliverMs: null, ...options })
  const supplier = createSupplier({
    baseUrl: kinguin.baseUrl,
    dialect: KINGUIN,
    apiKey: new Secret(kinguin.apiKey),
    now: Date.now,
    sleep: async () => undefined,
    random: () => 0,
  })
  onTestFinished(async () => {
    await supplier.close()
    await kinguin.close()
  })
  const { ledger } = kinguin
  const [product] = ledger.products
  if (!product) throw new Error('no product')
  /** @param cents what is offered above the price of the product */
  const place = (reference = 'r1', { quantity = 2, cents = 0, fault = 'nothing' as OrderFault } = {}) => {
    kinguin.orderFaults.push(fault)
    const expected = { productId: product.productId, quantity, externalOrderId: reference }
    const price = { minor: ledger.figuresOf(product).price + cents, currency: 'EUR' }
    const body = orderBody(KINGUIN, expected, { idempotencyKey: 'k', price })
    return supplier.placeOrder({ body, idempotencyKey: 'k', expected, maybeCharged: false, deadlineMs: 5_000 })
  }
  /** The keys of the first order, revealed, once it is completed. */
  const keys = async () => {
    const [order] = ledger.orders
    if (!order) throw new Error('no order')
    kinguin.deliver(order)
    const read = await supplier.order(order.orderId)
    return { read, texts: read?.keys.map((key) => key.reveal()), serials: order.keys.map(({ serial }) => serial) }
  }
  return { kinguin, supplier, ledger, product, place, keys }
}

/** What is charged, beside what Quayside takes the answer for. */
const judged = (placement: Placement, { charges }: { charges: unknown[] }) => ({
  outcome: placement.outcome,
  ...('reason' in placement ? { reason: placement.reason } : {}),
  charges: charges.length,
})

describe("Kinguin's products", () => {
  test('come page by page, without pre-orders, with price and count of the cheapest offers', async () => {
    const { supplier, ledger } = await open({ products: 150 })
    const [first, second] = [await supplier.products({ page: 1 }), await supplier.products({ page: 2 })]
    const offers = [...first.items, ...second.items]
    const sold = ledger.products.filter(({ isPreorder }) => !isPreorder)
    expect({ total: first.total, unreadable: first.unreadable }).toEqual({ total: 147, unreadable: [] })
    expect(
      offers.map(({ productId, costMinor, localStock, available }) => ({
        productId,
        costMinor,
        localStock,
        available,
      })),
    ).toEqual(
      sold.map((product) => {
        const { price, textQty } = ledger.figuresOf(product)
        return { productId: product.productId, costMinor: price, localStock: textQty, available: true }
      }),
    )
  })

  test('that have pictures alone are not available', async () => {
    const { supplier, product } = await open()
    for (const offer of product.offers) Object.assign(offer, { texts: 0, pictures: 4 })
    expect(await supplier.product(product.productId)).toMatchObject({ available: false, localStock: 0 })
  })

  test.each<[string, KinguinOptions]>([
    ['404 with the kind of a bad request', { unknownProduct: 'Http' }],
    ['404 with the kind of an order', { unknownProduct: 'OrderNotFound' }],
  ])('that are sold out are no longer there: %s', async (_, options) => {
    const { supplier, product } = await open(options)
    for (const offer of product.offers) Object.assign(offer, { texts: 0, pictures: 0 })
    expect(await supplier.product(product.productId)).toBeUndefined()
  })

  test.each<[string, KinguinOptions]>([
    ['another kind', { unknownProduct: 'ProductUnavailable' }],
    ['no body', { unknownProduct: 'none' }],
  ])('whose 404 has %s are an error, and not taken for sold out', async (_, options) => {
    const { supplier, product } = await open(options)
    for (const offer of product.offers) Object.assign(offer, { texts: 0, pictures: 0 })
    await expect(supplier.product(product.productId)).rejects.toThrow(/supplier/)
  })

  test('that are listed at none are not available', async () => {
    const { supplier, product } = await open({ facts: { soldOut: 'listed' } })
    for (const offer of product.offers) Object.assign(offer, { texts: 0, pictures: 0 })
    expect(await supplier.product(product.productId)).toMatchObject({ available: false })
  })
})

describe("Kinguin's orders", () => {
  test('state their charge, and their keys come by a second read', async () => {
    const { place, ledger, keys, supplier } = await open()
    const placement = await place()
    expect(judged(placement, ledger)).toEqual({ outcome: 'accepted', charges: 1 })
    const { read, texts, serials } = await keys()
    expect(read).toMatchObject({ status: 'completed', amountMinor: 398, quantity: 2, externalOrderId: 'r1' })
    expect(texts).toEqual(serials)
    const { items } = await supplier.orders({ page: 1, externalOrderId: 'r1', from: Date.now() - 60_000 })
    expect(items).toHaveLength(1)
    expect(await supplier.order('PUNKNOWN')).toBeUndefined()
    expect(await supplier.balance()).toEqual({ amountMinor: 10_000_000 - 398, currency: 'EUR' })
  })

  test('may be of several offers: the count is that of all of them', async () => {
    const { kinguin, place, product, ledger } = await open()
    product.offers.push({ offerId: 'second', price: product.offers[0]?.price ?? 0, texts: 1, pictures: 0 })
    for (const offer of product.offers) offer.texts = 1
    expect(judged(await place(), ledger)).toEqual({ outcome: 'accepted', charges: 1 })
    expect(kinguin.ledger.orders[0]?.lines).toHaveLength(2)
  })

  test.each([
    ['a number', 'number', 0, 398],
    ['text', 'text', 0, 398],
    ['less than was asked for', 'number', 10, 358],
  ] as const)('state a charge that is %s', async (_, paymentPrice, discountPercent, amountMinor) => {
    const { place } = await open({ facts: { paymentPrice, discountPercent } })
    expect(await place()).toMatchObject({ outcome: 'accepted', order: { amountMinor } })
  })

  test.each([
    ['ceiling', 'accepted', 1],
    ['exact', 'rejected', 0],
  ] as const)('at a price that has fallen meanwhile, where the price is %s: %s', async (price, outcome, charges) => {
    const { place, ledger } = await open({ facts: { price } })
    expect(judged(await place('r1', { cents: 50 }), ledger)).toMatchObject({ outcome, charges })
    if (charges > 0) expect(ledger.charges[0]?.amount).toBe(398)
  })

  test('at a price that has risen meanwhile are refused as out of stock, and nothing is charged', async () => {
    const { place, ledger } = await open()
    const placement = await place('r1', { cents: -1 })
    expect(judged(placement, ledger)).toEqual({ outcome: 'rejected', reason: 'out_of_stock', charges: 0 })
  })

  test('that name the product by another id are not believed, whatever they cost', async () => {
    const { place, ledger } = await open({ facts: { productIdOfOrder: 'another' } })
    expect(judged(await place(), ledger)).toEqual({ outcome: 'unknown', charges: 1 })
  })

  test('of a second with the same reference may be taken or refused: the dialect relies on neither', async () => {
    for (const secondReference of ['accepted', 'refused'] as const) {
      const { place, ledger } = await open({ facts: { secondReference } })
      await place()
      const again = await place()
      expect(judged(again, ledger)).toEqual(
        secondReference === 'accepted'
          ? { outcome: 'accepted', charges: 2 }
          : { outcome: 'rejected', reason: 'other', charges: 1 },
      )
    }
    expect(KINGUIN.idempotency).toBe('none')
  })

  // Of each kind the documents give a sentence, and no more: which status it has, and whether it may come after the charge.
  const statuses = [400, 402, 404, 409, 422, 500]
  test.each<[ErrorKind, 'may be charged' | 'not charged']>([
    ['ConstraintViolation', 'not charged'],
    ['Preorder', 'not charged'],
    ['ProductUnavailable', 'not charged'],
    ['InsufficientBalance', 'not charged'],
    ['OrderNotSupported', 'not charged'],
    ['Http', 'not charged'],
    ['OrderFailed', 'may be charged'],
    ['ResourceLock', 'may be charged'],
    ['HttpClient', 'may be charged'],
    ['Error', 'may be charged'],
  ])('that are refused as %s: %s', async (error, meaning) => {
    const { place } = await open()
    for (const status of statuses) {
      const { outcome } = await place(`r${status}`, { fault: { error, charged: false, status } })
      // Under 5xx, and under a conflict of which the dialect does not say that nothing is charged, any refusal may come after a charge.
      const isKnown = error === 'ProductUnavailable' || error === 'InsufficientBalance'
      const inDoubt = meaning === 'may be charged' || status >= 500 || (status === 409 && !isKnown)
      expect({ status, outcome }).toEqual({ status, outcome: inDoubt ? 'unknown' : 'rejected' })
    }
  })

  test.each<[OrderFault, string, number]>([
    ['lost before', 'unknown', 0],
    ['lost after', 'unknown', 1],
    ['cut', 'unknown', 1],
    [{ error: 'Error', charged: true }, 'unknown', 1],
    [{ error: 'Error', charged: true, status: 400 }, 'unknown', 1],
    ['limited', 'not_executed', 0],
  ])('whose answer is %j are %s', async (fault, outcome, charges) => {
    const { place, ledger } = await open()
    expect(judged(await place('r1', { fault }), ledger)).toEqual({ outcome, charges })
  })
})

describe("Kinguin's keys", () => {
  test('that are pictures are read as pictures', async () => {
    const { ledger, place, product, keys } = await open({ facts: { keyType: 'ignored' } })
    for (const offer of product.offers) Object.assign(offer, { texts: 0, pictures: 4 })
    // The figures show no texts: someone bought the last one just now.
    expect(judged(await place('r1', { quantity: 3 }), ledger)).toEqual({ outcome: 'accepted', charges: 1 })
    const { read, texts, serials } = await keys()
    expect(texts).toEqual(serials)
    expect(read?.keys.map(({ type }) => type)).toEqual(['image', 'image', 'image'])
  })

  test.each(['one by one', 'together'] as const)(
    'that come %s are read once the order is completed',
    async (keysCome) => {
      const { kinguin, supplier, ledger, place } = await open({ facts: { keysCome } })
      await place()
      const [order] = ledger.orders
      if (!order) throw new Error('no order')
      const read = async () => {
        const now = await supplier.order(order.orderId)
        return { status: now?.status, keys: now?.keys.length }
      }
      kinguin.deliver(order, 1)
      expect(await read()).toEqual({ status: 'open', keys: 0 })
      kinguin.deliver(order)
      expect(await read()).toEqual({ status: 'completed', keys: 2 })
    },
  )
})
