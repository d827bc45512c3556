/** Lets the service live and die as planned, and notices when it ends in any other way. */
import { readdirSync, statSync } from 'node:fs'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Life } from './lives.ts'
import type { Ended, Service, Started, StartOptions } from './service.ts'

/** What the lives came to. */
export interface Deaths {
  /** kill -9 that hit, by where: a crash point, `random`, `after a pause`, … */
  kills: Record<string, number>
  /** Lives that ended in another way than by kill -9, by kind. */
  others: Record<string, number>
  /** Ends that the run did not cause, with the last lines. */
  unexpected: string[]
}

/** Whose life it is, and what its ends come to. */
export interface Ward {
  service: Service
  deaths: Deaths
  folder: string
  /** A crash point that is not reached in this time is given up: the life ends by kill -9. */
  pointPatienceMs: number
  /** For one process of several: the ends that follow from what is done to the database, in words; undefined for all others. */
  excuse?: (ended: Ended, lastLines: string[]) => string | undefined
  /** The epoch of the lease of the worker, by the database itself. */
  epoch?: () => Promise<number>
  /** Transactions of this process that the database has stored so far. */
  stored?: () => number
}

/** Until a full disk is noticed: the service writes several times a second. */
const FULL_PATIENCE_MS = 9_000
/** An end in order takes at most this: the service drains for a while. */
const STOP_PATIENCE_MS = 30_000
/** The service ended because only a new start can tell what is stored. */
const EXIT_RESTART = 75

export const noDeaths = (): Deaths => ({ kills: {}, others: {}, unexpected: [] })

/** @returns when the life is over */
export async function liveOnce(ward: Ward, life: Life): Promise<void> {
  const { service, deaths, folder } = ward
  const started = service.start(optionsOf(life, folder))
  const note = (of: 'kills' | 'others', name: string): void => {
    deaths[of][name] = (deaths[of][name] ?? 0) + 1
  }
  const kill = async (name: string): Promise<void> => {
    service.signal('SIGKILL')
    const ended = await started.ended
    if (ended.signal === 'SIGKILL') note('kills', name)
    else unexpected(ended)
  }
  const unexpected = (ended: Ended): void => noteEnd(ward, life.kind, ended)

  switch (life.kind) {
    case 'killed':
      if (life.from === 'start') await within(life.afterMs, started.ended)
      else await lives(started, life.afterMs)
      return kill('random')
    case 'point': {
      const ended = (await started.ready) ? await within(ward.pointPatienceMs, started.ended) : await started.ended
      if (!ended) return kill('random')
      return ended.signal === 'SIGKILL' ? note('kills', life.point) : unexpected(ended)
    }
    case 'disk_full': {
      const ended = await within(FULL_PATIENCE_MS, started.ended)
      if (!ended) return kill('random')
      // One that is full already is found at the start, which then fails with 1.
      const atStart = ended.code === 1 && !(await started.ready)
      return ended.code === EXIT_RESTART || atStart ? note('others', 'disk full') : unexpected(ended)
    }
    case 'stopped': {
      if (await lives(started, life.afterMs)) service.signal('SIGTERM')
      const ended = await within(STOP_PATIENCE_MS, started.ended)
      if (!ended) return kill('stop that hung')
      return ended.code === 0 ? note('others', 'stopped in order') : unexpected(ended)
    }
    case 'paused':
      if (await lives(started, life.afterMs)) {
        service.signal('SIGSTOP')
        await sleep(life.ms)
        service.signal('SIGCONT')
        note('others', 'paused past a lease')
        await within(AFTERMATH_MS, started.ended)
      }
      return kill('after a pause')
    case 'overslept': {
      const isWorker = async () => (await lives(started, life.afterMs)) && (await becomesWorker(ward, started))
      if (!(await isWorker())) return kill('random')
      const { epoch = async () => 0, stored = () => 0 } = ward
      const before = await epoch()
      service.signal('SIGSTOP')
      await sleep(life.ms)
      const isReplaced = (await epoch()) > before
      const storedBefore = stored()
      service.signal('SIGCONT')
      const ended = await within(AFTERMATH_MS, started.ended)
      if (isReplaced && stored() > storedBefore) {
        deaths.unexpected.push(`${service.name}: stored something after another process had become the worker`)
      }
      note('others', isReplaced ? 'slept while another became the worker' : 'slept past the lease of the worker')
      if (ended) return ended.code === EXIT_RESTART ? undefined : unexpected(ended)
      deaths.unexpected.push(`${service.name}: did not end after it had slept past its lease`)
      return kill('after a pause')
    }
    case 'clock':
      if (await lives(started, life.afterMs)) {
        service.shiftClock(life.shiftMs)
        await within(life.ms, started.ended)
        note('others', life.shiftMs > 0 ? 'clock put ahead' : 'clock put back')
      }
      if (life.dies === 'after') {
        service.shiftClock(0)
        await within(AFTERMATH_MS, started.ended)
      }
      await kill(life.dies === 'after' ? 'after a clock jump' : 'while its clock was wrong')
      return service.shiftClock(0)
  }
}

/** @returns whether it is the worker now; a process that stands by may wait in vain */
async function becomesWorker({ service, pointPatienceMs }: Ward, { ended }: Started): Promise<boolean> {
  for (const until = performance.now() + pointPatienceMs; performance.now() < until; ) {
    if (service.isWorker()) return (await within(500, ended)) === undefined
    if ((await within(100, ended)) !== undefined) return false
  }
  return false
}

/** An end that the life did not bring. */
export function noteEnd({ service, deaths, excuse }: Ward, when: string, ended: Ended): void {
  const why = excuse?.(ended, service.lastLines())
  if (why === undefined) noteUnexpected(deaths, when, ended, service)
  else deaths.others[why] = (deaths.others[why] ?? 0) + 1
}

/** What becomes of a process when its database is away, or has another worker. */
export function excuseOf({ code }: Ended, lastLines: string[]): string | undefined {
  const said = lastLines.filter((line) => line.startsWith('quayside: ')).at(-1) ?? ''
  if (code === EXIT_RESTART) {
    if (said.includes('COMMIT')) return 'ended: no answer to COMMIT'
    if (said.includes('the worker no more')) return 'ended: the lease was over'
    if (said.includes('another process is the worker')) return 'ended: fenced'
    return 'ended, to be started again'
  }
  return code === 1 && /database|Connection terminated|ECONN/.test(said) ? 'did not start: no database' : undefined
}

export function noteUnexpected(deaths: Deaths, when: string, { code, signal }: Ended, service: Service): void {
  const text = service.lastLines().slice(-5).join('\n')
  deaths.unexpected.push(`${service.name}, ${when}: ended with ${signal ?? `code ${code}`}\n${text}`)
}

/** What a pause or a jump does to the service shows within this time. */
const AFTERMATH_MS = 3_000

function optionsOf(life: Life, folder: string): StartOptions {
  if (life.kind === 'point') return { crash: `${life.point}:${life.count}` }
  if (life.kind === 'disk_full') return { fileKib: largestKib(folder) + life.kib }
  return {}
}

/** The log of commits is the file that grows; what is larger already must not stand in its way. */
function largestKib(folder: string): number {
  const sizes = readdirSync(folder)
    .filter((name) => name.startsWith('quayside.db-wal'))
    .map((name) => statSync(path.join(folder, name)).size)
  return Math.ceil(Math.max(0, ...sizes) / 1024)
}

/** @returns whether it became ready and then lived for so long */
const lives = async ({ ready, ended }: Started, ms: number): Promise<boolean> =>
  (await ready) && (await within(ms, ended)) === undefined

/** @returns undefined when it takes longer */
async function within<T>(ms: number, work: Promise<T>): Promise<T | undefined> {
  const halt = new AbortController()
  const late = sleep(ms, undefined, { signal: halt.signal }).catch(() => undefined)
  return Promise.race([work, late]).finally(() => halt.abort())
}
