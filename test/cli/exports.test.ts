/** `quayside orders export` and `quayside deliveries export` against the real API. */
import { Writable } from 'node:stream'
import { beforeEach, describe, expect, test } from 'vitest'
import { writeFile } from '../../src/cli/exports.ts'
import { type ApiWorld, openApi } from '../support/api-world.ts'
import { run, widest } from '../support/cli-run.ts'
import { insertDeliveries } from '../support/console-data.ts'

let world: ApiWorld

const call = (...argv: string[]) =>
  run([...argv, '--url', world.url, '--token', world.tokens.admin], { now: world.now })

beforeEach(async () => {
  world = await openApi()
  const { sku } = await world.offer()
  await world.order('1001', [{ sku, quantity: 2 }])
  await world.pass(10_000)
})

describe('quayside orders export', () => {
  test('writes CSV, and with --json a line of JSON for each row', async () => {
    const { exitCode, stdout } = await call('orders', 'export')
    expect(exitCode).toBe(0)
    expect(stdout).toMatch(/^\ufeffstore,reference,state,[^\n]*\r\n[^\n]*,1001,fulfilled,[^\n]*\r\n$/)
    const lines = await call('orders', 'export', '--json', '--from', '2023-11-14', '--to', '2023-11-15')
    expect(JSON.parse(lines.stdout)).toMatchObject({ reference: '1001', quantity: 2, delivered: 2 })
    expect((await call('orders', 'export', '--json', '--from', '2023-11-15')).stdout).toBe('')
    expect((await call('orders', 'export', '--json', '--state', 'open', '--store', 'nowhere')).stdout).toBe('')
  })

  test('has keys for who says why', async () => {
    const refused = await call('orders', 'export', '--keys')
    expect([refused.exitCode, refused.stdout]).toEqual([2, ''])
    expect(refused.stderr).toContain("--keys --reason '…'")
    const { stdout } = await call('orders', 'export', '--keys', '--json', '--reason', 'the audit of the year')
    expect(JSON.parse(stdout)).toMatchObject({ keys: world.shop.keys().get('1001/1') })
  })

  test('names what is wrong with a filter', async () => {
    const { exitCode, stderr } = await call('orders', 'export', '--from', 'March')
    expect(exitCode).toBe(2)
    expect(stderr).toContain('from: must be an instant such as 2026-03-01T09:30:00Z')
  })

  test('ends quietly when its reader has seen enough', async () => {
    let pieces = 0
    async function* endless() {
      for (;;) {
        pieces += 1
        yield Buffer.from(`piece ${pieces}\n`)
      }
    }
    const stdout = new Writable({
      write: (_piece, _encoding, done) =>
        done(pieces < 3 ? null : Object.assign(new Error('closed'), { code: 'EPIPE' })),
    })
    stdout.on('error', () => {})
    await writeFile({ stdout, isTerminal: false }, endless())
    expect(pieces).toBe(3)
  })
})

describe('quayside deliveries export', () => {
  test('writes deliveries, with bodies for who says why', async () => {
    await insertDeliveries(world, [{ state: 'dead', event: 'order.completed', body: '{"n":1}' }])
    const dead = ['deliveries', 'export', '--json', '--state', 'dead', '--event', 'order.completed']
    const { stdout } = await call(...dead)
    expect(JSON.parse(stdout)).toMatchObject({ source: 'supplier', state: 'dead' })
    expect(stdout).not.toContain('{\\"n\\"')
    const bodies = await call(...dead, '--bodies', '--reason', 'a dispute')
    expect(JSON.parse(bodies.stdout)).toMatchObject({ body: '{"n":1}' })
  })
})

test('an export shows a terminal nothing that it would obey, and leaves a file as it is', async () => {
  await insertDeliveries(world, [{ state: 'dead', body: 'a\u001b[2J\tb' }])
  const argv = ['deliveries', 'export', '--state', 'dead', '--bodies', '--reason', 'a look', '--url', world.url]
  const options = { now: world.now, env: { QUAYSIDE_TOKEN: world.tokens.admin } }
  expect((await run(argv, { ...options, terminal: true })).stdout).toMatch(/^\ufeffid,.*\r\n.*,a\ufffd\[2J\tb\r\n$/)
  expect((await run(argv, options)).stdout).toContain('a\u001b[2J\tb')
})

test.each(['orders', 'deliveries'])('the help of %s export explains each column within 80 columns', async (group) => {
  const { stdout } = await run([group, 'export', '--help'], { terminal: true })
  expect(stdout).toMatch(
    group === 'orders' ? /^ {2}unitPrice +what the customer paid/m : /^ {2}body +as it was received/m,
  )
  expect(widest(stdout)).toBeLessThanOrEqual(80)
})
