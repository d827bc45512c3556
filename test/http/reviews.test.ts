import { describe, expect, test } from 'vitest'
import { Failure } from '../../src/errors.ts'
import { sweep } from '../../src/reconciliation/sweep.ts'
import { audit } from '../../src/storage/schema.ts'
import { build } from '../../src/storage/statement.ts'
import { type ApiWorld, openApi } from '../support/api-world.ts'
import { buyBeside, keysShort, MINUTE, orderedTwice } from '../support/reviews.ts'

interface Choice {
  decision: string
  does: string
  refusal: string | null
}
const reason = 'the supplier confirmed it'
const choiceOf = (data: Record<string, unknown>, wanted: string) =>
  (data.choices as Choice[]).find(({ decision }) => decision === wanted)

/** What a person does who has just seen the evidence. */
const ifMatch = (version: string) => ({ 'if-match': `"${version}"` })

async function versionOf(world: ApiWorld, id: string): Promise<string> {
  return String((await world.ask('GET', `/purchases/${id}/evidence`)).body.data.evidenceVersion)
}

async function evidence(world: ApiWorld, orderId: string, token = world.tokens.operator) {
  const { id } = await world.purchase(orderId)
  const { body } = await world.ask('GET', `/purchases/${id}/evidence?read=true`, { token })
  return body.data
}

describe('the evidence of a purchase in review', () => {
  test('shows both orders as the supplier has them, why buying is frozen, and what each decision would do', async () => {
    const world = await openApi()
    const { orderId, own, second } = await orderedTwice(world)
    const data = await evidence(world, orderId)
    expect(data).toMatchObject({
      order: { reference: '1001', line: '1' },
      keys: { stored: 0, left: 0, elsewhere: [] },
      freeze: { actor: 'quayside', purchaseId: (await world.purchase(orderId)).id },
      discrepancies: [{ kind: 'double_charge' }],
      generations: [],
      audit: [],
    })
    const orders = data.orders as { id: string }[]
    expect(orders.map(({ id }) => id).sort()).toEqual([own, second].sort())
    for (const order of orders) {
      const reading = { status: 'completed', keys: 1, differs: [], currency: 'EUR', amount: expect.any(String) }
      expect(order).toMatchObject({ own: false, takenBy: null, unread: null, reading })
    }
    expect(data.attempts).toContainEqual(expect.objectContaining({ kind: 'place', stage: 'sent' }))
    expect(choiceOf(data, 'adopt')).toMatchObject({ refusal: null, does: expect.stringContaining('The other orders') })
    expect(choiceOf(data, 'hand_over')).toMatchObject({ refusal: expect.stringContaining('no key of it has come') })
    expect(choiceOf(data, 'close')?.does).toContain('the 2 orders seen')
    expect(choiceOf(data, 'buy_again')?.does).toContain('Buying is frozen')
  })

  test('counts keys and never shows one', async () => {
    const world = await openApi()
    const orderId = await keysShort(world, 5, 2)
    const data = await evidence(world, orderId)
    expect(data).toMatchObject({ keys: { stored: 2, left: 0 }, orders: [{ own: true, reading: { keys: 2 } }] })
    expect(choiceOf(data, 'hand_over')?.does).toContain('notified that 3 units will not come')
    const issued = Object.values(world.sandbox.world.report().keysIssued).flat()
    expect(issued).toHaveLength(2)
    for (const key of issued) expect(JSON.stringify(data)).not.toContain(key)
  })

  test('warns of a key that another line was given', async () => {
    const world = await openApi()
    const orders = [await world.buy('1001'), await world.buy('1002')]
    await world.settle()
    const { order } = world.ordering.supplier
    let given: Awaited<ReturnType<typeof order>>
    world.ordering.supplier.order = async (id) => {
      const read = await order(id)
      if (read && read.keys.length > 0) given ??= read
      return read && { ...read, keys: read.keys.length > 0 ? (given?.keys ?? []) : [] }
    }
    await world.pass(60_000)
    const both = await Promise.all(orders.map(world.purchase))
    const [fulfilled, waiting] = both.toSorted((a, b) => (a.state < b.state ? -1 : 1))
    expect([fulfilled?.state, waiting?.state]).toEqual(['fulfilled', 'review'])
    const data = await evidence(world, String(waiting?.orderId))
    expect(data).toMatchObject({ keys: { stored: 1, left: 0, elsewhere: [fulfilled?.id] } })
    expect(choiceOf(data, 'hand_over')?.does).toContain(`Mind: a key of it is on purchase ${fulfilled?.id} too.`)
  })

  test('says why an order cannot be read, and shows the rest all the same', async () => {
    const world = await openApi()
    const orderId = await keysShort(world, 5, 2)
    world.sandbox.faults.add({ fault: 'rate-limit', times: 9, match: { path: '/orders' } })
    const data = await evidence(world, orderId)
    expect(data).toMatchObject({
      orders: [{ own: true, reading: null, unread: expect.stringContaining('rate limit') }],
    })
    expect(choiceOf(data, 'close')).toMatchObject({ refusal: null })
  })

  test('asks the supplier for an operator only, and for what a viewer sees not at all', async () => {
    const world = await openApi()
    const orderId = await keysShort(world, 5, 2)
    const { id } = await world.purchase(orderId)
    const token = world.tokens.viewer
    expect((await world.ask('GET', `/purchases/${id}/evidence?read=true`, { token })).status).toBe(403)
    const { body } = await world.ask('GET', `/purchases/${id}/evidence`, { token })
    expect(body.data.orders).toEqual([expect.objectContaining({ reading: null, unread: 'the supplier was not asked' })])
  })
})

describe('a decision over the API', () => {
  test('is carried out, recorded under the name of the token, and answered with what is now', async () => {
    const world = await openApi()
    const { orderId, own } = await orderedTwice(world)
    const { id } = await world.purchase(orderId)
    const answer = await world.ask('POST', `/purchases/${id}/decision`, {
      token: world.tokens.operator,
      body: { decision: 'adopt', orderId: own, reason },
      headers: ifMatch(await versionOf(world, id)),
    })
    expect(answer.status).toBe(200)
    expect(answer.body.data).toMatchObject({
      purchase: { id, state: 'accepted', supplierOrderId: own, note: null },
      audit: [
        { actor: expect.stringMatching(/^operator \(/), action: 'purchase.adopt', detail: `order ${own}: ${reason}` },
      ],
    })
    await world.pass(60_000)
    expect(await world.state(orderId)).toBe('fulfilled')
  })

  test('is refused to a viewer and to a store', async () => {
    const world = await openApi()
    const orderId = await keysShort(world, 2, 1)
    const { id } = await world.purchase(orderId)
    const [body, headers] = [{ decision: 'close', reason }, ifMatch(await versionOf(world, id))]
    for (const role of ['viewer', 'store'] as const) {
      expect(
        (await world.ask('POST', `/purchases/${id}/decision`, { token: world.tokens[role], body, headers })).status,
      ).toBe(403)
    }
    expect(await world.purchase(orderId)).toMatchObject({ state: 'review' })
    expect(await world.db.query(build.select().from(audit))).not.toContainEqual(
      expect.objectContaining({ subject: id }),
    )
  })

  test.each([
    [{ decision: 'adopt', reason }, 'orderId'],
    [{ decision: 'close', orderId: 'ord_1', reason }, 'orderId'],
    [{ decision: 'close', overrideSpendCap: true, reason }, 'overrideSpendCap'],
    [{ decision: 'burn', reason }, 'decision'],
    [{ decision: 'close' }, 'reason'],
    [{ decision: 'close', reason: 'no' }, 'reason'],
    [{ decision: 'close', reason: 'x'.repeat(501) }, 'reason'],
    [{ decision: 'close', reason, force: true }, 'force'],
  ])('with %j names the field that is wrong: %s', async (body, field) => {
    const world = await openApi()
    const orderId = await keysShort(world, 2, 1)
    const { id } = await world.purchase(orderId)
    const headers = ifMatch('review-9f86d081884c')
    const answer = await world.ask('POST', `/purchases/${id}/decision`, { token: world.tokens.operator, body, headers })
    expect([answer.status, answer.body.error.fields?.map((fault) => fault.field)]).toEqual([400, [field]])
    expect(await world.purchase(orderId)).toMatchObject({ state: 'review' })
  })

  test.each([undefined, '', '""', 'review-9f86d081884c', 'W/"review-9f86d081884c"', '"a b"', '"a", "b"'])(
    'with the version %j names the header',
    async (version) => {
      const world = await openApi()
      const orderId = await keysShort(world, 2, 1)
      const { id } = await world.purchase(orderId)
      const headers: Record<string, string> = version === undefined ? {} : { 'if-match': version }
      const body = { decision: 'close', reason }
      const answer = await world.ask('POST', `/purchases/${id}/decision`, { body, headers })
      expect([answer.status, answer.body.error.fields?.map((fault) => fault.field)]).toEqual([400, ['If-Match']])
      expect(await world.purchase(orderId)).toMatchObject({ state: 'review' })
    },
  )

  test('that comes too late is answered with what happened instead', async () => {
    const world = await openApi()
    const orderId = await keysShort(world, 2, 1)
    const { id } = await world.purchase(orderId)
    const [body, headers] = [{ decision: 'close', reason }, ifMatch(await versionOf(world, id))]
    const ask = () => world.ask('POST', `/purchases/${id}/decision`, { body, headers })
    expect((await ask()).status).toBe(200)
    const late = await ask()
    expect([late.status, late.body.error.code]).toEqual([409, 'not_decidable'])
    expect(late.body.error.message).toContain('the purchase is cancelled')
  })
})

describe('a decision on what is no longer so', () => {
  test('does not write off the good order that was found since', async () => {
    const world = await openApi()
    world.sandbox.faults.add({ fault: 'answer-lost' })
    world.sandbox.faults.add({ fault: 'hold-open' })
    const { orders } = world.ordering.supplier
    world.ordering.supplier.orders = () => Promise.reject(new Failure('unavailable', 'down'))
    const orderId = await world.buy('1001')
    await world.pass(25 * 3_600_000, 600_000)
    const { id } = await world.purchase(orderId)
    const version = await versionOf(world, id)
    expect(version).toMatch(/^review-[0-9a-f]{12}$/)
    world.ordering.supplier.orders = orders
    await world.pass(3_600_000, 300_000)
    const before = await world.purchase(orderId)
    expect(before.state).toBe('accepted')
    const ask = (body: object, seen: string) =>
      world.ask('POST', `/purchases/${id}/decision`, { body, headers: ifMatch(seen) })
    const late = await ask({ decision: 'buy_again', reason }, version)
    expect([late.status, late.body.error.code]).toEqual([412, 'evidence_changed'])
    expect(late.body.error.message).toContain(`it was review and is accepted now, with order ${before.supplierOrderId}`)
    expect(await world.purchase(orderId)).toEqual(before)
    // Who has seen that may still do it.
    expect((await ask({ decision: 'close', reason }, await versionOf(world, id))).status).toBe(200)
    expect(world.sandbox.world.report().charges).toHaveLength(1)
  })

  test('is refused also when only the orders beside it are others', async () => {
    const world = await openApi()
    const { orderId, own } = await orderedTwice(world)
    const { id, body } = await world.purchase(orderId)
    const version = await versionOf(world, id)
    await buyBeside(world, body, 'third')
    await world.pass(1_800_000, 60_000)
    await sweep(world.ordering)
    const late = await world.ask('POST', `/purchases/${id}/decision`, {
      body: { decision: 'adopt', orderId: own, reason },
      headers: ifMatch(version),
    })
    expect([late.status, late.body.error.code]).toEqual([412, 'evidence_changed'])
    expect(await world.purchase(orderId)).toMatchObject({ state: 'review' })
  })

  test('stays possible while nothing but time passes', async () => {
    const world = await openApi()
    const orderId = await keysShort(world, 2, 1)
    const { id } = await world.purchase(orderId)
    const version = await versionOf(world, id)
    await world.pass(3 * 3_600_000)
    const answer = await world.ask('POST', `/purchases/${id}/decision`, {
      body: { decision: 'hand_over', reason },
      headers: ifMatch(version),
    })
    expect(answer.status).toBe(200)
  })
})

describe('the end of a freeze', () => {
  interface Shown {
    freeze: { causes: { id: string; purchaseId: string | null }[] } | null
  }
  const frozen = async (world: ApiWorld) => ((await world.ask('GET', '/status')).body.data as unknown as Shown).freeze

  test('does not lift the freeze for a second purchase that no operator has seen', async () => {
    const world = await openApi()
    const one = await orderedTwice(world, '1001')
    const shown = (await frozen(world))?.causes ?? []
    expect(shown.map(({ purchaseId }) => purchaseId)).toEqual([(await world.purchase(one.orderId)).id])
    const two = await world.buy('1002')
    await world.settle()
    const { body } = await world.purchase(two)
    // The second one was bought before the freeze: here by hand, twice.
    await buyBeside(world, body, 'a')
    await buyBeside(world, body, 'b')
    await sweep(world.ordering)
    await world.pass(MINUTE)
    const both = (await frozen(world))?.causes ?? []
    expect(both.map(({ purchaseId }) => purchaseId)).toEqual([shown[0]?.purchaseId, (await world.purchase(two)).id])
    const lift = async (causes: string[]) => world.ask('POST', '/unfreeze', { body: { causes } })
    const left = await lift(shown.map(({ id }) => id))
    expect(left.body.data).toMatchObject({ freeze: { purchaseId: (await world.purchase(two)).id } })
    const again = await lift(shown.map(({ id }) => id))
    expect([again.status, again.body.error.code]).toEqual([409, 'changed'])
    const three = await world.buy('1003')
    await world.pass(MINUTE)
    expect(await world.purchase(three)).toMatchObject({ state: 'planned', holdReason: 'frozen' })
    expect((await lift(both.map(({ id }) => id))).body.data).toEqual({ freeze: null })
    await world.pass(MINUTE)
    expect(await world.state(three)).toBe('fulfilled')
  })
})

describe('the list of reviews', () => {
  test('says since when each waits, however often it was read again meanwhile', async () => {
    const world = await openApi()
    const orderId = await keysShort(world, 2, 1)
    const since = async () => (await world.ask('GET', '/purchases?state=review')).body.data.items[0]?.since
    const first = await since()
    await world.pass(2 * 3_600_000)
    expect(await since()).toBe(first)
    expect((await world.purchase(orderId)).changedAt).toBeGreaterThan(Date.parse(String(first)))
  })
})
