/** Each seeded mistake that the simulation cannot meet is found by the test that is about it. This takes minutes: it runs where it is asked for. */
import { spawnSync } from 'node:child_process'
import { resolve } from 'node:path'
import { describe, expect, test } from 'vitest'
import { isNeeded } from '../support/needs.ts'
import { type Mistake, mistakes } from './mistakes/list.ts'

const ROOT = resolve(import.meta.dirname, '../..')
const VITEST = resolve(ROOT, 'node_modules/vitest/vitest.mjs')
const runs = isNeeded('campaigns')
const needs = runs ? '' : ' (skipped: a campaign, which .ci/run runs)'

/** Runs tests on the program with a mistake in it, until one fails. @returns the exit code, and what the runner wrote */
const testedWith = ({ name: mistake, foundBy = '', title, needs }: Mistake) =>
  spawnSync(process.execPath, [VITEST, 'run', '--bail=1', foundBy, ...(title ? ['-t', title] : [])], {
    cwd: ROOT,
    // A database server is started only for the mistakes that need one.
    env: { ...process.env, QUAYSIDE_NEEDS: `campaigns,${needs ?? ''}`, QUAYSIDE_MISTAKE: mistake, NO_COLOR: '1' },
    encoding: 'utf8',
  })

describe.runIf(runs)(`a seeded mistake${needs}`, { timeout: 1_200_000 }, () => {
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
