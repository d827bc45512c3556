/** The systemd unit, the launcher and the proxy file of docs/deployment.md: what they name is there, and Debian's programs take them. */
import { execFileSync, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type IncomingHttpHeaders } from 'node:http'
import { request } from 'node:https'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { connect } from 'node:tls'
import { describe, expect, onTestFinished, test } from 'vitest'
import { exitCodes } from '../src/cli/exit-codes.ts'
import { configShape } from '../src/config/config.ts'
import { fileLimits } from '../src/domain/listing-csv.ts'
import { serverLimits } from '../src/http/server.ts'
import { freePort } from './support/free-port.ts'
import { isNeeded } from './support/needs.ts'
import { delivery, openInstallation, until, WEBHOOK_PATH } from './support/service-process.ts'

const root = path.join(import.meta.dirname, '..')
const read = (name: string) => readFileSync(path.join(root, name), 'utf8')
const unit = read('docs/deployment/quayside.service')
const proxy = read('docs/deployment/nginx.conf')
const launcher = read('docs/deployment/quayside')
const page = read('docs/deployment.md')
const PROGRAM = '/opt/quayside'
const STATE = '/var/lib/quayside'

/** The values of a setting of the unit, word by word. */
const valuesOf = (name: string): string[] =>
  [...unit.matchAll(new RegExp(`^${name}=(.*)$`, 'gm'))].flatMap(([, value = '']) => value.split(' '))

/** The server blocks of the proxy file. */
const blocks = proxy.split(/^server \{$/m).slice(1)
const blockOf = (name: string) => blocks.find((block) => block.includes(`server_name ${name};`)) ?? ''
const PUBLIC = 'quayside.example'
const CONSOLE = 'console.example'

describe('the systemd unit', () => {
  test('starts again where the next start can help, and there alone', () => {
    expect(valuesOf('RestartForceExitStatus')).toEqual([String(exitCodes.restart)])
    expect(valuesOf('Restart')).toEqual(['on-failure'])
    expect(valuesOf('StartLimitIntervalSec')).toEqual(['0'])
    expect(valuesOf('RestartPreventExitStatus')).toEqual([String(exitCodes.usage), String(exitCodes.notFound)])
  })

  test('leaves the service the time that it takes to end', () => {
    expect(Number(valuesOf('TimeoutStopSec')[0]) * 1_000).toBeGreaterThan(serverLimits.drainMs + 1_000)
  })

  test('runs the program as npm start does, from files that there are', () => {
    const [node = '', heap = '', collect = '', entry = '', ...argv] = valuesOf('ExecStart')
    const { scripts } = JSON.parse(read('package.json')) as { scripts: { start: string } }
    expect(['node', heap, collect, path.posix.relative(PROGRAM, entry), ...argv].join(' ')).toBe(scripts.start)
    for (const file of [node, entry]) {
      expect(existsSync(path.join(root, path.posix.relative(PROGRAM, file))), file).toBe(true)
    }
  })

  test('keeps everything in the folder that it may write to, its configuration out of reach', () => {
    const config = /^Environment=QUAYSIDE_CONFIG=(.*)$/m.exec(unit)?.[1] ?? ''
    const dataDir = configShape.shape.dataDir.parse(undefined)
    expect(path.posix.join('/var/lib', valuesOf('StateDirectory')[0] ?? '')).toBe(STATE)
    expect(valuesOf('StateDirectoryMode')).toEqual(['0700'])
    expect(path.posix.resolve(path.posix.dirname(config), dataDir)).toBe(`${STATE}/data/run`)
    expect(valuesOf('ReadOnlyPaths')).toEqual([`-${path.posix.dirname(config)}`])
    expect(valuesOf('ProtectSystem')).toEqual(['strict'])
    expect(valuesOf('ReadWritePaths')).toEqual([])
    expect(valuesOf('CapabilityBoundingSet')).toEqual([''])
    for (const name of ['NoNewPrivileges', 'PrivateTmp', 'PrivateDevices', 'ProtectHome', 'RestrictNamespaces']) {
      expect(valuesOf(name), name).toEqual(['yes'])
    }
  })

  test('has the user, the folders and the configuration that the launcher and the page have', () => {
    const [config] = /QUAYSIDE_CONFIG=\S+/.exec(unit) ?? []
    expect(launcher).toContain(`sudo -u ${valuesOf('User')} env ${config} QUAYSIDE_COMMAND=quayside`)
    expect(launcher.replaceAll(/\\\n\s+/g, '')).toContain(` ${valuesOf('ExecStart').slice(0, 4).join(' ')} "$@"`)
    expect(page).toContain(`adduser --system --group --home ${STATE} ${valuesOf('User')}`)
    expect(page).toContain(`git clone <address of this repository> ${PROGRAM}\n`)
  })

  test('and the launcher have commands named as people type them there', () => {
    const env = { ...process.env, QUAYSIDE_COMMAND: /QUAYSIDE_COMMAND=(\w+)/.exec(launcher)?.[1] }
    const help = execFileSync(process.execPath, [path.join(root, 'src/quayside.js'), 'init', '--help'], { env })
    expect(String(help)).toContain('\n  quayside init\n')
    expect(valuesOf('Environment')).toContain('QUAYSIDE_COMMAND=quayside')
    expect(page).toContain('sudo install docs/deployment/quayside /usr/local/bin/')
  })

  const analyze = '/usr/bin/systemd-analyze'
  const here = isNeeded('systemd') || existsSync(analyze)
  test.skipIf(!here)(`is taken by systemd-analyze verify${here ? '' : ` (there is no ${analyze})`}`, () => {
    const file = path.join(temporaryFolder(), 'quayside.service')
    // Here the program is elsewhere.
    writeFileSync(file, unit.replaceAll(PROGRAM, root))
    const { status, stdout, stderr } = spawnSync(analyze, ['verify', file], { encoding: 'utf8' })
    expect({ status, said: stdout + stderr }).toEqual({ status: 0, said: '' })
  })
})

describe('the proxy file', () => {
  test('leads each name to its own listener on loopback, at the port that it has by default', () => {
    const { listen, console } = configShape.shape
    const leadsTo = (block: string) => new Set([...block.matchAll(/proxy_pass (\S+);/g)].map(([, to]) => to))
    expect(leadsTo(blockOf(PUBLIC))).toEqual(new Set([`http://127.0.0.1:${listen.parse({}).port}`]))
    const people = console.parse({}).listen
    expect(leadsTo(blockOf(CONSOLE))).toEqual(new Set([`http://127.0.0.1:${people?.port}`]))
    expect(blocks).toHaveLength(3)
    expect(blocks[0]).toContain(`server_name ${PUBLIC} ${CONSOLE};`)
    expect(leadsTo(blocks[0] ?? '')).toEqual(new Set())
  })

  test('lets pass as much as the service takes, and no more', () => {
    const limits = (block: string) => [...block.matchAll(/client_max_body_size (\w+);/g)].map(([, limit]) => limit)
    expect([limits(blockOf(PUBLIC)), limits(blockOf(CONSOLE))]).toEqual([['256k', '20m'], ['256k']])
    expect(fileLimits.bytesMax).toBe(20 * 1024 * 1024)
  })

  test('takes a request in as a whole, sends it once, and the service reads of what it adds the address of the sender alone', () => {
    for (const block of [blockOf(PUBLIC), blockOf(CONSOLE)]) {
      for (const line of ['proxy_request_buffering on;', 'proxy_next_upstream off;', 'proxy_set_header Host $host;']) {
        expect(block).toContain(line)
      }
    }
    const sources = readdirSync(path.join(root, 'src'), { recursive: true, encoding: 'utf8' })
    const readers = sources.filter(
      (file) => file.endsWith('.ts') && /x-forwarded|trust proxy/i.test(read(`src/${file}`)),
    )
    expect(readers).toEqual(['config/config.ts', 'console/console.ts', 'http/server.ts'])
  })

  test('states the address of the sender itself, and neither logs nor compresses pages of keys, also in the file of the load balancer', () => {
    const block = blockOf(PUBLIC)
    expect(block).toContain('proxy_set_header X-Forwarded-For $remote_addr;')
    for (const text of [block, read('docs/deployment/scale.nginx.conf')]) {
      const [, pages = ''] = /location \/k\/ \{([^}]*)\}/.exec(text) ?? []
      for (const line of ['access_log off;', 'error_log /dev/null;', 'gzip off;']) expect(pages).toContain(line)
    }
  })

  test('has names and certificates that the page has', () => {
    expect(page).toContain(`-d ${PUBLIC} -d ${CONSOLE}`)
    expect(page).toContain(`"console": { "url": "https://${CONSOLE}" }`)
    expect(page).toContain('--webroot -w /var/www/html')
    expect(blocks[0]).toContain('root /var/www/html;')
    expect(new Set(proxy.match(/\/etc\/letsencrypt\/live\/[^/]+/g))).toEqual(
      new Set([`/etc/letsencrypt/live/${PUBLIC}`]),
    )
  })
})

const NGINX = '/usr/sbin/nginx'
const hasNginx = isNeeded('nginx') || existsSync(NGINX)

describe.skipIf(!hasNginx)(`nginx with the proxy file${hasNginx ? '' : ` (there is no ${NGINX})`}`, () => {
  test('is taken by nginx -t', async () => {
    const site = await writeSite()
    const { status, stderr } = spawnSync(NGINX, ['-t', '-p', site.folder, '-c', site.file], { encoding: 'utf8' })
    expect(stderr.split('\n').filter((line) => !/syntax is ok|test is successful/.test(line))).toEqual([''])
    expect(status).toBe(0)
  })

  test('writes no token of a page of keys into a log while the service is away', async () => {
    const site = await writeSite()
    await start(site)
    const said = () => readFileSync(path.join(site.folder, 'logs'), 'utf8')
    const token = 'T'.repeat(43)
    for (const at of [`/k/${token}`, `//k/${token}`, `/k/${token}/x`]) {
      expect((await ask(site, PUBLIC, at)).status).toBe(502)
      expect((await ask(site, PUBLIC, at, { body: Buffer.alloc(300_000) })).status).toBe(413)
    }
    await fetch(`http://127.0.0.1:${site.ports[80]}/k/${token}`, { headers: { connection: 'close' } })
    expect((await ask(site, PUBLIC, '/livez')).status).toBe(502)
    await until('the log of errors', () => said().includes('/livez') || undefined)
    expect(said()).not.toContain(token)
  })

  test('passes a slow body on as a whole, byte for byte, and opens no connection before', async () => {
    const site = await writeSite()
    await start(site)
    const heard: { url: string | undefined; headers: IncomingHttpHeaders; body: Buffer }[] = []
    let connections = 0
    const service = createServer(async (incoming, response) => {
      const chunks: Buffer[] = []
      for await (const chunk of incoming) chunks.push(chunk as Buffer)
      heard.push({ url: incoming.url, headers: incoming.headers, body: Buffer.concat(chunks) })
      response.end('taken')
    }).on('connection', () => {
      connections += 1
    })
    service.listen(site.ports[8080], '127.0.0.1')
    await once(service, 'listening')
    onTestFinished(() => void service.close())
    const body = Buffer.from('{"n":1.0,\r\n"u":"\u00e9\u0000"}\n', 'latin1')
    const slow = connect({
      port: site.ports[443] ?? 0,
      host: '127.0.0.1',
      servername: PUBLIC,
      rejectUnauthorized: false,
    })
    slow.write(`POST /webhooks/supplier?a=%2F//b HTTP/1.1\r\nHost: ${PUBLIC}\r\nContent-Length: ${body.length}\r\n\r\n`)
    slow.write(body.subarray(0, 5))
    // Another request, sent later, is through first.
    expect(await ask(site, PUBLIC, '/livez')).toMatchObject({ status: 200, text: 'taken' })
    expect([connections, heard.length]).toEqual([1, 1])
    slow.write(body.subarray(5))
    await until('the slow body', () => heard.length === 2)
    slow.destroy()
    expect([heard[1]?.url, heard[1]?.body.equals(body)]).toEqual(['/webhooks/supplier?a=%2F//b', true])
    expect(heard[1]?.headers).toMatchObject({
      host: PUBLIC,
      'content-length': String(body.length),
      connection: 'close',
    })
    expect((await ask(site, PUBLIC, '/webhooks/supplier', { body: Buffer.alloc(300_000) })).status).toBe(413)
    expect(heard).toHaveLength(2)
  })

  test('stands before a service: deliveries and the API under one name, the console under the other', async () => {
    const consolePort = await freePort()
    const people = { listen: { port: consolePort }, url: `https://${CONSOLE}` }
    const installation = await openInstallation(onTestFinished, {}, { console: people })
    const site = await writeSite({ 8080: installation.port, 8081: consolePort })
    await Promise.all([installation.start(), start(site)])

    const { headers, body } = delivery('dlv_proxy')
    expect((await ask(site, PUBLIC, WEBHOOK_PATH, { headers: Object.fromEntries(headers), body })).status).toBe(200)
    const token = readFileSync(path.join(installation.folder, 'owner.token'), 'utf8').trim()
    const bearer = { authorization: `Bearer ${token}` }
    expect((await ask(site, PUBLIC, '/api/v1/deliveries', { headers: bearer })).text).toContain('"dlv_proxy"')
    const large = { ...bearer, 'content-type': 'application/json' }
    const statusOf = async (bytes: number) =>
      (await ask(site, PUBLIC, '/api/v1/console/links', { headers: large, body: Buffer.alloc(bytes, ' ') })).status
    expect([await statusOf(256 * 1024), await statusOf(256 * 1024 + 1)]).toEqual([400, 413])
    const rows = await ask(site, PUBLIC, '/api/v1/exports/deliveries?format=jsonl', { headers: bearer })
    expect(JSON.parse(rows.text)).toMatchObject({ deliveryId: 'dlv_proxy' })
    expect((await ask(site, PUBLIC, '/signin')).status).toBe(404)

    const made = await ask(site, PUBLIC, '/api/v1/console/links', {
      headers: { ...bearer, 'content-type': 'application/json' },
      body: Buffer.from('{"name":"anna","role":"viewer"}'),
    })
    const link = new URL((JSON.parse(made.text) as { data: { link: string } }).data.link)
    expect(link.origin).toBe(`https://${CONSOLE}`)
    const signedIn = await ask(site, CONSOLE, link.pathname, {
      headers: { 'content-type': 'application/x-www-form-urlencoded', 'sec-fetch-site': 'same-origin' },
      body: Buffer.from(link.search.slice(1)),
    })
    const cookie = String(signedIn.headers['set-cookie'])
    expect([signedIn.status, cookie]).toEqual([303, expect.stringMatching(/; Secure/)])
    const overview = await ask(site, CONSOLE, '/overview', { headers: { cookie: cookie.split(';')[0] ?? '' } })
    expect([overview.status, overview.text]).toEqual([200, expect.stringContaining('<h1>')])
    expect(overview.headers['strict-transport-security']).toBe('max-age=31536000')
    expect((await ask(site, CONSOLE, '/api/v1/status', { headers: bearer })).status).not.toBe(200)
  }, 90_000)
})

interface Site {
  folder: string
  /** The file that nginx is started with. */
  file: string
  /** The ports that stand for those of the proxy file. */
  ports: Record<number, number>
}

/**
 * The proxy file as it can run here: other ports and folders, and a certificate of its own.
 *
 * @param listening where the service and its console listen, by the ports that the file has
 */
async function writeSite(listening: Record<number, number> = {}): Promise<Site> {
  const folder = temporaryFolder()
  const ports: Record<number, number> = {}
  for (const port of [80, 443, 8080, 8081]) ports[port] = listening[port] ?? (await freePort())
  const [key, certificate] = [path.join(folder, 'privkey.pem'), path.join(folder, 'fullchain.pem')]
  const subject = ['-subj', `/CN=${PUBLIC}`, '-days', '2', '-keyout', key, '-out', certificate]
  execFileSync(
    'openssl',
    ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', ...subject],
    { stdio: 'pipe' },
  )
  const text = proxy
    .replaceAll(/^ *listen \[::\].*\n/gm, '')
    .replaceAll(/listen (\d+)/g, (_, port: string) => `listen 127.0.0.1:${ports[Number(port)]}`)
    .replaceAll(/127\.0\.0\.1:(808\d)/g, (_, port: string) => `127.0.0.1:${ports[Number(port)]}`)
    .replaceAll(`/etc/letsencrypt/live/${PUBLIC}`, folder)
  writeFileSync(path.join(folder, 'site.conf'), text)
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map((kind) => `${kind}_temp_path ${folder};`)
  const main = [
    ...(process.getuid?.() === 0 ? ['user root;'] : []),
    `daemon off; master_process off; pid ${folder}/pid; error_log stderr;`,
    'events {}',
    `http { access_log ${folder}/logs; error_log ${folder}/logs; ${temporary.join(' ')} include site.conf; }`,
  ]
  const file = path.join(folder, 'nginx.conf')
  writeFileSync(file, main.join('\n'))
  return { folder, file, ports }
}

/** Runs until the test has finished. */
async function start({ folder, file, ports }: Site): Promise<void> {
  const nginx = spawn(NGINX, ['-p', folder, '-c', file], { stdio: 'ignore' })
  onTestFinished(async () => {
    nginx.kill('SIGTERM')
    if (nginx.exitCode === null) await once(nginx, 'exit')
  })
  const answer = () => fetch(`http://127.0.0.1:${ports[80]}/`, { headers: { connection: 'close' } })
  await until('nginx', () => answer().catch(() => undefined))
}

interface Asked {
  method?: string
  headers?: Record<string, string>
  body?: Buffer
}

/** A request to a name behind the proxy. */
function ask({ ports }: Site, name: string, at: string, { method, headers, body }: Asked = {}) {
  return new Promise<{ status: number; headers: IncomingHttpHeaders; text: string }>((resolve, reject) => {
    const sent = request(
      {
        port: ports[443],
        host: '127.0.0.1',
        servername: name,
        rejectUnauthorized: false,
        agent: false,
        path: at,
        method: method ?? (body ? 'POST' : 'GET'),
        headers: { host: name, ...headers, ...(body && { 'content-length': body.length }) },
      },
      (response) => {
        const chunks: Buffer[] = []
        response.on('data', (chunk: Buffer) => chunks.push(chunk))
        response.on('end', () =>
          resolve({
            status: response.statusCode ?? 0,
            headers: response.headers,
            text: Buffer.concat(chunks).toString(),
          }),
        )
      },
    )
    sent.on('error', reject)
    sent.end(body)
  })
}

/** A folder that goes when the test has finished. */
function temporaryFolder(): string {
  const folder = mkdtempSync(path.join(tmpdir(), 'quayside-deployment-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}
