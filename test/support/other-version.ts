/** Another version of the program, made of this tree: a folder with the sources, and this tree's packages. */
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import type { TestContext } from 'vitest'

const root = path.join(import.meta.dirname, '../..')

export interface Changes {
  version: string
  /** The SQL of a migration more. */
  migration?: string
  /** Texts that are replaced in files of `src`. */
  edits?: [file: string, from: string, to: string][]
}

/** @returns the folder, which goes when the test ends */
export function otherVersion(onTestFinished: TestContext['onTestFinished'], changes: Changes): string {
  const folder = mkdtempSync(path.join(tmpdir(), 'quayside-version-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  for (const name of ['src', 'config/dialects', 'data/sandbox', 'test/support/crash.ts']) {
    cpSync(path.join(root, name), path.join(folder, name), { recursive: true })
  }
  symlinkSync(path.join(root, 'node_modules'), path.join(folder, 'node_modules'))
  const settings = JSON.parse(readFileSync(path.join(root, 'package.json'), 'utf8')) as object
  writeFileSync(path.join(folder, 'package.json'), JSON.stringify({ ...settings, version: changes.version }))
  const migrations = path.join(folder, 'src/storage/migrations')
  if (changes.migration !== undefined) {
    const number = String(readdirSync(migrations).length + 1).padStart(4, '0')
    writeFileSync(path.join(migrations, `${number}-of-the-new-version.sql`), changes.migration)
  }
  for (const [name, from, to] of changes.edits ?? []) {
    const file = path.join(folder, 'src', name)
    const text = readFileSync(file, 'utf8')
    if (!text.includes(from)) throw new Error(`${name} lacks ${from}`)
    writeFileSync(file, text.replace(from, to))
  }
  return folder
}
