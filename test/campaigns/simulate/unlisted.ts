/**
 * Orders that the supplier kept out of its list for longer than the dialect says (A3), so that a restore could not reattach them: what
 * they were placed for may be bought again. An order is one of these while all of this holds:
 *
 * - The copy that took the place of the database knows of no request for it.
 * - It was placed before the supplier's orders were reattached. They were when it was not in the list yet, and it came into the list
 *   later than `listLagSeconds` allow.
 * - Nothing can have shown it since. Where the dialect has a filter by reference, which searches the same list, the order is not in
 *   the list yet; where it has none, the list was not read since the order is in it.
 */
import { isOurs, lineOf, partOf } from '../../support/references.ts'
import type { World } from './world.ts'

type SupplierOrder = ReturnType<World['supplier']['world']['orders']['known']>[number]

export interface Unlisted {
  /** Those of a line that nothing could know of at an instant; epoch milliseconds. */
  ofLine: (line: string, at: number) => SupplierOrder[]
  ofPart: (part: string, at: number) => SupplierOrder[]
  /** An order that the supplier's list showed too late for a restore, whatever has shown it since. */
  missed: (orderId: string) => SupplierOrder | undefined
}

export function watchUnlisted({ dialect, supplier, host, restored, road, log, timeline }: World): Unlisted {
  const isFiltered = dialect.orders.externalOrderId !== null
  /** References that the copy has sent, or may have. */
  let sent: ReadonlySet<string> = new Set()
  let reattachedAt: number | undefined
  const readAt: number[] = []
  restored.add(() => {
    const rows = host.connection().prepare<[], { reference: string }>(SENT).all()
    sent = new Set(rows.map(({ reference }) => reference))
    reattachedAt = undefined
  })
  log.listeners.add((what, { cause }) => {
    const isEnd = (what === 'sweep.complete' && cause === 'restore') || what === 'restore.unswept'
    if (isEnd) reattachedAt = timeline.now()
  })
  road.watchers.add({
    written: ({ asked }) => {
      if (asked.method === 'GET' && asked.path === '/orders') readAt.push(timeline.now())
    },
    ended: () => {},
  })

  const missed = (): SupplierOrder[] => {
    const since = reattachedAt
    if (since === undefined) return []
    return supplier.world.orders.known(1_000).filter(({ externalOrderId, createdAt, hiddenUntil }) => {
      const isLate = hiddenUntil > createdAt + dialect.listLagSeconds * 1_000
      const isMissed = createdAt < since && hiddenUntil > since
      return isOurs(externalOrderId) && !sent.has(externalOrderId) && isLate && isMissed
    })
  }
  const unknownAt = (at: number): SupplierOrder[] =>
    missed().filter(({ hiddenUntil }) => {
      const mayBeSeen = isFiltered ? hiddenUntil <= at : readAt.some((read) => read >= hiddenUntil && read < at)
      return at >= (reattachedAt ?? at) && !mayBeSeen
    })
  return {
    ofLine: (line, at) => unknownAt(at).filter((order) => lineOf(order.externalOrderId ?? '') === line),
    ofPart: (part, at) => unknownAt(at).filter((order) => partOf(order.externalOrderId ?? '') === part),
    missed: (orderId) => missed().find(({ id }) => id === orderId),
  }
}

const SENT = 'select external_order_id as reference from purchases where sends > 0 or first_sent_at is not null'

/** Why a purchase is excused that was sent beside one of these orders. */
export function excuseOf(reference: string, { id, externalOrderId, createdAt, hiddenUntil }: SupplierOrder): string {
  const minutes = Math.round((hiddenUntil - createdAt) / 60_000)
  return `${reference} was sent although ${externalOrderId} was bought: its order ${id} came into the supplier's list after ${minutes} minutes, too late for a restore`
}
