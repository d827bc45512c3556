/** The short form of `npm run revisions`, once as the program is and once with each of two mistakes. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { isNeeded } from '../support/needs.ts'
import { hasPostgres, newPostgresUrl } from '../support/postgres.ts'
import { changeSettings } from './revisions/campaign.ts'
import { judgeRevisions } from './revisions/verdict.ts'

const runs = isNeeded('campaigns')
const needs = runs ? '' : ' (skipped: a campaign, which .ci/run runs)'
const onServer = runs && hasPostgres
const needsServer = onServer ? '' : ' (skipped: a campaign on PostgreSQL, which .ci/run runs)'

function openFolder(): string {
  const folder = mkdtempSync(path.join(tmpdir(), 'quayside-revisions-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

const pace = { seconds: 15, revisions: 5, kills: 1, deliveriesPerSecond: 20, ordersPerSecond: 2 }

test.skipIf(!runs)(
  `changed settings lose nothing, and nothing is bought by those before them, also after a kill${needs}`,
  async () => {
    const outcome = await changeSettings({ ...pace, folder: openFolder() })
    expect(outcome).toMatchObject({ faults: [], revisions: 5, kills: 1 })
    expect(outcome.orders).toBeGreaterThan(20)
  },
  300_000,
)

test.skipIf(!onServer)(
  `four processes lose nothing, and none of them buys by settings before those in force${needsServer}`,
  async () => {
    const outcome = await changeSettings({ ...pace, folder: openFolder(), databaseUrl: await newPostgresUrl() })
    expect(outcome).toMatchObject({ faults: [], revisions: 5, kills: 1 })
    expect(outcome.orders).toBeGreaterThan(20)
  },
  300_000,
)

test('a purchase is found out that was planned by an old revision, or sent while a new one let nothing be bought', () => {
  const applied = [
    { revision: 1, percent: 10, isCapped: false, askedAt: 0, inForceAt: 0 },
    { revision: 2, percent: 11, isCapped: true, askedAt: 1_000, inForceAt: 1_100 },
    { revision: 3, percent: 12, isCapped: false, askedAt: 2_000, inForceAt: 2_100 },
  ]
  const order = (begunAt: number, ceilingMinor: number, firstSentAt: number) => {
    const reference = `${begunAt}`
    return { reference, costMinor: 1_000, ceilingMinor, begunAt, takenAt: begunAt + 10, firstSentAt }
  }
  // While it is asked for, either may be in force.
  expect(judgeRevisions(applied, [order(1_050, 1_100, 1_060), order(1_050, 1_110, 2_050)])).toEqual([])
  expect(judgeRevisions(applied, [order(1_200, 1_100, 2_200)])).toEqual([
    '1200 has the ceiling of 1, and 2 was in force before it was sent',
  ])
  expect(judgeRevisions(applied, [order(1_200, 1_110, 1_300)])).toEqual([
    '1200 was bought while revision 2 let nothing be bought',
  ])
})
