/** Many seeds, shared by two processes, and what they add up to. */
import { fork } from 'node:child_process'
import path from 'node:path'
import { cells } from './coverage.ts'
import { faults, pairs } from './faults.ts'
import { PURCHASES_MIN } from './market.ts'
import { FIRED_MIN, type Played } from './run.ts'
import type { Report, Task } from './worker.ts'

export interface Figures {
  seeds: number
  purchases: number
  doubleCharges: number
  orphanCharges: number
  lostDeliveries: number
  duplicateFulfilments: number
  beyondEntitlement: number
  stuck: number
  /** Purchases that repeat one whose order the supplier listed later than it promises. */
  excusedUnlisted: number
  cellsReached: number
  cells: number
  pairsReached: number
  pairs: number
  outside: number
  outsideDetected: number
  passed: boolean
}

export interface Outcome {
  figures: Figures
  decisions: number
  freezes: number
  /** Seeds that went wrong, the first ones first. */
  red: Report[]
  /** What no seed reached, in words. */
  unreached: string[]
}

export interface CampaignOptions {
  tasks: Iterable<Task>
  mistake?: string
  /** Whether the seeds are enough to have reached everything. */
  mustReachAll: boolean
  /** Ends at the first seed that goes wrong. */
  untilRed: boolean
  onReport: (report: Report) => void
}

const WORKERS = 2

export async function runCampaign(options: CampaignOptions): Promise<Outcome> {
  const tasks = options.tasks[Symbol.iterator]()
  const tally = createTally()
  let ended = false
  const worker = (): Promise<void> =>
    new Promise((resolve, reject) => {
      const child = fork(path.join(import.meta.dirname, './worker.ts'), {
        execArgv: ['../../../src/quick-imports.js', '../mistakes/register.ts'].flatMap((name) => [
          '--import',
          new URL(name, import.meta.url).href,
        ]),
        env: { ...process.env, QUAYSIDE_MISTAKE: options.mistake ?? '' },
      })
      const next = (): void => {
        const task = ended ? undefined : tasks.next()
        if (task && !task.done) child.send(task.value)
        else child.disconnect()
      }
      child.on('message', (report: Report) => {
        tally.add(report)
        options.onReport(report)
        if (options.untilRed && isRed(report)) ended = true
        next()
      })
      child.on('exit', (code) => (code === 0 ? resolve() : reject(new Error(`a worker ended with ${code}`))))
      next()
    })
  await Promise.all(Array.from({ length: WORKERS }, worker))
  return tally.outcome(options.mustReachAll)
}

/** Whether a seed broke what its campaign promises. */
export function isRed({ played, campaign }: Report): boolean {
  if (!played || played.broken.length + played.lostDeliveries + played.duplicateFulfilments > 0) return true
  if (campaign === 'outside') return played.outsideDetected < played.outside
  if (tooLittle(played)) return true
  return played.doubleCharges + played.orphanCharges + played.stuck > 0
}

/**
 * A seed in which hardly anything happened proves nothing, and is as wrong as one that broke a promise. A restored database may lack the
 * purchase of an order that its shop has cancelled since.
 */
export const tooLittle = ({ purchases, fired }: Played): boolean =>
  purchases < PURCHASES_MIN - 1 || fired.length < FIRED_MIN

function createTally() {
  const sums = {
    purchases: 0,
    doubleCharges: 0,
    orphanCharges: 0,
    lostDeliveries: 0,
    duplicateFulfilments: 0,
    beyondEntitlement: 0,
    stuck: 0,
  }
  let excusedUnlisted = 0
  const outside = { outside: 0, outsideDetected: 0 }
  const counts = { seeds: 0, decisions: 0, freezes: 0 }
  const reachedCells = new Set<string>()
  const reachedFaults = new Set<string>()
  const reachedPairs = new Set<string>()
  const red: Report[] = []

  function addPlayed(played: Played, { campaign }: Report): void {
    counts.decisions += played.decisions
    counts.freezes += played.freezes
    if (campaign === 'outside') {
      outside.outside += played.outside
      outside.outsideDetected += played.outsideDetected
      return
    }
    counts.seeds += 1
    for (const name of Object.keys(sums) as (keyof typeof sums)[]) sums[name] += played[name]
    excusedUnlisted += played.excused.length
    for (const id of played.fired) reachedFaults.add(id)
    for (const one of played.fired) for (const other of played.fired) reachedPairs.add(`${one} ${other}`)
  }

  return {
    add: (report: Report): void => {
      for (const cell of report.cells) reachedCells.add(cell)
      if (report.played) addPlayed(report.played, report)
      if (isRed(report)) red.push(report)
    },
    outcome: (mustReachAll: boolean): Outcome => {
      const missedPairs = pairs.filter((pair) => !reachedPairs.has(pair.join(' ')))
      const missedCells = cells.filter((cell) => !reachedCells.has(cell))
      const missedFaults = faults.filter(({ id }) => !reachedFaults.has(id))
      const unreached = [
        ...missedCells,
        ...missedFaults.map(({ id }) => id),
        ...missedPairs.map((pair) => pair.join(' with ')),
      ]
      const figures: Figures = {
        seeds: counts.seeds,
        ...sums,
        excusedUnlisted,
        cellsReached: cells.length - missedCells.length,
        cells: cells.length,
        pairsReached: pairs.length - missedPairs.length,
        pairs: pairs.length,
        ...outside,
        passed: red.length === 0 && !(mustReachAll && unreached.length > 0),
      }
      red.sort((left, right) => left.seed - right.seed)
      return { figures, decisions: counts.decisions, freezes: counts.freezes, red, unreached }
    },
  }
}
