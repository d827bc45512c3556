/** What is known of one record: labels, and their texts beside them. */
import { columnsOf, plain, sentence } from '../domain/text-layout.ts'
import { GAP } from './tables.ts'
import { cell, instant } from './words.ts'

export type Pair = [label: string, text: string]

/** Writes pairs below each other. Long texts are wrapped at words, and their lines begin below each other. */
export function details(pairs: Pair[], width: number): string {
  const indent = Math.max(...pairs.map(([label]) => columnsOf(label))) + GAP.length
  return pairs
    .map(([label, text]) => sentence(plain(text), width, { lead: label + ' '.repeat(indent - columnsOf(label)) }))
    .join('')
}

/** Writes each command with its purpose: in two columns where all fit the width, else each purpose below its command. */
export function nextText(next: Pair[], width: number): string {
  const lines = next.map(([command, does]): Pair => [`  ${command}`, does])
  const fits = details(lines, Number.POSITIVE_INFINITY)
  if (fits.split('\n').every((line) => columnsOf(line) <= width)) return fits
  return lines.map(([command, does]) => `${command}\n      ${does}\n`).join('')
}

/**
 * What is printed of a record, by labels. A fact names a field to print as it is, or is a function that returns its lines.
 * A line may be `width` wide. A fact without a text is left out.
 */
export type Facts<R extends object> = Record<
  string,
  (keyof R & string) | ((record: R, now: number, width: number) => string | string[] | false | null | undefined)
>

export function factsText<R extends object>(record: R, facts: Facts<R>, width: number, now = 0): string {
  const beside = width - Math.max(...Object.keys(facts).map(columnsOf)) - GAP.length
  const pairs = Object.entries(facts).flatMap(([label, fact]) => {
    const text = typeof fact === 'string' ? cell(record[fact]) : fact(record, now, beside)
    return [text || []].flat().map((one, index): Pair => [index === 0 ? label : '', one])
  })
  return details(pairs, width)
}

/** Makes a fact that is left out where its field is empty. */
export const maybe =
  <K extends string>(field: K) =>
  (record: Record<K, unknown>): string | false =>
    Boolean(record[field]) && cell(record[field])

/** Makes a fact of an instant, with date, time and age. The fact is left out where there is no instant. */
export const when =
  <K extends string>(field: K, lead = '') =>
  (record: Record<K, unknown>, now: number): string | false =>
    Boolean(record[field]) && `${lead}${instant(record[field], now)}`

const marks = { ok: 'ok  ', warn: 'WARN', doubtful: 'WARN', fail: 'FAIL', failed: 'FAIL' }

/** Writes the result of one check, and below it what to do. */
export const findingText = (
  state: keyof typeof marks,
  check: string,
  message: string,
  fix: string | null | undefined,
  width: number,
): string =>
  sentence(plain(`${check}: ${message}`), width, { lead: `${marks[state]}  ` }) +
  (fix ? sentence(plain(`-> ${fix}`), width, { lead: ' '.repeat(6) }) : '')
