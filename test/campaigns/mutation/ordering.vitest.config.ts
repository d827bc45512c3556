import { defineConfig } from 'vitest/config'

/** The tests that are about one file: more of them would run for each of its mutants, and notice nothing more. */
export default defineConfig({
  root: new URL('../../..', import.meta.url).pathname,
  test: {
    include: (process.env.MUTATION_TESTS ?? '').split(' '),
    testTimeout: 60_000,
    // Each mutant has a process of its own in any case. So the program is loaded once for it, and not for each file of tests.
    isolate: false,
  },
})
