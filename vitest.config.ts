import path from 'node:path'
import { defineConfig, type ViteUserConfig } from 'vitest/config'
import { mistakeNamed, withEdit } from './test/campaigns/mistakes/list.ts'
import { LongestFirst } from './test/support/longest-first.ts'

/** Makes a seeded mistake in the program that the tests load: `QUAYSIDE_MISTAKE=random-key npx vitest run …`. */
function mistake(name: string): NonNullable<ViteUserConfig['plugins']>[number] {
  const { edits } = mistakeNamed(name)
  return {
    // The cache of transformed files is kept under the names of the plugins.
    name: `quayside-mistake-${name}`,
    enforce: 'pre',
    transform: (text, id) =>
      edits
        .filter(({ file }) => id === path.join(import.meta.dirname, './src', file))
        .reduce((changed, edit) => withEdit(changed, edit), text),
  }
}

const { QUAYSIDE_MISTAKE } = process.env

export default defineConfig({
  plugins: QUAYSIDE_MISTAKE ? [mistake(QUAYSIDE_MISTAKE)] : [],
  test: {
    include: ['test/**/*.test.ts'],
    globalSetup: './test/support/postgres-server.ts',
    setupFiles: './test/support/fixed-seed.ts',
    // Real processes and sockets on a busy machine; nothing here is meant to come near this.
    testTimeout: 120_000,
    hookTimeout: 120_000,
    expect: { poll: { timeout: 20_000 } },
    pool: 'forks',
    // A worker runs file after file with the modules that it has loaded: no test leaves anything in one, in `process` or `globalThis`.
    isolate: false,
    // One more than the cores of a small machine: most files wait for processes and sockets, not for the processor.
    maxWorkers: 3,
    sequence: { sequencer: LongestFirst },
    // Their own processes start as quickly as the service does.
    execArgv: ['--import', new URL('./src/quick-imports.js', import.meta.url).href],
    // The service is started some hundred times as a process: each start takes a third less with what others compiled.
    env: { NODE_COMPILE_CACHE: path.join(import.meta.dirname, 'node_modules/.cache/compile') },
  },
})
