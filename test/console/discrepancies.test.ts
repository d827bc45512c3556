import { expect, test } from 'vitest'
import { insertDiscrepancy } from '../../src/storage/discrepancies.ts'
import { openApi } from '../support/api-world.ts'
import { peopleOf } from '../support/console-data.ts'

async function worldOf() {
  const world = await openApi()
  return { ...world, ...peopleOf(world) }
}

test('books that agree say so, and when they were compared', async () => {
  const { page, buy, settle, act, ask } = await worldOf()
  await buy('1001')
  await settle()
  const before = (await page('viewer', '/discrepancies')).text
  expect(before).toContain('No sweep has compared the books yet.')
  expect(before).toContain('Sweep: it needs the role operator; you are viewer.')
  const answer = await act('operator', '/discrepancies/sweep', {})
  const path = String(answer.headers.location)
  expect(path).toMatch(/^\/sweeps\/\w{26}$/)
  while ((await ask('GET', path)).body.data.state === 'running');
  const { text } = await page('viewer', path)
  expect(text).toContain('>complete</span>')
  expect(text).toContain('Compares orders since')
  const after = (await page('viewer', '/discrepancies')).text
  expect(after).toMatch(
    /Our purchases and the supplier’s orders agree\. The last sweep ended .* and compared 1 order\./,
  )
  expect(after).toContain(`href="${path}"`)
})

test('each difference says what it means and what to do', async () => {
  const { page, db, now } = await worldOf()
  const row = { id: 'd1', kind: 'orphan', subject: 'ord_1', supplierOrderId: 'ord_1', foundAt: now() } as const
  await db.commit([
    insertDiscrepancy({ ...row, externalOrderId: 'q1.demo.1001.1.1.1', detail: 'no purchase has <it>' }),
  ])
  const { text } = await page('viewer', '/discrepancies')
  expect(text).toContain('One difference is on record: 1 order without a purchase.')
  expect(text).toContain('Find out who placed it.')
  expect(text).toContain('No purchase has &lt;it&gt;.')
  expect(text).toContain('q1.demo.1001.1.1.1')
})

test('the balance is explained to the cent', async () => {
  const { page, buy, pass, ordering } = await worldOf()
  await buy('1001')
  await pass(60_000)
  await ordering.checkBalance()
  const { text } = await page('viewer', '/balance')
  expect(text).toContain('Every cent that moved is explained by our orders and by what was paid in.')
  expect(text).toContain('Less what our orders cost')
  expect(text).toContain('charges of our orders')
  expect(text).toContain('beginning of the account')
})
