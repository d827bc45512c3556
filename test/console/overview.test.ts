import { expect, test } from 'vitest'
import { openApi } from '../support/api-world.ts'
import { peopleOf } from '../support/console-data.ts'
import { openDay } from '../support/console-day.ts'

test('the overview names what waits as the store does, and says when the supplier is read next', async () => {
  const world = await openDay()
  const { text } = await peopleOf(world).page('viewer', '/overview')
  expect(text).toMatch(/<a href="\/reviews\/\w{26}">Order 1001 needs a decision: 3 × /)
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
  expect(text).toContain('<strong>Too low</strong> for <a href="/purchases?hold=balance">1 purchase</a> that waits')
  expect(text).not.toMatch(/[Ll]asts <strong>/)
})
