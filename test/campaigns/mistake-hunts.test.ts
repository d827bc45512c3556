/** Each seeded mistake that the simulation can meet is found by it: a campaign of some minutes, so it runs where it is asked for. */
import { spawn } from 'node:child_process'
import { resolve } from 'node:path'
import { describe, expect, test } from 'vitest'
import { isNeeded } from '../support/needs.ts'
import { type Mistake, mistakes } from './mistakes/list.ts'

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

describe.runIf(runs)(`a seeded mistake${needs}`, { timeout: 1_200_000 }, () => {
  test.each(mistakes.filter(({ foundBy }) => foundBy === undefined))(
    '$name is found by the simulation',
    async (mistake) => {
      const { code, figures } = await hunt(mistake)
      expect({ code, passed: figures.passed }).toEqual({ code: 1, passed: false })
      if (mistake.figure) expect(figures[mistake.figure]).toBeGreaterThan(0)
    },
  )
})
