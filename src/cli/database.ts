/** The commands that work on the database themselves, while no service runs: `restore` and `database create`. */
import { type Restored, restoreBackup } from '../backup/restore.ts'
import { loadConfig } from '../config/config.ts'
import { wrap } from '../domain/text-layout.ts'
import { Failure } from '../errors.ts'
import { createDatabase } from '../installation.ts'
import { CONFIG_FILE, configFileOf } from './client.ts'
import { type Io, print, widthOf } from './command.ts'
import { cell, commandLine, details, exitCodes, instant } from './output.ts'

export interface RestoreFlags {
  keyFile?: string
  config?: string
  json?: true
}

/** Puts a backup in the place of the database. @returns the exit code */
export async function runRestore(io: Io, { keyFile, config, json }: RestoreFlags, backup: string): Promise<number> {
  const source = configFileOf(config, io.env)
  if (!source) throw new Failure('not_found', 'there is no configuration to restore into: name one by --config')
  const result = await restoreBackup({ configFile: source.file, demo: source.demo, backup, keyFile }, io.env)
  print(io, json === true, result, () => restoredText(result, io.now(), Math.min(widthOf(io), 80)))
  return exitCodes.ok
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
  `Start the service. It buys nothing until the supplier's orders are reattached, some minutes; \`${commandLine('status')}\` says how far it is.`,
  'Let your stores hand in again what came after the backup, orders and cancellations: what was bought for them is found, not bought again.',
  'Tokens that were revoked since are valid again, and freezes since are gone.',
]

/** Creates what `serve` never creates by itself. @returns the exit code */
export async function runDatabaseCreate(io: Io, { config, json }: Omit<RestoreFlags, 'keyFile'>): Promise<number> {
  const file = config ?? (io.env.QUAYSIDE_CONFIG || CONFIG_FILE)
  const created = await createDatabase(loadConfig(file, io.env))
  print(io, json === true, created, () => `Created: ${created.database}\n`)
  return exitCodes.ok
}
