/**
 * The command line: a table of commands. A command speaks to the running service over its REST API and changes nothing
 * itself. Only `init`, `database create`, `migrate-engine`, `restore`, `settings` and `stores` open the database, and only while no service runs.
 * `doctor` reads the database while the service runs. Code that does more than ask the service is loaded when its command runs.
 *
 * An error that a command throws is caught here and becomes an exit code. Its message goes to standard error, with what to do
 * next, or as one JSON document with `--json`.
 */
import { setImmediate } from 'node:timers/promises'
import { Command, CommanderError } from 'commander'
import { DATA_DIR, roles } from '../config/config.ts'
import { plain, sentence } from '../domain/text-layout.ts'
import { Failure, messageOf, systemFailure } from '../errors.ts'
import { programVersion } from '../storage/version-note.ts'
import { shopKinds } from '../stores/kinds.ts'
import { backups, consoles, keys, people, tokens } from './admin.ts'
import { alerts } from './alerts.ts'
import { syncs } from './catalogue.ts'
import { claims } from './claims.ts'
import { CONFIG_FILE } from './client.ts'
import {
  addCommand,
  type CommandRow,
  fileOptions,
  type Given,
  helpText,
  type Io,
  oneOf,
  proseWidth,
  type Session,
  serviceOptions,
  whole,
} from './command.ts'
import { captures, deliveries, outbox, webhooks } from './deliveries.ts'
import { exitCodeOf, exitCodes, exitCodesText, failureDocument, messageLines } from './exit-codes.ts'
import { listings, prices } from './listings.ts'
import { orders } from './orders.ts'
import { purchases, reviews } from './purchases.ts'
import { receivers } from './receivers.ts'
import { balance, discrepancies, sweeps } from './reconcile.ts'
import { sandbox } from './sandbox.ts'
import { settings } from './settings.ts'
import { freezes, status } from './status.ts'
import { stores, trigger } from './stores.ts'
import { tail } from './tail.ts'
import { waiting } from './waiting.ts'
import { commandLine } from './words.ts'

/** Runs one command. Never throws. @param argv the arguments, without the program @returns the exit code */
export async function runCommand(argv: string[], io: Io): Promise<number> {
  const json = beforeDashes(argv).includes('--json')
  const session: Session = { io, exitCode: exitCodes.ok }
  let lost: unknown
  // A reader that has seen enough, such as `head`, closes the pipe: that is no fault. Lost output must not stop a service.
  io.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') lost ??= error
  })
  try {
    assertNoGuess(argv.join(' '))
    await commandsOf(session, json).parseAsync(argv, { from: 'user' })
  } catch (error) {
    session.exitCode = writeFault(io, error, json)
  }
  // The error of the last write is reported only in a later turn of the event loop.
  await setImmediate()
  if (lost === undefined || session.exitCode !== exitCodes.ok) return session.exitCode
  return writeFault(io, systemFailure(lost, 'standard output') ?? lost, json)
}

/** Writes why a command ended. @returns the exit code of the command */
function writeFault(io: Io, thrown: unknown, json: boolean): number {
  const error = systemFailure(thrown) ?? thrown
  const code = exitCodeOf(error)
  if (json && code !== exitCodes.ok) io.stderr.write(`${JSON.stringify(failureDocument(error), undefined, 2)}\n`)
  // Before Commander throws an error, it has written the message itself.
  else if (!(error instanceof CommanderError)) io.stderr.write(faultText(error, proseWidth(io)))
  return code
}

/** Returns the arguments before `--`. The arguments after `--` are no options. */
const beforeDashes = (argv: string[]): string[] => argv.slice(0, argv.includes('--') ? argv.indexOf('--') : undefined)

/** Makes the command line. @param json true: Commander prints no errors, because the caller prints them as JSON */
function commandsOf(session: Session, json: boolean): Command {
  const { io } = session
  const root = new Command('quayside')
    .description('Lands licence keys from a wholesale supplier in your online stores.')
    .version(programVersion(), '-V, --version', 'print the version')
    .helpOption('-h, --help', 'print this help')
    .helpCommand('help [command]', 'print the help of a command')
    // Otherwise the `--json` of `sync runs --json` would be taken for an option of `sync`.
    .enablePositionalOptions()
    .showHelpAfterError('Add --help for the arguments and options.')
    .exitOverride()
    .configureOutput({
      writeOut: (text) => void io.stdout.write(text),
      writeErr: (text) => void (json || io.stderr.write(text)),
      outputError: (text, write) => {
        const lines = text
          .replace(/^error: /, 'quayside: ')
          .trimEnd()
          .split('\n')
        write(lines.map((line) => sentence(line, proseWidth(io), { hang: 2 })).join(''))
      },
      getOutHelpWidth: () => io.columns,
      getErrHelpWidth: () => io.columns,
    })
    .addHelpText('after', helpText(EXAMPLES))
  for (const [group, rows] of Object.entries(groups)) {
    root.commandsGroup(`${group}:`)
    for (const row of rows) addCommand(root, session, row)
  }
  return root
}

const initOptions = {
  '--base-url <address>': "the supplier's API; that of the Reseller API ends in /v1",
  '--dialect <name or path>': 'how the supplier writes what the API leaves open; a path ends in .json',
  '--api-key-file <file>': 'a file that holds the API key; else QUAYSIDE_API_KEY is used',
  '--store-name <name>': 'what the store is called',
  '--callback-url <address>': 'where the store gets keys and failures; left out, a shop is added next',
  '--public-url <address>': 'where the supplier reaches this service; polling alone without it',
  '--markup <percent>': 'listing price = cost plus this',
  '--data-dir <folder>': `where the database is kept; default: ${DATA_DIR}, from the folder of the configuration`,
  '--port <number>': { about: 'where the service listens; default: 8080', parse: whole(65_535) },
  '--yes': 'ask nothing: what no flag says takes its default',
  '--offline': 'write the set-up without asking the supplier: no check, no webhook',
  '--force': 'write over a configuration, or beside a database; store ids and the key-encryption key stay',
  ...fileOptions,
}
export type InitOptions = Given<typeof initOptions>

const init: CommandRow = {
  command: 'init',
  about: 'write the configuration by asking; make secrets and a first token',
  options: initOptions,
  examples: [
    'init',
    `init --yes --base-url https://supplier.example/api/v1 \\
    --api-key-file ./key.txt --store-name 'My store' \\
    --callback-url https://shop.example/quayside`,
    `init --yes --base-url https://supplier.example/api/v1 \\
    --api-key-file ./key.txt && quayside stores add ${shopKinds[0]?.kind}`,
    'init --dialect config/my-supplier.json',
  ],
  run: async (io, options: InitOptions) => (await import('./init.ts')).runInit(io, options),
}

const createOptions = {
  '--beside-file': 'on an empty server, although the data folder has a database in a file: its data stay there',
  ...fileOptions,
}
export type CreateFlags = Given<typeof createOptions>

const database: CommandRow[] = [
  { command: 'database', about: 'the database of a configured installation: create' },
  {
    command: 'database create',
    about: 'create the database, where there is none, and end',
    options: createOptions,
    help: `
\`quayside init\` creates the database of a new installation. This command
is for a configuration that was written by hand, and for a database that is lost
without a backup: then nothing is bought until the supplier's orders are
searched for orders of its stores.`,
    examples: ['database create'],
    run: async (io, options: CreateFlags) => (await import('./database.ts')).runDatabaseCreate(io, options),
  },
]

const moveOptions = {
  '--put-back': 'let the service use the file again, which then counts as restored',
  '--server-gone': 'together with --put-back: the server is gone for good',
  ...fileOptions,
}
export type MoveFlags = Given<typeof moveOptions>

const migrateEngine: CommandRow = {
  command: 'migrate-engine',
  about: 'move the database from its file to PostgreSQL, while the service is stopped',
  options: moveOptions,
  help: `
QUAYSIDE_DATABASE_URL or the file secrets/database-url names the server; its
database is empty. A move that was interrupted goes on when it is started again.
Until every row is copied and compared, the service starts on neither; then it
starts on the server only. To put back, leave the address in its place and stop
every process.`,
  examples: ['migrate-engine', "migrate-engine --json | jq '.tables[] | select(.rows > 0)'"],
  run: async (io, options: MoveFlags) => (await import('./database.ts')).runMigrateEngine(io, options),
}

const doctorOptions = {
  '--report': 'print what a maintainer needs to help, without secrets and names',
  ...serviceOptions,
}
export type DoctorFlags = Given<typeof doctorOptions>

const doctor: CommandRow = {
  command: 'doctor',
  about: 'check a live set-up end to end; change nothing',
  options: doctorOptions,
  help: `
It reads and connects, and sends nothing that costs or changes anything. Without
a running service, the checks that need one are left out.

--report prints Markdown for an issue, or JSON with --json. It also works where
nothing runs, or the configuration has faults. Read it before you send it.`,
  examples: ['doctor', `doctor --json | jq '.findings[] | select(.level == "fail")'`, 'doctor --report > report.md'],
  run: async (io, options: DoctorFlags) => (await import('./doctor.ts')).runDoctor(io, options),
}

const serveOptions = {
  '--config <file>': `configuration, else QUAYSIDE_CONFIG, else ${CONFIG_FILE}`,
  '--port <number>': { about: "instead of the configuration's; 0 takes a free one", parse: whole(65_535) },
  '--role <role>': {
    about: 'all, web or worker: of several processes on PostgreSQL (default: all)',
    parse: oneOf(roles),
  },
}
export type ServeOptions = Given<typeof serveOptions>

const serve: CommandRow = {
  command: 'serve',
  about: 'run the service; without a configuration, a demo against the sandbox',
  options: serveOptions,
  run: async (io, options: ServeOptions) => (await import('./serve.ts')).runService(io, options),
}

const checkOptions = {
  ...fileOptions,
  '--document <file>': 'an OpenAPI document that was saved, instead of GET /openapi',
  '--dialect <name>': "a file in config/dialects, or a path, instead of the configuration's",
  '--base-url <address>': 'a supplier that is not set up yet, with the --dialect of its API',
  '--api-key-file <file>': 'its API key; else QUAYSIDE_API_KEY is used',
}
export type CheckOptions = Given<typeof checkOptions>

const detectOptions = {
  '--delivery <file>': {
    about: `one delivery, as \`${commandLine('dialect capture show')}\` prints it`,
    required: true,
  },
  '--secret-file <file>': { about: 'file that holds the signing secret of its webhook', required: true },
  '--json': fileOptions['--json'],
}
export type DetectOptions = Given<typeof detectOptions>

const dialect: CommandRow[] = [
  { command: 'dialect', about: 'fit a supplier: check its facts, detect its signature' },
  {
    command: 'dialect check',
    about: 'read the supplier and say of every field what was read',
    options: checkOptions,
    help: `
Only GETs are sent: a page of products, one product, one that is not there, the
balance (also without the key), the orders and their filters, the webhooks, and
the OpenAPI document. Nothing is bought or changed. What no answer shows is for
a person to ask; docs/dialect.md says which facts money rests on.`,
    examples: [
      'dialect check',
      `dialect check --base-url https://supplier.example/api/v1 \\
    --api-key-file key.txt --dialect ./my-supplier.json`,
      `dialect check --json |
    jq '.findings[] | select(.verdict == "unreadable")'`,
    ],
    run: async (io, options: CheckOptions) => (await import('./dialect.ts')).runCheck(io, options),
  },
  {
    command: 'dialect detect',
    about: 'find out how a delivery is signed',
    options: detectOptions,
    help: `
The file holds {"headers": {"name": "value"}, "body": "<base64>"}. Known are
hex, base64 and base64url, any prefix, lists parted by comma, semicolon or
blank, and a timestamp in seconds or milliseconds in any header or inside the
signature's.`,
    examples: ['dialect detect --delivery delivery.json --secret-file secret.txt'],
    run: async (io, options: DetectOptions) => (await import('./dialect.ts')).runDetect(io, options),
  },
]

const restoreOptions = {
  '--key-file <file>': 'the key-encryption key that it was made under, when that is not the one set now',
  ...fileOptions,
}
export type RestoreFlags = Given<typeof restoreOptions>

const restore: CommandRow = {
  command: 'restore <file>',
  about: 'put a backup back, while the service is stopped',
  args: ['path of a backup, or its name in the folder of the backups'],
  options: restoreOptions,
  examples: ['restore quayside-20260301T022000000Z.backup', 'restore /mnt/safe/old.backup --key-file ./old-key.txt'],
  run: async (io, options: RestoreFlags, file) => (await import('./database.ts')).runRestore(io, options, file ?? ''),
}

const upgradeOptions = {
  '--rehearse <package or folder>': {
    about: 'the new version: a package, as npm names it, or a folder',
    required: true,
  },
  '--copy-url-file <file>': 'for PostgreSQL: a file with the address of a copy of the database',
  ...fileOptions,
}
export type UpgradeFlags = Given<typeof upgradeOptions>

const figuresOptions = {
  '--config <file>': { about: 'configuration', required: true },
  '--copy <folder>': { about: 'folder of the copy, which this version may change', required: true },
  '--at <instant>': { about: 'the instant at which it decides, in epoch ms', parse: Number, required: true },
}
export type FiguresFlags = Given<typeof figuresOptions>

const upgrades: CommandRow[] = [
  {
    command: 'upgrade',
    about: 'rehearse an upgrade on a copy of the database; change nothing',
    options: upgradeOptions,
    help: `
The new version migrates the copy, checks the configuration, and computes every
price and the state of every open order. What differs from this version is
shown, then the steps. Supplier and stores are not asked.`,
    examples: ['upgrade --rehearse ./quayside-0.2.0.tgz', 'upgrade --rehearse /opt/quayside.next'],
    run: async (io, options: UpgradeFlags) => (await import('./upgrade.ts')).runUpgrade(io, options),
  },
  {
    command: 'rehearse-figures',
    hidden: true,
    about: 'what `upgrade --rehearse` compares, of this version',
    options: figuresOptions,
    run: async (io, options: FiguresFlags) => (await import('./upgrade.ts')).runFigures(io, options),
  },
]

const groups: Record<string, CommandRow[]> = {
  'Set-up': [
    init,
    ...database,
    migrateEngine,
    doctor,
    serve,
    ...sandbox,
    ...tokens,
    ...people,
    ...settings,
    ...stores,
    trigger,
    ...receivers,
    ...webhooks,
    ...dialect,
    ...captures,
  ],
  'Keeping it safe': [...backups, restore, ...upgrades, ...keys],
  'Watching and deciding': [
    consoles,
    status,
    waiting,
    ...alerts,
    tail,
    ...syncs,
    ...prices,
    ...listings,
    ...orders,
    ...purchases,
    ...reviews,
    ...claims,
    ...deliveries,
    ...outbox,
    ...discrepancies,
    ...sweeps,
    balance,
    ...freezes,
  ],
}

/** Commands that people type and that do not exist, each with a sentence that names the right command. */
const GUESSES: [typed: RegExp, sentence: string][] = [
  [/^(logs?)\b.*/, 'there is no `$1`: `quayside tail` shows what happens; the log is what `serve` writes'],
  [/^stores (rm|delete)\b.*/, 'there is no `stores $1`: run `quayside stores remove`'],
  [/^(start|run|up)\b.*/, 'there is no `$1`: run `quayside serve`'],
  [/^(\w+) (get|info|view)\b.*/, 'there is no `$1 $2`: run `quayside $1 show`'],
  [/^(\w+) (ls|all)\b.*/, 'there is no `$1 $2`: run `quayside $1 list`'],
  [
    /^trigger listings\.changed\b.*/,
    '`listings.changed` has no example: `quayside listings retry ID` sends a real one',
  ],
]

/** @throws Failure `invalid` for a command in `GUESSES`; the message names the right command */
function assertNoGuess(typed: string): void {
  for (const [pattern, sentence] of GUESSES) {
    if (pattern.test(typed)) throw new Failure('invalid', helpText(typed.replace(pattern, sentence)))
  }
}

const EXAMPLES = `
Examples:
  quayside serve              run everything; a demo if nothing is set up
  quayside init               connect a real supplier and store, by asking
  quayside doctor             check a set-up and name what is wrong
  quayside sync --follow      read the catalogue now and watch
  quayside orders show 1001   one order from store to fulfilment

Exit codes:
${exitCodesText}`

/** Writes a fault for a person: what is wrong, what to do next, then the fields. A pipe gets the same text as a terminal. */
function faultText(error: unknown, width: number): string {
  const strange = `this should not happen: ${messageOf(error)}`
  const failure = error instanceof Failure ? error : new Failure('internal', strange)
  const lines = messageLines(failure)
    .map(plain)
    // A line that is a command is not wrapped, so that it can be copied.
    .map((line, index) =>
      line.startsWith(commandLine(''))
        ? `  ${line}\n`
        : sentence(line, width, { lead: index === 0 ? 'quayside: ' : '', hang: 2 }),
    )
  // The messages of some failures, such as a wrong configuration, contain their faults. Such faults are not listed again.
  const unsaid = failure.fields.filter((fault) => !failure.message.includes(fault.message))
  const faults = unsaid.map(({ field, message }) =>
    sentence(`${field}: ${plain(message)}`, width, { lead: '  ', hang: 4 }),
  )
  return [...lines, ...faults].join('')
}
