import { describe, expect, it } from 'vitest'
import { refreshOffer } from '../../src/catalogue/offers.ts'
import { changesOfRun } from '../../src/storage/offers.ts'
import { idAt, listWorld, productRecord } from '../support/catalogue-world.ts'

const faults = [
  ['missing', { api_price: null }],
  ['missing', { api_price: 'a lot' }],
  ['zero', { api_price: '0.00' }],
  ['negative', { api_price: '-10.00' }],
  ['currency', { currency: 'USD', api_price: '3.00', base_price: '4.00' }],
] as const

describe('an offer whose cost cannot be believed', () => {
  it.each(faults)('keeps its last good cost beside the fault %s, and gets well again: %j', async (fault, fields) => {
    const { sync, list, offer, db, queued, woken, logged } = await listWorld(3)
    await sync()
    list.records[1] = productRecord(idAt(1), { ...fields, local_stock: 1 })
    const sick = await sync()
    expect(sick).toMatchObject({ state: 'complete', offersChanged: 1, offersUnreadable: 0 })
    expect(await offer(idAt(1))).toMatchObject({
      costFault: fault,
      costMinor: 1_000,
      basePriceMinor: 1_200,
      currency: 'EUR',
      localStock: 1,
    })
    expect(await db.query(changesOfRun(sick.id, '', 10))).toMatchObject([
      { productId: idAt(1), field: 'costFault', before: null, after: fault },
      { productId: idAt(1), field: 'localStock', before: '3', after: '1' },
    ])
    expect((await queued()).at(-1), 'the stores must take it out of sale').toEqual([idAt(1)])
    expect(logged('sync.complete').at(-1)).toMatchObject({ costFaults: 1 })
    const again = await sync()
    expect(again, 'the same fault is no news').toMatchObject({ offersChanged: 0 })
    expect(woken).toEqual([])

    list.records[1] = productRecord(idAt(1), { api_price: '15.00', local_stock: 1 })
    const well = await sync()
    expect(await offer(idAt(1))).toMatchObject({ costFault: null, costMinor: 1_500 })
    const fieldsFound = (await db.query(changesOfRun(well.id, '', 10))).map(({ field, before, after }) => [
      ...[field, before, after],
    ])
    expect(fieldsFound).toEqual([
      ['cost', '10.00', '15.00'],
      ['costFault', fault, null],
    ])
    expect((await queued()).at(-1)).toEqual([idAt(1)])
    expect(woken, 'what waited for a cost may go on').toEqual([idAt(1)])
  })

  it.each(faults)('has a cost of 0 where there never was a good one: %s', async (fault, fields) => {
    const { sync, list, offer, offers } = await listWorld(3)
    list.records[1] = productRecord(idAt(1), fields)
    expect(await sync()).toMatchObject({ state: 'complete', offersNew: 3, offersUnreadable: 0 })
    expect(await offer(idAt(1))).toMatchObject({ costFault: fault, costMinor: 0 })
    expect((await offers()).filter(({ costFault }) => costFault === null)).toHaveLength(2)
  })

  it('is found by an event as by a run', async () => {
    const { catalogue, sync, list, offer, queued } = await listWorld(2)
    await sync()
    list.records[0] = productRecord(idAt(0), { api_price: '0' })
    await refreshOffer(catalogue, idAt(0))
    expect(await offer(idAt(0))).toMatchObject({ costFault: 'zero', costMinor: 1_000 })
    expect((await queued()).at(-1)).toEqual([idAt(0)])
  })
})
