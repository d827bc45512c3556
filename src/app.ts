/**
 * The composition root: opens the parts of one process and wires them by hand.
 *
 * `close` ends all parts in the order that loses no work: workers, jobs, server, database, clients.
 */
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { rmSync } from 'node:fs'
import { createServer } from 'node:net'
import { hostname } from 'node:os'
import path from 'node:path'
import { performance } from 'node:perf_hooks'
import { setTimeout as sleep } from 'node:timers/promises'
import { type RequestHandler, Router } from 'express'
import { createLink } from './access/sessions.ts'
import { createAuth, mintToken } from './access/tokens.ts'
import { openAlerts } from './alerts/alerts.ts'
import { diskFreeMb, madeAt } from './alerts/facts.ts'
import { severityOf } from './alerts/kinds.ts'
import { backupsElsewhere, createBackups } from './backup/backup.ts'
import { beginFirstStart, type FirstStart } from './backup/first-start.ts'
import { createDryRuns, noDryRuns } from './catalogue/dry-runner.ts'
import { type Config, type Role, storeIdsOf } from './config/config.ts'
import { keyWayWarnings, SAY_HOW } from './config/warnings.ts'
import { type Console, createConsole } from './console/console.ts'
import { registeredAt } from './context.ts'
import { parseDecimal } from './domain/money.ts'
import { readRate } from './domain/rates.ts'
import { sendsLinks } from './domain/store-update.ts'
import { Failure, messageOf } from './errors.ts'
import { noApi } from './http/answers.ts'
import { apiOperations, apiRouter } from './http/api/api.ts'
import type { ApiContext } from './http/operation.ts'
import { healthRouter, metricsRouter, notesOf } from './http/probes.ts'
import { createHttpServer, serverLimits } from './http/server.ts'
import { webhookRouter } from './http/webhooks.ts'
import { leavingToWorker, performCalls } from './http/worker-calls.ts'
import { createIds, pooledRandomBytes } from './ids.ts'
import { createCaptures } from './inbox/capture.ts'
import { webhookActions } from './inbox/webhooks.ts'
import { everySeconds, type Jobs, startJobs } from './jobs.ts'
import { shopOfPage } from './keys/page.ts'
import { keysRouter } from './keys/router.ts'
import { createTail, type Log } from './log.ts'
import { createMetrics } from './observe/metrics.ts'
import { readStatus } from './observe/status.ts'
import type { Ordering, OrderingPolicy, Pace, WorkerName } from './ordering/context.ts'
import { storeOfWorker, supplierOfWorker } from './processes/acting.ts'
import { databaseWith, receiveWith } from './processes/crash-points.ts'
import { createGenerations } from './processes/generations.ts'
import { oneOfProcesses, onlyProcess } from './processes/processes.ts'
import { recogniseRestore, recogniseServer } from './reconciliation/restore.ts'
import { createWorker, startRuntime } from './runtime.ts'
import { openSettings } from './settings/settings.ts'
import { configWith, newestRevision, openRevision } from './settings/stored.ts'
import { databaseFileOf, fileSystemOf, fileSystemType } from './storage/data-folder.ts'
import type { Database } from './storage/database.ts'
import { openForService, placeName, type ServerState } from './storage/database-place.ts'
import { dueDeliveries } from './storage/deliveries.ts'
import { ADDRESS, engineMove, movedFailure } from './storage/engine-move.ts'
import { writeText } from './storage/files.ts'
import { openMarker } from './storage/marker.ts'
import { duePlacements } from './storage/purchases.ts'
import { revisionNumbersFrom } from './storage/settings.ts'
import type { WorkerLease } from './storage/worker.ts'
import { openCallbackSecrets } from './stores/backend/signature.ts'
import { openStores } from './stores/kinds.ts'
import { earlierSecretsSince } from './stores/shop-secrets.ts'
import { createSupplier, type Supplier } from './supplier/client.ts'
import { openKeys } from './vault/keys.ts'

export interface AppOptions {
  config: Config
  log: Log
  /** Called when the process can no longer use its database. The process must then end with exit code 75, to be started again. */
  onFatal: (failure: Failure) => void
  /** The address of the sandbox's page in a demo. The console links to this page. */
  sandboxUrl?: string
  /** Only in a demo: sets up a shop that takes the place of the demo. */
  firstRun?: ApiContext['firstRun']
  /** Frees the port of the console, which something else holds until now. */
  beforeConsole?: () => Promise<void>
  /** Which work this process does, where several processes share the database. Default: all work. */
  role?: Role
}

export type App = Awaited<ReturnType<typeof openApp>>

const now = (): number => Date.now()
const monotonic = (): number => performance.now()

/** @throws Failure of any part; the first start of another version has then put the database back, see `first-start` */
export async function openApp(options: AppOptions) {
  const { config, log, role = 'all' } = options
  if (role !== 'all' && config.databaseUrl === null) {
    const message = `--role ${role} is for processes that share a PostgreSQL database: with a file, one process does all of it`
    throw new Failure('invalid', `${message}; leave --role out, or set ${ADDRESS}`)
  }
  const first = await beginFirstStart({ config, log, now, at: registeredAt() })
  const opened: Opened = { held: first.held }
  return openParts(options, first, opened).catch(async (error) => Promise.reject(await first.failed(error, opened.db)))
}

/** The lock that the database is opened under, and the database once it is open. */
type Opened = { held: FirstStart['held']; db?: Database }

async function openParts(options: AppOptions, first: FirstStart, opened: Opened) {
  let served: Generations | undefined
  const inForce = (): Config => served?.current().config ?? options.config
  const base = await openBase(options, opened, inForce)
  const { config, role, log, tail, db, elect, processes, newId } = base
  let isEnding = false
  const current = (): Served => generations.current()
  const metrics = createMetrics(() => observed(), { process: true })
  const databaseServer = watchServer(base)
  const clockSuspect = () => current().runtime.inbox.clockSuspect() || databaseServer.now().isClockApart
  const observed = async () => ({
    ...(await readStatus(db)),
    now: now(),
    clockSuspect: clockSuspect(),
    unreadable: current().partners.supplier.unreadable(),
    workerPresent: processes.absentSince() === null,
    severityOf,
  })
  const change: Generations['change'] = async (next, commit) => {
    await generations.change(next, commit)
    processes.tell(SETTINGS)
  }
  const settings = await openSettings({ ...base, now, current: inForce, change })
  const consoleAddress = () => faces.pages.address()
  const shared: Shared = {
    base,
    metrics,
    databaseServer,
    clockSuspect,
    context: { settings, consoleAddress, firstRun: options.firstRun },
  }
  const started = await openGeneration(shared, config)
  /** The routes of the generation in force. A delivery asks for nothing else of it. */
  let { deliveries } = started
  const generations: Generations = createGenerations(started, {
    open: async (next, before) => {
      const generation = await openGeneration(shared, next, before)
      // Nothing of the generation before is under way, just as after a restart.
      if (processes.acts()) await generation.runtime.resume()
      return generation
    },
    newer: ({ config }) => newerSettings(base, config),
    begin: (generation) => {
      deliveries = generation.deliveries
      if (isEnding) generation.runtime.stop()
      else if (processes.acts()) generation.work(faces.calls, { isFirst: false })
    },
    onLost: (cause) => {
      if (isEnding) return
      base.onFatal(new Failure('unavailable', `the settings cannot be used: ${messageOf(cause)}`, { cause }))
    },
    onUnclosed: (cause) => log.warn('settings.unclosed', { error: messageOf(cause) }),
  })
  served = generations
  const faces = openFaces(shared, generations, {
    sandboxUrl: options.sandboxUrl,
    isEnding: () => isEnding,
    deliveries: (request, response, next) => deliveries(request, response, next),
  })
  const begin = (): void => {
    if (!isEnding) current().work(faces.calls, { isFirst: true })
  }
  listenToOthers(base, generations, faces.calls, () => isEnding)
  await assertFree(config.listen)
  await first.serving()
  if (!elect) await current().runtime.resume()
  const { address, port } = await faces.server.listen(config.listen.host, config.listen.port)
  await options.beforeConsole?.()
  if (config.console.listen && role !== 'worker') await listenForPeople(faces.pages, config.console.listen, log)
  writeOwnerToken(config.dataDir, faces.ownerToken)
  const endTick = everySeconds(config.ordering.tickSeconds, 'tick', () => tick(shared, generations), log)
  let leading: Promise<void> | undefined
  if (!elect) begin()
  else if (role !== 'web') {
    const prepare = async (lease: WorkerLease): Promise<void> => {
      // The worker before may have put other settings in force, and none comes after them as long as this one has the lease.
      await generations.follow()
      const { runtime, partners } = current()
      await recogniseServer({ db, lease, now, newId, log, storeIds: storeIdsOf(current().config) })
      await Promise.all([runtime.inbox.reload(), partners.signing.refresh()])
      log.info('worker.began', { epoch: lease.epoch })
    }
    const resume = () => current().runtime.resume()
    leading = processes.lead({ prepare, resume, begin }).catch((cause: unknown) => {
      if (isEnding) return
      base.onFatal(new Failure('unavailable', `the worker cannot begin: ${messageOf(cause)}`, { cause }))
    })
  }
  /** Where the service listens: `http://127.0.0.1:8080`. */
  const url = `http://${address.includes(':') ? `[${address}]` : address}:${port}`
  const unsaid = keyWayWarnings(config)
  if (unsaid.length > 0) log.warn('stores.unsaid', { detail: `${unsaid.join('; ')}: ${SAY_HOW}` })
  log.info('service.started', {
    address: url,
    file: config.file,
    ...(elect && { role }),
    settings: settingsLine(config, role),
  })
  /** Stops taking work, finishes what is under way, closes everything. */
  const close = async (): Promise<void> => {
    isEnding = true
    current().runtime.stop()
    processes.withdraw()
    faces.drain()
    log.info('service.stopping')
    tail.end()
    const ended = generations.idle().then(() => current().finish(faces.calls))
    await endService(base, current, faces, [endTick(), leading, ended])
  }
  /** Reads the catalogue once more, or waits for the run that is under way. */
  const sync = () => current().runtime.syncs.finish('start')
  return {
    url,
    consoleLink: faces.consoleLink,
    sync,
    close,
    /** What operations use, by the settings in force. */
    get api() {
      return current().api
    },
    change,
  }
}

/** Opens what everything else uses: the database, its keys, the log, and the election of the worker. */
async function openBase(
  { config, log: written, onFatal: reportFatal, role = 'all' }: AppOptions,
  open: Opened,
  inForce: () => Config,
) {
  let isEnding = false
  /** Reports the first failure that ends the process. Those after it are its consequences. */
  const onFatal = (failure: Failure): void => {
    if (!isEnding) reportFatal(failure)
    isEnding = true
  }
  const tail = createTail(written)
  const { log } = tail
  const at = registeredAt()
  const newId = createIds(now, pooledRandomBytes)
  const file = databaseFileOf(config.dataDir)
  const place = await openForService(config, { now, onFatal, mustExist: true, held: open.held })
  const { db: opened, elect, others } = place
  open.db = opened
  const db = databaseWith(at, opened)
  const tickMs = config.ordering.tickSeconds * 1_000
  const owner = `${hostname()}:${process.pid}:${newId().slice(-8)}`
  const supplierUrl = () => inForce().supplier.baseUrl
  const common = { db, owner, supplierUrl, now, monotonic, log, tickMs }
  const processes = elect ? oneOfProcesses({ ...common, elect, tell: others?.tell ?? onlyProcess.tell }) : onlyProcess
  log.info('database.opened', { file: placeName(config) })
  if (others?.isPooled) log.info('database.pooled', { detail: POOLED })
  if (fileSystemOf(fileSystemType(path.dirname(file))).use === 'doubtful') log.warn('database.on_fuse', { file })
  const { vault, keys } = await openKeys({ config, db, now, newId, log, at })
  const captures = createCaptures({ db, vault, now, newId, log })
  const marker = elect ? undefined : openMarker(file)
  if (marker) await recogniseRestore({ db, marker, now, newId, log, storeIds: storeIdsOf(config) })
  return {
    ...place,
    config,
    role,
    onFatal,
    tail,
    log,
    at,
    newId,
    file,
    db,
    owner,
    processes,
    vault,
    keys,
    captures,
    marker,
  }
}

const POOLED = 'statements have no names, and the worker looks four times a second'

type Base = Awaited<ReturnType<typeof openBase>>
type Metrics = ReturnType<typeof createMetrics>

/** Opens the supplier and the stores. In a process that is not the worker, calls to them fail. */
async function openPartners({ base, metrics }: Shared, config: Config, before?: Before) {
  const { db, vault, elect, processes, newId } = base
  const { acts } = processes
  const isKept = before !== undefined && isSameSupplier(before.config, config)
  // The connection to the same supplier goes on, with what it knows of the rate limit.
  const kept = isKept ? before.partners.link : undefined
  const link =
    kept ??
    createSupplier({
      baseUrl: config.supplier.baseUrl,
      dialect: config.dialectFacts,
      apiKey: config.apiKey,
      now,
      monotonic,
      random: Math.random,
      sleep: (ms) => sleep(ms),
      onRequest: (request, status, ms) => metrics.time('supplier_request_seconds', ms, { request, status }),
    })
  const signing = await openCallbackSecrets({ db, vault, now, newId })
  const earlierSince = await earlierSecretsSince({ db, now }, config.stores)
  const opened = await openStores(config.stores, {
    secretsOf: signing.of,
    earlierSecretSince: (store) => earlierSince.get(store),
    webhookSecretOf: (store) => vault.subKey(`store-webhook:${store}`).toString('hex'),
    now,
    newId,
  })
  return {
    link,
    signing,
    supplier: elect ? supplierOfWorker(link, acts, () => processes.report()?.supplier) : link,
    isKept,
    pace: isKept ? before.runtime.ordering.pace : undefined,
    stores: elect ? new Map([...opened].map(([id, store]) => [id, storeOfWorker(store, acts)])) : opened,
  }
}
type Partners = Awaited<ReturnType<typeof openPartners>>

const isSameSupplier = (one: Config, other: Config): boolean =>
  one.supplier.baseUrl === other.supplier.baseUrl &&
  one.apiKey.reveal() === other.apiKey.reveal() &&
  JSON.stringify(one.dialectFacts) === JSON.stringify(other.dialectFacts)

function openRuntime({ base, metrics }: Shared, config: Config, { supplier, stores, pace }: Partners) {
  const { processes, at } = base
  return startRuntime({
    ...base,
    supplier,
    dialect: config.dialectFacts,
    stores: config.stores,
    storeIds: storeIdsOf(config),
    storeOf: (id) => stores.get(id),
    policy: policyOf(config),
    pace,
    ...(config.publicUrl !== null && { keyPagesAt: config.publicUrl }),
    now,
    monotonic,
    random: Math.random,
    hooks: {
      acts: processes.acts,
      countReceived: (outcome, reason) => metrics.count('deliveries', { outcome, reason }),
      countProcessed: (state) => metrics.count('deliveries_processed', { state }),
      timeKeys: (ms) => metrics.time('order_to_keys_seconds', ms),
      askSweep: processes.askSweep,
      tell: processes.tell,
      ...(at && { at }),
    },
  })
}
type Runtime = Awaited<ReturnType<typeof openRuntime>>

/** Remembers what the latest look at the database server found. */
function watchServer({ look, log }: Base) {
  let state: ServerState = { away: undefined, isClockApart: false }
  return {
    now: () => state,
    look: async (): Promise<void> => {
      if (!look) return
      const { away } = state
      state = await look()
      if (state.away !== undefined && state.away !== away) log.warn('database.refuses', { error: state.away })
    },
  }
}
type DatabaseServer = ReturnType<typeof watchServer>

/** Opens what people and jobs use besides the runtime: alerts, backups, dry runs, captures and webhooks. */
async function openTools(shared: Shared, config: Config, { supplier, signing }: Partners, runtime: Runtime) {
  const { clockSuspect } = shared
  const { file, db, vault, keys, newId, log, tail, elect, processes, captures } = shared.base
  const { ordering, catalogue, inbox, syncs, sweeps } = runtime
  const { publicUrl, stores } = config
  const isFile = config.databaseUrl === null
  const { storeOf } = ordering
  const dryRuns = isFile ? createDryRuns({ catalogue, stores, storeOf, dataDir: config.dataDir }) : noDryRuns
  const backups = isFile ? createBackups({ config, file, db, keys, now, newId, log }) : backupsElsewhere(config)
  const own = { db, now, newId, log }
  const alerting = await openAlerts({
    ...own,
    config,
    service: {
      supplier,
      clockSuspect: () => clockSuspect() || processes.suspectedElsewhere().clock,
      lastBackupAt: backups.lastMadeAt,
    },
    watched: {
      secretSuspect: () => inbox.secretSuspect() || processes.suspectedElsewhere().secret,
      installedAt: await madeAt(config.dataDir),
      diskFreeMb: () => diskFreeMb(config.dataDir),
    },
    wakeOutbox: () => runtime.wake('outbox'),
  })
  const workers = alerting.work.map((run) => createWorker('alerts', run, { log, stopped: runtime.isStopping }))
  const webhooks = webhookActions({ ...own, vault, supplier, publicUrl, inbox, dialect: config.dialectFacts })
  const context = {
    ordering,
    config,
    stores,
    publicUrl,
    syncs,
    sweeps,
    dryRuns,
    inbox,
    webhooks,
    captures,
    callbackSecrets: signing,
    backups,
    alerting,
    keys,
    tail,
    randomBytes,
    ...(elect && { workerAbsentSince: processes.absentSince }),
  }
  return {
    context,
    wakeAlerts: () => {
      for (const worker of workers) worker.wake()
    },
    idle: () => Promise.all(workers.map((worker) => worker.idle())),
    close: alerting.close,
  }
}

/** What all generations share. */
interface Shared {
  base: Base
  metrics: Metrics
  databaseServer: DatabaseServer
  clockSuspect: () => boolean
  context: Pick<ApiContext, 'settings' | 'consoleAddress' | 'firstRun'>
}

type Served = Awaited<ReturnType<typeof openGeneration>>
/** What a generation takes over from the one before. */
type Before = { config: Config; partners: { link: Supplier }; runtime: { ordering: { pace: Pace } } }

/** Opens all parts that the settings decide. @param before the generation in place of which this one comes */
async function openGeneration(shared: Shared, config: Config, before?: Before) {
  const { base } = shared
  const { processes } = base
  const partners = await openPartners(shared, config, before)
  const runtime = await openRuntime(shared, config, partners)
  const tools = await openTools(shared, config, partners, runtime)
  let jobs: Jobs | undefined
  const api: ApiContext = {
    ...tools.context,
    nextRuns: () => jobs?.nextRuns() ?? processes.report()?.nextRuns ?? NOT_KNOWN,
    ...shared.context,
  }
  const idle = () => Promise.all([runtime.idle(), tools.idle()])
  return {
    config,
    partners,
    runtime,
    tools,
    api,
    operations: apiOperations(api),
    deliveries: deliveryRouter(shared, config, runtime),
    /** Starts the jobs, in the process that acts as the worker. */
    work: (calls: Calls, { isFirst }: { isFirst: boolean }): void => {
      const { webhooks, backups } = tools.context
      const lookForWork = base.elect && (() => lookAround(runtime.ordering, calls.begin))
      const reads = isFirst || !partners.isKept
      jobs = startJobs({ config, runtime, webhooks, backups, lookForWork, wakeAlerts: tools.wakeAlerts, reads })
    },
    /** Takes no new work. Resolves when nothing is under way that a supplier or a store takes part in. */
    end: async () => {
      runtime.stop()
      await Promise.all([jobs?.leave(), idle()])
      await runtime.hourly.write()
    },
    /** Resolves when nothing at all is under way. */
    finish: async (calls: Calls) => Promise.all([jobs?.end().then(calls.idle), idle(), tools.close()]),
    /** Closes what the generation in its place does not go on with. */
    close: async (next?: Before) => {
      const { link, stores, supplier } = partners
      await runtime.hourly.write()
      const isPassedOn = next?.partners.link === link
      await Promise.all([
        tools.close(),
        ...(isPassedOn ? [] : [supplier.close()]),
        ...[...stores.values()].map((store) => store.close()),
      ])
    },
  }
}

/** Makes the routes of deliveries and of the pages of keys. */
function deliveryRouter({ base }: Shared, config: Config, { inbox }: Runtime) {
  const { at, db, newId, vault, captures } = base
  const taking = {
    judge: captures.watchHead(inbox.judge),
    receive: captures.watch(receiveWith(at, inbox.receive)),
    countRefused: inbox.countRefused,
  }
  const keyPages = keysRouter({
    db,
    now,
    newId,
    vault,
    monotonic,
    pageDays: config.keys.pageDays,
    sendsLinks: (id) => sendsLinks(config.stores.find((store) => store.id === id)),
    shopOf: (store) => shopOfPage(config, store),
  })
  return Router()
    .use(webhookRouter(taking, undefined, config.dialectFacts.event.answer === 'empty'))
    .use(keyPages)
}

type Calls = ReturnType<typeof performCalls>
type Generations = ReturnType<typeof createGenerations<Served>>

/** Opens what answers requests from outside: the API, the webhooks, the console, and the probes. */
function openFaces(
  { base, metrics, databaseServer, clockSuspect }: Shared,
  { current, operations: own }: Generations,
  parts: { sandboxUrl: string | undefined; isEnding: () => boolean; deliveries: RequestHandler },
) {
  const { sandboxUrl, isEnding, deliveries } = parts
  const { config, role, db, elect, processes, newId, log, vault } = base
  const access = { db, now, newId, randomBytes }
  const count = (route: string, status: number) => metrics.count('http_requests', { route, status: String(status) })
  const calling = { db, vault, now, monotonic, newId, log }
  const operations = elect ? leavingToWorker(calling, own, processes, () => current().runtime.inbox.reload()) : own
  const { url } = config.console
  const { proxies } = config.keys
  const pages = createConsole({ url, proxies, sandboxUrl, operations, access, monotonic, log, count })
  const owner = mintToken('admin', randomBytes)
  const authenticate = createAuth({ db, now }, owner.digest)
  const health = {
    isWorker: role === 'worker',
    status: () => {
      const { supplier, pace } = current().runtime.ordering
      return {
        reasons: notesOf({ draining: isEnding(), database: databaseServer.now().away !== undefined }),
        notes: notesOf({
          clock_suspect: clockSuspect(),
          answers_unreadable: supplier.unreadable().length > 0,
          supplier_unreachable: Boolean(pace.outage),
          no_worker: !processes.acts() && processes.report() === undefined,
        }),
      }
    },
  }
  const server = createHttpServer({
    ...(role === 'worker'
      ? { api: [noApi(processes.acts)] }
      : { webhooks: deliveries, api: [apiRouter(operations, authenticate)] }),
    health: Router().use(healthRouter(health)).use(metricsRouter(authenticate, metrics)),
    proxies,
    log,
    newId,
    monotonic,
    count,
  })
  return {
    server,
    pages,
    calls: performCalls(calling, own),
    ownerToken: owner.token.reveal(),
    drain: () => {
      server.drain()
      pages.drain()
    },
    /** Makes a link that signs its reader in to the console as an admin; null where the console is switched off. */
    consoleLink: async (): Promise<string | null> => {
      const address = pages.address()
      if (address === null) return null
      const { link } = await createLink(access, { name: 'owner', role: 'admin' }, 'owner')
      return `${address}/signin?link=${link.reveal()}`
    },
  }
}
type Faces = ReturnType<typeof openFaces>

/** Follows what other processes say: other settings, and what they have stored for the worker. */
function listenToOthers(
  { processes, others, log }: Base,
  generations: Generations,
  calls: Calls,
  isEnding: () => boolean,
) {
  const { current, follow } = generations
  others?.listen((what) => {
    const { runtime } = current()
    const isWorker = (name: string): name is WorkerName => name in runtime.work
    if (isEnding()) return
    if (what === SETTINGS) follow().catch(unfollowed(log))
    else if (!processes.acts()) return
    else if (isWorker(what)) runtime.wake(what)
    else void lookAround(runtime.ordering, calls.begin).catch(() => undefined)
  })
}

/** What a process tells the others when it has put other settings in force. */
const SETTINGS = 'settings'

const unfollowed = (log: Log) => (error: unknown) => log.warn('settings.unfollowed', { error: messageOf(error) })

/** Reads the settings that another process has put in force; undefined where those of this process are the newest. */
async function newerSettings({ db, vault }: Base, config: Config) {
  if (config.revision === null) return undefined
  const newest = await newestRevision(db)
  return newest && newest.number > config.revision ? configWith(config, openRevision(newest, vault)) : undefined
}

/** Does what every process does at each tick, worker or not. */
async function tick({ base, databaseServer, clockSuspect }: Shared, { current, follow }: Generations): Promise<void> {
  const { partners, runtime, api, config } = current()
  const { db, elect, onFatal, processes, log } = base
  const { inbox } = runtime
  await databaseServer.look()
  await runtime.hourly.write()
  await base.captures.refresh()
  if (!elect) return
  const move = await engineMove(db)
  // The data was moved back to the database file while this process slept. What this process stores here would be lost.
  if (move) return onFatal(movedFailure(move))
  const { link, signing } = partners
  const suspects = { clock: clockSuspect(), secret: inbox.secretSuspect() }
  const supplierReport = () => ({ unreadable: link.unreadable(), reach: link.reach(), quota: link.quota() })
  const report = () => ({ supplier: supplierReport(), nextRuns: api.nextRuns() })
  const [newer] = await Promise.all([
    config.revision === null ? [] : db.query(revisionNumbersFrom(config.revision + 1)),
    processes.tick({ suspects, report, sweep: () => current().runtime.sweepForStale() }),
  ])
  if (newer.length > 0) await follow().catch(unfollowed(log))
  await Promise.all([inbox.reload(), signing.refresh()])
}

/** Gives the work under way a limited time to end, then closes everything. */
async function endService(base: Base, current: () => Served, faces: Faces, work: unknown[]): Promise<void> {
  const { config, role, log, db, elect, processes } = base
  // Wait until no load balancer sends requests here any more: such requests would find nothing that listens.
  if (elect && role !== 'worker') work.push(sleep(BALANCED_MS))
  // The server still listens, and answers new requests with 503.
  const finished = await within(serverLimits.drainMs, Promise.all(work))
  await Promise.all([faces.server.close(), faces.pages.close()])
  await current()
    .runtime.hourly.write()
    .catch((error: unknown) => log.warn('counts.lost', { error: messageOf(error) }))
  await processes.end()
  // Remove the token before the database closes. After that, the next process may start and write its own token to that file.
  rmSync(ownerTokenFile(config.dataDir), { force: true })
  // Work still under way can write nothing from here on. A purchase stays in `sending`, and the next start looks it up.
  await db.close()
  const { supplier, stores } = current().partners
  await within(LINGER_MS, Promise.all([supplier.close(), ...[...stores.values()].map((store) => store.close())]))
  log.info('service.stopped', { outcome: finished ? 'finished' : 'cut_off' })
}

/** Wakes the workers for urgent work that other processes have stored. The tick finds all other work. */
async function lookAround({ db, now, wake }: Ordering, beginCalls: () => Promise<number>): Promise<void> {
  const at = now()
  const [deliveries, placements] = await Promise.all([
    db.query(dueDeliveries(at, 1)),
    db.query(duePlacements(at, 0, 1)),
    beginCalls(),
  ])
  if (deliveries.length > 0) wake('inbox')
  if (placements.length > 0) {
    wake('read')
    wake('place')
  }
}

const NOT_KNOWN = { catalogue: null, balance: null, sweep: null }

/** Finds out that an address is taken while a first start can still be undone. */
async function assertFree({ host, port }: Config['listen']): Promise<void> {
  const probe = createServer().listen(port, host)
  await once(probe, 'listening')
  await once(probe.close(), 'close')
}

/** Opens the console for people. If its port is taken, the service goes on buying without a console. */
async function listenForPeople(pages: Console, { host, port }: Config['listen'], log: Log): Promise<void> {
  await pages.listen(host, port).catch((cause: NodeJS.ErrnoException) => {
    const error = `the console cannot listen at ${host}:${port} (${cause.code ?? messageOf(cause)}): change console.listen`
    log.error('console.unavailable', { error })
  })
}

/** Returns what the configuration says about buying, with amounts in minor units of the supplier's currency. */
export function policyOf({ revision, ordering, keys, rates, spendCaps, dialectFacts }: Config): OrderingPolicy {
  const { currency } = dialectFacts.money
  const amount = (cap: string | null) => (cap === null ? null : (parseDecimal(cap, currency) ?? null))
  return {
    revision,
    inFlight: ordering.inFlight,
    offerFreshnessMs: ordering.offerFreshnessSeconds * 1_000,
    deadlineMs: ordering.deadlineHours * 3_600_000,
    entitlementMs: ordering.entitlementSeconds * 1_000,
    lateMs: keys.lateMinutes === 0 ? null : keys.lateMinutes * 60_000,
    ceilingPercent: ordering.ceilingPercent,
    minMarginPercent: ordering.minMarginPercent,
    rates: rates.map(readRate),
    caps: { order: amount(spendCaps.order), hour: amount(spendCaps.hour), day: amount(spendCaps.day) },
  }
}

/** After this time a load balancer that asks `/readyz` every second has seen that this process is being stopped. */
const BALANCED_MS = 3_000

/** How long connections may take to close. Without this limit, an open request would hold them until its deadline. */
const LINGER_MS = 500

/** @returns whether the work was over in time */
const within = (ms: number, work: Promise<unknown>): Promise<boolean> =>
  Promise.race([work.then(() => true), sleep(ms, false, { ref: false })])

/** The file of the token with which the command line on this machine calls the service. It exists while the service runs. */
const ownerTokenFile = (dataDir: string): string => path.join(dataDir, 'owner.token')

function writeOwnerToken(dataDir: string, token: string): void {
  const file = ownerTokenFile(dataDir)
  rmSync(file, { force: true })
  writeText(file, `${token}\n`, 0o600)
}

/** Returns the settings in one line. A secret is only shown as `set`. */
function settingsLine(config: Config, role: Role): string {
  const { listen, url } = config.console
  const pages = listen === null ? 'off' : (url ?? `${listen.host}:${listen.port}`)
  return [
    `supplier=${config.supplier.baseUrl}`,
    `dialect=${config.dialectFacts.name}`,
    `stores=${config.stores.map(({ id }) => id).join(',')}`,
    ...(role === 'worker' ? [] : [`console=${pages}`]),
    `public=${config.publicUrl ?? 'none, polling alone'}`,
    `sync=${config.syncCron}`,
    'apiKey=set',
    'keyEncryptionKey=set',
  ].join(' ')
}
