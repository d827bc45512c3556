import { expect, test } from 'vitest'
import { createDoubts, type Doubts } from './doubts.ts'

/** @returns whether an order is in doubt after what befell it */
function isInDoubt(befall: (doubts: Doubts, pass: (ms: number) => void) => void): boolean {
  let time = 0
  const doubts = createDoubts(() => time)
  befall(doubts, (ms) => {
    time += ms
  })
  return doubts.orders.has(7)
}

test('an order is in doubt when the merchant completes it between the requests of a hand-over', () => {
  const beforeTheNote = isInDoubt((doubts) => {
    doubts.read(7)
    doubts.completedByMerchant(7)
    doubts.written(7, false)
  })
  const beforeItsLinesAreCleared = isInDoubt((doubts) => {
    doubts.written(7, false)
    doubts.completedByMerchant(7)
    doubts.written(7, false)
  })
  expect([beforeTheNote, beforeItsLinesAreCleared]).toEqual([true, true])
})

test('an order is in no doubt when nothing more is written after the merchant completed it: its lines should have been cleared', () => {
  const neverCleared = isInDoubt((doubts) => {
    doubts.read(7)
    doubts.written(7, false)
    doubts.completedByMerchant(7)
  })
  const clearedTooLate = isInDoubt((doubts, pass) => {
    doubts.written(7, false)
    doubts.completedByMerchant(7)
    pass(2_000)
    doubts.written(7, false)
  })
  expect([neverCleared, clearedTooLate]).toEqual([false, false])
})

test('an order is in no doubt when the merchant completes it while no hand-over is under way, or completes another one', () => {
  const longAfter = isInDoubt((doubts, pass) => {
    doubts.read(7)
    doubts.written(7, false)
    pass(2_000)
    doubts.completedByMerchant(7)
    doubts.written(7, false)
  })
  const another = isInDoubt((doubts) => {
    doubts.read(7)
    doubts.completedByMerchant(8)
    doubts.written(7, false)
  })
  expect([longAfter, another]).toEqual([false, false])
})

test('an order is in doubt when a write of its keys is struck, or the service is interrupted within two seconds of one', () => {
  const struck = isInDoubt((doubts) => doubts.written(7, true))
  const interruptedAfter = (ms: number) =>
    isInDoubt((doubts, pass) => {
      doubts.written(7, false)
      pass(ms)
      doubts.interrupted()
    })
  expect([struck, interruptedAfter(1_999), interruptedAfter(2_000)]).toEqual([true, true, false])
})
