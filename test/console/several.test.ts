/** Several things at once: each row is done, refused with its reason, or had changed meanwhile, and nothing is done twice. */
import { expect, test } from 'vitest'
import { Failure } from '../../src/errors.ts'
import { outcomesOf } from '../../src/http/answers.ts'
import type { ApiWorld } from '../support/api-world.ts'
import { signedIn, visit } from '../support/console-client.ts'
import { auditOf, offer, peopleOf } from '../support/console-data.ts'
import { openAfterOutage, openDead, openHeld, openReviews } from '../support/several-world.ts'
import { STORE } from '../support/test-app.ts'

const entities: Record<string, string> = { amp: '&', quot: '"', '#39': "'", lt: '<', gt: '>' }
const readIn = (markup: string): string =>
  markup
    .replaceAll(/<\/?(time|bdi|b)\b[^>]*>/g, '')
    .replaceAll(/<[^>]*>/g, ' ')
    .replaceAll(/&(#?\w+);/g, (_, name: string) => entities[name] ?? '')
    .replaceAll(/\s+/g, ' ')

/** What the boxes of a page send, and whether they are on. */
const boxesIn = (markup: string) =>
  [...markup.matchAll(/<input type="checkbox" name="row" value="([^"]*)"[^>]*?( checked)?>/g)].map(([, value, on]) => ({
    row: (value ?? '').replaceAll(/&(#?\w+);/g, (_, name: string) => entities[name] ?? ''),
    isOn: on !== undefined,
  }))
const rowsIn = (markup: string) => boxesIn(markup).map(({ row }) => row)

const audited = async (world: ApiWorld, action: string) =>
  (await auditOf(world)).filter((entry) => entry.action === action).map(({ subject, detail }) => [subject, detail])

/** Posts as a browser whose page is of another site. */
const fromElsewhere = async (world: ApiWorld, path: string, row: readonly string[]) =>
  visit(world.pages.address() ?? '', path, {
    cookie: await signedIn(world, 'admin'),
    site: 'cross-site',
    form: { row, reason: 'because', decision: 'close' },
  })

test('what an outage left is retried at once: the sum is said before, and each row has its result', async () => {
  const world = await openAfterOutage()
  const { page, act } = peopleOf(world)
  expect((await page('viewer', '/overview')).text).toContain('<a href="/waiting?cause=outage">Outage 4</a>')
  const { text } = await page('operator', '/waiting?cause=outage')
  expect(boxesIn(text).map(({ isOn }) => isOn)).toEqual([true, true, true, true])
  const most = (await world.ask('GET', '/waiting?cause=outage')).body.data.items.reduce(
    (sum, { most }) => sum + Number(most),
    0,
  )
  expect(readIn(text)).toContain(`Money At most ${most.toFixed(2)} EUR for all 4. Nothing that failed was charged.`)
  const rows = rowsIn(text)
  // A colleague retries the second alone.
  const second = (rows[1] ?? '').split('\t')[2]
  await world.ask('POST', `/purchases/${second}/retry`, { body: { reason: 'mine' } })
  const result = await act('operator', '/waiting/several?cause=outage', { row: rows, reason: 'the outage' })
  expect(result.status).toBe(200)
  expect(readIn(result.text)).toContain('3 of 4 retried')
  expect(readIn(result.text)).toContain('One had changed meanwhile: nothing was done.')
  expect(readIn(result.text)).toMatch(/changed meanwhile It does not wait for this any more\./)
  expect((await audited(world, 'purchase.retry')).map(([, detail]) => detail).toSorted()).toEqual([
    'mine',
    'the outage',
    'the outage',
    'the outage',
  ])
  await world.time.pass(10 * 60_000)
  const after = (await world.ask('GET', '/waiting')).body.data
  expect(after.causes).toEqual({ failed: 1 })
  expect(await world.bought(), 'one for each order').toBe(4)
})

test('the same form posted twice, also at the same moment, retries nothing twice', async () => {
  const world = await openAfterOutage(3)
  const { page, act } = peopleOf(world)
  const row = rowsIn((await page('operator', '/waiting?cause=outage')).text)
  const form = { row, reason: 'the outage' }
  await Promise.all([1, 2].map(() => act('operator', '/waiting/several?cause=outage', form)))
  const again = await act('operator', '/waiting/several?cause=outage', form)
  expect(readIn(again.text)).toContain('0 of 3 retried')
  expect(await audited(world, 'purchase.retry')).toHaveLength(3)
  await world.time.pass(10 * 60_000)
  expect(await world.bought()).toBe(3)
})

test('a process that ends in the middle leaves each row done or as it was, and the same form does the rest', async () => {
  const world = await openAfterOutage(4)
  const { page, act } = peopleOf(world)
  const row = rowsIn((await page('operator', '/waiting?cause=outage')).text)
  const { commit } = world.db
  let left = 2
  world.db.commit = async (...given: Parameters<typeof commit>) => {
    left -= 1
    if (left < 0) throw new Error('the process has ended')
    return commit(...given)
  }
  expect((await act('operator', '/waiting/several?cause=outage', { row, reason: 'first' })).status).toBe(500)
  world.db.commit = commit
  const done = await audited(world, 'purchase.retry')
  const generations = async () =>
    Promise.all(
      row.map(async (one) => {
        const id = one.split('\t')[2] ?? ''
        const { externalOrderId } = (await world.ask('GET', `/purchases/${id}`)).body.data
        const next = String(externalOrderId).replace(/1$/, '2')
        const { items } = (await world.ask('GET', '/purchases?limit=200')).body.data
        return [items.some((other) => other.externalOrderId === next), done.some(([subject]) => subject === id)]
      }),
    )
  expect(done.length).toBeGreaterThan(0)
  expect(done.length).toBeLessThan(4)
  for (const [isPlanned, isAudited] of await generations()) expect(isPlanned).toBe(isAudited)
  const rest = await act('operator', '/waiting/several?cause=outage', { row, reason: 'second' })
  expect(readIn(rest.text)).toContain(`${4 - done.length} of 4 retried`)
  expect(await audited(world, 'purchase.retry')).toHaveLength(4)
})

test('an answer that was lost is no refusal, and the text of a fault of ours stays in the log', async () => {
  const [lost, broken] = [
    new Failure('unknown_outcome', 'look'),
    new Failure('internal', 'what is sealed does not open'),
  ]
  const fail = (error: Error) => outcomesOf([error], () => Promise.reject(error))
  expect(await fail(lost)).toEqual([{ row: lost, is: 'unknown', why: 'look' }])
  await expect(fail(broken)).rejects.toBe(broken)
})

test('only those that are selected are retried, and a reason is asked for', async () => {
  const world = await openAfterOutage(3)
  const { page, act } = peopleOf(world)
  const none = (await page('operator', '/waiting?cause=outage&select=none')).text
  expect(boxesIn(none).map(({ isOn }) => isOn)).toEqual([false, false, false])
  const rows = rowsIn(none)
  const asked = await act('operator', '/waiting/several?cause=outage', { row: rows.slice(0, 1), reason: ' ' })
  expect(asked.status).toBe(400)
  expect(readIn(asked.text)).toContain('Say why: the audit log keeps it.')
  expect(boxesIn(asked.text).map(({ isOn }) => isOn)).toEqual([true, false, false])
  const empty = await act('operator', '/waiting/several?cause=outage', { reason: 'why' })
  expect(readIn(empty.text)).toContain('No row is selected')
  const many = Array.from({ length: 101 }, (_, index) => `x\tretry\t${index}`)
  const over = await act('operator', '/waiting/several?cause=outage', { row: many, reason: 'why' })
  expect([over.status, readIn(over.text).includes('At most 100 rows can be selected: nothing was done.')]).toEqual([
    400,
    true,
  ])
  expect(await audited(world, 'purchase.retry')).toEqual([])
  expect((await act('viewer', '/waiting/several?cause=outage', { row: rows, reason: 'why' })).status).toBe(403)
  expect((await fromElsewhere(world, '/waiting/several', rows)).status).toBe(403)
  expect(boxesIn((await page('viewer', '/waiting?cause=outage')).text)).toEqual([])
  const one = await act('operator', '/waiting/several?cause=outage', { row: rows.slice(0, 1), reason: 'why' })
  expect(readIn(one.text)).toContain('1 of 1 retried')
  expect(await audited(world, 'purchase.retry')).toEqual([[(rows[0] ?? '').split('\t')[2], 'why']])
})

test('a queue of reviews or of ceilings offers nothing at once, and says of none that it was decided or released', async () => {
  const world = await openReviews(2)
  const { page, act } = peopleOf(world)
  const { text } = await page('operator', '/waiting?cause=review')
  expect(readIn(text)).toContain('Decide')
  expect(boxesIn(text)).toEqual([])
  expect(readIn(text)).not.toContain('several at once')
  const { items } = (await world.ask('GET', '/waiting?cause=review')).body.data
  const row = items.map(({ reference, name, help, purchaseId }) => `${reference}, ${name}\t${help}\t${purchaseId}\t\t`)
  const result = await act('operator', '/waiting/several?cause=review', { row, reason: 'given back' })
  expect(readIn(result.text)).toContain('0 of 2')
  expect(await audited(world, 'purchase.check')).toEqual([])
})

test('held prices are released as they were shown, and one that has changed since is left and named', async () => {
  const world = await openHeld()
  const { page, act } = peopleOf(world)
  const row = rowsIn((await page('operator', '/held-prices')).text)
  expect(row).toHaveLength(3)
  await offer(world, 'b', { name: 'Product b', costMinor: 4_000 })
  await world.ask('POST', `/stores/${STORE}/listings/SKU-b/retry`)
  await world.publish()
  const form = { row, reason: 'the supplier confirmed it' }
  const result = await act('operator', '/held-prices/several', form)
  expect(readIn(result.text)).toContain('2 of 3 released')
  expect(readIn(result.text)).toContain('The price of SKU-b that waits now is 48.00 EUR, not 36.00')
  await world.publish()
  const prices = () => ['a', 'b', 'c'].map((name) => world.shop.listings().get(`SKU-${name}`)?.price)
  expect(prices()).toEqual(['36.00', '12.00', '36.00'])
  expect(readIn((await act('operator', '/held-prices/several', form)).text)).toContain('0 of 3 released')
  expect(await audited(world, 'listing.release')).toHaveLength(2)
  expect((await act('viewer', '/held-prices/several', form)).status).toBe(403)
  expect((await fromElsewhere(world, '/held-prices/several', row)).status).toBe(403)
  const blank = await act('operator', '/held-prices/several', { row, reason: '' })
  expect([blank.status, readIn(blank.text).match(/Say why/g)?.length]).toEqual([400, 1])
})

test('a hundred prices of products with the longest names fit into one form', async () => {
  const names = Array.from({ length: 100 }, (_, index) => `n${index}`)
  const world = await openHeld(names, (name) => `${'游戏'.repeat(150)} ${name}`)
  const { page, act } = peopleOf(world)
  const row = rowsIn((await page('operator', '/held-prices')).text)
  const result = await act('operator', '/held-prices/several', { row, reason: 'the supplier confirmed it' })
  expect(readIn(result.text)).toContain('100 of 100 released')
})

test('held prices are refused at once: their listings are left alone from then on', async () => {
  const world = await openHeld()
  const { page, act } = peopleOf(world)
  const row = rowsIn((await page('operator', '/held-prices')).text).slice(0, 2)
  const result = await act('operator', '/held-prices/several', { row, reason: 'not at that cost', do: 'ignore' })
  expect(readIn(result.text)).toContain('2 of 2 ignored')
  expect((await audited(world, 'listing.ignore')).map(([, detail]) => detail)).toEqual(
    row.map(() => expect.stringContaining('not at that cost')),
  )
  expect(readIn((await page('operator', '/held-prices')).text)).toContain('One price jumped')
})

test('a listing whose price a colleague released meanwhile is not ignored', async () => {
  const world = await openHeld()
  const { page, act } = peopleOf(world)
  const row = rowsIn((await page('operator', '/held-prices')).text)
  const [, store, price, variant] = (row[0] ?? '').split('\t')
  await world.ask('POST', `/stores/${store}/listings/${variant}/release`, { body: { price, reason: 'it is right' } })
  await world.publish()
  const result = await act('operator', '/held-prices/several', { row, reason: 'not at that cost', do: 'ignore' })
  expect(readIn(result.text)).toContain('2 of 3 ignored')
  expect(readIn(result.text)).toContain('This price does not wait any more.')
  expect((await world.ask('GET', `/stores/${store}/listings/${variant}`)).body.data.state).toBe('synced')
})

test('dead letters of one store are sent again, and one that left meanwhile is not sent twice', async () => {
  const world = await openDead(3)
  const { page, act } = peopleOf(world)
  const { text } = await page('operator', '/dead-letters')
  expect(text).toContain(`<a href="/dead-letters?store=${STORE}">`)
  const ofOther = await page('operator', '/dead-letters?store=another')
  expect(boxesIn(ofOther.text)).toEqual([])
  const row = rowsIn((await page('operator', `/dead-letters?store=${STORE}`)).text)
  expect(row.map((one) => one.split('\t')[1]).toSorted()).toEqual(world.ids.toSorted())
  await world.ask('POST', `/outbox/${world.ids[0]}/redeliver`)
  const result = await act('operator', `/dead-letters/redeliver?store=${STORE}`, { row })
  expect(readIn(result.text)).toContain('2 of 3 sent again')
  expect(readIn(result.text)).toContain('The message is due by now, and not dead.')
  expect(result.text).toContain(`href="/dead-letters?store=${STORE}">Back to the list`)
  expect(readIn((await act('operator', '/dead-letters/redeliver', { row })).text)).toContain('0 of 3 sent again')
  await world.settle()
  expect([...world.shop.keys().values()].map((keys) => keys.length)).toEqual([1, 1, 1])
  expect(await audited(world, 'outbox.redeliver')).toHaveLength(3)
  expect((await act('viewer', '/dead-letters/redeliver', { row })).status).toBe(403)
  expect((await fromElsewhere(world, '/dead-letters/redeliver', row)).status).toBe(403)
})

test('several reviews are decided at once; a colleague’s decision stands, and is shown', async () => {
  const world = await openReviews(3)
  const { page, act } = peopleOf(world)
  const { text } = await page('operator', '/reviews')
  const row = rowsIn(text)
  expect(boxesIn(text).map(({ isOn }) => isOn)).toEqual([false, false, false])
  expect(readIn(text)).toMatch(/If all 3 are bought again, at most [\d.]+ EUR more\./)
  const first = (row[0] ?? '').split('\t')[1]
  const colleague = { cookie: await signedIn(world, 'operator', 'Tom') }
  const form = { decision: 'hand_over', reason: 'they asked for it', version: await versionOf(world, first) }
  await visit(world.pages.address() ?? '', `/reviews/${first}/decide`, { ...colleague, form })
  const close = { row, decision: 'close', reason: 'given back' }
  const result = await act('operator', '/reviews/several', close)
  expect(readIn(result.text)).toContain('2 of 3 decided')
  expect(readIn(result.text)).toMatch(
    /changed meanwhile At \d\d:\d\d:\d\d, Tom decided to hand over what came: “they asked for it”\./,
  )
  expect(await audited(world, 'purchase.close')).toHaveLength(2)
  expect(readIn((await act('operator', '/reviews/several', close)).text)).toContain('0 of 3 decided')
  expect((await act('viewer', '/reviews/several', close)).status).toBe(403)
  expect((await fromElsewhere(world, '/reviews/several', row)).status).toBe(403)
})

test('what a customer has cancelled is not bought again beside others, but may be closed', async () => {
  const world = await openReviews(2)
  const { page, act } = peopleOf(world)
  await world.ask('POST', `/orders/1001/cancel?store=${STORE}`, { body: {} })
  const row = rowsIn((await page('operator', '/reviews')).text)
  const again = { row, decision: 'buy_again', reason: 'no key came' }
  const result = await act('operator', '/reviews/several', again)
  expect(readIn(result.text)).toContain('1 of 2 decided')
  expect(readIn(result.text)).toContain('refused Its order was cancelled: decide on it on its own page.')
  expect(await audited(world, 'purchase.buy_again')).toHaveLength(1)
  const closed = await act('operator', '/reviews/several', { row, decision: 'close', reason: 'it was cancelled' })
  expect(readIn(closed.text)).toContain('1 of 2 decided')
})

test('a decision that a purchase does not allow is refused for it alone, with the reason', async () => {
  const world = await openReviews(2)
  const { page, act } = peopleOf(world)
  const row = rowsIn((await page('operator', '/reviews')).text)
  const result = await act('operator', '/reviews/several', { row, decision: 'sleep', reason: 'late' })
  expect(readIn(result.text)).toContain('0 of 2 decided Two were refused.')
})

const versionOf = async (world: ApiWorld, id = '') =>
  String((await world.ask('GET', `/purchases/${id}/evidence`)).body.data.evidenceVersion)

test('of two people who decide the same review, the second sees who decided what, when and why', async () => {
  const world = await openReviews(1)
  const address = world.pages.address() ?? ''
  const { id } = await world.purchase(world.orders[0] ?? '')
  const [ann, tom] = [await signedIn(world, 'operator', 'Ann'), await signedIn(world, 'operator', 'Tom')]
  const seen = (await visit(address, `/reviews/${id}`, { cookie: ann })).text
  const [, version = ''] = /name="version" value="([^"]+)"/.exec(seen) ?? []
  const [, seenAt = ''] = /name="seenAt" value="([^"]+)"/.exec(seen) ?? []
  world.move(30_000)
  const decide = (cookie: string, decision: string, reason: string) =>
    visit(address, `/reviews/${id}/decide`, { cookie, form: { decision, reason, version, seenAt } })
  const answers = await Promise.all([decide(tom, 'hand_over', 'the shop agreed'), decide(ann, 'close', 'given back')])
  expect(answers.map(({ status }) => status)).toEqual([303, 303])
  expect(answers[1]?.headers.location).toBe(`/reviews/${id}`)
  const shown = readIn((await visit(address, `/reviews/${id}`, { cookie: ann })).text)
  expect(shown).toMatch(
    /Tom decided before you At \d\d:\d\d:\d\d, Tom decided to hand over what came: “the shop agreed”\. Your decision was not carried out\./,
  )
  expect(await audited(world, 'purchase.close')).toEqual([])
  const twice = await decide(tom, 'hand_over', 'the shop agreed')
  expect(twice.status).toBe(303)
  expect(readIn((await visit(address, `/reviews/${id}`, { cookie: tom })).text)).toContain('You have decided before')
  expect(await audited(world, 'purchase.hand_over')).toHaveLength(1)
})
