/**
 * `npm run shop -- [--kind woocommerce|shopify] [--deliver link|keys|both] [--orders N] [--seed S]`: Quayside, as a process that is killed, beside a shop
 * whose requests fail. The last line is one JSON object; the exit code is 1 unless it says `passed`, and then the folder of the run stays.
 *
 * A seed fixes what customers buy, when the service dies, and which fault comes next. It does not fix how processes interleave.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { parseArgs } from 'node:util'
import { KILLS, KINDS, type Progress, runShopCampaign } from './campaign.ts'

const WAYS = ['link', 'keys', 'both'] as const
const { values } = parseArgs({
  options: {
    kind: { type: 'string', default: 'woocommerce' },
    orders: { type: 'string', default: '500' },
    seed: { type: 'string', default: '1' },
    deliver: { type: 'string' },
  },
})
const kind = KINDS.find((one) => one === values.kind)
const [orders, seed] = [Number(values.orders), Number(values.seed)]
const deliver = WAYS.find((one) => one === values.deliver)
if (!kind || deliver !== values.deliver || ![orders, seed].every(Number.isSafeInteger) || orders < 1) {
  process.stderr.write(
    'usage: npm run shop -- [--kind woocommerce|shopify] [--deliver link|keys|both] [--orders N] [--seed S]\n',
  )
  process.exit(2)
}
const OFFERS = 60
const LOGGED_EVERY_MS = 10_000
const FAULTS_SHOWN = 20

const startedAt = Date.now()
let loggedAt = 0
/** Redraws one line on a terminal; elsewhere a line every ten seconds. */
function onProgress({ phase, bought, completed, kills }: Progress): void {
  const { isTTY } = process.stderr
  if (Date.now() - loggedAt < (isTTY ? 200 : LOGGED_EVERY_MS)) return
  loggedAt = Date.now()
  const time = new Date(Date.now() - startedAt).toISOString().slice(14, 19)
  const line = `${time}  ${phase}: ${bought} of ${orders} orders bought, ${completed} completed, ${kills} kills`
  process.stderr.write(isTTY ? `\r\x1b[K${line}` : `${line}\n`)
}

const folder = mkdtempSync(path.join(tmpdir(), 'quayside-shop-'))
const outcome = await runShopCampaign({ kind, orders, offers: OFFERS, seed, folder, deliver, onProgress })
if (process.stderr.isTTY) process.stderr.write('\r\x1b[K')
const { faults, kills, figures, ...counts } = outcome
const passed = faults.length === 0 && kills.length === KILLS
for (const fault of faults.slice(0, FAULTS_SHOWN)) process.stderr.write(`${fault}\n`)
if (passed) rmSync(folder, { recursive: true, force: true })
else process.stderr.write(`not passed: the folder of the run is ${folder}\n`)
const seconds = Math.round((Date.now() - startedAt) / 1_000)
process.stdout.write(
  `${JSON.stringify({ kind, orders, ...counts, ...figures, kills: kills.length, faults: faults.length, seconds, seed, passed })}\n`,
)
process.exitCode = passed ? 0 : 1
