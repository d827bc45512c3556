/** What people do with one listing, and what is stored of it then. */
import { describe, expect, test } from 'vitest'
import { changeListing, type ListingChange } from '../../src/listings/actions.ts'
import { newListing } from '../../src/listings/assess.ts'
import { auditOf } from '../../src/storage/evidence.ts'
import { type ListingRow, listingsOfVariants, putListings } from '../../src/storage/listings.ts'
import { putOffer } from '../../src/storage/offers.ts'
import { memoryDatabase, TEST_NOW } from '../support/database.ts'
import { offerRow } from '../support/publish-world.ts'

const STORE = 's'
const asked = { store: STORE, variant: 'v1', actor: 'ann' }

/** A listing as it is stored, and what becomes of it. */
async function stored(set: Partial<ListingRow> | undefined) {
  const db = memoryDatabase()
  await db.commit([putOffer(offerRow('p1'))])
  const row = newListing(STORE, { variant: 'v1', sku: 'SKU-1', linkedBy: 'sku' }, 0)
  if (set) await db.commit(putListings([{ ...row, state: 'synced', version: 1, ...set }]))
  let ids = 0
  let wakes = 0
  const newId = () => {
    ids += 1
    return `id${ids}`
  }
  const wake = () => {
    wakes += 1
  }
  const linking = { db, now: () => TEST_NOW, newId, wake }
  const become = async (change: ListingChange) => {
    await changeListing(linking, asked, change)
    return (await db.query(listingsOfVariants(STORE, ['v1'])))[0]
  }
  return { become, wakes: () => wakes, audit: () => db.query(auditOf(`${STORE} v1`)) }
}

/** It is decided on next, and pushed whatever is known of it. */
const due = { state: 'pending', attempts: 0, nextTryAt: TEST_NOW } as const

const cases: [string, Partial<ListingRow> | undefined, ListingChange, Partial<ListingRow>][] = [
  [
    'linked keeps the SKU that its store has for it',
    { attempts: 3, nextTryAt: 9e15, state: 'failed' },
    { change: 'link', productId: 'p1' },
    { ...due, linkedBy: 'person', productId: 'p1', sku: 'SKU-1' },
  ],
  [
    'that is new has its variant for a SKU once it is linked',
    undefined,
    { change: 'link', productId: 'p1' },
    { ...due, sku: 'v1' },
  ],
  [
    'linked under a SKU has that one',
    {},
    { change: 'link', productId: 'p1', sku: 'OTHER', variation: '7' },
    { ...due, sku: 'OTHER', variation: '7' },
  ],
  [
    'that a person has linked goes by its SKU again, once that is taken back',
    { linkedBy: 'person', productId: 'p1' },
    { change: 'unlink' },
    { ...due, linkedBy: 'sku', productId: null },
  ],
  [
    'that a file has linked goes by its SKU again, once that is taken back',
    { linkedBy: 'csv', productId: 'p1' },
    { change: 'unlink' },
    { ...due, linkedBy: 'sku', productId: null },
  ],
  [
    'that is ignored stays so where its link is taken back',
    { linkedBy: 'csv', productId: 'p1', state: 'ignored' },
    { change: 'unlink' },
    { state: 'ignored', linkedBy: 'sku', productId: null },
  ],
  [
    'ignored has no price that waits, and no next try',
    { state: 'held', wantedPriceMinor: 900, nextTryAt: TEST_NOW },
    { change: 'ignore', reason: 'we sell it elsewhere' },
    { state: 'ignored', wantedPriceMinor: null, nextTryAt: null, detail: 'we sell it elsewhere' },
  ],
  [
    'ignored no more is decided on',
    { state: 'ignored', reason: 'ignored' },
    { change: 'unignore' },
    { ...due, reason: null },
  ],
  [
    'released has the price that was shown approved, and none that waits',
    { state: 'held', reason: 'price_jump', wantedPriceMinor: 900, knownCurrency: 'EUR' },
    { change: 'release', price: '9.00', reason: 'it is right' },
    { ...due, approvedPriceMinor: 900, wantedPriceMinor: null, reason: null },
  ],
  [
    'that failed five times is tried at once, and waits from the shortest again',
    { state: 'failed', attempts: 5, nextTryAt: 9e15 },
    { change: 'retry' },
    { state: 'failed', attempts: 1, nextTryAt: TEST_NOW },
  ],
  ['that did not fail is pushed once more', {}, { change: 'retry' }, due],
]

test.each(cases)('a listing %s', async (_, set, change, after) => {
  const { become, wakes, audit } = await stored(set)
  expect(await become(change)).toMatchObject({ ...after, version: set ? 2 : 1 })
  expect(wakes()).toBe(1)
  expect(await audit()).toMatchObject([{ action: `listing.${change.change}`, actor: 'ann' }])
})

const refusals: [string, Partial<ListingRow> | undefined, ListingChange, string][] = [
  ['that is none', undefined, { change: 'retry' }, 'not_found'],
  ['that has no link to take back', {}, { change: 'unlink' }, 'not_linked'],
  ['that is not ignored, to ignore it no more', {}, { change: 'unignore' }, 'not_ignored'],
  ['that is ignored, to try it again', { state: 'ignored' }, { change: 'retry' }, 'ignored'],
  [
    'whose waiting price is another one by now',
    { state: 'held', wantedPriceMinor: 901, knownCurrency: 'EUR' },
    { change: 'release', price: '9.00', reason: 'it is right' },
    'changed',
  ],
  [
    'that is ignored, to release its price',
    { state: 'ignored', wantedPriceMinor: 900, knownCurrency: 'EUR' },
    { change: 'release', price: '9.00', reason: 'it is right' },
    'not_held',
  ],
  ['without a price that waits', { state: 'held' }, { change: 'release', price: '9.00', reason: 'x' }, 'not_held'],
  ['to a product that the supplier does not have', {}, { change: 'link', productId: 'p9' }, 'not_found'],
]

describe('refused is a change of a listing', () => {
  test.each(refusals)('%s', async (_, set, change, why) => {
    const { become, wakes, audit } = await stored(set)
    const error = await become(change).catch(({ code, reason }: { code: string; reason?: string }) => reason ?? code)
    expect(error).toBe(why)
    expect([wakes(), await audit()]).toEqual([0, []])
  })
})
