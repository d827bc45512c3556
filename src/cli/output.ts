import path from 'node:path'
import { CommanderError } from 'commander'
import { age, counted as countedText, duration, grouped, money as moneyText } from '../domain/figures.ts'
import { countsByWord } from '../domain/labels.ts'
import { columnsOf, cut, plain, sentence, wrap } from '../domain/text-layout.ts'
import { codeOf, Failure, type FailureCode, messageOf } from '../errors.ts'

/** Columns by their titles: a field that is printed as it is, what makes the text, or more about the column. */
export type Columns<R extends object> = Record<string, (keyof R & string) | CellText<R> | Column<R>>

type CellText<R> = (row: R, now: number) => string

export interface Column<R extends object> {
  of: CellText<R>
  /** Numbers stand to the right. */
  right?: true
  /** Ids are copied from the screen: they are cut only when nothing else is left to cut. */
  keep?: true
}

/** What a field of some name is of: a record that has it. */
type With<K extends string> = Record<K, unknown>

/** A column of ids. */
export const key = <K extends string>(field: K): Column<With<K>> => ({ of: (row) => cell(row[field]), keep: true })

/** A column of numbers. */
export const number = <K extends string>(field: K): Column<With<K>> => ({ of: (row) => cell(row[field]), right: true })

/** A column of how long ago an instant was. */
export const ago = <K extends string>(field: K): Column<With<K>> => right((row, now) => ageOf(row[field], now))

/** A column whose texts stand to the right. */
export const right = <R extends object>(of: CellText<R>): Column<R> => ({ of, right: true })

/** A column of instants, to the second. */
export const time = <K extends string>(field: K): Column<With<K>> => ({ of: (row) => timeText(row[field]), keep: true })

export const timeText = (at: unknown): string => cell(at).slice(0, 19).replace('T', ' ')

/** Between two columns. */
const GAP = '  '

/** A column that says anything at all. */
const COLUMN_MIN = 4

/**
 * A table no wider than `width`, as lines with their ends.
 *
 * Columns are as wide as their content; while the table is too wide, the widest column that may be cut loses a
 * character, and the cells that no longer fit end in `…`.
 *
 * @param width of the terminal; Infinity where the output goes to a file or a pipe
 * @param now for columns of ages
 */
export function table<R extends object>(rows: R[], columns: Columns<R>, width: number, now = 0): string {
  const shown = Object.values(columns).map((column): Column<R> => {
    if (typeof column === 'string') return { of: (row) => cell(row[column]) }
    return typeof column === 'function' ? { of: column } : column
  })
  const lines = [Object.keys(columns), ...rows.map((row) => shown.map((column) => column.of(row, now)))]
  const cells = lines.map((line) => line.map(plain))
  const widths = shown.map((_, index) => Math.max(...cells.map((line) => columnsOf(line[index] ?? ''))))
  narrow(widths, shown, width - GAP.length * (shown.length - 1))
  return cells
    .map((line) => line.map((text, index) => padded(text, widths[index] ?? 0, shown[index]?.right ?? false)))
    .map((line) => `${line.join(GAP).trimEnd()}\n`)
    .join('')
}

function narrow(widths: number[], columns: { keep?: true }[], width: number): void {
  for (let total = widths.reduce((sum, each) => sum + each, 0); total > width; total -= 1) {
    const cuttable = columns.map((column, index) => (column.keep ? 0 : (widths[index] ?? 0)))
    const from = Math.max(...cuttable) > COLUMN_MIN ? cuttable : widths
    const widest = from.indexOf(Math.max(...from))
    if ((widths[widest] ?? 0) <= 1) return
    widths[widest] = (widths[widest] ?? 0) - 1
  }
}

function padded(text: string, width: number, right: boolean): string {
  const shown = columnsOf(text) > width ? cut(text, width) : text
  const space = ' '.repeat(width - columnsOf(shown))
  return right ? space + shown : shown + space
}

/** Columns that sentences beside a table get at least, where the terminal has so many. */
const WHY_MIN = 30

/**
 * A table with a sentence for each row, which is wrapped under its beginning and never cut.
 *
 * @returns the header, then each row
 */
export function reasonedRows<R extends object>(
  rows: R[],
  columns: Columns<R>,
  why: (row: R) => string,
  width: number,
): string[] {
  const left = table(rows, columns, width - WHY_MIN - GAP.length).split('\n')
  const indent = Math.max(...left.map(columnsOf)) + GAP.length
  return ['WHY', ...rows.map(why)].map((text, index) => {
    const before = left[index] ?? ''
    const lines = wrap(plain(text), width - indent)
    return `${before}${' '.repeat(indent - columnsOf(before))}${lines.join(`\n${' '.repeat(indent)}`)}\n`
  })
}

/** A table, or the sentence that says what it means that there is none. */
export const tableOr = <R extends object>(
  empty: string,
  rows: R[],
  columns: Columns<R>,
  { width, io }: { width: number; io: { now: () => number } },
): string => (rows.length > 0 ? table(rows, columns, width, io.now()) : empty && sentence(empty, width))

/** Parts of a text, those that are none left out: `HTTP 409, out_of_stock`. */
export const joined = (...parts: (string | false | null | undefined)[]): string => parts.filter(Boolean).join(', ')

/** A label and its text. */
export type Pair = [label: string, text: string]

/**
 * Pairs below each other, long texts wrapped at words under their beginning.
 *
 * @param given pairs; false stands for one that is left out
 */
export function details(given: (Pair | false)[], width: number): string {
  const pairs = given.filter((pair) => pair !== false)
  const indent = Math.max(...pairs.map(([label]) => columnsOf(label))) + GAP.length
  return pairs
    .map(([label, text]) => sentence(plain(text), width, { lead: label + ' '.repeat(indent - columnsOf(label)) }))
    .join('')
}

/**
 * Facts of a record by their labels: a field that is printed as it is, or what makes the text, which may be `width` wide to stand
 * in one line. Nothing leaves the line out; each text of several stands on a line of its own, under the first.
 */
export type Facts<R extends object> = Record<
  string,
  (keyof R & string) | ((record: R, now: number, width: number) => string | string[] | false | null | undefined)
>

/** The facts of a record as lines, see `details`. */
export function factsText<R extends object>(record: R, facts: Facts<R>, width: number, now = 0): string {
  const beside = width - Math.max(...Object.keys(facts).map(columnsOf)) - GAP.length
  const pairs = Object.entries(facts).flatMap(([label, fact]) => {
    const text = typeof fact === 'string' ? cell(record[fact]) : fact(record, now, beside)
    return [text || []].flat().map((one, index): Pair => [index === 0 ? label : '', one])
  })
  return details(pairs, width)
}

/** A fact that is left out where its field is empty. */
export const maybe =
  <K extends string>(field: K) =>
  (record: With<K>): string | false =>
    Boolean(record[field]) && cell(record[field])

/** An instant for reading closely; left out where there is none. */
export const when =
  <K extends string>(field: K, lead = '') =>
  (record: With<K>, now: number): string | false =>
    Boolean(record[field]) && `${lead}${instant(record[field], now)}`

/** One record of an answer. The service gives the shape; what is printed is picked by name. */
export type Row = Record<string, unknown>

export const asRow = (value: unknown): Row =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Row) : {}

export const asRows = (value: unknown): Row[] => (Array.isArray(value) ? value.map(asRow) : [])

/** Any value as one line of text; `-` for none. */
export function cell(value: unknown): string {
  if (value === null || value === undefined || value === '') return '-'
  if (typeof value === 'boolean') return value ? 'yes' : 'no'
  if (typeof value === 'number') return grouped(Number(value.toFixed(3)))
  if (Array.isArray(value)) return value.length === 0 ? '-' : value.map(cell).join(' ')
  return plain(typeof value === 'string' ? value : JSON.stringify(value))
}

/** A count with the word for one or for several: `1 dead delivery`, `1,234 dead deliveries`. */
export const counted = (count: unknown, one: string, several?: string): string =>
  countedText(Number(count), one, several)

/** Counts by name, the empty ones left out: `3 accepted, 10,000+ fulfilled`. @param upTo how far they were counted */
export const countsText = (value: unknown, labels: Record<string, { word: string }> = {}, upTo?: number): string =>
  plain(countsByWord(asRow(value) as Record<string, number>, labels, upTo)) || 'none'

/** Decimal text and its currency as one: `12.34 EUR`; `-` without an amount. */
export const money = (amount: string | null | undefined, currency: string | null | undefined): string =>
  amount ? plain(moneyText(amount, currency)) : '-'

/** How long ago an instant was: `40 s`, `12 min`, `3 h 10 min`, `5 days`. */
export function ageOf(instant: unknown, now: number): string {
  const at = typeof instant === 'string' ? Date.parse(instant) : Number.NaN
  return Number.isNaN(at) ? '-' : age(now - at)
}

/** An instant for reading closely: `2026-08-02 14:03:11Z (4 min ago)`. */
export function instant(value: unknown, now: number): string {
  const at = typeof value === 'string' ? Date.parse(value) : Number.NaN
  if (Number.isNaN(at)) return '-'
  const text = `${new Date(at).toISOString().slice(0, 19).replace('T', ' ')}Z`
  return at > now ? `${text} (in ${age(at - now)})` : `${text} (${age(now - at)} ago)`
}

/** How long a run or a sweep took; `-` until it ends. */
export const tookText = ({ startedAt, finishedAt }: { startedAt: string; finishedAt: string | null }): string =>
  finishedAt === null ? '-' : duration(Date.parse(finishedAt) - Date.parse(startedAt))

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

/** The folder of the program: a clone, a package that was installed, or `/app` of the image. */
const ROOT = path.resolve(import.meta.dirname, '../..')

/** A word of a command line, quoted where the shell would take it apart. */
export const quoted = (text: string): string =>
  /^[\w.:@%+=,/-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`

/**
 * How a command begins that is typed in this folder: `npx quayside` inside a clone, `quayside` where npm installed the
 * program, else its path, as in the image.
 */
export function programName(root: string, folder: string): string {
  if (root.split(path.sep).includes('node_modules')) return 'quayside'
  const inside = path.relative(root, folder)
  if (inside !== '..' && !inside.startsWith(`..${path.sep}`)) return 'npx quayside'
  return quoted(path.join(root, 'src', 'quayside.js'))
}

/** The name of a launcher comes from the launcher. */
const PROGRAM = process.env.QUAYSIDE_COMMAND || programName(ROOT, process.cwd())

/** A command of this program as a person can paste it: `doctor` is `npx quayside doctor`. */
export const commandLine = (command: string): string => `${PROGRAM} ${command}`
