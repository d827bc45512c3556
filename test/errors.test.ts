import { once } from 'node:events'
import { mkdirSync, mkdtempSync, openSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { connect, type LookupFunction } from 'node:net'
import { tmpdir } from 'node:os'
import path from 'node:path'
import Connection from 'better-sqlite3'
import { afterAll, describe, expect, onTestFinished, test } from 'vitest'
import { codeOf, Failure, failureReasons, messageOf, systemFailure } from '../src/errors.ts'
import { addressOf, closeServer, listen } from '../src/sandbox/server.ts'

const folder = mkdtempSync(path.join(tmpdir(), 'quayside-errors-'))
const at = (name: string) => path.join(folder, name)
writeFileSync(at('file'), 'text')
mkdirSync(at('folder'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

/** What the operating system throws. */
function thrown(work: () => unknown): unknown {
  try {
    work()
  } catch (error) {
    return error
  }
  throw new Error('nothing was thrown')
}

describe('an error of the operating system names the file and says what to do', () => {
  test.each<[string, () => unknown, string, string]>([
    ['a missing file', () => readFileSync(at('none')), 'not_found', `there is no ${at('none')}: check the name`],
    [
      'a missing folder',
      () => writeFileSync(at('none/file'), ''),
      'not_found',
      `there is no folder ${at('none')}: make it by \`mkdir -p ${at('none')}\`, or name another one`,
    ],
    [
      'a file where a folder is expected',
      () => openSync(at('file/inner/deep'), 'r'),
      'conflict',
      `${at('file')} is a file where a folder is needed: move it away, or name another folder`,
    ],
    [
      'a file where a folder is made',
      () => mkdirSync(at('file/inner'), { recursive: true }),
      'conflict',
      `${at('file')} is a file where a folder is needed: move it away, or name another folder`,
    ],
    [
      'a folder where a file is written',
      () => writeFileSync(at('folder'), ''),
      'invalid',
      `${at('folder')} is a folder where a file is needed: name a file`,
    ],
    [
      'a file that is put over a folder',
      () => renameSync(at('file'), at('folder')),
      'invalid',
      `${at('folder')} is a folder where a file is needed: name a file`,
    ],
    [
      'a folder where a file is removed',
      () => rmSync(at('folder')),
      'invalid',
      `${at('folder')} is a folder where a file is needed: name a file`,
    ],
  ])('%s', (_, work, code, message) => {
    const error = thrown(work)
    expect(systemFailure(error)).toMatchObject({ code, message, cause: error })
    expect(messageOf(error)).toBe(message)
  })

  test('a full disk, and a folder that is read, whose errors do not name the file', () => {
    const full = thrown(() => writeFileSync('/dev/full', 'text'))
    expect(messageOf(full)).toBe('the disk is full: make room, then try again')
    expect(messageOf(full, '/data/config.json')).toBe(
      'the disk of /data/config.json is full: make room, then try again',
    )
    const read = thrown(() => readFileSync(at('folder')))
    expect(messageOf(read, at('folder'))).toBe(`${at('folder')} is a folder where a file is needed: name a file`)
  })

  test('a full database, and a file that is none', () => {
    const db = new Connection(at('full.db'))
    onTestFinished(() => void db.close())
    db.exec('create table t (a); pragma max_page_count = 2')
    const full = thrown(() => db.exec('insert into t values (zeroblob(100000))'))
    expect(messageOf(full, at('full.db'))).toBe(`the disk of ${at('full.db')} is full: make room, then try again`)
    const none = new Connection(at('file'))
    onTestFinished(() => void none.close())
    const error = thrown(() => none.pragma('journal_mode = WAL'))
    expect(messageOf(error, at('file'))).toBe(`${at('file')} is no SQLite database: name another file, or move it away`)
  })

  test('a port that is taken', async () => {
    const server = await listen(createServer())
    onTestFinished(() => closeServer(server))
    const { port } = new URL(addressOf(server))
    const error: unknown = await listen(createServer(), Number(port)).catch((cause: unknown) => cause)
    expect(systemFailure(error)).toMatchObject({
      code: 'conflict',
      reason: 'address_in_use',
      message: `another program listens at 127.0.0.1:${port}, perhaps the demo: stop it, or take another port by --port`,
    })
  })

  test('an address that this machine does not have', async () => {
    // 192.0.2.0/24 is for documents.
    const error: unknown = await listen(createServer(), 0, '192.0.2.1').catch((cause: unknown) => cause)
    expect(systemFailure(error)?.message).toContain('this machine has no address 192.0.2.1: listen at one that it has')
  })

  // Tests may run as a user to whom everything is permitted.
  test.each([
    [
      { code: 'EACCES', path: '/etc/x' },
      'forbidden',
      'this user may not read or write /etc/x: change its owner or mode',
    ],
    [{ code: 'EPERM', path: '/etc/x' }, 'forbidden', 'this user may not read or write /etc/x'],
    [
      { code: 'EACCES', syscall: 'listen', port: 80 },
      'forbidden',
      'this user may not listen at port 80: take one from 1024 on',
    ],
    [
      { code: 'EROFS', path: '/mnt/x' },
      'unavailable',
      '/mnt/x can only be read: its disk or its mode allows no writing',
    ],
    [{ code: 'EMFILE' }, 'unavailable', 'too many files are open: raise the limit'],
    [{ code: 'EIO', path: '/mnt/x' }, 'unavailable', 'the disk of /mnt/x cannot be read or written'],
  ])('%j', (facts, code, message) => {
    const failure = systemFailure(Object.assign(new Error('no'), facts))
    expect(failure).toMatchObject({ code, message: expect.stringContaining(message) })
  })
})

test('any other error keeps its words, and is internal to clients of the API', () => {
  expect(systemFailure(new Failure('conflict', 'no'))).toBeUndefined()
  expect(systemFailure('text')).toBeUndefined()
  expect(messageOf(Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' }))).toBe(
    'connect ECONNREFUSED',
  )
  expect(messageOf(new TypeError('x is not a function'))).toBe('x is not a function')
  expect(codeOf(thrown(() => readFileSync(at('none'))))).toBe('internal')
})

test('two reasons stood where they could not be found in the list', () => {
  const reasons = Object.keys(failureReasons)
  expect(reasons).toEqual(reasons.toSorted())
})

test('an error of a host that answers at none of its addresses says why', async () => {
  const addresses = ['127.0.0.1', '127.0.0.2'].map((address) => ({ address, family: 4 }))
  const lookup: LookupFunction = (_host, _options, answer) => answer(null, addresses)
  const [error] = await once(connect({ host: 'two.example', port: 9, lookup, autoSelectFamily: true }), 'error')
  expect(error).toMatchObject({ message: '', errors: [{ code: 'ECONNREFUSED' }, { code: 'ECONNREFUSED' }] })
  expect(messageOf(error)).toBe('connect ECONNREFUSED 127.0.0.1:9')
})
