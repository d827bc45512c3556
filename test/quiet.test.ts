/** The service calls the supplier, the stores and the channels of alerts alone, and installing it calls no one. */
import { readFileSync } from 'node:fs'
import path from 'node:path'
import { pathToFileURL } from 'node:url'
import { describe, expect, test } from 'vitest'
import { startAlertReceiver } from './support/alert-receiver.ts'
import { visit } from './support/console-client.ts'
import { freePort } from './support/free-port.ts'
import { openInstallation, until } from './support/service-process.ts'

const root = path.join(import.meta.dirname, '..')
const read = (file: string) => readFileSync(path.join(root, file), 'utf8')
interface Locked {
  dev?: boolean
  devOptional?: boolean
  optional?: boolean
  hasInstallScript?: boolean
}
const locked = Object.entries((JSON.parse(read('package-lock.json')) as { packages: Record<string, Locked> }).packages)
const installed = locked
  .filter(([at, { dev, devOptional, optional }]) => at !== '' && !dev && !devOptional && !optional)
  .map(([at, facts]) => ({ name: at.replace(/^.*node_modules\//, ''), at, facts }))

describe('the packages that are needed to run it', () => {
  test('are at most 105, each of them named once', () => {
    expect(installed.length).toBeGreaterThan(80)
    expect(installed.length).toBeLessThanOrEqual(105)
  })

  test('run nothing when they are installed', () => {
    const scripts = installed.flatMap(({ name, at }) => {
      const given = (JSON.parse(read(`${at}/package.json`)) as { scripts?: Record<string, string> }).scripts ?? {}
      return ['preinstall', 'install', 'postinstall']
        .filter((script) => script in given)
        .map((one) => `${name}: ${one}`)
    })
    expect(scripts).toEqual([])
    // It has sources to build from, which npm counts as a script; its binaries come inside the package.
    const named = installed.filter(({ facts }) => facts.hasInstallScript).map(({ name }) => name)
    expect(named).toEqual(['better-sqlite3'])
  })

  test('are each in the table that says why', () => {
    const { dependencies, peerDependencies } = JSON.parse(read('package.json')) as Record<
      string,
      Record<string, string>
    >
    const rows = /## Dependencies\n[\s\S]*?\n\n(\|[\s\S]*?)\n\n/.exec(read('CONTRIBUTING.md'))?.[1] ?? ''
    const named = [...rows.matchAll(/^\| `([^`]+)`/gm)].map(([, name]) => name)
    expect(named).toEqual([...Object.keys({ ...dependencies, ...peerDependencies })].sort())
  })
})

interface Sweeps {
  data: { items: { finishedAt: string | null }[] }
}

describe('a day of the service', () => {
  test('goes to the supplier, the store and the channel of alerts, and nowhere else', { timeout: 120_000 }, async ({
    onTestFinished,
  }) => {
    const receiver = await startAlertReceiver()
    const alertUrl = receiver.url.replace('127.0.0.1', 'localhost')
    const consolePort = await freePort()
    const service = await openInstallation(
      onTestFinished,
      {},
      { console: { listen: { port: consolePort } }, alerts: { channels: { duty: { kind: 'webhook' } } } },
      { 'alert-duty': alertUrl },
    )
    const record = path.join(service.folder, 'outgoing')
    const watcher = pathToFileURL(path.join(root, 'test/support/outgoing.ts'))
    watcher.searchParams.set('file', record)
    await service.start(undefined, { first: watcher.href })

    const sku = (await service.sku()) ?? ''
    expect(await service.order('1001', sku, false)).toBe(202)
    await service.closed('1001')
    const owner = readFileSync(path.join(service.folder, 'owner.token'), 'utf8').trim()
    const ask = async (method: string, at: string, body?: object) => {
      const headers = { authorization: `Bearer ${owner}`, connection: 'close', 'content-type': 'application/json' }
      const answer = await fetch(`${service.url}${at}`, {
        method,
        headers,
        ...(body && { body: JSON.stringify(body) }),
      })
      expect(answer.ok, `${at}: ${answer.status}`).toBe(true)
      return answer
    }
    for (const at of ['/sync', '/sweeps', '/backups', '/alerts/test']) await ask('POST', `/api/v1${at}`)
    await until('the alert', () => receiver.received.length > 0)
    for (const at of ['/api/v1/docs', '/api/v1/openapi.json', '/metrics', '/readyz']) await ask('GET', at)
    const made = await ask('POST', '/api/v1/console/links', { name: 'mira', role: 'admin' })
    const { link } = ((await made.json()) as { data: { link: string } }).data
    const { origin, searchParams } = new URL(link)
    const signIn = await visit(origin, '/signin', { form: { link: searchParams.get('link') ?? '' } })
    const cookie = String(signIn.headers['set-cookie']).split(';')[0]
    for (const at of ['/overview', '/orders', '/settings']) {
      expect((await visit(origin, at, { cookie })).status, at).toBe(200)
    }
    await until('the sweep', async () => {
      const { data } = (await (await ask('GET', '/api/v1/sweeps')).json()) as Sweeps
      return data.items[0]?.finishedAt
    })
    service.signal()
    expect((await service.ended()).code).toBe(0)

    const went = new Set(readFileSync(record, 'utf8').split('\n').filter(Boolean))
    const { host: supplier } = new URL(service.sandbox.baseUrl)
    const store = new URL(service.shop.url).host
    const { host: alerts } = new URL(alertUrl)
    expect([...went].filter((line) => line.startsWith('connect ')).sort()).toEqual(
      [`connect ${supplier}`, `connect ${store}`, `connect ${alerts}`].sort(),
    )
    const others = [...went].filter((line) => !line.startsWith('connect '))
    expect(others.filter((line) => !['watched', 'name localhost', 'name 127.0.0.1'].includes(line))).toEqual([])
    expect(others).toEqual(expect.arrayContaining(['watched', 'name localhost']))
  })
})
