import type { Fault, Scene } from './fault.ts'
import type { Trip } from './network.ts'
import type { Temper } from './operator.ts'

/**
 * A situation that chance alone comes to too rarely: something that goes wrong at just that time, or people who act at
 * just that moment. It is no fault of the list and does not count as one.
 */
export interface Story extends Fault {
  /** Cells of the transition table that it is there for. */
  aims: readonly string[]
  /** Faults that it is played with, from the beginning to the end. */
  needs?: readonly string[]
  /** Faults that would take it out of the promises. */
  without?: readonly string[]
  /** What the people on duty are like meanwhile. */
  temper?: Partial<Temper>
  /** It takes more than a day. */
  days?: true
}

/** Stands on the road while the story is played. */
export function onRoad({ world: { road } }: Scene, hook: (trip: Trip) => void): () => void {
  road.hooks.add(hook)
  return () => void road.hooks.delete(hook)
}

export const isRead = ({ asked }: Trip): boolean => asked.method === 'GET' && asked.path.startsWith('/orders/')
export const isList = ({ asked }: Trip): boolean => asked.method === 'GET' && asked.path === '/orders'

/** Puts every shelf at so many pieces. */
export function stockAll({ world: { supplier } }: Scene, stock: number): void {
  for (const { id } of supplier.world.offers.list({}, 0, 100).items) supplier.changeOffer(id, { stock })
}

/** The store hears nothing while the story is played. */
export function storeDown({ world: { store } }: Scene): () => void {
  const hook: Parameters<typeof store.hooks.add>[0] = (transit) => {
    transit.refused = 'ECONNREFUSED'
  }
  store.hooks.add(hook)
  return () => void store.hooks.delete(hook)
}

/** What a purchase of ours is about, by its id. */
export function orderOf(
  { world: { host } }: Scene,
  purchaseId: unknown,
): { reference: string; orderId: string | null } {
  const row = host
    .connection()
    .prepare<[unknown], { reference: string; orderId: string | null }>(
      `select o.reference, p.supplier_order_id as orderId from purchases p
       join store_orders o on o.id = p.order_id where p.id = ?`,
    )
    .get(purchaseId)
  return row ?? { reference: '', orderId: null }
}

export const allOf =
  (ends: (() => void)[]): (() => void) =>
  () => {
    for (const end of ends) end()
  }
