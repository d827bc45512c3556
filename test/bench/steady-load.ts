/**
 * The load of the soak, in a process of its own: `node steady-load.ts '{"url":…,"rate":1000}'` sends so many deliveries a second
 * whether or not those before are answered, or, without a rate, as many as 64 connections carry. To each line that it reads
 * it answers with what it measured since the line before; it ends with its input.
 */
import { once } from 'node:events'
import { createHistogram } from 'node:perf_hooks'
import { createInterface } from 'node:readline'
import { Pool } from 'undici'
import { BENCH_EVENT, benchDelivery } from './deliveries.ts'

export interface SteadyLoad {
  /** Where deliveries go: `http://127.0.0.1:8080/webhooks/supplier`. */
  url: string
  /** A second; absent: as many as can be. */
  rate?: number
  /** Number of the first delivery. */
  first: number
}

export interface Answers {
  count: number
  /** Deliveries that were not answered with 200. */
  failed: number
  /** Milliseconds from when a delivery was due to its answer. */
  p50: number
  p99: number
  longest: number
}

const CONNECTIONS = 64
/** Deliveries that wait for their answer: so many are seconds of load, and the service does not keep up. */
const WAITING_MAX = 20_000

const { url, rate, first } = JSON.parse(process.argv[2] ?? '{}') as SteadyLoad
const { origin, pathname } = new URL(url)
const pool = new Pool(origin, { connections: CONNECTIONS })
const times = createHistogram()
let next = first
let waiting = 0
let failed = 0

async function send(dueAt: number): Promise<void> {
  waiting += 1
  if (waiting > WAITING_MAX) throw new Error(`${WAITING_MAX} deliveries wait for their answer`)
  const { method, headers, body } = benchDelivery(next, false, BENCH_EVENT)
  next += 1
  try {
    const answer = await pool.request({ method, path: pathname, headers, body })
    await answer.body.dump()
    if (answer.statusCode !== 200) failed += 1
  } catch {
    failed += 1
  }
  times.record(Math.max(1, Math.round((performance.now() - dueAt) * 1e3)))
  waiting -= 1
}

let isOver = false
const startedAt = performance.now()
async function sendAll(): Promise<void> {
  while (!isOver) await send(performance.now())
}
let sent = 0
const timer =
  rate === undefined
    ? undefined
    : setInterval(() => {
        const due = ((performance.now() - startedAt) / 1_000) * rate
        for (; sent < due; sent += 1) void send(startedAt + (sent / rate) * 1_000)
      }, 1)
const work = rate === undefined ? Array.from({ length: CONNECTIONS }, sendAll) : []

const lines = createInterface(process.stdin)
lines.on('line', () => {
  const ms = (microseconds: number) => microseconds / 1e3
  const answers: Answers = {
    count: times.count,
    failed,
    p50: ms(times.percentile(50)),
    p99: ms(times.percentile(99)),
    longest: ms(times.max),
  }
  times.reset()
  failed = 0
  process.stdout.write(`${JSON.stringify(answers)}\n`)
})
await once(lines, 'close')
isOver = true
clearInterval(timer)
await Promise.all(work)
await pool.close()
