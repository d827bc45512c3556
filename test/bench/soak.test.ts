import { expect, test } from 'vitest'
import { judge, type Soak } from './soak.ts'

const held = { rss: 100e6, heap: 50e6, descriptors: 30, timers: 12, handles: 5, wal: 4e6 }
const good: Soak = {
  before: held,
  after: held,
  most: { ...held, rss: 300e6 },
  p99s: [10, 12, 11, 15],
  failed: 0,
  steady: { blockedMs: 60, commitMs: 50, statementMs: 9, foldMs: 0, collectionMs: 10, longestMs: 90 },
  forgetting: {
    blockedMs: 50,
    commitMs: 20,
    statementMs: 9,
    foldMs: 20,
    collectionMs: 10,
    longestMs: 120,
    tookMs: 60_000,
    left: 0,
  },
}

test('a soak that came back to where it was has missed nothing', () => {
  expect(judge(good).missed).toEqual([])
})

test.each<[string, Partial<Soak>]>([
  ['memory (RSS)', { after: { ...held, rss: 121e6 } }],
  ['heap, collected', { after: { ...held, heap: 61e6 } }],
  ['descriptors', { after: { ...held, descriptors: 31 } }],
  ['timers', { after: { ...held, timers: 13 } }],
  ['other handles', { after: { ...held, handles: 6 } }],
  ['log (WAL)', { after: { ...held, wal: 5e6 } }],
  ['p99 by quarter', { p99s: [10, 12, 11, 15.1] }],
  ['p99 by quarter', { p99s: [] }],
  ['answers that failed', { failed: 1 }],
  ['blocked while forgetting', { forgetting: { ...good.forgetting, blockedMs: 51 } }],
  ['old rows left', { forgetting: { ...good.forgetting, left: 1 } }],
])('a soak misses: %s', (name, part) => {
  const { missed } = judge({ ...good, ...part })
  expect(missed).toEqual([expect.stringContaining(name)])
})
