/** Statements that run often over tables that only grow: each must find its rows by an index, not by reading them all. */
import type { SQLWrapper } from 'drizzle-orm'
import { SQLiteSyncDialect } from 'drizzle-orm/sqlite-core'
import { expect, test } from 'vitest'
import {
  chargesBefore,
  countCharges,
  countOpenOutcomes,
  countReturns,
  countUncertainCharges,
  returnsBefore,
  unsettledMinor,
} from '../src/storage/balance-accounts.ts'
import { reviewedSince } from '../src/storage/evidence.ts'
import { knownOrphans, oldestWrittenOff, purchasesToBeListed } from '../src/storage/sweeps.ts'
import { tracedDatabase } from './database.ts'

const cases: [string, SQLWrapper, string][] = [
  ['the reviews of the last hour', reviewedSince(1), 'transitions_reviews (at>?)'],
  ['purchases with an open outcome', countOpenOutcomes(), 'purchases_due (state=?)'],
  ['charges that may be too young', countUncertainCharges(2, 1), 'purchases_uncounted (accepted_at>?)'],
  ['charges that no account has', chargesBefore(1, 'EUR'), 'purchases_uncounted (accepted_at<?)'],
  ['the same, to mark them', countCharges(1, 1, 1).statement, 'purchases_uncounted (accepted_at<?)'],
  ['what failed and is owed back', returnsBefore('failed', 1), 'purchases_owed_back (state=? AND accepted_at<?)'],
  [
    'the same, to mark it',
    countReturns('failed', 1, 1, 1).statement,
    'purchases_owed_back (state=? AND accepted_at<?)',
  ],
  ['what was taken back', returnsBefore('reversed', 1), 'discrepancies_once (kind=?)'],
  ['what waits for a person', unsettledMinor(), 'purchases_due (state=?)'],
  ['purchases whose order must be listed', purchasesToBeListed(1, 1, 1), 'purchases_due (state=?)'],
  ['what was written off', oldestWrittenOff(1), 'purchases_written_off (written_off_at>?)'],
  ['orphans on record', knownOrphans(['a']), 'discrepancies_once (kind=? AND subject=?)'],
]

test.each(cases)('%s are found by an index', (_what, statement, index) => {
  const { connection } = tracedDatabase()
  const { sql, params } = new SQLiteSyncDialect().sqlToQuery(statement.getSQL())
  const plan = connection
    .prepare<unknown[], { detail: string }>(`explain query plan ${sql}`)
    .all(...params)
    .map(({ detail }) => detail)
  expect(plan.join('\n')).toContain(index)
  expect(plan.filter((step) => step.startsWith('SCAN'))).toEqual([])
})
