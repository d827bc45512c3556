import { CommanderError } from 'commander'
import { codeOf, Failure, type FailureCode } from '../errors.ts'

export interface Column {
  title: string
  of: (row: Row) => string
  /** Numbers stand to the right. */
  right?: true
  /** Ids are copied from the screen: they are cut only when nothing else is left to cut. */
  keep?: true
}

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
 */
export function table(rows: Row[], columns: Column[], width: number): string {
  const lines = [columns.map((column) => column.title), ...rows.map((row) => columns.map((column) => column.of(row)))]
  const cells = lines.map((line) => line.map(plain))
  const widths = columns.map((_, place) => Math.max(...cells.map((line) => columnsOf(line[place] ?? ''))))
  narrow(widths, columns, width - GAP.length * (columns.length - 1))
  return cells
    .map((line) => line.map((text, place) => padded(text, widths[place] ?? 0, columns[place]?.right ?? false)))
    .map((line) => `${line.join(GAP).trimEnd()}\n`)
    .join('')
}

function narrow(widths: number[], columns: Column[], width: number): void {
  for (let total = widths.reduce((sum, each) => sum + each, 0); total > width; total -= 1) {
    const cuttable = columns.map((column, place) => (column.keep ? 0 : (widths[place] ?? 0)))
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

/** The beginning of a text and `…`, together no wider than `width`. */
export function cut(text: string, width: number): string {
  if (columnsOf(text) <= width) return text
  let shown = ''
  for (const { segment } of graphemes.segment(text)) {
    if (columnsOf(shown + segment) > width - 1) break
    shown += segment
  }
  return `${shown}…`
}

const graphemes = new Intl.Segmenter('en', { granularity: 'grapheme' })

/** What terminals draw two columns wide: ideographs, kana, Hangul, full-width forms, emoji. */
const WIDE =
  /[\p{sc=Han}\p{sc=Hiragana}\p{sc=Katakana}\p{sc=Hangul}\p{Emoji_Presentation}\u3000-\u303e\uff01-\uff60\uffe0-\uffe6]/u

/** How many columns of a terminal a text takes. Nearly every text is ASCII, where each character takes one. */
export function columnsOf(text: string): number {
  if (/^[\x20-\x7e]*$/.test(text)) return text.length
  let width = 0
  for (const { segment } of graphemes.segment(text)) width += WIDE.test(segment) ? 2 : 1
  return width
}

/**
 * Pairs below each other, long texts wrapped at words under their beginning.
 *
 * @param pairs label and text
 */
export function details(pairs: [string, string][], width: number): string {
  const indent = Math.max(...pairs.map(([label]) => columnsOf(label))) + GAP.length
  return pairs
    .map(([label, text]) => {
      return sentence(plain(text), width, { lead: label + ' '.repeat(indent - columnsOf(label)) })
    })
    .join('')
}

/** How wide a sentence is where no terminal says it: in a file or a pipe. */
const SENTENCE_WIDTH = 80

/**
 * A sentence as lines with their ends, wrapped at words. Unlike a table, it is no wider in a file or a pipe.
 *
 * @param lead stands before the first line
 * @param hang how far the lines below are indented; as wide as `lead` when it is left out
 */
export function sentence(
  text: string,
  width: number,
  { lead = '', hang = columnsOf(lead) }: { lead?: string; hang?: number } = {},
): string {
  const columns = Number.isFinite(width) ? width : SENTENCE_WIDTH
  const [first, ...rest] = wrap(text, columns - hang, columns - columnsOf(lead))
  const lines = [`${lead}${first}`, ...rest.map((line) => `${' '.repeat(hang)}${line}`)]
  return lines.map((line) => `${line.trimEnd()}\n`).join('')
}

/** Stands for a space of a command. It is of private use, and `plain` leaves none in a text. */
const COMMAND_SPACE = '\u{e000}'

/**
 * Lines of whole words. A word that is wider than a line gets one of its own, so that it can be copied in one piece; so
 * does a command between backticks, where a line has room for it.
 *
 * @param first width of the first line, where it differs
 */
export function wrap(text: string, width: number, first = width): string[] {
  const room = Math.min(width, first)
  const words = text
    .replaceAll(/`[^`]+`/g, (command) => command.replaceAll(' ', COMMAND_SPACE))
    .split(' ')
    .flatMap((word) => (columnsOf(word) <= room ? [word] : word.split(COMMAND_SPACE)))
  const lines: string[] = []
  for (const word of words) {
    const line = lines.at(-1)
    if (line !== undefined && columnsOf(line) + 1 + columnsOf(word) <= (lines.length === 1 ? first : width))
      lines[lines.length - 1] = `${line} ${word}`
    else lines.push(word)
  }
  return lines.map((line) => line.replaceAll(COMMAND_SPACE, ' '))
}

/** One record of an answer. The service gives the shape; what is printed is picked by name. */
export type Row = Record<string, unknown>

export const asRow = (value: unknown): Row =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Row) : {}

export const asRows = (value: unknown): Row[] => (Array.isArray(value) ? value.map(asRow) : [])

/** Any value as one line of text; `-` for none. */
export function cell(value: unknown): string {
  if (value === null || value === undefined || value === '') return '-'
  if (typeof value === 'boolean') return value ? 'yes' : 'no'
  if (typeof value === 'number') return value.toLocaleString('en-US')
  if (Array.isArray(value)) return value.length === 0 ? '-' : value.map(cell).join(' ')
  return plain(typeof value === 'string' ? value : JSON.stringify(value))
}

/** A count with the word for one or for several: `1 dead delivery`, `1,234 dead deliveries`. */
export const counted = (count: unknown, one: string, several: string): string =>
  `${cell(count)} ${Number(count) === 1 ? one : several}`

/** Counts by name, the empty ones left out: `3 accepted, 41 fulfilled`. */
export function countsText(value: unknown): string {
  const counts = Object.entries(asRow(value)).filter(([, count]) => count !== 0)
  return counts.length === 0
    ? 'none'
    : counts.map(([name, count]) => `${cell(count)} ${name.replaceAll('_', ' ')}`).join(', ')
}

/**
 * Text that a terminal prints and never obeys: names and messages come from the supplier and from stores, and an escape
 * sequence in one could rewrite what was printed above it.
 */
export const plain = (text: string): string => text.replaceAll(/[\p{C}\p{Zl}\p{Zp}]+/gu, ' ').trim()

/** Decimal text and its currency as one: `12.34 EUR`; `-` without an amount. */
export const money = (amount: unknown, currency: unknown): string =>
  typeof amount === 'string' ? plain(`${amount} ${typeof currency === 'string' ? currency : ''}`) : '-'

/** How long ago an instant was, in its largest whole unit: `40 s`, `12 min`, `3 h`, `5 d`. */
export function age(instant: unknown, now: number): string {
  const at = typeof instant === 'string' ? Date.parse(instant) : Number.NaN
  return Number.isNaN(at) ? '-' : duration(Math.max(0, now - at))
}

/** An instant for reading closely: `2026-08-02 14:03:11Z (4 min ago)`. */
export function instant(value: unknown, now: number): string {
  const at = typeof value === 'string' ? Date.parse(value) : Number.NaN
  if (Number.isNaN(at)) return '-'
  const text = `${new Date(at).toISOString().slice(0, 19).replace('T', ' ')}Z`
  return at > now ? `${text} (in ${duration(at - now)})` : `${text} (${duration(now - at)} ago)`
}

const units: [number, string][] = [
  [86_400_000, 'd'],
  [3_600_000, 'h'],
  [60_000, 'min'],
]

/** Milliseconds in their largest whole unit, down to whole seconds. */
export function duration(ms: number): string {
  const [size, name] = units.find(([unit]) => ms >= unit) ?? [1_000, 's']
  return `${Math.floor(ms / size)} ${name}`
}

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
