/**
 * Properties check the same cases in every run: a failure is there again when it is looked for. `QUAYSIDE_SEED=2 npx vitest run …`
 * checks others.
 */
import fc from 'fast-check'

fc.configureGlobal({ seed: Number(process.env.QUAYSIDE_SEED ?? 1) })
