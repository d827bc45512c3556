/** `npm run properties`: every property over many cases. The last line is for machines; the exit code is 1 when one fails. */
import { parseArgs } from 'node:util'
import fc from 'fast-check'
import { pricingProperties } from './pricing.ts'
import { publicationProperties } from './publication.ts'

const { values } = parseArgs({ options: { cases: { type: 'string', default: '100000' }, seed: { type: 'string' } } })
const numRuns = Number(values.cases)
const seed = values.seed === undefined ? Date.now() % 2 ** 31 : Number(values.seed)
if (!Number.isSafeInteger(numRuns) || numRuns < 1 || !Number.isSafeInteger(seed)) {
  process.stderr.write('usage: npm run properties -- [--cases 100000] [--seed 1]\n')
  process.exit(2)
}

const say = (line: string) => void process.stdout.write(`${line}\n`)
const cases: Record<string, number> = {}
let failed = 0
say(`seed ${seed}, ${numRuns.toLocaleString('en-US')} cases of each`)
for (const [name, property] of Object.entries({ ...pricingProperties, ...publicationProperties })) {
  const startedAt = performance.now()
  const result = await fc.check(property() as fc.IRawProperty<unknown>, { numRuns, seed })
  cases[name] = result.numRuns
  const seconds = ((performance.now() - startedAt) / 1_000).toFixed(1)
  say(`${result.failed ? 'FAILED' : 'holds '}  ${name} (${seconds} s)`)
  if (!result.failed) continue
  failed += 1
  say((await fc.asyncDefaultReportMessage(result)) ?? '')
}
say(JSON.stringify({ cases, failed, passed: failed === 0 }))
process.exitCode = failed === 0 ? 0 : 1
