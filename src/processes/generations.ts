/**
 * How the parts that the settings decide are replaced while the service runs. Such parts are a generation: supplier, stores, workers,
 * jobs and operations. The servers, the database, the vault and the log stay.
 *
 * ```
 * the old one takes no new work ─► its work ends ─► the new one opens ─► the change is committed ─► the new one works
 *                                                        └──── either fails: the old settings are opened again ────┘
 * ```
 *
 * Deliveries are stored all the time, and reads go on. Writes wait from the end of the old work until the new generation is there: while
 * a request to the supplier hangs, the old generation still performs them.
 */
import { AsyncLocalStorage } from 'node:async_hooks'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Config } from '../config/config.ts'
import { Failure, settingsChanging } from '../errors.ts'
import type { Operation } from '../http/operation.ts'

export interface Generation {
  config: Config
  operations: Operation[]
  /** Takes no new work. Resolves when no work is under way. May be called again. */
  end(): Promise<unknown>
  /** Closes the connections to the supplier and the stores. @param next goes on with those that it has too */
  close(next?: object): Promise<unknown>
}

interface Parts<G extends Generation> {
  /** Opens a generation, which does no work yet. @param before the generation in place of which it comes */
  open: (config: Config, before: G) => Promise<G>
  /** Begins the work of a generation. */
  begin: (generation: G) => void
  /** Reads the settings that another process has put in force; undefined where those of the generation are the newest. */
  newer: (generation: G) => Promise<Config | undefined>
  /** Called when neither the new settings nor the old ones could be opened: nothing works any more. */
  onLost: (error: unknown) => void
  /** Called when what a generation had open could not be closed in order. */
  onUnclosed: (error: unknown) => void
}

/** For so long a write waits for the new generation. Then it is refused, and may be tried again. */
const WAIT_MS = 1_500
/** For so long the writes under way may keep others waiting. Then all go on, and the change is tried again after them. */
const EMPTY_MS = 500
/** How often a change is tried while writes are under way that take long. */
const TRIES = 8

type Call = Parameters<Operation['handle']>[0]

/** @param first the generation of the start */
export function createGenerations<G extends Generation>(first: G, parts: Parts<G>) {
  const { open, begin, newer, onLost, onUnclosed } = parts
  let current = first
  let byName = mapOf(first)
  let last: Promise<unknown> = Promise.resolve()
  const gate = createGate()
  /** The call that runs in this asynchronous context. */
  const running = new AsyncLocalStorage<{ leave: () => void }>()

  /** Resolves when no work and no call that writes is under way, and further ones wait. */
  async function quiet(before: G): Promise<void> {
    for (let tries = 1; tries <= TRIES; tries += 1) {
      await Promise.all([before.end(), gate.left()])
      gate.shut()
      const ended = Promise.all([before.end(), gate.left()]).then(() => true)
      if (await Promise.race([ended, sleep(EMPTY_MS, false, { ref: false })])) return
      gate.open()
    }
    throw new Failure(
      'unavailable',
      'other changes are under way, such as a backup: nothing was changed, try again later',
    )
  }

  async function replace(next: Config, commit: () => Promise<void>): Promise<void> {
    const before = current
    let opened: G | undefined
    try {
      await quiet(before)
      opened = await open(next, before)
      await commit()
      current = opened
    } catch (error) {
      gate.shut()
      await opened?.close(before).catch(onUnclosed)
      current = await open(before.config, before).catch((lost: unknown) => {
        onLost(lost)
        throw lost
      })
      throw error
    } finally {
      byName = mapOf(current)
      gate.open()
      if (current !== before) begin(current)
      await before.close(current).catch(onUnclosed)
    }
  }

  /** Changes come one after the other. */
  function inTurn<T>(act: () => Promise<T>): Promise<T> {
    running.getStore()?.leave()
    const turn = last.then(() => running.exit(act))
    last = turn.catch(() => undefined)
    return turn
  }

  const follow = (): Promise<void> =>
    inTurn(async () => {
      const next = await newer(current)
      if (next) await replace(next, async () => undefined)
    })

  /** A change waits for the calls that write. A call that asks for a change is not waited for. */
  const gated = (one: Operation): Operation => {
    const handle = (call: Call) => (byName.get(one.name) ?? one).handle(call)
    if (one.method === 'get') return { ...one, handle }
    return {
      ...one,
      handle: async (call) => {
        for (let isFirst = true; ; isFirst = false) {
          const leave = await gate.enter()
          try {
            return await running.run({ leave }, () => handle(call))
          } catch (error) {
            // The call has changed nothing, because another process had put other settings in force.
            if (!isFirst || !(error instanceof Failure) || error.reason !== 'settings_changing') throw error
          } finally {
            leave()
          }
          await follow()
        }
      },
    }
  }

  return {
    current: () => current,
    /** The operations of the generation that is current when they are called. */
    operations: first.operations.map(gated),
    /**
     * Puts other settings in force.
     *
     * @param commit makes the change durable; called when the new generation is open, and no work of the old one is under way
     */
    change: (next: Config, commit: () => Promise<void>): Promise<void> => inTurn(() => replace(next, commit)),
    /** Puts in force what another process has committed. */
    follow,
    /** Resolves when no change is under way. */
    idle: () => last,
  }
}

const mapOf = ({ operations }: Generation) => new Map(operations.map((one) => [one.name, one]))

/** Knows the calls that have entered. While it is shut, further calls wait. */
function createGate() {
  let opening: PromiseWithResolvers<void> | undefined
  const inside = new Set<Promise<void>>()
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
     * @returns a function that leaves
     * @throws Failure `unavailable`, reason `settings_changing`
     */
    enter: async (): Promise<() => void> => {
      while (opening) {
        const isOpen = await Promise.race([opening.promise.then(() => true), sleep(WAIT_MS, false, { ref: false })])
        if (!isOpen) throw settingsChanging()
      }
      const { promise, resolve } = Promise.withResolvers<void>()
      inside.add(promise)
      return () => {
        inside.delete(promise)
        resolve()
      }
    },
    /** Resolves when the calls that are inside now have left. */
    left: () => Promise.all(inside),
  }
}
