/** How the figures of `npm run mutation` are made; the run itself takes minutes and is started by hand. */
import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { explain, type Mutant, readExplained, readReport, scoreOf } from './mutation/report.ts'

const read = (path: string) => readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8')

const source = ['const a = 1 +', '    2', 'const b = a > 1', ''].join('\n')
const place = (fromLine: number, fromColumn: number, toLine: number, toColumn: number) => ({
  start: { line: fromLine, column: fromColumn },
  end: { line: toLine, column: toColumn },
})
const reportOf = (...statuses: string[]) =>
  JSON.stringify({
    files: {
      'src/a.ts': {
        source,
        mutants: statuses.map((status) => ({ status, replacement: 'a >= 1', location: place(3, 11, 3, 16) })),
      },
    },
  })

describe('the report of a mutation run', () => {
  test('tells what was changed into what, and where', () => {
    const over = { status: 'Killed', replacement: '1 -\n    2', location: place(1, 11, 2, 6) }
    expect(readReport(JSON.stringify({ files: { 'src/a.ts': { source, mutants: [over] } } }))).toEqual([
      { file: 'src/a.ts', line: 1, code: '1 + 2', replacement: '1 - 2', killed: true },
    ])
    expect(readReport(reportOf('Survived'))).toEqual([
      { file: 'src/a.ts', line: 3, code: 'a > 1', replacement: 'a >= 1', killed: false },
    ])
  })

  test('counts what hangs as noticed, and what no test runs as unnoticed', () => {
    const killed = readReport(reportOf('Killed', 'Timeout', 'Survived', 'NoCoverage')).map((mutant) => mutant.killed)
    expect(killed).toEqual([true, true, false, false])
  })

  test('is refused where a mutant was not judged', () => {
    for (const status of ['Pending', 'Ignored', 'CompileError']) {
      expect(() => readReport(reportOf('Killed', status))).toThrow(`src/a.ts:3: a mutant is neither`)
    }
  })

  test('gives a score that is never rounded up to a limit', () => {
    const mutants = (killed: number, alive: number) =>
      readReport(reportOf(...Array(killed).fill('Killed'), ...Array(alive).fill('Survived')))
    expect(scoreOf(mutants(9, 1))).toEqual({ mutants: 10, killed: 9, survived: 1, score: 90 })
    expect(scoreOf(mutants(17_999, 2_001)).score).toBe(89.99)
    expect(scoreOf([]).score).toBe(0)
  })
})

describe('the survivors that the page explains', () => {
  const page = read('docs/reliability.md')
  const explained = readExplained(page)

  const list = [
    '# Page',
    '- `src/c.ts`: `x` made `y`: not in the section',
    '## Mutation testing',
    'Words.',
    '- `src/a.ts`: `a > 1` made `a >= 1` or `true`: it is',
    '  never one',
    "- `src/b.ts`: `''` made `'x'` (2 times): never shown",
    '## Else',
    '- `src/c.ts`: `x` made `y`: not in the section',
  ].join('\n')
  const mutant: Mutant = { file: 'src/a.ts', line: 3, code: 'a > 1', replacement: 'true', killed: false }
  const inB: Mutant = { ...mutant, file: 'src/b.ts', code: "''", replacement: "'x'" }

  test('are read from its list, each with a file, what it says, what was made of it, and a reason', () => {
    const one = { file: 'src/a.ts', code: 'a > 1', why: 'it is never one' }
    const blank = { file: 'src/b.ts', code: "''", replacement: "'x'", why: 'never shown' }
    expect(readExplained(list)).toEqual([
      { ...one, replacement: 'a >= 1' },
      { ...one, replacement: 'true' },
      ...[blank, blank],
    ])
  })

  test('are as many as it says, and in its file', () => {
    const survivors = [mutant, { ...mutant, line: 9 }, { ...mutant, file: 'src/b.ts' }, inB, inB, inB]
    const whys = explain(readExplained(list), survivors).map(({ why }) => why)
    expect(whys).toEqual(['it is never one', undefined, undefined, 'never shown', 'never shown', undefined])
  })

  test('still stand in the source', () => {
    const gone = explained.filter(({ file, code }) => !read(file).replaceAll(/\s+/g, ' ').includes(code))
    expect(gone).toEqual([])
  })

  test('are all of the lines of its list', () => {
    const [, section = ''] = page.split('\n## Mutation testing\n')
    const lines = section.split('\n## ')[0]?.match(/^- `src\//gm) ?? []
    expect(lines.length).toBeGreaterThan(0)
    expect(new Set(explained.map(({ file, code, why }) => `${file} ${code} ${why}`)).size).toBe(lines.length)
  })
})
