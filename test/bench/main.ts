/**
 * `npm run bench -- receive [--stored N]`, `-- sync [--offers N] [--rounds N]`, `-- dry-run [--offers N]`,
 * `-- pages [--stored N] [--folder F]`, `-- counts [--rounds N]`, `-- journeys [--list]`, `-- quota [--long]`, `-- peers`,
 * `-- soak [--minutes M] [--stored N]`: a table for people and,
 * last, one JSON line.
 */
import { parseArgs } from 'node:util'
import { benchCounts } from './counts.ts'
import { benchDryRun } from './dry-run.ts'
import { benchJourneys, journeyRows } from './journeys.ts'
import { benchOrder } from './order.ts'
import { benchPages } from './pages.ts'
import { benchPeers } from './peers.ts'
import { benchQuota } from './quota.ts'
import { benchGrowth, benchReceive, missed, ratioRows } from './receive.ts'
import { benchSoak } from './soak.ts'
import { benchSync } from './sync.ts'
import { table } from './table.ts'

const say = (text: string): void => {
  process.stderr.write(`${text}\n`)
}
const [, , name, flag, count] = process.argv
if (name === 'sync') await sync()
else if (name === 'receive') await receive()
else if (name === 'dry-run') await dryRun()
else if (name === 'pages') await pages()
else if (name === 'counts') await counts()
else if (name === 'journeys') await journeys()
else if (name === 'quota') await quota()
else if (name === 'peers') await peers()
else if (name === 'soak') await soak()
else {
  say(
    'usage: npm run bench -- receive [--stored N], -- sync [--offers N] [--rounds N], -- dry-run [--offers N], -- pages [--stored N] [--folder F], -- counts [--rounds N], -- journeys [--list], -- quota [--long], -- peers, or -- soak [--minutes M] [--stored N]',
  )
  process.exitCode = 2
}

async function receive(): Promise<void> {
  const main = await benchReceive(say)
  const growth = await benchGrowth(say, flag === '--stored' ? Number(count) : undefined)
  const order = await benchOrder(say)
  const ratios = { ...main.ratios, ...growth.ratios, ...order.ratios }
  const bad = missed(ratios)
  process.stdout.write(`${table([...main.rows, ...growth.rows, ...order.rows])}\n\n${table(ratioRows(ratios))}\n\n`)
  const rounded = Object.fromEntries(Object.entries(ratios).map(([key, value]) => [key, Number(value.toFixed(3))]))
  const figures = {
    ...rounded,
    figures: { ...main.figures, ...growth.figures, ...order.figures },
    missed: bad,
    passed: bad.length === 0,
  }
  process.stdout.write(`${JSON.stringify(figures)}\n`)
  process.exitCode = bad.length === 0 ? 0 : 1
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
  process.exitCode = bad.length === 0 ? 0 : 1
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
  process.exitCode = isGood ? 0 : 1
}

async function counts(): Promise<void> {
  const { rows, figures, isGood } = await benchCounts(say, flag === '--rounds' ? Number(count) : undefined)
  process.stdout.write(`${table(rows)}\n\n${JSON.stringify(figures)}\n`)
  process.exitCode = isGood ? 0 : 1
}

async function quota(): Promise<void> {
  const { rows, figures, missed: bad } = await benchQuota(say, flag === '--long')
  process.stdout.write(`${table(rows)}\n\n${JSON.stringify({ figures, missed: bad, passed: bad.length === 0 })}\n`)
  process.exitCode = bad.length === 0 ? 0 : 1
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
  process.exitCode = bad.length === 0 ? 0 : 1
}

async function peers(): Promise<void> {
  const { rows, figures } = await benchPeers(say)
  process.stdout.write(`${table(rows)}\n\n${JSON.stringify(figures)}\n`)
}
