/**
 * The command line: one file for each group of commands. A command speaks to the running service over its REST API and
 * changes nothing itself; only `init`, `database create` and `restore` open the database, through the composition root, and only while no
 * service runs. `doctor` reads it beside the service.
 *
 * Everything is written through `io`: tables and words for people, one JSON document with `--json`, and faults on
 * standard error with what to do next. What a command throws ends here and becomes its exit code.
 */
import { Command, CommanderError } from 'commander'
import type { Config } from '../config/config.ts'
import type { SupplierOffer } from '../domain/supplier.ts'
import { codeOf, Failure, messageOf } from '../errors.ts'
import type { Secret } from '../secret.ts'
import { addBackup, addDatabase, addKeys, addRestore, addTokens, type Restored } from './admin.ts'
import { addPrice, addSync } from './catalogue.ts'
import { addDeliveries, addDiscrepancies, addOutbox, addWebhooks } from './deliveries.ts'
import { addDialect } from './dialect.ts'
import { addDoctor, type Inspection } from './doctor.ts'
import { addInit } from './init.ts'
import type { SupplierAccess } from './init-supplier.ts'
import { addListings } from './listings.ts'
import { addOrders } from './orders.ts'
import { exitCodeOf, exitCodes, plain, sentence } from './output.ts'
import { addPurchases, addReviews } from './purchases.ts'
import { addBalance, addSweep } from './reconcile.ts'
import { addServe } from './serve.ts'
import { addFreeze, addStatus } from './status.ts'
import { addStores } from './stores.ts'

/** The outside of one command. */
export interface Io {
  stdin: NodeJS.ReadableStream
  stdout: NodeJS.WritableStream
  stderr: NodeJS.WritableStream
  env: Record<string, string | undefined>
  /** Standard input and output are both a terminal: questions may be asked and a line be drawn again. */
  isTerminal: boolean
  /** Width of the terminal. */
  columns: number
  /** Epoch milliseconds. */
  now: () => number
  sleep: (ms: number) => Promise<void>
  /** In [0, 1). */
  random: () => number
  /** From a cryptographic source. */
  randomBytes: (count: number) => Uint8Array
}

/** What the command line needs of the composition root. */
export interface Program {
  /** The version of the package. */
  version: string
  /** Runs the service until it is told to stop. @returns the exit code */
  serve(options: ServeOptions): Promise<number>
  /** Runs the sandbox alone until it is told to stop. @returns the exit code */
  sandbox(options: SandboxSettings): Promise<number>
  /**
   * Finds out whether `openSetUp` would succeed; writes nothing.
   *
   * @throws Failure `conflict`, reason `database_in_use`, while a service runs
   * @throws Failure `invalid`, reason `wrong_key`, where another key-encryption key opens the database
   * @throws Failure `unavailable` where the data folder cannot be written to
   */
  checkSetUp(config: Config): Promise<void>
  /**
   * Reads three products from the supplier, as its dialect says, for a person to compare; `init` alone asks for it.
   *
   * @throws Failure `unavailable` or `rejected` when none can be read
   */
  readProducts(access: SupplierAccess): Promise<SupplierOffer[]>
  /**
   * Opens the database of an installation, and creates it where there is none; `init` alone asks for it.
   *
   * @param made stores whose permanent ids were made just now
   */
  openSetUp(config: Config, made: readonly string[]): Promise<SetUp>
  /**
   * Creates the database of a configured installation; `database create` alone asks for it.
   *
   * @throws Failure `conflict`, reason `database_exists`, where there is one
   */
  createDatabase(config: Config): Promise<{ database: string }>
  /**
   * Puts a backup in the place of the database; `restore` alone asks for it.
   *
   * @throws Failure `conflict`, reason `database_in_use`, while a service runs
   */
  restore(options: RestoreOptions): Promise<Restored>
  /** Looks at the database of an installation, also while a service runs, and writes nothing; `doctor` alone asks for it. */
  inspect(config: Config): Promise<Inspection>
}

export interface RestoreOptions {
  configFile: string
  /** The demo's own configuration: nothing of it is in the environment. */
  demo: boolean
  /** Path of a backup, or its name in the folder of the backups. */
  backup: string
  /** A file with the key-encryption key that it was made under. */
  keyFile?: string
}

export interface ServeOptions {
  configFile: string
  /** No configuration exists and none was named: everything runs against the sandbox, with a demo store. */
  demo: boolean
  /** Instead of the configuration's port. */
  port?: number
}

export interface SandboxSettings {
  port: number
  /** Name of a file in config/dialects, or path of a dialect file. */
  dialect: string
  apiKey: string
  /** Size of a generated catalogue; without it the shipped one is sold. */
  offers?: number
  seed?: number
  /** Keeps the world; without it, it is gone when the process ends. */
  file?: string
}

export interface SetUp {
  /**
   * Creates the supplier's webhook under the configured public address, and keeps its secret sealed. One that exists
   * under this address, and whose secret is held, is given back instead of a second one.
   */
  createWebhook(): Promise<{ id: string; url: string }>
  /** Makes a token of role `store` with the scopes `orders` and `keys`. */
  createStoreToken(store: string, name: string): Promise<Secret>
  /** The secret that callbacks to this store are signed with, `whsec_…`. */
  callbackSecret(store: string): Promise<Secret>
  close(): Promise<void>
  /** Closes, and removes the database if this set-up created it. */
  discard(): Promise<void>
}

/** One run of the command line: what the commands share. */
export interface Session {
  io: Io
  program: Program
  /** Takes the exit code of the command that ran. */
  end: (exitCode: number) => void
}

/** Runs one command. @param argv without the program itself; @returns the exit code, never throws */
export async function runCommand(argv: string[], io: Io, program: Program): Promise<number> {
  let exitCode: number = exitCodes.ok
  const session: Session = {
    io,
    program,
    end: (code) => {
      exitCode = code
    },
  }
  // A reader that has seen enough, such as `head`, closes the pipe: that is no fault, and must not stop a service.
  io.stdout.on('error', () => {})
  try {
    await commandLine(session).parseAsync(argv, { from: 'user' })
    return exitCode
  } catch (error) {
    // Commander has written what it has to say before it throws.
    if (!(error instanceof CommanderError)) io.stderr.write(faultText(error, Math.min(io.columns, 80)))
    return exitCodeOf(error)
  }
}

function commandLine(session: Session): Command {
  const { io, program } = session
  const root = new Command('quayside')
    .description('Lands licence keys from a wholesale supplier in your online stores.')
    .version(program.version, '-V, --version', 'print the version')
    .helpOption('-h, --help', 'print this help')
    .helpCommand('help [command]', 'print the help of a command')
    // `sync --json` and `sync runs --json` are options of two commands.
    .enablePositionalOptions()
    .showHelpAfterError('Add --help for the arguments and options.')
    .exitOverride()
    .configureOutput({
      writeOut: (text) => void io.stdout.write(text),
      writeErr: (text) => void io.stderr.write(text),
      outputError: (text, write) => write(text.replace(/^error: /, 'quayside: ')),
      getOutHelpWidth: () => io.columns,
      getErrHelpWidth: () => io.columns,
    })
    .addHelpText('after', EXAMPLES)
  root.commandsGroup('Set-up:')
  addInit(root, session)
  addDatabase(root, session)
  addDoctor(root, session)
  addServe(root, session)
  addTokens(root, session)
  addStores(root, session)
  addWebhooks(root, session)
  addDialect(root, session)
  root.commandsGroup('Keeping it safe:')
  addBackup(root, session)
  addRestore(root, session)
  addKeys(root, session)
  root.commandsGroup('Watching and deciding:')
  addStatus(root, session)
  addSync(root, session)
  addPrice(root, session)
  addListings(root, session)
  addOrders(root, session)
  addPurchases(root, session)
  addReviews(root, session)
  addDeliveries(root, session)
  addOutbox(root, session)
  addDiscrepancies(root, session)
  addSweep(root, session)
  addBalance(root, session)
  addFreeze(root, session)
  return root
}

const EXAMPLES = `
Examples:
  quayside serve                  run everything; a demo if nothing is set up
  quayside init                   connect a real supplier and store, by asking
  quayside doctor                 check a set-up and name what is wrong
  quayside sync --follow          read the catalogue now and watch
  quayside orders show 1001       one order from store to fulfilment

Exit codes: 0 done, 1 failed, 2 wrong usage, 3 service not running, 4 not found,
5 refused.
`

/** A fault for a person: what is wrong, what to do next, then the fields. The same in a pipe as in a terminal. */
function faultText(error: unknown, width: number): string {
  const fields = error instanceof Failure ? error.fields : []
  const known = codeOf(error) !== 'internal' || error instanceof Failure
  const text = known ? messageOf(error) : `this should not happen: ${messageOf(error)}`
  const lines = text
    .split('\n')
    .map((line) => plain(line))
    // A line that is a command stays in one piece, to be copied.
    .map((line, index) =>
      /^npx quayside /.test(line)
        ? `  ${line}\n`
        : sentence(line, width, { lead: index === 0 ? 'quayside: ' : '', hang: 2 }),
    )
  // A message that lists its faults, as the configuration's does, is not followed by the list again.
  const unsaid = fields.filter((fault) => !text.includes(fault.message))
  const faults = unsaid.map(({ field, message }) =>
    sentence(`${field}: ${plain(message)}`, width, { lead: '  ', hang: 4 }),
  )
  return [...lines, ...faults].join('')
}
