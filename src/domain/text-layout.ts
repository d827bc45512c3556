/* Text on a terminal: its width in columns, and its line breaks. */

/** Shortens a text to `width` columns, with `…` at its end. */
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

/** Characters that are two columns wide: ideographs, kana, Hangul, full-width forms, emoji. */
const WIDE =
  /[\p{sc=Han}\p{sc=Hiragana}\p{sc=Katakana}\p{sc=Hangul}\p{Emoji_Presentation}\u3000-\u303e\uff01-\uff60\uffe0-\uffe6]/u

/** The width of a text in terminal columns. Most texts are ASCII, with one column for each character. */
export function columnsOf(text: string): number {
  if (/^[\x20-\x7e]*$/.test(text)) return text.length
  let width = 0
  for (const { segment } of graphemes.segment(text)) width += WIDE.test(segment) ? 2 : 1
  return width
}

/** The width of a sentence where the output is a file or a pipe. */
const SENTENCE_WIDTH = 80

/**
 * Writes a sentence as lines that are wrapped at words. In a file or a pipe, tables have any width, but sentences are wrapped.
 *
 * @param lead text before the first line
 * @param hang indentation of the other lines (default: the width of `lead`)
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

/** Names to choose from: `one, two or three`. */
export const either = (names: string[]): string => new Intl.ListFormat('en-GB', { type: 'disjunction' }).format(names)

/** Stands for a space of a command while a text is wrapped. `plain` removes this private-use character from texts. */
const COMMAND_SPACE = '\u{e000}'

/**
 * Wraps a text at words. A word that is wider than a line gets a line of its own, so that it can be copied in one piece; a
 * command between backticks stays on one line if it fits.
 *
 * @param first width of the first line, if it differs from `width`
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

/**
 * Removes control characters: names and messages come from the supplier and from stores, and an escape sequence in one could
 * overwrite earlier output.
 */
export const plain = (text: string): string => text.replaceAll(/[\p{C}\p{Zl}\p{Zp}]+/gu, ' ').trim()

/** Returns a text as it came, with its line ends and tabs, but with nothing in it that a terminal would obey. */
export const printable = (text: string): string => text.replaceAll(/(?!\r?\n|[\t\ufeff])\p{C}/gu, '\ufffd')
