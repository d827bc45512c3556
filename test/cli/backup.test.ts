import path from 'node:path'
import { describe, expect, test, vi } from 'vitest'
import { restoreBackup } from '../../src/backup/restore.ts'
import { sizeText } from '../../src/cli/admin.ts'
import { Failure } from '../../src/errors.ts'
import { run, startService, widest, writePlace } from '../support/cli-run.ts'
import { refusedOrigin } from '../support/supplier-server.ts'

vi.mock(import('../../src/backup/restore.ts'), { spy: true })

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
quayside-20260301T022000000Z.backup         1 d  117.7 MiB      2  3f9a01c2
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

  test('says that the hold ends by itself while the orders are reattached, and sends nobody to an empty list', async () => {
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

describe('quayside restore', () => {
  const restored = {
    database: 'data/run/quayside.db',
    madeAt: '2026-03-01T02:20:00.000Z',
    epoch: 3,
    replaced: 'data/run/quayside.db.replaced-20260302T022000000Z',
  }

  test('says what was put where and what to do next, within 80 columns', async () => {
    const place = writePlace(await refusedOrigin())
    vi.mocked(restoreBackup).mockResolvedValue(restored)
    const argv = ['restore', 'old.backup', '--key-file', 'old.txt', '--config', place.config]
    const { exitCode, stdout } = await run(argv, { terminal: true, now })
    const given = { configFile: place.config, demo: false, backup: 'old.backup', keyFile: 'old.txt' }
    expect(restoreBackup).toHaveBeenCalledExactlyOnceWith(given, {})
    expect(exitCode).toBe(0)
    expect(stdout).toMatch(
      /^Restored {2}data\/run\/quayside.db\nAs of {5}2026-03-01 02:20:00Z \(1 d ago\)\nEpoch {5}3\n/,
    )
    expect(stdout).toContain('Let your stores hand in again what came after the backup')
    expect(widest(stdout)).toBeLessThanOrEqual(80)
    const json = await run([...argv, '--json'], { now })
    expect(JSON.parse(json.stdout)).toEqual(restored)
  })

  test('of a damaged backup fails, and does not say that the command line is wrong', async () => {
    const place = writePlace(await refusedOrigin())
    const damaged = new Failure('invalid', 'the backup is damaged', { reason: 'backup_damaged' })
    vi.mocked(restoreBackup).mockRejectedValue(damaged)
    const { exitCode } = await run(['restore', 'old.backup', '--config', place.config])
    expect(exitCode).toBe(1)
  })

  test('under a running service is refused, with exit code 5', async () => {
    const place = writePlace(await refusedOrigin())
    vi.mocked(restoreBackup).mockRejectedValue(new Failure('conflict', 'stop it first', { reason: 'database_in_use' }))
    const { exitCode, stderr } = await run(['restore', 'old.backup', '--config', place.config])
    expect({ exitCode, stderr }).toEqual({ exitCode: 5, stderr: 'quayside: stop it first\n' })
  })
})
