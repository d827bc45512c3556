import path from 'node:path'
import { type Command, InvalidArgumentError } from 'commander'
import { loadConfig } from '../config/config.ts'
import { Failure } from '../errors.ts'
import { CONFIG_FILE, configFileOf } from './client.ts'
import { listCommand, print, serviceCommand, shareOptions, widthOf } from './command.ts'
import { age, asRow, cell, details, exitCodes, instant, type Row, wrap } from './output.ts'
import type { Session } from './program.ts'

/** `tokens`: who may use the API. */
export function addTokens(root: Command, session: Session): void {
  const tokens = root.command('tokens').description('who may use the API: create, list, revoke')

  const create = tokens.command('create').description('make a token; its text is shown this once')
  create.requiredOption('--name <name>', 'who or what will use it')
  create.requiredOption('--role <role>', 'store, viewer, operator or admin')
  create.option('--store <id>', 'the one store that a store token speaks for')
  create.option('--scopes <scopes>', 'of a store token: orders, keys or orders,keys', 'orders,keys')
  create.option('--expires-in-days <days>', 'until it is revoked unless told', wholeText)
  create.addHelpText('after', EXAMPLES)
  serviceCommand(create, session, async (call) => {
    const days = call.option('expiresInDays')
    const token = asRow(
      await call.client.post(['tokens'], {
        name: call.option('name'),
        role: call.option('role'),
        ...(call.option('store') === undefined ? {} : { store: call.option('store') }),
        ...(call.option('role') === 'store'
          ? { scopes: (call.option('scopes') ?? '').split(/[\s,]+/).filter(Boolean) }
          : {}),
        ...(days === undefined ? {} : { expiresInDays: Number(days) }),
      }),
    )
    call.print(token, () => `${cell(token.token)}\nKeep it: it is not shown again. Its id is ${cell(token.id)}.\n`)
    return undefined
  })

  listCommand(tokens.command('list').description('tokens that were made'), session, {
    path: ['tokens'],
    whole: true,
    empty: 'No token was made yet; the owner token is none of them.',
    columns: ({ io }) => [
      { title: 'ID', of: (row) => cell(row.id), keep: true },
      { title: 'NAME', of: (row) => cell(row.name) },
      { title: 'ROLE', of: (row) => cell(row.role) },
      { title: 'STORE', of: (row) => cell(row.store) },
      { title: 'TOKEN', of: (row) => `${cell(row.hint)}…` },
      { title: 'STATE', of: (row) => stateOf(row, io.now()) },
    ],
  })

  const revoke = tokens.command('revoke').description('end a token at once').argument('<id>', 'its id')
  serviceCommand(revoke, session, async (call) => {
    const answer = await call.client.delete(['tokens', call.args[0] ?? ''])
    call.print(answer, () => 'Revoked. Whatever used it is refused from now on.\n')
    return undefined
  })
}

const EXAMPLES = `
Roles: a store hands in and reads its own orders; a viewer reads; an operator
also retries, cancels, replays and freezes; an admin also reveals bodies and
makes tokens and webhooks.

Examples:
  quayside tokens create --name shop --role store --store my-store-4f7k2m9q
  quayside tokens create --name anna --role operator --expires-in-days 90`

function stateOf(token: Row, now: number): string {
  if (token.revokedAt) return `revoked ${age(token.revokedAt, now)} ago`
  if (typeof token.expiresAt !== 'string') return 'good'
  return Date.parse(token.expiresAt) <= now ? 'expired' : `until ${instant(token.expiresAt, now).slice(0, 10)}`
}

/** The service sets the bounds; here a word must not become NaN. */
function wholeText(text: string): string {
  if (!/^\d{1,6}$/.test(text)) throw new InvalidArgumentError('Give a whole number of days.')
  return text
}

/** `keys`: the key-encryption key, under which everything secret in the database lies. */
export function addKeys(root: Command, session: Session): void {
  const keys = root.command('keys').description('the key-encryption key of the database: rotate')

  const rotate = keys.command('rotate').description('put the database under the next key-encryption key')
  rotate.addHelpText('after', HELP)
  serviceCommand(rotate, session, async (call) => {
    const names = asRow(await call.client.post(['keys', 'rotate']))
    const source = configFileOf(call.option('config'), session.io.env)
    const folder = path.join(path.dirname(source?.file ?? CONFIG_FILE), 'secrets')
    call.print(names, () => rotatedText(cell(names.before), cell(names.after), folder))
    return undefined
  })
}

const HELP = `
The running service reads the next key from secrets/next-key-encryption-key
beside its configuration, or as QUAYSIDE_NEXT_KEY_ENCRYPTION_KEY (or _FILE)
says.

Example:
  umask 077
  openssl rand -base64 32 > config/secrets/next-key-encryption-key
  quayside keys rotate`

/** @param folder where the service looks for its secrets when no variable names them */
function rotatedText(before: string, after: string, folder: string): string {
  return `Rotated: the database is under the key-encryption key ${after}, no longer
under ${before}. Make it the key of the setting before the next start, such as

  cd ${folder}
  mv key-encryption-key key-${before}
  mv next-key-encryption-key key-encryption-key

Keep ${before} as long as a backup needs it: \`quayside backup list\` names the key
of each.
`
}

/** A database of several gigabytes is copied, checked and sealed within this time. */
const DEADLINE_MS = 15 * 60_000

/** `backup`: a whole, checked and sealed copy of the database, made by the running service. */
export function addBackup(root: Command, session: Session): void {
  const backup = root.command('backup').description('back up the database now; see the backups that are kept')
  backup.addHelpText('after', BACKUP_EXAMPLES)
  serviceCommand(backup, session, async (call) => {
    const made = asRow(await call.client.post(['backups'], undefined, undefined, DEADLINE_MS))
    const { file, bytes, keyName } = asRow(made.backup)
    call.print(made, () => {
      const text = `${sizeText(bytes)}, sealed under the key-encryption key ${cell(keyName)}. Keep both, apart from each other.`
      return `Backed up: ${cell(made.folder)}/${cell(file)}\n${wrap(text, call.width).join('\n')}\n`
    })
    return undefined
  })

  listCommand(backup.command('list').description('backups that are kept, the newest first'), session, {
    path: ['backups'],
    whole: true,
    empty: 'There is no backup yet. `quayside backup` makes one.',
    columns: ({ io }) => [
      { title: 'FILE', of: (row) => cell(row.file), keep: true },
      { title: 'AGE', of: (row) => (row.readable ? age(row.madeAt, io.now()) : 'unreadable'), right: true },
      { title: 'SIZE', of: (row) => sizeText(row.bytes), right: true },
      { title: 'EPOCH', of: (row) => cell(row.epoch), right: true },
      { title: 'KEY', of: (row) => cell(row.keyName) },
    ],
  })
}

const BACKUP_EXAMPLES = `
Examples:
  quayside backup             make one now; the schedule is backups.cron
  quayside backup list        what is kept, and the key that each needs`

/** Bytes in the largest unit in which they are at least one: `1.2 MiB`. */
export function sizeText(bytes: Row[string]): string {
  if (typeof bytes !== 'number') return '-'
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB']
  const place = Math.min(units.length - 1, Math.floor(Math.log2(Math.max(1, bytes)) / 10))
  const size = bytes / 1024 ** place
  return `${place === 0 ? size : size.toFixed(1)} ${units[place]}`
}

/** `restore`: puts a backup in the place of the database, while no service runs. */
export function addRestore(root: Command, { io, program, end }: Session): void {
  const restore = root.command('restore').description('put a backup back, while the service is stopped')
  restore.argument('<file>', 'path of a backup, or its name in the folder of the backups')
  restore.option('--key-file <file>', 'the key-encryption key that it was made under, when that is not the one set now')
  shareOptions(restore)
  restore.addHelpText('after', RESTORE_EXAMPLES)
  restore.action(async (file: string, options: { keyFile?: string; config?: string; json?: true }) => {
    const source = configFileOf(options.config, io.env)
    if (!source) throw new Failure('not_found', 'there is no configuration to restore into: name one by --config')
    const result = await program.restore({
      configFile: source.file,
      demo: source.demo,
      backup: file,
      ...(options.keyFile === undefined ? {} : { keyFile: options.keyFile }),
    })
    print(io, options.json === true, result, () => restoredText(result, io.now(), Math.min(widthOf(io), 80)))
    end(0)
  })
}

const RESTORE_EXAMPLES = `
Examples:
  quayside restore quayside-20260301T022000000Z.backup
  quayside restore /mnt/safe/old.backup --key-file ./old-key.txt`

/** What was done by `quayside restore`. */
export interface Restored {
  database: string
  /** ISO 8601. */
  madeAt: string
  epoch: number
  /** The database that was there; null when there was none. */
  replaced: string | null
}

function restoredText({ database, madeAt, epoch, replaced }: Restored, now: number, width: number): string {
  const head = details(
    [
      ['Restored', database],
      ['As of', instant(madeAt, now)],
      ['Epoch', cell(epoch)],
      ['Kept', replaced === null ? 'nothing: there was no database' : `${replaced}, the database that was there`],
    ],
    width,
  )
  return `${head}\n${NEXT.map((line) => wrap(line, width).join('\n')).join('\n')}\n`
}

const NEXT = [
  "Start the service. It buys nothing until the supplier's orders are mapped back, some minutes; `quayside status` says how far it is.",
  'Let your stores hand in again what came after the backup, orders and cancellations: what was bought for them is found, not bought again.',
  'Tokens that were revoked since are valid again, and freezes since are gone.',
]

/** `database`: creates what `serve` never creates by itself. */
export function addDatabase(root: Command, { io, program, end }: Session): void {
  const database = root.command('database').description('the database of a configured installation: create')
  const create = database.command('create').description('create the database, where there is none, and end')
  shareOptions(create)
  create.addHelpText('after', DATABASE_HELP)
  create.action(async (options: { config?: string; json?: true }) => {
    const file = options.config ?? (io.env.QUAYSIDE_CONFIG || CONFIG_FILE)
    const created = await program.createDatabase(loadConfig(file, io.env))
    print(io, options.json === true, created, () => `Created: ${created.database}\n`)
    end(exitCodes.ok)
  })
}

const DATABASE_HELP = `
\`quayside init\` creates the database of a new installation. This command is for
a configuration that was written by hand, and for a database that is lost
without a backup: then nothing is bought until the supplier's orders are
searched for orders of its stores.

Example:
  quayside database create`
