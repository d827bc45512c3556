import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { takeAlerts } from '../../src/alerts/watcher.ts'
import { first } from '../../src/storage/database.ts'
import { currentFreeze } from '../../src/storage/freezes.ts'
import { storeOrderById } from '../../src/storage/store-orders.ts'
import { type ApiWorld, openApi } from '../support/api-world.ts'
import { type RunOptions, run, writePlace } from '../support/cli-run.ts'
import { keysShort, MINUTE, orderedTwice } from '../support/reviews.ts'

/** The command line of an operator who says yes, 80 columns wide, on a real service; or one in a pipe. */
function terminal(world: ApiWorld, options: RunOptions = {}) {
  const { config } = writePlace(world.url)
  return (...argv: string[]) =>
    run([...argv, '--config', config, '--token', world.tokens.operator], {
      terminal: true,
      now: world.now,
      typed: ['yes'],
      ...options,
    })
}

/** Words of a shell line; what is quoted is one. */
const words = (line: string): string[] =>
  [...line.matchAll(/"([^"]*)"|(\S+)/g)].map(([, quoted, plain]) => quoted ?? plain ?? '')

describe('a person on duty', () => {
  test('gets out of a second order by the lines of the page for people on duty', async () => {
    const world = await openApi()
    const quayside = terminal(world)
    const { orderId, second } = await orderedTwice(world)
    const { id } = await world.purchase(orderId)
    const page = readFileSync(new URL('../../docs/operations.md', import.meta.url), 'utf8')
    const lines = (/```sh\n(npx quayside reviews\n[\s\S]*?)```/.exec(page)?.[1] ?? '')
      .replaceAll('\\\n', ' ')
      .trim()
      .split('\n')
      .map((line) => line.replace('npx ', ''))
    expect(lines.at(-1)).toBe('quayside unfreeze')
    for (const line of lines) {
      const shown = (await quayside('reviews', 'show', id)).stdout
      const version = /--evidence (\S+)/.exec(shown)?.[1] ?? 'none is shown'
      const places: Record<string, string> = { '<purchase>': id, '<order>': second, '<version>': version }
      const [program, ...argv] = words(line).map((word) => places[word] ?? word)
      expect(program).toBe('quayside')
      expect(await quayside(...argv), line).toMatchObject({ exitCode: 0, stderr: '' })
    }
    await world.pass(MINUTE)
    expect(await world.state(orderId)).toBe('fulfilled')
    expect(await currentFreeze(world.db)).toBeUndefined()
    expect((await quayside('reviews')).stdout).toBe('Nothing waits for a decision.\n')
  })

  test('is led there by the status, by a second freeze and by the purchase itself', async () => {
    const world = await openApi()
    const quayside = terminal(world)
    const { orderId } = await orderedTwice(world)
    const { id } = await world.purchase(orderId)
    const next = `npx quayside reviews show ${id}`
    expect((await quayside('status')).stdout).toContain(
      `  buying is frozen\n    ${next}\n    when that is settled: npx quayside unfreeze`,
    )
    expect((await quayside('status')).stdout).toContain('1 purchase in review: npx quayside reviews')
    const again = await quayside('freeze', '--reason', 'prices look wrong')
    expect(again.stdout).toContain('2 orders at the supplier')
    expect(again.stdout).toContain(`Next    ${next}`)
    expect((await quayside('purchases', 'show', id)).stdout).toContain(next)
    expect((await quayside('reviews')).stdout).toMatch(new RegExp(`^${id} +1 +57 s  2 orders`, 'm'))
  })

  test('reads the number of the order in the shop in its alert, and not an id of ours', async () => {
    const world = await openApi()
    const quayside = terminal(world)
    const orderId = await keysShort(world, 5, 2)
    const { reference = '' } = (await first(world.db, storeOrderById(orderId))) ?? {}
    await takeAlerts(world)
    expect((await quayside('alerts', 'list')).stdout).toMatch(new RegExp(`order ${reference}$`, 'm'))
    expect((await quayside('status')).stdout).toContain(`, order ${reference}, critical, raised`)
  })

  test('sees what each decision would do, and the decision does it', async () => {
    const world = await openApi()
    const quayside = terminal(world)
    const orderId = await keysShort(world, 5, 2)
    const { id } = await world.purchase(orderId)
    const shown = (await quayside('reviews', 'show', id)).stdout
    expect(shown).toContain('the order is completed, but only 2 of 5 keys came')
    expect(shown).toMatch(/--hand-over +Gives the store 2 of the 2 keys that came\./)
    expect(shown).toMatch(/its own, completed, 2 of 5 keys/)
    const decided = await quayside('reviews', 'decide', id, '--hand-over', '--reason', 'two are enough for now')
    expect(decided.stdout).toContain('Hand over the keys that came: Gives the store 2 of the 2 keys that came.')
    expect(decided.stdout.slice(decided.stdout.indexOf('Decided'))).toBe(
      `Decided. The purchase is completed now.\nWatch it: npx quayside reviews show ${id}\n`,
    )
    await world.pass(MINUTE)
    expect(world.shop.keys().get('1001/1')).toHaveLength(2)
    const after = (await quayside('reviews', 'show', id, '--stored')).stdout
    expect(after).toContain('two are enough for now')
    expect(after).toContain('Decisions:\n  None: the purchase is fulfilled')
  })

  test.each([
    [[], 2, 'name one decision'],
    [['--close', '--buy-again', '--reason', 'either'], 2, 'name one decision'],
    [['--close'], 2, 'give a reason'],
    [['--close', '--reason', 'no'], 2, 'reason'],
    [['--close', '--override-spend-cap', '--reason', 'it costs nothing'], 2, 'overrideSpendCap'],
    [['--adopt', 'a\tb', '--reason', 'a tabulator in it'], 2, 'orderId'],
    [['--adopt', '01890000-0000-7000-8000-000000000000', '--reason', 'is it this'], 5, 'the supplier knows no order'],
  ])('who asks for %j reads what is wrong, and nothing happens', async (options, exitCode, said) => {
    const world = await openApi()
    const orderId = await keysShort(world, 5, 0)
    const before = await world.purchase(orderId)
    const version = ['--evidence', await versionOf(world, before.id)]
    const result = await terminal(world)('reviews', 'decide', before.id, ...version, ...options)
    expect(result).toMatchObject({ exitCode, stdout: '', stderr: expect.stringContaining(said) })
    expect(await world.purchase(orderId)).toEqual(before)
  })
})

/** What `show` hands to its reader. */
const versionOf = async (world: ApiWorld, id: string): Promise<string> =>
  /--evidence (\S+)/.exec((await terminal(world)('reviews', 'show', id, '--stored')).stdout)?.[1] ?? 'none'

describe('a decision by a person who was not shown what it stands on', () => {
  test('is not taken in a pipe, nor when the answer is no', async () => {
    const world = await openApi()
    const orderId = await keysShort(world, 5, 2)
    const before = await world.purchase(orderId)
    const decide = ['reviews', 'decide', before.id, '--close', '--reason', 'not wanted']
    const piped = await terminal(world, { terminal: false })(...decide)
    expect(piped).toMatchObject({ exitCode: 2, stdout: '', stderr: expect.stringContaining('--evidence is what') })
    const refused = await terminal(world, { typed: ['no'] })(...decide)
    expect(refused).toMatchObject({ exitCode: 5, stderr: expect.stringContaining('nothing was decided') })
    expect(await world.purchase(orderId)).toEqual(before)
    const version = await versionOf(world, before.id)
    expect(await terminal(world, { terminal: false })(...decide, '--evidence', version)).toMatchObject({ exitCode: 0 })
    expect(await world.purchase(orderId)).toMatchObject({ state: 'cancelled' })
  })

  test('is not taken on an accepted purchase, whatever the answer is', async () => {
    const world = await openApi()
    world.sandbox.faults.add({ fault: 'hold-open' })
    const orderId = await world.buy('1001')
    await world.settle()
    const { id } = await world.purchase(orderId)
    const decide = ['reviews', 'decide', id, '--buy-again', '--reason', 'it does not come']
    const asked = await terminal(world)(...decide)
    expect(asked).toMatchObject({ exitCode: 5, stdout: '', stderr: expect.stringContaining('asks for no decision') })
    expect(await world.purchases(orderId)).toHaveLength(1)
    expect(await terminal(world)(...decide, '--evidence', await versionOf(world, id))).toMatchObject({ exitCode: 0 })
    expect(await world.purchases(orderId)).toHaveLength(2)
  })

  test('lifts no freeze in a pipe, nor when the answer is no', async () => {
    const world = await openApi()
    await terminal(world)('freeze', '--reason', 'prices look wrong')
    world.move(1_000)
    await terminal(world)('freeze', '--reason', 'and the stock does')
    const piped = await terminal(world, { terminal: false })('unfreeze')
    expect(piped).toMatchObject({ exitCode: 2, stdout: '', stderr: expect.stringContaining('and the stock does') })
    expect(await terminal(world, { typed: ['n'] })('unfreeze')).toMatchObject({ exitCode: 5 })
    const causes = (await currentFreeze(world.db))?.causes ?? []
    expect(causes.map(({ reason }) => reason)).toEqual(['prices look wrong', 'and the stock does'])
    const [first, second] = causes.map(({ id }) => id)
    const left = await terminal(world, { terminal: false })('unfreeze', String(first))
    expect(left.stdout).toContain('and the stock does')
    expect((await terminal(world)('unfreeze', String(second))).stdout).toBe('Buying again.\n')
    expect((await terminal(world)('unfreeze')).stdout).toBe('Buying is not frozen.\n')
  })
})

describe('an order that is shown', () => {
  test('says that it was cancelled, and keeps no note of a freeze that was in its way', async () => {
    const world = await openApi()
    const quayside = terminal(world)
    await quayside('freeze', '--reason', 'a look at the prices')
    const orderId = await world.buy('1001')
    await world.settle()
    expect((await quayside('orders', 'show', '1001')).stdout).toContain('a look at the prices')
    await quayside('orders', 'cancel', '1001')
    await quayside('unfreeze')
    await world.pass(MINUTE)
    expect(await world.purchase(orderId)).toMatchObject({ state: 'cancelled', note: null })
    const [head = '', , purchases = ''] = (await quayside('orders', 'show', '1001')).stdout.split('\n\n')
    expect(head).toMatch(/^Cancelled +asked 2023-11-14/m)
    expect(purchases).toContain('the store cancelled it')
    expect(purchases).not.toContain('frozen')
  })

  test('shows the cancellation of what was bought already', async () => {
    const world = await openApi()
    const quayside = terminal(world)
    world.sandbox.faults.add({ fault: 'hold-open' })
    const orderId = await world.buy('1001')
    await world.settle()
    await quayside('orders', 'cancel', '1001')
    const { id, state } = await world.purchase(orderId)
    expect(state).toBe('accepted')
    expect((await quayside('orders', 'show', '1001')).stdout).toContain(`${id}: the store cancelled it`)
    expect((await quayside('purchases', 'show', id)).stdout).toMatch(/^Cancellation +asked/m)
  })
})
