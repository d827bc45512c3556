/** The jobs: the tick that wakes every worker, work every few seconds, and work at times of the day, by node-cron. */

import { setTimeout as sleep } from 'node:timers/promises'
import { type ScheduledTask, schedule } from 'node-cron'
import { forgetEnded } from './access/sessions.ts'
import type { Backups } from './backup/backup.ts'
import type { Config } from './config/config.ts'
import { pathsOf } from './dialect/dialect.ts'
import { messageOf } from './errors.ts'
import type { NextRuns } from './http/operation.ts'
import { forgetCalls } from './http/worker-calls.ts'
import { forgetOld } from './inbox/process.ts'
import { provisionShops, type WebhookActions } from './inbox/webhooks.ts'
import type { Log } from './log.ts'
import { alertOverdueClaims } from './ordering/claims.ts'
import { distrustEarnings, sumEarnings } from './ordering/earnings.ts'
import { adoptOrders } from './ordering/intake.ts'
import { alertHeld, reportLate } from './ordering/late.ts'
import { askAgain } from './ordering/outages.ts'
import { indexKeysAgain } from './ordering/recover.ts'
import type { Runtime } from './runtime.ts'
import { runningSyncRuns } from './storage/runs.ts'

export interface JobParts {
  config: Config
  runtime: Runtime
  webhooks: Pick<WebhookActions, 'check'>
  backups: Pick<Backups, 'scheduled'>
  /** Wakes the workers for what other processes have stored; absent where there is no other process. */
  lookForWork?: (() => Promise<unknown>) | undefined
  /** Looks for alerts that people are to be notified of. */
  wakeAlerts: () => void
  /** Whether to begin by reading the supplier. Not after a change of other settings. */
  reads: boolean
}

export type Jobs = ReturnType<typeof startJobs>

/** Starts the jobs that run by the clock. Also does at once the work that may have come while no service ran. */
export function startJobs({ config, runtime, webhooks, backups, lookForWork, wakeAlerts, reads }: JobParts) {
  const { db, now, log } = runtime.ordering
  const provision = () => provisionShops({ ...runtime.ordering, publicUrl: config.publicUrl })
  const listsWebhooks = pathsOf(config.dialectFacts).webhooks !== null
  const readings = {
    catalogue: every(config.syncCron, 'sync', () => runtime.syncs.finish('schedule'), log),
    balance: every(config.balanceCron, 'balance', runtime.ordering.checkBalance, log),
    sweep: every(config.sweepCron, 'sweep', () => runtime.sweeps.recent('schedule'), log),
  }
  const timers = [
    ...Object.values(readings),
    every('40 2 * * *', 'nightly', () => runtime.sweeps.start('nightly'), log),
    ...(listsWebhooks ? [every('10 3 * * *', 'webhooks', () => webhooks.check(), log)] : []),
    every('*/15 * * * *', 'shops', provision, log),
  ]
  /** Jobs about the database alone. */
  const keeping = [
    every('17 3 * * *', 'forget', () => forgetOld({ ...runtime.ordering, sleep }), log),
    every('18 3 * * *', 'calls', () => forgetCalls({ db, now }), log),
    every('19 3 * * *', 'sessions', () => forgetEnded({ db, now }), log),
    ...(config.backups.cron === null ? [] : [every(config.backups.cron, 'backup', backups.scheduled, log)]),
  ]
  const tick = async (): Promise<void> => {
    if (await runtime.checkClock()) for (const timer of [...timers, ...keeping]) timer.rearm()
    runtime.wakeAll()
    wakeAlerts()
  }
  const lookAtWaiting = async (): Promise<void> => {
    await adoptOrders(runtime.ordering)
    await alertHeld(runtime.ordering)
    await alertOverdueClaims(runtime.ordering)
    await reportLate(runtime.ordering)
    await indexKeysAgain(runtime.ordering)
  }
  /** Reads the catalogue, or goes on with a reading that the change of the settings has cut short. */
  const followUp = async (): Promise<void> => {
    if (reads || (await db.query(runningSyncRuns())).length > 0) runtime.syncs.follow('start')
  }
  const repeated = [
    everySeconds(config.ordering.tickSeconds, 'tick', tick, log),
    everySeconds(HELD_SECONDS, 'held', lookAtWaiting, log),
    everySeconds(REATTACH_SECONDS, 'restore', runtime.reattachOrders, log),
    everySeconds(ASK_SECONDS, 'supplier', () => askAgain(runtime.ordering), log),
    ...(lookForWork ? [everySeconds(LOOK_SECONDS, 'look', lookForWork, log)] : []),
  ]
  const summing = everySeconds(
    EARNINGS_SECONDS,
    'earnings',
    () => sumEarnings(runtime.ordering, () => sleep(EARNINGS_REST_MS)),
    log,
  )
  const logged = (event: string) => (error: unknown) => log.warn(event, { error: messageOf(error) })
  void runtime.reattachOrders().catch(logged('restore.failed'))
  void runtime.ordering.checkBalance().catch(logged('balance.unread'))
  if (listsWebhooks && reads) void webhooks.check().catch(logged('webhooks.unchecked'))
  void provision().catch(logged('shops.unprovisioned'))
  if (lookForWork) void distrustEarnings(runtime.ordering).catch(logged('earnings.unsummed'))
  void followUp().catch(logged('sync.broken_off'))
  runtime.wakeAll()
  const end = {
    keeping: () => Promise.all([summing(), ...keeping.map((timer) => timer.end())]),
    others: () => Promise.all([...repeated.map((stop) => stop()), ...timers.map((timer) => timer.end())]),
  }
  return {
    /** When each reading of the supplier begins next, epoch milliseconds; null: not known. */
    nextRuns: (): NextRuns => ({
      catalogue: readings.catalogue.next(),
      balance: readings.balance.next(),
      sweep: readings.sweep.next(),
    }),
    /** Ends all jobs. Resolves when no job is under way but those about the database alone, which may take minutes. */
    leave: async (): Promise<void> => {
      void end.keeping()
      await end.others()
    },
    /** Ends all jobs. Resolves when no job is under way. */
    end: async (): Promise<void> => {
      await Promise.all([end.keeping(), end.others()])
    },
  }
}

/** Seconds between two looks at what other processes have stored for the worker. */
const LOOK_SECONDS = 0.25

/** Seconds between two looks for orders that wait too long, or that a process of the previous version has taken. */
const HELD_SECONDS = 60

/** Seconds between two rounds of reattaching orders. Without a restore a round is two reads of the database. */
const REATTACH_SECONDS = 5

/** Seconds between two looks for times whose earnings are to be summed again. */
const EARNINGS_SECONDS = 5
/** Between two days that are summed: what comes meanwhile waits for one day at most. */
const EARNINGS_REST_MS = 100

/** Seconds between two requests that only find out whether the supplier answers again. */
const ASK_SECONDS = 30

/** Runs work at the times of a cron expression, never overlapping itself. */
function every(expression: string, name: string, work: () => Promise<unknown>, log: Log) {
  const run = onePass(name, work, log)
  const arm = (): ScheduledTask => schedule(expression, run.start, { name, noOverlap: true })
  let task = arm()
  return {
    /** When the work begins next, epoch milliseconds. */
    next: () => task.getNextRun()?.getTime() ?? null,
    /** Computes the next time again: after a jump of the clock, the timer that was set before the jump waits too long. */
    rearm: () => {
      void task.destroy()
      task = arm()
    },
    /** Ends the schedule. Resolves when a run under way is over. */
    end: async () => {
      await task.destroy()
      await run.idle()
    },
  }
}

/**
 * Runs work every so many seconds, never overlapping itself. The intervals do not depend on the wall clock: the tick,
 * which notices changes of that clock, is one of these runs.
 *
 * @returns a function that ends the runs, and resolves when a run under way is over
 */
export function everySeconds(
  seconds: number,
  name: string,
  work: () => Promise<unknown>,
  log: Log,
): () => Promise<void> {
  const run = onePass(name, work, log)
  const timer = setInterval(run.start, seconds * 1_000)
  return async () => {
    clearInterval(timer)
    await run.idle()
  }
}

/** Makes work that timers start. A start during a run begins no second run. An error is logged; the next start tries again. */
function onePass(name: string, work: () => Promise<unknown>, log: Log) {
  let running: Promise<unknown> | undefined
  return {
    start: async (): Promise<void> => {
      running ??= work()
        .catch((error: unknown) => log.warn('schedule.failed', { kind: name, error: messageOf(error) }))
        .finally(() => {
          running = undefined
        })
      await running
    },
    idle: async (): Promise<void> => {
      await running
    },
  }
}
