/**
 * The marker: a small file beside the database that shows how new the database must be.
 *
 * Before a request to buy leaves, the marker names its attempt, or an attempt that was committed later. A database that lacks
 * the named attempt is an older copy, however it came there: it lacks what was bought since. This assumes that the marker was
 * not put back together with the database. `quayside restore` does not need that assumption.
 */
import { readFileSync } from 'node:fs'
import { replaceText } from './files.ts'

export interface MarkerFacts {
  /** The restore epoch of the database: one more with each restore. */
  epoch: number
  /** Id of the newest attempt whose request to buy was about to leave; null before the first attempt. */
  attempt: string | null
}

export interface Marker {
  /** Returns the facts in the file; undefined when there is no file. A damaged file counts as a file of a later epoch. */
  read(): MarkerFacts | undefined
  /** Writes a new marker for this epoch. */
  begin(facts: MarkerFacts): Promise<void>
  /**
   * Resolves once the file names this attempt, or one that was committed later.
   *
   * @throws when the file cannot be written: then the request must not leave
   */
  note(attempt: string): Promise<void>
}

/** @param database the database file; the marker lies beside it */
export function openMarker(database: string): Marker {
  const file = `${database}.marker`
  let facts: MarkerFacts = { epoch: 1, attempt: null }
  let writing: Promise<void> = Promise.resolve()
  let waiting: Promise<void> | undefined
  /** Callers that come during a write share the next write. That write stores the facts of its time. */
  const write = (): Promise<void> => {
    waiting ??= writing
      .catch(() => undefined)
      .then(() => {
        waiting = undefined
        writing = replaceText(file, `${JSON.stringify(facts)}\n`)
        return writing
      })
    return waiting
  }
  return {
    read: () => readMarker(file),
    begin: (begun) => {
      facts = begun
      return write()
    },
    note: (attempt) => {
      facts = { ...facts, attempt }
      return write()
    },
  }
}

function readMarker(file: string): MarkerFacts | undefined {
  let text: string
  try {
    text = readFileSync(file, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
  const match = /^\{"epoch":([1-9]\d{0,8}),"attempt":(null|"([0-9a-z]{1,40})")\}\n$/.exec(text)
  if (!match) return { epoch: Number.POSITIVE_INFINITY, attempt: null }
  return { epoch: Number(match[1]), attempt: match[3] ?? null }
}
