import { expect, test } from 'vitest'
import { openApi } from '../support/api-world.ts'
import { peopleOf } from '../support/console-data.ts'
import { openDay } from '../support/console-day.ts'

test('the overview has who waits before all else, and says when the supplier is read next', async () => {
  const world = await openDay()
  const { text } = await peopleOf(world).page('viewer', '/overview')
  expect(text.indexOf('id="waiting"')).toBeLessThan(text.indexOf('id="tide"'))
  expect(text).toContain('Buying is frozen. Three customers wait for a key.')
  const attention = text.slice(text.indexOf('id="attention"'), text.indexOf('id="balance"'))
  expect(attention).toContain('Needs attention, no customer waits')
  expect(attention, 'what a customer waits for is said in the queue').not.toMatch(
    /1001|needs a decision|held<|used up their/,
  )
  expect(attention).toContain('listings are held in')
  expect(text).toContain('<a href="/balance">Where the money went</a>')
  const next = new Date(world.now() + 60_000).toISOString()
  expect(text).toContain(
    `<td role="cell" data-label="Next"><time datetime="${next}" data-clock="minutes">${next.slice(11, 16)}</time></td>`,
  )
  expect(text).toContain('<td role="cell" data-label="Next">–</td>')
})

test('a balance that is too low for a purchase is not said to last for more than 99 days', async () => {
  const world = await openApi({ balanceMinor: 100 })
  const offer = await world.offer()
  await world.ordering.checkBalance()
  await world.order('1001', [{ sku: offer.sku }])
  await world.pass(60_000)
  const { text } = await peopleOf(world).page('viewer', '/overview')
  expect(text).toMatch(/<strong><a href="\/money">Top up at least [\d.]+ EUR to free 1 order\.<\/a><\/strong>/)
  expect(text).not.toMatch(/[Ll]asts <strong>/)
})
