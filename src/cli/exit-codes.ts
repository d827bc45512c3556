/** How a command ends: its exit code, and what the command says of an error. */
import { CommanderError } from 'commander'
import { codeOf, Failure, type FailureCode, failureCodes, failureReasons, localReasons, messageOf } from '../errors.ts'
import { documentPath } from './words.ts'

/** The exit codes, which scripts can act on, with their meanings for the help. These numbers stand nowhere else in the program. */
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

export const exitCodesText = entries.map(([, [code, means]]) => `  ${String(code).padEnd(4)}${means}\n`).join('')

/** The reason of a Failure `unavailable` when nothing listens at the service's address. */
export const NOT_RUNNING = 'service_not_running'
/** The reason of a Failure `invalid` when a backup is damaged. */
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

/** Returns the exit code for what a command threw. Commander also throws after `--help` and `--version`: their code is 0. */
export function exitCodeOf(error: unknown): number {
  if (error instanceof CommanderError) return error.exitCode === 0 ? exitCodes.ok : exitCodes.usage
  if (error instanceof Failure && error.reason === NOT_RUNNING) return exitCodes.notRunning
  // The command line was right, but the backup file is damaged.
  if (error instanceof Failure && error.reason === DAMAGED) return exitCodes.failed
  return codes[codeOf(error)]
}

/** Returns the same failure with a longer message: `what` the failure means here, then the message, then `more`: what to do. */
export function saying(what: string, error: unknown, more = ''): Failure {
  const known = error instanceof Failure ? error : new Failure('unavailable', messageOf(error))
  const { code, message, fields, reason } = known
  return new Failure(code, `${what}: ${message}${more}`, { cause: error, fields, reason })
}

/** The names with a section in `docs/troubleshooting.md`, but those whose messages say everything. */
const explained = new Set<string>([...Object.keys({ ...failureCodes, ...failureReasons }), ...localReasons])
for (const name of ['invalid', 'not_found']) explained.delete(name)

/** Returns where to read more about a failure, if a person would need it: `docs/troubleshooting.md#wrong_key`. */
export function sectionOf({ code, reason }: Failure): string | undefined {
  const name = reason ?? (code === 'internal' ? code : '')
  return explained.has(name) ? `${documentPath('docs/troubleshooting.md')}#${name}` : undefined
}

/**
 * Returns the lines that tell a person of a failure: what is wrong, what to do next, and where to read more. The first line has
 * the service's code and request id when the failure comes from the service.
 */
export function messageLines(failure: Failure): string[] {
  const { message, reason, requestId } = failure
  const [first = '', ...more] = message.split('\n')
  const isNamed = requestId === undefined || first.includes(requestId)
  const section = sectionOf(failure)
  return [
    isNamed ? first : `${first} (${reason}, request ${requestId})`,
    ...more,
    ...(section === undefined ? [] : [`More: ${section}`]),
  ]
}

/** Returns what a command threw as `--json` prints it: in the error envelope of the API. */
export function failureDocument(error: unknown) {
  const { reason, fields = [], requestId = null } = error instanceof Failure ? error : {}
  const code = error instanceof CommanderError ? 'invalid' : (reason ?? codeOf(error))
  // Commander's messages begin with `error: `.
  const message = messageOf(error).replace(/^error: /, '')
  return { success: false, error: { code, message, ...(fields.length > 0 && { fields }) }, request_id: requestId }
}
