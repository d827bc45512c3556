import { defineConfig } from 'vitest/config'

/** The tests of what stands around a purchase: the guards before it, the scans and sweeps behind it, the hand-over. */
export default defineConfig({
  root: new URL('../..', import.meta.url).pathname,
  test: {
    include: [
      'test/ordering-stores.test.ts',
      'test/ordering-guards.test.ts',
      'test/ordering-scan.test.ts',
      'test/ordering-sweep.test.ts',
    ],
    testTimeout: 60_000,
  },
})
