import { expect, test } from 'vitest'
import { alertPath } from '../../src/console/alerts.ts'
import { commandOf } from '../../src/observe/alerts.ts'
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

test('alerts that are no discrepancies lead to the discrepancies', () => {
  const path = (type: string, subject: string | null = null) =>
    alertPath({ type, subject, command: commandOf({ type, subject }) })
  expect(path('orphan')).toBe('/discrepancies')
  expect(path('double_charge', '01k3')).toBe('/reviews/01k3')
  expect(path('missing', '01k3')).toBe('/reviews/01k3')
  expect(path('orphan_delivery', '01k4')).toBe('/deliveries/01k4')
  expect(path('order_refused', '#10/1')).toBe('/orders?q=%2310%2F1')
  expect(path('store_unreachable', 'demo')).toBe('/stores/demo')
  expect(path('balance_runs_out')).toBe('/balance')
  expect(path('sync_stale')).toBe('/syncs')
  expect(path('deliveries_refused')).toBe('/deliveries/refused')
  expect(path('unauthorized')).toBe('/settings')
})
