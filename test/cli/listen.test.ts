/** `quayside listen`, with callbacks that the adapter sends over real sockets. */
import { readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { writeDemoConfig } from '../../src/demo/files.ts'
import { openSetUp } from '../../src/installation.ts'
import { backendStore } from '../../src/stores/backend/backend.ts'
import { signatureHeaders } from '../../src/stores/backend/signature.ts'
import { type RunOptions, run, temporaryFolder } from '../support/cli-run.ts'
import { freePort } from '../support/free-port.ts'
import { until } from '../support/service-process.ts'
import { refusedOrigin, sendJson, startHttp } from '../support/supplier-server.ts'

const secret = Buffer.alloc(32, 7)
const other = Buffer.alloc(32, 8)
const QUAYSIDE_SECRET = `whsec_${secret.toString('base64')}`
const NOW = Date.parse('2026-03-01T09:30:15.000Z')

/** Runs `listen` until `end` is called, and waits until it listens. */
async function listening(argv: string[] = [], options: RunOptions = {}, port?: number) {
  const at = port ?? (await freePort())
  const given = port === undefined ? ['--port', String(at)] : []
  const stop = Promise.withResolvers<void>()
  const running = run(['listen', ...given, ...argv], {
    env: { QUAYSIDE_SECRET },
    now: () => NOW,
    stopped: stop.promise,
    ...options,
  })
  const url = `http://127.0.0.1:${at}/callbacks`
  let ended = false
  const noted = running.then(() => {
    ended = true
  })
  await until('it listens', async () => ended || (await fetch(url, { method: 'POST' }).catch(() => undefined)))
  onTestFinished(() => stop.resolve())
  const end = async () => {
    stop.resolve()
    await noted
    return running
  }
  return { url, end }
}

function store(callbackUrl: string, secrets = [secret], now = () => NOW) {
  const opened = backendStore({ id: 'demo-1', callbackUrl, secretsOf: () => secrets, now, newId: () => 't1' })
  onTestFinished(() => opened.close())
  return opened
}

const order = { store: 'shop-4f7k2m9q', reference: '1001' }
const line = { id: '1', sku: 'GAM-RAIL4', quantity: 1 }
const fulfilled = {
  id: 'e1',
  at: NOW,
  type: 'line.fulfilled' as const,
  order,
  line,
  delivered: 1,
  complete: true,
  keys: ['AAAA-BBBB-CCCC'],
} satisfies Parameters<ReturnType<typeof backendStore>['fulfil']>[0]

describe('listen', () => {
  test('answers 204 to a genuine callback and prints its keys', async () => {
    const { url, end } = await listening([], { terminal: true })
    expect(await store(url).fulfil(fulfilled)).toEqual({ outcome: 'confirmed' })
    expect(
      await store(url).closeOrder?.({ id: 'e2', at: NOW, type: 'order.closed', order, state: 'fulfilled' }),
    ).toEqual({
      outcome: 'confirmed',
    })
    const { exitCode, stdout, stderr } = await end()
    expect(exitCode).toBe(0)
    expect(stdout).toContain(`09:30:15  line.fulfilled    order 1001, line 1: AAAA-BBBB-CCCC
09:30:15  order.closed      order 1001 is fulfilled
`)
    expect(stderr).toBe(`Listening at ${url}; Ctrl-C ends it.\n`)
  })

  test('answers 401 to all else, and says why', async () => {
    const { url, end } = await listening()
    expect(await store(url, [other]).fulfil(fulfilled)).toMatchObject({ outcome: 'refused', status: 401 })
    expect(await store(url, [secret], () => NOW - 400_000).fulfil(fulfilled)).toMatchObject({ status: 401 })
    const { stdout } = await end()
    expect(stdout).toBe(`09:30:15  refused           answered 401
          -> webhook-id, webhook-timestamp or webhook-signature is absent: is it
          Quayside that sends this?
09:30:15  refused           answered 401
          -> no signature is made with a secret of this store: is it of another
          store? After a new secret, start this again
09:30:15  refused           answered 401
          -> webhook-timestamp is too far from the clock of this machine:
          compare the clocks of both machines
`)
    expect(stdout).not.toContain('AAAA')
  })

  test('prints one JSON object a line, for each request', async () => {
    const { url, end } = await listening(['--json'])
    await store(url).fulfil(fulfilled)
    const { stdout, stderr } = await end()
    const lines = stdout
      .trim()
      .split('\n')
      .map((one) => JSON.parse(one) as object)
    expect(lines).toMatchObject([
      { answered: 401, why: expect.stringContaining('absent') },
      { answered: 204, callback: { id: 'msg_e1', type: 'line.fulfilled', data: { keys: ['AAAA-BBBB-CCCC'] } } },
    ])
    expect(stderr).toBe('')
  })

  test('passes every check of `quayside check receiver`', async () => {
    const { url, end } = await listening([], { now: Date.now })
    const { exitCode, stdout } = await run(['check', 'receiver', url], { env: { QUAYSIDE_SECRET } })
    expect(stdout).not.toContain('FAIL')
    expect(exitCode).toBe(0)
    await end()
  })

  test('goes on after a callback whose content it cannot show', async () => {
    const { url, end } = await listening()
    const body = '{"type":"line.fulfilled","data":{"reference":"1001","line":"1"}}'
    const headers = signatureHeaders([secret], { id: 'm1', at: NOW, body })
    expect((await fetch(url, { method: 'POST', headers, body })).status).toBe(204)
    expect(await store(url).fulfil(fulfilled)).toEqual({ outcome: 'confirmed' })
    const { stdout } = await end()
    expect(stdout).toContain('answered 204\n          -> Cannot read properties of undefined')
    expect(stdout).toContain('AAAA-BBBB-CCCC')
  })

  test('takes the secret from a file, in which there may be two', async () => {
    const file = path.join(temporaryFolder(), 'secret.txt')
    writeFileSync(file, `whsec_${other.toString('base64')}\n${QUAYSIDE_SECRET}\n`)
    const { url, end } = await listening(['--secret-file', file], { env: {} })
    expect(await store(url).fulfil(fulfilled)).toEqual({ outcome: 'confirmed' })
    await end()
  })
})

describe('listen --forward-to', () => {
  test('passes the bytes and the headers on, and answers what the backend answers', async () => {
    const backend = await startHttp((_heard, response) =>
      sendJson(response, 200, { results: [{ id: 'GAM-RAIL4', ok: false, reason: 'no such variant' }] }),
    )
    onTestFinished(() => backend.close())
    const { url, end } = await listening(['--forward-to', `${backend.origin}/hooks?a=b`])
    const body = '{ "type":"line.resumed", "data":{"reference":"Gr\\u00fc\u00dfe"} }'
    const headers = { ...signatureHeaders([secret], { id: 'm1', at: NOW, body }), 'content-type': 'application/json' }
    const answer = await fetch(url, { method: 'POST', headers, body })
    expect(answer.status).toBe(200)
    expect(await answer.json()).toMatchObject({ results: [{ reason: 'no such variant' }] })
    expect(backend.heard).toMatchObject([{ method: 'POST', url: '/hooks?a=b', body, headers }])
    await end()
  })

  test('passes nothing on that is not genuine', async () => {
    const backend = await startHttp((_heard, response) => sendJson(response, 200, {}))
    onTestFinished(() => backend.close())
    const { url, end } = await listening(['--forward-to', backend.origin])
    await store(url, [other]).fulfil(fulfilled)
    await end()
    expect(backend.heard).toEqual([])
  })

  test('says what a backend answers that does not confirm, and what keeps it from answering', async () => {
    const backend = await startHttp((_heard, response) => sendJson(response, 500, {}))
    onTestFinished(() => backend.close())
    const failing = await listening(['--forward-to', backend.origin])
    expect(await store(failing.url).fulfil(fulfilled)).toMatchObject({ status: 500 })
    expect((await failing.end()).stdout).toMatch(
      /AAAA-BBBB-CCCC\n {10}-> answered 500: http:\/\/127\.0\.0\.1:\d+ answered 500/,
    )
    const away = await listening(['--forward-to', await refusedOrigin()])
    expect(await store(away.url).fulfil(fulfilled)).toMatchObject({ status: 502 })
    expect((await away.end()).stdout).toMatch(/-> answered 502: nothing listens at 127\.0\.0\.1:\d+/)
  })
})

describe('listen, with a configuration', () => {
  async function configured(callbackPort: number, more = {}) {
    const folder = temporaryFolder()
    const place = { folder, baseUrl: 'http://127.0.0.1:1/v1', apiKey: 'k', dialect: 'reseller-v1.1' }
    const config = writeDemoConfig({ ...place, port: 8080, storePort: callbackPort, more })
    const open = await openSetUp(config, {})
    const [{ id: storeId }] = JSON.parse(readFileSync(config, 'utf8')).stores as [{ id: string }]
    const text = (await open.callbackSecret(storeId)).reveal()
    await open.close()
    return { config, own: Buffer.from(text.slice('whsec_'.length), 'base64') }
  }

  test('listens where the callbacks of its store go, with the secret of the store', async () => {
    const port = await freePort()
    const { config, own } = await configured(port)
    const { url, end } = await listening(['--config', config], { env: {} }, port)
    expect(await store(url, [own]).fulfil(fulfilled)).toEqual({ outcome: 'confirmed' })
    const { stdout, stderr } = await end()
    expect(stdout + stderr).not.toContain('whsec_')
    expect(stderr).toBe(`Listening at ${url}; Ctrl-C ends it.\n`)
  })

  test('says where else the callbacks go', async () => {
    const { config } = await configured(await freePort())
    const { url, end } = await listening(['--config', config], { env: {} })
    expect((await end()).stderr.replaceAll(/\s+/g, ' ')).toMatch(
      new RegExp(`Quayside sends the callbacks of demo-quaysi00 to .* Set its callbackUrl to ${url}, and restart it`),
    )
  })

  test('asks which store where there are several', async () => {
    const stores = ['a', 'b'].map((name) => ({
      id: `${name}-12345678`,
      kind: 'backend',
      name,
      callbackUrl: 'http://127.0.0.1:1/',
    }))
    const { config } = await configured(1, { stores })
    const { exitCode, stderr } = await run(['listen', '--config', config])
    expect(exitCode).toBe(2)
    expect(stderr).toMatch(/which store\? .* a-12345678,\s+b-12345678/s)
  })

  test('says that another program has the port', async () => {
    const taken = await startHttp((_heard, response) => sendJson(response, 200, {}))
    onTestFinished(() => taken.close())
    const { port } = new URL(taken.origin)
    const { exitCode, stderr } = await run(['listen', '--port', port], { env: { QUAYSIDE_SECRET } })
    expect(exitCode).toBe(5)
    expect(stderr).toContain('--port')
  })
})
