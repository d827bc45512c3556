import { expect, test } from 'vitest'
import { peopleOf } from '../support/console-data.ts'
import { openDay } from '../support/console-day.ts'

test('the overview names what waits as the store does, and says when the supplier is read next', async () => {
  const world = await openDay()
  const { text } = await peopleOf(world).page('viewer', '/overview')
  expect(text).toMatch(/<a href="\/reviews\/\w{26}">Order 1001 needs a decision: 3 × /)
  expect(text).toContain('<a href="/balance">Where the money went</a>')
  const next = new Date(world.now() + 60_000).toISOString()
  expect(text).toContain(`<td role="cell" data-label="Next"><time datetime="${next}">${next.slice(11, 16)}</time></td>`)
  expect(text).toContain('<td role="cell" data-label="Next">–</td>')
})
