/** When what stands counts as trouble: at which figure it begins, and at which it does not yet. */
import { describe, expect, test } from 'vitest'
import {
  type ConditionFacts,
  type ConditionLimits,
  standingConditions,
  syncStaleMs,
} from '../../src/domain/conditions.ts'

const HOUR = 3_600_000
const DAY = 24 * HOUR
const NOW = 100 * DAY

const sound: ConditionFacts = {
  now: NOW,
  balance: { amountMinor: 100_000, currency: 'EUR' },
  spend: { minor: 0, days: 7 },
  catalogueReadAt: NOW,
  backupAt: NOW,
  installedAt: 0,
  listingsRefusedBy: [],
  updatesRefusedBy: [],
  deliveriesRefused: false,
  diskFreeMb: 10_000,
}
const limits: ConditionLimits = {
  balanceBelowMinor: 5_000,
  balanceDays: 3,
  syncStaleMs: 6 * HOUR,
  backupMissingMs: 2 * DAY,
  diskFreeMb: 500,
}
const kindsOf = (facts: Partial<ConditionFacts>, set: Partial<ConditionLimits> = {}) =>
  standingConditions({ ...sound, ...facts }, { ...limits, ...set }).map(({ type }) => type)
const euros = (amountMinor: number) => ({ amountMinor, currency: 'EUR' })

describe('a condition', () => {
  test('stands for nothing where all is well', () => {
    expect(kindsOf({})).toEqual([])
  })

  test.each<[kind: string, atLimit: Partial<ConditionFacts>, beyond: Partial<ConditionFacts>]>([
    ['balance_below', { balance: euros(5_000) }, { balance: euros(4_999) }],
    // 700.00 in seven days are 100.00 a day.
    [
      'balance_runs_out',
      { balance: euros(30_000), spend: { minor: 70_000, days: 7 } },
      { balance: euros(29_999), spend: { minor: 70_000, days: 7 } },
    ],
    ['sync_stale', { catalogueReadAt: NOW - 6 * HOUR }, { catalogueReadAt: NOW - 6 * HOUR - 1 }],
    [
      'sync_stale',
      { catalogueReadAt: null, installedAt: NOW - 6 * HOUR },
      { catalogueReadAt: null, installedAt: NOW - 6 * HOUR - 1 },
    ],
    ['backup_missing', { backupAt: NOW - 2 * DAY }, { backupAt: NOW - 2 * DAY - 1 }],
    ['disk_low', { diskFreeMb: 500 }, { diskFreeMb: 499 }],
  ])('%s does not begin at its limit, and begins beyond it', (kind, atLimit, beyond) => {
    expect(kindsOf(atLimit)).toEqual([])
    expect(kindsOf(beyond)).toEqual([kind])
  })

  test('has no limit where none is configured, and none of what is not known', () => {
    const none = {
      balanceBelowMinor: null,
      balanceDays: null,
      syncStaleMs: null,
      backupMissingMs: null,
      diskFreeMb: null,
    }
    const worst = {
      balance: euros(0),
      spend: { minor: 70_000, days: 7 },
      catalogueReadAt: null,
      backupAt: null,
      diskFreeMb: 0,
    }
    expect(kindsOf(worst, none)).toEqual([])
    expect(kindsOf({ balance: null, diskFreeMb: null })).toEqual([])
  })

  test('says since when, and why where that is known', () => {
    const notesOf = (facts: Partial<ConditionFacts>) =>
      standingConditions({ ...sound, ...facts }, limits).map(({ type, note }) => `${type}: ${note}`)
    expect(notesOf({ catalogueReadAt: 0, backupAt: null, deliveriesRefused: true })).toEqual([
      'sync_stale: the catalogue was not read completely since 1970-01-01T00:00:00.000Z',
      'backup_missing: no backup was made so far',
      'deliveries_refused: the signatures of the last deliveries do not fit, and none came whose signature does',
    ])
    const refused = [
      { store: 'one', error: 'it is closed' },
      { store: 'two', error: null },
    ]
    expect(notesOf({ listingsRefusedBy: refused, updatesRefusedBy: refused })).toEqual([
      'listings_not_taken: one takes no listings: it is closed',
      'listings_not_taken: two takes no listings: it does not say why',
      'updates_not_taken: one does not take what is sent of its orders: it is closed',
      'updates_not_taken: two does not take what is sent of its orders: it does not say why',
    ])
  })

  test('of a stale catalogue leaves time for two runs and an hour, and for three hours at least', () => {
    expect([HOUR / 2, HOUR, 6 * HOUR].map((everyMs) => syncStaleMs(everyMs) / HOUR)).toEqual([3, 3, 13])
  })

  test('names each store that it is about', () => {
    const refused = ['one', 'two'].map((store) => ({ store, error: null }))
    const standing = standingConditions(
      { ...sound, listingsRefusedBy: refused, updatesRefusedBy: refused.slice(1) },
      limits,
    )
    expect(standing.map(({ type, store }) => `${type} ${store}`)).toEqual([
      'listings_not_taken one',
      'listings_not_taken two',
      'updates_not_taken two',
    ])
  })
})
