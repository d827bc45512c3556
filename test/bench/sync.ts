/**
 * `npm run bench -- sync [--offers N]`: a sync against its floor, in the same run and by turns; what it writes, asks for
 * and keeps in memory. The supplier is the sandbox with a generated catalogue, in a process of its own.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { loadavg, tmpdir } from 'node:os'
import path from 'node:path'
import { firstLine, here, medianOf } from './processes.ts'
import type { SyncFigures } from './sync-child.ts'
import type { Row } from './table.ts'

const OFFERS = 200_000
const ROUNDS = 3
const API_KEY = 'sk_bench_0123456789'
/** As `npm start` and the image start Node: a larger nursery costs memory and saves nothing here. */
const FLAGS = ['--max-semi-space-size=16']
const MEGABYTE = 1_000_000

type Mode = 'sync' | 'floor' | 'floor-import'

export interface SyncLimits {
  noChange: number
  firstImport: number
  memoryGrowth: number
  memoryBytes: number
}

const limits: SyncLimits = { noChange: 2, firstImport: 2, memoryGrowth: 1.2, memoryBytes: 300 * MEGABYTE }

/** @param size how many offers for the speed, and half as many and five times as many for the memory; how many rounds */
export async function benchSync(say: (text: string) => void, { offers = OFFERS, rounds = ROUNDS } = {}) {
  const folder = mkdtempSync(path.join(tmpdir(), 'quayside-bench-'))
  const load = loadavg()[0] ?? Number.NaN
  try {
    const speed = await measureSpeed(say, folder, offers, rounds)
    const memory = await measureMemory(say, folder, offers)
    return { ...judge(speed, memory, offers), load }
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

async function measureSpeed(say: (text: string) => void, folder: string, offers: number, count: number) {
  const supplier = await openSupplier(offers)
  const run = async (mode: Mode, name: string) => {
    const figures = await runChild(mode, path.join(folder, name), supplier.baseUrl)
    say(`  ${mode}: ${(figures.wallMs / 1_000).toFixed(1)} s, ${(figures.cpuMs / 1_000).toFixed(1)} s of a core`)
    return figures
  }
  const rounds: Record<'floorImport' | 'firstImport' | 'floor' | 'noChange', SyncFigures[]> = {
    floorImport: [],
    firstImport: [],
    floor: [],
    noChange: [],
  }
  for (let round = 1; round <= count; round += 1) {
    say(`first import of ${offers} offers: round ${round} of ${count}`)
    rounds.floorImport.push(await run('floor-import', `floor-${round}.db`))
    rounds.firstImport.push(await run('sync', `sync-${round}.db`))
  }
  const before = supplier.cpuMs()
  for (let round = 1; round <= count; round += 1) {
    say(`no change in ${offers} offers: round ${round} of ${count}`)
    rounds.floor.push(await run('floor', 'floor-1.db'))
    rounds.noChange.push(await run('sync', 'sync-1.db'))
  }
  const supplierMs = (supplier.cpuMs() - before) / (2 * count)
  say('1 % of the prices changed')
  await supplier.reprice(100)
  const onePercent = await run('sync', 'sync-1.db')
  const after = await run('sync', 'sync-1.db')
  await supplier.close()
  return { ...rounds, onePercent, after, supplierMs }
}

async function measureMemory(say: (text: string) => void, folder: string, offers: number) {
  const sizes = [offers / 2, offers * 5]
  const peaks: number[] = []
  for (const size of sizes) {
    say(`memory at ${size} offers`)
    const supplier = await openSupplier(size)
    const file = path.join(folder, `memory-${size}.db`)
    const imported = await runChild('sync', file, supplier.baseUrl)
    const again = await runChild('sync', file, supplier.baseUrl)
    peaks.push(Math.max(imported.peakBytes, again.peakBytes))
    if (imported.offers !== size || again.offers !== size) throw new Error('a sync did not see every offer')
    await supplier.close()
    rmSync(file)
  }
  const [small = Number.NaN, large = Number.NaN] = peaks
  return { sizes, small, large }
}

type Speed = Awaited<ReturnType<typeof measureSpeed>>
type Memory = Awaited<ReturnType<typeof measureMemory>>

function judge(speed: Speed, memory: Memory, offers: number) {
  const of = (list: SyncFigures[], key: 'wallMs' | 'cpuMs') => medianOf(list.map((one) => one[key]))
  const pages = Math.ceil(offers / 100)
  const ratios = {
    noChange: of(speed.noChange, 'wallMs') / of(speed.floor, 'wallMs'),
    noChangeCpu: of(speed.noChange, 'cpuMs') / of(speed.floor, 'cpuMs'),
    firstImport: of(speed.firstImport, 'wallMs') / of(speed.floorImport, 'wallMs'),
    firstImportCpu: of(speed.firstImport, 'cpuMs') / of(speed.floorImport, 'cpuMs'),
    memoryGrowth: memory.large / memory.small,
  }
  const onePercent = Math.ceil(offers / 100)
  const checks = {
    noChange: Math.max(ratios.noChange, ratios.noChangeCpu) <= limits.noChange,
    firstImport: Math.max(ratios.firstImport, ratios.firstImportCpu) <= limits.firstImport,
    memoryGrowth: ratios.memoryGrowth <= limits.memoryGrowth,
    memory: memory.large < limits.memoryBytes,
    requests: [...speed.noChange, ...speed.firstImport].every(({ requests }) => requests <= pages + 1),
    // One row of the run for each second that passed, and two at its ends.
    noChangeWrites: speed.noChange.every(({ written, wallMs }) => written <= wallMs / 1_000 + 4),
    onePercent: speed.onePercent.offersChanged === onePercent && speed.onePercent.queuedForStore === onePercent,
    onePercentRows: speed.onePercent.offerRows === onePercent && onePercentWrites(speed.onePercent),
    secondRun: speed.after.offersChanged === 0 && speed.after.queuedForStore === 0,
    errors: [...speed.noChange, ...speed.firstImport, speed.onePercent].every(({ error }) => error === null),
  }
  const missed = Object.entries(checks).flatMap(([name, held]) => (held ? [] : [name]))
  return { ratios, missed, figures: figuresOf(speed, memory), rows: rowsOf(speed, memory, ratios) }
}

/**
 * Whether a run wrote the offers that differ and no other: beside them, what is recorded of each, and for each page on
 * which one differs the run and what is queued for the store. One row of the run for each second that passed, and two at its ends.
 */
const onePercentWrites = ({ written, offersChanged, changeRows, pages, wallMs }: SyncFigures): boolean =>
  written <= offersChanged + changeRows + 2 * Math.min(pages, offersChanged) + wallMs / 1_000 + 4

function figuresOf(speed: Speed, { small, large, sizes }: Memory) {
  const seconds = (list: SyncFigures[]) => Number((medianOf(list.map(({ wallMs }) => wallMs)) / 1_000).toFixed(2))
  const { offersChanged, offerRows, queuedForStore, written } = speed.onePercent
  return {
    floorS: seconds(speed.floor),
    noChangeS: seconds(speed.noChange),
    floorImportS: seconds(speed.floorImport),
    firstImportS: seconds(speed.firstImport),
    supplierCpuS: Number((speed.supplierMs / 1_000).toFixed(2)),
    requests: speed.noChange[0]?.requests,
    noChangeWrites: Math.max(...speed.noChange.map((one) => one.written)),
    onePercent: { offersChanged, offerRows, queuedForStore, written },
    memoryMB: Object.fromEntries(sizes.map((size, at) => [size, Math.round(((at ? large : small) ?? 0) / MEGABYTE)])),
  }
}

function rowsOf(speed: Speed, memory: Memory, ratios: Record<string, number>): Row[] {
  const figures = figuresOf(speed, memory)
  const ratio = (name: string) => (ratios[name] ?? Number.NaN).toFixed(2)
  const { onePercent } = figures
  return [
    ['no change: the floor', `${figures.floorS} s`],
    ['no change: the sync', `${figures.noChangeS} s`, `ratio ${ratio('noChange')}, of CPU ${ratio('noChangeCpu')}`],
    ['no change: the supplier worked', `${figures.supplierCpuS} s`],
    ['first import: the floor', `${figures.floorImportS} s`],
    ['first import', `${figures.firstImportS} s`, `ratio ${ratio('firstImport')}, of CPU ${ratio('firstImportCpu')}`],
    ['requests for the list', `${figures.requests}`],
    ['rows written, no change', `${figures.noChangeWrites}`],
    ['1 % changed: offers', `${onePercent.offersChanged}`, `queued for the store ${onePercent.queuedForStore}`],
    ['1 % changed: rows written', `${onePercent.written}`, `of offers ${onePercent.offerRows}`],
    ...Object.entries(figures.memoryMB).map(([size, mb]) => [`peak memory, ${size} offers`, `${mb} MB`]),
    ['memory, the larger to the smaller', ratio('memoryGrowth')],
  ]
}

async function runChild(mode: Mode, file: string, baseUrl: string): Promise<SyncFigures> {
  const given = [...FLAGS, here('sync-child.ts'), mode, file, baseUrl, API_KEY]
  const child = spawn(process.execPath, given, { stdio: ['ignore', 'pipe', 'inherit'] })
  const line = await firstLine(child)
  if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
  return JSON.parse(line) as SyncFigures
}

async function openSupplier(offers: number) {
  const child = spawn(process.execPath, [here('sync-supplier.ts'), String(offers), API_KEY], {
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  const { baseUrl, controlUrl } = JSON.parse(await firstLine(child)) as { baseUrl: string; controlUrl: string }
  return {
    baseUrl,
    /** What its process has used of a core so far, by the kernel: user and system time in ticks of 10 ms. */
    cpuMs: () => {
      const fields = readFileSync(`/proc/${child.pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? []
      return (Number(fields[11]) + Number(fields[12])) * 10
    },
    reprice: async (every: number) => {
      const headers = { 'content-type': 'application/json' }
      const answer = await fetch(`${controlUrl}/offers`, { method: 'POST', headers, body: JSON.stringify({ every }) })
      if (!answer.ok) throw new Error(`the sandbox answered ${answer.status}`)
    },
    close: async () => {
      child.stdin.end()
      if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
    },
  }
}
