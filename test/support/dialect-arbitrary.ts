/** Any dialect: the default one with its paths, words and representations drawn at random. */
import fc from 'fast-check'
import type { Dialect } from '../../src/dialect/dialect.ts'
import { standard } from './dialect-pair.ts'

/** Names that objects have without being given them, among usual ones: a reader must look at own properties only. */
const containers = fc.constantFrom('data', 'order', 'constructor', 'toString', 'hasOwnProperty', 'length', 'ä b', '0')

/** A path for each name, at most three deep; none is on the way to another. */
export const pathsFor = <N extends string>(names: readonly N[]): fc.Arbitrary<Record<N, string>> =>
  fc
    .tuple(...names.map(() => fc.array(containers, { maxLength: 2 })))
    .map(
      (ways) =>
        Object.fromEntries(
          names.map((name, place) => [name, [...(ways[place] ?? []), `its-${name}`].join('.')]),
        ) as Record<N, string>,
    )

/** Some of the paths are null: the supplier has no such thing. */
const maybe = <R extends Record<string, string>, K extends keyof R>(paths: R, absent: K[]) =>
  ({ ...paths, ...Object.fromEntries(absent.map((name) => [name, null])) }) as {
    [N in keyof R]: N extends K ? string | null : string
  }

const orderNames = [
  'id',
  'externalOrderId',
  'status',
  'amount',
  'currency',
  'productId',
  'quantity',
  'keys',
  'failureCode',
  'failureMessage',
  'createdAt',
  'updatedAt',
] as const
const orderOptional = [
  'productId',
  'quantity',
  'amount',
  'currency',
  'failureCode',
  'failureMessage',
  'createdAt',
  'updatedAt',
] as const
const productNames = [
  'id',
  'sku',
  'name',
  'category',
  'description',
  'image',
  'cost',
  'basePrice',
  'cashback',
  'currency',
  'localStock',
  'providerStock',
  'available',
  'origin',
  'updatedAt',
] as const
const productOptional = [
  'category',
  'description',
  'image',
  'basePrice',
  'cashback',
  'currency',
  'localStock',
  'providerStock',
  'origin',
  'updatedAt',
] as const

const order = fc
  .tuple(pathsFor(orderNames), fc.subarray([...orderOptional]), fc.option(fc.constantFrom('code', 'the.text')))
  .map(([paths, absent, keyText]) => ({ ...maybe(paths, absent), keyText }))
const product = fc
  .tuple(pathsFor(productNames), fc.subarray([...productOptional]))
  .map(([paths, absent]) => maybe(paths, absent))

export const dialects: fc.Arbitrary<Dialect> = fc
  .record({
    order,
    product,
    instants: fc.constantFrom('iso' as const, 'epoch_s' as const, 'epoch_ms' as const),
    money: fc.record({
      representation: fc.constantFrom<Dialect['money']['representation']>(
        ...['decimal' as const, 'number' as const, 'minor' as const],
        ...(['decimals', 'power_of_ten'] as const).map((counts) => ({
          amount: 'units',
          exponent: 'its.places',
          counts,
        })),
      ),
      currency: fc.constantFrom('EUR', 'JPY', 'KWD'),
    }),
    // One word is never listed: zod leaves `__proto__` out of a record, so that it counts as open like any unlisted one.
    orderStatuses: fc.dictionary(
      fc
        .string({ unit: 'grapheme', minLength: 1, maxLength: 12 })
        .filter((word) => !/\p{C}/u.test(word) && word !== '__proto__'),
      fc.constantFrom('open' as const, 'completed' as const, 'failed' as const, 'refunded' as const),
      { minKeys: 1, maxKeys: 6, noNullPrototype: true },
    ),
  })
  .map((drawn) => ({ ...standard, ...drawn }))

/** Writes a value at a path as a supplier would; own properties only, whatever they are called. */
export function write(record: object, path: string, value: unknown): void {
  const [name = '', ...rest] = path.split('.')
  if (rest.length > 0 && !Object.hasOwn(record, name)) define(record, name, {})
  if (rest.length === 0) define(record, name, value)
  else write((record as Record<string, object>)[name] ?? {}, rest.join('.'), value)
}

const define = (record: object, name: string, value: unknown): void => {
  Object.defineProperty(record, name, { value, enumerable: true, configurable: true, writable: true })
}
