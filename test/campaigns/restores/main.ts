/**
 * `npm run restores -- [--restores N] [--seed S] [--mistake NAME]`: the campaigns of test/backup/restore.test.ts in their whole
 * form, and last one JSON line. The exit code is 1 unless it says `passed`. `--mistake` makes a mistake in the program.
 */
import { spawn } from 'node:child_process'
import { parseArgs } from 'node:util'
import { mistakeNamed } from '../mistakes/list.ts'
import type { Figures } from './figures.ts'

const text = { type: 'string' } as const
const { values } = parseArgs({ options: { restores: text, seed: text, mistake: text } })
const mistake = values.mistake === undefined ? '' : mistakeNamed(values.mistake).name
const [restores, seed] = [Number(values.restores ?? 200), Number(values.seed ?? 1)]
if (![restores, seed].every(Number.isSafeInteger) || restores < 1) {
  process.stderr.write('usage: npm run restores -- [--restores N] [--seed S] [--mistake NAME]\n')
  process.exit(2)
}

// The campaigns clean up after themselves by vitest's hooks, and so they run in it.
const child = spawn('vitest', ['run', 'test/backup/restore.test.ts'], {
  stdio: ['ignore', 'pipe', 'inherit'],
  env: { ...process.env, RESTORES: String(restores), SEED: String(seed), QUAYSIDE_MISTAKE: mistake },
})
let said = ''
child.stdout.on('data', (chunk: Buffer) => {
  said += chunk.toString()
  process.stderr.write(chunk)
})
const code = await new Promise<number>((resolve, reject) => {
  child.once('error', reject)
  child.once('close', (exitCode) => resolve(exitCode ?? 1))
})
const line = said.split('\n').find((one) => one.startsWith('{"backups":'))
const figures: Partial<Figures> = line === undefined ? {} : (JSON.parse(line) as Figures)
const passed = code === 0 && figures.doubleCharges === 0 && (figures.restores ?? 0) >= restores
process.stdout.write(`${JSON.stringify({ ...figures, seed, passed })}\n`)
process.exitCode = passed ? 0 : 1
