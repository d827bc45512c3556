/** A app whose database is backed up after every commit, and can be put back to any of them. */
import { rmSync } from 'node:fs'
import Connection from 'better-sqlite3'
import { onTestFinished } from 'vitest'
import { Failure } from '../../src/errors.ts'
import { noteRestore, recogniseRestore } from '../../src/reconciliation/restore.ts'
import type { Database } from '../../src/storage/database.ts'
import { openMarker } from '../../src/storage/marker.ts'
import { countOffers } from '../../src/storage/offers.ts'
import { clearRestoreHold, currentEpoch, restoreHold, START_ACTOR, setStoresMade } from '../../src/storage/restores.ts'
import { dataKeys } from '../../src/storage/schema.ts'
import { sqliteDatabase } from '../../src/storage/sqlite/sqlite.ts'
import { build } from '../../src/storage/statement.ts'
import { databaseFile } from './database.ts'
import { emptyDatabase } from './empty-database.ts'
import { type OrderLine, openTestApp, type TestAppOptions } from './test-app.ts'

export type RestoreWorld = Awaited<ReturnType<typeof openRestoreWorld>>

export async function openRestoreWorld(options: TestAppOptions = {}) {
  const backups: Buffer[] = []
  let connection = new Connection(emptyDatabase())
  let current = engine(connection)
  let changesSeen = -1
  const backUpAfterCommit = (): void => {
    const [{ changes = 0 } = {}] = [
      connection.prepare('select total_changes() as changes').get() as { changes?: number },
    ]
    if (changes === changesSeen) return
    changesSeen = changes
    backups.push(connection.serialize())
  }
  const database: Database = {
    query: (statement) => current.query(statement),
    commit: async (changes) => {
      const touched = await current.commit(changes)
      backUpAfterCommit()
      return touched
    },
    close: () => current.close(),
  }
  onTestFinished(() => database.close())
  const file = databaseFile()
  const marker = openMarker(file)
  const app = await openTestApp({ ...options, database, marker })
  const { db, now } = app
  const { newId, log } = app.ordering
  const keys = await db.query(build.select().from(dataKeys))
  /** The stores of the first database are as new as itself. */
  let storeIds: readonly string[] = []
  await recogniseRestore({ db, marker, now, newId, log, storeIds })

  const swap = (bytes: Buffer): void => {
    connection = new Connection(bytes)
    connection.pragma('foreign_keys = ON')
    changesSeen = -1
    current = engine(connection)
  }
  /** A new process, on whatever database is there, as after a start. */
  const start = async (): Promise<boolean> => {
    const recognised = await recogniseRestore({ db, marker, now, newId, log, storeIds })
    await app.restart()
    // The service reads the catalogue at its start, and a backup may be older than the first reading.
    const [offers] = await db.query(countOffers())
    if (offers?.total === 0) await app.offers()
    return recognised
  }
  /** Puts a backup back together with the marker of its time, as the snapshot of a machine does. */
  const copyBackWithMarker = async (bytes: Buffer): Promise<void> => {
    swap(bytes)
    const epoch = await currentEpoch(db)
    await marker.begin({ epoch: epoch?.epoch ?? 1, attempt: null })
    await start()
  }
  /** Everything that is due, reattaching included. A list that cannot be read now is read at the next round. */
  const work = async (): Promise<void> => {
    await app.runtime.reattachOrders().catch((error: unknown) => {
      if (!(error instanceof Failure)) throw error
    })
    await app.settle()
  }
  const passing =
    (step: () => Promise<void>) =>
    async (ms: number, stepMs: number): Promise<void> => {
      for (const end = now() + ms; now() < end; ) {
        app.move(Math.min(stepMs, end - now()))
        await step()
      }
    }
  return {
    app,
    backups,
    start,
    work,
    pass: passing(work),
    /** The same beside a shop, whose orders are read first. */
    passBesideShop: passing(async () => {
      while ((await app.runtime.work.poll()) > 0);
      await work()
    }),
    markerFile: `${file}.marker`,
    /** The database as it is now. */
    backUp: (): Buffer => connection.serialize(),
    /** Puts a backup back as `quayside restore` does, and starts. */
    restore: async (bytes: Buffer): Promise<void> => {
      swap(bytes)
      const epochMin = marker.read()?.epoch ?? 0
      const { epoch } = await noteRestore({ db, now, newId }, { cause: 'restored', epochMin, actor: 'test' })
      await marker.begin({ epoch, attempt: null })
      await start()
    },
    /** The same, ended by a crash before the marker is written; then a start. */
    restoreUnmarked: async (bytes: Buffer): Promise<void> => {
      swap(bytes)
      const epochMin = marker.read()?.epoch ?? 0
      await noteRestore({ db, now, newId }, { cause: 'restored', epochMin, actor: 'test' })
      await start()
    },
    /** Copies a backup back without a word, and starts; @returns whether that was recognised */
    copyBack: (bytes: Buffer): Promise<boolean> => {
      swap(bytes)
      return start()
    },
    copyBackWithMarker,
    /** Puts a backup back as if nothing knew of restores: the seeded mistake. */
    copyBackUnnoticed: async (bytes: Buffer): Promise<void> => {
      await copyBackWithMarker(bytes)
      if ((await restoreHold(db))?.actor === START_ACTOR) await db.commit([clearRestoreHold()])
    },
    /**
     * Loses the database and its marker with their disk, and starts on a new one.
     *
     * @param made ids of the stores that are as new as it
     */
    lose: async (made: string[] = []): Promise<void> => {
      rmSync(`${file}.marker`, { force: true })
      connection = new Connection(emptyDatabase())
      changesSeen = -1
      current = engine(connection)
      await db.commit([{ statement: build.insert(dataKeys).values(keys), rows: keys.length }])
      await db.commit([setStoresMade(made, now())])
      storeIds = app.ordering.storeIds
      await start()
    },
    /** What the store hands in: the same again is the same order. */
    handIn: (reference: string, lines: OrderLine[]) => app.order(reference, lines),
  }
}

function engine(connection: Connection.Database): Database {
  return sqliteDatabase(connection, {
    onFatal: (failure) => {
      throw failure
    },
  })
}
