import { defineConfig } from 'vitest/config'

/**
 * The tests that hold decisions by themselves: a mutant is to be caught by one of these, not by a service that stumbles.
 */
export default defineConfig({
  root: new URL('../../..', import.meta.url).pathname,
  test: {
    include: [
      'test/domain/purchase.test.ts',
      'test/domain/purchase-table.test.ts',
      'test/domain/purchase-keys.test.ts',
      'test/domain/earnings.test.ts',
      'test/domain/store-order.test.ts',
      'test/domain/waiting.test.ts',
      'test/campaigns/properties/domain.test.ts',
      'test/supplier/classify.test.ts',
      'test/supplier/refusal.test.ts',
      'test/supplier/order-body.test.ts',
      'test/supplier/signature.test.ts',
      'test/supplier/signature-schemes.test.ts',
      'test/campaigns/properties/verifier.test.ts',
    ],
    setupFiles: ['test/campaigns/mutation/set-up.ts'],
    testTimeout: 60_000,
  },
})
