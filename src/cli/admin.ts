import { sentence } from '../domain/text-layout.ts'
import { Failure } from '../errors.ts'
import { secretsOf } from '../settings/set-up-files.ts'
import { CONFIG_FILE, configFileOf, type Item } from './client.ts'
import { type Call, type CommandRow, wholeOf } from './command.ts'
import { key, number, right } from './tables.ts'
import { ageOf, cell, commandLine } from './words.ts'

export const tokens: CommandRow[] = [
  { command: 'tokens', about: 'who may use the API: create, list, revoke' },
  {
    command: 'tokens create',
    about: 'make a token; its text is shown this once',
    options: {
      '--name <name>': { about: 'who or what will use it', required: true },
      '--role <role>': { about: 'store, viewer, operator or admin', required: true },
      '--store <id>': 'the one store that a store token speaks for',
      '--scopes <scopes>': { about: 'of a store token: orders, keys or orders,keys', fallback: 'orders,keys' },
      '--expires-in-days <days>': { about: 'how long it is valid (default: until revoked)', parse: wholeOf('days') },
    },
    help: `
Roles: a store hands in and reads its own orders; a viewer reads; an operator
also retries, cancels, replays and freezes; an admin also reveals bodies and
makes tokens and webhooks.`,
    examples: [
      'tokens create --name shop --role store --store my-store-4f7k2m9q',
      'tokens create --name anna --role operator --expires-in-days 90',
    ],
    call: 'POST /tokens',
    body: ({ option, values }) => ({
      ...values('name', 'role', 'store', 'expiresInDays'),
      scopes: option('role') === 'store' ? (option('scopes') ?? '').split(/[\s,]+/).filter(Boolean) : undefined,
    }),
    text: (token) => `${cell(token.token)}\nKeep it: it is not shown again. Its id is ${cell(token.id)}.\n`,
  },
  {
    command: 'tokens list',
    about: 'tokens that were made',
    call: 'GET /tokens',
    page: null,
    empty: 'No token was made yet; the owner token is none of them.',
    columns: {
      ID: key('id'),
      NAME: 'name',
      ROLE: 'role',
      STORE: 'store',
      TOKEN: ({ hint }) => `${hint}…`,
      STATE: stateOf,
    },
  },
  {
    command: 'tokens revoke <id>',
    about: 'end a token at once',
    call: 'DELETE /tokens/:id',
    text: () => 'Revoked. Whatever used it is refused from now on.\n',
  },
]

function stateOf({ revokedAt, expiresAt }: Item<'GET /tokens'>, now: number): string {
  if (revokedAt !== null) return `revoked ${ageOf(revokedAt, now)} ago`
  if (expiresAt === null) return 'good'
  return Date.parse(expiresAt) <= now ? 'expired' : `until ${expiresAt.slice(0, 10)}`
}

/** Makes a link to the console. The link signs in each person who has it, so it is printed to a terminal alone. */
export const consoles: CommandRow = {
  command: 'console',
  about: 'print a link that signs you in to the console, once',
  options: {
    '--role <role>': { about: 'viewer, operator or admin', fallback: 'admin' },
    '--name <name>': 'who will use it, for the audit log (default: the user of this machine)',
    '--print': 'print it into a pipe or a file too',
  },
  help: `
The link works once, within ten minutes. A session ends twelve hours after its
last use, and after seven days at the latest.`,
  examples: ['console', 'console --role operator --name anna'],
  call: 'POST /console/links',
  body: (call) => {
    assertPrintable(call)
    const { io, option } = call
    return { name: option('name') ?? (io.env.USER || io.env.LOGNAME || 'owner'), role: option('role') }
  },
  text: ({ link }) => `${consoleLinkText(cell(link))}\n`,
}

/** @throws Failure `invalid` where the output is kept: a person who reads a link there signs in with it */
function assertPrintable({ io, flag }: Pick<Call, 'io' | 'flag'>): void {
  if (io.isTerminal || flag('print')) return
  const message =
    'this is no terminal: a link that is kept in a file or a log signs in its reader; --print prints it anyway'
  throw new Failure('invalid', message)
}

export const people: CommandRow[] = [
  { command: 'people', about: 'who may sign in to the console: list, invite, remove' },
  {
    command: 'people list',
    about: 'who is signed in, was within 90 days, or has a link',
    call: 'GET /console/people',
    page: null,
    empty: `No person has signed in yet. \`${commandLine('console')}\` prints a link for you.`,
    columns: {
      NAME: key('name'),
      ROLE: 'role',
      SEEN: right(({ seenAt }, now) => (seenAt === null ? 'never' : `${ageOf(seenAt, now)} ago`)),
      SESSIONS: number('sessions'),
      LINK: ({ linkUntil }) => (linkUntil === null ? '-' : `until ${linkUntil.slice(0, 16).replace('T', ' ')}`),
    },
  },
  {
    command: 'people invite',
    about: 'print a link that signs a colleague in, once, within a day',
    options: {
      '--name <name>': { about: 'who will use it, for the audit log', required: true },
      '--role <role>': { about: 'viewer, operator or admin', fallback: 'operator' },
      '--print': 'print it into a pipe or a file too',
    },
    help: `
The same is the next sign-in of a colleague whose session has ended. A token of
an operator makes links for operators and viewers, one of an admin for all.`,
    examples: ['people invite --name jonas', 'people invite --name kim --role viewer'],
    call: 'POST /console/links',
    body: (call) => {
      assertPrintable(call)
      return { name: call.option('name'), role: call.option('role'), hours: 24 }
    },
    text: ({ link, name, role }) =>
      `Give this link to ${cell(name)}. It works once, within 24 hours, as ${cell(role)}:\n\n  ${cell(link)}\n`,
  },
  {
    command: 'people remove',
    about: 'end every session and every unused link of a person',
    options: { '--name <name>': { about: 'whose', required: true }, '--reason <text>': 'for the audit log' },
    call: 'POST /console/people/remove',
    body: ['name', 'reason'],
    text: ({ name }) => `${cell(name)} is signed out everywhere, and no link signs ${cell(name)} in.\n`,
  },
]

/** Returns the text with a link to the console. The whole link stands on a line of its own, so that a terminal can open it. */
export const consoleLinkText = (link: string): string => `Open the console, once, within ten minutes:\n\n  ${link}\n`

export const keys: CommandRow[] = [
  { command: 'keys', about: 'the key-encryption key of the database: rotate' },
  {
    command: 'keys rotate',
    about: 'put the database under the next key-encryption key',
    help: `
The running service reads the next key from secrets/next-key-encryption-key
beside its configuration, or as QUAYSIDE_NEXT_KEY_ENCRYPTION_KEY (or _FILE)
says.

Example:
  umask 077
  openssl rand -base64 32 > config/secrets/next-key-encryption-key
  quayside keys rotate`,
    call: 'POST /keys/rotate',
    text: ({ before, after }, { option, io }) => {
      const source = configFileOf(option('config'), io.env)
      const [old, next] = [cell(before), cell(after)]
      const keep = `Keep ${old} as long as a backup needs it: \`${commandLine('backup list')}\` names the key of each.`
      // The service looks for its secrets in this folder when no variable names them.
      const folder = secretsOf(source?.file ?? CONFIG_FILE)
      return `Rotated: the database is under the key-encryption key ${next}, no longer
under ${old}. Make it the key of the setting before the next start, such as

  cd ${folder}
  mv key-encryption-key key-${old}
  mv next-key-encryption-key key-encryption-key

${sentence(keep, 80)}`
    },
  },
]

/** The commands for backups: whole, checked and sealed copies of the database, which the running service makes. */
export const backups: CommandRow[] = [
  {
    command: 'backup',
    about: 'back up the database now; see the backups that are kept',
    examples: [
      'backup             make one now; the schedule is backups.cron',
      'backup list        what is kept, and the key that each needs',
    ],
    call: 'POST /backups',
    // A database of several gigabytes is copied, checked and sealed within this time.
    deadlineMs: 15 * 60_000,
    text: ({ folder, backup: { file, bytes, keyName } }, { width }) => {
      const text = `${sizeText(bytes)}, sealed under the key-encryption key ${cell(keyName)}. Keep both, apart from each other.`
      return `Backed up: ${cell(folder)}/${cell(file)}\n${sentence(text, width)}`
    },
  },
  {
    command: 'backup list',
    about: 'backups that are kept, the newest first',
    call: 'GET /backups',
    page: null,
    empty: `There is no backup yet. \`${commandLine('backup')}\` makes one.`,
    columns: {
      FILE: key('file'),
      AGE: right(({ readable, madeAt }, now) => (readable ? ageOf(madeAt, now) : 'unreadable')),
      SIZE: right(({ bytes }) => sizeText(bytes)),
      EPOCH: number('epoch'),
      KEY: 'keyName',
    },
  },
]

/** Writes a number of bytes in the largest unit of which there is at least one: `1.2 MiB`. */
export function sizeText(bytes: number | null): string {
  if (bytes === null) return '-'
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB']
  const index = Math.min(units.length - 1, Math.floor(Math.log2(Math.max(1, bytes)) / 10))
  const size = bytes / 1024 ** index
  return `${index === 0 ? size : size.toFixed(1)} ${units[index]}`
}
