/** Plays the seeds that the campaign hands out, one after the other, and tells what became of each. */
import { takeReached } from './coverage.ts'
import { type Played, play, playOutside } from './run.ts'
import type { StoreKind } from './world.ts'

export interface Task {
  seed: number
  campaign: 'inside' | 'outside'
  /** What sells, instead of what the seed says. */
  store?: StoreKind | undefined
}

export interface Report extends Task {
  /** Undefined when the run itself broke down. */
  played: Played | undefined
  /** Cells of the transition table that were reached. */
  cells: string[]
  /** Why the run broke down. */
  error?: string
}

process.on('message', (task: Task) => {
  void work(task).then((report) => process.send?.(report))
})

async function work(task: Task): Promise<Report> {
  try {
    const played = await (task.campaign === 'inside' ? play : playOutside)(task.seed, { store: task.store })
    return { ...task, played, cells: takeReached() }
  } catch (error) {
    return {
      ...task,
      played: undefined,
      cells: takeReached(),
      error: String(error instanceof Error ? error.stack : error),
    }
  }
}
