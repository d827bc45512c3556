/**
 * `npm run torture -- --purchases N --seconds T [--seed S] [--mistake NAME] [--patience S]`: Quayside between a supplier
 * and a store, as processes, while everything breaks that can. The last line is one JSON object; the exit code is 1 when
 * the run did not pass, and its folder stays.
 *
 * `--engine postgres --processes 4` runs two `web` and two `worker` processes on a PostgreSQL server of its own, which is
 * restarted, fails over to a copy that lost the last second, and comes back with its files of some seconds ago. `--variant read-committed` runs its transactions so.
 *
 * A seed fixes what is planned: orders, lives and deaths of the service, damages and pranks, each in its turn. It does
 * not fix how real processes interleave. With several processes half of the kills at points go to the point with the fewest so far.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { parseArgs } from 'node:util'
import { table } from '../../bench/table.ts'
import { missing, type Outcome, type Progress, type TortureOptions, torture } from './run.ts'

const { values } = parseArgs({
  options: {
    purchases: { type: 'string', default: '120' },
    seconds: { type: 'string', default: '60' },
    seed: { type: 'string' },
    mistake: { type: 'string' },
    // An edit of the program under which all must hold as well.
    variant: { type: 'string' },
    engine: { type: 'string', default: 'sqlite' },
    processes: { type: 'string' },
    // A purchase may be left alone for a quarter of an hour.
    patience: { type: 'string', default: '960' },
  },
})
const out = process.stdout

function whole(name: 'purchases' | 'seconds' | 'patience' | 'seed' | 'processes', text: string): number {
  if (/^\d{1,9}$/.test(text)) return Number(text)
  throw new Error(`--${name} takes a whole number, and this is ${text}`)
}

function line({ elapsedSeconds, phase, taken, orders, closed, kills, reviews, moving }: Progress): string {
  const time = new Date(elapsedSeconds * 1_000).toISOString().slice(14, 19)
  if (phase === 'calm') return `${time}  coming to rest: ${moving.join(', ') || 'nothing moves'}`
  return `${time}  ${taken} of ${orders} orders taken, ${closed} closed, ${kills} kills, ${reviews} decisions`
}

/** Redraws one line on a terminal; elsewhere a line every ten seconds. */
function progress(): (progress: Progress) => void {
  let pushedAt = -10
  return (now) => {
    if (out.isTTY) return void out.write(`\r\x1b[K${line(now).slice(0, (out.columns || 80) - 1)}`)
    if (now.elapsedSeconds - pushedAt < 10) return
    pushedAt = now.elapsedSeconds
    out.write(`${line(now)}\n`)
  }
}

const sum = (counts: Record<string, number>): number => Object.values(counts).reduce((all, count) => all + count, 0)
const rows = (title: string, counts: Record<string, number>): string[][] => [
  [title, String(sum(counts))],
  ...Object.entries(counts)
    .toSorted(([a], [b]) => a.localeCompare(b))
    .map(([name, count]) => [`  ${name}`, String(count)]),
]

const countBy = (claims: Outcome['claims']): Record<string, number> =>
  Object.fromEntries([...Map.groupBy(claims, ({ state }) => state)].map(([state, own]) => [state, own.length]))

function report(outcome: Outcome, reasons: string[]): string {
  const { deaths, shift, claims, forgeries, faults, failovers, startsMs, calmSeconds } = outcome
  const starts = startsMs.toSorted((a, b) => a - b)
  const text = table([
    ...rows('kill -9 of the service', deaths.kills),
    ...rows('other ends and pauses of it', deaths.others),
    ...rows('faults of the network and the parties', faults),
    ...rows('forged and replayed deliveries', forgeries.sent),
    ['  acknowledged among the forged', String(forgeries.obeyed.length)],
    ...rows("a person's decisions", shift.decisions),
    ...rows('claims about delivered keys', countBy(claims)),
    ...(failovers.losses.length === 0
      ? []
      : [
          ['failovers, each recognised as a restore', String(failovers.losses.length - failovers.putBack)],
          ['files of some seconds ago, put back', String(failovers.putBack)],
          ['  bytes of the log that were lost', String(failovers.bytes)],
          ['  orders acknowledged meanwhile, handed in again', String(failovers.orders)],
          ['  cancellations, asked for again', String(failovers.cancellations)],
          ['  deliveries acknowledged meanwhile', String(failovers.deliveries)],
        ]),
    ['freezes, each lifted by a person', String(shift.freezes)],
    ['purchases let pass beyond the spend cap', String(shift.overridden.size)],
    ['callbacks and deliveries put back', String(shift.redelivered)],
    ['from start to listening, median', `${Math.round(starts[starts.length >> 1] ?? 0)} ms`],
    ['from start to listening, slowest', `${Math.round(starts.at(-1) ?? 0)} ms`],
    ['at rest after the faults', `${calmSeconds.toFixed(1)} s`],
  ])
  return [text, '', ...reasons.slice(0, 40), ...(reasons.length > 0 ? [''] : [])].join('\n')
}

const started = Date.now()
const folder = mkdtempSync(path.join(tmpdir(), 'quayside-torture-'))
const seed = values.seed === undefined ? Date.now() % 1_000_000 : whole('seed', values.seed)
const options: TortureOptions = {
  purchases: whole('purchases', values.purchases),
  seconds: whole('seconds', values.seconds),
  patienceSeconds: whole('patience', values.patience),
  seed,
  mistake: values.mistake ?? values.variant,
  ...(values.engine === 'postgres' && { processes: whole('processes', values.processes ?? '4') }),
  folder,
  onProgress: progress(),
}
out.write(`seed ${seed}, everything is kept in ${folder} until it has passed\n`)
const outcome = await torture(options)
if (out.isTTY) out.write('\r\x1b[K')
const { verdict, deaths, failovers, forgeries, refused, purchases, claims } = outcome
const replaced = claims.filter(({ state }) => state === 'bought' || state === 'adopted').length
const reasons = [
  ...verdict.notes,
  ...deaths.unexpected,
  ...failovers.broken,
  ...refused.map((order) => `a good order was refused: ${order}`),
  ...forgeries.obeyed.map((kind) => `a delivery ${kind} was acknowledged`),
  ...missing(outcome, options),
]
const passed = reasons.length === 0
out.write(report(outcome, reasons))
if (passed) rmSync(folder, { recursive: true, force: true })
else out.write(`not passed: the folder of the run is ${folder}\n`)
const { booksClose: _, notes: __, ...figures } = verdict
out.write(
  `${JSON.stringify({ purchases, kills: sum(deaths.kills), claims: claims.length, replaced, ...figures, seconds: Math.round((Date.now() - started) / 1_000), seed, passed })}\n`,
)
process.exit(passed ? 0 : 1)
