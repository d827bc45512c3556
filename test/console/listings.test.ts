import { describe, expect, test } from 'vitest'
import { openApi } from '../support/api-world.ts'
import { auditOf, offer, peopleOf } from '../support/console-data.ts'
import { STORE } from '../support/test-app.ts'

/** A store that sells SKU-a, whose price has jumped from 12.00 to 36.00, and has the SKU TWICE of two offers. */
async function worldOf() {
  const world = await openApi()
  await offer(world, 'a', { name: 'Circuit <Kings>' })
  await offer(world, 'b')
  await offer(world, 'c', { sku: 'TWICE' })
  await offer(world, 'd', { sku: 'TWICE' })
  await world.publish()
  await offer(world, 'a', { name: 'Circuit <Kings>', costMinor: 3_000 })
  await world.ask('POST', `/stores/${STORE}/listings/SKU-a/retry`)
  await world.publish()
  const stateOf = async (id: string) => (await world.ask('GET', `/stores/${STORE}/listings/${id}`)).body.data.state
  return { ...world, ...peopleOf(world), stateOf }
}
const path = `/listings/${STORE}/SKU-a`

describe('the list of listings', () => {
  test('says what comes here before the first sync', async () => {
    const { page } = peopleOf(await openApi())
    const { text } = await page('viewer', '/listings')
    expect(text).toContain('No listings yet')
    expect(text).toContain(`${STORE} lists nothing yet.`)
  })

  test('says that no store is connected in a fresh installation, and is not a page that does not exist', async () => {
    const { page } = peopleOf(await openApi({ isFresh: true }))
    for (const path of ['/listings', '/listings?state=held&q=SKU', '/listings?state=problems']) {
      const { status, text } = await page('viewer', path)
      expect(status, path).toBe(200)
      expect(text).toContain('No store is connected yet. <a href="/stores">Stores</a>')
    }
  })

  test('counts first, then lists by state and finds by the beginning of a SKU', async () => {
    const { page } = await worldOf()
    const all = (await page('viewer', '/listings')).text
    expect(all).toContain(`<a href="/listings?store=${STORE}&amp;state=held">`)
    expect(all).toContain('Circuit &lt;Kings&gt;')
    expect(all).toContain(`href="${path}"`)
    const held = (await page('viewer', `/listings?store=${STORE}&state=held`)).text
    expect(held).not.toContain('SKU-b')
    const found = (await page('viewer', '/listings?q=SKU-b')).text
    expect(found).toContain('that begin with “SKU-b”')
    expect(found).not.toContain('SKU-a')
    expect((await page('viewer', '/listings?q=nothing')).text).toContain('No listing matches')
    const problems = (await page('viewer', '/listings?state=problems')).text
    expect(problems).toContain('the SKU TWICE is of 2 products: c, d')
    expect((await page('viewer', '/listings?store=nowhere')).status).toBe(404)
  })
})

describe('one listing', () => {
  test('explains its price and stock step by step, and what waits', async () => {
    const { page } = await worldOf()
    const { text } = await page('operator', path)
    expect(text).toContain('The price 36.00 EUR waits for a person.')
    expect(text).toContain('Cost: what the supplier charges for one unit')
    expect(text).toContain('<b>30.00 EUR</b>')
    expect(text).toContain('Stock: local 2 plus provider 3')
    expect(text).toContain('first price')
    expect(text).toContain('Sales at 36.00 EUR leave 6.00 EUR a unit over the cost.')
    expect(text).toContain('Unlink: it is listed under its SKU, without a link.')
  })

  test('is released at the price that was shown, and at no other', async () => {
    const { page, act, stateOf, publish, ...world } = await worldOf()
    const other = await act('operator', `${path}/release`, { price: '35.00', reason: 'as agreed' })
    expect(other.status).toBe(409)
    expect(other.text).toContain('waits now is 36.00 EUR, not 35.00')
    const none = await act('operator', `${path}/release`, { price: '36.00', reason: '' })
    expect(none.status).toBe(400)
    expect(none.text).toContain('id="f-reason-release-SKU-a-fault"')
    expect(await stateOf('SKU-a')).toBe('held')
    const passed = await act('operator', `${path}/release`, { price: '36.00', reason: 'as agreed' })
    expect(passed.headers.location).toBe(path)
    expect((await page('operator', path)).text).toContain('SKU-a gets the price 36.00')
    await publish()
    expect(await stateOf('SKU-a')).toBe('synced')
    expect(world.shop.listings().get('SKU-a')).toMatchObject({ price: '36.00' })
    expect((await page('operator', path)).text, 'from what to what, and why').toMatch(
      /<span class="from">12\.00 EUR<\/span><\/td><td[^>]*>36\.00 EUR<\/td><td[^>]*>a person let it pass</,
    )
    expect(await auditOf(world)).toContainEqual(
      expect.objectContaining({ action: 'listing.release', detail: '36.00 EUR: as agreed' }),
    )
  })

  test('is ignored and taken back, linked and unlinked, and pushed again', async () => {
    const { page, act, stateOf } = await worldOf()
    const at = `/listings/${STORE}/SKU-b`
    await act('operator', `${at}/ignore`, { reason: 'sold by hand' })
    expect(await stateOf('SKU-b')).toBe('ignored')
    expect((await page('operator', at)).text).toContain('Push again, ignore: it is ignored.')
    await act('operator', `${at}/unignore`, {})
    expect(await stateOf('SKU-b')).toBe('pending')
    for (const [sku, product] of [['SKU-a', 'a'] as const, ['c', 'c'] as const]) {
      const linked = await act('operator', `${at}/link`, { offerSku: sku })
      expect(linked.status, product).toBe(303)
    }
    const wrong = await act('operator', `${at}/link`, { offerSku: 'nowhere' })
    expect(wrong.status).toBe(400)
    expect(wrong.text).toContain('The supplier has no offer with the SKU or the product id nowhere.')
    expect(wrong.text).toContain('value="nowhere"')
    expect((await act('operator', `${at}/link`, { offerSku: 'TWICE' })).status).toBe(409)
    expect((await act('operator', `${at}/unlink`, {})).status).toBe(303)
    expect((await act('operator', `${at}/unlink`, {})).status).toBe(409)
    expect((await act('operator', `${at}/retry`, {})).status).toBe(303)
  })

  test('offers a viewer nothing, and says why; one that is not there is a page that says so', async () => {
    const { page } = await worldOf()
    expect((await page('viewer', path)).text).toContain('they need the role operator; you are viewer.')
    expect((await page('viewer', `/listings/${STORE}/nothing`)).status).toBe(404)
  })
})

describe('held prices', () => {
  test('are none in a new installation', async () => {
    const { page } = peopleOf(await openApi())
    expect((await page('viewer', '/held-prices')).text).toContain('No price waits for a person.')
  })

  test('are explained and released from their page, which says so once', async () => {
    const { page, act, publish, shop } = await worldOf()
    const { text } = await page('operator', '/held-prices')
    expect(text).toContain('One price jumped further than the rules let pass, and waits for a person.')
    expect(text).toContain('<span class="from">12.00</span> to <strong>36.00 EUR</strong>, a rise of 200.0 %.')
    expect(text).toContain('Held prices<b><span class="hide">: </span>1')
    expect(text).toContain(`action="${path}/release"`)
    const passed = await act('operator', `${path}/release`, {
      price: '36.00',
      reason: 'as agreed',
      back: '/held-prices',
    })
    expect(passed.headers.location).toBe('/held-prices')
    const after = (await page('operator', '/held-prices')).text
    expect(after).toContain('SKU-a gets the price 36.00')
    expect(after).toContain('No price waits for a person.')
    await publish()
    expect(shop.listings().get('SKU-a')).toMatchObject({ price: '36.00' })
    const elsewhere = await act('operator', `${path}/retry`, { back: 'https://elsewhere.example' })
    expect(elsewhere.headers.location).toBe(path)
  })

  test('go on over the stores page by page', async () => {
    const { ask } = await worldOf()
    const first = await ask('GET', '/held-prices?limit=1')
    expect(first.body.data.items).toMatchObject([{ store: STORE, id: 'SKU-a', wantedPrice: '36.00' }])
    expect((await ask('GET', `/held-prices?after=${STORE}/SKU-a`)).body.data.items).toEqual([])
    expect((await ask('GET', `/held-prices?after=${STORE}/SKU`)).body.data.items).toHaveLength(1)
  })
})
