/** What `stores add` makes of what a person types, before a shop is asked and after it answered. */
import { describe, expect, test } from 'vitest'
import { causeOfNoAnswer, jsonIn, TooLong, textOf } from '../../src/stores/connection.ts'
import { clockFindings } from '../../src/stores/findings.ts'
import { handingOver } from '../../src/stores/shop-hand-over.ts'
import { shopify } from '../../src/stores/shopify/kind.ts'
import { questions as ofShopify } from '../../src/stores/shopify/questions.ts'
import type { StorePage, StoreVariant } from '../../src/stores/store.ts'
import { firstVariants } from '../../src/stores/store-kind.ts'
import { wooCommerce } from '../../src/stores/woocommerce/kind.ts'
import { questions as ofWooCommerce } from '../../src/stores/woocommerce/questions.ts'

describe('the credentials of a shop', () => {
  const read = (text: string, kind: typeof wooCommerce | typeof shopify) => {
    const { key, secret, previousSecret } = kind.shop.readCredentials(text) ?? {}
    return [key, secret, previousSecret].flatMap((one) => one?.reveal() ?? [])
  }

  test.each([
    ['ck_1:cs_2', ['ck_1', 'cs_2']],
    ['cs_2:ck_1', []],
    ['ck_1', []],
    ['ck_1:', []],
    ['ck:cs_2', []],
    ['ck_1:cs 2', []],
    ['ck_1:ck_2', []],
    // So the secret of before does not become a part of the new one where the credentials are changed.
    ['ck_1:cs_2:cs_1', []],
  ])('of WooCommerce %s are %j', (text, parts) => {
    expect(read(text, wooCommerce)).toEqual(parts)
  })

  test.each([
    ['client:secret', ['client', 'secret']],
    ['client:secret:before', ['client', 'secret', 'before']],
    ['client:secret:before:more', []],
    ['client', []],
    ['client:sec ret', []],
    ['client:secret:b', []],
  ])('of Shopify %s are %j', (text, parts) => {
    expect(read(text, shopify)).toEqual(parts)
  })

  test.each([
    ['client:shpss_1', true],
    ['shpat_1:shpss_1', true],
    ['shpss_1:client', false],
    ['client:shpat_1', false],
  ])('of Shopify %s are taken: %s, because others are no more than wrong', (text, isTaken) => {
    expect(ofShopify.readCredentials(text) !== undefined).toBe(isTaken)
  })
})

describe('the address of a shop as a person types it', () => {
  test.each([
    ['my-shop', 'https://my-shop.myshopify.com'],
    ['My-Shop.myshopify.com', 'https://my-shop.myshopify.com'],
    ['https://my-shop.myshopify.com/admin', 'https://my-shop.myshopify.com'],
    ['https://admin.shopify.com/store/my-shop/orders', 'https://my-shop.myshopify.com'],
    ['http://127.0.0.1:4000/x', 'http://127.0.0.1:4000'],
    ['https://shop.example', undefined],
    ['https://other.example/store/my-shop', undefined],
    ['-shop', undefined],
  ])('of Shopify %s is %s', (text, url) => {
    const found = ofShopify.readAddress(text)
    expect('url' in found ? found.url : undefined).toBe(url)
  })

  test.each([
    ['https://shop.example/folder', 'https://shop.example/folder'],
    ['https://shop.example/wp-admin/edit.php', undefined],
    ['https://shop.example/wp-json', undefined],
    ['https://shop.example/wp-jsonx', 'https://shop.example/wp-jsonx'],
    ['shop.example', undefined],
  ])('of WooCommerce %s is %s', (text, url) => {
    const found = ofWooCommerce.readAddress(text)
    expect('url' in found ? found.url : undefined).toBe(url)
  })
})

describe('what a person most likely corrects', () => {
  const failed = (check: string, detail: string) => ({ check, detail, state: 'failed', fix: null }) as const

  test.each([
    ['permissions', 'the key may read, and may not write orders', 'key'],
    ['connection', 'it answered 401: it knows the consumer key and does not accept the request', 'key'],
    ['connection', 'nothing listens at shop.example', 'address'],
  ])('after %s: %s of WooCommerce is the %s', (check, detail, what) => {
    expect(ofWooCommerce.correctionOf(failed(check, detail))).toBe(what)
  })

  test.each([
    ['permissions', 'the app lacks the access scope write_orders', 'again'],
    ['connection', 'the app is not installed in the shop', 'again'],
    ['connection', 'an IP allowlist of the app leaves this machine out', 'again'],
    ['connection', 'it does not accept the access token', 'key'],
    ['connection', 'the app belongs to another organisation than the shop', 'key'],
    ['connection', 'there is no shop of Shopify at this address', 'address'],
  ])('after %s: %s of Shopify is the %s', (check, detail, what) => {
    expect(ofShopify.correctionOf(failed(check, detail))).toBe(what)
  })
})

test.each([
  [300_000, 'ok', 'its clock and that of this machine agree'],
  [-300_000, 'ok', 'its clock and that of this machine agree'],
  [301_000, 'doubtful', 'behind that of this machine'],
  [-301_000, 'doubtful', 'ahead of that of this machine'],
])('a clock from which that of this machine differs by %i ms is %s', (aheadMs, state, words) => {
  const finding = { check: 'clock', state, detail: expect.stringContaining(words) }
  expect(clockFindings(1_000_000 + aheadMs, 1_000_000)).toMatchObject([finding])
  expect(clockFindings(1_000_000, null)).toEqual([])
})

describe('why a shop did not answer', () => {
  test.each([
    [{ name: 'TimeoutError' }, 'shop:1 did not answer within 30 s'],
    [{ code: 'UND_ERR_HEADERS_TIMEOUT' }, 'shop:1 did not answer within 30 s'],
    [{ code: 'ETIMEDOUT' }, 'shop:1 did not answer within 30 s'],
    [{ code: 'ENOTFOUND' }, 'the name of shop:1 cannot be resolved'],
    [{ code: 'EAI_AGAIN' }, 'the name of shop:1 cannot be resolved'],
    [{ code: 'ECONNREFUSED' }, 'nothing listens at shop:1'],
    [{ code: 'ECONNRESET' }, 'shop:1 closed the connection without an answer'],
    [{ code: 'EPIPE' }, 'shop:1 closed the connection without an answer'],
    [{ code: 'UND_ERR_SOCKET' }, 'shop:1 closed the connection without an answer'],
    [
      { code: 'DEPTH_ZERO_SELF_SIGNED_CERT' },
      'the certificate of shop:1 is not accepted (DEPTH_ZERO_SELF_SIGNED_CERT)',
    ],
    [{ code: 'UNABLE_TO_GET_ISSUER' }, 'the certificate of shop:1 is not accepted'],
    [{ code: 'EHOSTUNREACH' }, 'shop:1 cannot be reached: EHOSTUNREACH'],
    [new Error('odd'), 'shop:1 cannot be reached: odd'],
  ])('by %j is a sentence', (error, words) => {
    expect(causeOfNoAnswer(error, 'shop:1', 30_000)).toContain(words)
  })

  test('is its length where no shop answers so long', async () => {
    const bytes = async function* (count: number) {
      for (let at = 0; at < count; at += 1) yield new Uint8Array(1)
    }
    expect(await textOf(bytes(32), 32)).toHaveLength(32)
    await expect(textOf(bytes(33), 32)).rejects.toBeInstanceOf(TooLong)
  })

  test('is nothing where it says null, or no JSON', () => {
    expect([jsonIn('null'), jsonIn('<p>'), jsonIn(''), jsonIn('0'), jsonIn('{}')]).toEqual([
      undefined,
      undefined,
      undefined,
      0,
      {},
    ])
  })
})

describe('a first look at what a shop sells', () => {
  const variant = (id: string): StoreVariant => ({ id, sku: id, name: id })
  const pages =
    (count: number) =>
    async (cursor: string | null): Promise<StorePage<StoreVariant>> => {
      const at = Number(cursor ?? 0)
      return { outcome: 'read', items: [variant(String(at))], next: at + 1 < count ? String(at + 1) : null }
    }

  test('is whole where the list ends within the pages that a person waits for', async () => {
    expect(await firstVariants(pages(3), 3)).toEqual({
      outcome: 'read',
      items: ['0', '1', '2'].map(variant),
      isWhole: true,
    })
    expect(await firstVariants(pages(4), 3)).toEqual({
      outcome: 'read',
      items: ['0', '1', '2'].map(variant),
      isWhole: false,
    })
  })

  test('is none where a page cannot be read', async () => {
    const failure = { outcome: 'unavailable', mayHaveLeft: false, detail: 'x' } as const
    expect(await firstVariants(async (cursor) => (cursor === null ? pages(2)(null) : failure), 3)).toEqual(failure)
  })
})

test('a remark on an order says of how many units of what it is, and has one stop at its end', async () => {
  const said: string[] = []
  const confirmed = async () => ({ outcome: 'confirmed' }) as const
  const remark = (_shop: string, reference: string, id: string, words: string) => {
    said.push(`${reference} ${id} ${words}`)
    return confirmed()
  }
  const shop = handingOver(() => 'shop', { fulfil: confirmed, closeOrder: confirmed, resend: confirmed, remark })
  const about = { order: { store: 'demo-1', reference: '1' }, line: { id: '1', sku: 'A', quantity: 3 }, units: 2 }
  const failed = {
    ...about,
    type: 'line.failed',
    state: 'failed',
    code: 'c',
    message: 'none are left. ',
    advice: 'Refund it.',
  } as const
  const held = { ...about, type: 'line.held', reason: 'out_of_stock', message: 'none are left.' } as const
  await shop.reportFailure({ id: 'a', at: 0, ...failed })
  await shop.reportHeld({ id: 'b', at: 0, ...held })
  await shop.reportResumed({ id: 'c', at: 0, ...about, type: 'line.resumed' })
  await shop.reportRefusal({ id: 'd', reference: '1', message: 'it is odd.' })
  expect(said).toEqual([
    '1 a Quayside: 2 of 3 × A will not come: none are left. Refund it.',
    '1 b Quayside: 2 of 3 × A wait: none are left.',
    '1 c Quayside: 2 of 3 × A are being bought again.',
    '1 d Quayside: nothing is bought for this order: it is odd. Once that is put right, save the order.',
  ])
})
