import path from 'node:path'
import type { SandboxSettings } from './cli/program.ts'
import { readDialect } from './dialect/dialect.ts'
import { startSandbox } from './sandbox/server.ts'

/** Runs the sandbox alone until a signal. @returns the exit code */
export async function runSandbox({ dialect, ...settings }: SandboxSettings): Promise<number> {
  const file = dialect.endsWith('.json')
    ? path.resolve(dialect)
    : path.join(import.meta.dirname, '../config/dialects', `${dialect}.json`)
  const sandbox = await startSandbox({ ...settings, dialect: readDialect(file) })
  process.stderr.write(
    `The sandbox serves the Reseller API at ${sandbox.baseUrl},\nits controls at ${sandbox.controlUrl}\n`,
  )
  await new Promise<void>((resolve) => {
    process.once('SIGTERM', resolve)
    process.once('SIGINT', resolve)
  })
  await sandbox.close()
  return 0
}
