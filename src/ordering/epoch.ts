import type { Log } from '../log.ts'
import type { Change, Database } from '../storage/database.ts'
import { insertAudit } from '../storage/evidence.ts'
import type { Marker } from '../storage/marker.ts'
import { oweAlert } from '../storage/outbox.ts'
import {
  attemptById,
  currentEpoch,
  distrustSends,
  type Epoch,
  forgetAccounts,
  lastInstants,
  RESTORE_ACTOR,
  setEpoch,
  setRestoreHold,
  storesMade,
} from '../storage/restores.ts'

export interface EpochParts {
  db: Database
  /** Epoch milliseconds. */
  now: () => number
  newId: () => string
}

/**
 * Finds out at a start whether the database is the one that was used last, before anything else is done with it.
 *
 * It is not when it lacks the attempt that the marker beside it names, or is of an earlier epoch; nor when it had a
 * marker and has none, because then it was carried here without one. All of these are restores, whoever made them.
 *
 * A new database buys nothing before the supplier's orders were compared, see `compareNew`, unless all stores were made
 * with it.
 *
 * @param parts.stores those of the configuration
 * @returns whether it was recognised as one, and is now in a new epoch with buying on hold
 */
export async function recogniseRestore(
  parts: EpochParts & { marker: Marker; log: Log; stores: readonly { id: string }[] },
): Promise<boolean> {
  const { db, marker, log } = parts
  const [marked, epoch] = [marker.read(), await currentEpoch(db)]
  const why = await reasonOf(db, marked, epoch)
  if (why !== undefined) {
    const begun = await noteRestore(parts, { cause: why, epochMin: marked?.epoch ?? 0, actor: 'quayside' })
    await marker.begin({ epoch: begun.epoch, attempt: null })
    log.warn('restore.recognised', { reason: why, count: begun.epoch })
    return true
  }
  if (!epoch) {
    // The marker first: a crash in between leaves one that asks for nothing.
    await marker.begin({ epoch: 1, attempt: null })
    await db.commit([setEpoch(firstEpoch, parts.now()), ...(await holdOfNew(parts))])
  } else if (!marked || marked.epoch !== epoch.epoch) await marker.begin({ epoch: epoch.epoch, attempt: null })
  else await marker.begin(marked)
  return false
}

async function holdOfNew({
  db,
  now,
  stores,
}: Pick<EpochParts, 'db' | 'now'> & { stores: readonly { id: string }[] }): Promise<Change[]> {
  const made = await storesMade(db)
  if (stores.every(({ id }) => made.includes(id))) return []
  return [setRestoreHold({ reason: NEW_DATABASE, actor: RESTORE_ACTOR, at: now() }, now())]
}

/** Why a new database does not buy at once. */
export const NEW_DATABASE = "the database is new: the supplier's orders are searched for orders of its stores first"

const firstEpoch: Epoch = {
  epoch: 1,
  restoredAt: null,
  unknownFrom: 0,
  scans: 0,
  roundAt: null,
  unreadable: 0,
  listEnd: null,
  mappedAt: null,
}

async function reasonOf(
  db: Database,
  marked: ReturnType<Marker['read']>,
  epoch: Epoch | undefined,
): Promise<string | undefined> {
  if (!marked) return epoch && 'the database was put here without the marker that lay beside it'
  if (marked.epoch > (epoch?.epoch ?? 1)) return 'the database is older than its last restore'
  // A restore that ended before it could write the marker has noted itself in the database, and nothing was done since.
  if (epoch && marked.epoch < epoch.epoch && epoch.scans === 0 && epoch.mappedAt === null) return undefined
  if (marked.attempt === null) return undefined
  const [known] = await db.query(attemptById(marked.attempt))
  return known ? undefined : 'the database is an older copy: it lacks what was bought last'
}

/**
 * Notes that the database was put back: a new epoch, buying on hold until the supplier's orders are mapped back, and
 * purchases with an open outcome counted as sent just now, since nobody knows when they were.
 *
 * @param noted.epochMin the highest epoch that is known from elsewhere
 * @param noted.unknownFrom the instant from which the database knows nothing; default: the last one that it has noted
 */
export async function noteRestore(
  { db, now: clock, newId }: EpochParts,
  { cause, epochMin, actor, unknownFrom }: { cause: string; epochMin: number; actor: string; unknownFrom?: number },
): Promise<Epoch> {
  const now = clock()
  const before = await currentEpoch(db)
  const known = before?.epoch ?? 1
  const next = Math.max(known, Number.isFinite(epochMin) ? epochMin : known) + 1
  const [last] = await db.query(lastInstants())
  const latest = unknownFrom ?? Math.max(0, last?.sentAt ?? 0, last?.receivedAt ?? 0, last?.readAt ?? 0)
  // What an earlier restore has not mapped yet is still unknown.
  const pending = before && before.restoredAt !== null && before.mappedAt === null
  const from = pending ? Math.min(before.unknownFrom, latest) : latest
  const epoch: Epoch = { ...firstEpoch, epoch: next, restoredAt: now, unknownFrom: from }
  const reason = `${cause}; nothing is bought until the supplier's orders are mapped back, some minutes from now`
  await db.commit([
    setEpoch(epoch, now),
    setRestoreHold({ reason, actor: RESTORE_ACTOR, at: now }, now),
    distrustSends(now),
    forgetAccounts(),
    insertAudit({ id: newId(), at: now, actor, action: 'restore', subject: `epoch ${next}`, detail: cause }),
    oweAlert({ newId, now: clock }, { type: 'restored', occasion: String(next), payload: { note: reason } }),
  ])
  return epoch
}
