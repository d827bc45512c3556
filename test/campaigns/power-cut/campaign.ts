/** Runs of real processes under strace, and what power cuts at any instant of them leave behind. */
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { createInterface } from 'node:readline'
import { sql } from 'drizzle-orm'
import { messageOf } from '../../../src/errors.ts'
import { Secret } from '../../../src/secret.ts'
import { deliveries } from '../../../src/storage/schema.ts'
import { openDatabase } from '../../../src/storage/sqlite/open.ts'
import { build } from '../../../src/storage/statement.ts'
import { openVault } from '../../../src/vault/vault.ts'
import { TEST_NOW } from '../../support/database.ts'
import { orderEvent, signedDelivery, timestampOf } from '../../support/delivery.ts'
import { exchange, requestBytes } from '../../support/raw-http.ts'
import { seeded } from '../../support/seeded.ts'
import { type Answer, acknowledgedDeliveries, acknowledgedEarly, acknowledgedNames, syncsOf } from './answers.ts'
import { imageAt } from './image.ts'
import { type Call, readCalls, traced } from './strace.ts'

const DATABASE = 'quayside.db'
const LOG = `${DATABASE}-wal`
const KEY = 'QTrGnJ7+vkHvxYbWkC6B1w0yq5qkq3dZJ4m6yX2n8tA='

/** Deliveries that are written in one turn: they share a commit, and so one fsync. Between two bursts as many come alone. */
const BURST = 8

/** What a run left: its calls, and what it acknowledged. */
export interface Run {
  calls: Call[]
  answers: Answer[]
  /** Fsyncs of the write-ahead log. */
  syncs: number
  /** Acknowledged before the disk had it. */
  early: Answer[]
}

const program = (name: string): string => path.join(import.meta.dirname, name)

/** A folder for runs and their images; the caller removes it. */
export const openFolder = (): string => mkdtempSync(path.join(tmpdir(), 'quayside-power-cut-'))

/** Commits one after the other through the real engine. */
export async function runCommits(folder: string, count: number): Promise<Run> {
  const data = path.join(folder, 'commits')
  mkdirSync(data)
  const log = path.join(folder, 'commits.strace')
  const child = traced(log, program('committer.ts'), [path.join(data, DATABASE), String(count)])
  child.stdout.resume()
  await child.ended
  const calls = readCalls(log, data)
  return judged(calls, acknowledgedNames(calls, /^committed-\d+$/m))
}

/** Deliveries through the real endpoint. @param synchronous `NORMAL` is the control: what Quayside must never run with */
export async function runDeliveries(folder: string, count: number, synchronous: 'FULL' | 'NORMAL'): Promise<Run> {
  const data = path.join(folder, synchronous)
  mkdirSync(data)
  const log = path.join(folder, `${synchronous}.strace`)
  const child = traced(log, program('receiver.ts'), [path.join(data, DATABASE), KEY, synchronous])
  try {
    const [line] = (await once(createInterface({ input: child.stdout }), 'line')) as [string]
    const [port = 0, pid = 0] = line.split(' ').map(Number)
    const names = Array.from({ length: count }, (_, n) => nameOf(n + 1))
    for (let n = 0; n < count; n += 2 * BURST) {
      await deliver({ port, pid }, names.slice(n, n + BURST))
      for (const name of names.slice(n + BURST, n + 2 * BURST)) await deliver({ port, pid }, [name])
    }
    await child.end()
  } finally {
    child.kill()
  }
  const calls = readCalls(log, data)
  return judged(calls, acknowledgedDeliveries(calls))
}

const judged = (calls: Call[], answers: Answer[]): Run => ({
  calls,
  answers,
  syncs: syncsOf(calls, LOG),
  early: acknowledgedEarly(calls, LOG, answers),
})

/**
 * Opens a connection for each delivery and writes all of them while the program is stopped, so that it finds them in one
 * turn; resolves when all are answered.
 */
async function deliver({ port, pid }: { port: number; pid: number }, names: string[]): Promise<void> {
  const sockets = await Promise.all(
    names.map(async () => {
      const socket = connect(port, '127.0.0.1')
      await once(socket, 'connect')
      return socket
    }),
  )
  // Connections are taken in one after the other: when this one is answered, all before it are open.
  await exchange(port, requestBytes({ method: 'GET', target: '/livez' }))
  const closed = Promise.all(sockets.map((socket) => once(socket.resume(), 'close')))
  process.kill(pid, 'SIGSTOP')
  const written = sockets.map(async (socket, place) => {
    socket.write(requestBytes({ target: '/webhooks/supplier', ...deliveryOf(names[place] ?? '') }))
    if (socket.writableNeedDrain) await once(socket, 'drain')
  })
  await Promise.all(written).finally(() => process.kill(pid, 'SIGCONT'))
  await closed
}

const nameOf = (n: number): string => `dlv_${String(n).padStart(6, '0')}`

/** The same delivery whenever it is asked for: what an image holds is compared with it. */
const deliveryOf = (name: string) =>
  signedDelivery({ deliveryId: name, timestamp: timestampOf(TEST_NOW), body: orderEvent({ order_id: name }) })

/** What became of the images of one run. */
export interface Verdict {
  images: number
  /** Deliveries that had been acknowledged at the cut, over all images. */
  acknowledged: number
  /** Images that miss at least one of those. */
  losing: number
  /** Images that do not open or are not whole, with the reason. */
  broken: string[]
}

/**
 * Cuts the power at random instants, half of them right after an acknowledgement, and opens what is left as the next
 * start would.
 */
export async function cutPower(folder: string, run: Run, { images, seed }: { images: number; seed: number }) {
  const random = seeded(seed)
  const verdict: Verdict = { images, acknowledged: 0, losing: 0, broken: [] }
  const places = [run.calls, run.answers].map((list) => list.map((one) => ('at' in one ? one.at + 1 : one.began + 1)))
  for (let n = 0; n < images; n += 1) {
    const among = places[n % 2] ?? []
    const cut = among[Math.floor(random() * among.length)] ?? 0
    const expected = run.answers.filter(({ at }) => at < cut).map(({ name }) => name)
    const left = path.join(folder, `image-${n}`)
    mkdirSync(left)
    for (const [name, bytes] of imageAt(run.calls, cut, random)) writeFileSync(path.join(left, name), bytes)
    const found = await readImage(path.join(left, DATABASE)).catch((error: unknown) => messageOf(error))
    verdict.acknowledged += expected.length
    if (typeof found === 'string') verdict.broken.push(`image ${n}, seed ${seed}: ${found}`)
    else if (expected.some((name) => !found.has(name))) verdict.losing += 1
    rmSync(left, { recursive: true })
  }
  return verdict
}

/**
 * Opens an image with the real engine and reads every delivery in it.
 *
 * @returns the delivery IDs whose bodies are the bytes that were sent
 * @throws when it does not open, or SQLite finds it damaged
 */
async function readImage(file: string): Promise<Set<string>> {
  const now = () => TEST_NOW
  const db = openDatabase({ file, now })
  try {
    const damage = [
      ...(await db.query(sql<{ integrityCheck: string }>`pragma integrity_check`)).map((row) => row.integrityCheck),
      ...(await db.query(sql`pragma foreign_key_check`)).map((row) => JSON.stringify(row)),
    ]
    if (damage.join() !== 'ok') throw new Error(damage.join('; '))
    const rows = await db.query(build.select().from(deliveries))
    const vault = await openVault({ database: db, keyEncryptionKey: new Secret(KEY), now })
    const whole = rows.filter(({ id, deliveryId, ciphertext, keyId }) =>
      vault.open({ table: 'deliveries', row: id }, ciphertext, keyId).equals(deliveryOf(deliveryId).body),
    )
    return new Set(whole.map(({ deliveryId }) => deliveryId))
  } finally {
    await db.close()
  }
}
