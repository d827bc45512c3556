/**
 * `npm run rolling-restart -- [--seconds 600] [--every 20] [--deliveries 200] [--orders 1]`: restarts the processes of an
 * installation one after the other while deliveries and orders come, so many a second. The server is that of `TEST_POSTGRES_URL`,
 * else one of the machine's own. The last line is one JSON object; the exit code is 1 unless it says `passed`, and then the
 * folder of the run stays.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { parseArgs } from 'node:util'
import { openServer } from '../../support/postgres-server.ts'
import { rollingRestart } from './campaign.ts'

const { values } = parseArgs({
  options: {
    seconds: { type: 'string', default: '600' },
    every: { type: 'string', default: '20' },
    deliveries: { type: 'string', default: '200' },
    orders: { type: 'string', default: '1' },
  },
})
const [seconds, everySeconds, deliveriesPerSecond, ordersPerSecond] = [
  Number(values.seconds),
  Number(values.every),
  Number(values.deliveries),
  Number(values.orders),
] as const
if (![seconds, everySeconds, deliveriesPerSecond, ordersPerSecond].every((one) => one > 0)) {
  process.stderr.write('usage: npm run rolling-restart -- [--seconds N] [--every N] [--deliveries N] [--orders N]\n')
  process.exit(2)
}
const LOGGED_EVERY_MS = 10_000

const folder = mkdtempSync(path.join(tmpdir(), 'quayside-rolling-'))
const server = await openServer()
let loggedAt = 0
const outcome = await rollingRestart({
  seconds,
  everySeconds,
  deliveriesPerSecond,
  ordersPerSecond,
  folder,
  databaseUrl: await server.newDatabase(),
  onProgress: ({ elapsedSeconds, restarts, answers }) => {
    const { isTTY } = process.stderr
    if (Date.now() - loggedAt < (isTTY ? 200 : LOGGED_EVERY_MS)) return
    loggedAt = Date.now()
    const time = new Date(elapsedSeconds * 1_000).toISOString().slice(14, 19)
    const counts = Object.entries(answers).map(([answer, count]) => `${count} of ${answer}`)
    const line = `${time}  ${restarts} restarts, answers: ${counts.join(', ')}`
    process.stderr.write(isTTY ? `\r\x1b[K${line}` : `${line}\n`)
  },
}).finally(() => server.stop())
if (process.stderr.isTTY) process.stderr.write('\r\x1b[K')
const passed = outcome.faults.length === 0
for (const fault of outcome.faults) process.stderr.write(`${fault}\n`)
if (passed) rmSync(folder, { recursive: true, force: true })
else process.stderr.write(`not passed: the folder of the run is ${folder}\n`)
process.stdout.write(`${JSON.stringify({ seconds, ...outcome, faults: outcome.faults.length, passed })}\n`)
process.exitCode = passed ? 0 : 1
