/** What a person does wrong with files and ports, and what each command says about it on a terminal of 80 columns. */
import { spawnSync } from 'node:child_process'
import { chmodSync, mkdirSync, openSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import path from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { writeDemoConfig } from '../../src/demo/files.ts'
import { openSetUp } from '../../src/installation.ts'
import { addressOf, closeServer, listen } from '../../src/sandbox/server.ts'
import { run, temporaryFolder } from '../support/cli-run.ts'

const ENTRY = path.join(import.meta.dirname, '../../src/quayside.js')
const words = (said: string) => said.replaceAll(/\s+/g, ' ').trim()

/** A folder with a file and a folder in it, and an installation. */
async function place() {
  const folder = temporaryFolder()
  const at = (name: string) => path.join(folder, name)
  writeFileSync(at('file'), 'text')
  mkdirSync(at('folder.json'))
  mkdirSync(at('data'))
  const supplier = { baseUrl: 'http://127.0.0.1:1/v1', apiKey: 'k'.repeat(20), dialect: 'reseller-v1.1' }
  const config = writeDemoConfig({ folder: at('data'), ...supplier, port: 0, storePort: 1, more: { publicUrl: null } })
  await (await openSetUp(config, {})).close()
  return { folder, at, config }
}

async function takenPort(): Promise<string> {
  const server = await listen(createServer())
  onTestFinished(() => closeServer(server))
  return new URL(addressOf(server)).port
}

describe.each<[string, (file: string, config: string) => string[]]>([
  ['sandbox --file', (file) => ['sandbox', '--port', '0', '--file', file]],
  ['sandbox --dialect', (file) => ['sandbox', '--port', '0', '--dialect', file]],
  ['serve --config', (file) => ['serve', '--config', file]],
  ['status --config', (file) => ['status', '--config', file]],
  ['database create --config', (file) => ['database', 'create', '--config', file]],
  ['restore', (file, config) => ['restore', file, '--config', config]],
  ['listings import', (file, config) => ['listings', 'import', file, '--config', config]],
  ['dialect check --document', (file, config) => ['dialect', 'check', '--document', file, '--config', config]],
  ['dialect detect --delivery', (file) => ['dialect', 'detect', '--delivery', file, '--secret-file', ENTRY]],
  ['dialect detect --secret-file', (file) => ['dialect', 'detect', '--delivery', ENTRY, '--secret-file', file]],
])('%s', (_, argvOf) => {
  test.each([
    ['none/in.json', /there is no|makes one/],
    ['file/in.json', /is a file where a folder is needed|there is no/],
    ['folder.json', /is a folder where a file is needed|is no file/],
  ])('says what is wrong with %s, and what to do', async (name, said) => {
    const { at, config } = await place()
    const { exitCode, stderr } = await run(argvOf(at(name), config))
    expect(exitCode).toBeGreaterThan(0)
    expect(words(stderr)).toMatch(said)
    expect(words(stderr)).toContain(at(name.split('/')[0] ?? ''))
    expect(stderr).not.toContain('this should not happen')
  })
})

test('sandbox --file with a missing folder said that this should not happen', async () => {
  const { exitCode, stderr } = await run(['sandbox', '--file', '/no-such-folder/world.db', '--port', '0'])
  expect(exitCode).toBe(4)
  expect(words(stderr)).toBe(
    'quayside: there is no folder /no-such-folder: make it by `mkdir -p /no-such-folder`, or name another one',
  )
})

describe('a port that is taken', () => {
  test.each(['sandbox', 'serve', 'demo'])('%s names it', async (command) => {
    const { folder, config } = await place()
    const port = await takenPort()
    const env = { QUAYSIDE_DATA_DIR: path.join(folder, 'demo') }
    const argv = command === 'sandbox' ? ['sandbox'] : command === 'demo' ? ['serve'] : ['serve', '--config', config]
    const { exitCode, stderr } = await run([...argv, '--port', port], { env })
    expect(exitCode).toBe(5)
    const advice =
      'perhaps the demo: stop it, or take another port by --port More: docs/troubleshooting.md#address_in_use'
    expect(words(stderr)).toBe(`quayside: another program listens at 127.0.0.1:${port}, ${advice}`)
  })
})

test('the demo whose log cannot be written ended with a stack trace', async () => {
  const folder = temporaryFolder()
  mkdirSync(path.join(folder, 'quayside.log'))
  const { exitCode, stderr } = await run(['serve', '--port', '0'], { env: { QUAYSIDE_DATA_DIR: folder } })
  expect(exitCode).toBe(2)
  expect(words(stderr)).toBe(`quayside: ${folder}/quayside.log is a folder where a file is needed: name a file`)
})

test('init on a path that leads through a file names that file', async () => {
  const { at } = await place()
  const supplier = ['--base-url', 'http://127.0.0.1:1/v1', '--callback-url', 'http://127.0.0.1:2/callbacks']
  const argv = ['init', '--yes', '--offline', ...supplier, '--config', at('file/config/quayside.json')]
  const { exitCode, stderr } = await run(argv, { env: { QUAYSIDE_API_KEY: 'k'.repeat(20) } })
  expect(exitCode).toBeGreaterThan(0)
  expect(words(stderr)).toContain(`${at('file')} is a file where a folder is needed`)
})

/** A process of its own: one that hangs in a call of the system can only be killed. */
function start(argv: string[], env: Record<string, string> = {}) {
  const { status, stderr } = spawnSync(process.execPath, [ENTRY, ...argv], {
    encoding: 'utf8',
    timeout: 20_000,
    killSignal: 'SIGKILL',
    env: { ...process.env, QUAYSIDE_API_KEY: 'k'.repeat(20), ...env },
  })
  return { status, said: words(stderr) }
}

describe.skipIf(process.platform !== 'linux')('a folder that cannot be made hung the command', () => {
  const refused = 'no folder can be made in /proc: name another one'
  const supplier = ['--base-url', 'http://127.0.0.1:1/v1', '--callback-url', 'http://127.0.0.1:2/callbacks']
  const init = (...flags: string[]) => start(['init', '--yes', '--offline', ...supplier, ...flags])

  test.each(['/proc/x', '/proc/x/y'])('init --data-dir %s says so, and leaves nothing behind', (dataDir) => {
    const folder = temporaryFolder()
    const { status, said } = init('--config', path.join(folder, 'new/quayside.json'), '--data-dir', dataDir)
    expect(said).toBe(`quayside: nothing was written: the data folder ${dataDir} cannot be written to: ${refused}`)
    expect(status).toBe(1)
    expect(readdirSync(folder)).toEqual([])
  })

  test('init --config', () => {
    const { status, said } = init('--config', '/proc/x/quayside.json', '--data-dir', temporaryFolder())
    expect({ status, said }).toEqual({ status: 2, said: `quayside: ${refused}` })
  })

  test('database create, and the demo', async () => {
    const { at, config } = await place()
    const settings = JSON.parse(readFileSync(config, 'utf8'))
    writeFileSync(at('data/proc.json'), JSON.stringify({ ...settings, dataDir: '/proc/x' }))
    const created = start(['database', 'create', '--config', at('data/proc.json')])
    expect(created).toEqual({
      status: 1,
      said: `quayside: the data folder /proc/x cannot be written to: ${refused}`,
    })
    const demo = start(['serve', '--port', '0'], { QUAYSIDE_DATA_DIR: '/proc/x' })
    expect(demo).toEqual({ status: 2, said: `quayside: ${refused}` })
  })

  test('a command whose cache folder cannot be made starts without one', () => {
    const { NODE_COMPILE_CACHE: _, ...env } = process.env
    const options = { timeout: 20_000, killSignal: 'SIGKILL', env: { ...env, XDG_CACHE_HOME: '/proc/x' } } as const
    expect(spawnSync(process.execPath, [ENTRY, '--help'], options).status).toBe(0)
  })
})

describe('the database of an installation', () => {
  test('that is a folder, or no database, is named', async () => {
    const { at, config } = await place()
    writeFileSync(at('data/quayside.db'), 'text that is longer than the header of a database'.repeat(10))
    const damaged = await run(['serve', '--config', config])
    expect(words(damaged.stderr)).toContain(`${at('data/quayside.db')} is no SQLite database`)
    rmSync(at('data/quayside.db'))
    mkdirSync(at('data/quayside.db'))
    const { exitCode, stderr } = await run(['serve', '--config', config])
    expect(exitCode).toBe(1)
    expect(words(stderr)).toContain(`${at('data/quayside.db')} is a folder where a file is needed`)
  })
})

test('an owner token that is a folder is named', async () => {
  const { at, config } = await place()
  mkdirSync(at('data/owner.token'))
  const { stderr } = await run(['serve', '--config', config])
  expect(words(stderr)).toContain(`${at('data/owner.token')} is a folder where a file is needed`)
})

test('a command whose output goes to a full disk ended with 0', () => {
  const full = openSync('/dev/full', 'w')
  const { status, stderr } = spawnSync(process.execPath, [ENTRY, '--help'], {
    encoding: 'utf8',
    stdio: ['ignore', full, 'pipe'],
  })
  expect(status).toBe(1)
  expect(words(stderr)).toBe('quayside: the disk of standard output is full: make room, then try again')
})

/** A user without rights, where the tests run as root, to whom everything is permitted. */
const uid = process.getuid?.() === 0 ? 65_534 : undefined
const asUser = (...argv: string[]) =>
  spawnSync(process.execPath, [ENTRY, ...argv], { encoding: 'utf8', ...(uid && { uid }) })

test.skipIf(asUser('--help').status !== 0)('init names a data folder that this user may not write to', () => {
  const folder = temporaryFolder()
  chmodSync(folder, 0o777)
  const dataDir = path.join(folder, 'data')
  mkdirSync(dataDir, { mode: 0o555 })
  const keyFile = path.join(folder, 'key')
  writeFileSync(keyFile, 'k'.repeat(20), { mode: 0o644 })
  const supplier = ['--base-url', 'http://127.0.0.1:1/v1', '--callback-url', 'http://127.0.0.1:2/callbacks']
  const to = ['--config', path.join(folder, 'config/quayside.json'), '--data-dir', dataDir]
  const { status, stderr } = asUser('init', '--yes', '--offline', ...supplier, '--api-key-file', keyFile, ...to)
  expect(status).toBe(1)
  expect(words(stderr)).toBe(
    `quayside: nothing was written: the data folder ${dataDir} cannot be written to: ` +
      `this user may not read or write ${dataDir}: change its owner or mode, or those of its folder`,
  )
  expect(readdirSync(folder).sort()).toEqual(['data', 'key'])
})

test.skipIf(asUser('--help').status !== 0)('a file that this user may not use is named', () => {
  const folder = temporaryFolder()
  chmodSync(folder, 0o000)
  const file = path.join(folder, 'world.db')
  const { status, stderr } = asUser('sandbox', '--port', '0', '--file', file)
  expect(status).toBe(5)
  const advice = 'change its owner or mode, or those of its folder'
  expect(words(stderr)).toBe(`quayside: this user may not read or write ${file}: ${advice}`)
})
