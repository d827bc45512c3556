/** The claims of an order in the console: keys that do not work, and what people do about them. */
import { expect, test } from 'vitest'
import { openApi } from '../support/api-world.ts'
import { auditOf, peopleOf } from '../support/console-data.ts'
import { MINUTE } from '../support/reviews.ts'
import { STORE } from '../support/test-app.ts'

const HERE = `/orders/${STORE}/1001`
const NEW_KEY = 'NEWK-EYOF-SUPP'

/** An order whose two keys were delivered, and the visits of people to its page. */
async function openDelivered() {
  const world = await openApi()
  const [offer] = await world.offers()
  await world.order('1001', [{ sku: offer?.sku ?? '', quantity: 2 }])
  await world.pass(MINUTE)
  const [bought] = (await world.ask('GET', '/purchases')).body.data.items
  const { page, act } = peopleOf(world)
  const see = async (role: 'viewer' | 'operator' = 'operator') => (await page(role, HERE)).text
  const raise = (ordinal = 1, note = 'the game says that it was redeemed <before>') =>
    act('operator', `${HERE}/claim`, { which: `${bought?.id} ${ordinal}`, note })
  const decide = (deed: string, form: Record<string, string> = {}, number = '1') =>
    act('operator', `${HERE}/${deed}`, { [deed]: number, ...form })
  return { ...world, page, act, see, raise, decide, bought }
}

test('an order without delivered keys and claims says nothing of keys that do not work', async () => {
  const world = await openApi()
  const [offer] = await world.offers()
  await world.order('1001', [{ sku: offer?.sku ?? '', unitPriceMinor: 1 }])
  await world.pass(2_000)
  expect((await peopleOf(world).page('operator', HERE)).text).not.toContain('Keys that do not work')
})

test('an operator says which delivered key does not work, and sees the message for the supplier without the key', async () => {
  const { see, raise, act, shop, bought } = await openDelivered()
  const before = await see()
  expect(before).toContain('Keys that do not work')
  expect(before.match(/<option value="01\w+ \d"/g)).toHaveLength(2)
  expect(before, 'no key is chosen in advance').toMatch(/<select id="f-which" required name="which"><option value=""/)
  const answer = await raise(2)
  expect([answer.status, answer.headers.location]).toEqual([303, HERE])
  const text = await see()
  expect(text).toContain('Claim 1 waits for a decision.')
  expect(text).toMatch(/<pre tabindex="0"><bdi>Claim 1: a licence key of yours does not work\./)
  expect(text).toContain(`Your order: ${bought?.supplierOrderId}`)
  expect(text).toContain('<bdi>the game says that it was redeemed &lt;before&gt;</bdi>')
  for (const key of shop.keys().get('1001/1') ?? []) expect(text).not.toContain(key)
  expect(text.match(/<option value="01\w+ \d"/g), 'a key that is claimed is no choice').toHaveLength(1)
  expect((await raise(2)).text).toContain('Claim 1 is about this key.')
  const without = await act('operator', `${HERE}/claim`, { which: `${bought?.id} 1`, note: '' })
  expect(without.status).toBe(400)
  expect(without.text).toContain('id="f-note-fault"')
  expect((await act('operator', `${HERE}/claim`, { which: '', note: 'broken' })).status).toBe(400)
})

test('a viewer sees a claim and its message, and changes nothing', async () => {
  const { raise, see, act } = await openDelivered()
  await raise()
  const text = await see('viewer')
  expect(text).toContain('Claim 1: a licence key of yours does not work.')
  expect(text).toContain('Claim, decide: they need the role operator; you are viewer.')
  for (const deed of ['claim', 'adopt', 'buy-again', 'refuse']) {
    expect(text).not.toContain(`action="${HERE}/${deed}"`)
    expect((await act('viewer', `${HERE}/${deed}`, { [deed]: '1', key: NEW_KEY, reason: 'mine' })).status).toBe(403)
  }
  expect(await see()).toContain(`action="${HERE}/refuse"`)
})

test("the supplier's new key is given: the store gets it, and no page, audit entry or log has it", async () => {
  const world = await openDelivered()
  const { raise, decide, see } = world
  await raise()
  const wrong = await decide('adopt', { key: `data:${NEW_KEY},`, reason: 'it came by mail' })
  expect(wrong.status).toBe(400)
  expect(wrong.text).toContain('Must be one licence key')
  expect(wrong.text, 'the reason is kept').toContain('value="it came by mail"')
  expect(wrong.text, 'the key is not').not.toContain(NEW_KEY)
  const given = await decide('adopt', { key: NEW_KEY, reason: 'it came by mail' })
  expect([given.status, given.headers.location]).toEqual([303, HERE])
  await world.pass(MINUTE)
  expect([...world.shop.keys().values()].flat()).toContain(NEW_KEY)
  const text = await see()
  expect(text).toContain('Claim 1 has ended. The store gets the new key now.')
  expect(text).toContain('<bdi>it came by mail</bdi>')
  expect(text).toMatch(/In its place<\/dt><dd>purchase <a class="id"/)
  expect(text).not.toContain('<pre tabindex="0"><bdi>Claim 1')
  expect(text).not.toContain(NEW_KEY)
  expect(JSON.stringify(await auditOf(world))).not.toContain(NEW_KEY)
  expect(world.lines.join('\n')).toContain('claim.adopted')
  expect(world.lines.join('\n')).not.toContain(NEW_KEY)
  expect(text.match(/<option value="01\w+ \d"/g), 'the other key and the new one may be claimed').toHaveLength(2)
})

test('one unit is bought again once: who decides a second time hears what the first decision was', async () => {
  const world = await openDelivered()
  const { raise, decide, see } = world
  await raise()
  expect((await decide('buy-again')).status).toBe(303)
  expect(await see()).toContain('Claim 1 has ended. The store gets the new key when it comes.')
  for (const [deed, form] of [
    ['buy-again', {}],
    ['adopt', { key: NEW_KEY }],
    ['refuse', { reason: 'too late' }],
  ] as const) {
    const again = await decide(deed, form)
    expect(again.status, deed).toBe(409)
    expect(again.text).toContain('Claim 1 has ended: bought.')
    expect(again.text).not.toContain(NEW_KEY)
  }
  await world.pass(MINUTE)
  expect((await world.ask('GET', '/purchases')).body.data.items).toHaveLength(2)
  expect(world.shop.keys().get('1001/1')).toHaveLength(3)
})

test('only the form of the claim that failed is open again, not that of the other claim', async () => {
  const { raise, decide } = await openDelivered()
  await raise(1)
  await raise(2)
  const { text } = await decide('refuse', { reason: '' }, '2')
  expect(text).toContain('id="f-reason-refuse-2-fault"')
  expect(text.match(/<details class="act[^>]* open>/g)).toHaveLength(1)
})

test('a claim is refused for a reason, and the key may be claimed again', async () => {
  const { raise, decide, see } = await openDelivered()
  await raise()
  const without = await decide('refuse', { reason: ' ' })
  expect(without.status).toBe(400)
  expect(without.text).toContain('id="f-reason-refuse-1-fault"')
  await decide('refuse', { reason: 'the customer redeemed it' })
  const text = await see()
  expect(text).toContain('Refused</span><span>Claim 1 has ended. The store hears nothing of it.')
  expect(text).toContain('<bdi>the customer redeemed it</bdi>')
  await raise()
  expect(await see()).toMatch(/<h3>Claim 2<.*<h3>Claim 1</s)
  expect((await decide('refuse', { reason: 'no' }, 'x')).status).toBe(404)
})
