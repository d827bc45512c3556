import { expect, test } from 'vitest'
import { listOutbox, markEffectDead } from '../../src/storage/outbox.ts'
import { openApi } from '../support/api-world.ts'
import { auditOf, insertDeliveries, peopleOf } from '../support/console-data.ts'

/** A world whose store refused the keys of an order until they were given up. */
async function worldWithDeadMessage() {
  const world = await openApi()
  world.shop.answerNext(500)
  await world.buy('1001')
  await world.pass(4_000)
  const [effect] = await world.db.query(listOutbox({ state: 'due', kind: 'callback', limit: 10 }))
  if (!effect) throw new Error('no callback waits')
  await world.db.commit([markEffectDead(effect.id, 12, 'answered 500')])
  return { ...world, ...peopleOf(world), id: effect.id }
}

test('nothing is dead in a new installation, and the page says what would come here', async () => {
  const world = await openApi()
  const { page } = peopleOf(world)
  const { text } = await page('viewer', '/dead-letters')
  expect(text).toContain('Nothing has used up its attempts.')
  expect(text).toContain('No dead messages')
  expect(text).toContain('No dead deliveries')
})

test('a message that a store did not take is sent again, and the store gets its keys once', async () => {
  const world = await worldWithDeadMessage()
  const { text } = await world.page('operator', '/dead-letters')
  expect(text).toContain('1 message did not reach its store. Look for the cause, then send again.')
  expect(text).toContain('the keys of a line')
  expect(text).toContain('answered 500')
  expect(text).toContain('Dead letters<b><span class="hide">: </span>1<span class="hide"> waiting</span></b>')
  const row = `a message\t${world.id}`
  const answer = await world.act('operator', '/dead-letters/redeliver', { row })
  expect(answer.text).toContain('<h1>1 of 1 sent again</h1>')
  const after = (await world.page('operator', '/dead-letters')).text
  expect(after).toContain('Nothing has used up its attempts.')
  await world.settle()
  expect(world.shop.keys().get('1001/1')).toHaveLength(1)
  expect(await auditOf(world)).toContainEqual(
    expect.objectContaining({ action: 'outbox.redeliver', subject: world.id }),
  )
  const again = await world.act('operator', '/dead-letters/redeliver', { row })
  expect(again.text).toContain('<h1>0 of 1 sent again</h1>')
  expect(again.text).toContain('The message is done by now, and not dead.')
})

test('a dead delivery is replayed from here', async () => {
  const world = await openApi()
  const { page, act } = peopleOf(world)
  const [id = ''] = await insertDeliveries(world, [{ state: 'dead', event: 'balance.low', attempts: 10 }])
  const { text } = await page('operator', '/dead-letters')
  expect(text).toContain('1 delivery could not be dealt with.')
  expect(text).toContain(`href="/deliveries/${id}"`)
  await act('operator', '/dead-letters/replay', { row: `a delivery\t${id}` })
  expect((await page('operator', '/dead-letters')).text).toContain('One delivery is in the inbox again.')
})

test('a viewer sees what is dead and why nothing can be done, and nothing is sent where none is selected', async () => {
  const world = await worldWithDeadMessage()
  const { text } = await world.page('viewer', '/dead-letters')
  expect(text).toContain('they need the role operator; you are viewer.')
  expect(text).not.toContain('type="checkbox"')
  const none = await world.act('operator', '/dead-letters/redeliver', { 'a field': '' })
  expect(none.status).toBe(400)
  expect(none.text).toContain('No row is selected')
})
