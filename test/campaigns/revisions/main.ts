/**
 * `npm run revisions -- [--seconds 600] [--revisions 50] [--kills 3] [--deliveries 20] [--orders 2] [--engine postgres] [--mistake NAME]`:
 * changes the settings again and again beside orders and deliveries, and kills processes meanwhile. On PostgreSQL there are four of
 * them; the server is that of `TEST_POSTGRES_URL`, else one of the machine's own. The last line is one JSON object; the exit code
 * is 1 unless it says `passed`, and then the folder of the run stays.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { parseArgs } from 'node:util'
import { openServer } from '../../support/postgres-server.ts'
import { changeSettings } from './campaign.ts'

const { values } = parseArgs({
  options: {
    seconds: { type: 'string', default: '600' },
    revisions: { type: 'string', default: '50' },
    kills: { type: 'string', default: '3' },
    deliveries: { type: 'string', default: '20' },
    orders: { type: 'string', default: '2' },
    engine: { type: 'string', default: 'sqlite' },
    mistake: { type: 'string' },
  },
})
const [seconds, revisions, kills, deliveriesPerSecond, ordersPerSecond] = [
  Number(values.seconds),
  Number(values.revisions),
  Number(values.kills),
  Number(values.deliveries),
  Number(values.orders),
] as const
if (![seconds, revisions, deliveriesPerSecond, ordersPerSecond].every((one) => one > 0) || !(kills >= 0)) {
  process.stderr.write(
    'usage: npm run revisions -- [--seconds N] [--revisions N] [--kills N] [--engine sqlite|postgres]\n',
  )
  process.exit(2)
}
const folder = mkdtempSync(path.join(tmpdir(), 'quayside-revisions-'))
const server = values.engine === 'postgres' ? await openServer() : undefined
let shown = 0
const outcome = await changeSettings({
  seconds,
  revisions,
  kills,
  deliveriesPerSecond,
  ordersPerSecond,
  folder,
  ...(server && { databaseUrl: await server.newDatabase() }),
  ...(values.mistake && { mistake: values.mistake }),
  onProgress: ({ elapsedSeconds, revision, kills: killed }) => {
    if (Date.now() - shown < 10_000) return
    shown = Date.now()
    const time = new Date(elapsedSeconds * 1_000).toISOString().slice(14, 19)
    process.stderr.write(`${time}  revision ${revision}, ${killed} kills\n`)
  },
}).finally(() => server?.stop())
const passed = outcome.faults.length === 0
for (const fault of outcome.faults.slice(0, 20)) process.stderr.write(`${fault}\n`)
if (passed) rmSync(folder, { recursive: true, force: true })
else process.stderr.write(`not passed: the folder of the run is ${folder}\n`)
process.stdout.write(`${JSON.stringify({ seconds, ...outcome, faults: outcome.faults.length, passed })}\n`)
process.exitCode = passed ? 0 : 1
