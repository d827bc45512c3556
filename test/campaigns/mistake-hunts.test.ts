/** Each seeded mistake is found by the simulation: a campaign of some minutes, so it runs where it is asked for. */
import { spawn, spawnSync } from 'node:child_process'
import { resolve } from 'node:path'
import { describe, expect, test } from 'vitest'
import { isNeeded } from '../support/needs.ts'
import { type Mistake, mistakes } from './mistakes/list.ts'

const ROOT = resolve(import.meta.dirname, '../..')
const VITEST = resolve(ROOT, 'node_modules/vitest/vitest.mjs')
/** The hunt ends at the first wrong seed; each begins where it was found before. */
const SEEDS = 500
const runs = isNeeded('campaigns')
const needs = runs ? '' : ' (skipped: a campaign, which .ci/run runs)'

/** Plays seeds with a mistake in the program until one is wrong. @returns the exit code and the last line */
function hunt({
  name,
  store = 'backend',
  seed = 1,
}: Mistake): Promise<{ code: number | null; figures: Record<string, unknown> }> {
  return new Promise((done) => {
    const main = resolve(import.meta.dirname, './simulate/main.ts')
    const args = [main, '--mistake', name, '--store', store, '--seed', String(seed), '--seeds', String(SEEDS)]
    const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'ignore'] })
    let text = ''
    child.stdout.setEncoding('utf8').on('data', (piece: string) => {
      text += piece
    })
    child.on('close', (code) => done({ code, figures: JSON.parse(text.trimEnd().split('\n').at(-1) ?? '{}') }))
  })
}

/** Runs tests on the program with a mistake in it, until one fails. @returns the exit code, and what the runner wrote */
const testedWith = ({ name: mistake, foundBy = '', title }: Mistake) =>
  spawnSync(process.execPath, [VITEST, 'run', '--bail=1', foundBy, ...(title ? ['-t', title] : [])], {
    cwd: ROOT,
    env: { ...process.env, QUAYSIDE_MISTAKE: mistake, NO_COLOR: '1' },
    encoding: 'utf8',
  })

describe.runIf(runs)(`a seeded mistake${needs}`, { timeout: 1_200_000 }, () => {
  test.each(mistakes.filter(({ foundBy }) => foundBy === undefined))(
    '$name is found by the simulation',
    async (mistake) => {
      const { code, figures } = await hunt(mistake)
      expect({ code, passed: figures.passed }).toEqual({ code: 1, passed: false })
      if (mistake.figure) expect(figures[mistake.figure]).toBeGreaterThan(0)
    },
  )

  const isFindable = ({ needs }: Mistake) => needs === undefined || isNeeded(needs)
  // Once more where it is not found: what a worker does without a fence is seen only until it renews its lease.
  test.each(mistakes.filter((mistake) => mistake.foundBy !== undefined && isFindable(mistake)))(
    '$name is found by $foundBy',
    { retry: 1 },
    (mistake) => {
      const { status, stdout } = testedWith(mistake)
      expect(status).toBe(1)
      expect(stdout).toMatch(/Tests +\d+ failed/)
    },
  )
})
