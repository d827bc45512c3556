import type { Context } from '../context.ts'
import type { Dialect } from '../dialect/dialect.ts'
import type { Supplier } from '../supplier/client.ts'

/** What the flows of the catalogue need. */
export interface Catalogue extends Pick<Context, 'db' | 'now' | 'newId' | 'log'> {
  supplier: Pick<Supplier, 'products' | 'product' | 'balance'>
  dialect: Pick<Dialect, 'paging'>
  /** Products that are being asked for one by one, and by how many at once. */
  reads: Map<string, number>
  /** The stores for which changed listings are queued. */
  stores: readonly { id: string }[]
  /** These products came back in stock or cost less: purchases that are held for them may continue. */
  releaseHolds: (productIds: string[]) => void
  /** Asks for a sync run that begins after now: one that is under way has read old prices. Never waits for it. */
  requestSync: (cause: 'tier_changed') => void
  /** Once aborted, a run stops after the page it is at and stays `running`: the next start resumes it. */
  signal?: AbortSignal
}
