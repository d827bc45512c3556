import { defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    // Real processes and sockets on a busy machine; nothing here is meant to come near this.
    testTimeout: 120_000,
    hookTimeout: 120_000,
    pool: 'forks',
    // One per core of a small machine: most files wait for processes and sockets, not for the processor.
    maxWorkers: 2,
  },
})
