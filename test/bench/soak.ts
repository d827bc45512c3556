/**
 * `npm run bench -- soak [--minutes M] [--stored N]`: a service that takes deliveries at half of what it can take, and two store
 * orders a second with their callbacks, for twenty minutes: nothing it holds grows, and its answers do not become slower. Then,
 * still under that load, it forgets a million deliveries whose time is over.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { statSync } from 'node:fs'
import { loadavg } from 'node:os'
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'
import Connection from 'better-sqlite3'
import { BENCH_PATH } from './bench-webhook.ts'
import { countOld, storeOldDeliveries } from './old-deliveries.ts'
import { buySteadily, openOrderBench } from './order.ts'
import { here } from './processes.ts'
import type { Reading } from './soak-probe.ts'
import type { Answers, SteadyLoad } from './steady-load.ts'
import type { Row } from './table.ts'

const MINUTES = 20
const STORED = 1_000_000
/** At full load, to find the maximum; the first of it warms the service up. */
const WARM_UP_MS = 5_000
const MAXIMUM_MS = 15_000
const READ_MS = 5_000
/** How long the service may take to come to rest. */
const REST_MS = 120_000
/** Numbers of the deliveries of one load. */
const LOADS = 1_000_000_000
const PATIENCE_MS = 600_000
export const PROBE = new URL('./soak-probe.ts', import.meta.url).href

/** What the service held, once it was at rest and its memory collected. */
export interface Held extends Pick<Reading, 'rss' | 'heap' | 'descriptors' | 'timers' | 'handles'> {
  /** Bytes of the write-ahead log. */
  wal: number
}

export interface Soak {
  before: Held
  after: Held
  /** The most of each in the steady time. */
  most: Held
  /** Of each quarter of the steady time, milliseconds. */
  p99s: number[]
  /** Deliveries and orders that were not answered as they should be. */
  failed: number
  /** In the steady time, and while old rows were forgotten. */
  steady: Kept
  forgetting: Kept & { tookMs: number; left: number }
}

/** The longest that the event loop was kept, the longest of each of its causes, and the longest answer. */
export interface Kept extends Pick<Reading, 'blockedMs' | 'commitMs' | 'statementMs' | 'foldMs' | 'collectionMs'> {
  longestMs: number
}

/** How much more than before the service may hold at the end, as a share; null: nothing more. */
const MORE: Record<keyof Held, number | null> = {
  rss: 0.2,
  heap: 0.2,
  descriptors: null,
  timers: null,
  handles: null,
  wal: 0.2,
}
const CAUSES = ['blockedMs', 'commitMs', 'statementMs', 'foldMs', 'collectionMs'] as const
const DRIFT_MAX = 1.5
const BLOCKED_MAX_MS = 50

const mostOf = (before: Held, name: keyof Held): number => before[name] * (1 + (MORE[name] ?? 0))

/** Each figure beside its bound. */
export function judge({ before, after, most, p99s, failed, steady, forgetting }: Soak) {
  const drift = (p99s.at(-1) ?? Number.NaN) / (p99s[0] ?? Number.NaN)
  const held = (Object.keys(MORE) as (keyof Held)[]).map((name) => ({
    name: NAMES[name],
    says: [before, most, after].map((at) => shown(name, at[name])),
    wanted: `at most ${shown(name, mostOf(before, name))}`,
    isGood: after[name] <= mostOf(before, name),
  }))
  const quarters = p99s.map((ms) => ms.toFixed(1)).join(', ')
  const others = [
    {
      name: `p99 by quarter, ms: ${quarters}`,
      says: [drift.toFixed(2)],
      wanted: `at most ${DRIFT_MAX}`,
      isGood: drift <= DRIFT_MAX,
    },
    { name: 'answers that failed', says: [String(failed)], wanted: 'none', isGood: failed === 0 },
    {
      name: `blocked while forgetting (else ${steady.blockedMs.toFixed(0)} ms)`,
      says: [`${forgetting.blockedMs.toFixed(0)} ms`],
      wanted: `at most ${BLOCKED_MAX_MS} ms`,
      isGood: forgetting.blockedMs <= BLOCKED_MAX_MS,
    },
    ...CAUSED.map(([cause, name]) => ({
      name: `${name} meanwhile (else ${steady[cause].toFixed(0)} ms)`,
      says: [`${forgetting[cause].toFixed(0)} ms`],
      wanted: '',
      isGood: true,
    })),
    {
      name: `longest answer meanwhile (else ${steady.longestMs.toFixed(0)} ms)`,
      says: [`${forgetting.longestMs.toFixed(0)} ms`],
      wanted: '',
      isGood: true,
    },
    {
      name: `old rows left after ${(forgetting.tookMs / 1_000).toFixed(0)} s`,
      says: [String(forgetting.left)],
      wanted: 'none',
      isGood: forgetting.left === 0,
    },
  ]
  const rowOf = ({ name, says, wanted, isGood }: (typeof others)[number]): Row => [
    name,
    ...says,
    wanted,
    wanted === '' ? '' : isGood ? 'ok' : 'missed',
  ]
  return {
    held: [['', 'before', 'at most', 'in the end', 'wanted'], ...held.map(rowOf)] as Row[],
    rows: others.map(rowOf),
    missed: [...held, ...others].filter(({ isGood }) => !isGood).map(({ name }) => name),
  }
}

export const CAUSED = [
  ['commitMs', 'longest commit, with its checkpoint,'],
  ['statementMs', 'longest other statement'],
  ['foldMs', 'longest folding of the log'],
  ['collectionMs', 'longest collection'],
] as const

const NAMES: Record<keyof Held, string> = {
  rss: 'memory (RSS)',
  heap: 'heap, collected',
  descriptors: 'descriptors',
  timers: 'timers',
  handles: 'other handles',
  wal: 'log (WAL)',
}
const isBytes = (name: keyof Held) => name === 'rss' || name === 'heap' || name === 'wal'
const shown = (name: keyof Held, value: number): string =>
  isBytes(name) ? `${(value / 1e6).toFixed(1)} MB` : String(value)

export async function benchSoak(say: (text: string) => void, { minutes = MINUTES, stored = STORED } = {}) {
  let file = ''
  say(`storing ${stored.toLocaleString('en')} old deliveries`)
  const bench = await openOrderBench([PROBE], async (configFile) => {
    file = await storeOldDeliveries(configFile, stored)
  })
  const target = `${bench.url}${BENCH_PATH}`
  const reader = new Connection(file, { readonly: true })
  const isDone = reader.prepare("select 1 from deliveries where state = 'stored' limit 1")
  const drained = async (): Promise<void> => {
    for (const end = performance.now() + PATIENCE_MS; isDone.get() !== undefined; await sleep(50)) {
      if (performance.now() > end) throw new Error('the service does not process what it has stored')
    }
  }
  const read = async (asked: 'read' | 'collect' = 'read'): Promise<Held & Reading> => ({
    ...(await readingOf(bench.service, asked)),
    wal: statSync(`${file}-wal`).size,
  })
  let buying: ReturnType<typeof buySteadily> | undefined
  try {
    say('the maximum')
    await bench.orders(0, 100)
    const warm = openLoad({ url: target, first: 0 })
    await sleep(WARM_UP_MS)
    await warm.end()
    await drained()
    const fromAt = performance.now()
    const full = openLoad({ url: target, first: LOADS })
    await sleep(MAXIMUM_MS)
    const { count, failed: refused } = await full.mark()
    if (refused > 0) throw new Error(`${refused} of ${count} deliveries were not answered with 200`)
    await full.end()
    await drained()
    const maximum = (count * 1_000) / (performance.now() - fromAt)
    const rate = Math.floor(maximum / 2)
    await sleep(2 * READ_MS)
    const before = await atRest(read)

    const load = openLoad({ url: target, rate, first: 2 * LOADS })
    buying = buySteadily(bench)
    const most = { ...before }
    const steady: Kept = { blockedMs: 0, commitMs: 0, statementMs: 0, foldMs: 0, collectionMs: 0, longestMs: 0 }
    const p99s: number[] = []
    let failed = 0
    await read()
    for (let quarter = 1; quarter <= 4; quarter += 1) {
      say(`quarter ${quarter} of 4, ${rate} deliveries a second`)
      for (const end = performance.now() + minutes * 15_000; performance.now() < end; ) {
        await sleep(Math.min(READ_MS, end - performance.now()))
        const now = await read()
        for (const name of Object.keys(most) as (keyof Held)[]) most[name] = Math.max(most[name], now[name])
        for (const name of CAUSES) steady[name] = Math.max(steady[name], now[name])
      }
      const answers = await load.mark()
      p99s.push(answers.p99)
      say(`  p99 ${answers.p99.toFixed(1)} ms`)
      failed += answers.failed
      steady.longestMs = Math.max(steady.longestMs, answers.longest)
    }
    say('forgetting')
    const forgot = await Promise.race([readingOf(bench.service, 'forget'), load.ended])
    const answers = await load.mark()
    failed += answers.failed
    await Promise.all([load.end(), buying.end()])
    say('rest')
    await drained()
    const after = await returned(() => atRest(read), before)
    const forgetting = {
      ...(Object.fromEntries(CAUSES.map((name) => [name, forgot[name]])) as Pick<Kept, (typeof CAUSES)[number]>),
      longestMs: answers.longest,
      tookMs: forgot.forgotMs ?? 0,
      left: countOld(reader),
    }
    const soak: Soak = { before, after, most, p99s, failed, steady, forgetting }
    const { held, rows, missed } = judge(soak)
    const machine: Row[] = [
      ['maximum, with processing', `${Math.round(maximum)} /s`],
      ['load of the machine at the end', (loadavg()[0] ?? 0).toFixed(1)],
    ]
    return {
      held,
      rows: [...rows, ...machine],
      missed,
      figures: { minutes, stored, maximum: Math.round(maximum), ...soak },
    }
  } finally {
    void buying?.end()
    reader.close()
    await bench.close()
  }
}

export async function readingOf(service: ChildProcess, asked: 'read' | 'collect' | 'forget'): Promise<Reading> {
  const answer = once(service, 'message')
  service.send(asked)
  const [reading] = (await answer) as [Reading]
  return reading
}

const RESTED = ['rss', 'heap', 'descriptors', 'timers', 'handles', 'wal'] as const

/** The least of three readings: what a tick holds for an instant is not held at rest. */
async function atRest(read: (asked: 'collect') => Promise<Held>): Promise<Held> {
  const readings = [await read('collect')]
  for (let more = 1; more <= 2; more += 1) {
    await sleep(1_300)
    readings.push(await read('collect'))
  }
  const leastOf = (name: keyof Held) => Math.min(...readings.map((one) => one[name]))
  return Object.fromEntries(RESTED.map((name) => [name, leastOf(name)])) as unknown as Held
}

/** What the service holds once it is back at what it held before, or after its time to rest. */
async function returned(read: () => Promise<Held>, before: Held): Promise<Held> {
  for (const end = performance.now() + REST_MS; ; await sleep(READ_MS)) {
    const held = await read()
    if (RESTED.every((name) => held[name] <= mostOf(before, name)) || performance.now() > end) return held
  }
}

export const openLoad = (wanted: SteadyLoad) => openAnswering<Answers>('steady-load.ts', JSON.stringify(wanted))

/** A process of the bench that answers each line with what it measured since the line before. */
export function openAnswering<T>(name: string, argument: string) {
  const child = spawn(process.execPath, [here(name), argument], { stdio: ['pipe', 'pipe', 'inherit'] })
  const lines = createInterface(child.stdout)
  const ended = once(child, 'exit').then((): never => {
    throw new Error(`${name} ended`)
  })
  ended.catch(() => {})
  const mark = async (): Promise<T> => {
    const line = once(lines, 'line')
    child.stdin.write('\n')
    const [text] = (await Promise.race([line, ended])) as [string]
    return JSON.parse(text) as T
  }
  const end = async (): Promise<void> => {
    child.stdin.end()
    if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
  }
  return { mark, end, ended }
}
