/** The design check in its short form; `npm run model` walks through more, and prints what it finds. */
import { describe, expect, test } from 'vitest'
import { purchaseStates, rows } from '../../src/domain/purchase.ts'
import { type Case, decide } from '../domain/purchase-case.ts'
import { otherCases } from '../domain/purchase-cases-after.ts'
import { foundCases } from '../domain/purchase-cases-found.ts'
import { readCases } from '../domain/purchase-cases-read.ts'
import { absentCases, answerCases, clockCases, dueCases, releasedCases } from '../domain/purchase-cases-sending.ts'
import { shopCases } from '../domain/purchase-cases-shop.ts'
import { explore } from './model/explore.ts'
import { coarse, type Rules, rules } from './model/rules.ts'
import { hanging } from './model/settle.ts'
import type { World } from './model/state.ts'
import { type Bounds, promises } from './model/step.ts'
import { faultOf, variants } from './model/variants.ts'

const small: Bounds = {
  sends: 2,
  generations: 1,
  crashes: true,
  cancels: true,
  oddities: 0,
  quantity: 1,
  changes: 0,
  lateReadings: false,
}
const whole = (bounds: Partial<Bounds>, worlds: readonly World[] = ['remembers', 'lists', 'neither']) =>
  explore({ rules: { ...rules, durations: coarse }, bounds: { ...small, ...bounds }, worlds, watched: promises })

describe('no path breaks a promise or hangs', () => {
  test.each<[string, Partial<Bounds>]>([
    ['with a request and its repeat', {}],
    ['with an odd supplier', { sends: 1, oddities: 1 }],
    ['with a second generation', { sends: 1, generations: 2 }],
    ['with an order that its shop changes', { sends: 1, cancels: false, changes: 1 }],
    ['with a key in place of one that does not work', { sends: 1, cancels: false, changes: 1, replaces: true }],
  ])('%s', (_, bounds) => {
    const explored = bounds.changes ? whole(bounds, ['remembers']) : whole(bounds)
    expect([...explored.faults, ...hanging(explored)]).toEqual([])
    expect(explored.states).toBeGreaterThan(1_000)
  })

  test('where a next generation is planned too early, because none is sent before the first is decided', () => {
    const beside = variants.find(({ name }) => name === 'bought-beside-unknown')
    if (!beside?.change.transition) throw new Error('there is no such variant')
    const { transition } = beside.change
    // A person who closes a purchase answers for it: what then leaves is not the machine's.
    const change: Partial<Rules> = {
      ...beside.change,
      mayBuy: rules.mayBuy,
      transition: (facts, input, now) => (input.type === 'close' ? undefined : transition(facts, input, now)),
    }
    expect(faultOf({ ...beside, change })).toBeUndefined()
    expect(faultOf({ ...beside, change: { ...change, mayBuy: () => true } })).toBeDefined()
  })
})

describe('a wrong variant is caught', () => {
  test.each(variants)('$name: $does', (variant) => {
    expect(faultOf(variant)?.promise).toBe(variant.breaks)
  })
})

describe('the model may leave out', () => {
  const cases: Case[] = [
    foundCases,
    clockCases,
    releasedCases,
    dueCases,
    answerCases,
    absentCases,
    readCases,
    shopCases,
    otherCases,
  ].flat()

  test('what the last answer was, except while a purchase is unknown', () => {
    const classes = [null, 'not_executed', 'refused', 'ambiguous'] as const
    for (const state of purchaseStates.filter((one) => one !== 'unknown')) {
      for (const one of cases) {
        const [first, ...others] = classes.map((lastClass) =>
          decide({ ...one, facts: { ...one.facts, lastClass } }, state),
        )
        for (const other of others) expect(other).toEqual(first)
      }
    }
  })

  test('workers whose purchase has left the state that their next step asks for', () => {
    const statesFor = (type: string) => [
      ...new Set(rows.filter((row) => row.type === type).flatMap((row) => row.states)),
    ]
    expect({ due: statesFor('due'), answer: statesFor('answer'), absent: statesFor('absent') }).toEqual({
      due: ['planned', 'waiting'],
      answer: ['sending'],
      absent: ['unknown'],
    })
  })
})
