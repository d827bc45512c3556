/** What a process remembers of the last request of a purchase: from when on its order may be proven absent. */
import { expect, test } from 'vitest'
import { forgetIntent, freshPace, noteIntent, rememberedOf } from '../../src/ordering/context.ts'

const HOUR = 3_600_000

function openMemory() {
  let clock = 1_000
  const ordering = { pace: freshPace(), monotonic: () => clock } as Parameters<typeof rememberedOf>[0]
  const move = (ms: number) => {
    clock += ms
  }
  const sentAt = (id: string, lastSentAt: number | null) => rememberedOf(ordering, { id, lastSentAt }).sentAt
  return { ordering, move, sentAt }
}

test('a request of this process was sent when its intent was stored, and one of another process now', () => {
  const { ordering, move, sentAt } = openMemory()
  noteIntent(ordering, 'p', 77)
  move(500)
  expect([sentAt('p', 77), sentAt('q', 77)]).toEqual([1_000, 1_500])
  move(500)
  expect(sentAt('p', 78), 'another one was sent since').toBe(2_000)
  move(500)
  expect([sentAt('p', 78), sentAt('q', 77)]).toEqual([2_000, 1_500])
})

test('one that was answered is forgotten, and one of two days ago once another is sent', () => {
  const { ordering, move, sentAt } = openMemory()
  for (const id of ['old', 'answered', 'again']) noteIntent(ordering, id, 1)
  forgetIntent(ordering, 'answered')
  move(1)
  noteIntent(ordering, 'again', 2)
  expect([...ordering.pace.lastRequests.keys()]).toEqual(['old', 'again'])
  move(48 * HOUR - 2)
  noteIntent(ordering, 'new', 1)
  expect(sentAt('old', 1)).toBe(1_000)
  move(1)
  noteIntent(ordering, 'newer', 1)
  expect([...ordering.pace.lastRequests.keys()]).toEqual(['again', 'new', 'newer'])
})
