/** Of several processes on one database, only the worker calls supplier and stores. These wrappers stop the other processes. */
import { Failure } from '../errors.ts'
import type { Store } from '../stores/store.ts'
import type { Supplier } from '../supplier/client.ts'

/** Whether this process is the worker now. */
export type Acts = () => boolean

/** What the worker knows of the supplier, for the other processes, which do not call the supplier. */
export type SupplierReport = { [K in 'unreadable' | 'reach' | 'quota']: ReturnType<Supplier[K]> }

/** Wraps the supplier. While this process is not the worker, it sends nothing, not even a purchase that was about to leave. */
export function supplierOfWorker(supplier: Supplier, acts: Acts, report: () => SupplierReport | undefined): Supplier {
  const { placeOrder, differs, unreadable, setAside, isJudged, reach, quota, pausedUntil, close, ...calls } = supplier
  return {
    ...refusing(calls, acts),
    placeOrder: (request) => {
      const { beforeWrite = () => true } = request
      return placeOrder({ ...request, beforeWrite: () => acts() && beforeWrite() })
    },
    unreadable: () => (acts() ? unreadable() : (report()?.unreadable ?? [])),
    reach: () => (acts() ? reach() : (report()?.reach ?? reach())),
    quota: () => (acts() ? quota() : report()?.quota),
    differs,
    setAside,
    isJudged,
    pausedUntil,
    close,
  }
}

/** Wraps a store. While this process is not the worker, only `verify` and `close` work: they send nothing to the store. */
export function storeOfWorker(store: Store, acts: Acts): Store {
  const { verify, close, ...calls } = store
  return { ...refusing(calls, acts), ...(verify && { verify }), close }
}

/** Makes each function throw while this process is not the worker. Values that are no functions stay as they are. */
function refusing<T extends object>(calls: T, acts: Acts): T {
  const refused = Object.entries(calls).map(([name, call]) => {
    if (typeof call !== 'function') return [name, call]
    const checked = async (...given: unknown[]): Promise<unknown> => {
      if (acts()) return call(...given)
      throw new Failure('unavailable', 'another process is the worker: this one calls neither supplier nor store')
    }
    return [name, checked]
  })
  return Object.fromEntries(refused)
}
