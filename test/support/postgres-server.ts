/**
 * Vitest starts this once a run: a PostgreSQL server for the tests that need one, and a database with the tables of the
 * program that each of theirs is a copy of. The server of `TEST_POSTGRES_URL` is used when there is one; its user may make
 * databases. Where none is needed, nothing of PostgreSQL is loaded.
 */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { chownSync, existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type pg from 'pg'
import type { TestProject } from 'vitest/node'
import { freePort } from './free-port.ts'
import { isNeeded } from './needs.ts'

declare module 'vitest' {
  export interface ProvidedContext {
    postgres: TestServer | undefined
  }
}

export interface TestServer {
  /** The address of the database from which others are made. */
  url: string
  /** The name of the database that is copied. */
  template: string
  /** The certificate that the server shows for `localhost`, signed by itself; undefined for a server of `TEST_POSTGRES_URL`. */
  certificate: string | undefined
  /** The same server through pgbouncer, which gives each transaction another connection; undefined without one. */
  pooled: string | undefined
}

export default async function setUp(project: TestProject): Promise<(() => Promise<void>) | undefined> {
  const given = process.env.TEST_POSTGRES_URL
  if (!given && !isNeeded('postgres') && process.env.QUAYSIDE_ENGINE !== 'postgres') {
    project.provide('postgres', undefined)
    return undefined
  }
  const server = given ? { url: given, certificate: undefined, stop: async () => undefined } : await startServer()
  const pooler = isNeeded('pgbouncer') ? await startPooler(server.url) : undefined
  const template = `quayside_template_${process.pid}`
  await run(server.url, `create database ${template} template template0 encoding 'UTF8'`)
  const { openPostgres } = await import('../../src/storage/postgres/open.ts')
  const db = await openPostgres({
    url: withDatabase(server.url, template),
    now: () => 0,
    clocksApartMs: Number.POSITIVE_INFINITY,
    onFatal: (error) => {
      throw error
    },
  })
  await db.close()
  project.provide('postgres', { url: server.url, template, certificate: server.certificate, pooled: pooler?.url })
  return async () => {
    await pooler?.stop()
    if (given) await dropCopies(given, template)
    await server.stop()
  }
}

/** Leaves a server that goes on as it was. */
async function dropCopies(url: string, template: string): Promise<void> {
  await withClient(url, async (client) => {
    const { rows } = await client.query<{ name: string }>(
      `select datname as name from pg_database where starts_with(datname, '${template}')`,
    )
    for (const { name } of rows) await client.query(`drop database ${name} with (force)`)
  })
}

/** Runs statements on a connection of its own. */
export const run = (url: string, statements: string): Promise<void> =>
  withClient(url, async (client) => void (await client.query(statements)))

async function withClient(url: string, use: (client: pg.Client) => Promise<void>): Promise<void> {
  const { default: driver } = await import('pg')
  const client = new driver.Client({ connectionString: url })
  await client.connect()
  try {
    await use(client)
  } finally {
    await client.end()
  }
}

/** The same server, another database. */
export function withDatabase(url: string, name: string): string {
  const address = new URL(url)
  address.pathname = `/${name}`
  return address.href
}

/** The server of `TEST_POSTGRES_URL`, or one of the machine's own, for what runs outside of vitest. */
export async function openServer() {
  const given = process.env.TEST_POSTGRES_URL
  const { url, stop } = given ? { url: given, stop: async () => undefined } : await startServer()
  const made: string[] = []
  return {
    /** Makes an empty database. @returns its address */
    newDatabase: async (): Promise<string> => {
      const name = `quayside_${process.pid}_${made.length + 1}`
      await run(url, `create database ${name} template template0 encoding 'UTF8'`)
      made.push(name)
      return withDatabase(url, name)
    },
    stop: async (): Promise<void> => {
      for (const name of given ? made : []) await run(url, `drop database ${name} with (force)`)
      await stop()
    },
  }
}

/** Starts a server of the machine's own in a temporary folder, as a user who may do nothing else. */
async function startServer() {
  const { folder, owner } = ownFolder('postgres')
  const bin = newestBinaries()
  const data = path.join(folder, 'data')
  execFileSync(
    path.join(bin, 'initdb'),
    ['-D', data, '-U', 'quayside', '-A', 'trust', '-E', 'UTF8', '--no-sync'],
    owner,
  )
  const [certificate, key] = [path.join(folder, 'server.crt'), path.join(folder, 'server.key')]
  const request = ['req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-days', '2', '-subj', '/CN=localhost']
  const files = ['-addext', 'subjectAltName=DNS:localhost', '-keyout', key, '-out', certificate]
  execFileSync('openssl', [...request, ...files], { ...owner, stdio: 'ignore' })
  const port = await freePort()
  const settings = {
    listen_addresses: '127.0.0.1',
    port,
    unix_socket_directories: folder,
    ssl: 'on',
    ssl_cert_file: certificate,
    ssl_key_file: key,
    max_connections: 1_000,
  }
  const options = Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`])
  const server = spawn(path.join(bin, 'postgres'), ['-D', data, ...options], { ...owner, stdio: 'ignore' })
  const url = `postgres://quayside@127.0.0.1:${port}/postgres`
  await whenUp(url, server)
  return { url, certificate, stop: () => stop(server, folder) }
}

/** Starts pgbouncer in front of a server. It takes none of the settings that a session could begin with. */
async function startPooler(serverUrl: string) {
  const { folder, owner } = ownFolder('pgbouncer')
  const { hostname, port: serverPort, username } = new URL(serverUrl)
  const port = await freePort()
  const file = path.join(folder, 'pgbouncer.ini')
  const text = `[databases]
* = host=${hostname} port=${serverPort || 5432} user=${username}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${port}
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = 4
max_client_conn = 200
`
  writeFileSync(file, text)
  const pooler = spawn('/usr/sbin/pgbouncer', ['-q', file], { ...owner, stdio: 'ignore' })
  const url = `postgres://${username}@127.0.0.1:${port}/postgres`
  await whenUp(url, pooler)
  return { url, stop: () => stop(pooler, folder) }
}

/** A temporary folder, and as whom to run a program in it. */
export function ownFolder(name: string, beneath = tmpdir()) {
  const folder = mkdtempSync(path.join(beneath, `quayside-${name}-`))
  const user = unprivilegedUser()
  if (user) chownSync(folder, user.uid, user.gid)
  return { folder, owner: { ...user, env: { PATH: process.env.PATH ?? '', LC_ALL: 'C.UTF-8' }, cwd: folder } }
}

/** Ends a program, and the connections that are left to it, and removes its folder. */
async function stop(program: ChildProcess, folder: string): Promise<void> {
  const over = new Promise((resolve) => program.once('exit', resolve))
  program.kill('SIGINT')
  await over
  rmSync(folder, { recursive: true, force: true })
}

/** Debian keeps the programs of each version in a folder of their own, outside of the path. */
export function newestBinaries(): string {
  const root = '/usr/lib/postgresql'
  const versions = existsSync(root) ? readdirSync(root).sort((a, b) => Number(b) - Number(a)) : []
  const folders = versions.map((version) => path.join(root, version, 'bin'))
  const newest = folders.find((folder) => existsSync(path.join(folder, 'initdb')))
  if (newest === undefined) throw new Error(`QUAYSIDE_NEEDS names postgres, and there is no server in ${root}`)
  return newest
}

/** PostgreSQL refuses to run as root. Undefined for a process that is not root: it runs as its own user. */
function unprivilegedUser(): { uid: number; gid: number } | undefined {
  if (process.getuid?.() !== 0) return undefined
  const idOf = (option: string) => Number(execFileSync('id', [option, 'postgres'], { encoding: 'utf8' }))
  return { uid: idOf('-u'), gid: idOf('-g') }
}

export async function whenUp(url: string, server: ChildProcess): Promise<void> {
  for (;;) {
    try {
      return await run(url, 'select 1')
    } catch (cause) {
      if (server.exitCode !== null) throw new Error(`${server.spawnfile} ended`, { cause })
      await sleep(50)
    }
  }
}
