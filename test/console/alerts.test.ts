/** The page of alerts: what is wrong, who looks after it, who is notified. */

import { expect, test } from 'vitest'
import { commandOf } from '../../src/alerts/kinds.ts'
import { alertNote } from '../../src/console/alerts.ts'
import { type AlertKind, alertPath } from '../../src/domain/alert-kinds.ts'
import { enqueueAlert } from '../../src/storage/outbox.ts'
import { startAlertReceiver } from '../support/alert-receiver.ts'
import { OTHER_STORE, openApi } from '../support/api-world.ts'
import { auditOf, peopleOf } from '../support/console-data.ts'

async function openAlerting() {
  const receiver = await startAlertReceiver()
  const world = await openApi({
    alerts: { channels: { duty: { kind: 'webhook' } } },
    alertAddresses: { QUAYSIDE_ALERT_DUTY: receiver.url },
  })
  const payload = { note: 'the order was <changed>', store: OTHER_STORE, reference: '11' }
  await world.db.commit([enqueueAlert(world.ordering, { type: 'order_changed', occasion: '1', payload })])
  await world.alertRound()
  const { items } = (await world.ask('GET', '/alerts')).body.data
  return { ...world, ...peopleOf(world), receiver, id: String(items[0]?.id) }
}

test('a new installation has no alert, and the page says that no channel is configured', async () => {
  const world = await openApi()
  const { text } = await peopleOf(world).page('viewer', '/alerts')
  expect(text).toContain('Nothing is wrong that Quayside knows of. No channel is configured')
  expect(text).toContain('No open alerts')
  expect(text).toContain('None was over yet')
})

test('one critical alert is not said to be one of them', async () => {
  const world = await openApi()
  const payload = { note: 'no purchase has it' }
  await world.db.commit([enqueueAlert(world.ordering, { type: 'orphan', occasion: '1', payload })])
  await world.alertRound()
  const { text } = await peopleOf(world).page('viewer', '/alerts')
  expect(text).toContain('One alert is open, and it is critical.')
})

test('an alert is acknowledged, muted and unmuted from here, and the audit says by whom and why', async () => {
  const world = await openAlerting()
  const before = (await world.page('operator', '/alerts')).text
  expect(before).toContain('One alert is open.')
  expect(before).toContain('The order was &lt;changed&gt;.')
  expect(before, 'a link, and no command').not.toContain('<code>quayside orders')
  expect(before).toContain('<a href="/orders?q=11"><bdi>order 11</bdi></a>')
  expect(before).toContain('Alerts<b><span class="hide">: </span>1<span class="hide"> waiting</span></b>')
  const attend = (does: string, reason = '') =>
    world.act('operator', '/alerts/attend', { row: `an alert\t${world.id}`, do: does, reason })
  const result = await attend('acknowledge', 'the shop is asked')
  expect(result.text).toContain('<h1>1 of 1 acknowledged</h1>')
  expect(result.text).toContain('You look after them.')
  const { text } = await world.page('operator', '/alerts')
  expect(text).toContain('looks after it.')
  expect(text).not.toContain('Alerts<b>')
  await attend('mute-8')
  expect((await world.page('operator', '/alerts')).text).toContain('Muted until')
  await attend('unmute')
  expect((await world.page('operator', '/alerts')).text).not.toContain('Muted until')
  const actions = (await auditOf(world)).filter(({ subject }) => subject === world.id)
  expect(actions.map(({ action, detail }) => [action, detail?.replace(/^until \S+$/, 'until')])).toEqual([
    ['alert.acknowledge', 'the shop is asked'],
    ['alert.mute', 'until'],
    ['alert.unmute', undefined],
  ])
})

test('a viewer sees alerts and why nothing can be done; nothing is done where none is selected', async () => {
  const world = await openAlerting()
  expect((await world.page('viewer', '/alerts')).text).toContain('they need the role operator; you are viewer')
  expect((await world.act('viewer', '/alerts/test', {})).status).toBe(403)
  const none = await world.act('operator', '/alerts/attend', { do: 'acknowledge' })
  expect(none.text).toContain('No row is selected')
})

test('a button sends a test message, and a channel that takes nothing is seen here and on the overview', async () => {
  const world = await openAlerting()
  const sent = await world.act('operator', '/alerts/test', {})
  expect(sent.text).toContain('What became of the test messages')
  expect(world.receiver.received.at(-1)?.data.text).toMatch(/^TEST/)
  world.receiver.answer = (response) => void response.writeHead(404).end()
  const payload = { note: 'the disk is full' }
  await world.db.commit([enqueueAlert(world.ordering, { type: 'backup_failed', occasion: '1', payload })])
  await world.alertRound()
  // A status that was read is shown for two seconds.
  world.move(3_000)
  const { text } = await world.page('viewer', '/alerts')
  expect(text).toContain('takes nothing')
  expect(text).toContain('Answered 404: there is nothing at this address.')
  expect((await world.page('viewer', '/overview')).text).toContain('Alerts do not reach people over duty')
})

test('alerts that are no discrepancies lead to the discrepancies', () => {
  const path = (type: AlertKind, subject: string | null = null) =>
    alertPath({ type, subject, command: commandOf({ type, subject }), order: type === 'claim_overdue' ? '1001' : null })
  expect(path('orphan')).toBe('/discrepancies')
  expect(path('double_charge', '01k3')).toBe('/reviews/01k3')
  expect(path('missing', '01k3')).toBe('/reviews/01k3')
  expect(path('orphan_delivery', '01k4')).toBe('/deliveries/01k4')
  expect(path('order_refused', '#10/1')).toBe('/orders?q=%2310%2F1')
  expect(path('store_unreachable', 'demo')).toBe('/stores/demo')
  expect(path('balance_runs_out')).toBe('/balance')
  expect(path('sync_stale')).toBe('/syncs')
  expect(path('deliveries_refused')).toBe('/deliveries/refused')
  expect(path('claim_overdue', '7')).toBe('/orders?q=1001')
  const held = { type: 'order_held' as const, subject: 'a/b', command: 'quayside orders show a/b', order: '#1001' }
  const of = { store: 'demo', reference: 'a/b' }
  expect(alertPath({ ...held, ...of }), 'the order itself').toBe('/orders/demo/a%2Fb')
  expect(alertPath({ ...held, ...of, type: 'order_refused' }), 'it was not taken').toBe('/orders?q=a%2Fb')
  expect(path('unauthorized'), 'only the machine says more').toBeUndefined()
})

test('a note of an alert quotes no command where a link leads to the same', () => {
  const noted = (type: AlertKind, subject: string | null, note: string) =>
    alertNote({ type, subject, note, command: commandOf({ type, subject }), order: null })
  expect(
    noted(
      'dead_letter',
      '01k3',
      'a callback (line.fulfilled) used up its attempts: fix the store, then quayside outbox redeliver 01k3',
    ),
  ).toBe('A callback (line.fulfilled) used up its attempts: fix the store.')
  expect(
    noted('order_changed', '12', '1 unit of line 1 is ordered and not bought: quayside orders take 12 --line 1'),
  ).toBe('1 unit of line 1 is ordered and not bought.')
  expect(noted('unauthorized', null, 'the key is refused: run quayside doctor'), 'only the machine says more').toBe(
    'The key is refused: run quayside doctor.',
  )
})
