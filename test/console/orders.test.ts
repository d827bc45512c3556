import { describe, expect, test } from 'vitest'
import { openLine } from '../../src/keys/key-pages.ts'
import { openApi } from '../support/api-world.ts'
import { auditOf, peopleOf } from '../support/console-data.ts'
import { keysShort, orderedTwice } from '../support/reviews.ts'
import { STORE } from '../support/test-app.ts'

const worldOf = async () => {
  const world = await openApi()
  const offers = await world.offers()
  const sku = (index: number) => offers[index]?.sku ?? ''
  const people = peopleOf(world)
  const at = (reference: string) => `/orders/${STORE}/${reference}`
  /** The text of a page as a person reads it, without its markup. */
  const read = async (path: string, role: 'viewer' | 'operator' | 'admin' = 'operator') =>
    (await people.page(role, path)).text
      .replaceAll(/<[^>]+>/g, ' ')
      .replaceAll(/\s+/g, ' ')
      .replaceAll(' .', '.')
  const purchaseOf = async (query: string) =>
    (await world.ask('GET', `/purchases?${query}`)).body.data.items[0] as Record<string, string>
  return { ...world, ...people, sku, at, read, purchaseOf }
}

const failed = async (world: Awaited<ReturnType<typeof worldOf>>, reference = '1001') => {
  world.sandbox.faults.add({ fault: 'failed-order' })
  await world.order(reference, [{ sku: world.sku(0) }])
  await world.pass(120_000)
}

describe('the list of orders', () => {
  test('says that none has come, and how one comes', async () => {
    const { read } = await worldOf()
    const text = await read('/orders', 'viewer')
    expect(text).toContain('Every order is closed: nothing is being bought or handed over.')
    expect(text).toContain('No orders yet')
  })

  test('names the open ones first, finds by what people have, and says when nothing matches', async () => {
    const world = await worldOf()
    await world.order('1001', [{ sku: world.sku(0), quantity: 2 }])
    await world.pass(10_000)
    await world.order('1002', [{ sku: world.sku(1), unitPriceMinor: 1 }])
    await world.pass(2_000)
    expect(await world.read('/orders')).toContain('One order is open: 1002.')
    const { supplierOrderId } = await world.purchaseOf('state=fulfilled')
    for (const q of ['1001', ` ${supplierOrderId} `, world.sku(0)]) {
      const { text } = await world.page('viewer', `/orders?q=${encodeURIComponent(q)}`)
      expect(text).toContain(`href="/orders/${STORE}/1001">1001</a><small>`)
      expect(text).not.toContain('1002</a><small>')
    }
    expect(await world.read('/orders?state=open')).toMatch(/0 of 1 not yet – held/)
    expect(await world.read('/orders?q=nothing')).toContain('No order has this number, supplier order or SKU')
    expect((await world.page('viewer', '/orders?state=none')).status).toBe(400)
  })

  test('promises no keys of an order that has ended without them', async () => {
    const world = await worldOf()
    await failed(world)
    expect(await world.read('/orders')).toMatch(/0 of 1 – .* failed/)
  })

  test('goes on to older orders with its filters, and announces newer ones', async () => {
    const world = await worldOf()
    for (let count = 1; count <= 51; count += 1) await world.order(`r${count}`, [{ sku: world.sku(0) }])
    const { text } = await world.page('viewer', `/orders?store=${STORE}`)
    const [, next = ''] = /href="([^"]+)" rel="next"/.exec(text) ?? []
    const older = (await world.page('viewer', next.replaceAll('&amp;', '&'))).text
    expect(older).toContain('>r1</a><small>')
    expect(older).not.toContain('>r2</a><small>')
    const [, part = ''] = /hx-get="(\/orders\/parts\/newer[^"]+)"/.exec(text) ?? []
    const newer = part.replaceAll('&amp;', '&')
    expect((await world.page('viewer', newer)).text).not.toContain('newer order')
    await world.order('r52', [{ sku: world.sku(0) }])
    expect((await world.page('viewer', newer)).text).toContain('>1 newer order</a>')
  })

  test('shows what a store wrote as text, and never as markup', async () => {
    const world = await worldOf()
    const reference = '<b>1001</b>&?/'
    await world.order(reference, [{ sku: world.sku(0), id: '<i>' }])
    const list = (await world.page('viewer', '/orders')).text
    expect(list).not.toContain('<b>1001')
    const answer = await world.page('admin', `/orders/${STORE}/${encodeURIComponent(reference)}`)
    expect(answer.status).toBe(200)
    expect(answer.text).not.toContain('<b>1001')
    expect(answer.text).not.toContain('line <i>')
  })
})

describe('one order', () => {
  test('shows what happened from the store to the keys, with requests and their ids', async () => {
    const world = await worldOf()
    await world.order('1001', [{ sku: world.sku(0), quantity: 2 }])
    await world.pass(10_000)
    const text = await world.read(world.at('1001'), 'viewer')
    const expected = [
      `${STORE} placed order 1001`,
      'came Bought for',
      '3 steps, with request and answer',
      'The supplier accepted the order',
      'request req_',
      'State accepted.',
      'idempotency-key:',
      `2 keys handed over to ${STORE}`,
      'heard that the order is closed',
    ]
    const places = expected.map((words) => text.indexOf(words))
    expect(places, JSON.stringify(expected.filter((_, index) => places[index] === -1))).toEqual(
      places.toSorted((a, b) => a - b),
    )
    expect(places).not.toContain(-1)
    for (const keys of world.shop.keys().values()) for (const key of keys) expect(text).not.toContain(key)
    expect(text).toContain('they need the role operator; you are viewer.')
  })

  test('is retried once it has failed, and says what that costs', async () => {
    const world = await worldOf()
    await failed(world)
    const text = await world.read(world.at('1001'))
    expect(text).toContain('The supplier did not deliver')
    expect(text).toMatch(/At most [\d.]+ EUR\. [\d.]+ EUR of the order that failed is lost unless/)
    const { id = '' } = await world.purchaseOf('state=failed')
    const answer = await world.act('operator', `${world.at('1001')}/retry`, { purchase: id })
    expect([answer.status, answer.headers.location]).toEqual([303, world.at('1001')])
    expect(await world.read(world.at('1001'))).toContain('Retried It is planned again')
    await world.pass(10_000)
    expect(await world.read(world.at('1001'))).toContain('The key is with the store.')
    const again = await world.act('operator', `${world.at('1001')}/retry`, { purchase: id })
    expect(again.status).toBe(409)
    expect(again.text).toContain('Nothing was done')
    expect((await auditOf(world)).map(({ action }) => action)).toContain('purchase.retry')
  })

  test('is released with a new ceiling, and says a fault beside the field', async () => {
    const world = await worldOf()
    await world.order('1001', [{ sku: world.sku(0), unitPriceMinor: 100 }])
    await world.pass(2_000)
    expect(await world.read(world.at('1001'))).toContain('The key is missing: price above your ceiling.')
    const { id = '', cost = '' } = await world.purchaseOf('hold=ceiling')
    const wrong = await world.act('operator', `${world.at('1001')}/release`, { purchase: id, ceiling: 'much' })
    expect(wrong.status).toBe(400)
    expect(wrong.text).toContain(`value="much"`)
    expect(wrong.text).toContain('aria-invalid="true"')
    await world.act('operator', `${world.at('1001')}/release`, { purchase: id, ceiling: cost })
    await world.pass(10_000)
    expect(await world.read(world.at('1001'))).toContain('The key is with the store.')
  })

  test('is cancelled where it was not bought', async () => {
    const world = await worldOf()
    await world.order('1001', [{ sku: world.sku(0), unitPriceMinor: 100 }])
    await world.pass(2_000)
    await world.act('operator', `${world.at('1001')}/cancel`, {})
    const text = await world.read(world.at('1001'))
    expect(text).toContain('What was not bought has ended, and the store is notified.')
    expect(text).toContain('Ended without keys')
    expect(text).toContain('Cancel: nothing of it is open.')
  })

  test('a retry, a release and a cancellation keep no reason', async () => {
    const world = await worldOf()
    await failed(world)
    const { id = '' } = await world.purchaseOf('state=failed')
    await world.act('operator', `${world.at('1001')}/retry`, { purchase: id, reason: ' the customer waits ' })
    await world.order('1002', [{ sku: world.sku(0), unitPriceMinor: 100 }])
    await world.pass(2_000)
    const held = await world.purchaseOf('hold=ceiling')
    const ceiling = { purchase: held.id ?? '', ceiling: '1.50' }
    const long = await world.act('operator', `${world.at('1002')}/release`, { ...ceiling, reason: 'x'.repeat(501) })
    expect(long.status).toBe(400)
    expect(long.text).toContain(`id="f-reason-release-${held.id}-fault"`)
    await world.act('operator', `${world.at('1002')}/release`, { ...ceiling, reason: 'half is agreed' })
    await world.act('operator', `${world.at('1002')}/cancel`, { reason: 'no longer wanted' })
    expect((await auditOf(world)).map(({ action, detail }) => [action, detail])).toEqual(
      expect.arrayContaining([
        ['purchase.retry', 'the customer waits'],
        ['purchase.release', 'ceiling 100 -> 150; half is agreed'],
        ['order.cancel', 'no longer wanted'],
      ]),
    )
    expect(await world.read(world.at('1002'))).toContain('mira cancelled what was not bought No longer wanted.')
    const { body } = await world.ask('GET', '/orders/1002', { token: world.tokens.store })
    expect(JSON.stringify(body)).not.toMatch(/half is agreed|no longer wanted/)
  })

  test('has a waiting update sent again', async () => {
    const world = await worldOf()
    world.shop.answerNext(500)
    await world.order('1001', [{ sku: world.sku(0) }])
    await world.pass(4_000)
    const [waiting] = (await world.ask('GET', '/outbox?state=due&kind=callback')).body.data.items
    expect(await world.read(world.at('1001'))).toContain('Send line.fulfilled again…')
    await world.act('operator', `${world.at('1001')}/redeliver`, { update: String(waiting?.id) })
    expect(await world.read(world.at('1001'))).toContain('Queued The update goes to the store now.')
    await world.pass(1_000)
    expect(await world.read(world.at('1001'))).toContain('mira had an update sent again')
  })

  test('shows its keys to an admin, once, and never in another page', async () => {
    const world = await worldOf()
    await world.order('1001', [{ sku: world.sku(0) }])
    await world.pass(10_000)
    const [key = ''] = world.shop.keys().get('1001/1') ?? []
    const reveal = `${world.at('1001')}/reveal`
    expect((await world.act('operator', reveal, { line: '1', reason: 'a look' })).status).toBe(403)
    const without = await world.act('admin', reveal, { line: '1', reason: '' })
    expect(without.status).toBe(400)
    expect(without.text).not.toContain(key)
    const answer = await world.act('admin', reveal, { line: '1', reason: 'the customer lost the mail' })
    expect(answer.text).toContain(key)
    expect(answer.headers['cache-control']).toBe('no-store')
    const page = await world.page('admin', world.at('1001'))
    expect(page.text).not.toContain(key)
    expect(page.text).toContain('1 key of line 1: the customer lost the mail.')
    expect((await auditOf(world)).filter(({ action }) => action === 'order.reveal')).toHaveLength(1)
  })

  test('says which keys its customer opened, shows an admin the address of the page with the keys, and withdraws it', async () => {
    const world = await openApi({ keyPagesAt: 'https://quayside.example' })
    const { page, act } = peopleOf(world)
    const [offer] = await world.offers()
    await world.order('1001', [{ sku: offer?.sku ?? '', quantity: 2 }])
    await world.pass(10_000)
    const order = `/orders/${STORE}/1001`
    const revealed = await act('admin', `${order}/reveal`, { line: '1', reason: 'the mail was lost' })
    const token = /https:\/\/quayside\.example\/k\/([\w-]{43})/.exec(revealed.text)?.[1] ?? ''
    expect(revealed.text).toContain('A key that you open there counts as opened by the customer.')
    const seen = await openLine(
      { ...world.ordering, pageDays: 365, sendsLinks: () => true },
      token,
      '1',
      '203.0.113.0/24',
    )
    expect(seen?.keys.size).toBe(2)
    const { text } = await page('admin', order)
    expect(text).toContain('The customer opened keys')
    expect(text).toContain('from the network 203.0.113.0/24')
    expect(text).not.toContain(token)
    expect((await page('viewer', order)).text).not.toContain('Withdraw the page of keys…')
    expect((await act('operator', `${order}/withdraw-keys`, { reason: '' })).status).toBe(400)
    await act('operator', `${order}/withdraw-keys`, { reason: 'charged back' })
    const after = (await page('operator', order)).text
    expect(after).toContain('The page opens no key any more.')
    expect(after).toContain('Withdraw the page of keys: it is withdrawn.')
  })

  test('that is not there is said so', async () => {
    const { page, at } = await worldOf()
    expect((await page('viewer', at('nowhere'))).status).toBe(404)
  })
})

describe('what waits for a person', () => {
  test('is counted in the navigation, and each list says what it would hold', async () => {
    const { read } = await worldOf()
    expect(await read('/reviews', 'viewer')).toContain('No purchase waits for a decision.')
    expect(await read('/purchases', 'viewer')).toContain('No purchase is held.')
  })

  test('has held purchases with their cause, and leads to the action', async () => {
    const world = await worldOf()
    await world.order('1001', [{ sku: world.sku(0), unitPriceMinor: 100 }])
    await world.pass(2_000)
    const { text } = await world.page('viewer', '/purchases?hold=ceiling')
    const { id } = await world.purchaseOf('hold=any')
    expect(text).toContain(`href="${world.at('1001')}#p-${id}"`)
    expect(text).toContain('A unit costs more than the order allows.')
    expect((await world.page('viewer', '/purchases?hold=balance')).text).toContain('Nothing is held')
    expect((await world.page('viewer', '/purchases?hold=none')).status).toBe(400)
    expect((await world.page('operator', world.at('1001'))).text).toContain(`id="p-${id}"`)
  })

  test('decides nothing on evidence that has changed, and shows what is new', async () => {
    const world = await worldOf()
    const { orderId, own } = await orderedTwice(world)
    const { id } = await world.purchase(orderId)
    const { text } = await world.page('operator', `/reviews/${id}?read=true`)
    expect(text).not.toMatch(/<input type="radio"[^>]* checked/)
    const [, version = ''] = /name="version" value="([^"]+)"/.exec(text) ?? []
    const index = /name="order-(\d)" value="([^"]+)"/.exec(text)
    expect(index?.[2]).toBeTruthy()
    const chosen = [...text.matchAll(/name="order-(\d)" value="([^"]+)"/g)].find(([, , order]) => order === own)?.[1]
    const form = { decision: `adopt-${chosen}`, [`order-${chosen}`]: own, reason: 'the other one was refunded' }
    const stale = await world.act('operator', `/reviews/${id}/decide`, { ...form, version: 'review-0' })
    expect(stale.status).toBe(412)
    expect(stale.text).toContain('look at it again, then decide')
    expect(stale.text).toContain('the other one was refunded')
    expect((await world.act('viewer', `/reviews/${id}/decide`, { ...form, version })).status).toBe(403)
    const done = await world.act('operator', `/reviews/${id}/decide`, { ...form, version })
    expect([done.status, done.headers.location]).toEqual([303, world.at('1001')])
    expect((await world.purchase(orderId)).supplierOrderId).toBe(own)
    expect((await auditOf(world)).find(({ action }) => action === 'purchase.adopt')?.detail).toContain(own)
    expect(await world.read(`/reviews/${id}`)).toContain('It asks for no decision.')
  })

  test('opens with its orders read at the supplier, and not with “not read”', async () => {
    const world = await worldOf()
    await keysShort(world, 3, 2)
    const { id } = await world.purchaseOf('state=review')
    const { text } = await world.page('operator', `/reviews/${id}`)
    expect(text).not.toContain('not read')
    const [, from = ''] = /hx-get="([^"]+)" hx-trigger="load"/.exec(text) ?? []
    expect(from).toBe(`/reviews/${id}/parts/known`)
    expect(await world.read(from)).toMatch(/Units 3 3 2 keys, 0 with the store 1 missing/)
    expect((await world.page('viewer', from)).status, 'a viewer reads what is stored').toBe(200)
  })

  test('is shown side by side, each decision with what it costs', async () => {
    const world = await worldOf()
    await keysShort(world, 3, 2)
    const { id } = await world.purchaseOf('state=review')
    const text = await world.read(`/reviews/${id}?read=true`)
    expect(text).toContain('Order 1001 is 1 key short')
    expect(text).toMatch(/Units 3 3 2 keys, 0 with the store 1 missing/)
    expect(text).toContain('Undo No: keys cannot be called back.')
    expect(text).not.toContain('Adopt another order')
    expect((await world.page('viewer', `/reviews/${id}?read=true`)).status).toBe(403)
    expect(await world.read(`/reviews/${id}`, 'viewer')).toContain(
      'Decide: it needs the role operator; you are viewer.',
    )
    expect((await world.page('viewer', '/reviews/nowhere')).status).toBe(404)
  })
})
