/**
 * The composition root: one process, one database file, everything wired by hand.
 *
 * What starts here ends here: pumps, schedules, server, clients, database, in the order that loses nothing.
 */
import { randomBytes } from 'node:crypto'
import { rmSync, writeFileSync } from 'node:fs'
import { hostname } from 'node:os'
import path from 'node:path'
import { performance } from 'node:perf_hooks'
import { setTimeout as sleep } from 'node:timers/promises'
import { Router } from 'express'
import { createAuth } from './access/auth.ts'
import { mintToken } from './access/tokens.ts'
import { createBackups } from './backup/backup.ts'
import type { Catalogue } from './catalogue/context.ts'
import { createDryRunner } from './catalogue/dry-run.ts'
import { refreshOffer } from './catalogue/offers.ts'
import { createSyncRunner } from './catalogue/sync.ts'
import type { Config } from './config/config.ts'
import { type AtPoint, databaseWith, receiveWith } from './crash-points.ts'
import { parseDecimal } from './domain/money.ts'
import { readRate } from './domain/rates.ts'
import { type Failure, messageOf } from './errors.ts'
import { createFlows } from './flows.ts'
import { apiRouter } from './http/api/api.ts'
import { healthRouter, metricsRouter, notesOf } from './http/probes.ts'
import { createHttpServer, serverLimits } from './http/server.ts'
import { webhookRouter } from './http/webhooks.ts'
import { createIds, pooledRandomBytes } from './ids.ts'
import { forgetOld, processDue } from './inbox/process.ts'
import { openInbox } from './inbox/receive.ts'
import { createPump, every, everySeconds, type Pump, together, watchClock } from './jobs.ts'
import { type Publisher, publishNext } from './listings/publish.ts'
import type { Log } from './log.ts'
import { createMetrics, readGauges } from './observe/metrics.ts'
import { releaseHeld } from './ordering/actions.ts'
import { closeOrders, deliverDue, type Fulfilment } from './ordering/fulfil.ts'
import { freshPace, type Pump as PumpName } from './ordering/ordering.ts'
import { placeDue } from './ordering/place.ts'
import { afterClockJump, resume } from './ordering/recover.ts'
import { refreshDue } from './ordering/refresh.ts'
import { explainBalance, readBalance } from './reconciliation/balance.ts'
import { mapBack, recogniseRestore } from './reconciliation/restore.ts'
import { createSweepRunner } from './reconciliation/sweep.ts'
import { latestBalance } from './storage/evidence.ts'
import { openMarker } from './storage/marker.ts'
import { databaseFileOf, fileSystemOf, fileSystemType, openDatabase } from './storage/sqlite/open.ts'
import { backendStores } from './stores/backend/backend.ts'
import { openCallbackSecrets } from './stores/backend/signature.ts'
import { createSupplier } from './supplier/client.ts'
import { openKeys } from './vault/keys.ts'

export interface AppOptions {
  config: Config
  log: Log
  /** Called once when only a restart can tell what is stored; the process should end with 75. */
  onFatal: (failure: Failure) => void
  /** For tests that end the process at a named instant. */
  at?: AtPoint | undefined
}

export interface App {
  /** Where the service listens: `http://127.0.0.1:8080`. */
  url: string
  /** Resolves when the catalogue has been read once more, or the run under way is over. */
  sync: () => Promise<void>
  flows: ReturnType<typeof createFlows>
  /** Stops taking work, finishes what is under way, closes everything. */
  close: () => Promise<void>
}

const now = (): number => Date.now()
const monotonic = (): number => performance.now()

export async function openApp({ config, log, onFatal, at }: AppOptions): Promise<App> {
  const newId = createIds(now, pooledRandomBytes)
  const file = databaseFileOf(config.dataDir)
  const db = databaseWith(at, openDatabase({ file, now, onFatal, mustExist: true }))
  log.info('database.opened', { file })
  if (fileSystemOf(fileSystemType(path.dirname(file))).use === 'doubtful') log.warn('database.on_fuse', { file })
  const { vault, keys } = await openKeys({ config, db, now, newId, log, at })
  const marker = openMarker(file)
  await recogniseRestore({ db, marker, now, newId, log, stores: config.stores })
  const dialect = config.dialectFacts
  const supplier = createSupplier({
    baseUrl: config.supplier.baseUrl,
    dialect,
    apiKey: config.apiKey,
    now,
    random: Math.random,
    sleep: (ms) => sleep(ms),
  })
  const signing = await openCallbackSecrets({ db, vault, now, newId })
  const stores = backendStores(config.stores, { secretsOf: signing.of, now, newId })
  let stopping = false
  const stopped = () => stopping
  const pumps = {} as Record<PumpName, Pump>
  const wake = (name: PumpName): void => pumps[name]?.wake()
  const base = { db, vault, supplier, dialect, now, monotonic, newId, log, random: Math.random, wake }
  const halt = new AbortController()
  const catalogue: Catalogue = {
    ...base,
    stores: config.stores,
    signal: halt.signal,
    wake: (_what, productIds) =>
      void freed(productIds).catch((error: unknown) => log.warn('holds.kept', { error: messageOf(error) })),
    requestSync: (cause) => syncs.follow(cause),
    reads: new Map(),
  }
  const syncs = createSyncRunner(catalogue)
  const dryRun = createDryRunner({ catalogue, stores: config.stores, dataDir: config.dataDir })
  /** Back in stock or cheaper: what is held for it may go on. */
  const freed = async (productIds: string[]): Promise<void> => {
    for (const productId of productIds) {
      await releaseHeld(ordering, 'out_of_stock', productId)
      await releaseHeld(ordering, 'ceiling', productId)
    }
  }
  const amount = (cap: string | null) => (cap === null ? null : (parseDecimal(cap, dialect.money.currency) ?? null))
  const ordering: Fulfilment = {
    ...base,
    stores: config.stores,
    signal: halt.signal,
    mark: (attempt) => marker.note(attempt),
    beginEpoch: (epoch) => marker.begin({ epoch, attempt: null }),
    owner: `${hostname()}:${process.pid}`,
    policy: {
      inFlight: config.ordering.inFlight,
      deadlineMs: config.ordering.deadlineHours * 3_600_000,
      ceilingPercent: config.ordering.ceilingPercent,
      minMarginPercent: config.ordering.minMarginPercent,
      rates: config.rates.map(readRate),
      caps: {
        order: amount(config.spendCaps.order),
        hour: amount(config.spendCaps.hour),
        day: amount(config.spendCaps.day),
      },
    },
    pace: freshPace(),
    refreshOffer: async (productId) => {
      await refreshOffer(catalogue, productId)
      wake('publish')
    },
    readBalance: async () => {
      const [before] = await db.query(latestBalance())
      const reading = await readBalance(catalogue)
      if (!before || reading.amountMinor > before.amountMinor) await releaseHeld(ordering, 'balance')
      sweeps.behind(await explainBalance(ordering, reading), 'balance')
    },
    storeOf: (id) => stores.get(id),
    at: at ?? (() => {}),
  }
  const sweeps = createSweepRunner(ordering)
  const metrics = createMetrics({
    readGauges: () => readGauges({ db, now, clockSuspect: inbox.clockSuspect, unreadable: supplier.unreadable }),
    runtime: true,
  })
  const inbox = await openInbox({
    ...base,
    countReceived: (outcome, reason) => metrics.count('deliveries', { outcome, reason }),
    onStored: () => wake('inbox'),
    onStale: () =>
      void sweeps.recent('stale').catch((error: unknown) => log.warn('sweep.trouble', { error: messageOf(error) })),
  })
  const inboxWork = {
    ...base,
    countProcessed: (state: string) => metrics.count('deliveries_processed', { state }),
    refreshOffer: ordering.refreshOffer,
    readBalance: ordering.readBalance,
  }
  const publisher: Publisher = { ...base, stores: config.stores, storeOf: ordering.storeOf }
  const work: Record<Exclude<PumpName, 'publish'>, () => Promise<number>> = {
    inbox: () => processDue(inboxWork),
    place: async () => (await placeDue(ordering)) + (await closeOrders(ordering)),
    refresh: () => refreshDue(ordering),
    outbox: async () => (await deliverDue(ordering)) + (await closeOrders(ordering)),
  }
  for (const [name, run] of Object.entries(work)) pumps[name as PumpName] = createPump(name, run, { log, stopped })
  // A store that is slow to answer keeps no other one waiting.
  pumps.publish = together(
    config.stores.map((store) => createPump('publish', () => publishNext(publisher, store), { log, stopped })),
  )
  const wakeAll = () => {
    for (const pump of Object.values(pumps)) pump.wake()
  }
  const clockJumped = watchClock(now, monotonic)
  const tick = async (): Promise<void> => {
    if (clockJumped()) {
      for (const timer of timers) timer.rearm()
      await afterClockJump(ordering)
    }
    wakeAll()
    await flows.capture.expire()
  }
  const backups = createBackups({ config, file, db, keys, now, newId, log })
  const flows = createFlows({ config, ordering, supplier, syncs, dryRun, sweeps, inbox, signing, backups, keys })
  const owner = mintToken('admin', randomBytes)
  const authenticate = createAuth({ db, ownerDigest: owner.digest, now })
  const health = {
    status: () => ({
      reasons: stopping ? ['draining'] : [],
      notes: notesOf({ clock_suspect: inbox.clockSuspect(), answers_unreadable: supplier.unreadable().length > 0 }),
    }),
  }
  const server = createHttpServer({
    webhooks: webhookRouter({
      judge: flows.capture.watchHead(inbox.judge),
      receive: flows.capture.watch(receiveWith(at, inbox.receive)),
    }),
    api: [apiRouter({ db, flows, authenticate, now, newId, randomBytes, stores: config.stores })],
    health: Router().use(healthRouter(health)).use(metricsRouter(authenticate, metrics)),
    log,
    newId,
    monotonic,
    count: (route, status) => metrics.count('http_requests', { route, status: String(status) }),
  })
  await resume(ordering)
  const { address, port } = await server.listen(config.listen.host, config.listen.port)
  const ownerTokenFile = writeOwnerToken(config.dataDir, owner.token.reveal())
  const timers = [
    every(config.syncCron, 'sync', () => syncs.finish('schedule'), log),
    every(config.balanceCron, 'balance', ordering.readBalance, log),
    every(config.sweepCron, 'sweep', () => sweeps.recent('schedule'), log),
    every('40 2 * * *', 'nightly', () => sweeps.start('nightly'), log),
    every('10 3 * * *', 'webhooks', () => flows.checkWebhooks(), log),
    every('17 3 * * *', 'forget', () => forgetOld({ db, now }), log),
    ...(config.backups.cron === null ? [] : [every(config.backups.cron, 'backup', backups.scheduled, log)]),
  ]
  const endTick = everySeconds(config.ordering.tickSeconds, 'tick', tick, log)
  const endMapping = everySeconds(MAPPING_SECONDS, 'restore', () => mapBack(ordering), log)
  void mapBack(ordering).catch((error: unknown) => log.warn('restore.failed', { error: messageOf(error) }))
  void ordering.readBalance().catch((error: unknown) => log.warn('balance.unread', { error: messageOf(error) }))
  void flows.checkWebhooks().catch((error: unknown) => log.warn('webhooks.unchecked', { error: messageOf(error) }))
  syncs.follow('start')
  wakeAll()
  const url = `http://${address.includes(':') ? `[${address}]` : address}:${port}`
  log.info('service.started', { address: url, file: config.file, settings: settingsLine(config) })

  async function close(): Promise<void> {
    stopping = true
    halt.abort()
    // What waits to be sent stays planned, also in a batch that is under way.
    ordering.pace.pausedUntil = Number.POSITIVE_INFINITY
    server.drain()
    log.info('service.stopping')
    const work = [
      endTick(),
      endMapping(),
      ...timers.map(({ end }) => end()),
      syncs.idle(),
      sweeps.idle(),
      ...Object.values(pumps).map((pump) => pump.idle()),
    ]
    // The server still listens, so that whoever asks is told to go elsewhere.
    const finished = await within(serverLimits.drainMs, Promise.all(work))
    await server.close()
    // Whatever is still under way can write nothing from here on: `sending` stays, and is looked up at the next start.
    await db.close()
    await within(LINGER_MS, Promise.all([supplier.close(), ...[...stores.values()].map((store) => store.close())]))
    rmSync(ownerTokenFile, { force: true })
    log.info('service.stopped', { outcome: finished ? 'finished' : 'cut_off' })
  }
  return { url, sync: () => syncs.finish('start'), flows, close }
}

/** How often it is looked whether a restore is to be mapped back: two reads of the database when there is none. */
const MAPPING_SECONDS = 5

/** How long connections may take to close; one with an open request would wait for the deadline of that request. */
const LINGER_MS = 500

/** @returns whether the work was over in time */
const within = (ms: number, work: Promise<unknown>): Promise<boolean> =>
  Promise.race([work.then(() => true), sleep(ms, false, { ref: false })])

/** The token with which the command line on this machine speaks to the service; new at each start, gone at its end. */
function writeOwnerToken(dataDir: string, token: string): string {
  const file = path.join(dataDir, 'owner.token')
  rmSync(file, { force: true })
  writeFileSync(file, `${token}\n`, { mode: 0o600 })
  return file
}

/** What is set, in one line; secrets only as set. */
const settingsLine = (config: Config): string =>
  [
    `supplier=${config.supplier.baseUrl}`,
    `dialect=${config.dialectFacts.name}`,
    `stores=${config.stores.map(({ id }) => id).join(',')}`,
    `public=${config.publicUrl ?? 'none, polling alone'}`,
    `sync=${config.syncCron}`,
    'apiKey=set',
    'keyEncryptionKey=set',
  ].join(' ')
