/** The customers who wait, on the command line, as a person on duty looks for them on a real service. */
import { expect, test } from 'vitest'
import { type RunOptions, run, writePlace } from '../support/cli-run.ts'
import { openWaiting } from '../support/waiting-world.ts'

async function openShell() {
  const world = await openWaiting()
  const { config } = writePlace(world.url)
  const quayside = (argv: string[], options: RunOptions = {}) =>
    run([...argv, '--config', config, '--token', world.tokens.operator], { now: world.now, terminal: true, ...options })
  return { world, quayside }
}

test('who waits, why and what helps is shown within 80 columns, and each command can be pasted', async () => {
  const { world, quayside } = await openShell()
  const { stdout, exitCode } = await quayside(['waiting'])
  expect(exitCode).toBe(0)
  expect(stdout).toMatch(
    /^13 customers wait for a key, the longest since 2023-11-14 22:13:20Z \(2 h 6 min\n?.*8 for a person\./s,
  )
  const [table = '', helps = ''] = stdout.split('What helps:\n')
  expect(Math.max(...table.split('\n').map((line) => line.length))).toBeLessThanOrEqual(80)
  expect(table).toMatch(/^1007-stock +\S.* 1\/1 +6\.37 EUR +3 min +Out of stock$/m)
  const commands = helps.split('\n').filter((line) => /^ {4}\S*(npx )?quayside/.test(line))
  expect(commands).toHaveLength(13)
  const check = /purchases check (\w{26})/.exec(helps)?.[1] ?? ''
  const checked = await quayside(['purchases', 'check', check])
  expect(checked).toMatchObject({ exitCode: 0, stdout: expect.stringContaining('within seconds') })
  expect(helps).toContain(`orders take ${world.inShop.added} --store woo-3f6k2m9q --line 3`)
})

test('one cause, as a table and for a program; and the status counts customers', async () => {
  const { quayside } = await openShell()
  const { stdout } = await quayside(['waiting', '--cause', 'balance'])
  expect(stdout).toContain('1009-balance')
  expect(stdout).not.toContain('1007-stock')
  const json = JSON.parse((await quayside(['waiting', '--json', '--cause', 'balance'])).stdout)
  expect([json.customers, json.items.length]).toEqual([13, 1])
  expect((await quayside(['status'])).stdout).toMatch(/^Customers +13 customers wait for a key, the longest since /m)
})
