import { expect, test } from 'vitest'
import { createDoubts, type Doubts } from './doubts.ts'

const KEY = 'AAAA-1111'

/** @returns the keys in doubt after what befell them */
function inDoubt(befall: (doubts: Doubts, pass: (ms: number) => void) => void, halfDone: string[] = []): string[] {
  let time = 0
  const doubts = createDoubts({ now: () => time, isHalfDone: (_, key) => halfDone.includes(key) })
  befall(doubts, (ms) => {
    time += ms
  })
  return [...doubts.keys]
}

test('a key is in doubt when the merchant completes its order between the requests of a hand-over', () => {
  const beforeTheNote = inDoubt((doubts) => {
    doubts.read(7)
    doubts.completedByMerchant(7)
    doubts.written(7, [KEY], false)
  })
  const beforeItsLinesAreCleared = inDoubt((doubts) => {
    doubts.written(7, [KEY], false)
    doubts.completedByMerchant(7)
    doubts.written(7, [KEY], false)
  })
  expect([beforeTheNote, beforeItsLinesAreCleared]).toEqual([[KEY], [KEY]])
})

test('a key is in no doubt when nothing more of it is written after the merchant completed its order: its line should have been cleared', () => {
  const neverCleared = inDoubt((doubts) => {
    doubts.read(7)
    doubts.written(7, [KEY], false)
    doubts.completedByMerchant(7)
  })
  const clearedTooLate = inDoubt((doubts, pass) => {
    doubts.written(7, [KEY], false)
    doubts.completedByMerchant(7)
    pass(2_000)
    doubts.written(7, [KEY], false)
  })
  const anotherKey = inDoubt((doubts) => {
    doubts.written(7, [KEY], false)
    doubts.completedByMerchant(7)
    doubts.written(7, ['BBBB-1111'], false)
  })
  expect([neverCleared, clearedTooLate, anotherKey]).toEqual([[], [], ['BBBB-1111']])
})

test('a key is in no doubt when the merchant completes its order while no hand-over is under way, or completes another one', () => {
  const longAfter = inDoubt((doubts, pass) => {
    doubts.read(7)
    doubts.written(7, [KEY], false)
    pass(2_000)
    doubts.completedByMerchant(7)
    doubts.written(7, [KEY], false)
  })
  const another = inDoubt((doubts) => {
    doubts.read(7)
    doubts.completedByMerchant(8)
    doubts.written(7, [KEY], false)
  })
  expect([longAfter, another]).toEqual([[], []])
})

test('a key is in doubt when a write of it is struck, and no other key of its order is', () => {
  const struck = inDoubt((doubts) => {
    doubts.written(7, ['BBBB-1111'], false)
    doubts.written(7, [KEY], true)
  })
  expect(struck).toEqual([KEY])
})

test('a key is in doubt when the service dies before it can have stored the answer, and not when it was written earlier', () => {
  const diedAfter = (ms: number) =>
    inDoubt((doubts, pass) => {
      doubts.written(7, [KEY], false)
      pass(ms)
      doubts.interrupted()
    })
  expect([diedAfter(99), diedAfter(100)]).toEqual([[KEY], []])
})

test('a key is in doubt when the service dies while the shop shows its hand-over half done, within two seconds of its last write', () => {
  const diedAfter = (ms: number, halfDone: string[]) =>
    inDoubt((doubts, pass) => {
      doubts.written(7, [KEY, 'BBBB-1111'], false)
      pass(ms)
      doubts.interrupted()
    }, halfDone)
  expect([diedAfter(1_999, [KEY]), diedAfter(2_000, [KEY])]).toEqual([[KEY], []])
})

test('a key is in doubt when what a dead service sent arrives after its death, and not once the next one runs', () => {
  const whenItRuns = (isRunning: boolean) =>
    inDoubt((doubts) => {
      doubts.interrupted()
      if (isRunning) doubts.resumed()
      doubts.written(7, [KEY], false)
    })
  const cutOffAsWell = inDoubt((doubts) => {
    doubts.interrupted()
    doubts.interrupted()
    doubts.resumed()
    doubts.written(7, [KEY], false)
  })
  expect([whenItRuns(false), whenItRuns(true), cutOffAsWell]).toEqual([[KEY], [], [KEY]])
})
