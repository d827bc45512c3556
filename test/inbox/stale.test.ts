/** Deliveries that are authentic and too old or too new: replays, slow senders, or a wrong clock on this machine. */
import { describe, expect, test } from 'vitest'
import { databaseFile, fileDatabase } from '../support/database.ts'
import { signedDelivery, timestampOf } from '../support/delivery.ts'
import { openEndpoint, type WebhookEndpoint } from '../support/webhook-endpoint.ts'

/** A delivery that is signed and `ageSeconds` old by the clock of the endpoint. */
const aged = (endpoint: WebhookEndpoint, ageSeconds: number) =>
  signedDelivery({ timestamp: timestampOf(endpoint.clock.now - ageSeconds * 1_000) })

const deliverAged = async (endpoint: WebhookEndpoint, ageSeconds: number) =>
  (await endpoint.deliver(aged(endpoint, ageSeconds)))?.status

describe('a replay of a stored delivery after its time', () => {
  test('is answered 200 and changes nothing', async () => {
    const endpoint = await openEndpoint()
    await endpoint.deliver(signedDelivery())
    await endpoint.process()
    const before = await endpoint.rows()
    endpoint.clock.now += 301_000
    for (let replay = 0; replay < 4; replay += 1) {
      expect((await endpoint.deliver(signedDelivery()))?.status).toBe(200)
      endpoint.clock.now += 60_000
    }
    // The delivery ID is outside the signature: another one makes it no other delivery.
    expect((await endpoint.deliver(signedDelivery({ deliveryId: 'dlv_other' })))?.status).toBe(200)
    expect(await endpoint.rows()).toEqual(before)
    expect(endpoint.seen.earlySweeps).toBe(0)
    expect(await endpoint.alerts()).toEqual([])
    expect(endpoint.inbox.clockSuspect()).toBe(false)
    expect(endpoint.inbox.traffic().get('supplier')?.count).toBe(1)
  })

  test('signed again long ago, under its own ID, is no news either', async () => {
    const endpoint = await openEndpoint()
    await endpoint.deliver(signedDelivery())
    expect(await deliverAged(endpoint, 600)).toBe(200)
    expect(endpoint.seen.earlySweeps).toBe(0)
  })

  test('is answered 503 while it cannot be read whether it was stored', async () => {
    const database = fileDatabase(databaseFile())
    const endpoint = await openEndpoint({ database })
    await database.close()
    expect(await deliverAged(endpoint, 600)).toBe(503)
    expect(endpoint.seen.earlySweeps).toBe(0)
  })
})

test('three stale deliveries cast a doubt on the clock where they came within ten minutes, and no two of them do', async () => {
  const endpoint = await openEndpoint()
  const doubts: boolean[] = []
  for (const [minutes, age] of [
    [0, 600],
    [6, 601],
    [5, 602],
    [4, 603],
  ] as const) {
    endpoint.clock.now += minutes * 60_000
    await deliverAged(endpoint, age)
    doubts.push(endpoint.inbox.clockSuspect())
  }
  // The first is eleven minutes before the third; the last three are within nine.
  expect(doubts).toEqual([false, false, false, true])
})

describe('one captured stale delivery, replayed once a minute for an hour', () => {
  test('asks for one sweep, raises no alert and casts no doubt on the clock', async () => {
    const endpoint = await openEndpoint()
    const captured = aged(endpoint, 600)
    for (let minute = 0; minute < 60; minute += 1) {
      expect((await endpoint.deliver(captured))?.status).toBe(401)
      endpoint.clock.now += 60_000
    }
    expect(endpoint.seen.earlySweeps).toBe(1)
    expect(await endpoint.alerts()).toEqual([])
    expect(endpoint.inbox.clockSuspect()).toBe(false)
    expect(endpoint.seen.counts.filter((count) => count === 'stale:stale')).toHaveLength(1)
    expect(endpoint.seen.counts.filter((count) => count === 'stale:repeated')).toHaveLength(59)
  })

  test('is known among a hundred others, whose replays count for as little', async () => {
    const endpoint = await openEndpoint()
    for (const _round of [1, 2]) {
      for (let n = 0; n < 100; n += 1) await staleUnder(endpoint, `dlv_${n}`, 600_000 + n * 1_000)
    }
    const counts = (text: string) => endpoint.seen.counts.filter((count) => count === text).length
    expect([counts('stale:stale'), counts('stale:repeated')]).toEqual([100, 100])
  })

  test('sixty copies at once are one', async () => {
    const endpoint = await openEndpoint()
    const captured = aged(endpoint, 600)
    const answers = await Promise.all(Array.from({ length: 60 }, () => endpoint.deliver(captured)))
    expect(new Set(answers.map((answer) => answer?.status))).toEqual(new Set([401]))
    expect(endpoint.seen.counts.filter((count) => count === 'stale:stale')).toHaveLength(1)
    expect(endpoint.inbox.clockSuspect()).toBe(false)
  })
})

describe('a doubt about the clock', () => {
  test('begins with the third different stale delivery and ends with a fresh one', async () => {
    const endpoint = await openEndpoint()
    for (const age of [600, 600, 600, 601, 601]) expect(await deliverAged(endpoint, age)).toBe(401)
    expect(endpoint.inbox.clockSuspect()).toBe(false)
    await deliverAged(endpoint, 602)
    expect(endpoint.inbox.clockSuspect()).toBe(true)
    await deliverAged(endpoint, 0)
    expect(endpoint.inbox.clockSuspect()).toBe(false)
  })

  test('does not begin while fresh ones came within ten minutes', async () => {
    const endpoint = await openEndpoint()
    await endpoint.deliver(signedDelivery())
    endpoint.clock.now += 599_000
    for (const id of ['a', 'b', 'c']) await staleUnder(endpoint, id)
    expect(endpoint.inbox.clockSuspect()).toBe(false)
    endpoint.clock.now += 1_000
    await staleUnder(endpoint, 'd')
    expect(endpoint.inbox.clockSuspect()).toBe(true)
    endpoint.clock.now += 600_000
    expect(endpoint.inbox.clockSuspect()).toBe(false)
  })

  test('raises one alert an hour, however many stale deliveries come', async () => {
    const endpoint = await openEndpoint()
    const perHour: number[] = []
    for (let minute = 0; minute < 180; minute += 1) {
      await staleUnder(endpoint, `dlv_${minute}`)
      if (minute % 60 === 59) perHour.push((await endpoint.alerts()).length)
      endpoint.clock.now += 60_000
    }
    expect(new Set(await endpoint.alerts())).toEqual(new Set(['all_stale']))
    expect(perHour).toEqual([1, 2, 3])
  })

  test('that comes and goes raises no second alert within the hour', async () => {
    const endpoint = await openEndpoint()
    for (let round = 0; round < 3; round += 1) {
      for (const id of ['a', 'b', 'c']) await staleUnder(endpoint, `${id}${round}`)
      expect(endpoint.inbox.clockSuspect()).toBe(true)
      await endpoint.deliver(signedDelivery({ timestamp: timestampOf(endpoint.clock.now) }))
      expect(endpoint.inbox.clockSuspect()).toBe(false)
      endpoint.clock.now += 11 * 60_000
    }
    expect(await endpoint.alerts()).toEqual(['all_stale'])
  })

  test('is neither silent nor over because the clock was put back by a day', async () => {
    const endpoint = await openEndpoint()
    for (const id of ['a', 'b', 'c']) await staleUnder(endpoint, id)
    await endpoint.deliver(signedDelivery({ timestamp: timestampOf(endpoint.clock.now) }))
    expect([(await endpoint.alerts()).length, endpoint.seen.earlySweeps]).toEqual([1, 1])
    endpoint.clock.now -= 24 * 60 * 60_000
    for (const id of ['d', 'e', 'f']) await staleUnder(endpoint, id)
    expect(endpoint.inbox.clockSuspect()).toBe(true)
    expect([(await endpoint.alerts()).length, endpoint.seen.earlySweeps]).toEqual([2, 2])
  })

  test('asks for one sweep a minute', async () => {
    const endpoint = await openEndpoint()
    for (const [n, wait] of [0, 1_000, 58_000, 1_000, 59_000].entries()) {
      endpoint.clock.now += wait
      await staleUnder(endpoint, `dlv_${n}`)
    }
    expect(endpoint.seen.earlySweeps).toBe(2)
  })
})

/** A stale delivery unlike all others: with a body of its own. */
async function staleUnder(endpoint: WebhookEndpoint, id: string, ageMs = 600_000): Promise<void> {
  const timestamp = timestampOf(endpoint.clock.now - ageMs)
  const body = { event: 'order.completed', data: { order_id: id } }
  expect((await endpoint.deliver(signedDelivery({ timestamp, deliveryId: id, body })))?.status).toBe(401)
}
