/** The files of a set-up: the configuration, its secrets, and the permanent ids of stores. */
import { chmodSync, readFileSync, renameSync, rmSync, statSync } from 'node:fs'
import path from 'node:path'
import { makeFolder, undoOfFolder, writeText } from '../storage/files.ts'

export interface SetUpFile {
  file: string
  text: string
  mode: number
}

export const secretsOf = (file: string): string => path.join(path.dirname(file), 'secrets')

/** Writes the files in the given order: secrets come before files that need them. @returns a function that undoes all of it */
export function writeSetUp(secrets: string, files: SetUpFile[]): () => void {
  const undo = remember([...files.map((one) => one.file), ...files.map((one) => `${one.file}.new`)], secrets)
  try {
    makeFolder(secrets)
    chmodSync(secrets, 0o700)
    for (const one of files) replace(one.file, one.text, one.mode)
    return undo
  } catch (error) {
    undo()
    throw error
  }
}

/** @returns a function that gives these files their present contents back, and removes folders that do not exist now */
function remember(files: string[], folder: string): () => void {
  const before = files.map((file) => {
    const facts = statSync(file, { throwIfNoEntry: false })
    return { file, text: facts && readFileSync(file), mode: facts && facts.mode & 0o777 }
  })
  const undoFolder = undoOfFolder(folder)
  return () => {
    for (const { file, text, mode } of before) {
      if (text === undefined) rmSync(file, { force: true })
      else replace(file, text, mode ?? 0o600)
    }
    undoFolder()
  }
}

/** Replaces a file in one step: whenever the machine stops, either the old or the new file is there as a whole. */
function replace(file: string, text: string | Buffer, mode: number): void {
  const next = `${file}.new`
  writeText(next, text, mode)
  chmodSync(next, mode)
  renameSync(next, file)
}

/** Makes a permanent id: a name that people recognise, and random characters that no other installation has. */
export const newStoreId = (name: string, randomBytes: (count: number) => Uint8Array): string =>
  `${slug(name)}-${permanent(randomBytes)}`

/** Makes a slug of at most 40 characters: `Anna's Games` becomes `anna-s-games`. Without any character left, it makes `store`. */
function slug(name: string): string {
  const plain = name
    .normalize('NFKD')
    .toLowerCase()
    .replaceAll(/\p{M}+/gu, '')
    .replaceAll(/[^a-z0-9]+/g, '-')
  return plain.slice(0, 40).replaceAll(/^-+|-+$/g, '') || 'store'
}

/** Returns 8 random characters of 32. Two installations on one API key get the same text with a chance of one in 10^12. */
const permanent = (randomBytes: (count: number) => Uint8Array): string =>
  [...randomBytes(8)].map((byte) => '0123456789abcdefghjkmnpqrstvwxyz'[byte & 31]).join('')
