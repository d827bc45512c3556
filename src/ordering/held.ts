import { heldAlertMs, holdReasons } from '../domain/hold.ts'
import { holdLabels } from '../domain/labels.ts'
import { holdToReport } from '../domain/store-update.ts'
import { StaleWrite } from '../storage/database.ts'
import { enqueueAlert } from '../storage/outbox.ts'
import { changePurchase, heldUnsaid } from '../storage/purchases.ts'
import { load } from './advance.ts'
import type { Ordering } from './context.ts'
import { pushUpdate, unitsLeft } from './effects.ts'

/** The most purchases of one reason that one call alerts of. The next call alerts of the others. */
const BATCH = 100

/** Alerts people and stores, once for each hold, of purchases that are held longer than the reason of the hold should take. */
export async function alertHeld(ordering: Pick<Ordering, 'db' | 'now' | 'newId' | 'wake'>): Promise<void> {
  const { db, now } = ordering
  for (const reason of holdReasons) {
    const after = heldAlertMs[reason]
    if (after === null) continue
    const held = await db.query(heldUnsaid(reason, now() - after, BATCH))
    for (const { id } of held) await alertOne(ordering, id)
    if (held.length > 0) ordering.wake('outbox')
  }
}

async function alertOne(ordering: Pick<Ordering, 'db' | 'now' | 'newId'>, id: string): Promise<void> {
  const { db, now } = ordering
  const loaded = await load(ordering, id)
  if (!loaded?.purchase.holdReason) return
  const { store, reference } = loaded.name
  const { orderId, holdReason: reason, holdReported, heldAt, note, quantity } = loaded.purchase
  const words = `the paid order ${reference} of ${store} waits since ${new Date(heldAt ?? 0).toISOString()}: ${note ?? holdLabels[reason].means}`
  const payload = { note: words, store, reference, purchaseId: id, reason }
  const alert = enqueueAlert(ordering, { type: 'order_held', occasion: `${id}:${reason}:${heldAt}`, payload, orderId })
  const unsaid = holdToReport(holdReported, reason, true)
  if (unsaid === undefined) return void (await db.commit([alert]))
  const held = { purchaseId: id, units: quantity - unitsLeft(loaded), reason: unsaid }
  try {
    await db.commit([
      alert,
      changePurchase(loaded.purchase, { holdReported: unsaid }, now()),
      pushUpdate(ordering, { loaded, now: now() }, { type: 'line.held', payload: held }),
    ])
  } catch (error) {
    // The purchase has just gone on, or is held for another reason. The next call sees its new state.
    if (!(error instanceof StaleWrite)) throw error
  }
}
