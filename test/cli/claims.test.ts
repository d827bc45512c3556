/** Claims on the command line, as an operator raises and decides them, on a real service. */
import { expect, test } from 'vitest'
import { openApi } from '../support/api-world.ts'
import { type RunOptions, run, writePlace } from '../support/cli-run.ts'
import { MINUTE } from '../support/reviews.ts'

test('an operator raises a claim, sees what the supplier needs, and gives the new key by standard input', async () => {
  const world = await openApi()
  const { config } = writePlace(world.url)
  const quayside = (argv: string[], options: RunOptions = {}) =>
    run([...argv, '--config', config, '--token', world.tokens.operator], { now: world.now, ...options })
  const orderId = await world.buy('1001')
  await world.pass(MINUTE)
  const { id, supplierOrderId } = await world.purchase(orderId)
  const raised = await quayside(['claims', 'raise', id, '--note', 'the game says redeemed'])
  expect(raised).toMatchObject({ exitCode: 0, stderr: '' })
  for (const part of ['Raised.', 'Claim 1: a licence key of yours does not work.', `Your order: ${supplierOrderId}`])
    expect(raised.stdout).toContain(part)
  expect((await quayside(['claims', 'list', '--state', 'open'])).stdout).toMatch(
    /^1 +open, until \d{4}-\d\d-\d\d +1001 /m,
  )
  expect((await quayside(['orders', 'show', '1001'])).stdout).toMatch(/^1 +open, until .* the game says redeemed$/m)
  const empty = await quayside(['claims', 'adopt', '1'], { piped: '\n' })
  expect(empty).toMatchObject({ exitCode: 2, stderr: expect.stringContaining('standard input is empty') })
  const adopted = await quayside(['claims', 'adopt', '1', '--reason', 'by mail'], { piped: 'NEWK-EYOF-SUPP\n' })
  expect(adopted).toMatchObject({ exitCode: 0, stderr: '' })
  expect(adopted.stdout, 'the key is not printed').not.toContain('NEWK-EYOF-SUPP')
  await world.pass(MINUTE)
  expect([...world.shop.keys().values()].flat()).toContain('NEWK-EYOF-SUPP')
  expect((await quayside(['claims', 'show', '1'])).stdout).toMatch(/^State +adopted$/m)
  const again = await quayside(['claims', 'refuse', '1', '--reason', 'too late'])
  expect(again.stderr).toContain('claim 1 has ended: adopted')
})
