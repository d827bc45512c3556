/** What the types must refuse: a line that compiles after all is an error. */
import type { components, operations } from './quayside.d.ts'

type Schemas = components['schemas']
type Order = Schemas['TakeOrderBody']
type Line = Order['lines'][number]
type Query = NonNullable<operations['listListings']['parameters']['query']>
type DecisionHeader = operations['decidePurchase']['parameters']['header']

const line: Line = { id: '1', sku: 'GAM-RAIL4', quantity: 1 }

// @ts-expect-error: a quantity is a number
export const quantity: Line = { ...line, quantity: '1' }
// @ts-expect-error: a price is decimal text
export const price: Line = { ...line, unitPrice: 24.9 }
// @ts-expect-error: no field has this name
export const field: Line = { ...line, qty: 1 }
// @ts-expect-error: a reference is needed
export const nameless: Order = { lines: [line] }
// @ts-expect-error: a page size is a number
export const query: Query = { limit: '50' }
// @ts-expect-error: a decision needs the version of the evidence
export const header: DecisionHeader = {}
// @ts-expect-error: no error has this code
export const code: Schemas['ErrorCode'] = 'reference_used'
// @ts-expect-error: no order has this state
export const state: Schemas['Order']['state'] = 'finished'
