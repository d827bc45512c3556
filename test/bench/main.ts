/** `npm run bench`, or `npm run bench -- <name>`: tables for people and, after each, one JSON line. A missed bound is an exit with 1. */
import { parseArgs } from 'node:util'
import { openServer } from '../support/postgres-server.ts'
import { benchCounts } from './counts.ts'
import { benchDryRun } from './dry-run.ts'
import { benchForget } from './forget.ts'
import { benchGrowth } from './growth.ts'
import { benchJourneys, journeyRows } from './journeys.ts'
import { benchOrder } from './order.ts'
import { benchPages } from './pages.ts'
import { benchPeers } from './peers.ts'
import { benchQuota } from './quota.ts'
import { benchReceive, missed, type Ratios, ratioRows } from './receive.ts'
import { benchScale } from './scale.ts'
import { benchSoak } from './soak.ts'
import { benchStores } from './stores.ts'
import { benchSync } from './sync.ts'
import { table } from './table.ts'

const say = (text: string): void => {
  process.stderr.write(`${text}\n`)
}
const [, , name, flag, count] = process.argv
const benches: Record<string, { flags: string; run: () => Promise<void> }> = {
  receive: { flags: '', run: async () => held([await benchReceive(say)]) },
  order: { flags: '', run: async () => held([await benchOrder(say)]) },
  growth: { flags: ' [--stored N] [--folder F] [--prepare]', run: growth },
  quota: { flags: ' [--long] [--only NAME] [--rounds N]', run: quota },
  counts: { flags: ' [--rounds N]', run: counts },
  sync: { flags: ' [--offers N] [--rounds N]', run: sync },
  'dry-run': { flags: ' [--offers N]', run: dryRun },
  pages: { flags: ' [--stored N] [--folder F]', run: pages },
  journeys: { flags: ' [--list]', run: journeys },
  peers: { flags: '', run: peers },
  scale: { flags: ' [--rounds N] [--deliveries N] [--orders N]', run: scale },
  stores: { flags: ' [--stores N] [--offers N] [--rounds N]', run: stores },
  soak: { flags: ' [--minutes M] [--stored N]', run: soak },
  forget: { flags: ' [--stored N] [--seconds S] [--folder F] [--prepare]', run: forget },
}
if (name === undefined) {
  await held([await benchReceive(say), await benchOrder(say)])
  await quota()
} else if (benches[name]) {
  await benches[name].run()
} else {
  say(`usage: npm run bench, which runs receive, order and quota, or npm run bench -- and one of:`)
  for (const [one, { flags }] of Object.entries(benches)) say(`  ${one}${flags}`)
  process.exitCode = 2
}

type Held = Pick<Awaited<ReturnType<typeof benchReceive>>, 'ratios' | 'rows' | 'figures'>

/** Says what was measured, and each ratio beside its bound. */
function held(parts: Held[]): void {
  const ratios: Ratios = Object.assign({}, ...parts.map((part) => part.ratios))
  const bad = missed(ratios)
  process.stdout.write(`${table(parts.flatMap(({ rows }) => rows))}\n\n${table(ratioRows(ratios))}\n\n`)
  const rounded = Object.fromEntries(Object.entries(ratios).map(([key, value]) => [key, Number(value.toFixed(3))]))
  const figures = Object.assign({}, ...parts.map((part) => part.figures))
  process.stdout.write(`${JSON.stringify({ ...rounded, figures, missed: bad, passed: bad.length === 0 })}\n`)
  if (bad.length > 0) process.exitCode = 1
}

async function sync(): Promise<void> {
  const { values } = parseArgs({
    args: process.argv.slice(3),
    options: { offers: { type: 'string' }, rounds: { type: 'string' } },
  })
  const { offers, rounds } = values
  const size = { ...(offers ? { offers: Number(offers) } : {}), ...(rounds ? { rounds: Number(rounds) } : {}) }
  const { rows, ratios, missed: bad, figures, load } = await benchSync(say, size)
  const rounded = Object.fromEntries(Object.entries(ratios).map(([key, value]) => [key, Number(value.toFixed(3))]))
  process.stdout.write(`${table([...rows, ['load of the machine at the start', load.toFixed(1)]])}\n\n`)
  process.stdout.write(`${JSON.stringify({ ...rounded, figures, missed: bad, passed: bad.length === 0 })}\n`)
  if (bad.length > 0) process.exitCode = 1
}

async function stores(): Promise<void> {
  const { values } = parseArgs({
    args: process.argv.slice(3),
    options: { stores: { type: 'string' }, offers: { type: 'string' }, rounds: { type: 'string' } },
  })
  const given = Object.entries(values).map(([key, value]) => [key, Number(value)])
  held([await benchStores(say, Object.fromEntries(given))])
}

async function dryRun(): Promise<void> {
  const { rows, figures } = await benchDryRun(say, flag === '--offers' ? Number(count) : undefined)
  process.stdout.write(`${table(rows)}\n\n${JSON.stringify(figures)}\n`)
}

async function pages(): Promise<void> {
  const { values } = parseArgs({
    args: process.argv.slice(3),
    options: { stored: { type: 'string' }, folder: { type: 'string' } },
  })
  const { rows, figures, isGood } = await benchPages(say, {
    ...(values.stored && { stored: Number(values.stored) }),
    kept: values.folder,
  })
  process.stdout.write(`${table(rows)}\n\n${JSON.stringify(figures)}\n`)
  if (!isGood) process.exitCode = 1
}

async function counts(): Promise<void> {
  const { rows, figures, isGood } = await benchCounts(say, flag === '--rounds' ? Number(count) : undefined)
  process.stdout.write(`${table(rows)}\n\n${JSON.stringify(figures)}\n`)
  if (!isGood) process.exitCode = 1
}

async function quota(): Promise<void> {
  const { values } = parseArgs({
    args: process.argv.slice(3),
    options: { long: { type: 'boolean' }, only: { type: 'string' }, rounds: { type: 'string' } },
  })
  const { long: isLong, only, rounds } = values
  const {
    rows,
    figures,
    missed: bad,
  } = await benchQuota(say, {
    ...(isLong && { isLong }),
    only,
    ...(rounds && { rounds: Number(rounds) }),
  })
  process.stdout.write(`${table(rows)}\n\n${JSON.stringify({ figures, missed: bad, passed: bad.length === 0 })}\n`)
  if (bad.length > 0) process.exitCode = 1
}

async function journeys(): Promise<void> {
  const passed = await benchJourneys(say)
  const counts = { delivery: passed.delivery.length, storeOrder: passed.storeOrder.length }
  process.stdout.write(`${table(journeyRows(passed, flag === '--list'))}\n\n${JSON.stringify(counts)}\n`)
}

async function soak(): Promise<void> {
  const { values } = parseArgs({
    args: process.argv.slice(3),
    options: { minutes: { type: 'string' }, stored: { type: 'string' } },
  })
  const { minutes, stored } = values
  const measured = await benchSoak(say, {
    ...(minutes && { minutes: Number(minutes) }),
    ...(stored && { stored: Number(stored) }),
  })
  const { figures, missed: bad } = measured
  process.stdout.write(`${table(measured.held)}\n\n${table(measured.rows)}\n\n`)
  process.stdout.write(`${JSON.stringify({ figures, missed: bad, passed: bad.length === 0 })}\n`)
  if (bad.length > 0) process.exitCode = 1
}

async function peers(): Promise<void> {
  const { rows, figures } = await benchPeers(say)
  process.stdout.write(`${table(rows)}\n\n${JSON.stringify(figures)}\n`)
}

async function scale(): Promise<void> {
  const options = { rounds: { type: 'string' }, deliveries: { type: 'string' }, orders: { type: 'string' } } as const
  const { values } = parseArgs({ args: process.argv.slice(3), options })
  const amounts = Object.fromEntries(Object.entries(values).map(([of, amount]) => [of, Number(amount)]))
  const server = await openServer()
  try {
    held([await benchScale(say, server.newDatabase, amounts)])
  } finally {
    await server.stop()
  }
}

/** What the benches take that need much stored: it stays in a folder, and may be stored before the bench. */
function storedArguments() {
  const { values } = parseArgs({
    args: process.argv.slice(3),
    options: {
      stored: { type: 'string' },
      seconds: { type: 'string' },
      folder: { type: 'string' },
      prepare: { type: 'boolean' },
    },
  })
  const { stored, seconds, folder, prepare = false } = values
  return {
    ...(stored && { stored: Number(stored) }),
    ...(seconds && { seconds: Number(seconds) }),
    kept: folder,
    isPreparation: prepare,
  }
}

async function growth(): Promise<void> {
  const measured = await benchGrowth(say, storedArguments())
  if (measured) held([measured])
}

async function forget(): Promise<void> {
  const measured = await benchForget(say, storedArguments())
  if (!measured) return
  process.stdout.write(`${table(measured.rows)}\n\n${JSON.stringify(measured.figures)}\n`)
  if (!measured.isGood) process.exitCode = 1
}
