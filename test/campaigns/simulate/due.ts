import type Connection from 'better-sqlite3'
import type { WorkerName } from '../../../src/ordering/context.ts'

/** When each pump has something to do next, by the process's clock; absent when it has nothing to wait for. */
export type Due = Partial<Record<WorkerName, number>>

/** How often the products of a shop are read. */
const READ_EVERY_MS = 6 * 3_600_000
/** Longest wait before the orders of a shop are read again. */
const POLL_WAIT_MAX_MS = 5 * 60_000

/**
 * Reads when the next tick would find work. A tick that finds none changes nothing, so the ticks in between are left
 * out: that is what lets days pass in milliseconds.
 */
export function dueReader(connection: Connection.Database): (now: number) => Due {
  const lease = 'coalesce(lease_until, 0)'
  const isHeldByOrder = "coalesce(hold_reason, '') in ('unpaid', 'held_by_store')"
  const statement = connection.prepare<[], Record<string, number | null>>(`
    select
      (select min(max(coalesce(not_before, 0), ${lease})) from purchases
        where state in ('planned', 'waiting') and (not_before is not null or hold_reason is null)
          and not ${isHeldByOrder}) as placed,
      (select min(max(case when cancel_requested_at is null then deadline_at else 0 end, ${lease})) from purchases
        where state in ('planned', 'waiting') and (cancel_requested_at is not null or not ${isHeldByOrder})) as ended,
      (select min(settle_at) from entitlements) as settled,
      (select min(untag_at) from entitlements) as untagged,
      (select 0 from store_orders where closed_at is null and not exists (
        select 1 from purchases where order_id = store_orders.id
          and state not in ('fulfilled', 'rejected', 'failed', 'cancelled')) limit 1) as closed,
      (select min(max(refresh_at, ${lease})) from purchases
        where refresh_at is not null and state <> 'sending') as refreshed,
      (select min(${lease}) from purchases where state = 'sending') as lost,
      (select min(not_before) from outbox where state = 'due') as callbacks,
      (select min(coalesce((select paused_until from publishing where publishing.store = publications.store), 0))
        from publications) as publications,
      (select min(next_try_at) from listings where next_try_at is not null) as retries,
      (select min(not_before) from deliveries where state in ('stored', 'retry', 'orphan')) as taken,
      (select min(orders_due_at) from store_readings) as polled,
      (select min(case when variants_cursor is not null then 0
          else coalesce(variants_read_at + ${READ_EVERY_MS}, paused_until, 0) end)
        from store_readings left join publishing on publishing.store = store_readings.store) as variants`)
  const earliest = (...instants: (number | null | undefined)[]): number | undefined => {
    const known = instants.filter((at) => typeof at === 'number')
    return known.length === 0 ? undefined : Math.min(...known)
  }
  return (now) => {
    const row = statement.get() ?? {}
    const due: Due = {}
    const set = (pump: WorkerName, at: number | undefined) => {
      if (at !== undefined) due[pump] = at
    }
    set('place', earliest(row.placed, row.ended, row.settled))
    set('read', earliest(row.placed, row.untagged))
    set('refresh', earliest(row.refreshed, row.lost))
    set('outbox', earliest(row.callbacks, row.closed))
    set('inbox', earliest(row.taken))
    set('publish', earliest(row.publications, row.retries, row.variants))
    const polled = earliest(row.polled)
    // A longer wait was set by a clock that has gone back since.
    set('poll', polled !== undefined && polled - now > POLL_WAIT_MAX_MS ? now : polled)
    return due
  }
}
