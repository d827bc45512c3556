import { deliverDue, type Fulfilment } from '../../src/ordering/fulfil.ts'
import { storesWithUpdates } from '../../src/storage/outbox.ts'

/** Logs the alerts that are due, and sends what is due for any store. @returns how much that was */
export async function deliverAll(fulfilment: Fulfilment): Promise<number> {
  const stores = await fulfilment.db.query(storesWithUpdates(fulfilment.now()))
  let done = 0
  for (const store of [undefined, ...stores.map((due) => due.store)]) done += await deliverDue(fulfilment, store)
  return done
}
