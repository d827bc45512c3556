/** Each seeded mistake is found by the simulation: a campaign of some minutes, so it runs where it is asked for. */
import { spawn } from 'node:child_process'
import { resolve } from 'node:path'
import { describe, expect, test } from 'vitest'
import { isNeeded } from '../support/needs.ts'
import { mistakes } from './mistakes/list.ts'

const runs = isNeeded('campaigns')
const needs = runs ? '' : ' (skipped: a campaign, which .ci/run runs)'

/** What no simulated seed can show, and which test finds it instead. */
const elsewhere: Record<string, string> = {}

/** Plays seeds with a mistake in the program until one is wrong. @returns the exit code and the last line */
function hunt(mistake: string): Promise<{ code: number | null; figures: Record<string, unknown> }> {
  return new Promise((done) => {
    const main = resolve(import.meta.dirname, './simulate/main.ts')
    const child = spawn(process.execPath, [main, '--mistake', mistake], { stdio: ['ignore', 'pipe', 'ignore'] })
    let text = ''
    child.stdout.setEncoding('utf8').on('data', (piece: string) => {
      text += piece
    })
    child.on('close', (code) => done({ code, figures: JSON.parse(text.trimEnd().split('\n').at(-1) ?? '{}') }))
  })
}

describe.runIf(runs)(`the simulation${needs}`, { timeout: 1_200_000 }, () => {
  test.each(mistakes.filter(({ name }) => !(name in elsewhere)))('finds the mistake $name', async ({ name }) => {
    expect(await hunt(name)).toMatchObject({ code: 1, figures: { passed: false } })
  })
})
