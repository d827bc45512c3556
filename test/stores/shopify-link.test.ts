/** The link to the keys of an order of Shopify: where its customer finds it, and what the order has in place of the keys. */
import { describe, expect, test } from 'vitest'
import { STANDARD_MAIL } from '../shops/shopify-mails.ts'
import type { ShopifyPolicy } from '../shops/shopify-orders.ts'
import { TEST_NOW } from '../support/database.ts'
import { shopifyWorld } from '../support/store-worlds.ts'

const LINK = 'https://keys.quayside.test/k/Zm9vYmFy'
const MARKS = ['qk-first', 'qk-second']
const STANDARD = { mailTemplate: STANDARD_MAIL, mailsReadAppFields: false, leavesOutRepeats: true }

/** A shop as Shopify makes it, and an order of so many units. */
async function linked(quantity = 2, policy: Partial<ShopifyPolicy> = {}) {
  const world = await shopifyWorld({ shop: { policy: { ...STANDARD, ...policy } } })
  const variant = world.sell('A')
  const { reference, lines } = world.buy([{ id: variant, quantity }])
  const line = { id: lines[0] ?? '', sku: 'A', quantity }
  const fulfil = (id: string, keys = MARKS, more: Partial<Parameters<typeof world.store.fulfil>[0]> = {}) =>
    world.store.fulfil({
      id,
      type: 'line.fulfilled',
      at: TEST_NOW,
      order: { store: 'demo-1', reference },
      line,
      delivered: keys.length,
      complete: true,
      keys,
      by: 'link',
      keysUrl: LINK,
      ...more,
    })
  const { shop } = world
  return {
    world,
    shop,
    variant,
    reference,
    line,
    fulfil,
    fulfilments: () => shop.orders.get(reference)?.fulfilments ?? [],
    links: () => shop.seenBy(reference).links,
    mails: () => shop.mails().filter(({ order, kind }) => order === reference && kind.startsWith('shipping')),
    fields: () => Object.fromEntries(shop.metafieldsOf(reference).map(({ key, value }) => [key, value])),
    units: () =>
      (shop.orders.get(reference)?.fulfilments ?? [])
        .flatMap(({ lines: of }) => of)
        .reduce((sum, one) => sum + one.quantity, 0),
    kinds: () => shop.requests().map(({ kind }) => kind),
    resend: (keys = MARKS, keysUrl = LINK) =>
      world.store.resend?.({ reference, lines: [{ id: line.id, keys }], by: 'link', keysUrl }),
  }
}

describe('a customer who gets the keys of an order of Shopify by a link', () => {
  test('finds it in the standard mail and on the order status page, as the name of the order', async () => {
    const { fulfil, mails, shop, reference, fulfilments, units } = await linked()
    expect(await fulfil('u1')).toEqual({ outcome: 'confirmed' })
    expect(fulfilments().map(({ tracking }) => tracking)).toEqual([
      [{ company: 'Games & more', number: '#1001', url: LINK }],
    ])
    expect(mails().map(({ kind, html }) => [kind, html.includes(`<a href="${LINK}">#1001</a>`)])).toEqual([
      ['shipping_confirmation', true],
    ])
    expect(shop.seenBy(reference).page).toContain(`<a href="${LINK}">#1001</a>`)
    expect(units()).toBe(2)
  })

  test('has no key on the order, only marks that the shop shows to no customer', async () => {
    const { fulfil, fields, shop, line } = await linked()
    await fulfil('u1')
    expect(fields()).toEqual({ marks: JSON.stringify(MARKS), units: JSON.stringify({ [line.id]: 2 }) })
    expect([...shop.definitions.values()]).toEqual([])
  })

  test('has the keys on the order as well, where the store brings both', async () => {
    const { fulfil, fields, links } = await linked()
    await fulfil('u1', ['AAAA-1', 'AAAA-2'], { by: 'both' })
    expect(fields()).toMatchObject({ keys_1: 'Game A (A)\nAAAA-1\nAAAA-2' })
    expect(fields()).not.toHaveProperty('marks')
    expect(links()).toEqual([LINK])
  })

  test.each(['PutKeys', 'CreateFulfillment'])('gets one mail, where the answer to %s was lost', async (kind) => {
    const { fulfil, shop, mails, units, fields, kinds } = await linked()
    shop.strike({ kind, fault: 'lost_after' })
    expect(await fulfil('u1')).toMatchObject({ outcome: 'unavailable', mayHaveLeft: true })
    expect(await fulfil('u1')).toEqual({ outcome: 'confirmed' })
    expect([mails().length, units(), fields().marks]).toEqual([1, 2, JSON.stringify(MARKS)])
    expect(kinds()).not.toContain('NotifyAgain')
  })

  test('gets the same link with each fulfilment: of keys in parts, and of several locations', async () => {
    const { fulfil, shop, fulfilments, reference, line } = await linked(4)
    shop.splitFulfilment(reference, line.id, 2)
    const [, split] = shop.orders.get(reference)?.fulfilmentOrders ?? []
    if (split) split.location = 'elsewhere'
    await fulfil('u1', ['qk-1'])
    await fulfil('u2', ['qk-2', 'qk-3'], { delivered: 3 })
    expect(fulfilments().map(({ tracking, lines }) => [tracking[0]?.url, lines[0]?.quantity])).toEqual([
      [LINK, 1],
      [LINK, 1],
      [LINK, 1],
    ])
  })

  test('keeps the marks of two processes that hand over at once', async () => {
    const { fulfil, fields, units } = await linked(3)
    await Promise.all([fulfil('u1', ['qk-1']), fulfil('u2', ['qk-2'])])
    await fulfil('u1', ['qk-1'])
    await fulfil('u2', ['qk-2'], { delivered: 2 })
    expect(JSON.parse(fields().marks ?? '').toSorted()).toEqual(['qk-1', 'qk-2'])
    expect(units()).toBe(2)
  })

  test('gets the link of a new page after a lost database, by one mail, and no unit again', async () => {
    const { fulfil, mails, units, fulfilments, fields } = await linked()
    await fulfil('u1')
    const before = fields()
    const keysUrl = `${LINK}-of-a-new-page`
    for (const id of ['u2', 'u2']) expect(await fulfil(id, MARKS, { keysUrl })).toEqual({ outcome: 'confirmed' })
    expect(fulfilments().map(({ tracking }) => tracking.map(({ url }) => url))).toEqual([[keysUrl]])
    expect(mails().map(({ kind, html }) => [kind, html.includes(keysUrl)])).toEqual([
      ['shipping_confirmation', false],
      ['shipping_update', true],
    ])
    expect([units(), fields()]).toEqual([2, before])
  })

  test.each(['PutKeys', 'FulfillmentTracking', 'NotifyAgain'])(
    'whose order was fulfilled before gets it by another mail beside the number of a parcel, also where %s was lost',
    async (kind) => {
      const { fulfil, shop, reference, fulfilments, mails } = await linked()
      const parcel = { company: 'UPS', number: '1Z999', url: 'https://parcels.test/1Z999' }
      shop.fulfilByHand(reference, undefined, true).tracking.push(parcel)
      shop.strike({ kind, fault: 'lost_before' })
      expect(await fulfil('u1')).toMatchObject({ outcome: 'unavailable', mayHaveLeft: true })
      expect(await fulfil('u1')).toEqual({ outcome: 'confirmed', wasFulfilled: true })
      expect(fulfilments()[0]?.tracking).toEqual([{ company: 'UPS', number: '#1001', url: LINK }, parcel])
      const update = mails().filter(({ kind: of }) => of === 'shipping_update')
      expect(update.map(({ html }) => html.includes(`<a href="${LINK}">#1001</a>`))).toEqual([true])
      expect(shop.orders.get(reference)?.note).toContain('The link to them is on the order now')
    },
  )

  test('gets it where a person fulfilled the order between the marks and the fulfilment', async () => {
    const { fulfil, shop, reference, links } = await linked()
    shop.strike({ kind: 'CreateFulfillment', fault: 'lost_before' })
    await fulfil('u1')
    shop.fulfilByHand(reference, undefined, true)
    expect(links()).toEqual([])
    expect(await fulfil('u1')).toEqual({ outcome: 'confirmed' })
    expect(links()).toEqual([LINK])
  })

  test.each([
    ['the shop refuses to write it', true],
    ['there is no fulfilment to write it to', false],
  ])('does not count as served where %s', async (_, isFulfilled) => {
    const { fulfil, shop, reference, links } = await linked()
    if (isFulfilled) shop.fulfilByHand(reference, undefined, true)
    else for (const one of shop.orders.get(reference)?.fulfilmentOrders ?? []) one.status = 'CANCELLED'
    shop.strike({ kind: 'NotifyAgain', fault: 'user_error', times: 2 })
    for (const id of ['u1', 'u1']) expect(await fulfil(id)).toMatchObject({ outcome: 'refused' })
    expect(links()).toEqual([])
  })

  test('gets none for units that were refunded, where none of its marks is on the order', async () => {
    const { fulfil, shop, reference, line, fields, links } = await linked()
    shop.refund(reference, { lines: [{ id: line.id, quantity: 1 }] })
    expect(await fulfil('u1')).toMatchObject({ outcome: 'not_entitled', standing: 'paid', units: 1 })
    shop.cancel(reference)
    expect(await fulfil('u1')).toMatchObject({ outcome: 'not_entitled', standing: 'cancelled' })
    expect([fields(), links()]).toEqual([{}, []])
  })

  test('gets no more than the units that are left, where another update brought a mark without an answer', async () => {
    const { fulfil, shop, reference, line, fields } = await linked(3)
    shop.strike({ kind: 'PutKeys', fault: 'lost_after' })
    await fulfil('u2', ['qk-3'])
    shop.refund(reference, { lines: [{ id: line.id, quantity: 1 }] })
    const unanswered = ['KEY-3', 'qk-3']
    expect(await fulfil('u1', MARKS, { unanswered })).toMatchObject({ outcome: 'not_entitled', units: 2 })
    expect(await fulfil('u2', ['qk-3'])).toEqual({ outcome: 'confirmed' })
    expect(fields().marks).toBe(JSON.stringify(['qk-3']))
  })
})

describe('a change of how keys reach customers, before a repeat or a restore', () => {
  const KEYS = ['AAAA-1', 'AAAA-2']

  test('is no further key, no unit and no mail for an order that shows its keys', async () => {
    const { fulfil, fields, mails, units, line } = await linked()
    await fulfil('u1', KEYS, { by: undefined })
    expect(await fulfil('u2', MARKS, { otherForm: KEYS })).toEqual({ outcome: 'confirmed' })
    expect(fields()).not.toHaveProperty('marks')
    expect([fields().units, units(), mails().length]).toEqual([JSON.stringify({ [line.id]: 2 }), 2, 1])
  })

  test('leaves an order with the link as it is, and brings a link that is missing or leads to an earlier page', async () => {
    const { fulfil, fields, mails, links, shop } = await linked()
    const marked = { by: undefined, otherForm: MARKS }
    shop.strike({ kind: 'CreateFulfillment', fault: 'lost_before' })
    await fulfil('u1')
    const before = fields()
    for (const id of ['u2', 'u2']) expect(await fulfil(id, KEYS, marked)).toEqual({ outcome: 'confirmed' })
    expect([links(), fields(), mails().length]).toEqual([[LINK], before, 1])
    expect(await fulfil('u3', KEYS, { ...marked, keysUrl: `${LINK}2` })).toEqual({ outcome: 'confirmed' })
    expect([links().at(-1), fields(), mails().length]).toEqual([`${LINK}2`, before, 2])
  })

  test.each([
    ['before the fulfilment', true, 1],
    ['after it', false, 2],
  ])(
    'puts the keys beside marks that lead nowhere any more %s, for a mail that shows them',
    async (_, isLost, sent) => {
      const { fulfil, fields, mails, units, line, shop } = await linked(2, { leavesOutRepeats: false })
      if (isLost) shop.strike({ kind: 'CreateFulfillment', fault: 'lost_before' })
      await fulfil('u1')
      const repeat = { by: undefined, otherForm: MARKS, keysUrl: undefined }
      expect(await fulfil('u1', KEYS, repeat)).toEqual({ outcome: 'confirmed' })
      const shown = `Game A (A)\n${KEYS.join('\n')}`
      expect(fields()).toMatchObject({ keys_1: shown, units: JSON.stringify({ [line.id]: 2 }) })
      expect([units(), mails().length]).toEqual([2, sent])
    },
  )

  test('gives no key in plain text to an order that was cancelled meanwhile', async () => {
    const { fulfil, fields, shop, reference } = await linked()
    shop.strike({ kind: 'CreateFulfillment', fault: 'lost_before' })
    await fulfil('u1')
    shop.cancel(reference)
    const repeat = { by: undefined, otherForm: MARKS, keysUrl: undefined }
    expect(await fulfil('u1', KEYS, repeat)).toEqual({ outcome: 'confirmed' })
    expect(fields()).not.toHaveProperty('keys_1')
  })
})

describe('a link that is sent again', () => {
  const asked =
    'Shopify was asked to send its mail "Shipping update" again. It may leave out a mail that says the same as the last one.'

  test.each([true, false])(
    'is asked for, and the answer says that the shop may leave the mail out (%s)',
    async (leavesOutRepeats) => {
      const { fulfil, resend, mails } = await linked(2, { leavesOutRepeats })
      await fulfil('u1')
      expect(await resend()).toEqual({ outcome: 'confirmed', detail: asked })
      expect(mails()).toHaveLength(leavesOutRepeats ? 1 : 2)
    },
  )

  test('comes for the first time to an order that had its keys in plain text', async () => {
    const { fulfil, resend, mails, fields, line, links } = await linked()
    await fulfil('u1', ['AAAA-1', 'AAAA-2'], { by: undefined })
    expect(links()).toEqual([])
    expect(await resend()).toMatchObject({ outcome: 'confirmed' })
    expect(links()).toEqual([LINK])
    expect(mails().map(({ kind }) => kind)).toEqual(['shipping_confirmation', 'shipping_update'])
    expect(JSON.parse(fields().units ?? '')).toEqual({ [line.id]: 2 })
  })

  test('replaces the link of an earlier page on each fulfilment, and is mailed once for each', async () => {
    const { fulfil, resend, mails, fulfilments } = await linked(3)
    await fulfil('u1', ['qk-1'])
    await fulfil('u2', ['qk-2', 'qk-3'], { delivered: 3 })
    await resend(['qk-1', 'qk-2', 'qk-3'], `${LINK}2`)
    expect(fulfilments().map(({ tracking }) => tracking.map(({ url }) => url))).toEqual([[`${LINK}2`], [`${LINK}2`]])
    expect(mails()).toHaveLength(4)
  })
})
