/**
 * The note of the version that works with a database file: a small file beside it, which a start reads before it opens the
 * database. Later versions read what earlier ones wrote: its fields keep their names and meanings for good.
 */
import { readFileSync } from 'node:fs'
import { replaceText } from './files.ts'

export interface VersionNote {
  version: string
  /** False while the first start of this version has not begun its work: until then it can be undone. */
  served: boolean
  /** The version before; null where it is not known. */
  before: string | null
  /** Path of the backup from before the first start of this version, and the digest of its newest migration. */
  backup?: string
  tables?: string
}

/** Returns the version of this program. */
export const programVersion = (): string =>
  (JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as { version: string }).version

/** @returns undefined where there is no note, or none that can be read */
export function readVersionNote(database: string): VersionNote | undefined {
  try {
    return JSON.parse(readFileSync(`${database}.version`, 'utf8')) as VersionNote
  } catch {
    return undefined
  }
}

/** Resolves when the note is on the disk. */
export const writeVersionNote = (database: string, note: Partial<VersionNote>): Promise<void> =>
  replaceText(`${database}.version`, `${JSON.stringify(note)}\n`)
