import { existsSync, statSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { describe, expect, test } from 'vitest'
import { makeFolder, undoOfFolder } from '../../src/storage/files.ts'
import { temporaryFolder } from '../support/cli-run.ts'

describe('a folder', () => {
  test('is made with those above it, for its owner alone, and may be there already', () => {
    const top = path.join(temporaryFolder(), 'top')
    makeFolder(path.join(top, 'inner'))
    makeFolder(path.join(top, 'inner'))
    for (const made of [top, path.join(top, 'inner')]) expect(statSync(made).mode & 0o777).toBe(0o700)
  })

  test('is not made through a file', () => {
    const file = path.join(temporaryFolder(), 'file')
    writeFileSync(file, '')
    expect(() => makeFolder(file)).toThrow('EEXIST')
    expect(() => makeFolder(path.join(file, 'inner'))).toThrow('EEXIST')
  })

  test('is removed again with those that were made for it, as far as they are empty', () => {
    const top = path.join(temporaryFolder(), 'top')
    const undo = undoOfFolder(path.join(top, 'inner'))
    makeFolder(path.join(top, 'inner'))
    writeFileSync(path.join(top, 'file'), '')
    undo()
    expect([existsSync(path.join(top, 'inner')), existsSync(top)]).toEqual([false, true])
  })
})
