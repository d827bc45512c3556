/** An order whose keys are no plain texts, with its page of keys. */
import { type Dialect, dialectShape } from '../../src/dialect/dialect.ts'
import { PDF, PNG } from './key-contents.ts'
import { type KeyPageOptions, openKeyPage } from './key-page.ts'
import { defaultDialect } from './test-app.ts'

export const LINK = 'https://rewards.example/claim?a=1&b=<2>'
export const CARD = { kind: 'T', code: '0042-CARD', pin: '007' }

/** A dialect whose keys say what they are; the supplier behind it speaks the shipped one. */
const typed = (): Dialect => {
  const { order, ...rest } = defaultDialect()
  const second = { path: 'pin', labels: ['Card number', 'PIN'] }
  const words = { T: 'text', U: 'url', I: 'image', F: 'file' }
  const keys = { path: null, text: 'code', type: { path: 'kind', words }, second }
  return dialectShape.parse({ ...rest, order: { ...order, keyText: null }, keys })
}

export const openTyped = (keys: { kind: string; code: string; pin?: string | null }[], options: KeyPageOptions = {}) =>
  openKeyPage({
    quantity: keys.length,
    dialect: typed(),
    sandboxDialect: defaultDialect(),
    keyPagesAt: 'https://keys.example',
    stated: (order) => {
      const isHere = order.keys.length > 0
      order.keys = (isHere ? keys.map((key) => ({ pin: null, ...key })) : []) as never
    },
    ...options,
  })

/** One key of each kind: two parts, an address, a picture, a file. */
export const ALL = [CARD, { kind: 'U', code: LINK }, { kind: 'I', code: PNG }, { kind: 'F', code: PDF }]
