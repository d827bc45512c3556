/**
 * The address of the supplier that the processes on one database have in common. The orders, the balance and the catalogue of a
 * database belong to one account: a process that is configured for another account must not silently become the worker.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { messageOf } from '../errors.ts'
import type { Log } from '../log.ts'
import type { Database } from '../storage/database.ts'
import { jsonSetting } from '../storage/settings.ts'

const SILENT_MS = 30_000
/** Rare ticks need a longer limit, because a process writes its message once a tick, and another reads it once a tick. */
const SILENT_TICKS = 3

/** Returns for how long a silent process has not repeated its message to the others. @param tickMs the time between its ticks */
export const silentAfterMs = (tickMs: number): number => Math.max(SILENT_MS, SILENT_TICKS * tickMs)

export interface AddressParts {
  db: Database
  /** Where this process reaches the supplier. API keys are not compared: an account has a new key after a rotation. */
  supplierUrl: () => string
  now: () => number
  /** A clock that never jumps. It measures for how long other processes have written nothing new. */
  monotonic: () => number
  log: Pick<Log, 'warn'>
  /** The time between two ticks. A process looks at the supplier's address in use at each tick. */
  tickMs: number
}

/** How often a process writes its supplier's address again, to show that the address is still in use. */
const SAY_MS = 5_000
/** How often a process that waits for its supplier's address to be in use looks again. */
const LOOK_MS = 1_000

interface SaidAddress {
  address: string
  at: number
  /** An address that was not written again for this long is no longer in use. */
  silentMs: number
}

const inUse = jsonSetting<SaidAddress>('supplier_in_use')

export function supplierInUse({ db, supplierUrl, now, monotonic, log, tickMs }: AddressParts) {
  const silentMs = silentAfterMs(tickMs)
  let read: { text: string; since: number } | undefined
  let logged: string | undefined
  const warnOnce = (event: string, error: string): void => {
    if (error !== logged) log.warn(event, { error })
    logged = error
  }
  /**
   * Reads the address in use. Writes the address of this process, unless other processes use another one.
   *
   * @param acts whether this process is the worker, whose address is always the one in use
   * @returns whether the address of this process is the one in use
   */
  const look = async (acts: boolean): Promise<boolean> => {
    const own = comparable(supplierUrl())
    const said = await inUse.read(db)
    const text = JSON.stringify(said ?? null)
    if (text !== read?.text) read = { text, since: monotonic() }
    const ageMs = monotonic() - read.since
    const differs = said !== undefined && said.address !== own
    if (differs && !acts && ageMs < said.silentMs) {
      const difference = `supplier.baseUrl is ${own} here and ${said.address} there`
      const until = `until none of those has run for ${said.silentMs / 1_000} seconds, this one is not the worker`
      warnOnce('supplier.differs', `this process differs from the processes that run: ${difference}; ${until}`)
      return false
    }
    if (differs && !acts) log.warn('supplier.changed', { before: said.address, after: own })
    logged = undefined
    if (said && !differs && ageMs < SAY_MS) return true
    await db.commit([inUse.put({ address: own, at: now(), silentMs }, now())])
    return true
  }
  return {
    look,
    /** Resolves when the supplier's address of this process is the one in use, or when the signal is aborted. */
    agreed: async (signal: AbortSignal) => {
      const agrees = () =>
        look(false).catch((error: unknown) => {
          // The database may be out of reach for a moment. The loop asks again.
          warnOnce('worker.unelected', messageOf(error))
          return false
        })
      while (!signal.aborted && !(await agrees())) await sleep(LOOK_MS, undefined, { signal }).catch(() => undefined)
    },
  }
}

/** Makes addresses comparable: two ways to write one address give the same text. */
const comparable = (address: string): string => new URL(address).href.replace(/\/+$/, '')
