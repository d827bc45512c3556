/**
 * `npm run bench -- forget [--stored N] [--seconds S] [--folder F] [--prepare]`: a service with a million deliveries whose time is over
 * forgets them under a light load: what keeps its event loop, and what the disk itself takes beside it, before it, meanwhile and after
 * it. What is stored stays in the folder, if one is named: `--prepare` only stores. Each run needs a copy of its own of what was
 * prepared: in a folder that a run has used, the next run's orders did not come back.
 */
import { once } from 'node:events'
import { mkdirSync } from 'node:fs'
import { loadavg, tmpdir } from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'
import Connection from 'better-sqlite3'
import { BENCH_PATH } from './bench-webhook.ts'
import type { Disk } from './disk-probe.ts'
import { countOld, storeOldDeliveries } from './old-deliveries.ts'
import { buySteadily, openOrderBench } from './order.ts'
import { CAUSED, type Kept, openAnswering, openLoad, PROBE, readingOf } from './soak.ts'
import type { Reading } from './soak-probe.ts'
import type { Answers } from './steady-load.ts'
import type { Row } from './table.ts'

const STORED = 1_000_000
const SECONDS = 120
const BEFORE_SECONDS = 30
const READ_MS = 2_000
/** Deliveries a second. */
const RATE = 100
const BLOCKED_MAX_MS = 50
/** A disk is quiet when its own tiny writes take no longer, before and after. */
const QUIET_MS = 25

interface Part {
  kept: Omit<Kept, 'longestMs'>
  /** How often the loop was kept for longer than wanted, of so many readings. */
  over: number
  readings: number
  answers: Answers
  disk: Disk
}

export async function benchForget(
  say: (text: string) => void,
  options: { stored?: number; seconds?: number; kept?: string | undefined; isPreparation?: boolean },
) {
  const { stored = STORED, seconds = SECONDS, kept, isPreparation = false } = options
  let file = ''
  say(`storing ${stored.toLocaleString('en')} old deliveries`)
  const bench = await openOrderBench(
    [PROBE],
    async (configFile) => {
      file = await storeOldDeliveries(configFile, stored)
    },
    [{ role: 'all' }],
    { backups: { cron: null } },
    { kept },
  )
  if (isPreparation) return void (await bench.close())
  const folder = kept ?? tmpdir()
  mkdirSync(folder, { recursive: true })
  const disk = openAnswering<Disk>('disk-probe.ts', folder)
  const reader = new Connection(file, { readonly: true })
  const before = countOld(reader)
  let buying: ReturnType<typeof buySteadily> | undefined
  try {
    await bench.orders(0, 50)
    const load = openLoad({ url: `${bench.url}${BENCH_PATH}`, rate: RATE, first: Date.now() * 1_000 })
    buying = buySteadily(bench)
    await sleep(5_000)
    const measure = async (wanted: number, isEnded: () => boolean): Promise<Part> => {
      await Promise.all([load.mark(), disk.mark(), readingOf(bench.service, 'read')])
      const readings: Reading[] = []
      for (const end = performance.now() + wanted * 1_000; performance.now() < end && !isEnded(); ) {
        await sleep(READ_MS)
        readings.push(await readingOf(bench.service, 'read'))
      }
      const longest = (name: keyof Part['kept']) => Math.max(...readings.map((one) => one[name]))
      return {
        kept: {
          blockedMs: longest('blockedMs'),
          commitMs: longest('commitMs'),
          statementMs: longest('statementMs'),
          foldMs: longest('foldMs'),
          collectionMs: longest('collectionMs'),
        },
        over: readings.filter(({ blockedMs }) => blockedMs > BLOCKED_MAX_MS).length,
        readings: readings.length,
        answers: await load.mark(),
        disk: await disk.mark(),
      }
    }
    say('before')
    const quiet = await measure(BEFORE_SECONDS, () => false)
    say('forgetting')
    let isForgotten = false
    const beganAt = performance.now()
    bench.service.send('forget')
    bench.service.on('message', (message: Reading) => {
      isForgotten ||= message.forgotMs !== undefined
    })
    const forgetting = await measure(seconds, () => isForgotten)
    const tookMs = performance.now() - beganAt
    const left = countOld(reader)
    await Promise.all([load.end(), buying.end()])
    reader.close()
    bench.service.kill('SIGTERM')
    await once(bench.service, 'exit')
    await disk.mark()
    say('after')
    await sleep(BEFORE_SECONDS * 500)
    const after = await disk.mark()
    return report({ quiet, forgetting, after, forgotten: before - left, left, tookMs })
  } finally {
    void buying?.end()
    await disk.end()
    await bench.close()
  }
}

interface Forgot {
  quiet: Part
  forgetting: Part
  after: Disk
  forgotten: number
  left: number
  tookMs: number
}

function report(forgot: Forgot) {
  const { quiet, forgetting, after, forgotten, left, tookMs } = forgot
  const ms = (value: number) => `${value.toFixed(1)} ms`
  const isQuiet = Math.max(quiet.disk.longest, after.longest) <= QUIET_MS
  const isGood = forgetting.kept.blockedMs <= BLOCKED_MAX_MS
  const diskOf = ({ p50, p99, longest }: Disk) => `${ms(p50)}, ${ms(p99)}, ${ms(longest)}`
  const rows: Row[] = [
    ['', 'before', 'forgetting', 'after'],
    [
      'the event loop was kept, longest',
      ms(quiet.kept.blockedMs),
      ms(forgetting.kept.blockedMs),
      '',
      `at most ${BLOCKED_MAX_MS} ms`,
      isGood ? 'ok' : 'missed',
    ],
    ['readings with more', `${quiet.over} of ${quiet.readings}`, `${forgetting.over} of ${forgetting.readings}`],
    ...CAUSED.map(([cause, name]) => [name, ms(quiet.kept[cause]), ms(forgetting.kept[cause])]),
    ['a delivery, p99', ms(quiet.answers.p99), ms(forgetting.answers.p99)],
    ['a delivery, longest', ms(quiet.answers.longest), ms(forgetting.answers.longest)],
    [
      "the disk's own fsync: p50, p99, longest",
      diskOf(quiet.disk),
      diskOf(forgetting.disk),
      diskOf(after),
      `at most ${QUIET_MS} ms before and after`,
      isQuiet ? 'quiet' : 'not quiet',
    ],
    ['forgotten', '', `${forgotten} in ${(tookMs / 1_000).toFixed(0)} s, ${left} left`],
    ['load of the machine at the end', '', (loadavg()[0] ?? 0).toFixed(1)],
  ]
  return { rows, figures: { ...forgot, isQuiet }, isGood }
}
