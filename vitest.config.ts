import { defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    // Real processes and sockets on a busy machine; nothing here is meant to come near this.
    testTimeout: 60_000,
    hookTimeout: 60_000,
    pool: 'forks',
  },
})
