import { spawn } from 'node:child_process'
import path from 'node:path'
import { text } from 'node:stream/consumers'
import { expect, onTestFinished, test } from 'vitest'
import { widest } from '../support/cli-run.ts'
import { isNeeded } from '../support/needs.ts'

const STORY = path.join(import.meta.dirname, './story.ts')

/** Plays the story with these arguments to its end. @param command what `npm run demo` runs, or that itself */
async function played(args: string[], [program, ...first]: [string, ...string[]] = [process.execPath, STORY]) {
  const child = spawn(program, [...first, ...args], { stdio: ['ignore', 'pipe', 'pipe'] })
  onTestFinished(() => void child.kill('SIGKILL'))
  const ended = new Promise<number | null>((resolve) => child.once('close', resolve))
  const [stdout, stderr, code] = await Promise.all([text(child.stdout), text(child.stderr), ended])
  return { stdout, stderr, code }
}

const runs = isNeeded('campaigns')
const needs = runs ? '' : ' (skipped: .ci/run plays the stories)'

test.skipIf(!runs).each(['backend', 'woocommerce', 'shopify'])(
  `the story of a store of the kind %s has every key once, where its customer sees it, and every charge once${needs}`,
  { timeout: 240_000 },
  async (kind) => {
    const { stdout, code } = await played(['--store', kind])
    const lines = stdout.trimEnd().split('\n')
    expect(JSON.parse(lines.at(-1) ?? ''), stdout).toEqual({
      orders: 3,
      charges: 4,
      keysFulfilled: 6,
      keysSeen: 6,
      duplicatesIgnored: 1,
      recovered: 2,
      passed: true,
    })
    expect(code).toBe(0)
    expect(widest(lines.slice(0, -1).join('\n'))).toBeLessThanOrEqual(80)
  },
)

test('the help of the demo names the stores, and a store that there is none of is answered with it', async () => {
  const help = await played(['--help'], ['npm', 'run', '-s', 'demo', '--'])
  expect(help).toMatchObject({ code: 0, stdout: expect.stringContaining('--store backend|woocommerce|shopify') })
  expect(widest(help.stdout)).toBeLessThanOrEqual(80)
  const unknown = await played(['--store', 'magento'])
  expect(unknown).toMatchObject({ code: 2, stdout: '' })
  expect(unknown.stderr).toContain(`there is no story of a store called magento\n\n${help.stdout}`)
})
