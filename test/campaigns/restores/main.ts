/**
 * `npm run restores -- [--restores N] [--seed S] [--mistake NAME]`: the campaigns of test/backup/restore.test.ts in their whole
 * form, and last one JSON line. `-- --engine postgres [--rollbacks N]` is that of test/campaigns/rollbacks.test.ts. The exit code is 1
 * unless it says `passed`. `--mistake` makes a mistake in the program.
 */
import { spawn } from 'node:child_process'
import { parseArgs } from 'node:util'
import { mistakeNamed } from '../mistakes/list.ts'
import type { Figures } from './figures.ts'

const text = { type: 'string' } as const
const options = { restores: text, rollbacks: text, seed: text, mistake: text, engine: text }
const { values } = parseArgs({ options })
const mistake = values.mistake === undefined ? '' : mistakeNamed(values.mistake).name
const isOnServer = values.engine === 'postgres'
const count = Number((isOnServer ? values.rollbacks : values.restores) ?? 200)
const seed = Number(values.seed ?? 1)
const isKnown = isOnServer ? values.restores === undefined : (values.engine ?? values.rollbacks) === undefined
if (!isKnown || ![count, seed].every(Number.isSafeInteger) || count < 1) {
  const usage = 'npm run restores -- [--restores N | --engine postgres [--rollbacks N]] [--seed S] [--mistake NAME]'
  process.stderr.write(`usage: ${usage}\n`)
  process.exit(2)
}

// The campaigns clean up after themselves by vitest's hooks, and so they run in it.
const file = isOnServer ? 'test/campaigns/rollbacks.test.ts' : 'test/backup/restore.test.ts'
const needs = isOnServer
  ? { QUAYSIDE_NEEDS: 'campaigns,postgres', ROLLBACKS: String(count) }
  : { QUAYSIDE_NEEDS: 'campaigns', RESTORES: String(count) }
const child = spawn('vitest', ['run', file], {
  stdio: ['ignore', 'pipe', 'inherit'],
  env: { ...process.env, ...needs, SEED: String(seed), QUAYSIDE_MISTAKE: mistake },
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
const line = said.split('\n').find((one) => one.startsWith('{"restores":'))
const figures: Partial<Figures> = line === undefined ? {} : (JSON.parse(line) as Figures)
const passed = code === 0 && figures.doubleCharges === 0 && (figures.restores ?? 0) >= count
process.stdout.write(`${JSON.stringify({ ...figures, seed, passed })}\n`)
process.exitCode = passed ? 0 : 1
