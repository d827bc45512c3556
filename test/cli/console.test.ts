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
    'GET /console/people': () => ({
      items: [
        { name: 'mira', role: 'admin', seenAt: '2026-08-02T14:13:11.000Z', sessions: 2, linkUntil: null },
        { name: 'jonas', role: 'operator', seenAt: null, sessions: 0, linkUntil: '2026-08-03T14:13:11.000Z' },
      ],
      next: null,
    }),
    'POST /console/people/remove': ({ body }) => {
      asked.push(JSON.parse(body))
      return { name: 'jonas' }
    },
  })
  const console = (argv: string[], options: object) => run(['console', '--config', service.config, ...argv], options)
  const people = (argv: string[], options: object) => run(['people', ...argv, '--config', service.config], options)
  return { asked, console, people }
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

test('invites a colleague as an operator for a day, and prints the link to a terminal alone', async () => {
  const { asked, people } = await place()
  const { stdout, exitCode } = await people(['invite', '--name', 'jonas'], { terminal: true })
  expect([exitCode, stdout.split('\n')]).toEqual([0, expect.arrayContaining([`  ${link}`])])
  expect(asked).toEqual([{ name: 'jonas', role: 'operator', hours: 24 }])
  expect(widest(stdout.replace(link, ''))).toBeLessThanOrEqual(80)
  expect((await people(['invite', '--name', 'jonas'], { terminal: false })).exitCode).toBe(exitCodes.usage)
  expect(asked).toHaveLength(1)
})

test('lists who may sign in, and removes a person', async () => {
  const { asked, people } = await place()
  const { stdout } = await people(['list'], {})
  expect(stdout).toMatch(/^NAME +ROLE +SEEN +SESSIONS +LINK/)
  expect(stdout).toMatch(/jonas +operator +never +0 +until 2026-08-03 14:13/)
  const removed = await people(['remove', '--name', 'jonas', '--reason', 'works elsewhere'], {})
  expect(removed.stdout).toBe('jonas is signed out everywhere, and no link signs jonas in.\n')
  expect(asked).toEqual([{ name: 'jonas', reason: 'works elsewhere' }])
})
