/**
 * `npm run mutation`: changes the money path, the classifier and the verifier in every small way that Stryker knows, and
 * counts the changes that no test notices. For people, and last, one JSON line.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync, rmSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { wrapped } from '../model/report.ts'
import { explain, readExplained, readReport, scoreOf } from './report.ts'

/** Percent of the mutants that must be killed, in each file. */
const LIMIT = 90

const at = (path: string): string => fileURLToPath(new URL(`../../${path}`, import.meta.url))
const report = at('data/run/mutation/report.json')
const stryker = at('node_modules/@stryker-mutator/core/bin/stryker.js')

const say = (...lines: string[]): void => {
  for (const line of lines) process.stdout.write(`${line}\n`)
}

/** Runs Stryker to its end. Its lines are as long as they like, so that only the count is passed on. */
async function mutate(): Promise<void> {
  const child = spawn(process.execPath, [stryker, 'run', 'test/mutation/stryker.config.json'], {
    cwd: at(''),
    stdio: ['ignore', 'pipe', 'inherit'],
  })
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
}

if (!existsSync(stryker)) {
  process.stderr.write('Stryker is not installed: run `npm ci`, which brings it\n')
  process.exit(2)
}
rmSync(report, { force: true })
const began = Date.now()
await mutate()

const mutants = readReport(readFileSync(report, 'utf8'))
const explained = readExplained(readFileSync(at('docs/reliability.md'), 'utf8'))
const row = (file: string, ...columns: (string | number)[]): string =>
  [file.padEnd(36), ...columns.map((column) => String(column).padStart(10))].join('')
say(row('file', 'killed', 'survived', 'score'))
const files = [...new Set(mutants.map(({ file }) => file))].toSorted()
const scores = files.map((file) => ({ file, ...scoreOf(mutants.filter((mutant) => mutant.file === file)) }))
for (const { file, killed, survived, score } of scores) say(row(file, killed, survived, score.toFixed(2)))
const total = scoreOf(mutants)
say(row('all', total.killed, total.survived, total.score.toFixed(2)), '')

const survivors = explain(
  explained,
  mutants.filter(({ killed }) => !killed),
)
for (const { mutant, why } of survivors) {
  const { file, line, code, replacement } = mutant
  say(...wrapped(`${file}:${line} ${code} made ${replacement}`, 4))
  say(...wrapped(`  ${why ?? 'NOT EXPLAINED in docs/reliability.md'}`, 4))
}
const unexplained = survivors.filter(({ why }) => why === undefined).length
say('', `${Math.round((Date.now() - began) / 1_000)} seconds`)

const passed = mutants.length > 0 && scores.every(({ score }) => score >= LIMIT) && unexplained === 0
say(JSON.stringify({ ...total, unexplained, passed }))
process.exitCode = passed ? 0 : 1
