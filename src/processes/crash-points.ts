import type { FirstStartPoint } from '../backup/first-start.ts'
import type { Inbox } from '../inbox/receive.ts'
import type { CrashPoint } from '../ordering/context.ts'
import type { Database } from '../storage/database.ts'
import type { RotationPoint } from '../vault/keys.ts'

/**
 * Named instants at which a test ends the process, as if the process were killed there: before and after each commit, send
 * and answer. Without a registered hook these instants have no effect.
 */
export type ServicePoint =
  | CrashPoint
  /** Before each commit, and after it. */
  | 'committing'
  | 'committed'
  /** A delivery is stored; its sender is not answered yet. */
  | 'received'
  /** The sender of a delivery was answered, and the event loop has run nothing else since. */
  | 'acknowledged'

export type AtPoint = (point: ServicePoint | RotationPoint | FirstStartPoint) => void

/** Wraps the database: the hook is called before and after each of its commits. */
export const databaseWith = (at: AtPoint | undefined, db: Database): Database =>
  at === undefined
    ? db
    : {
        ...db,
        commit: async (changes) => {
          at('committing')
          const touched = await db.commit(changes)
          at('committed')
          return touched
        },
      }

/** Wraps `receive`: for a delivery that was stored, the hook is called before and after the answer. */
export const receiveWith = (at: AtPoint | undefined, receive: Inbox['receive']): Inbox['receive'] =>
  at === undefined
    ? receive
    : async (request) => {
        const receipt = await receive(request)
        if (receipt.outcome !== 'stored') return receipt
        at('received')
        // The caller answers the sender as soon as it has the receipt. `nextTick` runs right after that, before other events.
        process.nextTick(at, 'acknowledged')
        return receipt
      }
