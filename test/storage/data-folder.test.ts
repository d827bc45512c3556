/** The data folder of an installation, as the commands that open its database find it. */
import { existsSync, lstatSync, mkdirSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { describe, expect, test } from 'vitest'
import { openApp } from '../../src/app.ts'
import { makeBackup } from '../../src/backup/backup.ts'
import { restoreBackup } from '../../src/backup/restore.ts'
import { checkFileSystem } from '../../src/cli/doctor.ts'
import { type Config, loadConfig } from '../../src/config/config.ts'
import { DEMO_STORE, writeDemoConfig } from '../../src/demo/files.ts'
import { checkSetUp, inspect, openSetUp } from '../../src/installation.ts'
import { createLog } from '../../src/log.ts'
import { holdDatabase } from '../../src/storage/sqlite/open.ts'
import { run, temporaryFolder, widest } from '../support/cli-run.ts'

/** An installation whose service, supplier and store are not there. */
function install() {
  const folder = temporaryFolder()
  const configFile = writeDemoConfig({
    folder,
    baseUrl: 'http://127.0.0.1:1/v1',
    apiKey: 'sk_test_0123456789abcdef',
    port: 1,
    storePort: 1,
    dialect: 'reseller-v1.1',
  })
  return { folder, configFile, database: path.join(folder, 'quayside.db'), config: loadConfig(configFile, {}) }
}

/** Opens the service. @returns what it logs */
async function started(config: Config): Promise<string[]> {
  const lines: string[] = []
  const log = createLog({ level: 'info', write: (line) => void lines.push(line) })
  const listen = { host: '127.0.0.1', port: 0 }
  const app = await openApp({ config: { ...config, listen }, log, onFatal: () => {} })
  await app.close()
  return lines
}

describe('a service', () => {
  test('that starts in the wrong folder, or on a lost volume, begins no empty shop', async () => {
    const { folder, config, database } = install()
    const before = readdirSync(folder)
    const fault = { code: 'not_found', reason: 'no_database', message: expect.stringContaining(database) }
    await expect(started(config)).rejects.toMatchObject(fault)
    expect(readdirSync(folder)).toEqual(before)
    writeFileSync(database, '')
    await expect(started(config), 'a file without tables is none').rejects.toMatchObject(fault)
    const nowhere = path.join(folder, 'nowhere')
    await expect(started({ ...config, dataDir: nowhere })).rejects.toMatchObject({ reason: 'no_database' })
    expect(existsSync(nowhere)).toBe(false)
  })

  test('says in its log which database it has opened', async () => {
    const { configFile, config, folder } = install()
    mkdirSync(path.join(folder, 'disk'))
    symlinkSync('disk/real.db', path.join(folder, 'quayside.db'))
    await (await openSetUp(configFile, {})).close()
    const lines = (await started(config)).map((line) => JSON.parse(line) as { event: string; file?: string })
    const opened = lines.find(({ event }) => event === 'database.opened')
    expect(opened?.file).toBe(path.join(folder, 'disk/real.db'))
  })
})

describe('a data folder on a network file system', () => {
  const NFS = 0x6969
  const FUSE = 0x65735546

  test('is refused by every command that opens the database, before a file is made there', () => {
    const { folder, database } = install()
    const before = readdirSync(folder)
    const hold = (type: number) => holdDatabase(database, () => type)
    expect(() => hold(NFS)).toThrow(
      expect.objectContaining({ reason: 'network_file_system', message: expect.stringMatching(/ is on NFS: .*move/) }),
    )
    expect(readdirSync(folder)).toEqual(before)
    hold(FUSE).free()
  })

  test('is a fault to doctor, and a warning on FUSE', () => {
    const { configFile } = install()
    const found = (type: number) => {
      const findings: string[] = []
      checkFileSystem(
        configFile,
        (level, check) => void findings.push(`${level} ${check}`),
        () => type,
      )
      return findings
    }
    expect([NFS, FUSE, 0xef53].map(found)).toEqual([['fail file system'], ['warn file system'], []])
  })
})

describe('quayside database create', () => {
  test('makes the database once, says where, and ends', async () => {
    const { configFile, database, config } = install()
    const create = () => run(['database', 'create', '--config', configFile])
    const said = expect.stringMatching(`^Created: ${database}\n\nNext:\n`)
    expect(await create()).toMatchObject({ exitCode: 0, stdout: said, stderr: '' })
    expect(await inspect(config)).toMatchObject({ key: { opened: true } })
    expect(await create()).toMatchObject({ exitCode: 5, stdout: '', stderr: expect.stringContaining('exists') })
  })

  test('says that the database exists already, and not that a service is in the way, while one runs on it', async () => {
    const { configFile, database } = install()
    const running = await openSetUp(configFile, {})
    const { stderr } = await run(['database', 'create', '--config', configFile], { columns: 300 })
    await running.close()
    expect(stderr).toBe(
      `quayside: the database ${database} exists already\nMore: docs/troubleshooting.md#database_exists\n`,
    )
  })

  test('said nothing of the token and the callback secret that a configuration written by hand has not got', async () => {
    const { configFile } = install()
    const { stdout } = await run(['database', 'create'], { env: { QUAYSIDE_CONFIG: configFile } })
    const next = stdout.slice(stdout.indexOf('Next:'))
    expect(widest(next)).toBeLessThanOrEqual(80)
    const commands = next.match(/(?<=^ {2}npx quayside ).*/gm) ?? []
    expect(commands).toEqual([
      'doctor',
      'serve',
      `tokens create --name shop --role store --store ${DEMO_STORE}`,
      `stores rotate-secret ${DEMO_STORE}`,
    ])
    for (const command of commands) {
      expect(await run([...command.split(' '), '--help'])).toMatchObject({ exitCode: 0, stderr: '' })
    }
  })
})

describe('a database behind a symbolic link', () => {
  test('is one database for all commands: restore and init see the service that runs on it', async () => {
    const { folder, configFile, database, config } = install()
    const disk = path.join(folder, 'disk')
    mkdirSync(disk)
    writeFileSync(path.join(disk, 'real.db'), '')
    symlinkSync('disk/real.db', database)
    const running = await openSetUp(configFile, {})
    const backups = { database, folder: path.join(folder, 'backups') }
    const { file } = await makeBackup(
      backups,
      { madeAt: Date.now(), epoch: 1, stores: [DEMO_STORE] },
      config.keyEncryptionKey,
    )
    const restore = () => restoreBackup({ configFile, demo: true, backup: file }, {})
    await expect(restore()).rejects.toMatchObject({ reason: 'database_in_use' })
    await expect(checkSetUp(config)).rejects.toMatchObject({ reason: 'database_in_use' })
    expect(await inspect(config)).toMatchObject({ key: { opened: true } })
    await running.close()

    expect(await restore()).toMatchObject({ database: path.join(disk, 'real.db') })
    expect(lstatSync(database).isSymbolicLink()).toBe(true)
    const names = readdirSync(disk).map((name) => name.replace(/\d{8}T\d{9}Z/, 'instant'))
    expect(names.sort()).toEqual(['real.db', 'real.db.lock', 'real.db.marker', 'real.db.replaced-instant'])
    expect(readdirSync(folder).filter((name) => /lock|marker|replaced/.test(name))).toEqual([])
    await (await openSetUp(configFile, {})).close()
  })

  test('that leads to a disk which is not there is not made there', async () => {
    const { folder, configFile, database } = install()
    symlinkSync('disk/real.db', database)
    await expect(openSetUp(configFile, {})).rejects.toMatchObject({
      code: 'unavailable',
      message: expect.stringContaining(path.join(folder, 'disk')),
    })
    expect(existsSync(path.join(folder, 'disk'))).toBe(false)
  })
})
