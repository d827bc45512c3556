import type { StoreOrderRead } from '../../src/stores/store.ts'

/** A reading of a shop's order: paid in full unless a test says otherwise. */
export const orderRead = (given: Partial<StoreOrderRead> & Pick<StoreOrderRead, 'reference'>): StoreOrderRead => ({
  standing: 'paid',
  fullyPaid: (given.standing ?? 'paid') === 'paid',
  placedAt: null,
  paidAt: null,
  changedAt: null,
  lines: [],
  ...given,
})
