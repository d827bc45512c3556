/** Deliveries that are authentic and too old or too new: replays, slow senders, or a wrong clock on this machine. */
import { describe, expect, test } from 'vitest'
import { databaseFile, fileDatabase } from '../support/database.ts'
import { signedDelivery, timestampOf } from '../support/delivery.ts'
import { type Door, openDoor } from '../support/webhook-door.ts'

/** A delivery that is signed and `ageSeconds` old by the clock of the door. */
const aged = (door: Door, ageSeconds: number) =>
  signedDelivery({ timestamp: timestampOf(door.clock.now - ageSeconds * 1_000) })

const deliverAged = async (door: Door, ageSeconds: number) => (await door.deliver(aged(door, ageSeconds)))?.status

describe('a replay of a stored delivery after its time', () => {
  test('is answered 200 and changes nothing', async () => {
    const door = await openDoor()
    await door.deliver(signedDelivery())
    await door.process()
    const before = await door.rows()
    door.clock.now += 301_000
    for (let replay = 0; replay < 4; replay += 1) {
      expect((await door.deliver(signedDelivery()))?.status).toBe(200)
      door.clock.now += 60_000
    }
    // The delivery ID is outside the signature: another one makes it no other delivery.
    expect((await door.deliver(signedDelivery({ deliveryId: 'dlv_other' })))?.status).toBe(200)
    expect(await door.rows()).toEqual(before)
    expect(door.seen.earlySweeps).toBe(0)
    expect(await door.alerts()).toEqual([])
    expect(door.inbox.clockSuspect()).toBe(false)
    expect(door.inbox.traffic().get('supplier')?.count).toBe(1)
  })

  test('signed again long ago, under its own ID, is no news either', async () => {
    const door = await openDoor()
    await door.deliver(signedDelivery())
    expect(await deliverAged(door, 600)).toBe(200)
    expect(door.seen.earlySweeps).toBe(0)
  })

  test('is answered 503 while it cannot be read whether it was stored', async () => {
    const database = fileDatabase(databaseFile())
    const door = await openDoor({ database })
    await database.close()
    expect(await deliverAged(door, 600)).toBe(503)
    expect(door.seen.earlySweeps).toBe(0)
  })
})

describe('one captured stale delivery, replayed once a minute for an hour', () => {
  test('asks for one sweep, raises no alert and casts no doubt on the clock', async () => {
    const door = await openDoor()
    const captured = aged(door, 600)
    for (let minute = 0; minute < 60; minute += 1) {
      expect((await door.deliver(captured))?.status).toBe(401)
      door.clock.now += 60_000
    }
    expect(door.seen.earlySweeps).toBe(1)
    expect(await door.alerts()).toEqual([])
    expect(door.inbox.clockSuspect()).toBe(false)
    expect(door.seen.counts.filter((count) => count === 'stale:stale')).toHaveLength(1)
    expect(door.seen.counts.filter((count) => count === 'stale:repeated')).toHaveLength(59)
  })

  test('sixty copies at once are one', async () => {
    const door = await openDoor()
    const captured = aged(door, 600)
    const answers = await Promise.all(Array.from({ length: 60 }, () => door.deliver(captured)))
    expect(new Set(answers.map((answer) => answer?.status))).toEqual(new Set([401]))
    expect(door.seen.counts.filter((count) => count === 'stale:stale')).toHaveLength(1)
    expect(door.inbox.clockSuspect()).toBe(false)
  })
})

describe('a doubt about the clock', () => {
  test('begins with the third different stale delivery and ends with a fresh one', async () => {
    const door = await openDoor()
    for (const age of [600, 600, 600, 601, 601]) expect(await deliverAged(door, age)).toBe(401)
    expect(door.inbox.clockSuspect()).toBe(false)
    await deliverAged(door, 602)
    expect(door.inbox.clockSuspect()).toBe(true)
    await deliverAged(door, 0)
    expect(door.inbox.clockSuspect()).toBe(false)
  })

  test('does not begin while fresh ones came within ten minutes', async () => {
    const door = await openDoor()
    await door.deliver(signedDelivery())
    door.clock.now += 599_000
    for (const id of ['a', 'b', 'c']) await staleUnder(door, id)
    expect(door.inbox.clockSuspect()).toBe(false)
    door.clock.now += 1_000
    await staleUnder(door, 'd')
    expect(door.inbox.clockSuspect()).toBe(true)
    door.clock.now += 600_000
    expect(door.inbox.clockSuspect()).toBe(false)
  })

  test('raises one alert an hour, however many stale deliveries come', async () => {
    const door = await openDoor()
    const perHour: number[] = []
    for (let minute = 0; minute < 180; minute += 1) {
      await staleUnder(door, `dlv_${minute}`)
      if (minute % 60 === 59) perHour.push((await door.alerts()).length)
      door.clock.now += 60_000
    }
    expect(new Set(await door.alerts())).toEqual(new Set(['all_stale']))
    expect(perHour).toEqual([1, 2, 3])
  })

  test('that comes and goes raises no second alert within the hour', async () => {
    const door = await openDoor()
    for (let round = 0; round < 3; round += 1) {
      for (const id of ['a', 'b', 'c']) await staleUnder(door, `${id}${round}`)
      expect(door.inbox.clockSuspect()).toBe(true)
      await door.deliver(signedDelivery({ timestamp: timestampOf(door.clock.now) }))
      expect(door.inbox.clockSuspect()).toBe(false)
      door.clock.now += 11 * 60_000
    }
    expect(await door.alerts()).toEqual(['all_stale'])
  })

  test('asks for one sweep a minute', async () => {
    const door = await openDoor()
    for (const [n, wait] of [0, 1_000, 58_000, 1_000, 59_000].entries()) {
      door.clock.now += wait
      await staleUnder(door, `dlv_${n}`)
    }
    expect(door.seen.earlySweeps).toBe(2)
  })
})

/** A stale delivery unlike all others: with a body of its own. */
async function staleUnder(door: Door, id: string): Promise<void> {
  const timestamp = timestampOf(door.clock.now - 600_000)
  const body = { event: 'order.completed', data: { order_id: id } }
  expect((await door.deliver(signedDelivery({ timestamp, deliveryId: id, body })))?.status).toBe(401)
}
