import { expect, test } from 'vitest'
import { isNeeded } from '../support/needs.ts'
import { hasPostgres, newPostgresUrl } from '../support/postgres.ts'
import { missed } from './receive.ts'
import { benchWire } from './scale.ts'

const runs = hasPostgres && isNeeded('campaigns')
const needs = runs ? '' : ' (skipped: it starts two processes on PostgreSQL, as .ci/run does)'

test.skipIf(!runs)(`a delivery takes at most two round trips to PostgreSQL${needs}`, { timeout: 600_000 }, async () => {
  const amounts = { rounds: 1, deliveries: 256, orders: 4, counted: 5, restMs: 1_000 }
  const { deliveryTrips, figures } = await benchWire(() => {}, newPostgresUrl, amounts)
  expect(missed({ deliveryTrips })).toEqual([])
  // BEGIN, the delivery and COMMIT in one trip, and what tells the worker.
  const [statements] = (figures as object as Record<string, number[]>)['a delivery, alone'] ?? []
  expect(statements).toBeGreaterThanOrEqual(3)
  expect(statements).toBeLessThanOrEqual(4)
})
