/** Of several processes on one database the worker alone calls the supplier and the stores: the others have these in their place. */
import { Failure } from '../errors.ts'
import type { Store } from '../stores/store.ts'
import type { Supplier } from '../supplier/client.ts'

/** Whether this process is the worker now. */
export type Acts = () => boolean

/** What the worker knows of the supplier, for the processes that do not call it. */
export interface SupplierReport {
  unreadable: ReturnType<Supplier['unreadable']>
  reach: ReturnType<Supplier['reach']>
  quota: ReturnType<Supplier['quota']>
}

/** The supplier, whose calls are refused while this process is not the worker, also those that were made before and wait. */
export function supplierOfWorker(supplier: Supplier, acts: Acts, report: () => SupplierReport | undefined): Supplier {
  const calls = ['products', 'product', 'balance', 'orders', 'order', 'webhooks', 'createWebhook', 'openapi'] as const
  return {
    ...supplier,
    ...refusing(supplier, calls, acts),
    placeOrder: (request) => {
      const { beforeWrite = () => true } = request
      return supplier.placeOrder({ ...request, beforeWrite: () => acts() && beforeWrite() })
    },
    unreadable: () => (acts() ? supplier.unreadable() : (report()?.unreadable ?? [])),
    reach: () => (acts() ? supplier.reach() : (report()?.reach ?? supplier.reach())),
    quota: () => (acts() ? supplier.quota() : report()?.quota),
  }
}

/** The same of a store: what it only works out is answered everywhere. */
export function storeOfWorker(store: Store, acts: Acts): Store {
  const reads = ['variants', 'order', 'ordersSince', 'test'] as const
  const writes = ['create', 'publish', 'fulfil', 'provision', 'resend', 'sendExample', 'retryTaken'] as const
  const reports = ['reportFailure', 'reportHeld', 'reportResumed', 'reportRefusal', 'closeOrder', 'readOrder'] as const
  return { ...store, ...refusing(store, [...reads, ...writes, ...reports], acts) }
}

type Call = (...given: never[]) => Promise<unknown>

/** Those of the calls that there are. Each throws while this process is not the worker. */
function refusing<T extends object, K extends keyof T>(target: T, names: readonly K[], acts: Acts): Pick<T, K> {
  const calls = names.flatMap((name) => {
    const call = target[name] as Call | undefined
    if (call === undefined) return []
    const refused: Call = async (...given) => {
      if (acts()) return call.apply(target, given)
      throw new Failure('unavailable', 'another process is the worker: this one calls neither supplier nor store')
    }
    return [[name, refused]]
  })
  return Object.fromEntries(calls) as Pick<T, K>
}
