import { defineConfig } from 'vitest/config'

/** The tests of one file of `src/ordering`: more of them would run for each of its mutants, and notice nothing more. */
export default defineConfig({
  root: new URL('../../..', import.meta.url).pathname,
  test: { include: (process.env.MUTATION_TESTS ?? '').split(' '), testTimeout: 60_000 },
})
