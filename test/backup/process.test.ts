/** Backups, restores and key rotation with the program itself, as people use it. What takes half a minute skips itself where .ci/run does not ask for it. */
import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import {
  copyFileSync,
  existsSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import path from 'node:path'
import { text } from 'node:stream/consumers'
import { describe, expect, type TestContext, test } from 'vitest'
import { makeBackup } from '../../src/backup/backup.ts'
import { Secret } from '../../src/secret.ts'
import { openDatabase } from '../../src/storage/sqlite/open.ts'
import { openVault } from '../../src/vault/vault.ts'
import { run } from '../support/cli-run.ts'
import { isNeeded } from '../support/needs.ts'
import { type Installation, openInstallation, until } from '../support/service-process.ts'

const isLong = isNeeded('campaigns')

/** A request has run within some seconds, or never will: reattaching takes no longer. */
const SETTLES_SOON = { settleSeconds: 3, listLagSeconds: 0.2, scanGapSeconds: 0.5 }
const ENTRY = path.join(import.meta.dirname, '../../src/quayside.js')
/** Processes are started a dozen times here, on a machine that has other things to do. */
const PATIENCE_MS = 180_000

async function open(onTestFinished: TestContext['onTestFinished'], more: object = {}) {
  const installation = await openInstallation(onTestFinished, SETTLES_SOON, more)
  const { folder, configFile, url } = installation
  const backups = path.join(folder, 'backups')
  /** Asks the service as its owner. */
  const ask = async (name: string) => {
    const authorization = `Bearer ${readFileSync(path.join(folder, 'owner.token'), 'utf8').trim()}`
    const answer = await fetch(`${url}/api/v1${name}`, { headers: { authorization, connection: 'close' } })
    return ((await answer.json()) as { data: Record<string, unknown> }).data
  }
  return {
    ...installation,
    installation,
    backups,
    ask,
    database: path.join(folder, 'quayside.db'),
    secret: (name: string) => path.join(folder, 'secrets', name),
    kept: () => (existsSync(backups) ? readdirSync(backups).filter((name) => name.endsWith('.backup')) : []),
    /** Runs one command to its end, in this process: what it does to the files and to the service is the same. */
    run: (...argv: string[]) => run([...argv, '--config', configFile]),
    /** The same as a process of its own. */
    spawned: async (...argv: string[]) => {
      const child = spawn(process.execPath, [ENTRY, ...argv, '--config', configFile])
      const ended = new Promise<number | null>((resolve) => child.on('close', resolve))
      const [stdout, stderr, code] = await Promise.all([text(child.stdout), text(child.stderr), ended])
      return { stdout, stderr, exitCode: code }
    },
    stop: async () => {
      installation.signal()
      await installation.ended()
    },
    handIn: async (reference: string) => installation.order(reference, (await installation.sku()) ?? '', false),
    buy: async (reference: string) => {
      expect(await installation.order(reference, (await installation.sku()) ?? '', false)).toBe(202)
      await installation.closed(reference)
    },
    frozen: async () => (await ask('/status')).freeze,
    freed: () => until('buying to go on', async () => (await ask('/status')).freeze === null),
  }
}

const charges = ({ sandbox }: Installation) => sandbox.world.report().charges.length

describe('a backup', () => {
  test.runIf(isLong).concurrent(
    'is made by the schedule, and old ones go',
    async ({ onTestFinished }) => {
      const { installation, kept, stop } = await open(onTestFinished, { backups: { cron: '* * * * * *', keep: 2 } })
      await installation.start()
      const seen = new Set<string>()
      await until('four backups', () => {
        for (const name of kept()) seen.add(name)
        return seen.size >= 4
      })
      await stop()
      expect(kept().length).toBe(2)
      expect(kept()).not.toContain([...seen].sort()[0])
    },
    PATIENCE_MS,
  )
})

describe('a restore', () => {
  test.runIf(isLong).concurrent(
    'is refused under a running service, and buys nothing again that was bought after the backup',
    async ({ onTestFinished }) => {
      const world = await open(onTestFinished)
      const { installation, run, spawned, buy, kept, stop, folder } = world
      await installation.start()
      await buy('1001')
      expect(await run('backup')).toMatchObject({ exitCode: 0 })
      await buy('1002')
      const [file = ''] = kept()
      expect(await run('restore', file)).toMatchObject({
        exitCode: 5,
        stderr: expect.stringContaining('stop it first'),
      })
      await stop()
      const restored = await spawned('restore', file)
      expect(restored).toMatchObject({ exitCode: 0, stderr: '' })
      expect(restored.stdout).toMatch(/^Restored +.*quayside\.db\n/)
      expect(readdirSync(folder).filter((name) => name.startsWith('quayside.db.replaced-'))).toHaveLength(1)
      expect(readdirSync(folder).filter((name) => name.includes('restoring'))).toEqual([])
      await installation.start()
      expect(await world.frozen()).toMatchObject({ actor: 'restore' })
      // The store hands in again what came after the backup; then everything is reattached and buying goes on.
      expect(await world.handIn('1002')).toBe(202)
      await world.freed()
      await buy('1003')
      expect(charges(installation)).toBe(3)
      expect([...installation.shop.keys().values()].map((keys) => new Set(keys).size)).toEqual([1, 1, 1])
      await stop()
    },
    PATIENCE_MS,
  )

  test.runIf(isLong).concurrent(
    'by copying an old file back is recognised at the start',
    async ({ onTestFinished }) => {
      const world = await open(onTestFinished)
      const { installation, database, stop } = world
      copyFileSync(database, `${database}.mine`)
      await installation.start()
      await world.buy('1001')
      await stop()
      copyFileSync(`${database}.mine`, database)
      await installation.start()
      expect(await world.frozen()).toMatchObject({
        actor: 'restore',
        reason: expect.stringMatching(/older copy|reattached/),
      })
      expect(await world.handIn('1001')).toBe(202)
      await world.freed()
      await until('the keys again', () => installation.shop.received().length >= 3)
      expect(charges(installation)).toBe(1)
      await stop()
    },
    PATIENCE_MS,
  )

  test.concurrent(
    'of a backup that is cut, changed, of another key or of another store changes nothing',
    async ({ onTestFinished }) => {
      const { run, backups, database, secret, folder, configFile } = await open(onTestFinished)
      const { file } = await makeBackup(
        { database, folder: backups },
        { madeAt: Date.now(), epoch: 1, stores: ['demo-quaysi00'] },
        new Secret(readFileSync(secret('key-encryption-key'), 'utf8')),
      )
      const before = readFileSync(database)
      const refused = async (argv: string[], code: number, said: RegExp) => {
        const { stderr, ...answer } = await run('restore', ...argv)
        expect(answer).toMatchObject({ exitCode: code, stdout: '' })
        const lines = stderr
          .trim()
          .split('\n')
          .filter((line) => !line.startsWith('More: docs/troubleshooting.md#'))
        expect(lines.join(' ').replaceAll(/ +/g, ' ')).toMatch(said)
        expect(lines.slice(1).filter((line) => !line.startsWith('  '))).toEqual([])
        expect(readFileSync(database).equals(before)).toBe(true)
        expect(readdirSync(folder).filter((name) => /restoring|replaced/.test(name))).toEqual([])
      }
      const other = path.join(folder, 'other.backup')
      copyFileSync(path.join(backups, file), other)
      truncateSync(other, statSync(other).size - 1)
      await refused([other], 1, /the backup is damaged: piece 1 does not open/)
      const bytes = readFileSync(path.join(backups, file))
      bytes.writeUInt8(bytes.readUInt8(bytes.length - 5_000) ^ 1, bytes.length - 5_000)
      writeFileSync(other, bytes)
      await refused([other], 1, /the backup is damaged/)
      await refused(['nowhere.backup'], 4, /the backup cannot be read/)
      const settings = readFileSync(configFile, 'utf8')
      writeFileSync(configFile, settings.replace('demo-quaysi00', 'demo-12345678'))
      await refused([file], 5, /has orders of demo-quaysi00, and .* has no store of that id/)
      writeFileSync(configFile, settings)
      copyFileSync(secret('key-encryption-key'), secret('old'))
      writeFileSync(secret('key-encryption-key'), randomBytes(32).toString('base64'))
      await refused([file], 2, /was made under the key-encryption key [0-9a-f]{8}, and .* --key-file$/m)
      // With the key that it was made under it comes back, and is then under the key that is set.
      expect(await run('restore', file, '--key-file', secret('old'))).toMatchObject({ exitCode: 0, stderr: '' })
      const keyEncryptionKey = new Secret(readFileSync(secret('key-encryption-key'), 'utf8'))
      const db = openDatabase({ file: database, now: Date.now })
      await openVault({ database: db, keyEncryptionKey, now: Date.now })
      await db.close()
    },
    PATIENCE_MS,
  )
})

describe('the key-encryption key', () => {
  test.runIf(isLong).concurrent(
    'is rotated under a running service: a backup needs the one that it was made under, a start takes either',
    async ({ onTestFinished }) => {
      const world = await open(onTestFinished)
      const { installation, run, spawned, ask, backups, kept, stop, secret, folder } = world
      await installation.start()
      await world.buy('1001')
      const made = await spawned('backup')
      expect(made).toMatchObject({ exitCode: 0, stderr: '' })
      const [file = ''] = kept()
      expect(made.stdout).toContain(`Backed up: ${path.join(backups, file)}\n`)
      expect(statSync(path.join(backups, file)).mode & 0o777).toBe(0o600)
      const bytes = readFileSync(path.join(backups, file))
      expect(bytes.includes('SQLite format 3')).toBe(false)
      expect(bytes.includes('q1.demo-quaysi00')).toBe(false)

      const none = await run('keys', 'rotate')
      expect(none).toMatchObject({ exitCode: 5, stderr: expect.stringContaining('there is no next key') })
      const next = secret('next-key-encryption-key')
      writeFileSync(next, randomBytes(32).toString('base64'), { mode: 0o600 })
      const rotated = await run('keys', 'rotate')
      expect(rotated).toMatchObject({ exitCode: 0, stderr: '' })
      expect(rotated.stdout).not.toContain(readFileSync(next, 'utf8'))
      expect(await run('backup')).toMatchObject({ exitCode: 0 })
      const items = (await ask('/backups')).items as { file: string; keyName: string; bytes: number }[]
      expect(items.map((item) => item.file)).toEqual(kept().sort().reverse())
      expect(items.at(-1)).toMatchObject({ file, readable: true, epoch: 1, stores: ['demo-quaysi00'] })
      expect(new Set(items.map(({ keyName }) => keyName)).size).toBe(2)
      await stop()
      expect(readdirSync(folder).filter((name) => name.includes('copy'))).toEqual([])
      expect(readdirSync(backups).sort()).toEqual(kept().sort())
      // The setting still has the old key, and the next one is there.
      await installation.start()
      await world.buy('1002')
      await stop()
    },
    PATIENCE_MS,
  )

  test.concurrent(
    'that is another one, or none, stops the start with a line that says what to do',
    async ({ onTestFinished }) => {
      const { spawned, secret } = await open(onTestFinished)
      const key = readFileSync(secret('key-encryption-key'), 'utf8')
      writeFileSync(secret('key-encryption-key'), randomBytes(32).toString('base64'))
      const wrong = await spawned('serve')
      expect(wrong.exitCode).toBe(2)
      expect(wrong.stderr.replaceAll(/\n +/g, ' ')).toMatch(
        /^quayside: the key-encryption key [0-9a-f]{8} does not open this database: set QUAYSIDE_KEY_ENCRYPTION_KEY \(or QUAYSIDE_KEY_ENCRYPTION_KEY_FILE\) to the key [0-9a-f]{8}, under which it is sealed\nMore: docs\/troubleshooting\.md#wrong_key\n$/,
      )
      expect(wrong.stderr).not.toContain(key)
      rmSync(secret('key-encryption-key'))
      const missing = await spawned('serve')
      expect(missing.exitCode).toBe(2)
      expect(missing.stderr.replaceAll(/\n +/g, ' ')).toMatch(
        /\nQUAYSIDE_KEY_ENCRYPTION_KEY: not set: set it, or QUAYSIDE_KEY_ENCRYPTION_KEY_FILE, or write the file .*key-encryption-key\n$/,
      )
    },
    PATIENCE_MS,
  )
})
