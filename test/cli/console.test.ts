import { expect, test } from 'vitest'
import { exitCodes } from '../../src/cli/exit-codes.ts'
import { run, startService, widest } from '../support/cli-run.ts'

const link = `http://127.0.0.1:8081/signin?link=${'x'.repeat(43)}`

async function place() {
  const asked: unknown[] = []
  const service = await startService({
    'POST /console/links': ({ body }) => {
      asked.push(JSON.parse(body))
      return { link, name: 'mira', role: 'admin', expiresAt: '2026-08-02T14:13:11.000Z' }
    },
  })
  const console = (argv: string[], options: object) => run(['console', '--config', service.config, ...argv], options)
  return { asked, console }
}

test('prints a link for the user of the machine on a line of its own', async () => {
  const { asked, console } = await place()
  const { stdout, exitCode } = await console([], { terminal: true, env: { USER: 'mira' } })
  expect([exitCode, stdout.split('\n')]).toEqual([0, expect.arrayContaining([`  ${link}`])])
  expect(asked).toEqual([{ name: 'mira', role: 'admin' }])
  expect(widest(stdout.replace(link, ''))).toBeLessThanOrEqual(80)
  await console(['--role', 'viewer', '--name', 'anna'], { terminal: true })
  expect(asked[1]).toEqual({ name: 'anna', role: 'viewer' })
})

test('makes no link for a pipe, where a log would keep it, unless it is asked to', async () => {
  const { asked, console } = await place()
  const refused = await console([], { terminal: false })
  expect(refused.exitCode).toBe(exitCodes.usage)
  expect(refused.stderr).toContain('--print')
  expect(asked).toEqual([])
  const { stdout, exitCode } = await console(['--print'], { terminal: false })
  expect([exitCode, stdout]).toEqual([0, expect.stringContaining(link)])
})
