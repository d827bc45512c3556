/** The commands that work on the database themselves, while no service runs: `restore`, `database create`, `migrate-engine`. */
import type { MovedEngine, PutBack } from '../backup/engine-move.ts'
import { type Restored, restoreBackup } from '../backup/restore.ts'
import { loadOwn } from '../config/config.ts'
import { sentence } from '../domain/text-layout.ts'
import { Failure } from '../errors.ts'
import { createDatabase } from '../installation.ts'
import type { CopyProgress } from '../storage/engine-copy.ts'
import { ADDRESS } from '../storage/engine-move.ts'
import { kindOf } from '../stores/kinds.ts'
import { CONFIG_FILE, configFileOf } from './client.ts'
import { type Io, print, proseWidth } from './command.ts'
import type { CreateFlags, MoveFlags, RestoreFlags } from './commands.ts'
import { type Facts, factsText, maybe, when } from './facts.ts'
import { drawnLine } from './terminal.ts'
import { cell, commandLine, configOption } from './words.ts'

export async function runRestore(io: Io, { keyFile, config, json }: RestoreFlags, backup: string): Promise<undefined> {
  const source = configFileOf(config, io.env)
  if (!source) throw new Failure('not_found', 'there is no configuration to restore into: name one by --config')
  const result = await restoreBackup({ configFile: source.file, demo: source.demo, backup, keyFile }, io.env)
  print(io, json, result, () => endText(io, result, restoredFacts, NEXT))
}

const restoredFacts: Facts<Restored> = {
  Restored: 'database',
  'As of': when('madeAt'),
  Epoch: 'epoch',
  Settings: ({ revision }) => revision !== null && `revision ${revision}`,
  Kept: ({ replaced }) =>
    replaced === null ? 'nothing: there was no database' : `${replaced}, the database that was there`,
}

function endText<R extends object>(io: Io, done: R, facts: Facts<R>, next: string[]): string {
  const width = proseWidth(io)
  return `${factsText(done, facts, width, io.now())}\n${next.map((line) => sentence(line, width)).join('')}`
}

const HOLDS = `It buys nothing until the supplier's orders are reattached, some minutes; \`${commandLine('status')}\` says how far it is.`
const handIn = (after: 'backup' | 'move'): string =>
  `Let your stores hand in again what came after the ${after}, orders and cancellations: what was bought for them is found, not bought again.`

const NEXT = [
  `Start the service. ${HOLDS}`,
  handIn('backup'),
  'Tokens that were revoked since are valid again, and freezes since are gone.',
]

/** Creates the database, which `serve` never creates by itself. */
export async function runDatabaseCreate(io: Io, { config, json, besideFile }: CreateFlags): Promise<undefined> {
  const file = config ?? (io.env.QUAYSIDE_CONFIG || CONFIG_FILE)
  const settings = loadOwn(file, io.env)
  const created = await createDatabase(settings, besideFile)
  print(io, json, created, () => `Created: ${created.database}\n${firstOrderText(settings, configOption(config))}`)
}

/** Says what is left to do until the first order. `init` does this by itself, but this configuration was written by hand. */
function firstOrderText({ home, stores }: ReturnType<typeof loadOwn>, option: string): string {
  const lines = (commands: string[]) => commands.map((command) => `  ${commandLine(command + option)}\n`).join('')
  const first = `\nNext:\n${lines(home === 'file' ? ['doctor', 'serve'] : ['settings apply <file>', 'serve'])}`
  const backends = stores.filter((store) => kindOf(store).shop === null)
  if (backends.length === 0) return first
  const own = backends.flatMap(({ id }) => [
    `tokens create --name shop --role store --store ${id}`,
    `stores rotate-secret ${id}`,
  ])
  return `${first}
Beside the service, for the backend of each store: the token that it sends with
its orders, and the secret that callbacks are signed with, each shown once:
${lines(own)}`
}

export async function runMigrateEngine(io: Io, flags: MoveFlags): Promise<undefined> {
  const { putBack: isPutBack, serverGone, config, json } = flags
  if (serverGone && !isPutBack) throw new Failure('invalid', '--server-gone goes with --put-back')
  const settings = loadOwn(config ?? (io.env.QUAYSIDE_CONFIG || CONFIG_FILE), io.env)
  const { migrateEngine, putBack } = await import('../backup/engine-move.ts')
  if (isPutBack) {
    const back = await putBack(settings, { serverGone: serverGone === true })
    print(io, json, back, () => putBackText(io, back, serverGone === true))
    return undefined
  }
  const line = drawnLine(io, io.isTerminal && !json)
  const moved = await migrateEngine(settings, (progress) => line.draw(progressLine(progress))).finally(line.clear)
  print(io, json, moved, () => endText(io, moved, movedFacts, [MOVED]))
  return undefined
}

const movedFacts: Facts<MovedEngine> = {
  Moved: ({ from }) => cell(from),
  To: ({ to }) => cell(to),
  Rows: ({ rows, tables }) => `${cell(rows)} in ${tables.length} tables, each compared with the file`,
}

const MOVED =
  'Start the service: it uses the server. It does not start on the file again; keep that until you trust the server.'

function progressLine({ step, table, rows, total }: CopyProgress): string {
  const percent = total === 0 ? 100 : Math.floor((rows / total) * 100)
  const does = step === 'copy' ? 'copying' : 'comparing'
  return `${does} ${cell(rows)} of ${cell(total)} rows, ${percent}%: ${table}`
}

function putBackText(io: Io, back: PutBack, serverGone: boolean): string {
  const start = serverGone
    ? `Start the service without ${ADDRESS}. Nothing may ever start on the server's copy again: it has no note.`
    : `Take ${ADDRESS} away and start the service. None starts on the server's copy any more.`
  const next = back.epoch === null ? [start] : [start, HOLDS, handIn('move')]
  return endText(io, back, { 'Put back': 'database', Epoch: maybe('epoch') }, next)
}
