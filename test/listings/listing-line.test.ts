import { describe, expect, test } from 'vitest'
import {
  decideLine,
  type LineFacts,
  type ListedVariant,
  type ListingLine,
  type NamedOffer,
} from '../../src/domain/listing-csv.ts'

const offer = (productId: string, fields: Partial<NamedOffer> = {}): NamedOffer => ({
  productId,
  sku: 'A',
  goneAt: null,
  ...fields,
})
const listed = (fields: Partial<ListedVariant> = {}): ListedVariant => ({
  sku: 'A',
  productId: 'p1',
  variation: null,
  linkedBy: 'csv',
  state: 'synced',
  ...fields,
})
const decide = (line: Partial<ListingLine>, facts: Partial<LineFacts> = {}) =>
  decideLine(
    { line: 2, variant: 'V1', sku: '', product: '', variation: null, action: 'link', ...line },
    { listing: undefined, product: undefined, bySku: [], ...facts },
  )
const link = (fields: object = {}) => ({
  outcome: 'link',
  productId: 'p1',
  sku: undefined,
  variation: undefined,
  ...fields,
})
const refused = (column: string, message: string) => ({
  outcome: 'refused',
  line: 2,
  column,
  message: expect.stringContaining(message),
})
const unchanged = { outcome: 'unchanged' }
const bySku = [offer('p1')]

describe('a line', () => {
  test.each<[string, Partial<ListingLine>, Partial<LineFacts>, object]>([
    ['with a SKU of one product links it', { sku: 'A' }, { bySku }, link({ sku: 'A' })],
    ['with a product links it', { product: 'p1' }, { product: offer('p1') }, link()],
    [
      'with a product and a SKU of the store links the product',
      { product: 'p1', sku: 'OURS' },
      { product: offer('p1') },
      link({ sku: 'OURS' }),
    ],
    [
      'with a product settles a SKU of two',
      { product: 'p1', sku: 'A' },
      { product: offer('p1'), bySku: [offer('p2'), offer('p1')] },
      link({ sku: 'A' }),
    ],
    ['with a variation stores it', { sku: 'A', variation: 'EU' }, { bySku }, link({ sku: 'A', variation: 'EU' })],
    [
      'with an empty variation takes it away',
      { sku: 'A', variation: '' },
      { bySku },
      link({ sku: 'A', variation: null }),
    ],
    ['links an ignored listing', { sku: 'A' }, { bySku, listing: listed({ state: 'ignored' }) }, link({ sku: 'A' })],
    [
      'pins what was found by its SKU',
      { sku: 'A' },
      { bySku, listing: listed({ linkedBy: 'sku' }) },
      link({ sku: 'A' }),
    ],
    ['that is linked so already changes nothing', { sku: 'A' }, { bySku, listing: listed() }, unchanged],
    [
      'with another variation changes it',
      { sku: 'A', variation: 'EU' },
      { bySku, listing: listed() },
      link({ sku: 'A', variation: 'EU' }),
    ],
  ])('%s', (_what, line, facts, outcome) => expect(decide(line, facts)).toEqual(outcome))

  test.each<[string, Partial<ListingLine>, Partial<LineFacts>, object]>([
    ['an unknown SKU', { sku: 'X' }, {}, refused('sku', 'no product of the supplier has the SKU X')],
    [
      'a SKU of two products',
      { sku: 'A' },
      { bySku: [offer('p1'), offer('p2')] },
      refused('sku', 'the SKU A is of products p1 and p2: name one of them in the column product'),
    ],
    ['an unknown product', { product: 'p9' }, {}, refused('product', 'the supplier has no product p9')],
    [
      'a product that is gone',
      { product: 'p1' },
      { product: offer('p1', { goneAt: 1 }) },
      refused('product', 'the supplier does not sell product p1 any more'),
    ],
    [
      'a SKU of another product than the one it names',
      { product: 'p2', sku: 'A' },
      { product: offer('p2', { sku: 'B' }), bySku },
      refused('sku', 'the SKU A is of product p1, not of product p2: leave one of the two empty'),
    ],
    ['neither SKU nor product', {}, {}, refused('sku', 'the cell is empty, and so is product')],
    ['an unlink of a listing that is not there', { action: 'unlink' }, {}, refused('variant', 'has no listing V1')],
    ['a text that is too long', { sku: 'x'.repeat(201) }, {}, refused('sku', 'longer than 200 characters')],
    ['a NUL', { variant: 'V\0' }, {}, refused('variant', 'control characters')],
    ['a line end', { variation: 'a\nb', sku: 'A' }, { bySku }, refused('variation', 'control characters or line ends')],
    ['a space at the end', { sku: 'A ' }, {}, refused('sku', 'begins or ends with a space')],
    ['an ignore with a long variant', { variant: 'x'.repeat(201), action: 'ignore' }, {}, refused('variant', 'longer')],
  ])('is refused for %s', (_what, line, facts, outcome) => expect(decide(line, facts)).toEqual(outcome))

  test('takes 200 characters, however many units of code they are', () => {
    expect(decide({ sku: '🎮'.repeat(200) }, { bySku })).toMatchObject({ outcome: 'link' })
  })

  test.each<[string, Partial<ListingLine>, Partial<LineFacts>, object]>([
    ['ignores a listing', { action: 'ignore' }, { listing: listed() }, { outcome: 'ignore' }],
    ['ignores what the store sells without us', { action: 'ignore' }, {}, { outcome: 'ignore' }],
    ['ignores once', { action: 'ignore' }, { listing: listed({ state: 'ignored' }) }, unchanged],
    ['unlinks a listing', { action: 'unlink' }, { listing: listed({ linkedBy: 'person' }) }, { outcome: 'unlink' }],
    ['unlinks nothing that is not linked', { action: 'unlink' }, { listing: listed({ linkedBy: 'sku' }) }, unchanged],
  ])('%s', (_what, line, facts, outcome) => expect(decide(line, facts)).toEqual(outcome))

  describe('without an action', () => {
    const unclear = listed({ linkedBy: 'sku', productId: null, state: 'held' })

    test.each<[string, Partial<ListingLine>, Partial<LineFacts>, object]>([
      ['links what is new', { sku: 'A' }, { bySku }, link({ sku: 'A' })],
      [
        'leaves what it repeats',
        { sku: 'A', product: 'p1', variation: '' },
        { listing: listed({ linkedBy: 'sku' }) },
        unchanged,
      ],
      ['leaves what is held', { sku: 'A', product: '', variation: '' }, { listing: unclear }, unchanged],
      ['leaves names that cannot be linked', { variant: 'V\0', sku: 'A' }, { listing: unclear }, unchanged],
      [
        'links once it names a product',
        { sku: 'A', product: 'p1' },
        { listing: unclear, product: offer('p1'), bySku: [offer('p1'), offer('p2')] },
        link({ sku: 'A' }),
      ],
    ])('%s', (_what, line, facts, outcome) => expect(decide({ ...line, action: null }, facts)).toEqual(outcome))
  })
})
