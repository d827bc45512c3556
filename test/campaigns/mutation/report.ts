/** What a run found, from Stryker's JSON report, and which of the survivors docs/reliability.md explains. */

export interface Mutant {
  /** Path from the root of the repository. */
  file: string
  line: number
  /** What stands in the source, and what stood there instead; on one line each. */
  code: string
  replacement: string
  killed: boolean
}

interface Place {
  line: number
  column: number
}

/** The part of the report that is read. Lines and columns count from 1, and the end is not included. */
interface Report {
  files: Record<
    string,
    {
      source: string
      mutants: { status: string; replacement?: string; location: { start: Place; end: Place } }[]
    }
  >
}

const oneLine = (text: string): string => text.trim().replaceAll(/\s+/g, ' ')

function textBetween(source: string, start: Place, end: Place): string {
  const lines = source.split('\n').slice(start.line - 1, end.line)
  lines[lines.length - 1] = (lines.at(-1) ?? '').slice(0, end.column - 1)
  lines[0] = (lines[0] ?? '').slice(start.column - 1)
  return oneLine(lines.join('\n'))
}

/** A mutant that hangs, or with which the program cannot even be loaded, is noticed; one that no test runs is not. */
const verdicts: Record<string, boolean> = {
  Killed: true,
  Timeout: true,
  RuntimeError: true,
  Survived: false,
  NoCoverage: false,
}

/** @throws Error when a mutant was not judged: a score without it says nothing */
export function readReport(json: string): Mutant[] {
  const { files } = JSON.parse(json) as Report
  return Object.entries(files).flatMap(([file, { source, mutants }]) =>
    mutants.map(({ status, replacement = '', location: { start, end } }) => {
      const killed = verdicts[status]
      if (killed === undefined)
        throw new Error(`${file}:${start.line}: a mutant is neither killed nor alive: ${status}`)
      const code = textBetween(source, start, end)
      return { file, line: start.line, code, replacement: oneLine(replacement), killed }
    }),
  )
}

export interface Score {
  mutants: number
  killed: number
  survived: number
  /** Percent with two digits, rounded down: what is under a limit is never shown as having reached it. */
  score: number
}

export function scoreOf(mutants: readonly Mutant[]): Score {
  const killed = mutants.filter((mutant) => mutant.killed).length
  const score = mutants.length === 0 ? 0 : Math.floor((killed * 10_000) / mutants.length) / 100
  return { mutants: mutants.length, killed, survived: mutants.length - killed, score }
}

/** One mutation that nothing can notice: `file`, `code` and `replacement` as in `Mutant`. */
export interface Explained {
  file: string
  code: string
  replacement: string
  why: string
}

const LINE =
  /^- `(?<file>[^`]+)`: `(?<code>[^`]+)` made `(?<made>[^`]+)`(?: or `(?<or>[^`]+)`)?(?: \((?<times>\d+) times\))?: (?<why>.+)$/

/**
 * The lines of the section "Mutation testing": `` - `file`: `code` made `replacement`: why ``; with two replacements
 * `` made `one` or `other` ``, and where the code stands in several places `(3 times)`. A line may go on, indented, on
 * the next.
 */
export function readExplained(page: string): Explained[] {
  const [, rest = ''] = page.split('\n## Mutation testing\n')
  const [section = ''] = rest.split('\n## ')
  const lines = section.replaceAll(/\n +/g, ' ').split('\n')
  return lines.flatMap((line) => {
    const { file = '', code = '', made, or, times = '1', why = '' } = LINE.exec(line)?.groups ?? {}
    const replacements = [made, or].filter((text) => text !== undefined)
    return replacements.flatMap((replacement) => Array<Explained>(Number(times)).fill({ file, code, replacement, why }))
  })
}

/** Gives each survivor its reason; one line explains one survivor, so that the same mutation elsewhere has none. */
export function explain<T extends Mutant>(explained: readonly Explained[], survivors: readonly T[]) {
  const left = [...explained]
  return survivors.map((mutant) => {
    const { file, code, replacement } = mutant
    const place = left.findIndex((one) => one.file === file && one.code === code && one.replacement === replacement)
    const [one] = place === -1 ? [] : left.splice(place, 1)
    return { mutant, why: one?.why }
  })
}
