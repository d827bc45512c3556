import { defineConfig } from 'vitest/config'

/** The tests that are about one file: more of them would run for each of its mutants, and notice nothing more. */
export default defineConfig({
  root: new URL('../../..', import.meta.url).pathname,
  test: { include: (process.env.MUTATION_TESTS ?? '').split(' '), testTimeout: 60_000 },
})
