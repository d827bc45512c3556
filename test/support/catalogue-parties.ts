/** What the tests of the catalogue and the process that they kill agree on. */
import { type Dialect, readDialect } from '../../src/dialect/dialect.ts'

export const API_KEY = 'sk_test_0123456789abcdef'
export const STORES = [{ id: 'north-ab12cd34' }, { id: 'south-ef56gh78' }]

const shipped = readDialect(new URL('../../config/dialects/reseller-v1.1.json', import.meta.url))

/** The shipped dialect with small pages, so that a short list has several. */
export const dialectOf = (limitMax: number, paging: Partial<Dialect['paging']> = {}): Dialect => ({
  ...shipped,
  paging: { ...shipped.paging, limitMax, limitDefault: limitMax, ...paging },
})
