/**
 * The note of a move from the file to a server. No service starts on a database with the note. Both databases have it during the
 * move; afterwards only the database that is given up has it. Without the note, a service on each would buy everything twice.
 */
import { isoDay } from '../domain/figures.ts'
import { conflict, type Failure } from '../errors.ts'
import type { Database } from './database.ts'
import { clearSetting, jsonSetting } from './settings.ts'

export interface EngineMove {
  /** The same in the file and in its copy. */
  id: string
  side: 'file' | 'copy'
  /** What people call the file and the server. */
  from: string
  to: string
  /** Epoch ms. In the file: since when the copy is whole. In the copy: since when the file is used again. Null before. */
  doneAt: number | null
}

/** The name of the note in the settings: the only row that is not copied. */
export const MOVE_SETTING = 'engine_move'

const moveSetting = jsonSetting<EngineMove>(MOVE_SETTING)

/** @returns undefined for a database that was never moved, and for a copy that is whole */
export const engineMove = (db: Pick<Database, 'query'>): Promise<EngineMove | undefined> => moveSetting.read(db)

export const setEngineMove = (move: EngineMove, now: number) => moveSetting.put(move, now)

export const clearEngineMove = () => clearSetting(MOVE_SETTING)

/** @throws Failure `conflict`, reason `database_moved`, for a database that no service may use any more, or not yet */
export async function assertNotMoved(db: Pick<Database, 'query'>): Promise<void> {
  const move = await engineMove(db)
  if (move !== undefined) throw movedFailure(move)
}

export const movedFailure = (move: EngineMove): Failure => conflict('database_moved', moveText(move))

/** Where a person sets the address of the server, as messages name it: a variable, or a file beside the configuration. */
export const ADDRESS = 'QUAYSIDE_DATABASE_URL (or secrets/database-url)'

/** The refusal of a second move to the server that the file was moved to. */
export const movedAlready = ({ from, to, doneAt }: EngineMove): Failure =>
  conflict('database_moved', `${wasMoved(from, to, doneAt)} already: start the service, ${STAY}`)

/** The refusal of an empty server beside a file that was never moved to it. */
export function leftBehind(file: string, server: string): Failure {
  const ways =
    '`quayside migrate-engine` moves it there, and only where the empty one is meant, `quayside database create --beside-file` makes a new one'
  return conflict('database_left', `${server} is empty, and ${file} holds the data of this installation: ${ways}`)
}

const STAY = 'or `quayside migrate-engine --put-back` to use the file again'

const wasMoved = (from: string, to: string, at: number | null): string =>
  `${from} was moved to ${to}${at === null ? '' : ` on ${isoDay(at)}`}`

function moveText({ side, from, to, doneAt }: EngineMove): string {
  if (side === 'copy' && doneAt !== null) {
    return `${to} was given up for ${from} on ${isoDay(doneAt)}, and is used no more: take ${ADDRESS} away to use the file`
  }
  if (side === 'copy') {
    return `${to} is an unfinished copy of ${from}: run \`quayside migrate-engine\` where that file is, until the copy is whole`
  }
  if (doneAt === null) return `${from} is being moved to ${to}: run \`quayside migrate-engine\` to finish, ${STAY}`
  return `${wasMoved(from, to, doneAt)}: set ${ADDRESS} to use that, ${STAY}`
}
