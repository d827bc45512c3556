/**
 * The marker: a small file beside the database that says how far the database must have come.
 *
 * Before a request to buy leaves, the marker names an attempt that was committed with the intent to buy, or later. A database
 * file that lacks that attempt is an older copy, however it came to be there: it lacks what was bought since. This assumes
 * that the marker itself was not put back with the file; `quayside restore` does not need that assumption.
 */
import { readFileSync } from 'node:fs'
import { replaceText } from './files.ts'

export interface MarkerFacts {
  /** How often the database had been restored. */
  epoch: number
  /** Id of the last attempt that was about to leave; null before the first one. */
  attempt: string | null
}

export interface Marker {
  /** Returns what the file says; undefined when there is no file. A file that makes no sense is taken for one of a later epoch. */
  read(): MarkerFacts | undefined
  /** Writes a new marker for this epoch. */
  begin(facts: MarkerFacts): Promise<void>
  /**
   * Resolves once the file names this attempt, or one that was committed later.
   *
   * @throws when the file cannot be written: then nothing may leave
   */
  note(attempt: string): Promise<void>
}

/** @param database the database file; the marker lies beside it */
export function openMarker(database: string): Marker {
  const file = `${database}.marker`
  let facts: MarkerFacts = { epoch: 1, attempt: null }
  let writing: Promise<void> = Promise.resolve()
  let waiting: Promise<void> | undefined
  /** Callers that come during a write share the next one, which writes what is known then. */
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
