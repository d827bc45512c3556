/** The API for tests: the real server, router and flows over a app, with a token for every role. */
import { randomBytes } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { setImmediate as turn } from 'node:timers/promises'
import { Router } from 'express'
import { expect, onTestFinished } from 'vitest'
import { createAuth, createToken, mintToken, type NewToken } from '../../src/access/tokens.ts'
import { type AlertParts, openAlerts } from '../../src/alerts/alerts.ts'
import { createBackups } from '../../src/backup/backup.ts'
import { createDryRuns } from '../../src/catalogue/dry-runner.ts'
import { type Config, loadConfig } from '../../src/config/config.ts'
import { createConsole } from '../../src/console/console.ts'
import { createCustomer, supplierStem } from '../../src/demo/customer.ts'
import { apiOperations, apiRouter } from '../../src/http/api/api.ts'
import { openApiDocument } from '../../src/http/openapi.ts'
import type { ApiContext } from '../../src/http/operation.ts'
import { createHttpServer } from '../../src/http/server.ts'
import { webhookRouter } from '../../src/http/webhooks.ts'
import { createCaptures } from '../../src/inbox/capture.ts'
import { webhookActions } from '../../src/inbox/webhooks.ts'
import { createTail } from '../../src/log.ts'
import { Secret } from '../../src/secret.ts'
import { openSettings, revisionChanges } from '../../src/settings/settings.ts'
import { insertSyncRun, syncRunById } from '../../src/storage/runs.ts'
import { openDatabase } from '../../src/storage/sqlite/open.ts'
import { openKeys } from '../../src/vault/keys.ts'
import { hold } from './contract.ts'
import { databaseFile, TEST_NOW } from './database.ts'
import { KEY_ENCRYPTION_KEY, openTestApp, STORE, type TestAppOptions } from './test-app.ts'

export const OTHER_STORE = 'other-ef56gh78'

/** An answer as a client sees it. */
export interface Answer {
  status: number
  headers: Headers
  body: {
    success: boolean
    data: Record<string, unknown> & {
      items: Record<string, unknown>[]
      next: string | null
      previous: string | null
      total: number
    }
    error: { code: string; message: string; fields?: { field: string; message: string }[] }
    request_id: string
  }
}

export interface Ask {
  token?: string | null
  /** Sent as JSON. */
  body?: unknown
  /** Sent as it is, instead of `body`. */
  raw?: string | Uint8Array<ArrayBuffer>
  headers?: Record<string, string>
}

export type ApiWorld = Awaited<ReturnType<typeof openApi>>

export interface ApiOptions extends TestAppOptions {
  /** Whether the supplier is that of a demo, with its customer (default: it is). */
  isDemo?: boolean
  /** Names of stores, by their ids (default: the ids). */
  storeNames?: Record<string, string>
  /** Settings of every store. */
  storeSettings?: object
  /** Whether it is a fresh installation, to which no store is connected yet. */
  isFresh?: boolean
  /** Settings of alerts. */
  alerts?: object
  /** Where the settings of the installation are (default: in the file). A change of those in the database is only stored. */
  home?: 'file' | 'database'
  /** As of one process of several (default: it does all). */
  workerAbsentSince?: () => number | null
  /** Where channels of alerts send to, by the variable. */
  alertAddresses?: Record<string, string>
}

const documents = new Map<string, object>()

/** Made once for operations with the same names: it takes longer than most tests. */
function documentOf(operations: ReturnType<typeof apiOperations>): object {
  const names = operations.map(({ method, path }) => `${method} ${path}`).join()
  const document = documents.get(names) ?? openApiDocument(operations)
  documents.set(names, document)
  return document
}

let empty: Uint8Array | undefined

/** The bytes of a database with all tables and no row. */
async function emptyFile(): Promise<Uint8Array> {
  const file = databaseFile()
  if (empty === undefined) await openDatabase({ file, now: () => TEST_NOW }).close()
  empty ??= readFileSync(file)
  return empty
}

export async function openApi(given: ApiOptions = {}) {
  const {
    isDemo = true,
    isFresh = false,
    storeNames = {},
    storeSettings = {},
    alerts = {},
    alertAddresses = {},
    home = 'file',
    workerAbsentSince,
    ...options
  } = given
  const customer = createCustomer({
    url: () => url,
    token: () => tokens.store,
    number: async () => 1,
    random: () => 0.5,
    now: () => now(),
  })
  const demo = {
    customer,
    stemOf: (reference: string) => supplierStem(STORE, reference, app.dialect.externalOrderIdMax),
    get consoleUrl() {
      return pages.address() ?? ''
    },
  }
  const app = await openTestApp({ ...options, ...(isDemo && { demo }) })
  const { ordering, runtime, supplier } = app
  const { db, now, newId, log } = ordering
  const { inbox, sweeps, catalogue } = runtime
  const env = {
    ...alertAddresses,
    QUAYSIDE_API_KEY: 'sk_test_0123456789abcdef',
    QUAYSIDE_KEY_ENCRYPTION_KEY: randomBytes(32).toString('base64'),
  }
  const files = configFile(app.sandbox.baseUrl, isFresh ? null : storeNames, { alerts, storeSettings })
  let config = loadConfig(files, env)
  if (home === 'database') {
    const secrets = new Map([['api-key', config.apiKey]])
    const stored = { revision: 1, document: config.document, secrets }
    await db.commit(revisionChanges(ordering, stored, { actor: 'test', why: 'the first', undoes: null, changes: [] }))
    writeFileSync(files, '{}')
    config = loadConfig(files, env, stored)
  }
  let inForce = config
  /** Only stores the run: reading the catalogue is another test's subject. */
  const start = async (cause: string) => {
    const id = newId()
    await db.commit([insertSyncRun({ id, cause, state: 'running', startedAt: now(), cursor: 1 })])
    const [run] = await db.query(syncRunById(id))
    if (!run) throw new Error('the run that was started is not there')
    return run
  }
  const nextKeyEncryptionKey = () => new Secret(randomBytes(32).toString('base64'))
  const ownKeys = { keyEncryptionKey: KEY_ENCRYPTION_KEY, nextKeyEncryptionKey }
  const { keys } = await openKeys({ config: ownKeys, db, now, newId, log })
  // The database of the app is in memory; what is backed up is another one, in a file.
  const file = databaseFile()
  writeFileSync(file, await emptyFile())
  const backups = createBackups({ ...ordering, config: { ...config, dataDir: dirname(file) }, file, keys })
  /** What the disk of the data folder has left, in megabytes. */
  const disk = { freeMb: 10_000 }
  const alertParts: AlertParts = {
    ...ordering,
    config,
    service: { supplier, clockSuspect: inbox.clockSuspect, lastBackupAt: backups.lastMadeAt },
    watched: {
      secretSuspect: inbox.secretSuspect,
      installedAt: now(),
      diskFreeMb: () => Promise.resolve(disk.freeMb),
    },
    wakeOutbox: () => ordering.wake('outbox'),
  }
  const alerting = await openAlerts(alertParts)
  const captures = createCaptures(ordering)
  const webhooks = webhookActions({ ...ordering, supplier, publicUrl: config.publicUrl, inbox })
  const tail = createTail(ordering.log)
  const dryRuns = createDryRuns({ catalogue, stores: config.stores, dataDir: dirname(file) })
  const change = async (next: Config, commit: () => Promise<void>) => {
    await commit()
    inForce = next
  }
  const settings = await openSettings({ ...ordering, current: () => inForce, change })
  const api: ApiContext = {
    ordering,
    config: { ...config, ...ownKeys },
    settings,
    stores: config.stores,
    publicUrl: config.publicUrl,
    syncs: { start },
    sweeps,
    dryRuns,
    inbox,
    webhooks,
    captures,
    callbackSecrets: app.callbackSecrets,
    backups,
    alerting,
    keys,
    tail,
    randomBytes,
    nextRuns: () => ({ catalogue: now() + 600_000, balance: now() + 60_000, sweep: null }),
    consoleAddress: () => pages.address(),
    ...(workerAbsentSince && { workerAbsentSince }),
  }
  const access = { db, now, newId, randomBytes }
  const { monotonic } = ordering
  const sandboxUrl = isDemo ? new URL(app.sandbox.baseUrl).origin : undefined
  /** To open the pages once more, as a restart does. */
  const consoleParts = {
    url: null,
    proxies: ['127.0.0.1'],
    sandboxUrl,
    operations: apiOperations(api),
    access,
    monotonic,
    log,
  }
  const pages = createConsole(consoleParts)
  await pages.listen('127.0.0.1', 0)
  const owner = mintToken('admin', randomBytes)
  const authenticate = createAuth({ db, now }, owner.digest)
  const server = createHttpServer({
    webhooks: webhookRouter(inbox),
    api: [apiRouter(apiOperations(api), authenticate)],
    health: Router(),
    log,
    newId,
    monotonic: ordering.monotonic,
  })
  const { port } = await server.listen('127.0.0.1', 0)
  const operations = apiOperations(api)
  const held = hold(port, '/api/v1', documentOf(operations), ['/docs'])
  onTestFinished(async () => {
    await api.dryRuns.stop()
    await alerting.close()
    await Promise.all([server.close(), pages.close()])
    expect(held.faults, 'answers that are not as the OpenAPI document says').toEqual([])
  })
  const url = `http://127.0.0.1:${port}`

  const mint = async (wanted: Partial<NewToken> & Pick<NewToken, 'role'>) => {
    const defaults = { name: wanted.role, store: null, scopes: [], expiresInDays: null }
    return (await createToken({ db, now, newId, randomBytes }, { ...defaults, ...wanted }, 'test')).token.reveal()
  }
  const tokens = {
    owner: owner.token.reveal(),
    admin: await mint({ role: 'admin' }),
    operator: await mint({ role: 'operator' }),
    viewer: await mint({ role: 'viewer' }),
    store: await mint({ role: 'store', store: STORE, scopes: ['orders', 'keys'] }),
    ordersOnly: await mint({ role: 'store', store: STORE, scopes: ['orders'] }),
    other: await mint({ role: 'store', store: OTHER_STORE, scopes: ['orders'] }),
  }

  /** One request; `null` as token sends none. The body of a file is its text, that of lines of JSON a list of them. */
  async function ask(method: string, path: string, { token, body, raw, headers }: Ask = {}): Promise<Answer> {
    const answer = await fetch(`${url}/api/v1${path}`, {
      method,
      headers: {
        ...(token === null ? {} : { authorization: `Bearer ${token ?? tokens.owner}` }),
        ...(raw === undefined && body === undefined ? {} : { 'content-type': 'application/json' }),
        ...headers,
      },
      ...(raw === undefined && body === undefined ? {} : { body: raw ?? JSON.stringify(body) }),
    })
    const [type] = (answer.headers.get('content-type') ?? '').split(';')
    // `text()` would take a byte order mark off.
    const text = Buffer.from(await answer.arrayBuffer()).toString()
    const lines = () => text.split('\n').flatMap((line): unknown[] => (line === '' ? [] : [JSON.parse(line)]))
    const read: unknown = type === 'text/csv' ? text : type === 'application/x-ndjson' ? lines() : JSON.parse(text)
    return { status: answer.status, headers: answer.headers, body: read as Answer['body'] }
  }
  /** Waits for an answer that would go on until the service ends: ends what is being watched. */
  async function unwatched<T>(answer: Promise<T>): Promise<T> {
    let isOver = false
    const over = () => {
      isOver = true
    }
    void answer.then(over, over)
    while (!isOver) {
      await turn()
      tail.end()
    }
    return answer
  }
  /** Pushes listings to the store until nothing is queued. */
  const publish = async (): Promise<void> => {
    while ((await runtime.work.publish()) > 0);
  }
  /** Everything that alerts do by themselves, until nothing of it is due. */
  const alertRound = async (): Promise<void> => {
    for (const work of alerting.work) while ((await work()) > 0);
  }
  return {
    ...app,
    url,
    consoleParts,
    pages,
    alerting,
    alertParts,
    alertRound,
    disk,
    access,
    ask,
    mint,
    tokens,
    captures,
    tail,
    api,
    settings,
    /** The configuration that the last change of the settings has led to. */
    inForce: () => inForce,
    operations,
    held,
    publish,
    unwatched,
  }
}

function configFile(
  baseUrl: string,
  names: Record<string, string> | null,
  given: Pick<ApiOptions, 'alerts' | 'storeSettings'>,
): string {
  const folder = mkdtempSync(join(tmpdir(), 'quayside-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const stores = (names ? [STORE, OTHER_STORE] : []).map((id) => ({
    id,
    kind: 'backend',
    name: names?.[id] ?? id,
    callbackUrl: 'http://127.0.0.1:9/',
    ...given.storeSettings,
  }))
  const file = join(folder, 'quayside.json')
  writeFileSync(file, JSON.stringify({ supplier: { baseUrl }, stores, alerts: given.alerts }))
  return file
}
