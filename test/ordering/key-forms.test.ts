/** Licence keys that are written in several ways, or are no text: what is stored of them, and what reaches the store. */
import { describe, expect, test } from 'vitest'
import { viewOrder } from '../../src/ordering/order-view.ts'
import { indexKeysAgain } from '../../src/ordering/recover.ts'
import { keysOfPurchases } from '../../src/storage/licence-keys.ts'
import { licenceKeys } from '../../src/storage/schema.ts'
import { build } from '../../src/storage/statement.ts'
import type { StatedOrder } from '../support/changed-answers.ts'
import { decide, known } from '../support/reviews.ts'
import { first, openTestApp, type TestApp } from '../support/test-app.ts'

const MINUTE = 60_000
const SHOWN = 'user: one\npass: two'

const keysAt = ({ shop }: TestApp): string[] => [...shop.keys().values()].flat()
const stored = async ({ db, purchases }: TestApp, orderId: string) =>
  db.query(keysOfPurchases((await purchases(orderId)).map(({ id }) => id)))

/** An app whose supplier writes the keys of its orders in the way that `written.keys` says, by their places. */
async function openWriting(...keys: string[]) {
  const written = { keys }
  const stated = (order: StatedOrder): void => {
    order.keys = order.keys.map((key, place) => written.keys[place] ?? key)
  }
  return { app: await openTestApp({ stated }), written }
}

describe('a key that comes in several forms', () => {
  test.each([
    { as: 'other line ends', before: 'user: one\r\npass: two', after: SHOWN },
    { as: 'a line end more', before: SHOWN, after: `${SHOWN}\n` },
    { as: 'blanks around it', before: SHOWN, after: `  ${SHOWN} ` },
  ])('is one key where a later reading shows it with $as, and the order is not short of one', async (form) => {
    const { app, written } = await openWriting(form.before)
    app.sandbox.faults.add({ fault: 'partial-keys', first: 1, status: 'open', delayMs: 10 * MINUTE })
    const orderId = await app.buy('1001', { quantity: 2 })
    await app.pass(5 * MINUTE)
    expect(keysAt(app)).toEqual([SHOWN])
    written.keys = [form.after]
    await app.pass(30 * MINUTE)
    expect(await app.purchase(orderId)).toMatchObject({ state: 'fulfilled' })
    expect(await stored(app, orderId)).toHaveLength(2)
    expect(keysAt(app)).toHaveLength(2)
    expect(await app.alerts()).toEqual([])
  })

  test('is seen on another line although it is written in another way there', async () => {
    const { app, written } = await openWriting('AAAA-BBBB ')
    await app.buy('1001')
    await app.pass(MINUTE)
    written.keys = ['AAAA-BBBB']
    const orderId = await app.buy('1002')
    await app.pass(MINUTE)
    expect(await app.purchase(orderId)).toMatchObject({ state: 'review' })
    expect(await app.alerts()).toEqual(['key_seen_elsewhere'])
    expect(keysAt(app)).toEqual(['AAAA-BBBB'])
  })
})

describe('a key that an earlier version stored as it came', () => {
  const CAME = ' AAAA-BBBB\r\n'

  async function openEarlier() {
    const { app, written } = await openWriting('AAAA-BBBB')
    const orderId = await app.buy('1001')
    await app.pass(MINUTE)
    const { purchaseId, ordinal } = first(await stored(app, orderId))
    const sealed = app.vault.seal({ table: 'licence_keys', row: purchaseId, ordinal }, CAME)
    const set = { ...sealed, blindIndex: app.vault.blindIndex(CAME) }
    await app.db.commit([{ statement: build.update(licenceKeys).set(set), rows: 1 }])
    return { app, written, orderId }
  }

  test.each([
    { written: 'as it came', as: CAME, isIndexed: false },
    { written: 'as it came, and all are indexed again', as: CAME, isIndexed: true },
    { written: 'in another form, once all are indexed again', as: 'AAAA-BBBB', isIndexed: true },
  ])('is seen on another line that has it $written', async ({ as, isIndexed }) => {
    const { app, written } = await openEarlier()
    if (isIndexed) await indexKeysAgain(app.ordering)
    written.keys = [as]
    const orderId = await app.buy('1002')
    await app.pass(MINUTE)
    expect(await app.purchase(orderId)).toMatchObject({ state: 'review' })
    expect(await app.alerts()).toEqual(['key_seen_elsewhere'])
  })

  test('is shown and delivered in its normal form, and indexed again once', async () => {
    const { app, orderId } = await openEarlier()
    const { lines } = await viewOrder(app.ordering, orderId, { keys: true })
    expect(lines.flatMap(({ keys }) => keys)).toEqual(['AAAA-BBBB'])
    await indexKeysAgain(app.ordering)
    const [key] = await stored(app, orderId)
    expect(key?.blindIndex).toEqual(app.vault.blindIndex('AAAA-BBBB'))
    const refusing = { ...app.vault, open: () => expect.unreachable('no key is opened a second time') }
    await indexKeysAgain({ ...app.ordering, vault: refusing })
  })
})

describe('a key that is no text', () => {
  const PICTURE = 'iVBORw0KGgoAAAANSUhEUgAAABkAAAAZCAYAAADE6YVjAAAADklEQVR4nGNgGAWDEwAAAhkAAcW9fWkAAAAASUVORK5CYII='

  test.each([
    { is: 'a picture in base64', key: PICTURE },
    { is: 'a data URL', key: `data:image/png;base64,${PICTURE}` },
    { is: '600 characters long', key: 'A1'.repeat(300) },
  ])('goes to a person and to no customer: $is', async ({ key }) => {
    const { app } = await openWriting('AAAA-BBBB', key)
    const orderId = await app.buy('1001', { quantity: 2 })
    await app.pass(30 * MINUTE)
    const waiting = await app.purchase(orderId)
    expect(waiting).toMatchObject({ state: 'review', note: expect.stringContaining('no text') })
    expect(await app.alerts()).toEqual(['keys_not_text'])
    expect(await stored(app, orderId)).toEqual([])
    await expect(decide(app, orderId, { type: 'hand_over' })).rejects.toMatchObject({ reason: 'no_keys' })
    await decide(app, orderId, { type: 'adopt', orderId: first(known(app)).id })
    await app.pass(30 * MINUTE)
    expect(await app.purchase(orderId), 'it is no text when it is read again').toMatchObject({ state: 'review' })
    expect(keysAt(app)).toEqual([])
    await decide(app, orderId, { type: 'close' })
    await app.pass(30 * MINUTE)
    expect(keysAt(app)).toEqual([])
    expect(await app.state(orderId)).toBe('cancelled')
  })
})
