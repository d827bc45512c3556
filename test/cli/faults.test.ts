/** What a person does wrong with files and ports, and what each command says about it on a terminal of 80 columns. */
import { spawnSync } from 'node:child_process'
import { chmodSync, mkdirSync, openSync, rmSync, writeFileSync } from 'node:fs'
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
    const advice = 'perhaps the demo: stop it, or take another port by --port'
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

test.skipIf(asUser('--version').status !== 0)('a file that this user may not use is named', () => {
  const folder = temporaryFolder()
  chmodSync(folder, 0o000)
  const file = path.join(folder, 'world.db')
  const { status, stderr } = asUser('sandbox', '--port', '0', '--file', file)
  expect(status).toBe(5)
  const advice = 'change its owner or mode, or those of its folder'
  expect(words(stderr)).toBe(`quayside: this user may not read or write ${file}: ${advice}`)
})
