/**
 * Names the tests that passed at a second try, and fails a run in which they are many: a race that is lost now and then is one that is
 * lost.
 */
import type { Reporter, TestCase } from 'vitest/node'

/** What a busy machine explains. */
const MOST = 2

export default class RetriedReporter implements Reporter {
  readonly #retried: string[] = []

  onTestCaseResult(test: TestCase): void {
    if (test.diagnostic()?.flaky) this.#retried.push(`${test.module.relativeModuleId} > ${test.fullName}`)
  }

  onTestRunEnd(): void {
    for (const name of this.#retried) process.stdout.write(`passed at a second try: ${name}\n`)
    if (this.#retried.length <= MOST) return
    process.stdout.write(`${this.#retried.length} tests passed at a second try, at most ${MOST} may\n`)
    process.exitCode = 1
  }
}
