/** The short form of `npm run rolling-restart`: each process is restarted once. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { isNeeded } from '../support/needs.ts'
import { hasPostgres, newPostgresUrl } from '../support/postgres.ts'
import { rollingRestart } from './rolling-restart/campaign.ts'

const runs = hasPostgres && isNeeded('campaigns')
const needs = runs ? '' : ' (skipped: a campaign on PostgreSQL, which .ci/run runs)'

test.skipIf(!runs)(
  `a rolling restart loses no delivery, and refuses none but by a 503 that says when to come again${needs}`,
  async () => {
    const folder = mkdtempSync(path.join(tmpdir(), 'quayside-rolling-'))
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
    const pace = { seconds: 60, everySeconds: 11, deliveriesPerSecond: 100, ordersPerSecond: 1 }
    const outcome = await rollingRestart({ ...pace, folder, databaseUrl: await newPostgresUrl() })
    expect(outcome.faults).toEqual([])
    expect(outcome.restarts.web).toBeGreaterThanOrEqual(2)
    expect(outcome.restarts.worker).toBeGreaterThanOrEqual(2)
    expect(outcome.deliveries).toBeGreaterThan(5_000)
  },
  300_000,
)
