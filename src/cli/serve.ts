/** The two commands that stay in the foreground until a signal: the service, and the sandbox alone. */
import { statSync, writeSync } from 'node:fs'
import { type Config, dialectFileOf } from '../config/config.ts'
import type { Demo } from '../demo/service.ts'
import { Failure, messageOf } from '../errors.ts'
import { createLog, terminalLine } from '../log.ts'
import { readConfig } from '../settings/stored.ts'
import { databaseFileOf } from '../storage/data-folder.ts'
import { programVersion, readVersionNote } from '../storage/version-note.ts'
import { isLoopback } from '../stores/store-settings.ts'
import { consoleLinkText } from './admin.ts'
import { CONFIG_FILE, demoFolder } from './client.ts'
import type { Io } from './command.ts'
import type { ServeOptions } from './commands.ts'
import { exitCodes } from './exit-codes.ts'
import type { SandboxSettings } from './sandbox.ts'
import { commandLine, configOption, quoted } from './words.ts'

/**
 * Runs until a signal: the service where there is a configuration, the demo where there is none.
 *
 * An uncaught error ends the process. The next start finds what the process may have left half-done.
 */
export async function runService(io: Io, options: ServeOptions): Promise<undefined> {
  const named = options.config ?? (io.env.QUAYSIDE_CONFIG || undefined)
  const configFile = named ?? CONFIG_FILE
  // For a file that this user may not see, `statSync` throws: such a file must not be taken for a missing one.
  const exists = statSync(configFile, { throwIfNoEntry: false }) !== undefined
  const isFirstRun = !exists && publishedConsole(io.env) !== undefined
  if (named !== undefined && !exists && !isFirstRun) {
    const init = commandLine(`init --config ${named}`)
    throw new Failure('not_found', `there is no ${named}; \`${init}\` makes one`)
  }
  const stopped = io.stopSignal()
  if (!exists && options.role !== undefined) {
    throw new Failure('invalid', `--role needs a configuration, and there is no ${CONFIG_FILE}`)
  }
  if (exists) {
    const running = await startService(io, configFile, options)
    await stopped
    await running.close()
    return
  }
  let running: Promise<{ close: () => Promise<void> }> = Promise.resolve({ close: async () => undefined })
  const demo = await startDemo(io, named, options.port, (file) => {
    running = takePlace(io, demo, file)
  })
  running = Promise.resolve(demo)
  await stopped
  await (await running).close()
}

/** Ends the demo, and runs the installation that was set up in it. The person at its page has the only link. */
async function takePlace(io: Io, demo: Demo, file: string) {
  io.stdout.write(`\nThe demo ends: ${file} is written, and your installation starts in its place.\n`)
  const freeConsole = await demo.giveWay()
  return startService(io, file, {}, freeConsole).catch(async (error: unknown) => {
    await freeConsole()
    onFatal(error instanceof Error ? error : new Error(messageOf(error)))
    return { close: async () => undefined }
  })
}

/**
 * The console of a container whose port is published on the loopback of its host, and nowhere else: the variable says so. All else
 * would send sessions and keys over a network in clear text.
 *
 * @throws Failure `invalid` for an address that is not on loopback
 */
export function publishedConsole({ [PUBLISHED]: address }: Io['env']): Config['console'] | undefined {
  if (!address) return undefined
  const [, host = '', port = ''] = /^(.+):(\d{1,5})$/.exec(address) ?? []
  if (isLoopback(host)) return { listen: { host: '0.0.0.0', port: Number(port) }, url: `http://${host}:${port}` }
  const message = `${PUBLISHED} must be where the host publishes the console on its loopback, such as 127.0.0.1:8083`
  throw new Failure('invalid', message)
}

const PUBLISHED = 'QUAYSIDE_CONSOLE_PUBLISHED'

async function startDemo(
  io: Io,
  named: string | undefined,
  port: number | undefined,
  handOver: (configFile: string) => void,
): Promise<Demo> {
  const { openDemo } = await import('../demo/service.ts')
  return openDemo({
    port,
    setUp: { configFile: named ?? CONFIG_FILE, env: io.env, handOver },
    console: publishedConsole(io.env),
    dataDir: demoFolder(io.env),
    onFatal,
    out: io.stdout,
    commandLine,
    showLink: (link) => {
      if (io.isTerminal) io.stdout.write(`\n${consoleLinkText(link)}\n`)
    },
  })
}

async function startService(
  io: Io,
  configFile: string,
  { config: named, port, role }: ServeOptions,
  beforeConsole?: () => Promise<void>,
) {
  const config = await readConfig(configFile, io.env)
  const log = createLog({
    level: config.logLevel,
    write: (line) => void io.stdout.write(line),
    ...(io.isTerminal && { lineOf: terminalLine({ colours: !io.env.NO_COLOR }) }),
  })
  const listen = { host: io.env.QUAYSIDE_HOST || config.listen.host, port: port ?? config.listen.port }
  const console = publishedConsole(io.env) ?? config.console
  const { openApp } = await import('../app.ts')
  const opened = openApp({
    config: { ...config, listen, console },
    log,
    onFatal,
    ...(role && { role }),
    ...(beforeConsole && { beforeConsole }),
  })
  const app = await opened.catch((error: unknown) => Promise.reject(withAdvice(error, named, config)))
  const isAlone = beforeConsole === undefined && role !== 'worker'
  const link = io.isTerminal && isAlone ? await app.consoleLink() : null
  if (link !== null) io.stdout.write(`\n${consoleLinkText(link)}\n`)
  io.stderr.write(`Quayside listens at ${app.url}\n`)
  setTimeout(giveBackMemory, SETTLED_MS).unref()
  return app
}

/** By now a usual start has ended: what was loaded is compiled, and the catalogue is read. */
const SETTLED_MS = 20_000

/**
 * Gives the memory that the start has used back to the system: some 50 MB of 190. V8 collects when it needs room, and a service
 * that waits for orders needs none. It takes 50 ms, once. Node has the function where it was started with `--expose-gc`.
 */
function giveBackMemory(): void {
  try {
    globalThis.gc?.({ type: 'major', flavor: 'last-resort' })
  } catch {
    // The service works with more memory, too.
  }
}

function onFatal(failure: Error): void {
  writeSync(2, `quayside: ${messageOf(failure)}; ending, to be started again\n`)
  // The process stays for a moment, so that waiting clients get their 503. It accepts no new requests.
  setTimeout(() => process.exit(exitCodes.restart), 200)
}

const LACKS =
  'It lacks what was bought since: buying waits until that is found at the supplier. Let your stores hand in again what came since.'

/**
 * Adds advice on a missing database, which was never made or whose volume is lost. With an empty database in its place, the
 * service would not know what was bought. So the advice names the lost database first.
 */
function withAdvice(error: unknown, named: string | undefined, { databaseUrl, dataDir }: Config): unknown {
  if (!(error instanceof Failure)) return error
  const more = configOption(named)
  const isNewer = error.reason === 'database_newer' || error.reason === 'migration_changed'
  if (isNewer && databaseUrl === null) {
    const noted = readVersionNote(databaseFileOf(dataDir))
    // The backup of the note may be of tables that this version does not know either.
    const backup = noted?.before === programVersion() ? noted.backup : undefined
    const how = commandLine(`restore ${quoted(backup ?? '<backup>')}${more}`)
    const message = `${error.message}.\nTo go back all the same, put back the backup from before its first start:\n${how}\n${LACKS}`
    return new Failure(error.code, message, { cause: error, reason: error.reason })
  }
  if (error.reason !== 'no_database') return error
  const lost =
    databaseUrl === null
      ? [
          'If there was one, restore it or mount its volume first: a lost volume and a wrong dataDir look like a new installation. A backup is put back by',
          commandLine(`restore <backup>${more}`),
        ]
      : ['If there was one, let the server restore it first: a wrong address looks like a new installation.']
  const advice = [...lost, 'Only a new installation gets an empty one, by', commandLine(`database create${more}`)]
  return new Failure(error.code, [`${error.message}.`, ...advice].join('\n'), { cause: error, reason: error.reason })
}

export async function runSandbox(io: Io, { dialect, ...settings }: SandboxSettings): Promise<undefined> {
  const { readDialect } = await import('../dialect/dialect.ts')
  const { startSandbox } = await import('../sandbox/server.ts')
  const stopped = io.stopSignal()
  const sandbox = await startSandbox({ ...settings, dialect: readDialect(dialectFileOf(dialect, '.')) })
  const { origin } = new URL(sandbox.baseUrl)
  io.stderr.write(
    `The sandbox serves the Reseller API at ${sandbox.baseUrl}\nOpen ${origin} for its controls and faults\n`,
  )
  await stopped
  await sandbox.close()
}
