/** What the watched conditions are measured by: the limits of the configuration, and the machine. */
import { statfs } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { describe, expect, test } from 'vitest'
import { diskFreeMb, everyMs, limitsOf } from '../../src/alerts/facts.ts'
import { openApi } from '../support/api-world.ts'

const MINUTE = 60_000
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR

test.each([
  ['*/15 * * * *', 15 * MINUTE],
  ['0 3 * * *', DAY],
  ['0 8,9 * * *', 23 * HOUR],
  // Whatever the hour is now, one of these two has its longest wait far ahead.
  ['0 0-8 * * *', 16 * HOUR],
  ['0 12-20 * * *', 16 * HOUR],
  ['0 3 * * 1-5', 3 * DAY],
])('a schedule of %s lets at most %d ms pass between two runs', (cron, ms) => {
  expect(everyMs(cron)).toBe(ms)
})

describe('the room on a disk', () => {
  test('is what its system says that is left, in megabytes of 1,048,576 bytes', async () => {
    const { bavail, bsize } = await statfs(tmpdir())
    const free = (await diskFreeMb(tmpdir())) ?? 0
    expect(free / ((bavail * bsize) / 1_048_576)).toBeCloseTo(1, 1.7)
  })

  test('is not known of a folder that is not there', async () => {
    expect(await diskFreeMb('/no/such/folder')).toBeNull()
  })
})

test('the limits are those of the configuration, in milliseconds and minor units', async () => {
  const { config } = (await openApi()).alertParts
  const alerts = { ...config.alerts, balanceBelow: '250.50', balanceDays: 3, syncStaleHours: 4, diskFreeMb: 512 }
  const backups = { ...config.backups, cron: '0 3 * * *' }
  expect(limitsOf({ ...config, alerts, backups })).toEqual({
    balanceBelowMinor: 25_050,
    balanceDays: 3,
    syncStaleMs: 4 * HOUR,
    // One run that was missed is a restart.
    backupMissingMs: 2 * DAY,
    diskFreeMb: 512,
  })
  expect(
    limitsOf({
      ...config,
      alerts: { ...alerts, balanceBelow: null, syncStaleHours: null },
      backups: { ...backups, cron: null },
      syncCron: '0 3 * * *',
    }),
  ).toMatchObject({ balanceBelowMinor: null, syncStaleMs: 2 * DAY + HOUR, backupMissingMs: null })
})
