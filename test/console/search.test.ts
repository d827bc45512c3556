import { describe, expect, test } from 'vitest'
import { actions } from '../../src/console/search.ts'
import { OTHER_STORE, openApi } from '../support/api-world.ts'
import { insertDeliveries, offer, peopleOf } from '../support/console-data.ts'
import { STORE } from '../support/test-app.ts'

const worldOf = async () => {
  const world = await openApi({ storeNames: { [STORE]: 'North Games', [OTHER_STORE]: 'South' } })
  const people = peopleOf(world)
  const search = (q: string, role: 'viewer' | 'operator' | 'admin' = 'viewer', more = '') =>
    people.page(role, `/search?q=${encodeURIComponent(q)}${more}`)
  /** What a single hit leads to; the text of the page where there are several, or none. */
  const found = async (q: string, role?: 'viewer' | 'operator' | 'admin') => {
    const { status, headers, text } = await search(q, role)
    if (status === 303) return headers.location
    expect(status, q).toBe(200)
    return text
      .slice(text.indexOf('<main'))
      .replaceAll(/<[^>]+>/g, ' ')
      .replaceAll(/\s+/g, ' ')
  }
  const named = async (reference: string, number: string | null, sku: string) => {
    const { sql } = await import('drizzle-orm')
    await world.order(reference, [{ sku }])
    await world.db.commit([
      { statement: sql`update store_orders set number = ${number} where reference = ${reference}`, rows: 1 },
    ])
  }
  return { ...world, ...people, search, found, named }
}

const at = (reference: string, store = STORE) => `/orders/${store}/${reference}`

describe('a search', () => {
  test('opens the one order of a number or a reference, whatever its case and with or without #', async () => {
    const { found, named, offers } = await worldOf()
    const [{ sku } = { sku: '' }] = await offers()
    await named('5550001', '#1042', sku)
    await named('Web-77', null, sku)
    for (const q of ['1042', '#1042', ' #10 ', '55500']) expect(await found(q), q).toBe(at('5550001'))
    for (const q of ['web-77', 'WEB', '#Web-7']) expect(await found(q), q).toBe(at('Web-77'))
  })

  test('opens the order that is called exactly so, where other numbers only begin so', async () => {
    const { found, named, offers } = await worldOf()
    const [{ sku } = { sku: '' }] = await offers()
    for (const number of ['#104', '#1042', '#1043']) await named(`ref${number.slice(1)}`, number, sku)
    expect(await found('104')).toBe(at('ref104'))
    expect(await found('10')).toMatch(/“ 10 ”: 7 found\. .* Orders 3 #104 .* #1042 .* #1043 .* Products 4 /)
  })

  test('of a product that no store has leads to its orders, whatever signs its SKU has', async () => {
    const world = await worldOf()
    await offer(world, 'A&B#1', { name: 'Odd product' })
    expect(await world.found('odd pro')).toBe('/orders?q=SKU-A%26B%231')
  })

  test('shows ten of a kind, and leads to the others', async () => {
    const { search, found, order, offers } = await worldOf()
    const [{ sku } = { sku: '' }] = await offers()
    for (let count = 1; count <= 12; count += 1) await order(`r${count + 10}`, [{ sku }])
    const text = await found('r')
    expect(text).toMatch(/“ r ”: more than 1\d found\./)
    expect(text).not.toContain('r21')
    const { text: first } = await search('r')
    expect(first).toContain('href="/search?kind=order&amp;q=r">More of them</a>')
    const { status, text: all } = await search('r', 'viewer', '&kind=order')
    expect(status).toBe(200)
    expect(all).toContain(`href="${at('r22')}" data-copy`)
    expect(all).not.toContain('Pages and actions')
  })

  test('opens a supplier order, a purchase and a delivery by the beginning of its id', async () => {
    const world = await worldOf()
    const [{ sku } = { sku: '' }] = await world.offers()
    await world.order('1001', [{ sku }])
    await world.pass(20_000)
    const { id, supplierOrderId } = (await world.ask('GET', '/purchases')).body.data.items[0] as Record<string, string>
    for (const q of [
      supplierOrderId,
      supplierOrderId?.toUpperCase(),
      supplierOrderId?.slice(0, -2),
      id,
      id?.toUpperCase(),
    ])
      expect(await world.found(q ?? ''), q).toBe(`${at('1001')}#p-${id}`)
    const [delivery] = await insertDeliveries(world, [{ deliveryId: 'DLV_10477aa0', state: 'dead' }])
    for (const q of ['DLV_10477aa0', 'dlv_1047', delivery ?? '']) {
      expect(await world.found(q), q).toBe(`/deliveries/${delivery}`)
    }
    const { text } = await world.page('viewer', `/deliveries/${delivery}`)
    expect(text).toContain('Given up after')
  })

  test('finds a product by its SKU and by the beginning of a word of its name, in each store that sells it', async () => {
    const world = await worldOf()
    await offer(world, 'x1', { sku: 'GAM-104K', name: 'The Вечер of Kingdoms' })
    await offer(world, 'x2', { sku: 'GAM-7', name: 'Kingfisher <b>' })
    await world.publish()
    const listing = (store: string) => `/listings/${store}/GAM-104K`
    expect(await world.found('gam-104')).toBe(listing(STORE))
    for (const q of ['kingdoms', 'the вечер', 'ВЕЧЕР', 'вечер of k']) {
      const { text: page, headers } = await world.search(q)
      expect(`${page}${headers.location}`, q).toContain(listing(STORE))
    }
    expect(await world.found('king')).toMatch(/Products \d .*Kingfisher &lt;b&gt; .*Kingdoms /)
    expect(await world.found('ingdoms')).toContain('“ ingdoms ”: nothing found.')
  })

  test('says that there are more products, where some are found by SKU and by name alike', async () => {
    const world = await worldOf()
    for (let count = 10; count < 16; count += 1)
      await offer(world, `both${count}`, { sku: `ZZ-${count}`, name: `ZZ ${count}` })
    for (let count = 10; count < 22; count += 1)
      await offer(world, `name${count}`, { sku: `S-${count}`, name: `ZZ game ${count}` })
    const { body } = await world.ask('GET', '/search?q=zz')
    expect(body.data.items).toHaveLength(10)
    expect(body.data).toMatchObject({ more: ['product'] })
  })

  test('opens pages, and the forms of actions for those who may use them', async () => {
    const { found } = await worldOf()
    expect(await found('alerts')).toBe('/alerts')
    expect(await found('pause ordering', 'operator')).toBe('/overview#freeze')
    expect(await found('pause ordering', 'viewer')).toContain('nothing found')
    expect(await found('new token', 'admin')).toBe('/settings#create-token')
    expect(await found('new token', 'operator')).toContain('nothing found')
  })

  test('leads to forms and sections that are there', async () => {
    const world = await worldOf()
    await world.publish()
    for (const [role, to] of actions) {
      const [path = '', id = ''] = to.split('#')
      expect((await world.page(role, path)).text, to).toContain(`id="${id}"`)
    }
  })

  test('says what can be looked for where nothing is typed, and where nothing begins so', async () => {
    const { found } = await worldOf()
    for (const q of ['', ' ', '\u200b', '#']) expect(await found(q), q).toContain('The beginning of an order number')
    expect(await found('nothing-has-this-name')).toContain('“ nothing-has-this-name ”: nothing found. ')
  })

  test('takes odd texts for what they are', async () => {
    const world = await worldOf()
    const [{ sku } = { sku: '' }] = await world.offers()
    await world.order('1001', [{ sku }])
    const odd = [
      '%',
      '_',
      '100_',
      '%1001',
      "'",
      '"',
      "' or 1=1 --",
      '\\',
      '<script>',
      '\u0000',
      '1\u00001',
      '\u202e1001',
      '\u061c',
      '😀',
      '👩‍👩‍👧',
      '\ufffd',
      'x'.repeat(5_000),
      '\u{10ffff}',
      '٣',
      '../..',
      '*',
      'null',
    ]
    for (const q of odd) {
      const { status, text } = await world.search(q)
      expect([200, 303], JSON.stringify(q.slice(0, 20))).toContain(status)
      expect(text).not.toContain('<script>')
    }
    expect(await world.found('100_')).toContain('nothing found')
    expect(await world.found('\u202e1001')).toBe(at('1001'))
  })

  test('never finds a licence key, a token or what it is a part of', async () => {
    const world = await worldOf()
    const [{ sku } = { sku: '' }] = await world.offers()
    await world.order('1001', [{ sku }])
    await world.pass(20_000)
    const keys = [...world.shop.keys().values()].flat()
    expect(keys.length).toBeGreaterThan(0)
    for (const q of [...keys, ...Object.values(world.tokens)]) {
      expect(await world.found(q, 'admin')).toContain('nothing found')
    }
  })

  test('is answered by the API to people alone, in the same words', async () => {
    const world = await worldOf()
    const [{ sku } = { sku: '' }] = await world.offers()
    await world.order('1001', [{ sku }])
    const { status, body } = await world.ask('GET', '/search?q=%231001', { token: world.tokens.viewer })
    expect(status).toBe(200)
    expect(body.data).toMatchObject({
      items: [{ kind: 'order', name: '1001', otherName: null, store: STORE, order: '1001', state: 'open' }],
      more: [],
    })
    expect((await world.ask('GET', '/search?q=1001', { token: world.tokens.store })).status).toBe(403)
    for (const q of ['', '%00', 'x'.repeat(201)]) expect((await world.ask('GET', `/search?q=${q}`)).status, q).toBe(400)
    expect((await world.ask('GET', '/search')).status).toBe(400)
  })

  test('stands in the frame of every page, as a form that needs no script', async () => {
    const { page } = await worldOf()
    for (const path of ['/overview', '/orders', '/settings', '/nowhere']) {
      const { text } = await page('viewer', path)
      expect(text, path).toMatch(
        /<form class="find" role="search"[^>]* action="\/search"><input type="search" name="q"/,
      )
    }
  })
})
