import { describe, expect, onTestFinished, test } from 'vitest'
import type { Dialect } from '../../src/dialect/dialect.ts'
import { readDelivery } from '../../src/inbox/sources.ts'
import { Secret } from '../../src/secret.ts'
import { createSupplier, orderBody } from '../../src/supplier/client.ts'
import { signingKey, verify } from '../../src/supplier/signature.ts'
import { type CapturedFile, distinct, fixture } from '../support/dialect-files.ts'
import { contrary, standard } from '../support/dialect-pair.ts'
import { type Heard, sendJson, startHttp } from '../support/supplier-server.ts'

const PRODUCT = '6f1c2a34-0d5e-4b7a-9c1e-2f3a4b5c6d7e'
const ORDER = 'b7a1f6c2-1111-4222-8333-944455556666'
const REFERENCE = 'q1.main-k3j9x2p7.1001.1.1.1'
const expected = { productId: PRODUCT, quantity: 2, externalOrderId: REFERENCE }

/** The client under the contrary dialect, over a server that gives one fixed answer. */
async function clientOf(answer: unknown, { status = 200, headers = {}, dialect = contrary } = {}) {
  const server = await startHttp((_heard, response) => sendJson(response, status, answer, headers))
  const supplier = createSupplier({
    baseUrl: `${server.origin}/v1`,
    dialect,
    apiKey: new Secret('key-1'),
    now: () => 1_767_225_600_123,
    sleep: () => Promise.resolve(),
    random: () => 0.5,
  })
  onTestFinished(async () => {
    await supplier.close()
    await server.close()
  })
  const asked = (): Heard => {
    const [heard] = server.heard
    if (!heard) throw new Error('nothing was asked')
    return heard
  }
  return { supplier, asked }
}

describe('the fixed answers of the contrary dialect are read as what they say', () => {
  test('a product', async () => {
    const { supplier, asked } = await clientOf(fixture('contrary/product.json'))
    expect(await supplier.product(PRODUCT)).toEqual({
      productId: PRODUCT,
      sku: 'OS-HALDEN-11',
      name: 'Halden Desktop 11',
      category: 'operating-systems',
      description: 'The desktop.\n\nFor 1 device.',
      image: 'https://cdn.example/halden-11.png',
      costMinor: 1_899,
      basePriceMinor: 2_400,
      cashbackMinor: 24,
      currency: 'JPY',
      localStock: 4,
      providerStock: 31,
      available: true,
      origin: 'local',
      asOf: 1_767_225_600_123,
    })
    expect(asked()).toMatchObject({
      method: 'GET',
      url: `/v1/products/${PRODUCT}`,
      headers: { 'x-caller-key': 'key-1' },
    })
    expect(asked().headers).not.toHaveProperty('x-api-key')
  })

  test('a page of products', async () => {
    const { supplier, asked } = await clientOf(fixture('contrary/page.json'))
    const page = await supplier.products({ page: 2, limit: 100 })
    expect(page).toMatchObject({ more: true, unreadable: [] })
    expect(page).not.toHaveProperty('total')
    expect(page.items).toEqual([
      ...[
        { productId: PRODUCT, sku: 'OS-HALDEN-11', name: 'Halden Desktop 11', costMinor: 1_899, currency: 'JPY' },
      ].map((offer) => ({ ...offer, available: true })),
      {
        productId: '00000000-0000-4000-8000-000000000002',
        sku: 'VPN-FJORD-1Y',
        name: 'Fjordline VPN, 1 year',
        costMinor: 0,
        costFault: 'currency',
        currency: 'EUR',
        localStock: 0,
        providerStock: 0,
        available: false,
      },
    ])
    expect(asked().url).toBe('/v1/products?sheet=1&rows_per_sheet=25')
  })

  test.each([
    ['order-open.json', { status: 'open', statusWord: 'PACKING', updatedAt: 1_767_225_600_123 }],
    ['order-completed.json', { status: 'completed', statusWord: 'SERVED', updatedAt: 1_767_225_601_456 }],
    [
      'order-failed.json',
      {
        status: 'failed',
        failureCode: 'E_EMPTY',
        failureMessage: 'No seller had one left.',
        updatedAt: 1_767_225_602_000,
      },
    ],
  ])('an order: %s', async (file, facts) => {
    const { supplier } = await clientOf(fixture(`contrary/${file}`))
    const order = await supplier.order(ORDER)
    expect(order).toMatchObject({ id: ORDER, ...expected, amountMinor: 3_798, currency: 'JPY', ...facts })
    expect(order?.createdAt).toBe(1_767_225_600_123)
    const keys = file === 'order-completed.json' ? ['AAAAA-BBBBB-CCCCC', 'DDDDD-EEEEE-FFFFF'] : []
    expect(order?.keys.map((key) => key.reveal())).toEqual(keys)
    expect(order && supplier.differs(order, expected)).toBeUndefined()
    expect(order && supplier.differs(order, { ...expected, quantity: 3 })).toContain('order.quantity of the dialect')
  })

  test('a list of orders, asked for in its own words, without the filter that it has not', async () => {
    const { supplier, asked } = await clientOf(fixture('contrary/orders.json'))
    const query = { page: 1, externalOrderId: REFERENCE, from: 1_767_225_600_123, to: 1_767_225_700_000 }
    const page = await supplier.orders(query)
    expect(page).toMatchObject({ more: false, items: [{ id: ORDER, status: 'refunded', statusWord: 'RETURNED' }] })
    expect(asked().url).toBe('/v1/orders?sheet=0&rows_per_sheet=25&since=1767225600123&until=1767225700000')
  })

  test('the balance', async () => {
    const { supplier } = await clientOf(fixture('contrary/balance.json'))
    expect(await supplier.balance()).toEqual({
      amountMinor: 123_456,
      currency: 'JPY',
      tier: 'silver',
      requestsPerMinute: 90,
      quantityMax: 3,
    })
  })

  test('a webhook that is made, with its secret, and the list of them', async () => {
    const url = 'https://shop.example/webhooks/supplier'
    const made = await clientOf(fixture('contrary/webhook.json'), { status: 201 })
    const { webhook, secret } = await made.supplier.createWebhook({ url, events: ['order.completed', 'balance.low'] })
    expect(webhook).toEqual({
      id: 'hook-7',
      url,
      events: ['order.completed', 'balance.low'],
      createdAt: 1_767_225_600_123,
    })
    expect(secret.reveal()).toBe('contrary-secret-0123456789abcdef')
    expect(JSON.parse(made.asked().body)).toEqual({ target: { address: url }, topics: ['ORDER_SERVED', 'FUNDS_LOW'] })
    const listed = await clientOf(fixture('contrary/webhooks.json'))
    expect((await listed.supplier.webhooks()).items).toMatchObject([{ id: 'hook-7', url }])
  })

  test('an order that is placed', async () => {
    const body = orderBody(contrary, expected)
    expect(body).toBe(`{"article":"${PRODUCT}","pieces":2,"your_ref":"${REFERENCE}"}`)
    const { supplier, asked } = await clientOf(fixture('contrary/order-open.json'), { status: 201 })
    const request = { body, idempotencyKey: 'once-1', expected, maybeCharged: false, deadlineMs: 5_000 }
    expect(await supplier.placeOrder(request)).toMatchObject({ outcome: 'accepted', order: { id: ORDER } })
    expect(asked()).toMatchObject({ method: 'POST', url: '/v1/orders', body, headers: { 'x-once': 'once-1' } })
  })
})

interface ErrorCase {
  status: number
  word: string
  outcome: string
  reason: string
}

describe('the fixed errors of the contrary dialect mean what they say for money', () => {
  test.each(fixture('contrary/errors.json') as ErrorCase[])('$status $word', async ({ status, word, ...meant }) => {
    const answer = { fine: 'BAD', fault: { word, says: 'No.' }, trace: 'trace-9' }
    const headers = { 'x-trace': 'trace-8', 'x-come-back': '7', 'retry-after': '3000' }
    const { supplier } = await clientOf(answer, { status, headers })
    const request = { body: '{}', idempotencyKey: 'once-1', expected, maybeCharged: false, deadlineMs: 5_000 }
    const placement = await supplier.placeOrder(request)
    const reason = 'reason' in placement ? placement.reason : 'cause' in placement ? placement.cause : ''
    expect({ outcome: placement.outcome, reason }).toEqual(meant)
    expect(placement.evidence).toMatchObject({ requestId: 'trace-8', code: word })
    if (status === 429) expect(placement).toMatchObject({ retryAfterMs: 7_000 })
  })

  test.each([
    [404, 'E_NONE'],
    [410, 'E_PAST'],
  ])('%i %s is no product', async (status, word) => {
    const { supplier } = await clientOf({ fine: 'BAD', fault: { word, says: 'No.' }, trace: 't' }, { status })
    expect(await supplier.product(PRODUCT)).toBeUndefined()
  })

  test('the rate-limit headers are read in their unit', async () => {
    const headers = { 'x-quota': '10', 'x-quota-left': '0', 'x-quota-reset': '90' }
    const { supplier } = await clientOf(fixture('contrary/balance.json'), { headers })
    await supplier.balance()
    // Nothing is left for 90 s, which is longer than a read waits.
    await expect(supplier.balance()).rejects.toMatchObject({ reason: 'rate_limited' })
  })
})

type Signed = CapturedFile<{ reading: Record<string, unknown> }> & { signedAt: number }

describe('the fixed deliveries of the contrary dialect', () => {
  const { secret, signedAt, deliveries } = fixture('contrary/deliveries.json') as Signed
  const secrets = [signingKey(new Secret(secret))]
  const check = (delivery: Signed['deliveries'][number], dialect: Dialect, nowMs = signedAt) =>
    verify({ dialect, secrets, nowMs, headers: distinct(delivery.headers), body: Buffer.from(delivery.body, 'base64') })

  test.each(deliveries)('verify and say: $name', (delivery) => {
    expect(check(delivery, contrary)).toMatchObject({
      valid: true,
      timestampMs: signedAt,
      deliveryId: delivery.headers['x-message'],
    })
    expect(readDelivery(Buffer.from(delivery.body, 'base64'), contrary)).toMatchObject(delivery.reading)
  })

  test.each(deliveries)('are refused under the default: $name', (delivery) => {
    expect(check(delivery, standard)).toEqual({ valid: false, reason: 'missing_signature' })
  })

  test('are stale after the tolerance of the dialect', () => {
    for (const delivery of deliveries) {
      expect(check(delivery, contrary, signedAt + 120_000)).toMatchObject({ valid: true })
      expect(check(delivery, contrary, signedAt + 120_001)).toMatchObject({ valid: false, reason: 'stale' })
    }
  })

  test('are distinguished by the id of their event where no header has one', () => {
    const dialect = { ...contrary, signature: { ...contrary.signature, deliveryIdHeader: null } }
    const ids = deliveries.map((delivery) => check(delivery, dialect)).map((one) => one.valid && one.deliveryId)
    expect(ids.slice(0, 8)).toEqual(['evt-1', 'evt-2', 'evt-3', 'evt-4', 'evt-5', 'evt-6', 'evt-7', 'evt-8'])
    expect(ids[8], 'the digest of what was signed').toMatch(/^[0-9a-f]{64}$/)
  })

  // Each change alone must matter: a reader that ignores the setting would go on accepting.
  test.each<[string, Partial<Dialect['signature']>]>([
    ['header', { header: 'x-message' }],
    ['encoding', { encoding: 'base64url' }],
    ['prefix', { prefix: 'v2=' }],
    ['separator', { separator: ';' }],
    ['timestamp', { timestamp: { in: 'signature', field: 'ts' } }],
    ['timestampUnit', { timestampUnit: 's' }],
  ])('are refused with another %s', (_name, change) => {
    const dialect = { ...contrary, signature: { ...contrary.signature, ...change } }
    for (const delivery of deliveries) expect(check(delivery, dialect).valid).toBe(false)
  })
})
