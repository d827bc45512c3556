/** Whether a worker finds the database that the worker before it had, on a real server. */
import { randomBytes } from 'node:crypto'
import { performance } from 'node:perf_hooks'
import { describe, expect, test } from 'vitest'
import { createIds } from '../../src/ids.ts'
import { PROOF_SKEW_MS } from '../../src/ordering/scan.ts'
import { recogniseServer } from '../../src/reconciliation/restore.ts'
import { openPostgres } from '../../src/storage/postgres/open.ts'
import { clearRestoreHold, currentEpoch, restoreHold } from '../../src/storage/restores.ts'
import { hasPostgres, newPostgresUrl } from '../support/postgres.ts'
import { run, withDatabase } from '../support/postgres-server.ts'

const DAY_MS = 24 * 3_600_000
const log = { info: () => undefined, warn: () => undefined, error: () => undefined }

/** A worker begins, and gives its lease back. */
async function begin(url: string) {
  const now = Date.now
  const db = await openPostgres({ url, now })
  const { signal } = new AbortController()
  const lease = await db.elect({ owner: 'test', monotonic: () => performance.now(), signal, log })
  if (!lease) throw new Error('there is another worker')
  const newId = createIds(now, randomBytes)
  const wasPutBack = await recogniseServer({ db, lease, now, newId, log, storeIds: [] })
  const epoch = await currentEpoch(db)
  const hold = await restoreHold(db)
  await db.commit([clearRestoreHold()])
  await lease.release()
  await db.close()
  return { wasPutBack, epoch, hold }
}

/** As after a restore from a dump, whose tables are others. */
const COPIED = `alter table worker_lease rename to old; create table worker_lease (like old including all);
  insert into worker_lease select * from old; drop table old;`

describe.runIf(hasPostgres)('a worker', () => {
  test('recognises a copy of the database that was made by createdb and renamed', async () => {
    const url = await newPostgresUrl()
    await begin(url)
    const name = new URL(url).pathname.slice(1)
    const server = withDatabase(url, 'postgres')
    await run(server, `create database ${name}_before template ${name}`)
    await run(server, `drop database ${name}`)
    await run(server, `alter database ${name}_before rename to ${name}`)
    expect(await begin(url)).toMatchObject({ wasPutBack: true, epoch: { epoch: 2 } })
    expect(await begin(url)).toMatchObject({ wasPutBack: false, epoch: { epoch: 2 } })
  })

  test('buys nothing after each taking of the lease until the newest orders of the supplier were compared', async () => {
    const url = await newPostgresUrl()
    await begin(url)
    expect(await begin(url)).toMatchObject({ wasPutBack: false, hold: { actor: 'start' } })
  })

  test('takes no update for a restore, nor a worker of the version before that came in between', async () => {
    const url = await newPostgresUrl()
    await begin(url)
    await run(url, "delete from settings where name = 'worker_database'")
    expect(await begin(url)).toMatchObject({ wasPutBack: false })
    // The version before notes the server alone, as it finds it.
    await run(url, 'update worker_lease set epoch = epoch + 1')
    expect(await begin(url)).toMatchObject({ wasPutBack: false, epoch: { epoch: 1 } })
  })

  test('searches for lost orders from the time of the dump, although a web process has taken an order since', async () => {
    const url = await newPostgresUrl()
    await begin(url)
    const dumpedAt = Date.now() - 3 * DAY_MS
    expect(3 * DAY_MS).toBeGreaterThan(PROOF_SKEW_MS)
    await run(
      url,
      `${COPIED}
      insert into balance_readings (id, read_at, amount_minor, currency) values ('b', ${dumpedAt}, 100, 'EUR');
      insert into store_orders (id, store, reference, body_digest, received_at) values ('o', 's', 'r', 'd', ${Date.now()})`,
    )
    expect(await begin(url)).toMatchObject({ wasPutBack: true, epoch: { unknownFrom: dumpedAt } })
  })
})
