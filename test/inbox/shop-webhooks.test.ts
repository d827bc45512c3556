/** The webhooks that shops are asked to make for us. */
import { expect, test } from 'vitest'
import { provisionShops } from '../../src/inbox/webhooks.ts'
import { createLog } from '../../src/log.ts'
import { listOutbox } from '../../src/storage/outbox.ts'
import type { Store } from '../../src/stores/store.ts'
import { memoryDatabase, TEST_NOW } from '../support/database.ts'

type Provided = Awaited<ReturnType<NonNullable<Store['provision']>>>

const DAY = 24 * 3_600_000

function openShops(publicUrl: string | null = 'https://quayside.example') {
  const clock = { at: TEST_NOW }
  const now = () => clock.at
  const db = memoryDatabase()
  const asked: string[] = []
  const answers: Record<string, Provided> = {
    open: { outcome: 'confirmed', detail: null },
    refusing: { outcome: 'refused', status: 401, detail: 'the key may not write' },
    away: { outcome: 'unavailable', mayHaveLeft: false, detail: 'cannot be reached' },
    last: { outcome: 'confirmed', detail: 'made again' },
  }
  const log = createLog({ level: 'error', write: () => {} })
  let ids = 0
  const newId = () => `id${String(++ids).padStart(3, '0')}`
  const storeOf = (id: string) => ({
    provision: async (url: string) => {
      asked.push(url)
      return answers[id] as Provided
    },
  })
  const stores = [...Object.keys(answers), 'backend'].map((id) => ({ id }))
  const provided = (id: string) => (id === 'backend' ? {} : storeOf(id))
  return {
    asked,
    clock,
    provision: () => provisionShops({ db, now, newId, log, publicUrl, stores, storeOf: provided }),
    alerts: async () =>
      (await db.query(listOutbox({ kind: 'alert', limit: 100 }))).map(({ type, payload }) => [type, payload]),
  }
}

test('every shop is asked to send its orders to a path of its own; one that refuses is alerted of once a day', async () => {
  const { asked, clock, provision, alerts } = openShops()
  await provision()
  expect(asked).toEqual(
    ['open', 'refusing', 'away', 'last'].map((id) => `https://quayside.example/webhooks/stores/${id}`),
  )
  const note = 'refusing does not let Quayside make its webhook, so its orders are only polled: the key may not write'
  expect(await alerts()).toEqual([['store_webhook', { note, store: 'refusing' }]])
  clock.at += DAY - (TEST_NOW % DAY) - 1
  await provision()
  expect(await alerts()).toHaveLength(1)
  clock.at += 1
  await provision()
  expect(await alerts()).toHaveLength(2)
})

test('no shop is asked where none can reach us', async () => {
  const { asked, provision } = openShops(null)
  await provision()
  expect(asked).toEqual([])
})
