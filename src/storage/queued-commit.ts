/** A commit that waits for its transaction, and what its caller gets when it is refused: the same in both engines. */
import { Failure, messageOf } from '../errors.ts'

export interface QueuedCommit<Step> {
  steps: Step[]
  resolve(touched: number[]): void
  reject(error: unknown): void
}

export interface FatalOptions {
  /**
   * Called once, after every waiting commit was rejected, when only a restart can show what is stored. From here on
   * the engine refuses all work; the caller ends the process (code 75: try again).
   */
  onFatal(error: Failure): void
}

export function rejectAll(commits: QueuedCommit<unknown>[], error: unknown): void {
  for (const { reject } of commits) reject(error)
}

export const keyRefused = (cause: unknown): Failure =>
  new Failure('conflict', `the database refused: ${messageOf(cause)}`, { cause })

export const faultyStatement = (cause: unknown): Failure =>
  new Failure('internal', `a faulty statement: ${messageOf(cause)}`, { cause })
