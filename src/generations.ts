/**
 * How the parts that the settings decide are replaced while the service runs. Such parts are a generation: supplier, stores, workers,
 * jobs and operations. The servers, the database, the vault and the log stay.
 *
 * ```
 * the old one takes no new work ─► its work ends ─► the new one opens ─► the change is committed ─► the new one works
 *                                                        └──── either fails: the old settings are opened again ────┘
 * ```
 *
 * Deliveries are stored all the time. Reads go on. Writes wait while the new generation opens, and then use it.
 */
import { AsyncLocalStorage } from 'node:async_hooks'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Config } from './config/config.ts'
import { Failure } from './errors.ts'
import type { Operation } from './http/operation.ts'

export interface Generation {
  config: Config
  operations: Operation[]
  /** Takes no new work. Resolves when no work is under way. */
  end(): Promise<unknown>
  /** Closes the connections to the supplier and the stores. @param next goes on with those that it has too */
  close(next?: object): Promise<unknown>
}

interface Parts<G extends Generation> {
  /** Opens a generation, which does no work yet. @param before the generation in place of which it comes */
  open: (config: Config, before: G) => Promise<G>
  /** Begins the work of a generation. */
  begin: (generation: G) => void
  /** Called when neither the new settings nor the old ones could be opened: nothing works any more. */
  onLost: (error: unknown) => void
}

/** For so long a write waits for the new generation. Then it is refused, and may be tried again. */
const WAIT_MS = 1_500
/** For so long the new generation waits for calls that write, before it opens beside them. */
const EMPTY_MS = 500

type Call = Parameters<Operation['handle']>[0]

/** @param first the generation of the start */
export function createGenerations<G extends Generation>(first: G, { open, begin, onLost }: Parts<G>) {
  let current = first
  let byName = mapOf(first)
  let last: Promise<unknown> = Promise.resolve()
  const partners = createGate()
  const all = createGate()
  /** The call that runs in this asynchronous context. */
  const running = new AsyncLocalStorage<{ leave: () => void }>()

  /** A change waits for the calls that write. A call that asks for a change is not waited for. */
  const gated = (one: Operation): Operation => {
    const handle = (call: Call) => (byName.get(one.name) ?? one).handle(call)
    if (one.method === 'get') return { ...one, handle }
    return {
      ...one,
      handle: async (call) => {
        const leave = await (needsWorker(one, call) ? partners : all).enter()
        return running.run({ leave }, () => handle(call)).finally(leave)
      },
    }
  }

  async function replace(next: Config, commit: () => Promise<void>): Promise<void> {
    const before = current
    partners.shut()
    let opened: G | undefined
    try {
      await Promise.all([before.end(), partners.empty()])
      all.shut()
      // What writes for longer changes the database alone: both generations may.
      await Promise.race([all.empty(), sleep(EMPTY_MS, undefined, { ref: false })])
      opened = await open(next, before)
      await commit()
      current = opened
    } catch (error) {
      await opened?.close(before)
      current = await open(before.config, before).catch((lost: unknown) => {
        onLost(lost)
        throw lost
      })
      throw error
    } finally {
      byName = mapOf(current)
      all.open()
      partners.open()
      if (current !== before) begin(current)
      await before.close(current)
    }
  }

  return {
    current: () => current,
    /** The operations of the generation that is current when they are called. */
    operations: first.operations.map(gated),
    /**
     * Puts other settings in force. Changes come one after the other.
     *
     * @param commit makes the change durable; called when the new generation is open, and no work of the old one is under way
     */
    change: (next: Config, commit: () => Promise<void>): Promise<void> => {
      running.getStore()?.leave()
      const change = last.then(() => replace(next, commit))
      last = change.catch(() => undefined)
      return change
    },
    /** Resolves when no change is under way. */
    idle: () => last,
  }
}

const mapOf = ({ operations }: Generation) => new Map(operations.map((one) => [one.name, one]))

const needsWorker = ({ needsWorker: needs }: Operation, call: Call): boolean =>
  typeof needs === 'function' ? needs(call) : needs === true

/** Counts the calls that have entered. While it is shut, further calls wait. */
function createGate() {
  let opening: PromiseWithResolvers<void> | undefined
  let emptied: PromiseWithResolvers<void> | undefined
  let inside = 0
  return {
    shut: (): void => {
      opening ??= Promise.withResolvers()
    },
    open: (): void => {
      opening?.resolve()
      opening = undefined
    },
    /**
     * Enters, when the gate is open.
     *
     * @returns a function that leaves, once
     * @throws Failure `unavailable`, reason `settings_changing`
     */
    enter: async (): Promise<() => void> => {
      while (opening) {
        const isOpen = await Promise.race([opening.promise.then(() => true), sleep(WAIT_MS, false, { ref: false })])
        if (isOpen) continue
        throw new Failure('unavailable', 'the settings are being changed: nothing was done, try again', {
          reason: 'settings_changing',
        })
      }
      let isInside = true
      inside += 1
      return () => {
        if (isInside) inside -= 1
        isInside = false
        if (inside === 0) emptied?.resolve()
      }
    },
    /** Resolves when no call is inside. */
    empty: async (): Promise<void> => {
      if (inside === 0) return
      emptied = Promise.withResolvers()
      await emptied.promise
    },
  }
}
