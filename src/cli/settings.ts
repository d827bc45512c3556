/** The settings of the installation on the command line. Without a running service they are read and changed in its database. */
import { existsSync, readdirSync } from 'node:fs'
import path from 'node:path'
import { partsOf, readJson, readSecretFile } from '../config/config.ts'
import { sentence } from '../domain/text-layout.ts'
import { Failure } from '../errors.ts'
import type { InstallationSettings, SettingsChange, SettingsTrial } from '../settings/settings.ts'
import { configFileOf } from './client.ts'
import {
  type Call,
  type CommandRow,
  type FileFlags,
  fileOptions,
  type Io,
  print,
  proseWidth,
  wholeOf,
} from './command.ts'
import { exitCodes, NOT_RUNNING } from './exit-codes.ts'
import { findingText } from './facts.ts'
import { number, table, time } from './tables.ts'
import { cell, commandLine, configOption } from './words.ts'

/** Loaded when the service does not answer: it opens databases. */
const alone = () => import('../settings/adopt.ts')
const ACTOR = 'command line'
const applyOptions = {
  '--secrets <folder>': 'files with new secrets: api-key, store-<id>, alert-<channel>',
  '--base <revision>': { about: 'refuse unless this is the newest revision', parse: wholeOf('revision') },
}

export const settings: CommandRow[] = [
  { command: 'settings', about: 'supplier, stores, prices, caps: show, revisions, export, apply, undo, adopt' },
  {
    command: 'settings show',
    about: 'the settings in force, and where they are kept',
    call: 'GET /settings',
    text: ({ file, home, revision, settings: all }, { width, io }) => {
      const where = home === 'file' ? `They are lines of ${file}.` : `They are revision ${revision} in the database.`
      const rows = all.filter(({ isDefault }) => !isDefault)
      const others = `${where} The other ${all.length - rows.length} have their defaults.`
      return table(rows, { SETTING: 'name', VALUE: 'value' }, width, io.now()) + sentence(others, width)
    },
  },
  {
    command: 'settings revisions',
    about: 'who changed them, when, why, and what',
    call: 'GET /settings/revisions',
    empty: 'No revision: the settings are lines of the configuration file.',
    columns: {
      REVISION: number('revision'),
      AT: time('at'),
      BY: 'actor',
      WHY: 'reason',
      CHANGED: ({ changes }) => changes.map(({ field }) => field).join(', '),
    },
  },
  {
    command: 'settings export',
    about: 'the settings as one document of JSON, without secrets',
    examples: ['settings export > settings.json'],
    act: async (call) => {
      const seen = await use(call, (settings) => settings.read())
      call.io.stdout.write(`${JSON.stringify(seen.document, undefined, 2)}\n`)
      return undefined
    },
  },
  {
    command: 'settings apply <file>',
    about: 'try a document of settings, then put it in force',
    args: ['the document, as `settings export` prints it'],
    options: { ...applyOptions, '--why <text>': 'why; revisions and audit keep it', '--dry-run': 'only try it' },
    help: `
The supplier and the shops are asked about what changes at them. With a running
service nothing is restarted. Without one, the next start uses the settings.`,
    examples: ['settings apply settings.json --dry-run', "settings apply settings.json --why 'a new shop'"],
    act: applyFile,
  },
  {
    command: 'config',
    about: 'the configuration: check a file of settings before it is applied',
  },
  {
    command: 'config check <file>',
    about: 'the same as `settings apply <file> --dry-run`',
    args: ['a document of settings, or a whole configuration'],
    options: applyOptions,
    act: tryFile,
  },
  {
    command: 'settings undo',
    about: 'put the settings before the newest revision in force again',
    act: async (call) => {
      const done = await use(call, async (settings) => settings.undo((await settings.read()).revision, ACTOR))
      call.print(done, () => appliedText(done, call))
      return undefined
    },
  },
  {
    command: 'settings adopt',
    about: 'move the settings from the configuration file into the database',
    options: fileOptions,
    help: `
Stop the service first. The settings are tried before they are moved. The file
keeps what belongs to this machine, and is kept as it was under another name.`,
    run: async (io, options: FileFlags) => adopt(io, options),
  },
]

type Settings = Pick<InstallationSettings, 'read' | 'try' | 'apply' | 'undo'>

/** Uses the settings of the service; where none runs, those in its database. */
async function use<T>(call: Call, act: (settings: Settings) => Promise<T>): Promise<T> {
  try {
    return await act(ofService(call))
  } catch (error) {
    return (await alone()).withSettings(fileAlone(call, error), call.io.env, act)
  }
}

function ofService({ client }: Call): Settings {
  const bodyOf = ({ document, secrets = {} }: SettingsChange) => {
    const texts = Object.entries(secrets).map(([name, secret]) => [name, secret.reveal()])
    return { document: document as object, secrets: Object.fromEntries(texts) as Record<string, string> }
  }
  return {
    read: () => client.call('GET /settings/document'),
    try: (change) => client.call('POST /settings/try', { body: bodyOf(change) }),
    apply: ({ base, why, ...change }) =>
      client.call('POST /settings/document', { body: { ...bodyOf(change), reason: why }, ifMatch: `${base}` }),
    undo: (base) => client.call('POST /settings/undo', { ifMatch: `${base}` }),
  }
}

/** Returns the configuration of an installation whose service does not run. @throws the error where it is another one */
export function fileAlone({ option, io }: Call, error: unknown): string {
  const source = configFileOf(option('config'), io.env)
  const isStopped = error instanceof Failure && error.reason === NOT_RUNNING
  if (!isStopped || !source || source.demo || option('url') !== undefined) throw error
  return source.file
}

/** Reads a document. Of a whole configuration, the settings of the installation count. */
function givenIn({ args, option }: Call): SettingsChange {
  const folder = option('secrets')
  const read = (name: string) => [name, readSecretFile(path.join(folder ?? '', name))] as const
  const secrets = folder === undefined ? {} : Object.fromEntries(readdirSync(folder).map(read))
  return { document: partsOf(readJson(args[0] ?? '')).document, secrets }
}

async function tryFile(call: Call): Promise<number> {
  const given = givenIn(call)
  const trial = await use(call, (settings) => settings.try(given))
  call.print(trial, () => trialText(trial, call))
  const works = trial.faults.length === 0 && trial.findings.every(({ state }) => state !== 'failed')
  return works ? exitCodes.ok : exitCodes.failed
}

async function applyFile(call: Call): Promise<number> {
  if (call.flag('dryRun')) return tryFile(call)
  const why = call.option('why')
  if (why === undefined) throw new Failure('invalid', "say why, for the revisions: --why 'a new shop'")
  const given = givenIn(call)
  const { base: named } = call.values('base') as { base?: number }
  const done = await use(call, async (settings) => {
    const base = named ?? (await settings.read()).revision
    return settings.apply({ ...given, base, why }, ACTOR)
  }).catch(async (failure: unknown) => {
    // The database of a service that does not run has no settings yet.
    if (!(failure instanceof Failure) || failure.reason !== 'no_settings') throw failure
    const { beginAlone } = await alone()
    await beginAlone(
      configFileOf(call.option('config'), call.io.env)?.file ?? '',
      call.io.env,
      { ...given, why },
      ACTOR,
    )
    return { revision: 1, changes: [] }
  })
  call.print(done, () => appliedText(done, call))
  return exitCodes.ok
}

const changeColumns = {
  SETTING: 'field',
  BEFORE: ({ before }: { before: string | null }) => before ?? '-',
  AFTER: ({ after }: { after: string | null }) => after ?? '-',
} as const

function trialText({ faults, findings, changes }: SettingsTrial, { width, io }: Call): string {
  const wrong = faults.map(({ field, message }) => findingText('failed', field, message, null, width))
  const found = findings.map(({ state, field, check, detail, fix }) =>
    findingText(state, field === check ? check : `${field}, ${check}`, detail, fix, width),
  )
  const changed = changes.length === 0 ? '' : table(changes, changeColumns, width, io.now())
  const none = faults.length === 0 && changes.length === 0 ? sentence('Nothing would change.', width) : ''
  return [...wrong, ...found, changed, none].join('')
}

function appliedText({ revision, changes }: Awaited<ReturnType<InstallationSettings['apply']>>, { width, io }: Call) {
  const shown = changes.length === 0 ? '' : table(changes, changeColumns, width, io.now())
  return shown + sentence(`In force: revision ${revision}. \`${commandLine('settings undo')}\` takes it back.`, width)
}

async function adopt(io: Io, { config, json }: FileFlags): Promise<undefined> {
  const source = configFileOf(config, io.env)
  if (!source || source.demo) throw new Failure('not_found', 'there is no configuration: name one by --config')
  const adopted = await (await alone()).adoptSettings(source.file, io.env)
  print(io, json, adopted, () => {
    const folder = path.join(path.dirname(source.file), 'secrets')
    const files = adopted.unused.map(({ file }) => path.join(folder, file)).filter((file) => existsSync(file))
    const lines = [
      `The settings are in the database, as revision ${adopted.revision}. ${source.file} as it was is ${adopted.kept}.`,
      `Their secrets are sealed there. These are not read any more: ${files.map(cell).join(', ') || 'the variables that held them'}. Remove them.`,
      `Start the service; then \`${commandLine(`settings show${configOption(config)}`)}\`.`,
    ]
    return lines.map((line) => sentence(line, proseWidth(io))).join('')
  })
}
