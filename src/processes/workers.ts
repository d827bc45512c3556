/** The workers inside one process. Each works through a queue whenever something may be due. */
import { messageOf } from '../errors.ts'
import type { Log } from '../log.ts'

/** Runs its work whenever there may be something to do, and never twice at once. */
export interface Worker {
  /** Asks for a run, which starts at once or after the run that is under way. @param store only the queue of this store is run */
  wake(store?: string): void
  /** Resolves when nothing runs any more. */
  idle(): Promise<void>
}

/**
 * Makes a worker from a function that does a batch of due work and returns how much it did.
 *
 * The function is called again at once while it finds work, and once more when the worker was woken meanwhile. An error ends
 * the run and is logged. The next wake tries again.
 */
export function createWorker(
  name: string,
  run: () => Promise<number>,
  { log, stopped }: { log: Log; stopped: () => boolean },
): Worker {
  let running: Promise<void> | undefined
  let again = false
  const loop = async (): Promise<void> => {
    do {
      again = false
      try {
        while (!stopped() && (await run()) > 0) again = false
      } catch (error) {
        log.warn('worker.failed', { kind: name, error: messageOf(error) })
      }
    } while (again && !stopped())
  }
  return {
    wake() {
      if (stopped()) return
      if (running !== undefined) {
        again = true
        return
      }
      running = loop().finally(() => {
        running = undefined
        if (again) this.wake()
      })
    },
    idle: async () => {
      while (running !== undefined) await running
    },
  }
}

/** Work of which each store has a queue of its own. */
export interface StoreQueue {
  /** The stores with something to do now. It may name a store twice. */
  due: () => Promise<{ store: string }[]>
  /** Does a batch of one store. @returns how much was done */
  run: (store: string) => Promise<number>
  /** Does a batch of the work that belongs to no store. @returns how much was done */
  rest?: () => Promise<number>
}

/** Runs one batch for each store that has something to do. @returns how much was done */
export async function onceThrough({ due, run, rest }: StoreQueue): Promise<number> {
  const stores = new Set((await due()).map(({ store }) => store))
  const done = await Promise.all([...[...stores].map(run), rest?.() ?? 0])
  return done.reduce((all, one) => all + one, 0)
}

/** Gives each store a worker of its own, so that a slow store delays no other store. */
export function workerOfStores(
  name: string,
  { due, run, rest }: StoreQueue,
  parts: { log: Log; stopped: () => boolean },
): Worker {
  const workers = new Map<string, Worker>()
  const workerOf = (store: string): Worker => {
    const known = workers.get(store) ?? createWorker(name, () => run(store), parts)
    workers.set(store, known)
    return known
  }
  const others = rest && createWorker(name, rest, parts)
  const look = createWorker(
    name,
    async () => {
      for (const { store } of await due()) workerOf(store).wake()
      return 0
    },
    parts,
  )
  return {
    wake(store) {
      // A store that has had no worker yet is found by the look at all stores.
      const known = store === undefined ? undefined : workers.get(store)
      if (known) return known.wake()
      others?.wake()
      look.wake()
    },
    idle: async () => {
      await Promise.all([look.idle(), others?.idle()])
      await Promise.all([...workers.values()].map((worker) => worker.idle()))
    },
  }
}
