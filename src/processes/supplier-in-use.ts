/**
 * The address of the supplier that the processes on one database have in common. The orders, the balance and the catalogue of a
 * database are those of one account: a process that is configured for another one must not take over in silence.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { silentAfterMs } from '../domain/silence.ts'
import { messageOf } from '../errors.ts'
import type { Log } from '../log.ts'
import type { Database } from '../storage/database.ts'
import { jsonSetting } from '../storage/settings.ts'

interface Parts {
  db: Database
  /** Where this process reaches the supplier. The API key is not compared: an account has another one after a rotation. */
  supplierUrl: string
  now: () => number
  /** What was said grows old by a clock that never jumps, from when this process has read it. */
  monotonic: () => number
  log: Pick<Log, 'warn'>
  /** Between two looks of a process. */
  tickMs: number
}

export interface SupplierInUse {
  /**
   * Says that this process runs, and reads what the others say.
   *
   * @param acts the worker is right, whatever it reads
   * @returns whether its address is the one in use
   */
  look(acts: boolean): Promise<boolean>
  /** Resolves when it is, or the signal came. */
  agreed(signal: AbortSignal): Promise<void>
}

/** How often one of them says it. */
const SAY_MS = 5_000
/** How often a process that waits looks. */
const LOOK_MS = 1_000

interface SaidAddress {
  address: string
  at: number
  /** After so long without being said again it is in use no more. */
  silentMs: number
}

const inUse = jsonSetting<SaidAddress>('supplier_in_use')

export function supplierInUse({ db, supplierUrl, now, monotonic, log, tickMs }: Parts): SupplierInUse {
  const own = comparable(supplierUrl)
  const silentMs = silentAfterMs(tickMs)
  let read: { text: string; since: number } | undefined
  let logged: string | undefined
  const warnOnce = (event: string, error: string): void => {
    if (error !== logged) log.warn(event, { error })
    logged = error
  }
  const look: SupplierInUse['look'] = async (acts) => {
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
    agreed: async (signal) => {
      const agrees = () =>
        look(false).catch((error: unknown) => {
          // A database that cannot be reached now is asked again.
          warnOnce('worker.unelected', messageOf(error))
          return false
        })
      while (!signal.aborted && !(await agrees())) await sleep(LOOK_MS, undefined, { signal }).catch(() => undefined)
    },
  }
}

/** Two ways to write one address are one address. */
const comparable = (address: string): string => new URL(address).href.replace(/\/+$/, '')
