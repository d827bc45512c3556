/**
 * The compose file, the balancer's file and the commands of docs/scale.md: what they name is there, and what they promise is what
 * the service does.
 */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { configShape, SECRETS } from '../src/config/config.ts'
import { serverLimits } from '../src/http/server.ts'
import { startCheckedSandbox } from './support/checked-sandbox.ts'
import { standard } from './support/dialect-pair.ts'
import { freePort } from './support/free-port.ts'
import { isNeeded } from './support/needs.ts'
import { hasPostgres, newPostgresUrl } from './support/postgres.ts'
import { run } from './support/postgres-server.ts'
import { until } from './support/service-process.ts'

const root = path.join(import.meta.dirname, '..')
const read = (name: string) => readFileSync(path.join(root, name), 'utf8')
const compose = read('compose.scale.yaml')
const balancer = read('docs/deployment/scale.nginx.conf')
const dockerfile = read('Dockerfile')

/** The text of each block of a section, by its name. */
function blocksOf(section: string): Map<string, string> {
  const [, text = ''] = new RegExp(`^${section}:\\n((?:(?:  .*|)\\n)*)`, 'm').exec(compose) ?? []
  const named = text.split(/^ {2}(?=\S)/m).filter((block) => /^[a-z0-9-]+:/.test(block))
  return new Map(named.map((block) => [block.slice(0, block.indexOf(':')), block]))
}

const services = blocksOf('services')
const PROCESSES = ['web-1', 'web-2', 'worker-1', 'worker-2']
const [, shared = ''] = /^x-quayside: &quayside\n((?: .*\n)*)/m.exec(compose) ?? []

describe('the compose file of several processes', () => {
  test('has two web processes and two that may be the worker, each with a volume of its own', () => {
    expect([...services.keys()]).toEqual([...PROCESSES, 'postgres', 'balancer'])
    for (const name of PROCESSES) {
      const block = services.get(name) ?? ''
      const [, port] = /CMD \["serve", "--port", "(\d+)"\]/.exec(dockerfile) ?? []
      expect(block).toContain(`command: serve --port ${port} --role ${name.split('-')[0]}\n`)
      expect(block).toContain('<<: *quayside')
      expect(block).toContain(`- ${name}:/data\n`)
      // The folder of the data is in the volume, seen from the configuration.
      expect(path.posix.resolve('/config', configShape.shape.dataDir.parse(undefined))).toBe('/data/run')
    }
    expect([...blocksOf('volumes').keys()]).toEqual([...PROCESSES, 'postgres'])
  })

  test('leaves each process the time that it takes to end, and asks it whether it is ready', () => {
    const seconds = Number(/stop_grace_period: (\d+)s/.exec(shared)?.[1])
    expect(seconds * 1_000).toBeGreaterThan(serverLimits.drainMs + 1_000)
    for (const block of [shared, services.get('balancer') ?? ''])
      expect(block).toContain('http://127.0.0.1:8080/readyz')
  })

  test('gives secrets as files alone', () => {
    const files = new Map([...blocksOf('secrets')].map(([name, block]) => [name, /file: (\S+)/.exec(block)?.[1]]))
    const { apiKey, keyEncryptionKey, databasePassword } = SECRETS
    for (const { variable, file } of [apiKey, keyEncryptionKey, databasePassword]) {
      expect(shared).toContain(`${variable}_FILE: /run/secrets/${file}\n`)
      expect(files.get(file)).toBe(`./config/secrets/${file}`)
    }
    expect(services.get('postgres')).toContain('POSTGRES_PASSWORD_FILE: /run/secrets/database-password\n')
    expect(compose).not.toMatch(/PASSWORD:|API_KEY:|ENCRYPTION_KEY:|DATABASE_URL:|postgres:\/\//)
  })

  test('runs the service without a privilege that it does not need', () => {
    for (const line of ['read_only: true', '- /tmp', '- ALL', '- no-new-privileges:true', 'restart: unless-stopped']) {
      expect(shared.split('\n').map((each) => each.trim())).toContain(line)
    }
    expect(compose).not.toMatch(/privileged:|cap_add|user: *root|network_mode|'8080:8080'/)
  })

  test('has a server as new as the service needs, and mounts files that there are', () => {
    expect(Number(/image: postgres:(\d+)/.exec(compose)?.[1])).toBeGreaterThanOrEqual(15)
    const mounted = [...compose.matchAll(/- \.\/(docs\/\S+?):/g)].map(([, file = '']) => file)
    expect(mounted.filter((file) => !existsSync(path.join(root, file)))).toEqual([])
    expect(mounted).toHaveLength(1)
  })
})

describe('the load balancer', () => {
  const location = (start: string) => balancer.slice(balancer.indexOf(`location ${start}`)).split('\n  }')[0] ?? ''

  test('leads to every web process', () => {
    const servers = [...balancer.matchAll(/server (\S+):8080 resolve/g)].map(([, name]) => name)
    expect(servers).toEqual(PROCESSES.filter((name) => name.startsWith('web')))
  })

  test('repeats of what a process may have taken only what is known when it comes again', () => {
    expect(balancer.match(/non_idempotent;/g)).toHaveLength(1)
    expect(location('~ ^/(webhooks/|api/v1/orders$)')).toContain('http_503 non_idempotent;')
  })

  const NGINX = '/usr/sbin/nginx'
  const hasNginx = isNeeded('nginx') || existsSync(NGINX)
  test.skipIf(!hasNginx)(`is taken by nginx -t${hasNginx ? '' : ` (there is no ${NGINX})`}`, () => {
    const folder = mkdtempSync(path.join(tmpdir(), 'quayside-balancer-'))
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
    // Debian's nginx is older than `resolve`, and here no name of a container is known.
    const text = balancer.replaceAll(' resolve ', ' ').replaceAll(/web-\d:/g, '127.0.0.1:')
    const main = `pid ${folder}/pid; error_log stderr; events {} http { access_log off; include ${folder}/site.conf; }`
    writeFileSync(path.join(folder, 'site.conf'), text)
    writeFileSync(path.join(folder, 'nginx.conf'), main)
    const { status, stderr } = spawnSync(NGINX, ['-t', '-p', folder, '-c', path.join(folder, 'nginx.conf')], {
      encoding: 'utf8',
    })
    expect({ status, stderr }).toEqual({ status: 0, stderr: expect.stringContaining('syntax is ok') })
  })
})

/** The blocks of a section of a page. */
function blocksUnder(page: string, heading: string, language: string): string[] {
  const section = read(page).split(`\n${heading}\n`)[1]?.split('\n## ')[0] ?? ''
  return [...section.matchAll(new RegExp(`^\`\`\`${language}\\n([\\s\\S]*?)^\`\`\``, 'gm'))].map(
    ([, text = '']) => text,
  )
}

describe.runIf(hasPostgres)('on one machine without Docker', () => {
  const ENTRY = path.join(root, 'src/quayside.js')
  const API_KEY = 'sk_test_0123456789abcdef'

  /** What docs/configuration.md says of a new installation on a server, done in a folder of its own. */
  async function setUpOnServer(port: number) {
    const folder = mkdtempSync(path.join(tmpdir(), 'quayside-machine-'))
    const sandbox = await startCheckedSandbox({ dialect: standard, apiKey: API_KEY, requestsPerMinute: 1_000_000 })
    onTestFinished(async () => {
      await sandbox.close()
      rmSync(folder, { recursive: true, force: true })
    })
    const url = await newPostgresUrl()
    await run(url, 'drop schema public cascade; create schema public')
    const [commands = ''] = blocksUnder('docs/configuration.md', '## PostgreSQL', 'sh')
    const flags = `--yes --base-url ${sandbox.baseUrl} --callback-url http://127.0.0.1:9/ --port ${port}`
    const script = `createdb() { :; }
npm() { :; }
npx() { '${process.execPath}' '${ENTRY}' "$2" ${flags}; }
set -e
umask 022
${commands.replace(/(?<=echo ')[^']+/, url)}`
    const env = { ...process.env, QUAYSIDE_API_KEY: API_KEY }
    // Not waited for in this thread, which is the supplier.
    const child = spawn('bash', ['-c', script], { cwd: folder, env, stdio: ['ignore', 'pipe', 'inherit'] })
    let said = ''
    child.stdout.on('data', (data) => {
      said += data
    })
    const [code] = await once(child, 'exit')
    return { folder, said, code: code as number }
  }

  test('a new installation has its database, token and callback secret where the service finds them', async () => {
    const { folder, said, code } = await setUpOnServer(await freePort())
    expect(code).toBe(0)
    expect(said).toMatch(/token {12}qs_s_\S+\n {2}callback secret {2}whsec_/)
    expect(existsSync(path.join(folder, 'data/run/quayside.db'))).toBe(false)
  })

  test('the processes of the page took the ports and the data folder of each other', { timeout: 120_000 }, async () => {
    // Each port of the page stands for a free one: that which is free here.
    const ports = new Map<number, number>()
    const freed = async (port: number): Promise<number> => {
      const free = ports.get(port) ?? (await freePort())
      ports.set(port, free)
      return free
    }
    const usual = configShape.shape
    const [own, people] = [usual.listen.parse(undefined).port, usual.console.parse(undefined).listen?.port ?? 0]
    const { folder } = await setUpOnServer(await freed(own))
    const first = JSON.parse(readFileSync(path.join(folder, 'config/quayside.json'), 'utf8'))
    const write = (name: string, settings: object) =>
      writeFileSync(path.join(folder, 'config', name), JSON.stringify(settings))
    const common = { ...first, console: { listen: { port: await freed(people) } } }
    write('quayside.json', common)
    const names = ['web-2.json', 'worker.json']
    const differences = blocksUnder('docs/scale.md', '## Without Docker, on one machine', 'json')
    expect(differences).toHaveLength(names.length)
    for (const [index, text] of differences.entries()) {
      const given = JSON.parse(text)
      given.listen.port = await freed(given.listen.port)
      if (given.console) given.console.listen.port = await freed(given.console.listen.port)
      write(names[index] ?? '', { ...common, ...given })
    }
    expect(ports.size, 'no two of the page are the same').toBe(5)
    const [commands = ''] = blocksUnder('docs/scale.md', '## Without Docker, on one machine', 'sh')
    const env = { ...process.env, QUAYSIDE_API_KEY: API_KEY }
    const started = commands
      .trim()
      .split('\n')
      .map((line): { child: ChildProcess; log: () => string } => {
        const args = line.split(' ').slice(2)
        const child = spawn(process.execPath, [ENTRY, ...args], { cwd: folder, env, stdio: ['ignore', 'pipe', 'pipe'] })
        let log = ''
        for (const stream of [child.stdout, child.stderr]) {
          stream?.on('data', (data) => {
            log += data
          })
        }
        return { child, log: () => log }
      })
    onTestFinished(() => {
      for (const { child } of started) child.kill('SIGKILL')
    })
    expect(started).toHaveLength(3)
    const ready = async (port: number) => {
      const headers = { connection: 'close' }
      const answer = await fetch(`http://127.0.0.1:${port}/readyz`, { headers }).catch(() => undefined)
      return answer?.ok && ((await answer.json()) as { notes: string[] }).notes.length === 0
    }
    for (const port of [own, 8082, 8084]) await until(`the process at ${port}`, async () => ready(await freed(port)))
    const tokens = ['run', 'web-2', 'worker'].map((name) =>
      readFileSync(path.join(folder, 'data', name, 'owner.token'), 'utf8'),
    )
    expect(new Set(tokens).size).toBe(3)
    for (const { child, log } of started) {
      expect(log()).not.toContain('console.unavailable')
      const ended = once(child, 'exit')
      child.kill('SIGTERM')
      expect((await ended)[0]).toBe(0)
    }
  })
})
