import { writeSync } from 'node:fs'
import { openApp } from './app.ts'
import { demoFolder } from './cli/client.ts'
import type { ServeOptions } from './cli/program.ts'
import { loadConfig } from './config/config.ts'
import { crashAt } from './crash-points.ts'
import { openDemo } from './demo/service.ts'
import { messageOf } from './errors.ts'
import { createLog } from './log.ts'

/** The supervisor should start the process anew: only then is it known what the database holds (EX_TEMPFAIL). */
const EXIT_RESTART = 75

/**
 * Runs the service until it is told to stop: with a configuration the real thing, without one the demo.
 *
 * The first SIGTERM or SIGINT ends it in order, a second one at once. An uncaught error ends the process: what it may
 * have left half-done is found at the next start.
 *
 * @returns the exit code
 */
export async function runService(options: ServeOptions): Promise<number> {
  const { env } = process
  const stopped = stopSignal()
  const onFatal = (failure: Error): void => {
    writeSync(2, `quayside: ${messageOf(failure)}; ending, to start anew\n`)
    // A moment for the 503 of those who wait; nothing is taken in any more.
    setTimeout(() => process.exit(EXIT_RESTART), 200)
  }
  if (options.demo) {
    const demo = await openDemo({
      port: options.port,
      dataDir: demoFolder(env),
      onFatal,
      out: process.stdout,
    })
    await stopped
    await demo.close()
    return ended()
  }
  const config = loadConfig(options.configFile, env)
  const log = createLog({ level: config.logLevel, write: (line) => void process.stdout.write(line) })
  const listen = { host: env.QUAYSIDE_HOST || config.listen.host, port: options.port ?? config.listen.port }
  // For tests of crashes alone.
  const at = crashAt(env.QUAYSIDE_CRASH)
  const app = await openApp({ config: { ...config, listen }, log, onFatal, at })
  process.stderr.write(`Quayside listens at ${app.url}\n`)
  await stopped
  await app.close()
  return ended()
}

/** How long what was cut off may hold the process: its requests to the supplier and the waits between them. */
const LINGER_MS = 500

/** All that counts is closed and on disk; what was cut off would hold the process for as long as its own deadlines. */
function ended(): 0 {
  setTimeout(() => process.exit(0), LINGER_MS).unref()
  return 0
}

/** Resolves at the first signal; the second ends the process on the spot. */
function stopSignal(): Promise<void> {
  return new Promise((resolve) => {
    let asked = false
    for (const signal of ['SIGTERM', 'SIGINT'] as const) {
      process.on(signal, () => {
        if (asked) process.exit(1)
        asked = true
        resolve()
      })
    }
  })
}
