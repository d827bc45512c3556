import { CommanderError } from 'commander'
import { codeOf, Failure, type FailureCode } from '../errors.ts'

/** What a script can act on. Nothing else in the program knows these numbers. */
export const exitCodes = {
  ok: 0,
  /** Something went wrong, or a check found something wrong. */
  failed: 1,
  /** The command line or an argument is wrong: the same again fails again. */
  usage: 2,
  /** Nothing listens where the service should. */
  notRunning: 3,
  notFound: 4,
  /** The service, a file or the state of a record says no. */
  refused: 5,
} as const

/** The reason of a Failure `unavailable` when nothing listens at the service's address. */
export const NOT_RUNNING = 'service_not_running'
/** The reason of a Failure `invalid` when a backup is not as it was written. */
const DAMAGED = 'backup_damaged'

const codes: Record<FailureCode, number> = {
  invalid: exitCodes.usage,
  unauthenticated: exitCodes.refused,
  forbidden: exitCodes.refused,
  not_found: exitCodes.notFound,
  conflict: exitCodes.refused,
  rejected: exitCodes.refused,
  unavailable: exitCodes.failed,
  unknown_outcome: exitCodes.failed,
  internal: exitCodes.failed,
}

/** The exit code of whatever a command threw. Help and version end a command by throwing too, with 0. */
export function exitCodeOf(error: unknown): number {
  if (error instanceof CommanderError) return error.exitCode === 0 ? exitCodes.ok : exitCodes.usage
  if (error instanceof Failure && error.reason === NOT_RUNNING) return exitCodes.notRunning
  // The command line was right, and the file is not.
  if (error instanceof Failure && error.reason === DAMAGED) return exitCodes.failed
  return codes[codeOf(error)]
}
