/** One Quayside process for tests: the runtime over a shared database, and a death that leaves everything where it is. */
import type { CrashPoint, OrderingPolicy } from '../../src/ordering/context.ts'
import { type RuntimeParts, startRuntime } from '../../src/runtime.ts'
import type { OrderRequest } from '../../src/supplier/client.ts'

export interface ProcessParts extends Omit<RuntimeParts, 'policy' | 'hooks'> {
  policy: Partial<OrderingPolicy>
  /** Called with every POST /orders that is asked for. */
  onSend: (request: OrderRequest) => void
}

export async function startProcess({ db, supplier, storeOf, onSend, policy, ...parts }: ProcessParts) {
  const crash: { at?: CrashPoint } = {}
  let dead = false
  let die = (): void => {}
  const died = new Promise<void>((resolve) => {
    die = resolve
  })
  const alive = <T extends object>(target: T): T => mortal(target, () => dead)
  const placeOrder = (request: OrderRequest) => {
    onSend(request)
    return supplier.placeOrder(request)
  }
  const runtime = await startRuntime({
    ...parts,
    db: alive(db),
    supplier: alive({ ...supplier, placeOrder }),
    storeOf: (id) => {
      const store = storeOf(id)
      return store && alive(store)
    },
    policy: {
      inFlight: 4,
      offerFreshnessMs: 1_800_000,
      entitlementMs: 60_000,
      lateMs: 30 * 60_000,
      deadlineMs: 72 * 3_600_000,
      ceilingPercent: '10',
      minMarginPercent: '0',
      rates: [],
      caps: { order: null, hour: null, day: null },
      ...policy,
    },
    hooks: {
      mayWake: false,
      at: (point) => {
        if (crash.at !== point) return
        dead = true
        die()
        throw new Error(`crash at ${point}`)
      },
    },
  })
  const { ordering, work } = runtime
  /** Does everything that is due once. Never comes back when the process dies of it: `died` does. */
  const round = async (): Promise<number> =>
    (await work.read()) + (await work.place()) + (await work.refresh()) + (await work.outbox())
  return { runtime, ordering, crash, died, round }
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
