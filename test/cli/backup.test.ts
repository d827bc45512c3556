import { readFileSync, renameSync, statSync, truncateSync } from 'node:fs'
import path from 'node:path'
import { describe, expect, test } from 'vitest'
import { makeBackup } from '../../src/backup/backup.ts'
import { sizeText } from '../../src/cli/admin.ts'
import { loadConfig } from '../../src/config/config.ts'
import { DEMO_STORE, writeDemoConfig } from '../../src/demo/files.ts'
import { createDatabase } from '../../src/installation.ts'
import { Secret } from '../../src/secret.ts'
import { holdDatabase } from '../../src/storage/sqlite/open.ts'
import { run, startService, temporaryFolder, widest } from '../support/cli-run.ts'

const now = () => Date.parse('2026-03-02T02:20:00.000Z')
const backup = {
  file: 'quayside-20260301T022000000Z.backup',
  bytes: 123_456_789,
  readable: true,
  madeAt: '2026-03-01T02:20:00.000Z',
  epoch: 2,
  stores: ['shop-4f7k2m9q'],
  keyName: '3f9a01c2',
}
const unreadable = { ...backup, readable: false, madeAt: null, epoch: null, stores: [], keyName: null }
const folder = '/srv/quayside/data/run/backups'

describe('quayside backup', () => {
  test('says where the backup is and which key it needs', async () => {
    const { config } = await startService({ 'POST /backups': () => ({ folder, backup }) })
    const { exitCode, stdout } = await run(['backup', '--config', config], { terminal: true, now })
    expect({ exitCode, stdout }).toEqual({
      exitCode: 0,
      stdout: `Backed up: ${folder}/${backup.file}
117.7 MiB, sealed under the key-encryption key 3f9a01c2. Keep both, apart from
each other.
`,
    })
  })

  test('lists what is kept within 80 columns', async () => {
    const { config } = await startService({
      'GET /backups': () => ({ folder, items: [backup, unreadable], next: null }),
    })
    const { stdout } = await run(['backup', 'list', '--config', config], { terminal: true, now })
    expect(stdout).toBe(`FILE                                        AGE       SIZE  EPOCH  KEY
quayside-20260301T022000000Z.backup        24 h  117.7 MiB      2  3f9a01c2
quayside-20260301T022000000Z.backup  unreadable  117.7 MiB      -  -
`)
    expect(widest(stdout)).toBeLessThanOrEqual(80)
  })

  test.each([
    [0, '0 B'],
    [1_023, '1023 B'],
    [1_024, '1.0 KiB'],
    [1_048_576, '1.0 MiB'],
    [5_368_709_120, '5.0 GiB'],
    [null, '-'],
  ])('writes %s bytes as %s', (bytes, size) => {
    expect(sizeText(bytes)).toBe(size)
  })
})

describe('quayside keys rotate', () => {
  test('says what to do before the next start, within 80 columns', async () => {
    const { config } = await startService({ 'POST /keys/rotate': () => ({ before: '3f9a01c2', after: '77b0e4d1' }) })
    const { stdout } = await run(['keys', 'rotate', '--config', config], { terminal: true })
    expect(stdout).toMatch(/^Rotated: the database is under the key-encryption key 77b0e4d1, no longer\n/)
    // The place of this very configuration: of a demo, too.
    expect(stdout).toContain(
      `  cd ${path.join(path.dirname(config), 'secrets')}\n  mv key-encryption-key key-3f9a01c2\n`,
    )
    expect(stdout).toContain('  mv next-key-encryption-key key-encryption-key\n')
    expect(widest(stdout.replace(path.dirname(config), 'config'))).toBeLessThanOrEqual(80)
  })
})

describe('quayside status after a restore', () => {
  const during = async (reason: string) => {
    const freeze = { actor: 'restore', at: '2026-03-01T02:20:00.000Z', purchaseId: null, reason }
    const { config } = await startService({ 'GET /status': () => ({ freeze: { ...freeze, causes: [freeze] } }) })
    const { stdout } = await run(['status', '--config', config], { terminal: true, now })
    expect(widest(stdout)).toBeLessThanOrEqual(80)
    return stdout.slice(stdout.indexOf('For a person'))
  }

  test('says that the hold ends by itself while the orders are reattached, and names no empty list', async () => {
    const text = await during("restored, epoch 2; the supplier's orders are being reattached: 1 of 2 scans are done")
    expect(text).toContain("it ends by itself once the supplier's orders are reattached")
    expect(text).not.toContain('discrepancies')
  })

  test('says what a person can do once it waits for one', async () => {
    const text = await during('restored, epoch 2; reattached: 1 supplier order has no matching purchase')
    expect(text).toContain('quayside discrepancies list')
    expect(text).toContain('when that is settled otherwise: npx quayside unfreeze')
    expect(text).not.toContain('once the supplier')
  })

  test("sends an operator to the supplier's own account where its list does not show all orders", async () => {
    const text = await during(
      "restored, epoch 2; reattached: the supplier's order list ends at 500 orders (paging.listMax), and none of those 500 is of its stores; older orders are not shown",
    )
    expect(text).toContain("the supplier's own account")
    expect(text).toContain('when that is settled: npx quayside unfreeze')
    expect(text).not.toContain('by itself')
  })

  test('says that a new database waits for the list of orders, and what helps where that cannot be read', async () => {
    const text = await during("the database is new: the supplier's orders are searched for orders of its stores first")
    expect(text).toContain("it ends by itself once the supplier's order list was read")
    expect(text).toContain('quayside doctor')
  })
})

/** A fresh database that is configured, and its backup of a day ago, made under a key that is not the set one any more. */
const madeAt = '2026-03-01T02:20:00.000Z'
async function backedUp() {
  const folder = temporaryFolder()
  const place = { baseUrl: 'http://127.0.0.1:1/v1', apiKey: 'k'.repeat(20), dialect: 'reseller-v1.1' }
  const more = { dataDir: 'data/run' }
  const config = writeDemoConfig({ folder, ...place, port: 1, storePort: 1, more })
  const { database } = await createDatabase(loadConfig(config, {}))
  const [keyFile, oldKeyFile] = [path.join(folder, 'secrets', 'key-encryption-key'), path.join(folder, 'old.txt')]
  renameSync(keyFile, oldKeyFile)
  const key = new Secret(readFileSync(oldKeyFile, 'utf8'))
  const { file } = await makeBackup(
    { database, folder },
    { madeAt: Date.parse(madeAt), epoch: 1, stores: [DEMO_STORE] },
    key,
  )
  writeDemoConfig({ folder, ...place, port: 1, storePort: 1, more })
  return { folder, config, database, file: path.join(folder, file), oldKeyFile }
}
describe('quayside restore', () => {
  test('says what was put where and what to do next, within 80 columns', async () => {
    const { folder, config, database, file, oldKeyFile } = await backedUp()
    // Only the key of --key-file opens the backup.
    const argv = ['restore', file, '--key-file', oldKeyFile, '--config', config]
    const { exitCode, stdout, stderr } = await run(argv, { terminal: true, now })
    expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' })
    const shown = stdout.replaceAll(folder, '.')
    expect(shown).toMatch(
      /^Restored {2}.\/data\/run\/quayside.db\nAs of {5}2026-03-01 02:20:00Z \(24 h ago\)\nEpoch {5}2\n/,
    )
    expect(stdout).toContain('Let your stores hand in again what came after the backup')
    expect(widest(shown)).toBeLessThanOrEqual(80)
    const json = await run([...argv, '--json'], { now })
    const replaced = expect.stringMatching(/\/quayside\.db\.replaced-\d{8}T\d{9}Z$/)
    expect(JSON.parse(json.stdout)).toEqual({ database, madeAt, epoch: 3, revision: null, replaced })
  })

  test('of a damaged backup fails, and does not say that the command line is wrong', async () => {
    const { config, file, oldKeyFile } = await backedUp()
    truncateSync(file, statSync(file).size - 1)
    const { exitCode, stderr } = await run(['restore', file, '--key-file', oldKeyFile, '--config', config])
    expect({ exitCode, stderr }).toEqual({ exitCode: 1, stderr: expect.stringContaining('the backup is damaged') })
  })

  test('under a running service is refused, with exit code 5', async () => {
    const { config, database, file, oldKeyFile } = await backedUp()
    const running = holdDatabase(database)
    const { exitCode, stderr } = await run(['restore', file, '--key-file', oldKeyFile, '--config', config])
    running.free()
    expect({ exitCode, stderr }).toEqual({ exitCode: 5, stderr: expect.stringContaining('stop it first') })
  })
})
