import type { Context } from '../context.ts'
import type { Dialect } from '../dialect/dialect.ts'
import type { Supplier } from '../supplier/client.ts'

export interface Catalogue extends Pick<Context, 'db' | 'now' | 'newId' | 'log'> {
  supplier: Pick<Supplier, 'products' | 'product' | 'balance'>
  dialect: Pick<Dialect, 'paging'>
  /** The products that are being read one by one, and how many readings of each are under way. */
  reads: Map<string, number>
  /** The stores for which changed listings are queued. */
  stores: readonly { id: string }[]
  /** Called with products that came back in stock or cost less: purchases that are held because of them may continue. */
  releaseHolds: (productIds: string[]) => void
  /** Asks for a sync run that begins after now, since a run that is under way has read old prices. Does not wait for the run. */
  requestSync: (cause: 'tier_changed') => void
  /** Once the signal is aborted, a run stops after its current page and stays `running`. The next start resumes that run. */
  signal?: AbortSignal
}
