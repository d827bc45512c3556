/**
 * The short form of `npm run torture`: the same run, minutes shorter, once as the program is and once with a mistake. A campaign,
 * so it runs where it is asked for.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { describe, expect, type TestContext, test } from 'vitest'
import { isNeeded } from '../support/needs.ts'
import { torture } from './torture/run.ts'

const runs = isNeeded('campaigns')
const needs = runs ? '' : ' (skipped: a campaign, which .ci/run runs)'

/** Of the test's own context: among tests side by side, the global one may end with another of them. */
function openFolder({ onTestFinished }: TestContext): string {
  const folder = mkdtempSync(path.join(tmpdir(), 'quayside-torture-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

const sum = (counts: Record<string, number>): number => Object.values(counts).reduce((all, count) => all + count, 0)

/** Half a minute when nothing else runs; nine processes that start again and again on a busy machine take their time. */
const TIMEOUT_MS = 600_000
/** A look-up that the faults have kept from an answer again and again is made again after up to a quarter of an hour. */
const PATIENCE_SECONDS = 960

describe.runIf(runs)(
  `a service that is killed again and again, between parties and a network that fail${needs}`,
  () => {
    test.concurrent(
      'charges once, hands over once, loses nothing and comes to rest',
      async (context) => {
        const folder = openFolder(context)
        const run = { purchases: 24, seconds: 9, seed: 142, patienceSeconds: 400, folder }
        const { verdict, purchases, deaths, forgeries, faults, refused } = await torture(run)
        expect(verdict).toEqual({
          doubleCharges: 0,
          orphanCharges: 0,
          lostDeliveries: 0,
          duplicateFulfilments: 0,
          stuck: 0,
          overspent: 0,
          cancelledKeys: 0,
          groundlessFreezes: 0,
          booksClose: true,
          notes: [],
        })
        expect({ purchases, unexpected: deaths.unexpected, obeyed: forgeries.obeyed, refused }).toEqual({
          purchases: 24,
          unexpected: [],
          obeyed: [],
          refused: [],
        })
        expect(sum(deaths.kills)).toBeGreaterThan(1)
        expect(sum(faults)).toBeGreaterThan(0)
      },
      TIMEOUT_MS,
    )

    test.concurrent(
      'is found out when it takes an error of the supplier for a failure',
      async (context) => {
        const mistake = 'server-error-is-failure'
        // How processes interleave is not in the seed: on a busy machine a run may miss the instant that it takes.
        let orphanCharges = 0
        for (const seed of [266, 142, 31, 18, 77, 412]) {
          const folder = openFolder(context)
          const { verdict } = await torture({ purchases: 24, seconds: 6, seed, patienceSeconds: 20, folder, mistake })
          orphanCharges = verdict.orphanCharges
          if (orphanCharges > 0) break
        }
        expect(orphanCharges).toBeGreaterThan(0)
      },
      TIMEOUT_MS,
    )
  },
)

const onServers = runs && isNeeded('postgres')
const needsServer = onServers ? '' : ' (skipped: a campaign on PostgreSQL, which .ci/run runs)'

/** A minute of faults, and what follows from them, on a machine that has other tests to run. */
const SERVERS_TIMEOUT_MS = 1_300_000

describe.runIf(onServers)(
  `two web processes and two workers, whose database is cut off, restarted and lost by a second${needsServer}`,
  () => {
    test(
      'charge once, hand over once, lose nothing that was kept and come to rest',
      async (context) => {
        const folder = openFolder(context)
        const run = { purchases: 30, seconds: 40, seed: 18, patienceSeconds: PATIENCE_SECONDS, folder, processes: 4 }
        const { verdict, purchases, deaths, failovers, forgeries, refused } = await torture(run)
        const { notes, booksClose } = verdict
        expect({ notes, booksClose, unexpected: deaths.unexpected, broken: failovers.broken }).toEqual({
          notes: [],
          booksClose: true,
          unexpected: [],
          broken: [],
        })
        expect({ purchases, obeyed: forgeries.obeyed, refused }).toEqual({ purchases: 30, obeyed: [], refused: [] })
        expect(sum(deaths.kills)).toBeGreaterThan(3)
        expect(failovers.losses.length).toBeGreaterThan(0)
      },
      SERVERS_TIMEOUT_MS,
    )
  },
)
