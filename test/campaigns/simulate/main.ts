/**
 * `npm run simulate -- --seeds 1000`: plays a thousand seeds. `--seed 7` begins at that one, and plays it alone
 * without `--seeds`; `--fresh` begins at one that is drawn, and says which. `--outside` plays only the campaign outside
 * the promises. `--mistake NAME` makes a mistake in the program and plays until it is found. `--log FILE` writes what
 * happened in a single seed, line by line.
 *
 * The last line is one JSON object; the exit code is 1 unless it says `passed`.
 */
import { randomInt } from 'node:crypto'
import { closeSync, openSync, writeSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { mistakeNamed } from '../mistakes/list.ts'
import { isRed, type Outcome, runCampaign, tooLittle } from './campaign.ts'
import { play, playOutside } from './run.ts'
import type { Report, Task } from './worker.ts'
import type { StoreKind } from './world.ts'

const SEEDS = 100
/** A mistake that takes longer than this to be found was not found. */
const MISTAKE_SEEDS = 500
/** So many go through every pair of faults nine times, and meet six times what one seed in 500 does: less is chance. */
const ALL_FROM = 3_000
/** One seed in so many is played outside the promises as well. */
const OUTSIDE_EVERY = 10
/** A seed that is drawn lies far above those of campaigns that begin at 1. */
const FRESH = { from: 1_000_000, below: 1_000_000_000 }
const RED_SHOWN = 3
const TAIL_SHOWN = 20
const counted = [
  'doubleCharges',
  'orphanCharges',
  'lostDeliveries',
  'duplicateFulfilments',
  'beyondEntitlement',
  'stuck',
]

const { values } = parseArgs({
  options: {
    seeds: { type: 'string' },
    seed: { type: 'string' },
    fresh: { type: 'boolean', default: false },
    mistake: { type: 'string' },
    outside: { type: 'boolean', default: false },
    store: { type: 'string' },
    log: { type: 'string' },
    help: { type: 'boolean', default: false },
  },
})
const HELP = `npm run simulate -- [options]

  --seeds N       how many seeds; default: 100
  --seed S        the first one; alone unless --seeds is given
  --fresh         draw the first one, so that others are played than before
  --mistake NAME  make a mistake in the program, play until it is found
  --outside       only seeds outside the promises, where double charges happen
                  and must be noticed
  --store KIND    what sells in every seed: backend, woocommerce or shopify;
                  default: a sixth of the seeds have a shop of each kind
  --log FILE      write what happens in one seed, line by line

A campaign of ${ALL_FROM} seeds or more also fails when it has not reached every
cell of the transition table that a seed can reach and every pair of faults. With
fewer seeds they are only counted. One seed in ${OUTSIDE_EVERY} is played outside the
promises too.`
const say = (text: string): void => void process.stdout.write(`${text}\n`)

/** Where no line can be drawn again, as often as this. */
const LOGGED_EVERY = 250
const from = whole('seed', values.seed, values.fresh ? randomInt(FRESH.from, FRESH.below) : 1)
const mistake = values.mistake === undefined ? undefined : mistakeNamed(values.mistake).name
const store = storeKind(values.store)
const usual = mistake ? MISTAKE_SEEDS : values.seed === undefined ? SEEDS : 1
const count = whole('seeds', values.seeds, usual)

if (values.help) {
  say(HELP)
  process.exit(0)
}
if (values.fresh) say(`the first seed is ${from}`)
process.exitCode = values.log === undefined ? await campaign() : await single(values.log)

async function campaign(): Promise<number> {
  const startedAt = performance.now()
  let done = 0
  let wrong = 0
  const onReport = (report: Report): void => {
    done += 1
    if (isRed(report)) {
      wrong += 1
      process.stderr.write(`\nseed ${report.seed} is wrong${report.campaign === 'outside' ? ', outside' : ''}\n`)
    }
    for (const text of report.played?.excused ?? []) say(`seed ${report.seed}, excused: ${text}`)
    const line = `${done} of about ${count} seeds, ${wrong} wrong`
    if (process.stderr.isTTY) process.stderr.write(`\r${line} `)
    else if (done % LOGGED_EVERY === 0) process.stderr.write(`${line}\n`)
  }
  const outcome = await runCampaign({
    tasks: tasks(),
    mustReachAll: count >= ALL_FROM && mistake === undefined && !values.outside,
    untilRed: mistake !== undefined,
    onReport,
    ...(mistake === undefined ? {} : { mistake }),
  })
  if (process.stderr.isTTY) process.stderr.write('\n')
  describe(outcome, performance.now() - startedAt)
  say(JSON.stringify(outcome.figures))
  return outcome.figures.passed ? 0 : 1
}

function* tasks(): Generator<Task> {
  for (let seed = from; seed < from + count; seed += 1) {
    if (!values.outside) yield { seed, campaign: 'inside', store }
    const also = values.seed === undefined && seed % OUTSIDE_EVERY === 0
    if (values.outside || also) yield { seed, campaign: 'outside' }
  }
}

function describe({ red, unreached, decisions, freezes, figures }: Outcome, ms: number): void {
  for (const line of red[0]?.played?.tail.slice(-TAIL_SHOWN) ?? []) say(`  ${line}`)
  for (const { seed, campaign: which, played, error } of red.slice(0, RED_SHOWN)) {
    if (error !== undefined) say(error)
    for (const text of [...new Set(played?.broken)].slice(0, RED_SHOWN)) say(`seed ${seed}: ${text}`)
    if (played && which === 'inside' && tooLittle(played)) say(`seed ${seed}: too little happened in it`)
    const wrong = Object.entries(played ?? {}).filter(([name, value]) => counted.includes(name) && value !== 0)
    say(`seed ${seed} is wrong: ${wrong.map(([name, value]) => `${name} ${value}`).join(', ') || 'see above'}`)
    const flags = `${which === 'outside' ? ' --outside' : ''}${store ? ` --store ${store}` : ''}${mistake === undefined ? '' : ` --mistake ${mistake}`}`
    say(`again: npm run simulate -- --seed ${seed}${mistake === undefined ? '' : ' --seeds 1'}${flags}`)
  }
  if (red.length > RED_SHOWN) say(`${red.length} seeds are wrong: ${red.map(({ seed }) => seed).join(' ')}`)
  const mustReachAll = figures.seeds >= ALL_FROM && mistake === undefined
  if (mustReachAll) for (const what of unreached) say(`not reached: ${what}`)
  else if (mistake === undefined && !values.outside && values.seed === undefined) {
    say(`cells and pairs are only counted here: all are required from ${ALL_FROM} seeds on`)
  }
  say(`${decisions} decisions, ${freezes} freezes lifted, ${Math.round(ms / 1_000)} s`)
}

/** Plays one seed in this process and writes down everything. */
async function single(file: string): Promise<number> {
  const log = openSync(file, 'w')
  const write = (line: string): void => void writeSync(log, `${line}\n`)
  const seed = from
  const played = await (values.outside ? playOutside : play)(seed, { write, store })
  closeSync(log)
  const { tail: _, broken, excused, ...figures } = played
  for (const text of new Set(broken)) say(text)
  for (const text of excused) say(`excused: ${text}`)
  const right = !isRed({ seed, campaign: values.outside ? 'outside' : 'inside', played, cells: [] })
  say(JSON.stringify({ ...figures, passed: right }))
  return right ? 0 : 1
}

function storeKind(text: string | undefined): StoreKind | undefined {
  const kinds: readonly StoreKind[] = ['backend', 'woocommerce', 'shopify']
  const kind = kinds.find((one) => one === text)
  if (text === undefined || kind) return kind
  throw new Error('--store must be backend, woocommerce or shopify')
}

function whole(name: string, text: string | undefined, usual: number): number {
  if (text === undefined) return usual
  if (/^\d{1,9}$/.test(text) && Number(text) > 0) return Number(text)
  throw new Error(`--${name} must be a whole number above zero`)
}
