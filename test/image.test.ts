/**
 * The image as buildah makes and runs it. It has no engine around it: a read-only root, a health check that an engine runs, a
 * process that is the first of its container, and the networks of the compose files are not tried.
 */
import { execFileSync } from 'node:child_process'
import {
  chmodSync,
  chownSync,
  cpSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type ImageConfig, openBuildah } from './support/buildah.ts'
import { startCheckedSandbox } from './support/checked-sandbox.ts'
import { DIALECT } from './support/delivery.ts'
import { freePort } from './support/free-port.ts'
import { isNeeded } from './support/needs.ts'
import { startShop } from './support/recording-store.ts'
import { until } from './support/service-process.ts'

const root = path.join(import.meta.dirname, '..')
const read = (file: string) => readFileSync(path.join(root, file), 'utf8')
const dockerfile = read('Dockerfile')
const manifest = JSON.parse(read('package.json')) as { version: string; optionalDependencies: Record<string, string> }
const nodeVersion = manifest.optionalDependencies[`node-linux-${process.arch}`]
const API_KEY = 'sk_test_0123456789abcdef'

/** Sizes without Node, in bytes. Measured: 150 MB with Debian and npm, of which 31 MB are ours. */
const IMAGE_BYTES_MAX = 200_000_000
const OWN_BYTES_MAX = 35_000_000

/** A request has run within some seconds, or never will: after a restore, reattaching takes no longer. */
const SETTLES_SOON = { settleSeconds: 3, listLagSeconds: 0.2, scanGapSeconds: 0.5 }

/** The base takes a minute on a busy machine, and each image 20 seconds. */
const BUILD_MS = 600_000

/** The user of the image, and one that its list of users lacks. */
const NODE_USER = 1_000
const STRANGE_USER = 4_242

/** It needs root, and installs from the registries as often as it runs. */
const runs = isNeeded('buildah')
const needs = runs ? '' : ' (skipped: .ci/run runs it)'

describe.runIf(runs)(
  `the image, built by buildah on a base of packages and run in its chroot isolation${needs}`,
  () => {
    let folder = ''
    let buildah: ReturnType<typeof openBuildah>
    const running = new Set<ReturnType<typeof buildah.start>>()
    /** The files of the base and of the image, before anything has run in a container. */
    let base = new Map<string, string>()
    let built = new Map<string, string>()
    let first = { name: '', root: '' }
    let config: ImageConfig
    let history: object[] = []

    beforeAll(async () => {
      folder = mkdtempSync(path.join(tmpdir(), 'quayside-image-'))
      chmodSync(folder, 0o755)
      buildah = openBuildah(folder)
      base = treeOf(await buildah.makeBase('localhost/quayside-base'))
      await buildah.build('localhost/quayside:first', root, 'localhost/quayside-base')
      first = await buildah.containerOf('localhost/quayside:first')
      built = treeOf(first.root)
      ;({ config, history } = await buildah.inspect('localhost/quayside:first'))
    }, BUILD_MS)

    afterAll(async () => {
      for (const { child, exit, signal } of running) {
        if (child.exitCode === null) signal('SIGKILL')
        await exit
      }
      rmSync(folder, { recursive: true, force: true })
    }, BUILD_MS)

    test('runs as a user that is not root, with one volume, on the Node of the packages', async () => {
      expect(config).toMatchObject({
        User: 'node',
        Env: [
          expect.stringMatching(/^PATH=/),
          'NODE_ENV=production',
          'QUAYSIDE_CONFIG=/data/config/quayside.json',
          'QUAYSIDE_HOST=0.0.0.0',
        ],
        Volumes: { '/data': {} },
        ExposedPorts: { '8080/tcp': {} },
        StopSignal: 'SIGTERM',
        WorkingDir: '/data',
        Labels: { 'org.opencontainers.image.licenses': 'MIT' },
      })
      const volume = path.join(first.root, 'data')
      expect(lstatSync(volume)).toMatchObject({ uid: NODE_USER, gid: NODE_USER })
      expect(readdirSync(volume)).toEqual([])
      const { said, exit } = buildah.start(first.name, ['node', '--version'])
      expect(await exit, said.err).toBe(0)
      expect(said.out.trim()).toBe(`v${nodeVersion}`)
    })

    test('holds the program and no more packages than it needs, within its size', () => {
      const app = path.join(first.root, 'app')
      expect(readdirSync(app).toSorted()).toEqual([
        'LICENSE',
        'config',
        'data',
        'docs',
        'node_modules',
        'package.json',
        'src',
      ])
      const lock = JSON.parse(read('package-lock.json')) as {
        packages: Record<string, { dev?: true; optional?: true }>
      }
      // The driver of PostgreSQL is optional for the package, and in the image for several processes.
      const needed = (name: string): boolean => {
        const entry = lock.packages[name]
        return entry !== undefined && !entry.dev && !entry.optional
      }
      const packages = packagesIn(app)
      expect(packages.length).toBeGreaterThan(11)
      expect(packages.filter((name) => !needed(name))).toEqual([])
      expect(packages).toContain('node_modules/pg')
      expect(bytesOf(partOf(built, OWN))).toBeLessThan(OWN_BYTES_MAX)
      expect(bytesOf(built) - lstatSync(path.join(first.root, 'usr/local/bin/node')).size).toBeLessThan(IMAGE_BYTES_MAX)
    })

    test('keeps nothing of the machine that built it', () => {
      expect(partOf(built, NOT_OWN)).toEqual(base)
      const lock = readFileSync(path.join(first.root, 'app/node_modules/.package-lock.json'), 'utf8')
      expect(lock).not.toContain('"resolved"')
      expect(history.length).toBeGreaterThan(0)
      expect(JSON.stringify({ config, history })).not.toMatch(/npmrc|cafile|CERT|registry|proxy/i)
    })

    test('takes in no configuration, no secret and no database', async () => {
      const kept = [
        'package.json',
        'src/main.ts',
        'config/dialects/reseller-v1.1.json',
        'data/sandbox/note.html',
        'docs/troubleshooting.md',
      ]
      const left = [
        'config/quayside.json',
        'config/secrets/api-key',
        'data/run/quayside.db',
        'data/demo/quayside.db',
        '.git/config',
        'node_modules/x',
        'docs/operations.md',
      ]
      const context = path.join(folder, 'everything')
      for (const file of [...kept, ...left]) {
        mkdirSync(path.join(context, path.dirname(file)), { recursive: true })
        writeFileSync(path.join(context, file), '')
      }
      cpSync(path.join(root, '.dockerignore'), path.join(context, '.dockerignore'))
      writeFileSync(path.join(context, 'Dockerfile'), 'FROM scratch\nCOPY . /\n')
      await buildah.build('localhost/everything', context)
      const { root: copied } = await buildah.containerOf('localhost/everything')
      const files = readdirSync(copied, { recursive: true, withFileTypes: true }).filter((one) => one.isFile())
      const names = files.map(({ parentPath, name }) => path.relative(copied, path.join(parentPath, name)))
      expect(names.toSorted()).toEqual(kept.toSorted())
    })

    test('stops with a sentence when there is no configuration, instead of running the demo', async () => {
      const { exit, said } = buildah.start(first.name, [...config.Entrypoint, ...config.Cmd])
      expect(await exit).toBe(4)
      expect(said.err.replaceAll(/\s+/g, ' ')).toContain('quayside.js init')
    })

    test('sells, and loses nothing when it is killed, upgraded and restored', {
      timeout: BUILD_MS,
    }, async (context) => {
      const [port, consolePort, storePort] = [await freePort(), await freePort(), await freePort()]
      const dialect = { ...DIALECT, ...SETTLES_SOON }
      const sandbox = await startCheckedSandbox({ dialect, apiKey: API_KEY, requestsPerMinute: 1_000_000 })
      context.onTestFinished(() => sandbox.close())
      const charges = () => sandbox.world.report().charges.length

      const volume = path.join(folder, 'volume')
      const secrets = path.join(folder, 'secrets')
      for (const made of [volume, secrets]) mkdirSync(made)
      writeFileSync(path.join(volume, 'dialect.json'), JSON.stringify(dialect))
      writeFileSync(path.join(secrets, 'api-key'), API_KEY)
      writeFileSync(path.join(secrets, 'key'), Buffer.alloc(32, 'kek').toString('base64'))
      for (const name of readdirSync(secrets)) chmodSync(path.join(secrets, name), 0o400)
      /** Gives a user the volume and the secrets. @returns how a container is run as that user */
      const as = (user: number) => {
        for (const given of [volume, secrets]) {
          for (const name of ['', ...readdirSync(given, { recursive: true, encoding: 'utf8' })]) {
            chownSync(path.join(given, name), user, user)
          }
        }
        return {
          user: `${user}:${user}`,
          env: {
            QUAYSIDE_API_KEY_FILE: '/run/secrets/api-key',
            QUAYSIDE_KEY_ENCRYPTION_KEY_FILE: '/run/secrets/key',
          },
          volumes: { '/data': volume, '/run/secrets': secrets },
        }
      }
      let container = first
      let options = as(NODE_USER)
      /** Runs a command of the image, with the one thing changed: a container has port 8080 to itself, this machine may not. */
      const launch = (command: string[]) => {
        const argv = command.map((word) => word.replaceAll('8080', String(port)))
        const launched = buildah.start(container.name, argv, options)
        running.add(launched)
        return launched
      }
      const quayside = async (...argv: string[]) => {
        const { exit, said } = launch([config.Entrypoint.at(-1) ?? '', ...argv])
        expect(await exit, said.err).toBe(0)
        return said.out
      }
      const isHealthy = async () => (await launch(config.Healthcheck.Test.slice(1)).exit) === 0

      const init = await quayside(
        ...['init', '--yes', '--json', '--base-url', sandbox.baseUrl, '--dialect', '/data/dialect.json'],
        ...['--callback-url', `http://127.0.0.1:${storePort}/`, '--store-name', 'A'],
      )
      const { token, callbackSecret } = JSON.parse(init) as { token: string; callbackSecret: string }
      const configFile = path.join(volume, 'config/quayside.json')
      const written = JSON.parse(readFileSync(configFile, 'utf8')) as object
      const ports = { listen: { port }, console: { listen: { port: consolePort } } }
      writeFileSync(configFile, JSON.stringify({ ...written, ...ports }))
      const shop = await startShop({ secret: callbackSecret, port: storePort })
      context.onTestFinished(() => shop.close())

      const ask = async (target: string, more: RequestInit = {}) => {
        const headers = { authorization: `Bearer ${token}`, connection: 'close', 'content-type': 'application/json' }
        return fetch(`http://127.0.0.1:${port}${target}`, { ...more, headers })
      }
      let sku: string | undefined
      const serve = async () => {
        const service = launch([...config.Entrypoint, ...config.Cmd])
        await until('the service', async () => {
          if (service.child.exitCode !== null) throw new Error(`it ended:\n${service.said.out}${service.said.err}`)
          return (await ask('/readyz').catch(() => undefined))?.ok
        })
        await until('the catalogue', async () => {
          const { data } = (await (await ask('/api/v1/listings?limit=100')).json()) as {
            data: { items: { sku: string; stock: number | null }[] }
          }
          sku = data.items.find(({ stock }) => (stock ?? 0) > 10)?.sku
          return sku
        })
        return service
      }
      const order = async (reference: string) => {
        const body = JSON.stringify({ reference, lines: [{ id: '1', sku, quantity: 1 }] })
        expect((await ask('/api/v1/orders', { method: 'POST', body })).status).toBe(202)
      }
      const delivered = (reference: string) =>
        until(`the key of ${reference}`, () =>
          shop.received().some(({ type, data }) => type === 'order.closed' && data.reference === reference),
        )

      let service = await serve()
      const before = partOf(treeOf(first.root), NOT_MOUNTS)
      expect(await isHealthy()).toBe(true)
      await order('1001')
      await delivered('1001')
      await order('1002')
      service.signal('SIGKILL')
      expect(await service.exit).not.toBe(0)
      expect(await isHealthy()).toBe(false)
      service = await serve()
      await delivered('1002')
      const { backup } = JSON.parse(await quayside('backup', '--json')) as { backup: { file: string } }
      await order('1003')
      await delivered('1003')
      service.signal(config.StopSignal as NodeJS.Signals)
      expect(await service.exit).toBe(0)
      // All this time, it wrote to the volume alone.
      expect(partOf(treeOf(first.root), NOT_MOUNTS)).toEqual(before)

      // Upgraded: an image of another version goes on with the same volume.
      const next = path.join(folder, 'next')
      const taken = [...read('.dockerignore').matchAll(/^!(.+)/gm)].map(([, name = '']) => name)
      for (const name of ['Dockerfile', '.dockerignore', ...taken]) {
        cpSync(path.join(root, name), path.join(next, name), { recursive: true })
      }
      writeFileSync(path.join(next, 'package.json'), JSON.stringify({ ...manifest, version: '999.0.0' }))
      await buildah.build('localhost/quayside:next', next, 'localhost/quayside-base')
      container = await buildah.containerOf('localhost/quayside:next')
      expect(await quayside('--version')).toBe('999.0.0\n')
      service = await serve()
      for (const reference of ['1001', '1002', '1003']) {
        expect(await quayside('orders', 'show', reference)).toContain('fulfilled')
      }
      await order('1004')
      await delivered('1004')
      service.signal('SIGTERM')
      expect(await service.exit).toBe(0)

      // Restored: what came after the backup is bought no second time. An engine may run the image as a user that nothing in it knows.
      options = as(STRANGE_USER)
      await quayside('restore', backup.file)
      service = await serve()
      expect(await quayside('status')).toContain('FROZEN')
      await order('1003')
      await order('1004')
      await order('1005')
      await delivered('1005')
      expect(charges()).toBe(5)
      expect([...shop.keys().values()].map((keys) => new Set(keys).size)).toEqual([1, 1, 1, 1, 1])
      service.signal('SIGTERM')
      expect(await service.exit).toBe(0)
    })
  },
)

describe('the build', () => {
  test('begins with a base image of one exact version, that of the Node which the packages bring', () => {
    expect(dockerfile).toContain(`\nARG BASE=node:${nodeVersion}-bookworm-slim\n`)
    expect([...dockerfile.matchAll(/^FROM (\S+)/gm)].map(([, base]) => base)).toEqual(['$BASE', '$BASE'])
  })

  test('is run by the compose file without a privilege that it does not need', () => {
    const compose = read('compose.yaml')
    for (const line of ['read_only: true', '- /tmp', '- ALL', '- no-new-privileges:true', '- data:/data']) {
      expect(compose.split('\n').map((each) => each.trim())).toContain(line)
    }
    expect(compose).toMatch(/cap_drop:\n\s+- ALL/)
    expect(compose).not.toMatch(/privileged:|cap_add|user: *root|QUAYSIDE_API_KEY:/)
  })
})

/** Installed packages as the lock file names them. */
const packagesIn = (folder: string): string[] =>
  readdirSync(path.join(folder, 'node_modules'), { recursive: true, encoding: 'utf8' })
    .map((file) => /^((?:.*\/node_modules\/)?(?:@[^/]+\/)?[^/@.][^/]*)\/package\.json$/.exec(file)?.[1])
    .filter((name) => name !== undefined)
    .map((name) => `node_modules/${name}`)

/** Every file of a tree, by its place in it: its kind, size (0 of a folder), mode and the second of its last change. */
function treeOf(root: string): Map<string, string> {
  const facts = ['-type', 'd', '-printf', '%P\t%y 0 %m %T@\n', '-o', '-printf', '%P\t%y %s %m %T@\n']
  const found = execFileSync('find', [root, '-mindepth', '1', ...facts], { encoding: 'utf8', maxBuffer: 2 ** 26 })
  return new Map(
    found
      .trim()
      .split('\n')
      .map((line) => line.replace(/\.\d+$/, '').split('\t') as [string, string]),
  )
}

/** What we add to the base, what the base is, and all but where buildah mounts. */
const OWN = /^(app|data)(\/|$)/
const NOT_OWN = /^(?!(app|data)(\/|$))/
const NOT_MOUNTS = /^(?!run(\/|$))/

const partOf = (tree: Map<string, string>, files: RegExp) => new Map([...tree].filter(([file]) => files.test(file)))

const bytesOf = (tree: Map<string, string>): number =>
  [...tree.values()].reduce((sum, facts) => sum + (facts.startsWith('f') ? Number(facts.split(' ')[1]) : 0), 0)
