import { rmSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { isNeeded } from '../support/needs.ts'
import { seeded } from '../support/seeded.ts'
import { cutPower, openFolder, type Run, runCommits, runDeliveries } from './power-cut/campaign.ts'
import { imageAt, SECTOR } from './power-cut/image.ts'
import type { Call } from './power-cut/strace.ts'

/** It takes a minute, and the Debian package strace: a run that names it fails without. */
const traces = isNeeded('strace')
const needs = traces ? '' : ' (skipped: QUAYSIDE_NEEDS=strace runs it, as .ci/run does)'

const COUNT = 400

describe.skipIf(!traces)(`an acknowledgement${needs}`, { timeout: 300_000 }, () => {
  let folder: string
  let real: Run
  let control: Run
  beforeAll(async () => {
    folder = openFolder()
    real = await runDeliveries(folder, COUNT, 'FULL')
    control = await runDeliveries(folder, COUNT, 'NORMAL')
  }, 300_000)
  afterAll(() => rmSync(folder, { recursive: true, force: true }))

  test('of a commit has an fsync of its own, where commits come one after the other', async () => {
    const commits = await runCommits(folder, COUNT)
    expect(commits.answers).toHaveLength(COUNT)
    expect(commits.syncs).toBeGreaterThanOrEqual(COUNT)
    expect(commits.early).toEqual([])
  })

  test('of a delivery leaves after an fsync that began when the delivery was written', () => {
    expect(real.answers).toHaveLength(COUNT)
    expect(real.early).toEqual([])
    // Some shared their commit with others, which is where one could be answered before its own is on disk.
    expect(real.syncs).toBeLessThan(COUNT)
    expect(control.answers).toHaveLength(COUNT)
    expect(control.early.length).toBeGreaterThan(COUNT / 2)
  })

  test('is kept by all of 500 disks on which the power was cut, and by some only without the fsync', async () => {
    // The log was folded into the file at least once while deliveries came: the most delicate time of all.
    const restarts = real.calls.filter(
      (call) => call.kind === 'write' && call.file.endsWith('-wal') && call.offset === 0,
    )
    expect(restarts.length).toBeGreaterThan(1)
    const verdict = await cutPower(folder, real, { images: 500, seed: 20_260_301 })
    expect(verdict).toMatchObject({ images: 500, losing: 0, broken: [] })
    expect(verdict.acknowledged).toBeGreaterThan(500 * 10)
    const without = await cutPower(folder, control, { images: 100, seed: 20_260_301 })
    expect(without.losing).toBeGreaterThan(0)
  })
})

describe('an image of a power cut', () => {
  const page = (fill: number) => Buffer.alloc(4 * SECTOR, fill)
  /** A file of four sectors of 1, synced; then each is written over with 2, later with 3, and a second sync never ends. */
  const calls: Call[] = [
    { began: 1, ended: 1, kind: 'create', file: 'a' },
    { began: 2, ended: 2, kind: 'write', file: 'a', offset: 0, data: page(1) },
    { began: 3, ended: 4, kind: 'sync', file: 'a' },
    { began: 5, ended: 5, kind: 'sync', file: '' },
    { began: 6, ended: 6, kind: 'write', file: 'a', offset: 0, data: page(2) },
    { began: 7, ended: 7, kind: 'write', file: 'a', offset: 0, data: page(3) },
    { began: 8, ended: 90, kind: 'sync', file: 'a' },
  ]
  const random = seeded(1)
  /** Every image seen in many cuts, as the fill of each sector; an empty text for a file that is not there. */
  const seenAt = (cut: number) =>
    new Set(
      Array.from({ length: 2_000 }, () => {
        const bytes = imageAt(calls, cut, random).get('a')
        return bytes ? [...bytes.filter((_, place) => place % SECTOR === 0)].join('') : ''
      }),
    )

  test('holds what was synced, and the name once the folder was synced', () => {
    expect(seenAt(6)).toEqual(new Set(['1111']))
    expect([...seenAt(5)].sort()).toEqual(['', '1111'])
  })

  test('loses what was not synced, tears it and lets a later write overtake an earlier one', () => {
    const seen = seenAt(8)
    for (const one of ['1111', '2222', '3333', '1213', '3121']) expect(seen).toContain(one)
  })

  test('does not trust a sync that never ended, and trusts one that did', () => {
    expect(seenAt(60)).toContain('1111')
    expect(seenAt(91)).toEqual(new Set(['3333']))
  })

  test('may have a file that was grown without what it was grown for', () => {
    const grown: Call[] = [
      ...calls.slice(0, 4),
      { began: 6, ended: 6, kind: 'write', file: 'a', offset: 4 * SECTOR, data: page(2) },
    ]
    const seen = new Set(
      Array.from({ length: 500 }, () =>
        [...(imageAt(grown, 7, random).get('a') ?? [])].filter((_, at) => at % SECTOR === 0).join(''),
      ),
    )
    for (const one of ['1111', '11110000', '11112222', '11110202']) expect(seen).toContain(one)
  })
})
