/** `quayside dialect check` about offsets, cursors, quantities and amounts of two forms. */
import { describe, expect, onTestFinished, test } from 'vitest'
import { type Dialect, dialectShape } from '../../src/dialect/dialect.ts'
import { checkDialect } from '../../src/fitting/check.ts'
import { readSample } from '../../src/fitting/sample.ts'
import { isFault } from '../../src/fitting/verdicts.ts'
import { Secret } from '../../src/secret.ts'
import { API_KEY } from '../support/catalogue-parties.ts'
import { standard } from '../support/dialect-pair.ts'
import { pagedSupplier } from '../support/paged-supplier.ts'
import { openSandbox } from '../support/sandbox-caller.ts'

type Paging = Partial<Dialect['paging']>

const by = (paging: Paging): Dialect => ({ ...standard, paging: { ...standard.paging, ...paging } })
const offset: Paging = { kind: 'offset', page: 'offset', first: 0 }
const cursor: Paging = { kind: 'cursor', page: 'after', next: 'meta.next_cursor', more: null }

async function check(baseUrl: string, dialect: Dialect, apiKey = 'test-api-key') {
  const link = { baseUrl, dialect, apiKey: new Secret(apiKey), now: () => 1_767_225_601_000 }
  const findings = checkDialect(dialect, await readSample({ ...link, sleep: () => Promise.resolve() }))
  return {
    of: (fact: string) => findings.find((one) => one.fact === fact),
    faults: findings.filter(isFault).map(({ fact }) => fact),
  }
}

/** A sandbox with five orders. */
async function account(dialect: Dialect) {
  const sandbox = await openSandbox({ dialect })
  onTestFinished(() => sandbox.close())
  const [offer] = sandbox.world.offers.list({}, 0, 1).items
  for (const place of [1, 2, 3, 4, 5]) await sandbox.order(`k${place}`, { productId: offer?.id ?? '' })
  return sandbox
}

describe('page two of products and orders', () => {
  test.each([
    ['an offset', offset, ['paging.kind', 'paging.page', 'paging.first']],
    ['an offset that counts from 1', { ...offset, first: 1 }, ['paging.kind', 'paging.page', 'paging.first']],
    ['a cursor', cursor, ['paging.kind', 'paging.page', 'paging.next']],
  ] as const)('is asked for by %s, and proves it', async (_, paging, proven) => {
    const { baseUrl } = await account(by(paging))
    const { of, faults } = await check(baseUrl, by(paging))
    expect(faults).toEqual([])
    for (const fact of proven) expect(of(fact), fact).toMatchObject({ verdict: 'read', value: 'it works' })
  })

  test('is found to need an offset where the parameter counts records', async () => {
    const { baseUrl } = await account(by({ ...offset, page: 'page' }))
    expect((await check(baseUrl, by({ page: 'page', first: 0 }))).of('paging.page')).toMatchObject({
      verdict: 'differs',
      hint: 'page counts records: put paging.kind to "offset" and paging.first to 0',
    })
  })

  test('is not page two where the parameter of the offset counts pages', async () => {
    const { baseUrl } = await account(by({ first: 0, page: 'offset' }))
    expect((await check(baseUrl, by(offset))).faults).toContain('paging.page')
  })

  test('leaves one product and one order out where the offset counts from 0 and the dialect from 1: it passed', async () => {
    const { baseUrl } = await account(by(offset))
    expect((await check(baseUrl, by({ ...offset, first: 1 }))).of('paging.first')).toMatchObject({
      verdict: 'differs',
      value: 'with offset=0 another product comes first',
      right: 0,
      hint: 'put it to 0',
    })
  })

  test('is missed where the path of the cursor is wrong, and the right one is proposed', async () => {
    const { baseUrl } = await account(by(cursor))
    const { of } = await check(baseUrl, by({ ...cursor, next: 'meta.following' }))
    expect(of('paging.next')).toMatchObject({
      verdict: 'unreadable',
      candidates: [{ path: 'meta.next_cursor' }],
    })
  })

  test('is page one again where the parameter of the cursor is wrong', async () => {
    const supplier = await pagedSupplier('cursor', { products: 12 })
    const base = by({ ...cursor, page: 'from', items: 'data', limit: 'per_page', total: null })
    const dialect = { ...base, lists: { ...base.lists, data: '' } }
    const { of } = await check(supplier.baseUrl, dialect, API_KEY)
    expect(of('paging.page')).toMatchObject({
      verdict: 'differs',
      value: 'page two of the products, 3 on each, begins with number 1 of them',
    })
  })
})

describe('words that contradict each other', () => {
  const faultsOf = (paging: Paging): string[] => {
    const result = dialectShape.safeParse(by(paging))
    return result.success ? [] : result.error.issues.map((issue) => issue.path.join('.'))
  }

  test.each([
    ['a cursor without its path', { ...cursor, next: undefined }, ['paging.next']],
    ['a path of a cursor beside an offset', { ...offset, next: 'meta.next' }, ['paging.next']],
    ['a path of a cursor beside page numbers', { next: 'meta.next' }, ['paging.next']],
    ['a flag that says what the cursor says', { ...cursor, more: 'more' }, ['paging.more']],
    ['an unknown kind', { kind: 'link' as 'page' }, ['paging.kind']],
    ['nothing', cursor, []],
  ] as [string, Paging, string[]][])('are faults: %s', (_, paging, faults) => {
    expect(faultsOf(paging)).toEqual(faults)
  })
})

describe('the check of a dialect with the wrong writing', () => {
  /** What the check says of a catalogue, after the fields of its products were written otherwise. */
  async function checked(dialect: Dialect, written: (place: number) => Record<string, unknown>) {
    const sandbox = await openSandbox()
    onTestFinished(() => sandbox.close())
    const link = { baseUrl: sandbox.baseUrl, dialect, apiKey: new Secret('test-api-key'), now: () => 1_767_225_601_000 }
    const { product: _, ...sample } = await readSample({ ...link, sleep: () => Promise.resolve() })
    const { items } = (sample.products.json as { data: { items: object[] } }).data
    for (const [place, record] of items.entries()) Object.assign(record, written(place))
    const findings = checkDialect(dialect, sample)
    return (fact: string) => findings.find((one) => one.fact === fact)
  }

  const quantities = (place: number) => ({ available: [0, 1, 149][place % 3] })

  test('names a quantity where a flag was expected', async () => {
    expect((await checked(standard, quantities))('product.available')).toMatchObject({
      verdict: 'unreadable',
      hint: 'flags.available: "quantity" would read it',
    })
  })

  test('fits with a quantity, and does not where one is negative or text', async () => {
    const dialect = { ...standard, flags: { ...standard.flags, available: 'quantity' as const } }
    const of = await checked(dialect, quantities)
    for (const fact of ['product.available', 'flags.available'])
      expect(of(fact), fact).toMatchObject({ verdict: 'read' })
    for (const available of [-1, '3']) {
      const wrong = await checked(dialect, (place) => ({ available: place === 2 ? available : 3 }))
      expect(wrong('product.available')).toMatchObject({ verdict: 'unreadable' })
    }
  })

  test('keeps to words where the flag is 0 and 1', async () => {
    const of = await checked(standard, (place) => ({ available: place % 2 }))
    expect(of('product.available')?.hint).toMatch(
      /^flags\.available: \{"[01]": (true|false), "[01]": (true|false)\} would read it$/,
    )
  })

  test('names both forms where a list has amounts as text and as numbers', async () => {
    const mixed = (place: number) => ({ api_price: place % 2 === 0 ? '12.99' : 12.99 })
    expect((await checked(standard, mixed))('product.cost')).toMatchObject({
      verdict: 'unreadable',
      hint: 'money.representation: "number_or_decimal" (12.99 EUR) would read it',
    })
    const both = { ...standard, money: { ...standard.money, representation: 'number_or_decimal' as const } }
    const of = await checked(both, mixed)
    for (const fact of ['product.cost', 'money.representation'])
      expect(of(fact), fact).toMatchObject({ verdict: 'read' })
  })
})
