/** The sandbox of the demo as the API and the console show it: they run in one process, and no request goes over the network. */
import { z } from 'zod'
import type { AppOptions } from '../app.ts'
import type { Dialect } from '../dialect/dialect.ts'
import { Failure } from '../errors.ts'
import { type FaultName, factsOf, faultTable, readFault } from '../sandbox/faults.ts'
import type { Sandbox } from '../sandbox/server.ts'
import type { Customer } from './customer.ts'

export type EmbeddedSandbox = NonNullable<AppOptions['sandbox']>

/** Orders that are open: the demo has a handful of them at most. */
const OPEN_MAX = 20

export function embedSandbox(
  { baseUrl, world, faults }: Pick<Sandbox, 'baseUrl' | 'world' | 'faults'>,
  { money: { currency } }: Pick<Dialect, 'money'>,
  customer: Customer,
): EmbeddedSandbox {
  return {
    address: new URL(baseUrl).origin,
    currency,
    ledger: world.summary,
    faults: () => {
      const all = faults.list()
      return (Object.keys(faultTable) as FaultName[]).map((name) => {
        const own = all.filter(({ fault }) => fault === name)
        const sum = (of: 'left' | 'fired') => own.reduce((total, one) => total + one[of], 0)
        const { of: subject, does } = factsOf(name)
        return { name, subject, does, left: sum('left'), fired: sum('fired') }
      })
    },
    setFault: (name, delayMs) => {
      try {
        faults.add(readFault({ fault: name, ...(delayMs !== undefined && { delayMs }) }))
      } catch (error) {
        if (!(error instanceof z.ZodError)) throw error
        const fields = error.issues.map(({ path, message }) => ({ field: path.join('.'), message }))
        throw new Failure('invalid', z.prettifyError(error), { fields })
      }
    },
    clearFaults: faults.clear,
    topUp: world.topUp,
    openOrders: () => world.orders.list({ status: 'open' }, 0, OPEN_MAX).items,
    endOrder: (id, as) => {
      const order = world.orders.get(id)
      if (!order) return 'unknown'
      const ended =
        as === 'complete' ? world.orders.complete(order) : world.orders.fail(order, 'The order was failed by hand.')
      return ended ? 'done' : 'over'
    },
    customer,
  }
}
