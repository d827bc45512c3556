/** Text on a terminal: how many columns it takes, and where its lines break. */

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

/**
 * Text that a terminal prints and never obeys: names and messages come from the supplier and from stores, and an escape
 * sequence in one could rewrite what was printed above it.
 */
export const plain = (text: string): string => text.replaceAll(/[\p{C}\p{Zl}\p{Zp}]+/gu, ' ').trim()
