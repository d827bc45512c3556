import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import fc from 'fast-check'
import { afterAll, describe, expect, test } from 'vitest'
import { type Dialect, putAt, readDialect, valueAt } from '../../../src/dialect/dialect.ts'
import { withoutKeys } from '../../../src/domain/free-text.ts'
import { decimalsOf, formatDecimal } from '../../../src/domain/money.ts'
import { Failure } from '../../../src/errors.ts'
import { parseOffer } from '../../../src/supplier/offer-record.ts'
import { errorAnswer, parseOrder, readJson } from '../../../src/supplier/records.ts'
import { dialects, pathsFor, write } from '../../support/dialect-arbitrary.ts'
import { bothDialects, leavesOf } from '../../support/dialect-pair.ts'

const folder = mkdtempSync(path.join(tmpdir(), 'quayside-dialects-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

/** Reads what is written into a file, as the program does at its start. */
function readFile(value: unknown): Dialect {
  const file = path.join(folder, 'dialect.json')
  writeFileSync(file, JSON.stringify(value))
  return readDialect(file)
}

describe('a dialect file', () => {
  test('is read as it is written', () => {
    fc.assert(
      fc.property(dialects, (dialect) => {
        expect(readFile(dialect)).toEqual(dialect)
      }),
      { numRuns: 100 },
    )
  })

  const anyLeaf = fc.constantFrom(
    ...bothDialects.flatMap(({ dialect }) => [...leavesOf(dialect).keys()].map((leaf) => ({ dialect, leaf }))),
  )
  /** The dialect with one of its fields changed by `change`. */
  const changed = (
    dialect: Dialect,
    leaf: string,
    change: (place: Record<string, unknown>, name: string) => void,
  ): unknown => {
    const copy = structuredClone(dialect) as unknown as Record<string, unknown>
    const names = leaf.split('/')
    const last = names.pop() ?? ''
    change(
      names.reduce((place, name) => place[name] as Record<string, unknown>, copy),
      last,
    )
    return copy
  }

  test('with a field too many, anywhere, is refused by the name of the field', () => {
    fc.assert(
      fc.property(anyLeaf, ({ dialect, leaf }) => {
        // These hold words of the supplier: any name is a word there.
        fc.pre(!leaf.startsWith('orderStatuses/'))
        const text = JSON.stringify(changed(dialect, leaf, (place) => (place['mis-spelt'] = 'x')))
        expect(() => readFile(JSON.parse(text))).toThrow(/mis-spelt/)
      }),
      { numRuns: 150 },
    )
  })

  test('with a field of another kind is refused, and the refusal names it', () => {
    const wrong = fc.constantFrom<unknown>({}, [], 1.5, -1, true, 'Ä', '', [{}], Number.MAX_VALUE)
    fc.assert(
      fc.property(anyLeaf, wrong, ({ dialect, leaf }, value) => {
        const before = leavesOf(dialect).get(leaf)
        // A value of the same kind may be right: only a change of kind is surely wrong.
        fc.pre(kindOf(before) !== kindOf(value) && before !== null && !(Array.isArray(before) && Array.isArray(value)))
        fc.pre(!(kindOf(before) === 'number' && kindOf(value) === 'fraction'))
        try {
          readFile(changed(dialect, leaf, (place, name) => (place[name] = value)))
          expect.fail(`${leaf} may be ${JSON.stringify(value)}`)
        } catch (error) {
          if (!(error instanceof Failure)) throw error
          expect(error).toMatchObject({ code: 'invalid' })
          const named = error.fields?.some(({ field }) => leaf.replaceAll('/', '.').startsWith(field))
          expect(named, `${leaf}: ${error.message}`).toBe(true)
        }
      }),
      { numRuns: 300 },
    )
  })

  test('that is no JSON, or no object, is refused', () => {
    fc.assert(
      fc.property(fc.oneof(fc.jsonValue(), fc.constant(undefined)), fc.string(), (value, text) => {
        fc.pre(typeof value !== 'object' || value === null || !('name' in value))
        expect(() => readFile(value ?? text)).toThrow(Failure)
      }),
      { numRuns: 100 },
    )
  })
})

describe('a path of a dialect', () => {
  const names = ['one', 'two', 'three'] as const

  test('leads to what was written at it, beside any other', () => {
    fc.assert(
      fc.property(pathsFor(names), fc.tuple(fc.jsonValue(), fc.jsonValue(), fc.jsonValue()), (paths, values) => {
        const [ours, theirs]: [Record<string, unknown>, object] = [{}, {}]
        for (const [place, name] of names.entries()) {
          putAt(ours, paths[name], values[place])
          write(theirs, paths[name], values[place])
        }
        expect(JSON.stringify(ours)).toBe(JSON.stringify(theirs))
        for (const [place, name] of names.entries()) expect(valueAt(theirs, paths[name])).toBe(values[place])
      }),
      { numRuns: 300 },
    )
  })

  test('leads nowhere in a record that does not have it, whatever objects have by themselves', () => {
    const inherited = fc.constantFrom(
      'constructor',
      '__proto__',
      'toString',
      'constructor.name',
      '__proto__.constructor',
      'length.x',
    )
    fc.assert(
      fc.property(
        fc.oneof(
          fc.dictionary(fc.constantFrom('a', 'b'), fc.jsonValue()),
          fc.string(),
          fc.integer(),
          fc.constant(null),
        ),
        inherited,
        (record, at) => {
          expect(valueAt(record, at)).toBeUndefined()
        },
      ),
      { numRuns: 200 },
    )
  })
})

const text = fc.string({ unit: 'grapheme', minLength: 1, maxLength: 30 }).filter((one) => !/\p{C}/u.test(one))
const instant = fc.integer({ min: 0, max: Date.UTC(2100, 0) / 1_000 }).map((seconds) => seconds * 1_000)
const minor = fc.nat(10 ** 9)

/** An amount as a supplier of that dialect writes it. */
function written(amount: number, currency: string, { money }: Dialect): unknown {
  const { representation } = money
  if (representation === 'minor') return amount
  if (typeof representation === 'object') {
    const decimals = decimalsOf(currency)
    const record = {}
    write(record, representation.amount, amount)
    write(record, representation.exponent, representation.counts === 'decimals' ? decimals : -decimals)
    return record
  }
  const decimal = formatDecimal({ minor: amount, currency })
  return representation === 'decimal' ? decimal : Number(decimal)
}
const instantOf = (ms: number, { instants }: Dialect): unknown =>
  ({ iso: new Date(ms).toISOString(), epoch_ms: ms, epoch_s: ms / 1_000 })[instants]

describe('under any dialect', () => {
  const facts = fc.record({
    id: text,
    externalOrderId: text,
    productId: text,
    quantity: fc.nat(1_000),
    amountMinor: minor,
    currency: fc.constantFrom('EUR', 'JPY', 'KWD'),
    keys: fc.array(text, { maxLength: 4 }),
    word: fc.nat(),
    failureCode: text,
    failureMessage: text,
    createdAt: instant,
    updatedAt: instant,
  })

  test('an order is read as its supplier wrote it', () => {
    fc.assert(
      fc.property(dialects, facts, (dialect, given) => {
        const { order } = dialect
        const record = {}
        const put = (at: string | null, value: unknown) => at !== null && write(record, at, value)
        const [word = '', status] =
          Object.entries(dialect.orderStatuses)[given.word % Object.keys(dialect.orderStatuses).length] ?? []
        const currency = order.currency === null ? dialect.money.currency : given.currency
        put(order.id, given.id)
        put(order.externalOrderId, given.externalOrderId)
        put(order.productId, given.productId)
        put(order.quantity, given.quantity)
        put(order.status, word)
        put(order.amount, written(given.amountMinor, currency, dialect))
        put(order.currency, currency)
        put(
          order.keys,
          given.keys.map((key) => {
            const item = {}
            if (dialect.order.keyText !== null) write(item, dialect.order.keyText, key)
            return dialect.order.keyText === null ? key : item
          }),
        )
        put(order.failureCode, given.failureCode)
        put(order.failureMessage, given.failureMessage)
        put(order.createdAt, instantOf(given.createdAt, dialect))
        put(order.updatedAt, instantOf(given.updatedAt, dialect))
        const read = parseOrder(JSON.parse(JSON.stringify(record)), dialect)
        if (!read.ok) throw new Error(`cannot be read at ${read.field}`)
        const { keys, ...rest } = read.value
        const optional = {
          productId: given.productId,
          quantity: given.quantity,
          failureCode: withoutKeys(given.failureCode, given.keys),
          failureMessage: withoutKeys(given.failureMessage, given.keys),
          createdAt: given.createdAt,
          updatedAt: given.updatedAt,
        }
        const mapped = Object.entries(optional).filter(([name]) => order[name as keyof typeof order] !== null)
        expect(rest).toEqual({
          id: given.id,
          externalOrderId: given.externalOrderId,
          status,
          statusWord: word,
          currency,
          ...(order.amount === null ? {} : { amountMinor: given.amountMinor }),
          ...Object.fromEntries(mapped),
        })
        expect(keys.map((key) => key.reveal())).toEqual(given.keys)
      }),
      { numRuns: 300 },
    )
  })

  test('an order whose status is not listed stays open, whatever objects have by themselves', () => {
    const words = fc.oneof(text, fc.constantFrom('constructor', 'toString', '__proto__', 'hasOwnProperty', 'valueOf'))
    fc.assert(
      fc.property(dialects, words, (dialect, word) => {
        fc.pre(!Object.keys(dialect.orderStatuses).includes(word))
        const record = {}
        write(record, dialect.order.id, 'o1')
        write(record, dialect.order.status, word)
        expect(parseOrder(record, dialect)).toMatchObject({ ok: true, value: { status: 'open', statusWord: word } })
      }),
      { numRuns: 200 },
    )
  })

  test('an offer is read as its supplier wrote it', () => {
    const offers = fc.record({
      id: text,
      sku: text,
      name: text,
      cost: minor,
      base: minor,
      stock: fc.nat(1_000),
      available: fc.boolean(),
      at: instant,
    })
    fc.assert(
      fc.property(dialects, offers, (dialect, given) => {
        const { product } = dialect
        const { currency } = dialect.money
        const record = {}
        const put = (at: string | null, value: unknown) => at !== null && write(record, at, value)
        put(product.id, given.id)
        put(product.sku, given.sku)
        put(product.name, given.name)
        put(product.cost, written(given.cost, currency, dialect))
        put(product.basePrice, written(given.base, currency, dialect))
        put(product.localStock, given.stock)
        put(product.available, given.available)
        put(product.updatedAt, instantOf(given.at, dialect))
        const read = parseOffer(JSON.parse(JSON.stringify(record)), dialect)
        expect(read).toEqual({
          ok: true,
          value: {
            productId: given.id,
            sku: given.sku,
            name: given.name,
            costMinor: given.cost,
            ...(given.cost === 0 ? { costFault: 'zero' } : {}),
            currency,
            available: given.available,
            ...(product.basePrice === null ? {} : { basePriceMinor: given.base }),
            ...(product.localStock === null ? {} : { localStock: given.stock }),
            ...(product.updatedAt === null ? {} : { asOf: given.at }),
          },
        })
      }),
      { numRuns: 200 },
    )
  })

  test('nothing is read from bytes that are no record, and nothing throws', () => {
    fc.assert(
      fc.property(
        dialects,
        fc.oneof(
          fc.uint8Array(),
          fc.json().map((json) => Buffer.from(json)),
        ),
        (dialect, bytes) => {
          const json = readJson(Buffer.from(bytes))
          for (const read of [parseOrder, parseOffer]) expect(read(json, dialect)).toMatchObject({ ok: false })
          expect(errorAnswer(json, dialect)).toBeUndefined()
        },
      ),
      { numRuns: 300 },
    )
  })
})

/** What a value is to a schema; whole numbers differ from fractions. */
function kindOf(value: unknown): string {
  if (typeof value === 'number') return Number.isSafeInteger(value) && value > 0 ? 'number' : 'fraction'
  return Array.isArray(value) ? 'list' : typeof value
}
