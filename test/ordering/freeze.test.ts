/** Many purchases that come into review: from which on all buying stops. */
import { expect, test } from 'vitest'
import { unfreeze } from '../../src/ordering/actions.ts'
import { freezeForReviews } from '../../src/ordering/freeze.ts'
import { insertTransition } from '../../src/storage/evidence.ts'
import { currentFreeze } from '../../src/storage/freezes.ts'
import { openTestApp } from '../support/test-app.ts'

const HOUR = 3_600_000

/** An app with so many purchases, which come into review when a test says so. */
async function openReviewed(purchases: number) {
  const app = await openTestApp()
  const ids: string[] = []
  for (let number = 0; number < purchases; number += 1) {
    ids.push((await app.purchase(await app.buy(String(1_000 + number)))).id)
  }
  const reviewed = async (place: number, row = 'keys_short') => {
    const purchaseId = ids[place] ?? ''
    const freezes = await freezeForReviews(app.ordering, purchaseId, row)
    const moved = { input: 'read', row, before: 'accepted', after: 'review', actor: null, detail: null } as const
    await app.db.commit([
      ...freezes,
      insertTransition({ id: app.ordering.newId(), purchaseId, at: app.now(), ...moved }),
    ])
    return (await currentFreeze(app.db))?.reason
  }
  return { app, reviewed }
}

test('the fourth purchase within an hour stops buying; one that comes again is no other one', async () => {
  const { app, reviewed } = await openReviewed(5)
  for (const place of [0, 1, 2, 2, 1]) expect(await reviewed(place)).toBeUndefined()
  expect(await reviewed(3, 'cancelled_before_hand_over'), 'it leaves no money in doubt').toBeUndefined()
  expect(await reviewed(4)).toBe("4 purchases within an hour need a person's decision")
  expect(await app.alerts()).toEqual(['freeze'])
})

test('those before the hour, and before buying was released, do not count', async () => {
  const { app, reviewed } = await openReviewed(8)
  for (const place of [0, 1, 2]) await reviewed(place)
  app.move(HOUR + 1)
  expect(await reviewed(3)).toBeUndefined()
  for (const place of [4, 5]) await reviewed(place)
  expect(await reviewed(6)).toContain('need a person')
  app.move(1)
  await unfreeze(app.ordering, 'ann')
  app.move(1)
  expect(await reviewed(7), 'a person has seen the others').toBeUndefined()
})

test('five of the last hundred purchases stop buying, however long ago they came into review', async () => {
  const { app, reviewed } = await openReviewed(6)
  for (const place of [0, 1, 2, 3]) {
    expect(await reviewed(place)).toBeUndefined()
    app.move(2 * HOUR)
  }
  expect(await reviewed(4)).toBe("5 of the last 100 purchases need a person's decision")
  app.move(1)
  await unfreeze(app.ordering, 'ann')
  app.move(2 * HOUR)
  expect(await reviewed(5)).toBeUndefined()
})
