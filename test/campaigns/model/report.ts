/** What the exploration prints: lines of at most 80 columns. */

const WIDTH = 80

export const count = (number: number, what: string): string =>
  `${number.toLocaleString('en-US')} ${what}${number === 1 ? '' : 's'}`

/** The lines of a trace, numbered; equal ones in a row are one. */
export function traceLines(trace: readonly string[]): string[] {
  const steps: { text: string; times: number }[] = []
  for (const text of trace) {
    const last = steps.at(-1)
    if (last?.text === text) last.times += 1
    else steps.push({ text, times: 1 })
  }
  return steps.flatMap(({ text, times }, place) => {
    const number = String(place + 1).padStart(6)
    return wrapped(`${number}  ${text}${times > 1 ? `, ${times} ticks` : ''}`, 8)
  })
}

/** Breaks a text at blanks; every line but the first begins with `indent` blanks. */
export function wrapped(text: string, indent: number): string[] {
  const lines: string[] = []
  let line = ''
  for (const word of text.split(/(?<=\S) /)) {
    if (line !== '' && line.length + 1 + word.length > WIDTH) {
      lines.push(line)
      line = `${' '.repeat(indent)}${word}`
    } else line = line === '' ? word : `${line} ${word}`
  }
  return [...lines, line]
}
