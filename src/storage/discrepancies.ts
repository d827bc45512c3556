import { eq, sql } from 'drizzle-orm'
import type { DiscrepancyKind } from '../domain/labels.ts'
import type { Change } from './database.ts'
import { type Alert, enqueueAlert } from './outbox.ts'
import { deliveries, discrepancies, purchases } from './schema.ts'
import { statement } from './statement.ts'
import { countBy, deleteBy, insertOnce, page, rowsBy } from './table.ts'

export type Discrepancy = typeof discrepancies.$inferSelect

export const listDiscrepancies = page(discrepancies)

export const discrepanciesOf = rowsBy(discrepancies, ['subject'], discrepancies.foundAt, discrepancies.id)

export const countDiscrepancies = countBy(discrepancies, ['kind'])

const isOrphan = eq(discrepancies.kind, 'orphan')

/** Of these supplier orders, those on record as orphans. */
export const knownOrphans = rowsBy(discrepancies, [isOrphan, 'subject in'])

/**
 * Ids of supplier orders that carry a reference of this part but have no purchase. The order is on record as an orphan, or the
 * supplier has announced it as completed.
 */
export const orphansOfPart = statement((lineId: string, part: number) => {
  const references = sql`(select external_order_id from ${purchases} where line_id = ${lineId} and part = ${part})`
  return sql<{ id: string }>`
    select ${discrepancies.subject} id from ${discrepancies}
    where ${discrepancies.kind} = 'orphan' and ${discrepancies.externalOrderId} in ${references}
    union
    select supplier_order_id from ${deliveries}
    where state = 'orphan' and ${deliveries.externalOrderId} in ${references}
      and event = 'order.completed' and supplier_order_id is not null
    order by 1`
})

/** The orphans that were put on record after an instant. */
export const orphansFoundAfter = rowsBy(discrepancies, [isOrphan, 'foundAt >'])

/** Of these supplier orders, those on record as a second charge for a part. */
export const knownDuplicates = rowsBy(discrepancies, [eq(discrepancies.kind, 'double_charge'), 'supplierOrderId in'])

/** A discrepancy and the alert about it. The kind of the discrepancy is also the type of the alert. */
export interface DiscrepancyReport extends Omit<typeof discrepancies.$inferInsert, 'id' | 'kind' | 'foundAt'> {
  kind: DiscrepancyKind
  alert: Omit<Alert, 'type'>
}

/** Records a difference as of now, and alerts people. A second difference of the same kind, subject and order is not stored. */
export const reportDiscrepancy = (
  context: { newId: () => string; now: () => number },
  { alert, ...row }: DiscrepancyReport,
): Change[] => [
  insertDiscrepancy({ ...row, id: context.newId(), foundAt: context.now() }),
  enqueueAlert(context, { type: row.kind, ...alert }),
]

/** One difference is recorded once, however often it is found. */
export const insertDiscrepancy = insertOnce(discrepancies)

/** Drops an orphan, because the order has its purchase again: people need not look at it any more. */
export const dropOrphan = deleteBy(discrepancies, [isOrphan, 'subject'])
