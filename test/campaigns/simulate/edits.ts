/** What customers and the merchant do to an order after it was placed, and when: at any instant, or right where it hurts. */
import { isOurs, orderOf } from '../../support/references.ts'
import type { SimShop } from './shop.ts'
import { MINUTE, type World } from './world.ts'

const SECOND = 1_000
/**
 * `read`: the shop has just answered with the order. `sent`, `heard`: a purchase of it is on the way to the supplier, and was
 * answered. `written`: we have just changed something of it.
 */
const moments = ['later', 'soon', 'read', 'read', 'sent', 'heard', 'heard', 'written'] as const
type Moment = (typeof moments)[number]

/** This share of the orders loses a unit while its keys come, and gets it back later: chance alone hardly comes to both. */
const PUT_BACK = 0.3

/** An edit that no such moment comes for happens all the same. */
const PATIENCE_MS = 15 * MINUTE

interface Armed {
  moment: Moment
  reference: string
  act: () => void
}

export type Edits = ReturnType<typeof createEdits>

/** @param endAt after this instant every order stays as it is */
export function createEdits(world: World, shop: SimShop, endAt: number) {
  const { timeline, road, log } = world
  const chance = world.chance.named('edits')
  const { edits, rights } = shop.counter
  const grow = 'line grown and paid' in edits ? 'line grown and paid' : 'line grown'
  const puttingBack = chance.named('put back')
  const names = Object.keys(edits)
  const armed = new Set<Armed>()
  /** Orders that were changed in the shop after they were placed, and when they were last. */
  const changed = new Map<string, number>()

  function make(reference: string, name: string): void {
    const edit = edits[name]
    if (timeline.now() > endAt || !edit) return
    shop.act(() => edit(reference, chance))
    changed.set(reference, timeline.now())
    log.add('shop', 'order.changed', { reference, edit: name, status: shop.counter.status(reference) })
  }

  function arm(reference: string, moment: Moment, act: () => void): void {
    const one: Armed = { reference, moment, act }
    const ms = moment === 'soon' ? chance.between(0, 30 * SECOND) : chance.between(SECOND, PATIENCE_MS)
    armed.add(one)
    const at = Math.min(timeline.now() + ms, endAt)
    timeline.after(at - timeline.now(), () => fire(one))
  }

  function fire(one: Armed): void {
    if (!armed.delete(one)) return
    one.act()
  }

  const came = (moment: Moment, reference: string): void => {
    for (const one of armed) {
      if (one.reference !== reference || one.moment !== moment) continue
      // In the middle of a request nothing else happens in the shop.
      timeline.after(chance.pick([0, 0, 1, chance.between(1, 50), chance.between(0, 5 * SECOND)]), () => fire(one))
    }
  }
  shop.moments.add(came)
  const referenceOf = (body: string): string | undefined => /"(q1\.[^"]+)"/.exec(body)?.[1]
  const onRoad =
    (moment: Moment) =>
    ({ key, asked }: { key: string | undefined; asked: { body: string } }): void => {
      const reference = key === undefined ? undefined : referenceOf(asked.body)
      if (reference !== undefined && isOurs(reference)) came(moment, orderOf(reference))
    }
  road.watchers.add({ written: onRoad('sent'), ended: onRoad('heard') })

  /** The next one is armed when the one before has happened. */
  function follow(reference: string, [name, ...others]: readonly string[]): void {
    if (name === undefined) return
    arm(reference, chance.pick(moments), () => {
      make(reference, name)
      follow(reference, others)
    })
  }

  return {
    changed,
    make,
    /** Plans what happens to an order that was just placed. @param first what its customer came for */
    plan: (reference: string, first: readonly string[]): void => {
      const count = chance.pick([0, 0, 1, 1, 2, 3, 4])
      const drawn = Array.from({ length: count }, () => chance.pick(names))
      // Most are put right in the end.
      const last = drawn.length > 0 && chance.odds(0.7) ? rights : []
      follow(reference, [...first, ...drawn, ...last])
      if (!puttingBack.odds(PUT_BACK)) return
      arm(reference, 'heard', () => {
        make(reference, 'line shrunk')
        arm(reference, 'later', () => make(reference, grow))
      })
    },
  }
}
