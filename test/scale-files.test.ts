/** The compose file and the balancer's file of docs/scale.md: what they name is there, and what they promise is what the service does. */
import { spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { configShape, SECRETS } from '../src/config/config.ts'
import { serverLimits } from '../src/http/server.ts'
import { isNeeded } from './support/needs.ts'

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
