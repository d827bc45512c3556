import { defineConfig } from 'vitest/config'

/**
 * The tests that hold decisions by themselves: a mutant is to be caught by one of these, not by a service that stumbles.
 */
export default defineConfig({
  root: new URL('../..', import.meta.url).pathname,
  test: {
    include: [
      'test/purchase-table.test.ts',
      'test/purchase-keys.test.ts',
      'test/properties-domain.test.ts',
      'test/supplier-classify.test.ts',
      'test/supplier-refusal.test.ts',
      'test/supplier-signature.test.ts',
      'test/properties-verifier.test.ts',
    ],
    setupFiles: ['test/mutation/set-up.ts'],
    testTimeout: 60_000,
  },
})
