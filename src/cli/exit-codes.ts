/** How a command ends: its exit code, and what it says of an error. */
import { CommanderError } from 'commander'
import { codeOf, Failure, type FailureCode, messageOf } from '../errors.ts'

/** What a script can act on, with its meaning for the help. Nothing else in the program knows these numbers. */
const exits = {
  ok: [0, 'done'],
  failed: [1, 'failed, or a check found something wrong'],
  usage: [2, 'wrong usage: the same command line fails again'],
  notRunning: [3, 'the service is not running'],
  notFound: [4, 'not found'],
  refused: [5, 'refused by the service, by a file or by the state of a record'],
  restart: [75, 'the database failed under the service: start it again'],
} as const

type ExitName = keyof typeof exits
const entries = Object.entries(exits) as [ExitName, (typeof exits)[ExitName]][]

export const exitCodes = Object.fromEntries(entries.map(([name, [code]]) => [name, code])) as Record<ExitName, number>

/** A line for each. */
export const exitCodesText = entries.map(([, [code, means]]) => `  ${String(code).padEnd(4)}${means}\n`).join('')

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

/** The same failure, between what it means here and what to do about it. */
export function saying(what: string, error: unknown, more = ''): Failure {
  const known = error instanceof Failure ? error : new Failure('unavailable', messageOf(error))
  const { code, message, fields, reason } = known
  return new Failure(code, `${what}: ${message}${more}`, { cause: error, fields, reason })
}

/**
 * What a failure says, line by line: first what is wrong, with the service's code and request id if it comes from there,
 * then what to do next.
 */
export function messageLines({ message, reason, requestId }: Failure): string[] {
  const [first = '', ...more] = message.split('\n')
  const isNamed = requestId === undefined || first.includes(requestId)
  return [isNamed ? first : `${first} (${reason}, request ${requestId})`, ...more]
}

/** What a command threw, as `--json` prints it: the error envelope of the API. */
export function failureDocument(error: unknown) {
  const { reason, fields = [], requestId = null } = error instanceof Failure ? error : {}
  const code = error instanceof CommanderError ? 'invalid' : (reason ?? codeOf(error))
  // Commander's messages begin so.
  const message = messageOf(error).replace(/^error: /, '')
  return {
    success: false,
    error: {
      code,
      message,
      ...(fields.length > 0 && { fields }),
    },
    request_id: requestId,
  }
}
