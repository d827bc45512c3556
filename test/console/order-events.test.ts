/** What happened to an order, folded: equal tries are one entry, and what led to an event stands behind it. */
import { expect, test } from 'vitest'
import { folded, type LogEvent } from '../../src/console/lists.ts'
import { endOutage, insertOutage } from '../../src/storage/outages.ts'
import { openApi } from '../support/api-world.ts'
import { signedIn, visit } from '../support/console-client.ts'
import { peopleOf } from '../support/console-data.ts'
import { STORE } from '../support/test-app.ts'

const AT = Date.UTC(2026, 2, 12, 9)
const at = (minute: number) => new Date(AT + minute * 60_000).toISOString()
const refused = (minute: number, code = 'out of stock', tag = 'line 1'): LogEvent => ({
  at: at(minute),
  sign: 'held',
  what: `Refused, ${code}`,
  detail: `request ${minute}`,
  run: { words: ['Refused', `, ${code}`], detail: 'Nothing was charged.' },
  tag,
})
const event = (minute: number, what: string, more: Partial<LogEvent> = {}): LogEvent => ({
  at: at(minute),
  sign: 'done',
  what,
  tag: 'line 1',
  ...more,
})
/** An entry as a person reads it: its words, and the words of what stands behind it. */
const said = (events: readonly LogEvent[]) =>
  folded(events).map(({ what, more }) => [`${what}`, ...(more?.rows ?? []).map((row) => `${row.what}`)])

test('equal tries in a row are one entry, which says how many and when the last was, with each of them behind it', () => {
  const [entry, ...others] = folded([refused(1), refused(2), refused(9)])
  expect(others).toEqual([])
  expect(`${entry?.what}`).toBe('Refused 3 times, out of stock')
  expect(`${entry?.detail}`).toMatch(/^Nothing was charged\. Last <time [^>]*>09:09:00<\/time>\.$/)
  expect([entry?.at, entry?.until]).toEqual([at(1), at(9)])
  expect(entry?.more?.rows?.map(({ detail }) => detail)).toEqual(['request 1', 'request 2', 'request 9'])
})

test('tries of other lines do not end a row of tries, and another answer or a decision does', () => {
  expect(
    said([refused(1), refused(2, 'out of stock', 'line 2'), refused(3), refused(4, 'out of stock', 'line 2')]),
  ).toEqual([
    ['Refused 2 times, out of stock', 'Refused, out of stock', 'Refused, out of stock'],
    ['Refused 2 times, out of stock', 'Refused, out of stock', 'Refused, out of stock'],
  ])
  expect(said([refused(1), refused(2, 'balance'), refused(3), event(4, 'mira released it'), refused(5)])).toEqual([
    ['Refused, out of stock'],
    ['Refused, balance'],
    ['Refused, out of stock'],
    ['mira released it'],
    ['Refused, out of stock'],
  ])
})

test('steps stand behind the event that they led to, with request and answer; those that led to nothing yet, behind the first', () => {
  const accepted = event(1, 'Accepted', { isStep: true, more: { summary: 'Answer', text: 'HTTP 201' } })
  const read = event(2, 'Order read', { isStep: true })
  const other = event(2, 'Line 2 is held', { tag: 'line 2' })
  expect(said([accepted, read, other, event(3, 'The key came'), event(4, 'Handed over')])).toEqual([
    ['Line 2 is held'],
    ['The key came', 'Accepted', 'Order read', 'The key came'],
    ['Handed over'],
  ])
  const [open] = folded([accepted, read])
  expect(open?.more).toMatchObject({ summary: '2 steps, with request and answer', text: 'HTTP 201' })
  expect([open?.what, open?.at]).toEqual(['Accepted', at(1)])
})

test('of equal tries, the sign is that of the last one: the last refusal is final', () => {
  const [entry] = folded([refused(1), { ...refused(2), sign: 'stop' }])
  expect(entry?.sign).toBe('stop')
})

test('what the supplier accepted was hidden behind the decision of a person that came later', () => {
  const accepted = event(1, 'Accepted', { isStep: true })
  const read = event(2, 'Order read', { isStep: true })
  const decision = event(3, 'mira had it tried or looked at', { isOwn: true })
  expect(said([accepted, read, decision, event(4, 'Order read', { isStep: true }), event(5, 'The key came')])).toEqual([
    ['Accepted', 'Accepted', 'Order read'],
    ['mira had it tried or looked at'],
    ['The key came', 'Order read', 'The key came'],
  ])
})

/** The headings of what happened to an order, and the whole page. */
async function happened(world: Awaited<ReturnType<typeof openApi>>, reference: string) {
  const { text } = await peopleOf(world).page('operator', `/orders/${STORE}/${reference}`)
  const log = /<ol class="log">(.*)<\/ol>/s.exec(text)?.[1] ?? ''
  return { headings: [...log.matchAll(/<h3>(.*?)<\/h3>/g)].map(([, one = '']) => one.replaceAll(/<[^>]*>/g, '')), text }
}

test('an order that was refused again and again says so once, and not that it was bought again', async () => {
  const world = await openApi()
  const { sku, productId } = await world.offer()
  world.sandbox.faults.add({ fault: 'insufficient-balance', times: 1_000, match: { productId } })
  await world.order('1001', [{ sku }])
  await world.pass(60 * 60_000, 60_000)
  const { headings, text } = await happened(world, '1001')
  expect(headings.filter((one) => one.startsWith('Refused'))).toEqual([
    expect.stringMatching(/^Refused \d+ times, insufficient balance$/),
  ])
  expect(headings.length).toBeLessThan(5)
  expect(text).not.toMatch(/ought again|generation \d+ planned|Purchase planned/)
  expect(text).toMatch(/<summary>\d+ times<\/summary>/)
})

test('an order whose answer was charged and failed says “bought again” once a person has had it bought again', async () => {
  const world = await openApi()
  const { sku } = await world.offer()
  world.sandbox.faults.add({ fault: 'failed-order' })
  await world.order('1001', [{ sku }])
  await world.pass(120_000)
  const failed = await happened(world, '1001')
  expect(failed.headings).toContain('The supplier did not deliver')
  expect(failed.text).toContain('It has charged ')
  expect(failed.text).not.toContain('ought again')
  const [{ id = '' } = {}] = (await world.ask('GET', '/purchases?state=failed')).body.data.items as { id?: string }[]
  await world.ask('POST', `/purchases/${id}/retry`)
  await world.pass(10_000)
  expect((await happened(world, '1001')).headings.filter((one) => one === 'Bought again')).toHaveLength(1)
})

test('a person with brackets in the name lost them, and all behind them, in the timeline of an order', async () => {
  const world = await openApi()
  const { sku, productId } = await world.offer()
  world.sandbox.faults.add({ fault: 'insufficient-balance', times: 1_000, match: { productId } })
  await world.order('1001', [{ sku }])
  await world.pass(60_000)
  const cookie = await signedIn(world, 'operator', 'Ann (B)')
  const form = { reason: '' }
  await visit(world.pages.address() ?? '', `/orders/${STORE}/1001/cancel`, { cookie, form })
  expect((await happened(world, '1001')).headings).toContain('Ann (B) cancelled what was not bought')
})

test('an outage that lasts was counted among those that are over', async () => {
  const world = await openApi()
  const { sku } = await world.offer()
  await world.order('1001', [{ sku }])
  const began = world.now()
  const outage = (minutes: number, id: string) => ({
    id,
    beganAt: began + minutes * 60_000,
    error: 'answered with 503',
  })
  await world.db.commit([
    insertOutage(outage(1, 'a')),
    endOutage('a', began + 2 * 60_000),
    insertOutage(outage(3, 'b')),
    endOutage('b', began + 4 * 60_000),
    insertOutage(outage(5, 'c')),
  ])
  world.move(6 * 60_000)
  const { headings } = await happened(world, '1001')
  expect(headings).toContain('The supplier did not answer 2 times')
  expect(headings).toContain('The supplier does not answer')
})
