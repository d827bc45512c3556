/** Situations that the supplier brings about. */
import {
  bentLists,
  keyOfAnother,
  keysAsPictures,
  listedTwice,
  notFound,
  nowFailedWithKeys,
  oneKeyMore,
  otherQuantity,
} from './fault-answers.ts'
import { allOf, isList, isRead, onRoad, type Story, stockAll, storeDown } from './story.ts'
import { HOUR, MINUTE } from './world.ts'

const SECOND = 1_000

const bentList: Story = {
  id: 'wrong list',
  what: 'the answers to orders are lost, and the list that is then looked at is wrong in one way',
  aims: ['found_one_that_disagrees in unknown', 'found_several in unknown', 'found_after_the_end in rejected'],
  begin: (scene) => {
    const { chance } = scene
    const bend = chance.pick(bentLists(scene.world))
    return onRoad(scene, (trip) => {
      if (trip.key !== undefined && chance.odds(0.5)) trip.answer = 'silence'
      if (isList(trip) && chance.odds(0.8)) trip.changes.push(bend)
    })
  },
}

const bentReads: Story = {
  id: 'wrong orders',
  what: 'orders that are read are wrong in one way, most of the time',
  aims: ['key_seen_elsewhere', 'too_many_keys', 'failed_with_keys', 'keys_not_text'].map((row) => `${row} in accepted`),
  begin: (scene) => {
    const { world, chance } = scene
    const { supplier, timeline } = world
    const kind = chance.pick(['more', 'elsewhere', 'failed', 'quantity', 'pictures'] as const)
    supplier.waits.add(MINUTE)
    if (kind === 'failed') {
      supplier.faults.add({ fault: 'partial-keys', times: 9, first: 1, delayMs: MINUTE, status: 'open' })
    }
    const reads = new Map<string, number>()
    return onRoad(scene, (trip) => {
      if (!isRead(trip)) return
      const before = reads.get(trip.asked.path) ?? 0
      reads.set(trip.asked.path, before + 1)
      // What failed with keys must have shown one first, and a restore forgets that it has.
      if (kind === 'failed' ? before < 2 || world.restoredAt !== undefined : !chance.odds(0.6)) return
      if (kind === 'more') trip.changes.push(oneKeyMore(timeline.now()))
      if (kind === 'elsewhere') trip.changes.push(keyOfAnother(world))
      if (kind === 'failed' && chance.odds(0.5)) trip.changes.push(nowFailedWithKeys)
      if (kind === 'quantity') trip.changes.push(otherQuantity)
      if (kind === 'pictures') trip.changes.push(keysAsPictures)
    })
  },
}

const secondOrders: Story = {
  id: 'second orders',
  what: 'the list shows each order twice, while purchases wait for the store, for a person or for their keys',
  aims: ['accepted', 'completed', 'fulfilled', 'review'].map((state) => `double_charge in ${state}`),
  begin: (scene) => {
    const { world, chance } = scene
    const { supplier, timeline } = world
    const kind = chance.pick(['completed', 'review', 'accepted', 'fulfilled'] as const)
    if (kind === 'accepted') supplier.faults.add({ fault: 'hold-open', times: 9 })
    const ends = [
      onRoad(scene, (trip) => {
        if (isList(trip) && chance.odds(0.5)) trip.changes.push(listedTwice)
        if (kind === 'review' && isRead(trip)) trip.changes.push(oneKeyMore(timeline.now()))
      }),
    ]
    if (kind === 'completed') ends.push(storeDown(scene))
    return allOf(ends)
  },
}

const behindTheList: Story = {
  id: 'sold out behind the list',
  what: 'an order runs, its answer is lost, the shelf is empty for repeats, and the list shows it minutes later',
  aims: ['found_in_review in review', 'found_after_the_end in cancelled', 'completed_while_held in accepted'],
  // A supplier that forgets keys early and lists late: what ran is unknown. An older copy of the database lacks the key as well.
  without: ['F9', 'F19'],
  temper: { everyMs: 2 * MINUTE, retries: 2 },
  begin: (scene) => {
    const { world, chance, customers } = scene
    const { supplier, timeline, lag } = world
    supplier.settings.stockBeforeKey = true
    lag.leastMs = 9 * MINUTE
    lag.mostMs = 10 * MINUTE
    const cancels = chance.odds(0.5)
    let over = false
    const stock = (pieces: number) => (over ? undefined : stockAll(scene, pieces))
    const seen = new Set<string>()
    const end = onRoad(scene, (trip) => {
      if (trip.key === undefined || seen.has(trip.key) || !chance.odds(0.7)) return
      seen.add(trip.key)
      trip.answer = 'silence'
      timeline.after(SECOND, () => stock(0))
      timeline.after(7 * MINUTE, () => stock(200))
      const reference = /"q1\.[^."]+\.([^."]+)\./.exec(trip.asked.body)?.[1]
      const placed = customers.placed.find((one) => one.reference === reference)
      if (placed && cancels && chance.odds(0.5)) {
        timeline.after(chance.between(1, 180) * SECOND, () => void customers.cancel(placed))
      }
    })
    return () => {
      over = true
      end()
      supplier.settings.stockBeforeKey = false
      lag.leastMs = 0
      lag.mostMs = lag.usualMs
    }
  },
}

const lateAndForgotten: Story = {
  id: 'late and forgotten',
  what: 'orders run as late as they may, show in the list as late as they may, and their keys are forgotten at once',
  aims: ['found in unknown', 'ambiguous in sending'],
  needs: ['F19'],
  // Whatever makes requests or the list later than this breaks what the promises rest on.
  without: ['F13', 'F22'],
  prepare: (settings) => {
    settings.supplier.idempotencyMemorySeconds = 0
    settings.listLagMs = 59_000
  },
  begin: (scene) => {
    const { world, chance } = scene
    world.lag.leastMs = 50_000
    const end = onRoad(scene, (trip) => {
      if (trip.key !== undefined && chance.odds(0.6)) trip.travelMs = chance.between(60, 68) * SECOND
    })
    return () => {
      end()
      world.lag.leastMs = 0
    }
  },
}

const goneHalfWay: Story = {
  id: 'gone half-way',
  what: 'an order shows one key, and then the supplier knows no such order',
  aims: ['handed_over in accepted', 'closed in accepted', 'bought_again in accepted', 'missing in accepted'],
  begin: (scene) => {
    const { supplier } = scene.world
    supplier.waits.add(40 * MINUTE)
    supplier.faults.add({ fault: 'partial-keys', times: 9, first: 1, delayMs: 40 * MINUTE, status: 'open' })
    const reads = new Map<string, number>()
    return onRoad(scene, (trip) => {
      if (!isRead(trip)) return
      const before = reads.get(trip.asked.path) ?? 0
      reads.set(trip.asked.path, before + 1)
      if (before >= 2) trip.changes.push(notFound)
    })
  },
}

const aDay: Story = {
  id: 'a day',
  what: 'the list cannot be read for more than a day, and orders stay open for as long',
  aims: ['scan_overdue in unknown', 'late in accepted'],
  days: true,
  begin: (scene) => {
    const { world, chance, spanMs } = scene
    const { supplier, timeline } = world
    supplier.faults.add({ fault: 'hold-open', times: 2 })
    const endsAt = timeline.now() + spanMs - HOUR / 2
    let silent = 3
    return onRoad(scene, (trip) => {
      if (trip.key !== undefined && silent > 0 && chance.odds(0.7)) {
        silent -= 1
        trip.answer = 'silence'
      }
      if (isList(trip) && timeline.now() < endsAt) {
        trip.changes.push((given) => ({ ...given, status: 500, body: Buffer.from('oops') }))
      }
    })
  },
}

export const supplierStories: Story[] = [
  ...[bentList, bentReads, secondOrders, behindTheList, lateAndForgotten, goneHalfWay, aDay],
]
