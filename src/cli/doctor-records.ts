import { Failure, messageOf } from '../errors.ts'
import type { Supplier } from '../supplier/client.ts'
import type { Page } from '../supplier/read.ts'
import { counted } from './cell.ts'
import type { Visit } from './doctor.ts'
import { commandLine } from './invocation.ts'
import { chooseProducts, productText } from './product-sample.ts'

/** One quick page of each: a record that cannot be read is hardly ever alone. */
const PAGE = 25

/**
 * Whether the supplier's products and orders can be read, before anything is bought: an order that is charged and whose
 * answer cannot be read stays open until a person settles it.
 */
export async function checkRecords({ report, config }: Visit, supplier: Supplier | undefined): Promise<void> {
  if (!config || !supplier) return
  const fix = `mend the dialect ${config.dialectFacts.name}: \`${commandLine('dialect check')}\` shows what is there`
  const look = async <T>(what: 'products' | 'orders', read: () => Promise<Page<T>>): Promise<T[] | undefined> => {
    try {
      const { items, unreadable } = await read()
      const [first] = unreadable
      if (!first) return items
      const place = `${first.setting} of the dialect is ${first.field}, and ${first.seen} is there`
      report('fail', what, `${unreadable.length} of ${unreadable.length + items.length} cannot be read: ${place}`, fix)
    } catch (error) {
      const unreadable = error instanceof Failure && error.reason === 'unreadable'
      report('fail', what, messageOf(error), unreadable ? fix : undefined)
    }
    return undefined
  }
  const products = await look('products', () => supplier.products({ page: 1, limit: PAGE }))
  if (products) {
    const faulty = products.filter(({ costFault }) => costFault !== undefined).length
    const some = chooseProducts(products).map(productText).join('; ')
    if (products.length === 0) report('warn', 'products', 'the supplier lists none')
    else if (faulty === products.length) report('fail', 'products', `none has a cost that can be read: ${some}`, fix)
    else report('ok', 'products', `are they right? ${some}`)
  }
  const orders = await look('orders', () => supplier.orders({ page: 1, limit: PAGE }))
  if (orders) {
    const text =
      orders.length === 0 ? 'none yet' : `the newest ${counted(orders.length, 'order', 'orders')} can be read`
    report('ok', 'orders', text)
  }
}
