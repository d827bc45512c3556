/** What is known of one record: labels, and their texts beside them. */
import { columnsOf, plain, sentence } from '../domain/text-layout.ts'
import { cell, instant } from './words.ts'

/** Between a label and its text. */
const GAP = '  '

/** A label and its text. */
export type Pair = [label: string, text: string]

/** Pairs below each other, long texts wrapped at words under their beginning. */
export function details(pairs: Pair[], width: number): string {
  const indent = Math.max(...pairs.map(([label]) => columnsOf(label))) + GAP.length
  return pairs
    .map(([label, text]) => sentence(plain(text), width, { lead: label + ' '.repeat(indent - columnsOf(label)) }))
    .join('')
}

/** Each command with its purpose: in two columns where all fit the width, else the purpose below its command. */
export function nextText(next: Pair[], width: number): string {
  const lines = next.map(([command, does]): Pair => [`  ${command}`, does])
  const fits = details(lines, Number.POSITIVE_INFINITY)
  if (fits.split('\n').every((line) => columnsOf(line) <= width)) return fits
  return lines.map(([command, does]) => `${command}\n      ${does}\n`).join('')
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
  (record: Record<K, unknown>): string | false =>
    Boolean(record[field]) && cell(record[field])

/** An instant for reading closely; left out where there is none. */
export const when =
  <K extends string>(field: K, lead = '') =>
  (record: Record<K, unknown>, now: number): string | false =>
    Boolean(record[field]) && `${lead}${instant(record[field], now)}`

const marks = { ok: 'ok  ', warn: 'WARN', doubtful: 'WARN', fail: 'FAIL', failed: 'FAIL' }

/** One thing that was looked at, and below it what to do. */
export const findingText = (
  state: keyof typeof marks,
  check: string,
  message: string,
  fix: string | null | undefined,
  width: number,
): string =>
  sentence(plain(`${check}: ${message}`), width, { lead: `${marks[state]}  ` }) +
  (fix ? sentence(plain(`-> ${fix}`), width, { lead: ' '.repeat(6) }) : '')
