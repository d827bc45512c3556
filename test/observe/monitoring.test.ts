/** The dashboard and the alert rules of docs/monitoring, held against a service that really runs. */
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import path from 'node:path'
import { describe, expect, test } from 'vitest'
import { isNeeded } from '../support/needs.ts'
import { openInstallation, until } from '../support/service-process.ts'

const FOLDER = path.join(import.meta.dirname, '../../docs/monitoring')
const RULES = path.join(FOLDER, 'quayside.rules.yml')
const files = { 'the alert rules': RULES, 'the dashboard': path.join(FOLDER, 'quayside-dashboard.json') }

/** What is of Quayside and of its process; `up` is of Prometheus. */
const NAME = /\b(?:quayside|process|nodejs)_[a-z0-9_]+/g

/** The expressions of a file, whatever its form. */
const expressionsIn = (text: string): string[] =>
  text.split('\n').filter((line) => /"expr"|expr:|^ {10}(?:sum|unless)/.test(line))

const namesIn = (text: string): string[] => [
  ...new Set(expressionsIn(text).flatMap((line) => [...line.matchAll(NAME)].map(([name]) => name))),
]

/** A scrape after one order whose keys arrived. */
async function scraped(onTestFinished: Parameters<typeof openInstallation>[0]): Promise<string> {
  const { start, sku, order, closed, deliver, folder, url } = await openInstallation(onTestFinished)
  await start()
  await order('1001', (await sku()) ?? '', false)
  await closed('1001')
  await deliver('d1', false)
  const owner = readFileSync(path.join(folder, 'owner.token'), 'utf8').trim()
  const scrape = async () => {
    const answer = await fetch(`${url}/metrics`, { headers: { authorization: `Bearer ${owner}`, connection: 'close' } })
    return answer.text()
  }
  await until('the count of the delivery', async () =>
    (await scrape()).includes('quayside_deliveries_processed_total{'),
  )
  return scrape()
}

describe('the monitoring', () => {
  test('names only metrics that exist and have a sample', async ({ onTestFinished }) => {
    const text = await scraped(onTestFinished)
    const lines = text.split('\n')
    for (const [what, file] of Object.entries(files)) {
      const names = namesIn(readFileSync(file, 'utf8'))
      expect(names.length, what).toBeGreaterThan(5)
      const absent = names.filter((name) => !lines.some((line) => new RegExp(`^${name}(?:\\{| )`).test(line)))
      expect(absent, what).toEqual([])
    }
    expect(text).toMatch(/^quayside_order_to_keys_seconds_count 1$/m)
    expect(text).toMatch(/^quayside_supplier_request_seconds_count\{request="POST \/orders",status="2xx"\} 1$/m)
    expect(text, 'an id is no label').not.toMatch(/request="[^"]*[0-9a-f]{8}/)
    if (!isNeeded('promtool')) return
    // The names of the process are not ours.
    const ours = lines.filter((line) => line.includes('quayside_')).join('\n')
    execFileSync('promtool', ['check', 'metrics'], { input: `${ours}\n`, stdio: ['pipe', 'pipe', 'inherit'] })
  })

  test.runIf(isNeeded('promtool'))(
    'has rules that fire when they should (QUAYSIDE_NEEDS=promtool runs it, as .ci/run does)',
    () => {
      expect(execFileSync('promtool', ['check', 'rules', RULES], { encoding: 'utf8' })).toContain('SUCCESS')
      const cases = path.join(import.meta.dirname, './rules-cases.yml')
      expect(execFileSync('promtool', ['test', 'rules', cases], { encoding: 'utf8' })).toContain('SUCCESS')
    },
  )
})
