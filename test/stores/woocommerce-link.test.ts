/** The link to the page of keys, from a hand-over to what the customer of a WooCommerce order reads. */
import { describe, expect, test } from 'vitest'
import { markOfKey } from '../../src/domain/licence-key.ts'
import type { KeyWay } from '../../src/domain/store-update.ts'
import { openLine } from '../../src/keys/key-pages.ts'
import { resendKeys } from '../../src/ordering/resend.ts'
import type { WooCommerceOptions } from '../../src/stores/woocommerce/woocommerce.ts'
import { TEST_NOW } from '../support/database.ts'
import { openShopApp } from '../support/shop-app.ts'
import { wooCommerceWorld } from '../support/store-worlds.ts'

const at = TEST_NOW - 5_000
/** A token with two dashes in a row, which WordPress makes one long dash in a text. */
const tokenOf = (letter: string) => `--${letter.repeat(41)}`
const linkOf = (letter: string) => `https://keys.shop.test/k/${tokenOf(letter)}`
const LINK = linkOf('a')
const mark = (ordinal: number) => markOfKey('q1.demo-1.7.1.1.1', ordinal)
type HandOver = WooCommerceOptions['settings']['handOver']
const byMail: HandOver = { by: 'completed_mail', complete: true, label: 'Licence key' }

/** An order of a line for each number of units, whose keys reach the customer by a link. */
async function ordered(units: number[], { by = 'link', handOver = byMail }: { by?: KeyWay; handOver?: HandOver } = {}) {
  const world = await wooCommerceWorld({ settings: { handOver, deliver: by } })
  const { reference, lines } = world.buy(
    units.map((quantity, index) => ({ id: world.sell('AB'.charAt(index)), quantity })),
  )
  const id = Number(reference)
  const order = { store: 'demo-1', reference }
  let updates = 0
  const { shop } = world
  const metaOf = (line: number, key: string): string =>
    String(shop.orders.get(id)?.lines[line]?.meta.find((meta) => meta.key === key)?.value ?? '')
  return {
    world,
    id,
    fulfil: (
      keys: string[],
      {
        line = 0,
        keysUrl = LINK,
        way = by,
        otherForm,
      }: { line?: number; keysUrl?: string | null; way?: KeyWay; otherForm?: string[] } = {},
    ) => {
      updates += 1
      return world.store.fulfil({
        id: `u${updates}`,
        at,
        type: 'line.fulfilled',
        order,
        line: { id: lines[line] ?? '', sku: 'AB'.charAt(line), quantity: units[line] ?? 1 },
        delivered: 1,
        complete: false,
        keys,
        ...(keysUrl !== null && { keysUrl }),
        ...(otherForm && { otherForm }),
        ...(way !== 'keys' && { by: way }),
      })
    },
    close: (state: 'fulfilled' | 'partly_fulfilled' = 'fulfilled') =>
      world.store.closeOrder({ id: 'c1', at, type: 'order.closed', order, state, keysUrl: LINK }),
    sendWaiting: () => world.store.sendWaiting?.(reference),
    resend: (keys: string[], way: 'link' | 'both') =>
      world.store.resend?.({ reference, lines: [{ id: lines[0] ?? '', keys }], by: way, keysUrl: LINK }),
    stored: (line = 0): unknown => JSON.parse(metaOf(line, '_quayside_keys')),
    shown: (line = 0) => metaOf(line, 'Licence key'),
    status: () => shop.orders.get(id)?.status,
    sees: () => shop.customerSees(id),
    /** The mails with the link, each by its kind. */
    mailed: (link = LINK) =>
      shop.customerSees(id).mails.flatMap(({ kind, text, links }) => {
        const opens = links.filter((address) => address.split('#')[0] === link)
        // What stands on the screen is what opens: a customer may also copy it.
        return opens.length > 0 && text.split(/\s/).includes(link) ? [kind] : []
      }),
  }
}

describe('an order whose keys reach the customer by a link', () => {
  test('has the link where the keys would stand, and marks that are no secret in their hidden place', async () => {
    const order = await ordered([2])
    expect(await order.fulfil([mark(1), mark(2)])).toEqual({ outcome: 'confirmed' })
    expect(order.shown()).toBe(LINK)
    expect(order.stored()).toEqual([mark(1), mark(2)])
    expect(order.mailed()).toEqual([])
    expect(await order.close()).toEqual({ outcome: 'confirmed' })
    expect(order.status()).toBe('completed')
    expect(order.mailed()).toEqual(['completed'])
    expect(order.sees().page.links).toEqual([LINK])
  })

  test('never shows the customer a mark', async () => {
    const order = await ordered([2, 1])
    await order.fulfil([mark(1)])
    await order.sendWaiting()
    await order.fulfil([mark(2)])
    await order.fulfil([mark(3)], { line: 1 })
    await order.close()
    await order.resend([mark(1), mark(2)], 'link')
    const { mails, page } = order.sees()
    for (const { text } of [...mails, page]) expect(text).not.toContain('qk-')
  })

  test('sends the link with what is there, and once more with what came later', async () => {
    const order = await ordered([2, 1])
    await order.fulfil([mark(1)])
    await order.sendWaiting()
    await order.sendWaiting()
    expect(order.mailed()).toEqual(['customer_note'])
    expect(order.shown(), 'so that no other mail repeats it').toBe('')
    await order.fulfil([mark(2)])
    await order.fulfil([mark(3)], { line: 1 })
    expect([order.shown(), order.shown(1)]).toEqual([LINK, LINK])
    await order.close()
    expect(order.mailed()).toEqual(['customer_note', 'completed'])
  })

  test('sends it by another note for each delivery that no mail of a completed order brings', async () => {
    const order = await ordered([2], { handOver: { ...byMail, by: 'note' } })
    await order.fulfil([mark(1)])
    await order.fulfil([mark(1)])
    expect(order.mailed()).toEqual(['customer_note'])
    await order.fulfil([mark(2)])
    await order.close()
    expect(order.mailed().filter((kind) => kind === 'customer_note')).toHaveLength(2)
    expect(order.sees().page.links, 'the notes have links that can be clicked').toHaveLength(2)
  })

  test('sends it in a note that names the product of each line, with one link below them', async () => {
    const order = await ordered([1, 1])
    await order.fulfil([mark(1)])
    await order.fulfil([mark(2)], { line: 1 })
    await order.close('partly_fulfilled')
    const notes = order.world.shop.orders.get(order.id)?.notes.filter(({ isForCustomer }) => isForCustomer) ?? []
    const [note] = notes
    expect(notes).toHaveLength(1)
    expect(note?.note.split('\n\n').slice(0, 2)).toEqual(['Licence key: Game A (A)', 'Licence key: Game B (B)'])
    expect(note?.note.match(/<a /g)).toHaveLength(1)
  })

  test('sends it by note where someone else completes the order before the link is there, and in the moment in which it comes', async () => {
    const early = await ordered([1])
    early.world.shop.setStatus(early.id, 'completed')
    await early.fulfil([mark(1)])
    await early.fulfil([mark(1)])
    expect(early.mailed()).toEqual(['customer_note'])
    const meanwhile = await ordered([1])
    const { shop } = meanwhile.world
    shop.strike({
      kind: 'orders.update',
      fault: 'echo',
      change: (json) => ({ ...(json as object), status: 'completed' }),
      matches: () => true,
    })
    await meanwhile.fulfil([mark(1)])
    expect(meanwhile.mailed()).toEqual(['customer_note'])
  })

  test.each(['lost_before', 'lost_after'] as const)('has it once after a write that was %s', async (fault) => {
    for (const kind of ['orders.update', 'notes.create'] as const) {
      const order = await ordered([1, 1])
      await order.fulfil([mark(1)])
      order.world.shop.strike({ kind, fault })
      expect(await order.sendWaiting()).toMatchObject({ outcome: 'unavailable' })
      expect(await order.sendWaiting()).toEqual({ outcome: 'confirmed' })
      order.world.shop.strike({ kind: 'orders.update', fault })
      expect(await order.fulfil([mark(2)], { line: 1 })).toMatchObject({ outcome: 'unavailable' })
      expect(await order.fulfil([mark(2)], { line: 1 })).toEqual({ outcome: 'confirmed' })
      await order.close()
      expect(order.mailed()).toEqual(['customer_note', 'completed'])
      expect([order.stored(), order.stored(1)]).toEqual([[mark(1)], [mark(2)]])
    }
  })

  test('counts marks as keys: more of them than the order has units of stay here', async () => {
    const order = await ordered([1])
    await order.fulfil([mark(1)])
    expect(await order.fulfil([mark(2)])).toMatchObject({ outcome: 'not_entitled', standing: 'paid', units: 1 })
    order.world.shop.setStatus(order.id, 'cancelled')
    expect(await order.fulfil([mark(3)])).toMatchObject({ outcome: 'not_entitled', standing: 'cancelled' })
    expect(order.stored()).toEqual([mark(1)])
  })

  test('goes on where earlier keys of the line stand in it as they are', async () => {
    const order = await ordered([2])
    await order.fulfil(['AAAA-1'], { way: 'keys' })
    await order.fulfil([mark(2)])
    expect(order.shown()).toBe(`AAAA-1\n${LINK}`)
    await order.sendWaiting()
    expect(order.world.keysOf(String(order.id), ['AAAA-1'])).toHaveLength(1)
    expect(order.mailed()).toEqual(['customer_note'])
    expect(order.shown()).toBe('')
    expect(order.stored()).toEqual(['AAAA-1', mark(2)])
  })

  test('has the keys by the note way where a plug-in changes what lines show', async () => {
    const order = await ordered([1])
    const { shop } = order.world
    shop.strike({
      fault: 'echo',
      kind: 'orders.update',
      change: (json) => JSON.parse(JSON.stringify(json).replaceAll(`"value":"${LINK}"`, '"value":"a plug-in"')),
    })
    expect(await order.fulfil([mark(1)])).toEqual({ outcome: 'confirmed' })
    await order.close()
    expect(order.mailed()).toEqual(['customer_note'])
  })
})

describe('a new page after a lost database', () => {
  const NEW = linkOf('b')

  test('replaces the earlier link in its line before the mail of the completed order leaves', async () => {
    const order = await ordered([1])
    await order.fulfil([mark(1)])
    expect(await order.fulfil([mark(1)], { keysUrl: NEW })).toEqual({ outcome: 'confirmed' })
    expect(order.shown()).toBe(NEW)
    await order.close()
    expect([order.mailed(), order.mailed(NEW)]).toEqual([[], ['completed']])
  })

  test('comes by note, once, where the mail with the earlier link has left', async () => {
    for (const handOver of [byMail, { ...byMail, by: 'note' as const }]) {
      const order = await ordered([1], { handOver })
      await order.fulfil([mark(1)])
      await order.close()
      for (let times = 0; times < 2; times += 1) {
        expect(await order.fulfil([mark(1)], { keysUrl: NEW })).toEqual({ outcome: 'confirmed' })
      }
      expect(order.mailed(NEW)).toEqual(['customer_note'])
    }
  })
})

describe('a change of how keys reach customers, before a repeat or a restore', () => {
  const KEY = 'AAAA-1'

  test('is no second key: an order of one unit with the key takes the link, and one with the mark takes the key', async () => {
    const toLink = await ordered([1])
    await toLink.fulfil([KEY], { way: 'keys' })
    expect(await toLink.fulfil([mark(1)], { otherForm: [KEY] })).toEqual({ outcome: 'confirmed' })
    expect([toLink.stored(), toLink.shown()]).toEqual([[KEY], KEY])
    await toLink.close()
    expect(toLink.sees().mails.filter(({ text }) => text.includes(KEY))).toHaveLength(1)
    expect(toLink.mailed(), 'the key itself is in the mail').toEqual([])
    const toKeys = await ordered([1])
    await toKeys.fulfil([mark(1)])
    expect(await toKeys.fulfil([KEY], { way: 'keys', otherForm: [mark(1)] })).toEqual({ outcome: 'confirmed' })
    expect([toKeys.stored(), toKeys.shown()]).toEqual([[mark(1)], LINK])
    await toKeys.close()
    expect(toKeys.mailed()).toEqual(['completed'])
    expect(toKeys.sees().mails.some(({ text }) => text.includes(KEY))).toBe(false)
  })

  test('sends nothing again where a note has brought the key in the other form', async () => {
    const noted = { handOver: { ...byMail, by: 'note' as const } }
    for (const [first, again] of [
      [
        { keys: [KEY], way: 'keys' },
        { keys: [mark(1)], way: 'link' },
      ],
      [
        { keys: [mark(1)], way: 'link' },
        { keys: [KEY], way: 'keys' },
      ],
    ] as const) {
      const order = await ordered([1], noted)
      order.world.shop.strike({ kind: 'orders.update', fault: 'lost_before' })
      expect(await order.fulfil([...first.keys], { way: first.way })).toMatchObject({ outcome: 'unavailable' })
      for (let times = 0; times < 2; times += 1) {
        const repeat = { way: again.way, otherForm: [...first.keys] }
        expect(await order.fulfil([...again.keys], repeat)).toEqual({ outcome: 'confirmed' })
      }
      expect(order.sees().mails.filter(({ kind }) => kind === 'customer_note')).toHaveLength(1)
      expect(order.stored()).toHaveLength(1)
    }
  })

  test('brings the key once by note where its link leads nowhere any more, even to an order with no room', async () => {
    for (const handOver of [byMail, { ...byMail, by: 'note' as const }]) {
      const order = await ordered([1], { handOver })
      await order.fulfil([mark(1)])
      for (let times = 0; times < 2; times += 1) {
        const repeat = { way: 'keys' as const, keysUrl: null, otherForm: [mark(1)] }
        expect(await order.fulfil([KEY], repeat)).toEqual({ outcome: 'confirmed' })
      }
      expect(order.sees().mails.filter(({ text }) => text.includes(KEY))).toHaveLength(1)
      expect(order.stored()).toEqual([mark(1)])
    }
  })
})

describe('an order whose keys reach the customer both ways', () => {
  test('has its keys, and the link once below them, in its line and in a note', async () => {
    const order = await ordered([2, 1], { by: 'both' })
    await order.fulfil(['AAAA-1'])
    await order.fulfil(['AAAA-2'])
    expect(order.shown()).toBe(`AAAA-1\nAAAA-2\n${LINK}`)
    expect(order.stored()).toEqual(['AAAA-1', 'AAAA-2'])
    await order.sendWaiting()
    expect(order.shown()).toBe('')
    await order.fulfil(['BBBB-1'], { line: 1 })
    await order.close()
    expect(order.mailed()).toEqual(['customer_note', 'completed'])
    const keys = ['AAAA-1', 'AAAA-2', 'BBBB-1']
    expect(order.world.keysOf(String(order.id), keys)).toEqual(keys)
    const [note] = order.sees().mails.filter(({ kind }) => kind === 'customer_note')
    // The mail of a note prints the lines too, which have not lost the keys and the link yet.
    expect(new Set(note?.links)).toEqual(new Set([LINK]))
  })

  test('has a new link in its line after a lost database, and gets no key twice', async () => {
    const order = await ordered([1], { by: 'both' })
    await order.fulfil(['AAAA-1'])
    await order.close()
    expect(await order.fulfil(['AAAA-1'], { keysUrl: linkOf('b') })).toEqual({ outcome: 'confirmed' })
    expect(order.shown()).toBe(`AAAA-1\n${linkOf('b')}`)
    expect(order.world.keysOf(String(order.id), ['AAAA-1'])).toHaveLength(1)
  })
})

test('keys that are sent again by an operator go with the link, and the shop says what it sent', async () => {
  const link = await ordered([1])
  await link.fulfil([mark(1)])
  await link.close()
  expect(await link.resend([mark(1)], 'link')).toEqual({
    outcome: 'confirmed',
    detail: 'The shop has sent the customer a note with the link to their page of keys.',
  })
  expect(link.mailed()).toEqual(['completed', 'customer_note'])
  const both = await ordered([1], { by: 'both' })
  await both.fulfil(['AAAA-1'])
  await both.close()
  expect(await both.resend(['AAAA-1'], 'both')).toMatchObject({
    detail: expect.stringContaining('the keys and the link'),
  })
  const [, note] = both.sees().mails.filter(({ text }) => text.includes('AAAA-1'))
  expect(note).toMatchObject({ kind: 'customer_note', links: expect.arrayContaining([LINK]) })
})

describe('a customer of a shop that Quayside serves', () => {
  const MINUTE = 60_000
  const KEYS = 'https://keys.shop.test'

  /** An order of two units in a shop whose customers get their keys in one way. */
  async function bought(deliver: KeyWay) {
    const app = await openShopApp({ settings: { deliver }, keyPagesAt: KEYS })
    const [one] = await app.sell()
    const reference = app.customerBuys({ lines: [{ product: one?.product ?? 0, quantity: 2 }] })
    await app.pass(3 * MINUTE)
    const { vault, newId } = app.ordering
    const orderId = (await app.orderOf(reference))?.id ?? ''
    return {
      app,
      orderId,
      issued: () => Object.values(app.sandbox.world.report().keysIssued).flat(),
      sees: () => app.shop.customerSees(Number(reference)),
      line: String(app.shop.orders.get(Number(reference))?.lines[0]?.id),
      open: async (link: string, line: string) =>
        openLine(
          { db: app.db, vault, now: app.now, newId, pageDays: 365, sendsLinks: () => true },
          link.slice(`${KEYS}/k/`.length),
          line,
          '',
        ),
    }
  }

  test('goes from the mail by the link to the same keys that the supplier issued', async () => {
    const { sees, open, line, issued } = await bought('link')
    const mails = sees().mails.filter(({ links }) => links.length > 0)
    expect(mails.map(({ kind }) => kind)).toEqual(['completed'])
    const [link = ''] = mails[0]?.links ?? []
    const opened = await open(link, line)
    expect([...(opened?.keys.values() ?? [])].toSorted()).toEqual(issued().toSorted())
    for (const key of issued())
      expect([...sees().mails, sees().page].some(({ text }) => text.includes(key))).toBe(false)
  })

  test('finds keys and link in the mail, where the store says both', async () => {
    const { sees, issued, app, orderId } = await bought('both')
    const completed = sees().mails.find(({ kind }) => kind === 'completed')
    for (const key of issued()) expect(completed?.text).toContain(key)
    expect(completed?.links).toHaveLength(1)
    const detail = 'The shop has sent the customer a note with the keys and the link to their page.'
    expect(await resendKeys(app.runtime.ordering, orderId, 'anna')).toEqual({ keys: 2, detail })
  })
})
