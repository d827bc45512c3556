/** The process: its signals, streams and exit code. */
import { randomBytes } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { runCommand } from './cli/commands.ts'

/** How long the process may stay alive after `runCommand`, for requests that were cut off. */
const LINGER_MS = 500

let signalled = false

/** Resolves at the first signal; the second ends the process at once. */
function stopSignal(): Promise<void> {
  return new Promise((resolve) => {
    for (const signal of ['SIGTERM', 'SIGINT'] as const) {
      process.on(signal, () => {
        if (signalled) process.exit(1)
        signalled = true
        resolve()
      })
    }
  })
}

const exitCode = await runCommand(process.argv.slice(2), {
  stdin: process.stdin,
  stdout: process.stdout,
  stderr: process.stderr,
  env: process.env,
  isTerminal: process.stdin.isTTY === true && process.stdout.isTTY === true,
  columns: process.stdout.columns ?? 80,
  now: Date.now,
  sleep: (ms) => sleep(ms),
  random: Math.random,
  randomBytes: (count) => randomBytes(count),
  stopSignal,
})

// A start that failed has said why. Whatever it has opened must not keep the process alive.
if (exitCode !== 0) process.exit(exitCode)
process.exitCode = 0
// Everything that counts is closed and on disk. A request that was cut off would hold the process until its own deadline.
if (signalled) setTimeout(() => process.exit(0), LINGER_MS).unref()
