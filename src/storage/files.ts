import {
  closeSync,
  existsSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readdirSync,
  renameSync,
  rmdirSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { open, rename } from 'node:fs/promises'
import path from 'node:path'
import { systemFailure } from '../errors.ts'

/**
 * Makes a folder and the folders above it, for their owner alone. A folder that is there stays as it is.
 *
 * The folders are made one at a time: with `recursive`, Node never returns where no folder can be made, as in /proc.
 */
export function makeFolder(folder: string): void {
  if (isFolder(folder)) return
  makeFolder(path.dirname(folder))
  try {
    mkdirSync(folder, { mode: 0o700 })
  } catch (error) {
    // Another process may have made the folder meanwhile.
    if (!isFolder(folder)) throw error
  }
}

const isFolder = (folder: string): boolean => statSync(folder, { throwIfNoEntry: false })?.isDirectory() ?? false

/** Notes which folders of this path are missing. @returns a function that removes them again where they are empty */
export function undoOfFolder(folder: string): () => void {
  const missing: string[] = []
  for (let one = path.resolve(folder); !existsSync(one); one = path.dirname(one)) missing.push(one)
  return () => {
    for (const one of missing) if (existsSync(one) && readdirSync(one).length === 0) rmdirSync(one)
  }
}

/** @throws Failure that says why the file cannot be written */
export function writeText(file: string, text: string | Buffer, mode: number): void {
  try {
    writeFileSync(file, text, { mode })
  } catch (error) {
    throw systemFailure(error, file) ?? error
  }
}

/** Gives a finished, fsynced file its name, and makes sure that the name is on the disk. It replaces a file of that name. */
export function placeFile(from: string, to: string): void {
  renameSync(from, to)
  syncFolder(path.dirname(to))
}

/** Makes the names in a folder survive a power cut. */
export function syncFolder(folder: string): void {
  const handle = openSync(folder, 'r')
  try {
    fsyncSync(handle)
  } finally {
    closeSync(handle)
  }
}

/** Replaces a small file without stopping the event loop. After any crash the file holds the old text or the new text. */
export async function replaceText(file: string, text: string, mode = 0o600): Promise<void> {
  const next = `${file}.new`
  const handle = await open(next, 'w', 0o600)
  try {
    await handle.chmod(mode)
    await handle.writeFile(text)
    await handle.sync()
  } catch (error) {
    throw systemFailure(error, next) ?? error
  } finally {
    await handle.close()
  }
  await rename(next, file)
  const folder = await open(path.dirname(file), 'r')
  await folder.sync().finally(() => folder.close())
}

/** Removes a file that is not needed any more. A file that cannot be removed does no harm. */
export function forget(file: string): void {
  try {
    rmSync(file, { force: true })
  } catch {
    // The folder is missing or cannot be written to. The caller that needs the folder reports that.
  }
}
