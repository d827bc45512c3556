/**
 * An app that begins on a file, moves to a PostgreSQL server of its own and finds older files there: those of the server, those of a
 * standby that was promoted, or its own old file.
 */
import { execFile } from 'node:child_process'
import { cpSync, existsSync, rmSync, statfsSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { performance } from 'node:perf_hooks'
import { promisify } from 'node:util'
import { expect, onTestFinished } from 'vitest'
import { migrateEngine } from '../../../src/backup/engine-move.ts'
import type { Config } from '../../../src/config/config.ts'
import { Failure } from '../../../src/errors.ts'
import { recogniseRestore, recogniseServer } from '../../../src/reconciliation/restore.ts'
import { Secret } from '../../../src/secret.ts'
import type { Database } from '../../../src/storage/database.ts'
import { assertNotMoved } from '../../../src/storage/engine-move.ts'
import { openMarker } from '../../../src/storage/marker.ts'
import { openPostgres } from '../../../src/storage/postgres/open.ts'
import { currentEpoch, RESTORE_ACTOR, restoreHold } from '../../../src/storage/restores.ts'
import { purchases } from '../../../src/storage/schema.ts'
import { openDatabase } from '../../../src/storage/sqlite/open.ts'
import { build } from '../../../src/storage/statement.ts'
import type { WorkerLease } from '../../../src/storage/worker.ts'
import { databaseFile, TEST_NOW } from '../../support/database.ts'
import { freePort } from '../../support/free-port.ts'
import { run, withDatabase } from '../../support/postgres-server.ts'
import { type OrderLine, openTestApp, type TestAppOptions } from '../../support/test-app.ts'
import { serversIn, urlOf } from '../torture/servers.ts'

const MEMORY = '/dev/shm'
/** Of the memory that a run takes; each copy is some 40 MB. */
const ROOM_BYTES = 2 ** 30

/** In memory where there is room: what a disk keeps is not tried here. */
function beneath(): string | undefined {
  if (!existsSync(MEMORY)) return undefined
  const { bavail, bsize } = statfsSync(MEMORY)
  return bavail * bsize > ROOM_BYTES ? MEMORY : undefined
}

/** A server whose files can be copied and put back. Small files: they are copied often. */
export async function startServer() {
  const settings = { shared_buffers: '16MB', min_wal_size: '2MB', max_wal_size: '64MB', autovacuum: 'off' }
  const servers = serversIn('rollbacks', 'ignore', settings, beneath())
  const { folder, newData, initialised, run: runServer, end } = servers
  const copied = (from: string, to: string) => promisify(execFile)('cp', ['-a', from, to])
  let server = await runServer(await initialised('--wal-segsize=1'), await freePort())
  const url = urlOf(server.port)
  return {
    url,
    /** Copies the files: of a server that was stopped for it, or of one that runs, as the snapshot of a disk has them. */
    copy: async (how: 'stopped' | 'running'): Promise<string> => {
      const copy = newData()
      if (how === 'stopped') await end(server, 'SIGINT')
      // Nothing writes while the app is at rest, and after this the server does not either.
      else await run(url, 'checkpoint')
      await copied(server.data, copy)
      if (how === 'stopped') server = await runServer(server.data, server.port)
      return copy
    },
    /** Ends the server at once, and starts another one in its place: the copy, or a standby that had got so far and is promoted. */
    putBack: async (copy: string, how: 'itself' | 'promoted'): Promise<void> => {
      await end(server, 'SIGQUIT')
      rmSync(server.data, { recursive: true, force: true })
      await copied(copy, server.data)
      if (how === 'promoted') writeFileSync(path.join(server.data, 'standby.signal'), '', { mode: 0o666 })
      server = await runServer(server.data, server.port)
      if (how === 'promoted') await run(url, 'select pg_promote(true, 60)')
    },
    drop: (copy: string) => rmSync(copy, { recursive: true, force: true }),
    close: async () => {
      await end(server, 'SIGQUIT')
      rmSync(folder, { recursive: true, force: true, maxRetries: 5 })
    },
  }
}
export type Server = Awaited<ReturnType<typeof startServer>>

/** Rounds in which a wait passes at most. */
const ROUNDS_MAX = 8

/** An older state of everything. */
interface Copy {
  how: 'stopped' | 'running'
  data: string
  /** Of the process: what lies in its data folder. */
  folder: string
}

export type Way = 'files' | 'snapshot' | 'promoted' | 'old file'

/** What a process works with. */
interface Opened {
  db: Database
  fatal: Failure[]
  end(): Promise<void>
}

export type ServerWorld = Awaited<ReturnType<typeof openServerWorld>>

export async function openServerWorld(server: Server, name: string, given: TestAppOptions) {
  await run(server.url, `create database ${name} template template0 encoding 'UTF8'`)
  const url = withDatabase(server.url, name)
  const file = databaseFile()
  const folder = path.dirname(file)
  let time = () => TEST_NOW
  let opened: Opened = onFile()
  const database: Database = {
    query: (statement) => opened.db.query(statement),
    commit: (changes) => opened.db.commit(changes),
    close: () => opened.end(),
  }
  onTestFinished(async () => {
    await opened.end()
    await run(server.url, `drop database ${name} with (force)`)
  })
  const options: TestAppOptions = { ...given, database, marker: openMarker(file) }
  const app = await openTestApp(options)
  const { now } = app
  time = now
  const { newId, log } = app.ordering
  /** The stores of the first database are as new as itself. */
  const beginning = { db: database, now, newId, log, storeIds: [] }
  await recogniseRestore({ ...beginning, marker: openMarker(file) })
  /** Requests to buy that left before the newest orders were compared. */
  let early = 0

  function onFile(): Opened {
    const fatal: Failure[] = []
    const db = openDatabase({ file, now: () => time(), onFatal: (failure) => fatal.push(failure) })
    return { db, fatal, end: () => db.close() }
  }

  /** A process that has the lease; the time of every lease before it is over. */
  async function onServer(): Promise<Opened & { lease: WorkerLease }> {
    const fatal: Failure[] = []
    const onFatal = (failure: Failure) => void fatal.push(failure)
    const db = await openPostgres({ url, now, clocksApartMs: Number.POSITIVE_INFINITY, onFatal })
    await run(url, 'update worker_lease set ends_at = 0')
    const { signal } = new AbortController()
    const lease = await db.elect({ owner: newId(), monotonic: () => performance.now(), signal, log })
    if (!lease) throw new Error('there is no lease')
    return {
      db,
      fatal,
      lease,
      end: async () => {
        await lease.release()
        await db.close()
      },
    }
  }

  /** A new process. Whatever is due before the newest orders were compared must wait for that. */
  async function begin(isOnServer: boolean): Promise<void> {
    await opened.end()
    if (isOnServer) {
      const process = await onServer()
      opened = process
      delete options.marker
      await recogniseServer({ ...beginning, lease: process.lease })
      process.lease.fence()
    } else {
      opened = onFile()
      await assertNotMoved(database)
      options.marker = openMarker(file)
      await recogniseRestore({ ...beginning, marker: options.marker })
    }
    const sent = app.sent.length
    await app.restart()
    await app.settle()
    early += app.sent.length - sent
  }

  const epoch = async () => (await currentEpoch(database))?.epoch ?? 1
  const isOnServer = () => options.marker === undefined
  const start = async (): Promise<boolean> => {
    const before = await epoch()
    await begin(isOnServer())
    return (await epoch()) > before
  }
  const work = async (): Promise<void> => {
    await app.runtime.reattachOrders().catch((error: unknown) => {
      if (!(error instanceof Failure)) throw error
    })
    await app.settle()
  }

  /** A worker that knows nothing of the older files of its server: it stores nothing, sends nothing and ends. */
  async function outlive(lines: OrderLine[]): Promise<void> {
    const sent = app.sent.length
    for (let tries = 0; tries < 100 && opened.fatal.length === 0; tries += 1) {
      const late = await app.order(`late-${tries}`, lines).then(
        () => 'stored',
        () => 'refused',
      )
      expect(late).toBe('refused')
      await app.round().catch(() => 0)
    }
    expect(opened.fatal).toMatchObject([{ code: 'unavailable' }])
    early += app.sent.length - sent
  }

  const orders = () => app.sandbox.world.orders.known(10_000)

  /** Supplier orders that the database cannot have bought. */
  async function lacking(): Promise<number> {
    const rows = await database.query(build.select().from(purchases))
    const sent = new Set(rows.filter(({ firstSentAt }) => firstSentAt !== null).map((row) => row.externalOrderId))
    return orders().filter((order) => !sent.has(order.externalOrderId ?? '')).length
  }

  return {
    app,
    early: () => early,
    /** How many orders the supplier has taken. */
    supplied: () => orders().length,
    start,
    pass: async (ms: number, stepMs: number): Promise<void> => {
      // A server takes its time for each round: eight of them show as much as more do.
      const coarse = Math.max(stepMs, ms / ROUNDS_MAX)
      for (const end = now() + ms; now() < end; ) {
        app.move(Math.min(coarse, end - now()))
        await work()
      }
    },
    handIn: (reference: string, lines: OrderLine[]) => app.order(reference, lines),
    /** A copy of the data folder, whose file no process has open. */
    keepFile: async (): Promise<{ folder: string }> => {
      const kept = { folder: `${folder}-kept` }
      await opened.end()
      cpSync(folder, kept.folder, { recursive: true })
      onTestFinished(() => rmSync(kept.folder, { recursive: true, force: true }))
      return kept
    },
    /** As `quayside migrate-engine` does it; then the file is refused, and a process begins on the server. */
    moveToServer: async (): Promise<void> => {
      await opened.end()
      await migrateEngine({ databaseUrl: new Secret(url), dataDir: folder, stores: [] } as unknown as Config)
      opened = onFile()
      await expect(assertNotMoved(database)).rejects.toMatchObject({ reason: 'database_moved' })
      await begin(true)
    },
    copy: async (how: Copy['how']): Promise<Copy> => {
      const data = await server.copy(how)
      const copy = { how, data, folder: `${data}-folder` }
      cpSync(folder, copy.folder, { recursive: true })
      // Its server was stopped, and the worker has ended.
      if (how === 'stopped') await begin(true)
      return copy
    },
    /**
     * Puts an older state back, and begins on it.
     *
     * @param again handed in before the newest orders were compared
     * @returns whether buying is on hold now until the supplier's orders are reattached, and whether there is one that it lacks
     */
    rollBack: async (
      to: Pick<Copy, 'folder'> & { data?: string },
      way: Way,
      { outlives, again }: { outlives: boolean; again: () => Promise<unknown> },
    ): Promise<{ recognised: boolean; lacks: boolean }> => {
      const isBack = way === 'old file'
      if (!outlives || isBack) await opened.end()
      if (!isBack && to.data !== undefined) await server.putBack(to.data, way === 'promoted' ? 'promoted' : 'itself')
      if (outlives && !isBack) await outlive([{ sku: (await app.offers().catch(() => []))[0]?.sku ?? 'sku' }])
      if (isBack || way === 'snapshot') cpSync(to.folder, folder, { recursive: true, force: true })
      await begin(!isBack)
      const lacks = (await lacking()) > 0
      const sent = app.sent.length
      await again()
      await app.settle()
      early += app.sent.length - sent
      await app.runtime.reattachOrders()
      const [hold, stands] = [await restoreHold(database), await currentEpoch(database)]
      return { recognised: hold?.actor === RESTORE_ACTOR && stands?.reattachedAt === null, lacks }
    },
  }
}
