import { describe, expect, test } from 'vitest'
import { dialectShape } from '../../src/dialect/dialect.ts'
import { contrary, leavesOf, standard } from '../support/dialect-pair.ts'

/** Settings that both dialects must share, and why. */
const shared: Record<string, string> = {
  'errors/rate_limited/status': 'the API itself says that the rate limit is HTTP 429',
  'errors/not_found/status': 'one of the two must distinguish none (404) from gone (410), and none is 404 everywhere',
}

/** The supplier's own words are keys there: they differ when no word of one is a word of the other. */
const byWord = /^(orderStatuses|flags)\//

describe('the contrary dialect', () => {
  const ours = leavesOf(standard)
  const theirs = leavesOf(contrary)

  test('states every setting that the default states, and no other', () => {
    const names = (leaves: Map<string, unknown>) => [...leaves.keys()].filter((path) => !byWord.test(path))
    // The place of the timestamp has fields of its own in each form.
    const forms = /^signature\/timestamp\/(header|field)$/
    expect(names(theirs).filter((path) => !forms.test(path))).toEqual(names(ours).filter((path) => !forms.test(path)))
  })

  test('differs from the default in each of them', () => {
    const same = [...theirs].filter(([path, value]) => JSON.stringify(ours.get(path)) === JSON.stringify(value))
    expect(same.map(([path]) => path).sort()).toEqual(Object.keys(shared).sort())
    expect(theirs.size).toBeGreaterThan(130)
  })

  test('shares no error code and no status word with the default', () => {
    const codes = (dialect: typeof contrary) => Object.values(dialect.errors).flatMap((error) => error?.codes ?? [])
    expect(codes(contrary).filter((code) => codes(standard).includes(code))).toEqual([])
    expect(Object.keys(contrary.orderStatuses).filter((word) => word in standard.orderStatuses)).toEqual([])
  })

  test('says of itself that it is for tests', () => {
    expect(contrary.about).toMatch(/^For tests only/)
  })
})

describe('a dialect', () => {
  const faultsOf = (dialect: unknown) =>
    dialectShape.safeParse(dialect).error?.issues.map(({ path, message }) => `${path.join('.')}: ${message}`) ?? []

  test('is refused when one error code stands for two kinds', () => {
    const dialect = structuredClone(standard)
    dialect.errors.gone?.codes.push('out_of_stock')
    dialect.errors.internal = { codes: ['oops', 'oops'], status: 500 }
    expect(faultsOf(dialect)).toEqual([
      'errors.out_of_stock.codes.0: the code out_of_stock is listed under gone too',
      'errors.internal.codes.1: the code oops is listed under internal too',
    ])
  })

  test('is refused when refusals come as HTTP 200 without a flag, or the rate limit does', () => {
    const dialect = structuredClone(standard)
    dialect.errors.gone = { codes: ['gone'], status: 200 }
    expect(faultsOf(dialect)).toEqual([])
    dialect.errors.internal = { codes: ['internal_error'], status: 302 }
    dialect.errors.rate_limited = { codes: ['rate_limited'], status: 200 }
    expect(faultsOf({ ...dialect, error: { ...dialect.error, success: null } })).toEqual([
      'errors.internal.status: must be 200 to 299 or 400 to 599',
      'errors.gone.status: an error that comes as HTTP 200 needs error.success, the flag that marks it as an error',
      'errors.rate_limited.status: the API says that the rate limit is HTTP 429',
    ])
  })

  test('is refused when one event name stands for two events', () => {
    const dialect = structuredClone(standard)
    dialect.event.names['order.failed'] = 'order.completed'
    expect(faultsOf(dialect)).toEqual([
      'event.names.order.failed: the name order.completed is that of order.completed too',
    ])
  })

  test('is refused when its words for yes and no lack one of the two', () => {
    const flags = { ...standard.flags, available: { yes: true }, more: {} }
    expect(faultsOf({ ...standard, flags })).toEqual([
      'flags.more: no word means true',
      'flags.more: no word means false',
      'flags.available: no word means false',
    ])
  })

  test('that was written before products had descriptions and images has none', () => {
    const { description: _, image: __, ...product } = standard.product
    expect(dialectShape.parse({ ...standard, product })).toEqual(standard)
  })

  test('is refused when a setting is missing or unknown', () => {
    const { settleSeconds: _, ...rest } = standard
    expect(faultsOf({ ...rest, settleSecs: 90 })).toHaveLength(2)
  })
})
