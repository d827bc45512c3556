import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { type Dialect, dialectShape, readDialect } from '../../src/dialect/dialect.ts'
import { Secret } from '../../src/secret.ts'
import { trySupplier } from '../../src/settings/supplier-trial.ts'
import { type Card, type Fault, type Habits, sum } from './double.ts'
import { bounty, cardspring, digitone, reedcard, runestone } from './of-cards.ts'
import { codewharf, dropgames, gatetwo, giftline } from './of-keys.ts'
import { handmark, jesters, keyworld, nebula, paperport, sealmark } from './of-other-words.ts'
import { openStranger, type Stranger } from './quayside.ts'

const MINUTE = 60_000

const fileOf = ({ name }: Habits): URL => new URL(`./${name}.json`, import.meta.url)

const dialectOf = (habits: Habits): Dialect => readDialect(fileOf(habits))

/** What a card is to us, where it is not as it was sold. */
const pairOf =
  (label: string, second: string) =>
  ({ text, pin }: Card): [string, string] => ['pair', `${label}: ${text}\n${second}: ${pin}`]

const NOT_REPEATED = /^no order was found and the supplier takes no idempotency key: it cannot be repeated safely$/

/** `left`: what people read of two orders that never ran and whose answers were lost; absent: they are sent again. */
const spoken: { habits: Habits; keyOf?: (card: Card) => [string, string]; left?: RegExp }[] = [
  // Its orders are always listed whole, without a cursor: an order that is not there may be further on.
  { habits: codewharf, left: /^it may have been charged, and no look-up could tell for ten minutes/ },
  { habits: giftline },
  { habits: dropgames },
  // An order that is not complete shows no reference, and its products are listed under another name than its orders.
  { habits: runestone },
  { habits: digitone, keyOf: ({ id, text }) => ['pair', `Code: ${text}\nSerial: ${id}`] },
  { habits: cardspring, keyOf: pairOf('Card number', 'PIN'), left: NOT_REPEATED },
]

const named = <T extends { habits: Habits }>(one: T) => ({ name: one.habits.name, like: one.habits.like, ...one })

describe.each(spoken.map(named))('$name, a supplier with the habits of $like', ({ habits, keyOf, left }) => {
  test('is read and bought from by its dialect alone', async () => {
    const stranger = await openStranger(habits, dialectOf(habits))
    expect(stranger.run).toMatchObject({ state: 'complete', error: null })
    const offers = await stranger.offers()
    expect(offers).toHaveLength(30)
    const { orderId } = await stranger.order('1001', offers[4]?.sku ?? '', 2)
    await stranger.pass(5 * MINUTE)
    expect(await stranger.state(orderId)).toBe('fulfilled')
    await stranger.expectTie({ charges: Math.ceil(2 / stranger.dialect.quantityMax), keys: 2 }, keyOf)
    expect(await stranger.alerts()).toEqual([])
  })

  test('charges nothing twice where answers are lost, and hands over or reports what it charged', async () => {
    const stranger = await openStranger(habits, dialectOf(habits))
    const offers = await stranger.offers()
    const faults: Fault[] = ['none', 'lost', 'unheard', 'broken', 'cut', 'refused']
    for (const [place, fault] of faults.entries()) {
      stranger.double.faults.push(fault)
      await stranger.order(fault, offers[place]?.sku ?? '')
      await stranger.pass(6 * MINUTE)
      await expectReported(stranger)
    }
    await stranger.pass(30 * MINUTE)
    const charges = left ? 4 : 6
    expect(stranger.world.ledger.charges).toHaveLength(charges)
    await stranger.expectTie({ charges, keys: charges }, keyOf)
    const said = new Set(await stranger.said())
    expect([...said]).toEqual(left ? [expect.stringMatching(left)] : [])
  })
})

/** Asserts that of all that was charged more than five minutes ago the shop has the keys, or a person has read of it. */
async function expectReported(stranger: Stranger): Promise<void> {
  const handed = sum([...stranger.shop.keys().values()].map((keys) => keys.length))
  const paid = stranger.world.orders.filter(
    ({ at, status }) => at <= stranger.now() - 5 * MINUTE && status !== 'failed',
  )
  if (sum(paid.map(({ quantity }) => quantity)) > handed) expect(await stranger.said()).not.toEqual([])
}

describe('a supplier that no dialect can speak to is refused before a charge', () => {
  test.each(
    [
      { habits: nebula, faults: [/^orderBody.* must be exactly one of/] },
      { habits: keyworld, faults: [/^orderBody.* must be exactly one of/] },
      { habits: gatetwo, faults: [/^orderBody: needs \{reference\}/] },
    ].map(named),
  )('by the shape of its dialect: $name, like $like', ({ habits, faults }) => {
    const json: unknown = JSON.parse(readFileSync(fileOf(habits), 'utf8'))
    const found = dialectShape.safeParse(json).error?.issues.map(({ path, message }) => `${path.join('.')}: ${message}`)
    expect(found).toEqual(faults.map((fault) => expect.stringMatching(fault)))
    expect(() => dialectOf(habits)).toThrow(/has faults/)
  })

  test.each(
    [
      { habits: sealmark, says: /refused the API key with 401/ },
      { habits: paperport, says: /refused the API key with 401/ },
      { habits: handmark, says: /refused the API key with 401/ },
      { habits: jesters, says: /refused the API key with 200/ },
    ].map(named),
  )('because its catalogue cannot be read: $name, like $like', async ({ habits, says }) => {
    const dialect = dialectOf(habits)
    const stranger = await openStranger(habits, dialect)
    const { baseUrl } = stranger.double
    // What `quayside init` says before anything is set up, and what the sync run of a service says.
    expect(await trySupplier({ baseUrl, dialect, apiKey: new Secret(habits.apiKey) })).toEqual({
      fault: { correct: expect.any(String), message: expect.stringMatching(says) },
    })
    expect(stranger.run).toMatchObject({ state: 'failed', error: expect.stringMatching(says) })
    await expect(stranger.order('1001', 'SKU-1')).rejects.toThrow('no line of the order is one of the listings')
    await stranger.pass(5 * MINUTE)
    expect([...stranger.double.bought, ...stranger.double.turnedAway]).toEqual([])
    await stranger.expectTie({ charges: 0, keys: 0 })
  })

  test('because it takes no reference but a GUID: reedcard, like Bamboo', async () => {
    const stranger = await openStranger(reedcard, dialectOf(reedcard))
    // It groups products by brand, and a dialect reads the first of each.
    const offers = await stranger.offers()
    expect(offers).toHaveLength(10)
    const { orderId } = await stranger.order('1001', offers[0]?.sku ?? '')
    await stranger.pass(5 * MINUTE)
    expect(await stranger.state(orderId)).toBe('failed')
    const failed = stranger.shop.received().filter(({ type }) => type === 'line.failed')
    expect(failed.map(({ data }) => data.message)).toEqual(['InvalidRequestId.'])
    await stranger.expectTie({ charges: 0, keys: 0 })
  })

  test('because its balance cannot be read: bounty, like Tremendous', async () => {
    const stranger = await openStranger(bounty, dialectOf(bounty))
    const offers = await stranger.offers()
    expect(offers).toHaveLength(30)
    await stranger.order('1001', offers[0]?.sku ?? '')
    await stranger.pass(5 * MINUTE)
    const said = await stranger.said()
    expect(said).toContainEqual(
      expect.stringMatching(/^the answer to GET \/balance cannot be read: order \(envelope.data/),
    )
    expect(stranger.double.bought).toEqual([])
    await stranger.expectTie({ charges: 0, keys: 0 })
  })
})
