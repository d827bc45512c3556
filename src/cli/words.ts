/** Values as a terminal shows them, and commands as a person can paste them. */
import path from 'node:path'
import { age, duration, grouped, money as moneyText } from '../domain/figures.ts'
import { countsByWord } from '../domain/labels.ts'
import { plain } from '../domain/text-layout.ts'

/** Writes any value as one line of text. A missing value is `-`. */
export function cell(value: unknown): string {
  if (value === null || value === undefined || value === '') return '-'
  if (typeof value === 'boolean') return value ? 'yes' : 'no'
  if (typeof value === 'number') return grouped(Number(value.toFixed(3)))
  if (Array.isArray(value)) return value.length === 0 ? '-' : value.map(cell).join(' ')
  return plain(typeof value === 'string' ? value : JSON.stringify(value))
}

/** Writes counts by name, without counts of zero: `3 accepted, 10,000+ fulfilled`. @param upTo where counting stops */
export const countsText = (
  counts: Record<string, number>,
  labels: Record<string, { word: string }> = {},
  upTo?: number,
): string => plain(countsByWord(counts, labels, upTo)) || 'none'

/** Joins an amount, as decimal text, and its currency: `12.34 EUR`. Without an amount, returns `-`. */
export const money = (amount: string | null | undefined, currency: string | null | undefined): string =>
  amount ? plain(moneyText(amount, currency)) : '-'

/** Says how long ago an instant was: `40 s`, `12 min`, `3 h 10 min`, `5 days`. */
export function ageOf(instant: unknown, now: number): string {
  const at = typeof instant === 'string' ? Date.parse(instant) : Number.NaN
  return Number.isNaN(at) ? '-' : age(now - at)
}

/** Writes an instant with its date, time and age: `2026-08-02 14:03:11Z (4 min ago)`. */
export function instant(value: unknown, now: number): string {
  const at = typeof value === 'string' ? Date.parse(value) : Number.NaN
  if (Number.isNaN(at)) return '-'
  const text = `${new Date(at).toISOString().slice(0, 19).replace('T', ' ')}Z`
  return at > now ? `${text} (in ${age(at - now)})` : `${text} (${age(now - at)} ago)`
}

/** Says how long a run or a sweep took. Until it ends, returns `-`. */
export const tookText = ({ startedAt, finishedAt }: { startedAt: string; finishedAt: string | null }): string =>
  finishedAt === null ? '-' : duration(Date.parse(finishedAt) - Date.parse(startedAt))

/** Joins the parts of a text by commas, and leaves out empty parts: `HTTP 409, out_of_stock`. */
export const joined = (...parts: (string | false | null | undefined)[]): string => parts.filter(Boolean).join(', ')

export const timeText = (at: unknown): string => cell(at).slice(0, 19).replace('T', ' ')

/** The folder of the program: a clone, a package that was installed, or `/app` of the image. */
export const ROOT = path.resolve(import.meta.dirname, '../..')

/** Returns where a document of this program is, from the folder that the person is in if it is below that one. */
export function documentPath(name: string): string {
  const file = path.join(ROOT, name)
  return path.relative(process.cwd(), file).replace(/^\.\..*/s, () => file)
}

/** Quotes a word of a command line where the shell would take the word apart. */
export const quoted = (text: string): string =>
  /^[\w.:@%+=,/-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`

/**
 * Returns how a person who is in this folder calls the program: `npx quayside` inside a clone, below a folder into which npm
 * installed the program, and where npx fetched it; `quayside` where npm installed it for all folders; else the path of the
 * program, as in the image.
 */
export function programName(root: string, folder: string): string {
  const parts = root.split(path.sep)
  const at = parts.lastIndexOf('node_modules')
  const home = at < 0 ? root : parts.slice(0, at).join(path.sep)
  const inside = path.relative(home, folder)
  if (parts.includes('_npx') || (inside !== '..' && !inside.startsWith(`..${path.sep}`))) return 'npx quayside'
  if (at >= 0) return 'quayside'
  return quoted(path.join(root, 'src', 'quayside.js'))
}

/** How a person calls the program. A launcher sets the variable to its own name. */
const PROGRAM = process.env.QUAYSIDE_COMMAND || programName(ROOT, process.cwd())

/** Writes a command of this program as a person can paste it: `doctor` becomes `npx quayside doctor`. */
export const commandLine = (command: string): string => `${PROGRAM} ${command}`

/** Returns the option that names the configuration to a command. It is empty for the default configuration. */
export const configOption = (config: string | undefined): string =>
  config === undefined ? '' : ` --config ${quoted(config)}`
