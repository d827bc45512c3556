import { deliverDue, type Fulfilment } from '../../src/ordering/fulfil.ts'

/** Logs the alerts that are due, and sends what is due for any store. @returns how much that was */
export async function deliverAll(fulfilment: Fulfilment): Promise<number> {
  let done = 0
  for (const store of [undefined, ...fulfilment.stores.map(({ id }) => id)]) done += await deliverDue(fulfilment, store)
  return done
}
