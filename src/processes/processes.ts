/** The processes on one database: which of them is the worker, and what each must know of the others. */

import type { NextRuns } from '../http/operation.ts'
import type { Log } from '../log.ts'
import type { ServiceDatabase } from '../storage/database-place.ts'
import { clearSetting, jsonSetting } from '../storage/settings.ts'
import type { WorkerLease } from '../storage/worker.ts'
import type { Acts, SupplierReport } from './acting.ts'
import { type AddressParts, silentAfterMs, supplierInUse } from './supplier-in-use.ts'

/** What the worker writes about itself into the database at each tick. */
export interface WorkerReport {
  /** Name of the process. */
  owner: string
  at: number
  supplier: SupplierReport
  nextRuns: NextRuns
}

/** What a process suspects by its deliveries: that its clock, or the webhook secret, is wrong. See `Inbox`. */
export interface Suspects {
  clock: boolean
  secret: boolean
}

export interface Processes {
  /** Whether this process is the worker. */
  acts: Acts
  /** The last report of another process that is the worker; undefined where no such report came lately. */
  report(): WorkerReport | undefined
  /**
   * Since when no worker has reported, in epoch ms, as of the last tick. Null while a worker reports, and in the first half
   * minute of this process, which cannot know yet.
   */
  absentSince(): number | null
  suspectedElsewhere(): Suspects
  askSweep(): Promise<void>
  /**
   * Writes down what other processes must know of this one, and reads what they wrote.
   *
   * @param sweep called in the worker when another process has asked for a sweep, at most once a minute
   */
  tick(own: { report: () => Omit<WorkerReport, 'owner' | 'at'>; suspects: Suspects; sweep: () => void }): Promise<void>
  /**
   * Waits until this process is the worker, then prepares, resumes and begins its work. A process also waits while the other
   * processes use another supplier.
   *
   * @param prepare called first, before this process acts as the worker
   * @param resume called next, also before this process acts; from here on each commit checks the lease
   */
  lead(work: {
    prepare: (lease: WorkerLease) => Promise<unknown>
    resume: () => Promise<unknown>
    begin: () => void
  }): Promise<void>
  /** Tells the worker what this process has stored for it: a worker of its workers, or anything else to be looked for. */
  tell(what: string): void
  withdraw(): void
  /** Gives up the lease, so that another process can be the worker. Called when the worker has ended its work. */
  end(): Promise<void>
}

const workerReport = jsonSetting<WorkerReport>('worker_report')
/** When several processes ask for a sweep within this time, the worker sweeps once. */
const SWEEP_GAP_MS = 60_000
const SWEEP_ASKED = 'sweep_asked'

const sweepAsked = jsonSetting<{ at: number }>(SWEEP_ASKED)
const inboxSuspects = jsonSetting<Suspects & { at: number; owner: string }>('inbox_suspects')

const NONE: Suspects = { clock: false, secret: false }

interface Parts extends AddressParts {
  elect: NonNullable<ServiceDatabase['elect']>
  tell: Processes['tell']
  owner: string
  log: Log
}

/** For a process that has its database to itself: it is always the worker. */
export const onlyProcess: Processes = {
  acts: () => true,
  report: () => undefined,
  absentSince: () => null,
  suspectedElsewhere: () => NONE,
  askSweep: async () => undefined,
  tick: async () => undefined,
  lead: async () => undefined,
  tell: () => undefined,
  withdraw: () => undefined,
  end: async () => undefined,
}

export function oneOfProcesses(parts: Parts): Processes {
  const { db, elect, tell, owner, now, monotonic, log, tickMs } = parts
  const freshMs = silentAfterMs(tickMs)
  const startedAt = monotonic()
  const halt = new AbortController()
  const supplier = supplierInUse(parts)
  let lease: WorkerLease | undefined
  let acting = false
  let report: WorkerReport | undefined
  let elsewhere = NONE
  let absentSince: number | null = null
  let sweptAt = Number.NEGATIVE_INFINITY
  const acts = () => acting && lease?.isHeld() === true
  /** A process is heard while its reports keep changing. Only the clock of this process is used, because others may differ. */
  const hearing = () => {
    let heard: { text: string; since: number } | undefined
    return (said: { at: number; owner: string } | undefined): boolean => {
      const text = said ? `${said.owner} ${said.at}` : ''
      if (text !== heard?.text) heard = { text, since: monotonic() }
      return said !== undefined && monotonic() - heard.since < freshMs
    }
  }
  const [isWorkerHeard, isSuspectHeard] = [hearing(), hearing()]
  const judge = (reported: WorkerReport | undefined): void => {
    const isHeard = isWorkerHeard(reported)
    const runsMs = monotonic() - startedAt
    const isAbsent = !isHeard && runsMs >= freshMs && !acts()
    const since = isAbsent ? (reported?.at ?? Math.round(now() - runsMs)) : null
    if (since !== null && absentSince === null) {
      log.warn('worker.absent', { error: `no worker has been heard of since ${new Date(since).toISOString()}` })
    }
    if (since === null && absentSince !== null) log.info('worker.heard')
    absentSince = since
  }
  return {
    acts,
    report: () => (report?.owner !== owner && isWorkerHeard(report) ? report : undefined),
    absentSince: () => (acts() ? null : absentSince),
    suspectedElsewhere: () => elsewhere,
    askSweep: async () => {
      await db.commit([sweepAsked.put({ at: now() }, now())])
    },
    tick: async (own) => {
      const at = now()
      const [reported, suspected, asked] = await Promise.all([
        workerReport.read(db),
        inboxSuspects.read(db),
        sweepAsked.read(db),
        supplier.look(acts()),
      ])
      report = reported
      judge(reported)
      elsewhere = suspected && suspected.owner !== owner && isSuspectHeard(suspected) ? suspected : NONE
      if (acts()) {
        const sweeps = asked !== undefined && monotonic() - sweptAt >= SWEEP_GAP_MS
        const taken = sweeps ? [clearSetting(SWEEP_ASKED)] : []
        await db.commit([workerReport.put({ ...own.report(), owner, at }, at), ...taken])
        if (!sweeps) return
        sweptAt = monotonic()
        own.sweep()
      } else if (own.suspects.clock || own.suspects.secret) {
        await db.commit([inboxSuspects.put({ ...own.suspects, owner, at }, at)])
      }
    },
    lead: async ({ prepare, resume, begin }) => {
      for (;;) {
        await supplier.agreed(halt.signal)
        lease = await elect({ owner, monotonic, signal: halt.signal, log })
        if (!lease) return
        // Processes with another supplier may have started while this process waited.
        if (await supplier.look(false)) break
        await lease.release()
      }
      await prepare(lease)
      lease.fence()
      await resume()
      acting = true
      begin()
    },
    tell,
    withdraw: () => halt.abort(),
    end: async () => {
      await lease?.release()
    },
  }
}
