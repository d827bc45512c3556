/** One order that is refused more often than anybody would count, and bought in the end; backed up all the while. */
import { expect } from 'vitest'
import type { RestoreWorld } from '../../support/restore-world.ts'
import type { OrderLine } from '../../support/test-app.ts'

const MINUTE = 60_000

/** Refusals on each side of the middle: more than the references that are asked for one by one. */
export const REFUSALS = 11

/**
 * Lives through the story, and ends with the part bought as generation 23.
 *
 * @returns the backups from its first commit to its last; half of them are older than the last eleven refusals
 */
export async function refusedOften(
  { app, backups, handIn, pass }: RestoreWorld,
  reference: string,
  lines: [OrderLine],
): Promise<Buffer[]> {
  const from = backups.length
  const { orderId } = await handIn(reference, lines)
  app.sandbox.faults.add({ fault: 'out-of-stock', times: 2 * REFUSALS })
  const ended = async () => (await app.purchases(orderId)).some(({ state }) => state === 'fulfilled')
  for (let round = 0; round < 200 && !(await ended()); round += 1) await pass(20 * MINUTE, 10 * MINUTE)
  const generations = (await app.purchases(orderId)).map(({ state }) => state)
  expect(generations).toEqual([...Array.from({ length: 2 * REFUSALS }, () => 'rejected'), 'fulfilled'])
  return backups.slice(from)
}
