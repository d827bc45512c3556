import { rmSync } from 'node:fs'
import path from 'node:path'
import { type DryRunParts, dryRun } from './catalogue/dry-run.ts'
import type { DryRunEvent } from './catalogue/dry-run-events.ts'
import { Failure } from './errors.ts'
import { openScratch } from './storage/scratch.ts'

export type DryRunner = (options: { most: number }) => Promise<AsyncIterableIterator<DryRunEvent, void>>

/**
 * Sees to it that one dry run is under way at a time: each costs the supplier's rate limit as much as a sync run.
 *
 * @returns what begins one; `return` of its events ends it early, at its next page. It throws Failure `conflict`, reason
 *   `dry_run_under_way`, and `unavailable` while the service is being stopped
 */
export function createDryRunner({
  dataDir,
  ...parts
}: Omit<DryRunParts, 'openScratch'> & { dataDir: string }): DryRunner {
  const file = path.join(dataDir, 'dry-run.db')
  // Of one that a crash cut short.
  rmSync(file, { force: true })
  let isUnderWay = false
  return async (options) => {
    if (parts.catalogue.signal?.aborted) throw new Failure('unavailable', 'the service is being stopped')
    if (isUnderWay) {
      throw new Failure('conflict', 'a dry run is under way; there is one at a time', { reason: 'dry_run_under_way' })
    }
    isUnderWay = true
    const events = dryRun({ ...parts, openScratch: () => openScratch(file, parts.catalogue.now) }, options)
    const next = async () => {
      try {
        const step = await events.next()
        if (step.done) isUnderWay = false
        return step
      } catch (error) {
        isUnderWay = false
        throw error
      }
    }
    // Begun here, so that what cannot even begin is no event; and so that leaving it early always ends it.
    let first: ReturnType<typeof next> | undefined = Promise.resolve(await next())
    const told: AsyncIterableIterator<DryRunEvent, void> = {
      [Symbol.asyncIterator]: () => told,
      next: () => {
        const step = first ?? next()
        first = undefined
        return step
      },
      return: async () => {
        await events.return()
        isUnderWay = false
        return { done: true, value: undefined }
      },
    }
    return told
  }
}
