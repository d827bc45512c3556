import { randomBytes } from 'node:crypto'
import { type OwnConfig, storeIdsOf } from '../config/config.ts'
import { conflict, Failure } from '../errors.ts'
import { createIds } from '../ids.ts'
import { createLog } from '../log.ts'
import { noteRestore, recogniseRestore } from '../reconciliation/restore.ts'
import { databaseFileOf } from '../storage/data-folder.ts'
import type { Database } from '../storage/database.ts'
import { placeName } from '../storage/database-place.ts'
import { type CopyProgress, compareTables, copyTables, tablesWithRows } from '../storage/engine-copy.ts'
import {
  ADDRESS,
  clearEngineMove,
  type EngineMove,
  engineMove,
  movedAlready,
  movedFailure,
  setEngineMove,
} from '../storage/engine-move.ts'
import { insertAudit, listAudit } from '../storage/evidence.ts'
import { openMarker } from '../storage/marker.ts'
import { openPostgres, openPostgresToRead } from '../storage/postgres/open.ts'
import { openDatabase } from '../storage/sqlite/open.ts'

export type MovedEngine = Awaited<ReturnType<typeof migrateEngine>>
export type PutBack = Awaited<ReturnType<typeof putBack>>

/** The action of an audit entry that only a whole copy has. */
const MOVED = 'database.move'
const fromText = ({ from }: { from: string }): string => `from ${from}`

const now = (): number => Date.now()
const newId = createIds(now, randomBytes)

/**
 * Moves the database from the file to the server that is configured, for `quayside migrate-engine`.
 *
 * From the first table on, both databases hold a note of the move, and no service starts on a database with a note. The copy
 * loses its note once every row is compared; the file keeps its own. When a call is cut short, the next one continues the move.
 *
 * @throws Failure `invalid` without a server; `conflict`, reason `database_in_use`, while a service runs; reason
 *   `database_exists` when the server has a database already; reason `database_moved` when the file was moved before;
 *   reason `copy_differs`
 */
export async function migrateEngine(config: OwnConfig, watch: (progress: CopyProgress) => void = () => undefined) {
  const { databaseUrl, dataDir } = config
  if (databaseUrl === null) {
    throw new Failure('invalid', `there is no server to move to: set ${ADDRESS} to the address of its database`)
  }
  const file = openDatabase({ file: databaseFileOf(dataDir), now, mustExist: true })
  try {
    const known = await engineMove(file)
    const names = { from: databaseFileOf(dataDir), to: placeName(config) }
    // The check comes before the server's tables are brought up to date: another database must stay as it is.
    const there = await openPostgresToRead(databaseUrl.reveal())
    await assertOwnCopy(there, known, names.to).finally(() => there?.close())
    const move = await begin(config, file, { ...names, id: known?.id ?? newId() }, known)
    const copy = await openPostgres({ url: databaseUrl.reveal(), now, alone: true }).catch(async (error: unknown) => {
      if (!known) await file.commit([clearEngineMove()])
      throw error
    })
    try {
      await assertOwnCopy(copy, known, names.to)
      await copy.commit([setEngineMove({ ...move, side: 'copy', doneAt: null }, now())])
      await copyTables(file, copy, watch)
      const tables = await compareTables(file, copy, watch)
      // The file is marked first, so that no service starts on it any more. Only then may a service start on the copy.
      if (move.doneAt === null) await file.commit([setEngineMove({ ...move, doneAt: now() }, now())])
      const entry = { id: newId(), at: now(), actor: 'migrate-engine', action: MOVED, subject: names.to }
      await copy.commit([clearEngineMove(), insertAudit({ ...entry, detail: fromText(names) })])
      return { ...names, rows: tables.reduce((sum, { rows }) => sum + rows, 0), tables }
    } finally {
      await copy.close()
    }
  } finally {
    await file.close()
  }
}

/** Notes the move in the file, before there is a table on the server. */
async function begin(
  config: OwnConfig,
  file: Database,
  names: Omit<EngineMove, 'side' | 'doneAt'>,
  known: EngineMove | undefined,
): Promise<EngineMove> {
  if (!known) {
    // A start of the service makes this check too: an older copy of the file must not be moved as if it were the newest.
    const marker = openMarker(databaseFileOf(config.dataDir))
    const log = createLog({ level: 'error', write: () => undefined })
    await recogniseRestore({ db: file, marker, now, newId, log, storeIds: storeIdsOf(config) })
  }
  const move: EngineMove = { ...names, side: 'file', doneAt: known?.doneAt ?? null }
  if (move.doneAt === null) await file.commit([setEngineMove(move, now())])
  return move
}

/** @throws Failure `conflict` for a copy of another move, a database that is no copy, and a file that was moved already */
async function assertOwnCopy(
  copy: Pick<Database, 'query'> | undefined,
  known: EngineMove | undefined,
  name: string,
): Promise<void> {
  const move = copy && (await engineMove(copy))
  if (move !== undefined && move.id === known?.id) return
  if (known && known.doneAt !== null) throw name === known.to ? movedAlready(known) : movedFailure(known)
  const filled = copy && (await tablesWithRows(copy))
  if (move === undefined && (filled ?? []).length === 0) return
  const state = move?.doneAt === null ? 'an unfinished copy' : 'a copy that was given up'
  const what = move ? `${name} has ${state} of ${move.from}, of another move` : `${name} is not empty`
  throw conflict('database_exists', `${what}: give the move a new database, as createdb makes one`)
}

/**
 * Lets services use the file again, for `quayside migrate-engine --put-back`. The file lacks what was bought with its copy, so
 * the file counts as restored. A whole copy gets a note first, so that no service starts on the copy any more.
 *
 * @param serverGone the copy gets no note, and is never to be used again
 * @returns the new epoch of the file, which counts as restored; null: none, as nothing can have been bought with the copy
 * @throws Failure `conflict` for a file that was not moved, and a server that has no copy of the file; reason
 *   `database_in_use`, while a process works with the file or with the copy
 * @throws Failure `invalid` where the configuration does not name the server
 */
export async function putBack(config: OwnConfig, { serverGone = false }: { serverGone?: boolean } = {}) {
  const database = databaseFileOf(config.dataDir)
  const file = openDatabase({ file: database, now, mustExist: true })
  try {
    const move = await engineMove(file)
    if (!move) throw new Failure('conflict', `${database} was not moved: there is nothing to put back`)
    // An unfinished copy needs no new note: it still holds its note of the move.
    const copy = move.doneAt === null || serverGone ? undefined : await openCopy(config, move)
    try {
      await copy?.commit([setEngineMove({ ...move, side: 'copy', doneAt: now() }, now())])
      const epoch = move.doneAt === null ? null : await noteReturn(file, database, move)
      await file.commit([clearEngineMove()])
      return { database, epoch }
    } finally {
      await copy?.close()
    }
  } finally {
    await file.close()
  }
}

/** A running process sends a statement to the database at each tick, at most this much late. */
const SILENT_MS = 3_000

/** The longest time between two ticks that the settings allow, in seconds: where they are in the copy, it is not known. */
const TICK_MAX = 60

/** Opens the copy when no process works with it, and keeps every other process out. */
async function openCopy({ databaseUrl, ordering, dataDir }: OwnConfig, move: EngineMove): Promise<Database> {
  if (databaseUrl === null) {
    const put = `set ${ADDRESS} to the address of ${move.to} again, so that no service starts there any more`
    throw new Failure('invalid', `${put}; where that server is gone for good, add --server-gone`)
  }
  const url = databaseUrl.reveal()
  const there = await openPostgresToRead(url)
  const isCopy = await isCopyOf(there, move).finally(() => there?.close())
  if (!isCopy) {
    const named = placeName({ dataDir, databaseUrl })
    throw new Failure('conflict', `${named} has no copy of ${move.from}: that is ${move.to}`)
  }
  return openPostgres({ url, now, alone: true, unusedMs: (ordering?.tickSeconds ?? TICK_MAX) * 1_000 + SILENT_MS })
}

async function isCopyOf(there: Pick<Database, 'query'> | undefined, move: EngineMove): Promise<boolean> {
  if (there === undefined) return false
  const noted = await engineMove(there)
  if (noted) return noted.id === move.id
  const [moved] = await there.query(listAudit({ action: MOVED, subject: move.to, limit: 1 }))
  return moved?.detail === fromText(move)
}

async function noteReturn(file: Database, database: string, { to }: EngineMove): Promise<number> {
  const marker = openMarker(database)
  const cause = `put back after it was moved to ${to}`
  const epochMin = marker.read()?.epoch ?? 0
  const { epoch } = await noteRestore({ db: file, now, newId }, { cause, epochMin, actor: 'migrate-engine' })
  await marker.begin({ epoch, attempt: null })
  return epoch
}
