/** One Quayside process for tests: memory of its own over a shared database, and a death that leaves all where it is. */
import { SKEW_MS } from '../../src/domain/sweep.ts'
import { closeOrders, deliverDue, type Fulfilment } from '../../src/ordering/fulfil.ts'
import { type CrashPoint, freshPace, type OrderingPolicy } from '../../src/ordering/ordering.ts'
import { placeDue } from '../../src/ordering/place.ts'
import { refreshDue } from '../../src/ordering/refresh.ts'
import { explainBalance } from '../../src/reconciliation/balance.ts'
import { sweep } from '../../src/reconciliation/sweep.ts'
import { insertBalance } from '../../src/storage/evidence.ts'
import { putOffer } from '../../src/storage/offers.ts'
import type { Store } from '../../src/stores/store.ts'
import type { OrderRequest, Supplier } from '../../src/supplier/client.ts'

export interface ProcessParts
  extends Pick<
    Fulfilment,
    'db' | 'vault' | 'dialect' | 'now' | 'monotonic' | 'newId' | 'random' | 'log' | 'owner' | 'stores'
  > {
  supplier: Supplier
  policy: Partial<OrderingPolicy>
  storeOf: (id: string) => Store | undefined
  /** Called with every POST /orders that is asked for. */
  onSend: (request: OrderRequest) => void
}

export function startProcess({ db, supplier, storeOf, onSend, ...parts }: ProcessParts) {
  const { now, newId } = parts
  const crash: { at?: CrashPoint } = {}
  let dead = false
  let die = (): void => {}
  const died = new Promise<void>((resolve) => {
    die = resolve
  })
  const alive = <T extends object>(target: T): T => mortal(target, () => dead)
  const refreshOffer = async (productId: string): Promise<void> => {
    const offer = await ordering.supplier.product(productId)
    if (!offer) return
    const { asOf: _, ...rest } = offer
    await ordering.db.commit([putOffer({ ...rest, available: offer.available ? 1 : 0, asOf: now(), changedAt: now() })])
  }
  const readBalance = async (): Promise<void> => {
    const readAt = now()
    const { amountMinor, currency } = await ordering.supplier.balance()
    const reading = { id: newId(), readAt, amountMinor, currency, tier: null, limits: null }
    await ordering.db.commit([insertBalance(reading)])
    const suspectFrom = await explainBalance(ordering, reading)
    if (suspectFrom !== undefined) await sweep(ordering, suspectFrom - SKEW_MS, 'balance')
  }
  const placeOrder = (request: OrderRequest) => {
    onSend(request)
    return supplier.placeOrder(request)
  }
  const ordering: Fulfilment & { supplier: typeof supplier } = {
    ...parts,
    refreshOffer,
    readBalance,
    db: alive(db),
    supplier: alive({ ...supplier, placeOrder }),
    policy: {
      inFlight: 4,
      deadlineMs: 72 * 3_600_000,
      ceilingPercent: '10',
      minMarginPercent: '0',
      rates: [],
      caps: { order: null, hour: null, day: null },
      ...parts.policy,
    },
    pace: freshPace(),
    wake: () => {},
    at: (point) => {
      if (crash.at !== point) return
      dead = true
      die()
      throw new Error(`crash at ${point}`)
    },
    storeOf: (id) => {
      const store = storeOf(id)
      return store && alive(store)
    },
  }
  /** Does everything that is due once. Never comes back when the process dies of it: `died` does. */
  const round = async (): Promise<number> =>
    (await placeDue(ordering)) +
    (await refreshDue(ordering)) +
    (await deliverDue(ordering)) +
    (await closeOrders(ordering))
  return { ordering, crash, died, round }
}

/** The same object, whose calls never come back once it is dead: a killed process hears nothing any more. */
function mortal<T extends object>(target: T, isDead: () => boolean): T {
  return new Proxy(target, {
    get(on, name) {
      const value: unknown = Reflect.get(on, name)
      if (typeof value !== 'function') return value
      return (...given: unknown[]) => (isDead() ? new Promise(() => {}) : Reflect.apply(value, on, given))
    },
  })
}
