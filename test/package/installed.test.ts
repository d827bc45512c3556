/** The package, packed as it would be published and installed as its users install it. It needs the registry of npm. */
import { type ChildProcess, execFile, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startCheckedSandbox } from '../support/checked-sandbox.ts'
import { DIALECT } from '../support/delivery.ts'
import { freePort } from '../support/free-port.ts'
import { isNeeded } from '../support/needs.ts'
import { until } from '../support/service-process.ts'

const root = path.join(import.meta.dirname, '../..')
const API_KEY = 'sk_test_0123456789abcdef'
const FILES_MAX = 460
const PACKED_BYTES_MAX = 1_200_000
/** npm takes ten seconds with a near registry; a far one on a busy machine may take minutes. */
const INSTALL_MS = 300_000

/** Only root can become another user. Every other user is without rights already. */
const asUser = process.getuid?.() === 0 ? ['setpriv', '--reuid=65534', '--regid=65534', '--clear-groups'] : []
const runs = isNeeded('campaigns')
const needs = runs ? '' : ' (skipped: .ci/run runs it)'

describe.runIf(runs)(`the package${needs}`, () => {
  const folder = mkdtempSync(path.join(tmpdir(), 'quayside-package-'))
  const home = path.join(folder, 'home')
  const running = new Set<ChildProcess>()
  let archive = ''
  let listed: string[] = []

  beforeAll(() => {
    // A package of npm names the files of its archive in JSON.
    const packed = execFileSync(
      'npm',
      [
        'pack',
        '--json',
        '--silent',
        '--ignore-scripts=false',
        '--foreground-scripts=false',
        `--pack-destination=${folder}`,
      ],
      { cwd: root, encoding: 'utf8' },
    )
    const [{ filename, files }] = JSON.parse(packed.slice(packed.indexOf('['))) as [
      { filename: string; files: { path: string }[] },
    ]
    archive = path.join(folder, filename)
    listed = files.map((file) => file.path)
    mkdirSync(home)
    execFileSync('chmod', ['-R', 'a+rwX', folder])
  }, INSTALL_MS)

  afterAll(async () => {
    for (const { pid = 0 } of running) process.kill(-pid, 'SIGKILL')
    rmSync(folder, { recursive: true, force: true })
  })

  /** The environment of someone who has nothing but npm: no Node of this clone, no settings of ours. */
  const isOfClone = ([name]: [string, unknown]) => /^(npm_|QUAYSIDE_|VITEST|NODE_(?!EXTRA_CA_CERTS))/.test(name)
  const env = {
    ...Object.fromEntries(Object.entries(process.env).filter((entry) => !isOfClone(entry))),
    HOME: home,
    PATH: (process.env.PATH ?? '')
      .split(':')
      .filter((one) => !one.includes('node_modules'))
      .join(':'),
  }
  const [program = 'env', ...before] = [...asUser, 'env']
  const run = async (cwd: string, ...command: string[]) =>
    (await promisify(execFile)(program, [...before, ...command], { cwd, env, timeout: INSTALL_MS })).stdout
  const empty = (name: string) => {
    const made = path.join(folder, name)
    mkdirSync(made)
    execFileSync('chmod', ['a+rwX', made])
    return made
  }
  /** Starts a command and resolves with its output once that has the words. */
  async function start(cwd: string, words: string, ...command: string[]) {
    const child = spawn(program, [...before, ...command], {
      cwd,
      env,
      stdio: ['ignore', 'pipe', 'pipe'],
      detached: true,
    })
    running.add(child)
    let output = ''
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => (output += String(chunk)))
    await until(`it says ${words}`, async () => {
      if (child.exitCode !== null) throw new Error(`it ended:\n${output}`)
      return output.includes(words)
    })
    return {
      output: () => output,
      /** Stops it as Ctrl-C does in a terminal: npm and the program get the signal. */
      stop: async () => {
        process.kill(-(child.pid ?? 0), 'SIGINT')
        if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
        running.delete(child)
      },
    }
  }

  test('ships the program and no test, within its limits', () => {
    expect(listed.length).toBeLessThanOrEqual(FILES_MAX)
    expect(statSync(archive).size).toBeLessThanOrEqual(PACKED_BYTES_MAX)
    expect(listed.filter((file) => /(^|\/)test\/|\.test\.|\.map$|\.ts$/.test(file))).toEqual([
      'dist/stores/backend/callbacks.d.ts',
    ])
    expect(listed).toEqual(expect.arrayContaining(['dist/main.js', 'src/quayside.js', 'README.md', 'LICENSE']))
  })

  test('installed into an empty folder, plays the demo to the first licence key, and is removed again', {
    timeout: INSTALL_MS,
  }, async () => {
    const cwd = empty('demo')
    await run(cwd, 'npm', 'install', archive)
    expect((await run(cwd, 'npx', 'quayside', '--version')).trim()).toMatch(/^\d+\.\d+\.\d+$/)
    const ports = [await freePort(), await freePort()]
    const demo = await start(cwd, 'Place an order', 'npx', 'quayside', 'serve', '--port', String(ports[0]))
    const curl = /curl[\s\S]*?}'/.exec(demo.output())?.[0].replaceAll('\\\n', '') ?? ''
    await run(cwd, 'sh', '-c', curl)
    await until('the order is closed', async () => demo.output().includes('order.closed'))
    expect(await run(cwd, 'npx', 'quayside', 'orders', 'show', '1001')).toContain('fulfilled')
    await demo.stop()
    expect(readdirSync(path.join(cwd, 'data'))).toEqual(['demo'])
    await run(cwd, 'npm', 'uninstall', 'quayside')
    const left = readdirSync(path.join(cwd, 'node_modules'), { recursive: true, withFileTypes: true })
    expect(left.filter((one) => one.isFile() && !one.name.startsWith('.')).map(({ name }) => name)).toEqual([])
  })

  test('sets up, below the folder it is called in, and gets the first licence key there', {
    timeout: INSTALL_MS,
  }, async () => {
    const sandbox = await startCheckedSandbox({ dialect: DIALECT, apiKey: API_KEY })
    try {
      const cwd = empty('shop')
      writeFileSync(path.join(cwd, 'key.txt'), API_KEY, { mode: 0o644 })
      await run(cwd, 'npm', 'install', archive)
      const port = await freePort()
      const url = `http://127.0.0.1:${await freePort()}/callbacks`
      const said = await run(
        ...([cwd, 'npx', 'quayside', 'init', '--yes', '--base-url', sandbox.baseUrl, '--port', String(port)] as const),
        ...['--api-key-file', 'key.txt', '--dialect', 'reseller-v1.1', '--callback-url', url],
      )
      expect(said).toContain('npx quayside doctor')
      expect(readdirSync(cwd).sort()).toEqual(
        expect.arrayContaining(['config', 'data', 'node_modules', 'package.json']),
      )
      await run(cwd, 'npx', 'quayside', 'doctor')
      const listener = await start(cwd, `Listening at ${url}`, 'npx', 'quayside', 'listen')
      const service = await start(cwd, 'service.started', 'npx', 'quayside', 'serve')
      const [, token = ''] = /^ {2}token +(\S+)$/m.exec(said) ?? []
      const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
      let sku = ''
      await until('the catalogue', async () => {
        sku = /^(\S+) +synced +.* [1-9]\d+ /m.exec(await run(cwd, 'npx', 'quayside', 'listings', 'list'))?.[1] ?? ''
        return sku !== ''
      })
      const body = JSON.stringify({ reference: '1001', lines: [{ id: '1', sku, quantity: 1 }] })
      const taken = await fetch(`http://127.0.0.1:${port}/api/v1/orders`, { method: 'POST', headers, body })
      expect(taken.status).toBe(202)
      await until('the licence key', async () => /line 1: [A-Z0-9-]{10,}$/m.test(listener.output()))
      await service.stop()
      await listener.stop()
    } finally {
      await sandbox.close()
    }
  })

  test('installed for all folders, below a prefix, is a command', { timeout: INSTALL_MS }, async () => {
    const prefix = empty('prefix')
    await run(prefix, 'npm', 'install', '--global', `--prefix=${prefix}`, archive)
    expect(await run('/', path.join(prefix, 'bin/quayside'), '--help')).toContain('quayside')
  })

  test('gives a backend the verification of callbacks, and its types', { timeout: INSTALL_MS }, async () => {
    const cwd = empty('backend')
    await run(cwd, 'npm', 'install', '--omit=optional', archive)
    const asked = "import('quayside/callbacks').then(({ verifyCallback }) => console.log(typeof verifyCallback))"
    expect((await run(cwd, 'node', '-e', asked)).trim()).toBe('function')
    writeFileSync(
      path.join(cwd, 'backend.mts'),
      `import { type Callback, verifyCallback } from 'quayside/callbacks'
const callback: Callback = verifyCallback('whsec_', new Headers(), '')
if (callback.type === 'line.fulfilled') callback.data.keys satisfies string[]
// @ts-expect-error such a field is not sent
if (callback.type === 'order.closed') callback.data.keys
`,
    )
    const tsc = path.join(root, 'node_modules/.bin/tsc')
    const types = path.join(root, 'node_modules/@types')
    await run(
      cwd,
      tsc,
      '--ignoreConfig',
      '--noEmit',
      '--strict',
      '--module',
      'nodenext',
      '--typeRoots',
      types,
      '--types',
      'node',
      'backend.mts',
    )
  })
})
