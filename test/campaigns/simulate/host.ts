/** The machine that Quayside runs on: its database, its clock, and its processes, which come and go. */
import Connection from 'better-sqlite3'
import type { Dialect } from '../../../src/dialect/dialect.ts'
import { messageOf } from '../../../src/errors.ts'
import type { OrderingPolicy, WorkerName } from '../../../src/ordering/context.ts'
import { Secret } from '../../../src/secret.ts'
import type { Change, Database } from '../../../src/storage/database.ts'
import type { Marker, MarkerFacts } from '../../../src/storage/marker.ts'
import { sqliteDatabase } from '../../../src/storage/sqlite/sqlite.ts'
import { openVault } from '../../../src/vault/vault.ts'
import { emptyDatabase } from '../../support/empty-database.ts'
import type { Chance } from './chance.ts'
import { type Due, dueReader } from './due.ts'
import type { EventLog } from './event-log.ts'
import type { Road } from './network.ts'
import { type DeathPoint, type SimProcess, startProcess } from './process.ts'
import { type SimStore, STORE } from './store.ts'
import type { Timeline } from './timeline.ts'

export const API_KEY = 'sk_test_0123456789abcdef'
const KEY_ENCRYPTION_KEY = new Secret(Buffer.alloc(32, 'kek').toString('base64'))

/** Between two looks for work; the program's default. */
const TICK_MS = 2_000
/** A tick that got nowhere is followed by a later one: a supplier that is away for days is not worth a million ticks. */
const TICK_MAX_MS = 64_000

export interface HostOptions {
  timeline: Timeline
  chance: Chance
  log: EventLog
  dialect: Dialect
  policy: OrderingPolicy
  road: Road
  every: { balanceMs: number; sweepMs: number; syncMs: number }
}

/** The small file beside the database, as what is on it. */
function createMarker(): Marker {
  let facts: MarkerFacts | undefined
  return {
    read: () => facts,
    begin: async (begun) => {
      facts = begun
    },
    note: async (attempt) => {
      facts = { epoch: facts?.epoch ?? 1, attempt }
    },
  }
}

export type Host = Awaited<ReturnType<typeof openHost>>

export async function openHost({ timeline, chance, log, dialect, policy, road, every }: HostOptions) {
  let connection: Connection.Database
  let engine: Database
  let due: (now: number) => Due
  let store: SimStore | undefined
  let clockOffsetMs = 0
  let processes: SimProcess[] = []
  let started = 0
  let tickAt = Number.POSITIVE_INFINITY
  let idleMs = TICK_MS
  let stopTick = (): void => {}
  const faults = {
    /** Asked at each point of each process: does it die here? */
    diesAt: new Set<(point: DeathPoint) => boolean>(),
    mayCommit: new Set<(changes: Change[]) => void>(),
    /** Asked before an order is read by its id; one that throws is a bug of ours, as far as the flows can tell. */
    mayRead: new Set<(orderId: string) => void>(),
    apiKey: API_KEY,
  }
  const deaths = new Set<() => void>()
  /** Called right before another database takes the place of the one before. */
  const loading = new Set<() => void>()
  const marker = createMarker()

  function load(bytes: Buffer): void {
    if (connection) for (const tell of loading) tell()
    connection?.close()
    connection = new Connection(bytes)
    connection.pragma('foreign_keys = ON')
    connection.pragma('temp_store = MEMORY')
    engine = sqliteDatabase(connection, { onFatal: fatal, defer: timeline.defer })
    due = dueReader(connection)
  }
  const fatal = (failure: Error): void => {
    log.add('host', 'fatal', { error: failure.message })
    for (const process of processes) process.life.die()
  }
  load(emptyDatabase())
  const vault = await openVault({ database: engineNow(), keyEncryptionKey: KEY_ENCRYPTION_KEY, now: timeline.now })

  function engineNow(): Database {
    return engine
  }
  const alive = (): SimProcess[] => processes.filter(({ life }) => !life.isDead())
  const awake = (): SimProcess | undefined =>
    alive().find(({ life, stopping }) => !life.isPaused() && !stopping()) ?? undefined

  /** Something was stored: the next tick may find work in it. */
  function stored(): void {
    idleMs = TICK_MS
    tickNotAfter(timeline.now())
  }

  function tickNotAfter(at: number): void {
    const next = Math.ceil(Math.max(at, timeline.now() + 1) / TICK_MS) * TICK_MS
    if (next >= tickAt) return
    stopTick()
    tickAt = next
    stopTick = timeline.after(next - timeline.now(), () => {
      tickAt = Number.POSITIVE_INFINITY
      tick()
    })
  }

  function tick(): void {
    const wall = timeline.now() + clockOffsetMs
    const ready = due(wall)
    const pumps = (Object.keys(ready) as WorkerName[]).filter((pump) => (ready[pump] ?? 0) <= wall)
    for (const process of alive()) {
      process.life.reach(() => {
        if (!process.stopping()) void process.tick(pumps).catch(() => undefined)
      })
    }
    idleMs = Math.min(2 * idleMs, TICK_MAX_MS)
    const next = Object.values(ready).map((at) => (at > wall ? at - clockOffsetMs : timeline.now() + idleMs))
    if (next.length > 0) tickNotAfter(Math.min(...next))
  }

  async function start(fresh: boolean): Promise<SimProcess | undefined> {
    if (!store) throw new Error('the store comes first')
    started += 1
    const name = `p${started}`
    const process = await startProcess(
      {
        name,
        timeline,
        log,
        engine,
        marker,
        dialect,
        policy,
        road,
        store,
        every,
        chance: chance.named(name),
        keyEncryptionKey: KEY_ENCRYPTION_KEY,
        apiKey: new Secret(faults.apiKey),
        clockOffsetMs: () => clockOffsetMs,
        diesAt: (point) => [...faults.diesAt].some((dies) => dies(point)),
        onDeath: () => {
          for (const tell of deaths) tell()
        },
        onStored: stored,
        mayCommit: (changes) => {
          for (const look of faults.mayCommit) look(changes)
        },
        supplierOf: (supplier) => ({
          ...supplier,
          order: async (orderId) => {
            for (const look of faults.mayRead) look(orderId)
            return supplier.order(orderId)
          },
        }),
      },
      fresh,
    )
    processes = [...alive(), process]
    stored()
    return process
  }

  return {
    faults,
    deaths,
    loading,
    marker,
    alive,
    awake,
    start,
    load,
    engine: () => engine,
    connection: () => connection,
    vault: () => vault,
    callbackSecret: () => vault.subKey(`callback:${STORE}`),
    connectStore: (given: SimStore): void => {
      store = given
    },
    clockOffsetMs: (): number => clockOffsetMs,
    /** Puts the wall clock of this machine that far off. */
    setClock: (offsetMs: number): void => {
      clockOffsetMs = offsetMs
      stored()
    },
    /** kill -9. */
    kill: (process: SimProcess): void => {
      if (process.life.isDead()) return
      log.add(process.name, 'killed')
      process.life.die()
      for (const tell of deaths) tell()
    },
    /** SIGTERM; the supervisor is notified when the process has ended. */
    stop: async (process: SimProcess, drainMs: number): Promise<void> => {
      await process.stop(drainMs)
      for (const tell of deaths) tell()
    },
    /**
     * Asks the running process for something, as a request over the wire does.
     *
     * @returns undefined when none answers: refused, or dead before the answer
     */
    ask: <T>(work: (process: SimProcess) => Promise<T>): Promise<T | 'error' | undefined> => {
      const process = awake()
      if (!process) return Promise.resolve(undefined)
      return new Promise((resolve) => {
        const dead = () => {
          if (process.life.isDead()) answer(undefined)
        }
        deaths.add(dead)
        const answer = (value: T | 'error' | undefined): void => {
          deaths.delete(dead)
          resolve(value)
        }
        work(process).then(
          (value) => {
            if (process.life.isDead()) return
            answer(value)
            process.acknowledged()
          },
          (error: unknown) => {
            if (process.life.isDead()) return
            log.add(process.name, 'asked.refused', { error: messageOf(error) })
            answer('error')
          },
        )
      })
    },
    close: (): void => {
      for (const process of processes) process.life.die()
      stopTick()
      connection.close()
    },
  }
}
