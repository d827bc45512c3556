import { expect, it } from 'vitest'
import { refreshOffer } from '../../src/catalogue/offers.ts'
import { markOutOfStock } from '../../src/storage/offers.ts'
import { idAt, listWorld, productRecord } from '../support/catalogue-world.ts'

it('a new cost was kept out for as long as another field of the record could not be read', async () => {
  const { catalogue, sync, list, offer, queued, logged } = await listWorld(20)
  await sync()
  const odd: Record<string, unknown>[] = [
    ...[{ base_price: 'n/a' }, { base_price: '-1.00' }, { base_price: '12.005' }, { cashback: 'x' }],
    ...[{ local_stock: -1 }, { local_stock: 'many' }, { provider_stock: 3.5 }, { updated_at: 'yesterday' }],
    ...[{ category: 7 }, { category: { id: 1 } }, { fulfillment_origin: 3 }],
  ]
  for (const [place, fields] of odd.entries()) {
    list.records[place] = productRecord(idAt(place), { api_price: '20.00', ...fields })
  }
  list.records[11] = productRecord(idAt(11), { api_price: '20.00', name: 7 })
  expect(await sync()).toMatchObject({ state: 'complete', error: null, offersUnreadable: 1, offersChanged: 11 })
  for (const [place, fields] of odd.entries()) {
    expect(await offer(idAt(place)), JSON.stringify(fields)).toMatchObject({ costMinor: 2_000, costFault: null })
  }
  expect(await offer(idAt(0)), 'not stated').toMatchObject({ basePriceMinor: null, cashbackMinor: 10 })
  expect(await offer(idAt(5)), 'never more than is known').toMatchObject({ localStock: 0, providerStock: 4 })
  expect(await offer(idAt(6))).toMatchObject({ localStock: 3, providerStock: 0 })
  expect(await offer(idAt(11)), 'no name: not read').toMatchObject({ costMinor: 1_000 })
  expect((await queued()).at(-1)).toEqual([idAt(10)])
  expect(logged('sync.complete').at(-1)).toMatchObject({
    fieldsUnreadable:
      `base_price: 3, first of ${idAt(0)}; cashback: 1, first of ${idAt(3)}; local_stock: 2, first of ${idAt(4)}; ` +
      `provider_stock: 1, first of ${idAt(6)}; updated_at: 1, first of ${idAt(7)}; category: 2, first of ${idAt(8)}; ` +
      `fulfillment_origin: 1, first of ${idAt(10)}`,
  })
  await refreshOffer(catalogue, idAt(0))
  expect(logged('offer.refreshed').at(-1)).toMatchObject({ outcome: 'same', fieldsUnreadable: 'base_price' })
})

it('a stock that moved was kept out once an unreadable instant had been dated by its request', async () => {
  const { sync, list, offer, clock } = await listWorld(3)
  const dated = (fields: Record<string, unknown>) => productRecord(idAt(1), { updated_at: iso(clock.at), ...fields })
  list.records[1] = dated({})
  const first = list.records[1]
  await sync()
  list.records[1] = { ...first, updated_at: 'soon', local_stock: 2 }
  list.records.push(productRecord(idAt(3), { updated_at: 'soon' }))
  await sync()
  expect(await offer(idAt(1))).toMatchObject({ localStock: 2 })
  // The instant of before stands in the record again: only the stock has moved.
  list.records[1] = { ...first, local_stock: 1 }
  list.records[3] = productRecord(idAt(3), { updated_at: first?.updated_at, local_stock: 1 })
  await sync()
  expect(await offer(idAt(1))).toMatchObject({ localStock: 1, asOf: Date.parse(String(first?.updated_at)) })
  expect(await offer(idAt(3))).toMatchObject({ localStock: 1 })
})

it('a run that could read no record of the list ended as complete, with the prices of yesterday', async () => {
  const { sync, list, logged, offer } = await listWorld(20)
  await sync()
  const { records } = list
  list.records = records.map((record) => ({ ...record, api_price: '99.00', name: 7 }))
  const run = await sync()
  expect(run).toMatchObject({ state: 'failed', offersSeen: 0, offersUnreadable: 20, offersGone: 0 })
  expect(run.error).toContain('nothing that can be read')
  expect(logged('sync.failed')).toHaveLength(1)
  expect(await offer(idAt(3))).toMatchObject({ costMinor: 1_000, missedRuns: 0 })
  list.records = []
  expect(await sync(), 'an empty list is none that cannot be read').toMatchObject({ state: 'complete' })
})

it('every offer of a supplier that says "yes" and "no" was unreadable, and nothing named the field', async () => {
  const words = ['yes', 'no', 'few']
  const spoken = (list: { records: Record<string, unknown>[] }) => {
    list.records = list.records.map((record, place) => ({ ...record, available: words[place % 3] }))
  }
  const plain = await listWorld(12)
  spoken(plain.list)
  const run = await plain.sync()
  expect(run).toMatchObject({ state: 'failed', offersUnreadable: 12 })
  const first = { field: 'product.available', path: 'available', value: '"yes"' }
  expect(run.firstUnreadable).toEqual(first)

  const { sync, list, offer } = await listWorld(12, { flags: { available: { yes: true, few: true, no: false } } })
  spoken(list)
  expect(await sync()).toMatchObject({ state: 'complete', error: null, offersUnreadable: 0, firstUnreadable: null })
  expect(await offer(idAt(0))).toMatchObject({ available: true })
  expect(await offer(idAt(1))).toMatchObject({ available: false })
  list.records[4] = productRecord(idAt(4), { available: 'perhaps' })
  list.records[5] = productRecord(idAt(5), { available: true })
  const odd = await sync()
  expect(odd, 'a word that is not listed is never a guess').toMatchObject({ state: 'complete', offersUnreadable: 2 })
  expect(odd.firstUnreadable).toMatchObject({ value: '"perhaps"' })
})

it('what a purchase found empty was on sale again by a page that had been asked for before', async () => {
  const { sync, offer, clock, db, hooks } = await listWorld(5)
  await sync()
  let found: Promise<unknown> | undefined
  hooks.tamper = () => {
    clock.at += 10
    found = db.commit([markOutOfStock(idAt(2), clock.at)])
  }
  await sync()
  await found
  expect(await offer(idAt(2))).toMatchObject({ available: false })
  delete hooks.tamper
  await sync()
  expect(await offer(idAt(2)), 'asked for since').toMatchObject({ available: true })
})

const iso = (at: number): string => new Date(at).toISOString()
