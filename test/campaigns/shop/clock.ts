/** One wall clock for the shop, the supplier and the service, which runs faster than ours: waits of minutes take seconds. */
import { renameSync, writeFileSync } from 'node:fs'

export interface FastClock {
  now: () => number
  /** Puts it ahead at once. */
  skip: (ms: number) => void
}

/**
 * @param file where the service reads how its clock runs: `fast-time.ts`, which is preloaded into it
 * @param speed milliseconds of this clock in one of ours
 */
export function createFastClock(file: string, speed: number): FastClock {
  const real = Date.now()
  let shown = real
  const write = (): void => {
    // Never half a file.
    writeFileSync(`${file}.new`, JSON.stringify({ real, shown, speed }))
    renameSync(`${file}.new`, file)
  }
  write()
  return {
    now: () => shown + (Date.now() - real) * speed,
    skip: (ms) => {
      shown += ms
      write()
    },
  }
}
