import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import Connection from 'better-sqlite3'
import { describe, expect, test } from 'vitest'
import { replaceDatabase } from '../../src/backup/restore.ts'
import { databaseFile, TEST_NOW } from '../support/database.ts'

/** A closed database with one row that says what it is. */
function write(file: string, says: string): void {
  const connection = new Connection(file)
  connection.exec('create table t (says text)')
  connection.prepare('insert into t values (?)').run(says)
  connection.close()
}

function read(file: string): unknown {
  const connection = new Connection(file, { readonly: true })
  try {
    return connection.prepare('select says from t').pluck().get()
  } finally {
    connection.close()
  }
}

describe('a database that is put in the place of another', () => {
  test('leaves the other one under a second name, whole', () => {
    const file = databaseFile()
    write(file, 'old')
    write(`${file}.new`, 'new')
    const aside = replaceDatabase(file, `${file}.new`, TEST_NOW)
    expect(aside).toBe(`${file}.replaced-20231114T221320000Z`)
    expect(read(file)).toBe('new')
    expect(read(aside ?? '')).toBe('old')
    expect(existsSync(`${file}.new`)).toBe(false)
  })

  test('needs none to be there', () => {
    const file = databaseFile()
    write(`${file}.new`, 'new')
    expect(replaceDatabase(file, `${file}.new`, TEST_NOW)).toBeUndefined()
    expect(read(file)).toBe('new')
  })

  test('is not played the log of the other one, which a killed process left', () => {
    const file = databaseFile()
    const script = `
      const c = new (require('better-sqlite3'))(${JSON.stringify(file)})
      c.pragma('journal_mode = WAL')
      c.exec("create table t (says text); insert into t values ('old, from its log')")
      process.kill(process.pid, 'SIGKILL')`
    spawnSync(process.execPath, ['-e', script], { cwd: path.join(import.meta.dirname, '../..') })
    expect(statSync(`${file}-wal`).size).toBeGreaterThan(0)
    write(`${file}.new`, 'new')
    const aside = replaceDatabase(file, `${file}.new`, TEST_NOW) ?? ''
    expect(read(file)).toBe('new')
    expect(read(aside)).toBe('old, from its log')
  })

  test('takes the place of one that is no database any more, which is kept as it is', () => {
    const file = databaseFile()
    writeFileSync(file, 'scribble')
    write(`${file}.new`, 'new')
    const aside = replaceDatabase(file, `${file}.new`, TEST_NOW) ?? ''
    expect(read(file)).toBe('new')
    expect(readFileSync(aside, 'utf8')).toBe('scribble')
  })
})
