/** The receivers of the page for backend developers, run as they are on it, with callbacks that the adapter signs. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { createHmac } from 'node:crypto'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import Connection from 'better-sqlite3'
import { describe, expect, onTestFinished, test } from 'vitest'
import { backendStore } from '../../src/stores/backend/backend.ts'
import { secretText, signatureHeaders } from '../../src/stores/backend/signature.ts'
import type { Store } from '../../src/stores/store.ts'
import { run } from '../support/cli-run.ts'
import { freePort } from '../support/free-port.ts'
import { until } from '../support/service-process.ts'

const page = readFileSync(new URL('../../docs/stores/backend.md', import.meta.url), 'utf8')

interface Receiver {
  name: string
  /** The language of its code block. */
  block: string
  program: string
  /** Whether the machine has the program, with all that the receiver needs of it. */
  probe: string[]
  file: string
  args: (port: string) => string[]
}

const receivers: Receiver[] = [
  {
    name: 'Node',
    block: 'js',
    program: process.execPath,
    probe: ['-e', 'require("node:sqlite")'],
    file: 'receive.mjs',
    args: () => ['receive.mjs'],
  },
  {
    name: 'Python',
    block: 'python',
    program: 'python3',
    probe: ['-c', 'import sqlite3'],
    file: 'receive.py',
    args: () => ['receive.py'],
  },
  {
    name: 'PHP',
    block: 'php',
    program: 'php',
    probe: ['-r', 'exit(extension_loaded("pdo_sqlite") ? 0 : 1);'],
    file: 'public/receive.php',
    args: (port) => ['-S', `127.0.0.1:${port}`, 'public/receive.php'],
  },
]

const codeOf = ({ block }: Receiver): string => new RegExp(`\`\`\`${block}\\n([\\s\\S]*?)\`\`\``).exec(page)?.[1] ?? ''

const secret = Buffer.alloc(32, 7)

test('the page for backends left out of the signature what stands before the body', () => {
  const headers: Record<string, string> = signatureHeaders([secret], { id: 'msg_1', at: 1_700_000_000_000, body: '{}' })
  const [, formula = ''] = /one HMAC-SHA256 over `([a-z.-]+)`/.exec(page) ?? []
  const signed = formula.split('.').map((part) => (part === 'body' ? '{}' : headers[part]))
  const mac = createHmac('sha256', secret).update(signed.join('.')).digest('base64')
  expect(headers['webhook-signature']).toBe(`v1,${mac}`)
})

const other = Buffer.alloc(32, 8)

/** Runs a receiver in a folder of its own. */
async function start(receiver: Receiver, secretGiven = secretText(secret)) {
  const folder = mkdtempSync(path.join(tmpdir(), 'quayside-receiver-'))
  mkdirSync(path.join(folder, 'public'))
  writeFileSync(path.join(folder, receiver.file), codeOf(receiver))
  const port = String(await freePort())
  const env = { ...process.env, PORT: port, QUAYSIDE_SECRET: secretGiven }
  const child = spawn(receiver.program, receiver.args(port), { cwd: folder, env, stdio: 'ignore' })
  const url = `http://127.0.0.1:${port}/receive.php`
  onTestFinished(async () => {
    await ended(child)
    rmSync(folder, { recursive: true, force: true })
  })
  const answers = () =>
    fetch(url, { method: 'POST', body: 'unsigned' }).then(
      () => true,
      () => child.exitCode !== null,
    )
  await until(`the receiver of ${receiver.name}`, answers)
  const stored = (): { id: string; body: string }[] => {
    const db = new Connection(path.join(folder, 'callbacks.db'), { fileMustExist: true })
    try {
      return db.prepare<[], { id: string; body: string }>('select id, body from callbacks order by id').all()
    } finally {
      db.close()
    }
  }
  return { url, child, stored }
}

async function ended(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const closed = new Promise((resolve) => child.once('close', resolve))
  child.kill('SIGKILL')
  await closed
}

/** The adapter, with these secrets and a clock that is off by so much. */
function sender(callbackUrl: string, { secrets = [secret], aheadMs = 0 } = {}): Store {
  const store = backendStore({
    id: 'demo-1',
    callbackUrl,
    secretsOf: () => secrets,
    now: () => Date.now() + aheadMs,
    newId: () => 'test1',
  })
  onTestFinished(() => store.close())
  return store
}

const update: Parameters<Store['fulfil']>[0] = {
  id: '01hf7yat00',
  at: Date.now(),
  type: 'line.fulfilled',
  order: { store: 'demo-ab12cd34', reference: 'Grüße 😀 \u2028' },
  line: { id: '1', sku: 'SKU-1', quantity: 1 },
  delivered: 1,
  complete: true,
  keys: ['AAAA-"BBBB"'],
}
const CONFIRMED = { outcome: 'confirmed' }

describe.each(receivers)('the receiver in $name on the page for backend developers', (receiver) => {
  const there = spawnSync(receiver.program, receiver.probe).status === 0
  const runs = test.runIf(there)
  const needs = there ? '' : ` (skipped: needs ${receiver.name} with SQLite, which this machine does not have)`

  test('has at most 20 lines', () => {
    expect(codeOf(receiver).trimEnd().split('\n').length).toBeLessThanOrEqual(20)
    expect(codeOf(receiver)).toContain('QUAYSIDE_SECRET')
  })

  runs(`stores a genuine callback once, however often it comes${needs}`, { timeout: 120_000 }, async () => {
    const { url, stored } = await start(receiver)
    const store = sender(url)
    expect(await store.fulfil(update)).toEqual(CONFIRMED)
    expect(await store.fulfil(update), 'repeated').toEqual(CONFIRMED)
    expect(await sender(url, { aheadMs: -290_000 }).fulfil(update), 'repeated, and late').toEqual(CONFIRMED)
    const together = await Promise.all(['a', 'a', 'b', 'b', 'b'].map((id) => store.fulfil({ ...update, id })))
    expect(together).toEqual(Array(5).fill(CONFIRMED))
    expect(stored().map(({ id }) => id)).toEqual(['msg_01hf7yat00', 'msg_a', 'msg_b'])
    const [first] = stored()
    expect(JSON.parse(first?.body ?? '')).toMatchObject({
      type: 'line.fulfilled',
      data: { reference: update.order.reference, keys: update.keys },
    })
    const answer = await fetch(url, { method: 'POST', ...signed('bytes', '{ "data" : "\\u00e9é" }') })
    expect(answer.status).toBe(204)
    expect(stored()).toContainEqual({ id: 'bytes', body: '{ "data" : "\\u00e9é" }' })
  })

  runs(`accepts a callback by either of its signatures${needs}`, { timeout: 120_000 }, async () => {
    const { url, stored } = await start(receiver)
    expect(await sender(url, { secrets: [other, secret] }).fulfil({ ...update, id: 'old' })).toEqual(CONFIRMED)
    expect(await sender(url, { secrets: [secret, other] }).fulfil({ ...update, id: 'new' })).toEqual(CONFIRMED)
    expect(stored().map(({ id }) => id)).toEqual(['msg_new', 'msg_old'])
  })

  runs(`refuses what is forged, stale or not signed, and stores none of it${needs}`, { timeout: 120_000 }, async () => {
    const { url, stored } = await start(receiver)
    expect(await sender(url).fulfil(update)).toEqual(CONFIRMED)
    const refused = async (store: Store, id: string) =>
      expect(await store.fulfil({ ...update, id }), id).toMatchObject({ outcome: 'refused', status: 401 })
    await refused(sender(url, { secrets: [other] }), 'forged')
    await refused(sender(url, { secrets: [other, Buffer.alloc(0)] }), 'forged twice')
    await refused(sender(url, { aheadMs: -310_000 }), 'stale')
    await refused(sender(url, { aheadMs: 310_000 }), 'of the future')
    const { headers, body } = signed('changed', '{"quantity":1}')
    const post = async (given: object, text: string) =>
      (await fetch(url, { method: 'POST', headers: { ...given }, body: text })).status
    const timeless = { ...headers, 'webhook-timestamp': '' }
    const unknown = { ...headers, 'webhook-signature': headers['webhook-signature'].replace('v1,', 'v2,') }
    for (const [given, text] of [
      [headers, '{"quantity":2}'],
      [{ ...headers, 'webhook-id': 'changes' }, body],
      [{ ...headers, 'webhook-signature': 'v1,' }, body],
      [{ ...headers, 'webhook-signature': 'é v1,short' }, body],
      [timeless, body],
      [unknown, body],
      [{}, body],
    ] as const) {
      expect(await post(given, text), JSON.stringify(given)).toBe(401)
    }
    expect(stored().map(({ id }) => id)).toEqual(['msg_01hf7yat00'])
  })

  runs(`passes every check of \`quayside check receiver\`${needs}`, { timeout: 120_000 }, async () => {
    const { url, stored } = await start(receiver)
    const { exitCode, stdout } = await run(['check', 'receiver', url, '--json'], {
      env: { QUAYSIDE_SECRET: secretText(secret) },
    })
    const { checks } = JSON.parse(stdout) as { checks: { passed: boolean }[] }
    expect(checks.filter(({ passed }) => !passed)).toEqual([])
    expect({ exitCode, checks: checks.length }).toEqual({ exitCode: 0, checks: 13 })
    expect(stored(), 'each id once, and none that was refused').toHaveLength(11)
    expect(stored().filter(({ body }) => JSON.parse(body).test !== true)).toEqual([])
  })

  runs(`accepts nothing where its secret is not set${needs}`, { timeout: 120_000 }, async () => {
    const { url, child } = await start(receiver, '')
    const result = await sender(url, { secrets: [Buffer.alloc(0)] }).fulfil(update)
    expect(result).not.toEqual(CONFIRMED)
    expect(child.exitCode !== null || result.outcome === 'refused').toBe(true)
  })
})

function signed(id: string, body: string) {
  return { headers: signatureHeaders([secret], { id, at: Date.now(), body }), body }
}
