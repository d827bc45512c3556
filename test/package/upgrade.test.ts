/** Upgrades as operators make them: from a clone to a package, and from one package to the next. It needs the registry of npm. */
import { type ChildProcess, execFile, execFileSync, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, type TestContext, test } from 'vitest'
import { DEMO_STORE, writeDemoConfig } from '../../src/demo/files.ts'
import { startCheckedSandbox } from '../support/checked-sandbox.ts'
import { DIALECT } from '../support/delivery.ts'
import { freePort } from '../support/free-port.ts'
import { isNeeded } from '../support/needs.ts'
import { until } from '../support/service-process.ts'

const root = path.join(import.meta.dirname, '../..')
const API_KEY = 'sk_test_0123456789abcdef'
/** npm takes ten seconds with a near registry; a far one on a busy machine may take minutes. */
const PATIENCE_MS = 600_000
/** The last commit before there were packages. */
const BEFORE_PACKAGES = '0996feee'
const isThere = spawnSync('git', ['cat-file', '-e', `${BEFORE_PACKAGES}^{commit}`], { cwd: root }).status === 0
const needed = isNeeded('campaigns')
const needs = needed ? '' : ' (skipped: .ci/run runs it)'

/** An installation that a program makes, with a service of a version at a time; nothing takes its callbacks. */
async function installation(onTestFinished: TestContext['onTestFinished'], maker: string) {
  const folder = mkdtempSync(path.join(tmpdir(), 'quayside-upgrade-'))
  const sandbox = await startCheckedSandbox({ dialect: DIALECT, apiKey: API_KEY, requestsPerMinute: 1_000_000 })
  const dialect = path.join(folder, 'dialect.json')
  writeFileSync(dialect, JSON.stringify(DIALECT))
  const [port, storePort] = [await freePort(), await freePort()]
  const configFile = writeDemoConfig({ folder, baseUrl: sandbox.baseUrl, apiKey: API_KEY, port, storePort, dialect })
  let service: ChildProcess | undefined
  onTestFinished(async () => {
    service?.kill('SIGKILL')
    await sandbox.close()
    rmSync(folder, { recursive: true, force: true })
  })
  const ask = async (program: string, ...argv: string[]) => {
    const given = [path.join(program, 'src/quayside.js'), ...argv, '--config', configFile]
    return (await promisify(execFile)(process.execPath, given, { timeout: PATIENCE_MS })).stdout
  }
  await ask(maker, 'database', 'create')
  const headers = { authorization: '', 'content-type': 'application/json', connection: 'close' }
  return {
    folder,
    ask,
    charges: () => sandbox.world.report().charges.length,
    start: async (program: string) => {
      service = spawn(process.execPath, [path.join(program, 'src/quayside.js'), 'serve', '--config', configFile], {
        stdio: 'ignore',
      })
      await until(
        'the service',
        async () => (await fetch(`http://127.0.0.1:${port}/readyz`).catch(() => undefined))?.ok,
      )
    },
    stop: async () => {
      service?.kill('SIGTERM')
      if (service && service.exitCode === null) await once(service, 'exit')
    },
    /** Places an order, and waits until its key is here. */
    buy: async (program: string, reference: string) => {
      if (headers.authorization === '') {
        const made = ['tokens', 'create', '--name', 'shop', '--role', 'store', '--store', DEMO_STORE, '--json']
        headers.authorization = `Bearer ${(JSON.parse(await ask(program, ...made)) as { token: string }).token}`
      }
      const url = `http://127.0.0.1:${port}/api/v1`
      const listed = async () => {
        const { data } = (await (await fetch(`${url}/listings?limit=100`, { headers })).json()) as {
          data: { items: { sku: string; stock: number | null }[] }
        }
        return data.items.find(({ stock }) => (stock ?? 0) > 10)?.sku
      }
      await until('the catalogue', listed)
      const body = JSON.stringify({ reference, lines: [{ id: '1', sku: await listed(), quantity: 1 }] })
      expect((await fetch(`${url}/orders`, { method: 'POST', headers, body })).status).toBe(202)
      const shown = async () => (await ask(program, 'orders', 'show', reference, '--json')).includes('"completed"')
      await until('the key', shown)
    },
  }
}

describe.runIf(needed)(`an upgrade${needs}`, () => {
  const folder = mkdtempSync(path.join(tmpdir(), 'quayside-packages-'))
  const archives = new Map<string, string>()

  beforeAll(() => {
    for (const version of ['0.1.1', '0.1.2']) {
      const tree = path.join(folder, version)
      const packed = [
        'src',
        'config',
        'data/sandbox',
        'test/package/build.ts',
        'tsconfig.json',
        'tsconfig.package.json',
      ]
      for (const name of [...packed, 'README.md', 'LICENSE', 'CHANGELOG.md']) {
        cpSync(path.join(root, name), path.join(tree, name), { recursive: true })
      }
      symlinkSync(path.join(root, 'node_modules'), path.join(tree, 'node_modules'))
      const settings = JSON.parse(readFileSync(path.join(root, 'package.json'), 'utf8')) as object
      writeFileSync(path.join(tree, 'package.json'), JSON.stringify({ ...settings, version }))
      execFileSync('npm', ['pack', '--silent', '--ignore-scripts=false', `--pack-destination=${folder}`], { cwd: tree })
      archives.set(version, path.join(folder, `quayside-${version}.tgz`))
    }
  }, PATIENCE_MS)

  afterAll(() => rmSync(folder, { recursive: true, force: true }))

  /** Installs a package. @returns the folder of its program */
  const installed = (version: string, name: string): string => {
    const home = path.join(folder, name)
    mkdirSync(home)
    execFileSync('npm', ['install', '--prefix', home, '--no-audit', '--no-fund', archives.get(version) ?? ''], {
      cwd: home,
    })
    return path.join(home, 'node_modules/quayside')
  }

  const backupsOf = (home: string): string[] =>
    existsSync(path.join(home, 'backups')) ? readdirSync(path.join(home, 'backups')) : []

  test('from one package to the next: rehearsed by the name of its file, with orders before and after', {
    timeout: PATIENCE_MS,
  }, async ({ onTestFinished }) => {
    const [old, next] = [installed('0.1.1', 'old'), installed('0.1.2', 'next')]
    const world = await installation(onTestFinished, old)
    await world.start(old)
    await world.buy(old, '1001')
    const rehearsed = JSON.parse(await world.ask(old, 'upgrade', '--rehearse', archives.get('0.1.2') ?? '', '--json'))
    expect(rehearsed).toMatchObject({ from: '0.1.1', to: '0.1.2', differs: false, failure: null })
    expect((rehearsed as { figures: number }).figures).toBeGreaterThan(50)
    await world.stop()
    await world.start(next)
    expect(backupsOf(world.folder)).toHaveLength(1)
    await world.buy(next, '1002')
    expect(await world.ask(next, 'orders', 'show', '1001')).toContain('1001')
    expect(world.charges()).toBe(2)
    await world.stop()
  })

  test.runIf(isThere)(
    'from a clone of before there were packages, rehearsed by the package',
    {
      timeout: PATIENCE_MS,
    },
    async ({ onTestFinished }) => {
      const clone = path.join(folder, 'clone')
      execFileSync('git', ['clone', '--quiet', '--no-checkout', root, clone])
      execFileSync('git', ['checkout', '--quiet', BEFORE_PACKAGES], { cwd: clone })
      // With the packages of its time.
      execFileSync('npm', ['ci', '--omit=dev', '--omit=optional', '--silent'], { cwd: clone })
      const next = installed('0.1.1', 'of-a-clone')
      const world = await installation(onTestFinished, clone)
      await world.start(clone)
      await world.buy(clone, '1001')
      const rehearsed = JSON.parse(await world.ask(next, 'upgrade', '--rehearse', next, '--json'))
      expect(rehearsed).toMatchObject({ to: '0.1.1', differs: false, failure: null })
      await world.stop()
      await world.start(next)
      expect(backupsOf(world.folder)).toHaveLength(1)
      await world.buy(next, '1002')
      expect(world.charges()).toBe(2)
      await world.stop()
    },
  )
})
