/**
 * The process: signals, exit codes and the choice between the demo and the real thing. Everything it starts, it ends.
 */
import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Program, runCommand } from './cli/program.ts'

/** Whole programs are loaded when they are run: a command that only asks the service answers in half the time. */
const program: Program = {
  version: (JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')) as { version: string })
    .version,
  serve: async (options) => (await import('./serve.ts')).runService(options),
  sandbox: async (settings) => (await import('./sandbox-command.ts')).runSandbox(settings),
  checkSetUp: async (config) => (await import('./installation.ts')).checkSetUp(config),
  readProducts: async (access) => (await import('./installation.ts')).readProductsOf(access),
  openSetUp: async (config, made) => (await import('./installation.ts')).setUpOf(config, made),
  createDatabase: async (config) => (await import('./installation.ts')).createDatabase(config),
  inspect: async (config) => (await import('./installation.ts')).inspect(config),
  restore: async (options) => (await import('./restore.ts')).restoreBackup(options, process.env),
}

const exitCode = await runCommand(
  process.argv.slice(2),
  {
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
  },
  program,
)

// What a start that failed had opened must not keep the process alive: it has said why, and that is its end.
if (exitCode === 0) process.exitCode = 0
else process.exit(exitCode)
