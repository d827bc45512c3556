import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { formatDecimal } from '../../../src/domain/money.ts'
import { externalOrderId, idempotencyKey } from '../../../src/domain/purchase-keys.ts'
import { Failure } from '../../../src/errors.ts'
import { check, orderBody, orderDigest, orderInput } from '../../../src/http/input.ts'
import type { OrderInput } from '../../../src/ordering/intake.ts'

/** What an accepted text looks like, said another way than the schema does. */
function isPlain(text: string, max: number): boolean {
  const visible = [...text].every((one) => !/[\p{Cc}\p{Zl}\p{Zp}]/u.test(one))
  const ends = [[...text][0], [...text].at(-1)].every((one) => one !== undefined && !/[\s\p{Cf}\p{Z}]/u.test(one))
  return [...text].length <= max && text.isWellFormed() && visible && ends
}

/** The same of a reference, which has no invisible character either. */
const isReference = (text: string, max: number): boolean =>
  isPlain(text, max) && !/[\p{Cf}\p{Bidi_Control}\p{Default_Ignorable_Code_Point}\u2800]/u.test(text)

const anyText = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 30 }),
  fc.string({ maxLength: 30 }),
  fc.string({ unit: fc.constantFrom(' ', '.', '\u200b', '\ud800', '\n', 'a', 'ä', '😀', '\u2028'), maxLength: 6 }),
)
const plain = (max: number) => anyText.filter((text) => isPlain(text, max))
const plainReference = (max: number) => anyText.filter((text) => isReference(text, max))
/** A price as a store writes it. */
const priced = (price: { minor: number; currency: string }) => ({
  unitPrice: formatDecimal(price),
  currency: price.currency,
})
const currencies = fc.constantFrom('EUR', 'JPY', 'KWD')

const price = fc.tuple(fc.nat(10 ** 9), currencies).map(([minor, currency]) => ({ minor, currency }))
const line = fc
  .record({
    id: plainReference(100),
    sku: plain(100),
    quantity: fc.integer({ min: 1, max: 10_000 }),
    price: fc.option(price),
  })
  .map(({ price, ...rest }) => ({
    ...rest,
    ...(price ? priced(price) : {}),
  }))
const orders = fc.record({
  reference: plainReference(200).filter((text) => text !== '.' && text !== '..'),
  lines: fc.uniqueArray(line, { minLength: 1, maxLength: 8, selector: ({ id }) => id }),
})

/** An order with one field that is something else. */
const mangled = fc
  .tuple(
    orders,
    fc.constantFrom('reference', 'lines', 'id', 'sku', 'quantity', 'unitPrice', 'currency', 'more'),
    fc.oneof(fc.jsonValue(), fc.integer({ min: -1, max: 1 }), fc.integer({ min: 9_999, max: 10_002 }), anyText),
  )
  .map(([order, field, value]) => {
    if (['reference', 'lines', 'more'].includes(field)) return { ...order, [field]: value }
    const [first, ...others] = order.lines
    return { ...order, lines: [{ ...first, [field]: value }, ...others] }
  })
/** An order in which a line comes twice. */
const doubled = orders.map((order) => ({ ...order, lines: [...order.lines, ...order.lines.slice(-1)] }))
const anyReference = anyText.map((reference) => ({ reference, lines: [{ id: '1', sku: 'A', quantity: 1 }] }))

function attempt<T>(make: () => T): T | Failure {
  try {
    return make()
  } catch (error) {
    if (error instanceof Failure) return error
    throw error
  }
}

/** What an accepted order must not be, by the documentation of the API. */
function faultsOf({ reference, lines }: OrderInput): string[] {
  const price = (minor: number | null) => minor === null || (Number.isSafeInteger(minor) && minor >= 0)
  const rules: Record<string, boolean> = {
    reference: isReference(reference, 200) && reference !== '.' && reference !== '..',
    'number of lines': lines.length >= 1 && lines.length <= 100,
    'line ids': new Set(lines.map(({ id }) => id)).size === lines.length,
    texts: lines.every(({ id, sku }) => isReference(id, 100) && isPlain(sku, 100)),
    quantities: lines.every(({ quantity }) => Number.isInteger(quantity) && quantity >= 1 && quantity <= 10_000),
    prices: lines.every(({ unitPriceMinor }) => price(unitPriceMinor)),
    currencies: lines.every(({ unitPriceMinor, currency }) => (unitPriceMinor === null) === (currency === null)),
  }
  return Object.keys(rules).filter((rule) => !rules[rule])
}

const read = (body: unknown) => orderInput(check(orderBody, body, 'body'))

describe('intake', () => {
  test('accepts every order that is in order, and changes nothing of it', () => {
    fc.assert(
      fc.property(orders, (order) => {
        const input = read(order)
        expect(input.reference).toBe(order.reference)
        for (const [place, { id, sku, quantity, unitPriceMinor, currency }] of input.lines.entries()) {
          const sent = order.lines[place]
          const unitPrice =
            unitPriceMinor === null || currency === null
              ? undefined
              : formatDecimal({ minor: unitPriceMinor, currency })
          expect({ id, sku, quantity }).toEqual({ id: sent?.id, sku: sent?.sku, quantity: sent?.quantity })
          expect(unitPrice).toBe(sent?.unitPrice)
        }
      }),
      { numRuns: 300 },
    )
  })

  test('answers anything with an order in order or with named faults, and with nothing else', () => {
    fc.assert(
      fc.property(fc.oneof(mangled, doubled, anyReference, fc.jsonValue()), (body) => {
        const input = attempt(() => read(body))
        if (input instanceof Failure) {
          expect(input.code).toBe('invalid')
          expect(input.fields?.length).toBeGreaterThan(0)
        } else expect(faultsOf(input)).toEqual([])
      }),
      { numRuns: 1_000 },
    )
  })

  test('gives one digest to one order, in whatever sequence its lines and fields come', () => {
    fc.assert(
      fc.property(orders, fc.infiniteStream(fc.nat(100)), (order, chance) => {
        const shuffled = <T>(list: T[]): T[] =>
          list
            .map((one) => ({ one, at: chance.next().value }))
            .sort((a, b) => a.at - b.at)
            .map(({ one }) => one)
        const fieldsTurned = (record: object) => Object.fromEntries(shuffled(Object.entries(record)))
        const other = fieldsTurned({ reference: order.reference, lines: shuffled(order.lines).map(fieldsTurned) })
        expect(orderDigest(read(other))).toBe(orderDigest(read(order)))
      }),
      { numRuns: 200 },
    )
  })

  test('gives no two orders one digest, however near they are', () => {
    const lineOf = { minor: 1_999, currency: 'EUR' }
    const changes: ((one: typeof lineOf & Record<string, unknown>) => object)[] = [
      (one) => ({ ...one, id: `${one.id}x` }),
      (one) => ({ ...one, sku: `${one.sku}x` }),
      (one) => ({ ...one, quantity: (Number(one.quantity) % 10_000) + 1 }),
      ({ unitPrice: _, currency: __, ...one }) => ({ ...one, ...priced({ minor: lineOf.minor + 1, currency: 'EUR' }) }),
      // The same number of minor units in another currency.
      ({ unitPrice: _, currency: __, ...one }) => ({ ...one, ...priced({ minor: lineOf.minor, currency: 'KWD' }) }),
      ({ unitPrice: _, currency: __, ...one }) => one,
    ]
    fc.assert(
      fc.property(orders, fc.constantFrom(...changes), (order, change) => {
        const [first, ...others] = order.lines
        const base = { ...first, ...priced(lineOf) }
        const digest = (line: object, reference = order.reference) => {
          return orderDigest(read({ reference, lines: [line, ...others] }))
        }
        const near = change(base as never)
        fc.pre(!others.some(({ id }) => id === (near as typeof first)?.id))
        expect(digest(near)).not.toBe(digest(base))
        expect(digest(base, `${order.reference.slice(0, 190)}x`)).not.toBe(digest(base))
        if (others.length > 0) expect(digest(base)).not.toBe(orderDigest(read({ ...order, lines: [base] })))
      }),
      { numRuns: 300 },
    )
  })

  test('lets in no two lines whose purchases would share a key', () => {
    // Half a character is the one text that two names could share: as UTF-8 each half becomes the same replacement.
    const halves = ['a\ud800b', 'a\udc00b', '\ud83d']
    for (const reference of halves)
      expect(() => read({ reference, lines: [{ id: '1', sku: 'A', quantity: 1 }] })).toThrow(Failure)
    fc.assert(
      fc.property(orders, orders, (one, other) => {
        const names = [one, other].flatMap((order) => read(order).lines.map(({ id }) => [order.reference, id] as const))
        const distinct = new Set(names.map((name) => JSON.stringify(name))).size
        const keysOf = ([reference, id]: (typeof names)[number]) => {
          const name = { store: 'demo-a1b2c3d4', reference, line: id, part: 1, generation: 1 }
          return { key: idempotencyKey(name), external: externalOrderId(name, 64) }
        }
        const keys = names.map(keysOf)
        expect(new Set(keys.map(({ key }) => key)).size).toBe(distinct)
        expect(new Set(keys.map(({ external }) => external)).size).toBe(distinct)
      }),
      { numRuns: 200 },
    )
  })
})
