/**
 * `npm run mutation`: changes the money path, the classifier, the verifier, and the guards, scans, sweeps and hand-overs in
 * every small way that Stryker knows, and counts the changes that no test notices. For people, and last, one JSON line.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync, rmSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { wrapped } from '../model/report.ts'
import { explain, type Mutant, readExplained, readReport, scoreOf } from './report.ts'

/** One run of Stryker. */
interface Run {
  config: string
  /** Percent of the mutants that must be killed, in each file. */
  limit: number
  /** Whether docs/reliability.md must explain each mutant that survives. */
  isExplained: boolean
  /** What is changed and by which tests, where the configurations do not say. */
  mutate?: string
  tests?: string[]
}

/** Each of these files with the tests that are about it: they have a database and servers, and take long. */
const ordering: Record<string, string[]> = {
  'src/ordering/close.ts': ['test/ordering/close.test.ts'],
  'src/ordering/fulfil.ts': [
    'test/ordering/fulfil.test.ts',
    'test/ordering/fulfil-edges.test.ts',
    'test/ordering/callbacks.test.ts',
    'test/ordering/failures.test.ts',
    'test/ordering/freeze.test.ts',
    'test/ordering/key-forms.test.ts',
    'test/ordering/late.test.ts',
  ],
  'src/ordering/guards.ts': ['test/ordering/guards-edges.test.ts', 'test/ordering/guards.test.ts'],
  'src/ordering/scan.ts': ['test/ordering/scan-edges.test.ts', 'test/ordering/filter.test.ts'],
  'src/reconciliation/sweep.ts': ['test/ordering/sweep-edges.test.ts', 'test/reconciliation/sweep.test.ts'],
}

const runs: Run[] = [
  { config: 'test/campaigns/mutation/stryker.config.json', limit: 90, isExplained: true },
  ...Object.entries(ordering).map(([mutate, tests]) => ({
    config: 'test/campaigns/mutation/ordering.config.json',
    limit: 80,
    isExplained: false,
    mutate,
    tests,
  })),
]

const at = (path: string): string => fileURLToPath(new URL(`../../../${path}`, import.meta.url))
const report = at('data/run/mutation/report.json')
const stryker = at('node_modules/@stryker-mutator/core/bin/stryker.js')

const say = (...lines: string[]): void => {
  for (const line of lines) process.stdout.write(`${line}\n`)
}

/** Runs Stryker to its end. Its lines are as long as they like, so that only the count is passed on. */
async function mutate({ config, mutate, tests = [] }: Run): Promise<Mutant[]> {
  rmSync(report, { force: true })
  const child = spawn(
    process.execPath,
    [stryker, 'run', config, ...(mutate === undefined ? [] : ['--mutate', mutate])],
    {
      cwd: at(''),
      stdio: ['ignore', 'pipe', 'inherit'],
      env: { ...process.env, MUTATION_TESTS: tests.join(' ') },
    },
  )
  const ended = once(child, 'close')
  const others: string[] = []
  for await (const line of createInterface({ input: child.stdout })) {
    const [, tested, all, alive] = /(\d+)\/(\d+) tested \((\d+) survived/.exec(line) ?? []
    if (tested !== undefined) process.stderr.write(`  ${tested} of ${all} tested, ${alive} survived\n`)
    else if (line !== '') others.push(line)
  }
  await ended
  // Its exit code also says that the score is low, which is for the figures below to say.
  if (!existsSync(report)) throw new Error(['Stryker gave no report:', ...others].join('\n'))
  return readReport(readFileSync(report, 'utf8'))
}

if (!existsSync(stryker)) {
  process.stderr.write('Stryker is not installed: run `npm ci`, which brings it\n')
  process.exit(2)
}
const began = Date.now()
const judged: (Mutant & Pick<Run, 'limit' | 'isExplained'>)[] = []
for (const run of runs) {
  const { limit, isExplained } = run
  for (const mutant of await mutate(run)) judged.push({ ...mutant, limit, isExplained })
}
const explained = readExplained(readFileSync(at('docs/reliability.md'), 'utf8'))
const row = (file: string, ...columns: (string | number)[]): string =>
  [file.padEnd(36), ...columns.map((column) => String(column).padStart(10))].join('')
say(row('file', 'killed', 'survived', 'score'))
const scores = [...Map.groupBy(judged, ({ file }) => file)]
  .map(([file, mutants]) => ({ file, limit: mutants[0]?.limit ?? 0, ...scoreOf(mutants) }))
  .toSorted((left, right) => left.file.localeCompare(right.file))
for (const { file, killed, survived, score } of scores) say(row(file, killed, survived, score.toFixed(2)))
const total = scoreOf(judged)
say(row('all', total.killed, total.survived, total.score.toFixed(2)), '')

const survivors = explain(
  explained,
  judged.filter(({ killed, isExplained }) => !killed && isExplained),
)
for (const { mutant, why } of survivors) {
  const { file, line, code, replacement } = mutant
  say(...wrapped(`${file}:${line} ${code} made ${replacement}`, 4))
  say(...wrapped(`  ${why ?? 'NOT EXPLAINED in docs/reliability.md'}`, 4))
}
const unexplained = survivors.filter(({ why }) => why === undefined).length
say('', `${Math.round((Date.now() - began) / 1_000)} seconds`)

const passed = judged.length > 0 && scores.every(({ score, limit }) => score >= limit) && unexplained === 0
say(JSON.stringify({ ...total, unexplained, passed }))
process.exitCode = passed ? 0 : 1
