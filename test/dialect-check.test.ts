import { writeFileSync } from 'node:fs'
import path from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { openapiOf } from '../src/sandbox/openapi.ts'
import type { Dialect } from '../src/supplier/dialect.ts'
import { checkDialect, type Finding } from '../src/supplier/dialect-check.ts'
import { run, temporaryFolder } from './cli-run.ts'
import { contrary, leavesOf, standard } from './dialect-pair.ts'
import { startHeldSandbox } from './held.ts'

/** Settings that are no facts of the supplier. */
const ours = ['name', 'about']

/** No OpenAPI description says these: they are about time, and promises. */
const silent = [
  ...['flags.success', 'flags.more', 'flags.available', 'flags.inStock'],
  ...[
    'signature.toleranceSeconds',
    'paging.totalFiltered',
    'paging.listMax',
    'stock',
    'settleSeconds',
    'listLagSeconds',
    'scanGapSeconds',
  ],
]

/** Found by a flag of JSON, which a supplier with words of its own has not. */
const flagged = ['envelope.success', 'paging.more', 'paging.total']

/** The facts of a dialect as a check names them: the place of the timestamp is one. */
function factsOf(dialect: Dialect): string[] {
  const paths = [...leavesOf(dialect).keys()].map((path) => path.replaceAll('/', '.'))
  const facts = paths.map((path) => path.replace(/^(signature\.timestamp|flags\.\w+)\..*/, '$1'))
  return [...new Set(facts)].filter((fact) => !ours.includes(fact))
}

const named = (findings: Finding[], verdict: Finding['verdict']): string[] =>
  findings.filter((finding) => finding.verdict === verdict).map(({ fact }) => fact)

const valueAt = (dialect: Dialect, fact: string): string => {
  const leaves = [...leavesOf(dialect)].map(([at, value]): [string, unknown] => [at.replaceAll('/', '.'), value])
  return JSON.stringify(leaves.filter(([at]) => at === fact || at.startsWith(`${fact}.`)))
}
const differing = (one: Dialect, other: Dialect): string[] =>
  factsOf(one).filter((fact) => valueAt(one, fact) !== valueAt(other, fact))

describe('a dialect held against the description of a supplier', () => {
  test.each([standard, contrary])('that speaks it ($name) agrees in whatever the description can say', (dialect) => {
    const findings = checkDialect(dialect, openapiOf(dialect))
    expect(findings.map(({ fact }) => fact).sort()).toEqual(factsOf(dialect).sort())
    expect(named(findings, 'disagrees')).toEqual([])
    const unsaid = named(findings, 'not_said').filter((fact) => !flagged.includes(fact))
    expect(unsaid.sort()).toEqual([...silent].sort())
  })

  test.each([
    [standard, contrary],
    [contrary, standard],
  ])('that speaks another than $name names each difference and nothing else', (dialect, other) => {
    const findings = checkDialect(dialect, openapiOf(other))
    // The client goes by the code of an error; a status is found by its code, and here no code is known.
    const byCode = /^errors\.\w+\.status$/
    const expected = differing(dialect, other).filter(
      (fact) => ![...silent, ...flagged].includes(fact) && !byCode.test(fact),
    )
    const disagrees = named(findings, 'disagrees').filter((fact) => !flagged.includes(fact) && !byCode.test(fact))
    const unmapped = Object.keys(other.orderStatuses).map((word) => `orderStatuses.${word}`)
    expect(disagrees.sort()).toEqual([...expected, ...unmapped].sort())
    for (const finding of findings.filter(({ verdict }) => verdict === 'disagrees')) {
      expect(finding.document, finding.fact).toMatch(/\w|,/)
    }
    expect(named(findings, 'agrees')).toEqual([])
  })

  test('names the statuses once the codes are right', () => {
    const errors = structuredClone(contrary.errors)
    for (const kind of Object.keys(errors) as (keyof typeof errors)[]) {
      const { codes = [] } = errors[kind] ?? {}
      errors[kind] = { codes, status: standard.errors[kind]?.status ?? 0 }
    }
    const findings = checkDialect({ ...contrary, errors }, openapiOf(contrary))
    const wrong = differing(contrary, standard).filter((fact) => /^errors\..*status$/.test(fact))
    expect(named(findings, 'disagrees').sort()).toEqual(wrong.sort())
    expect(findings.find(({ fact }) => fact === 'errors.gone.status')).toMatchObject({ document: '410' })
  })

  // Each setting alone: a check that looks at another place would not notice.
  const said = factsOf(standard).filter((fact) => !silent.includes(fact) && !fact.startsWith('orderStatuses.'))
  test.each(said.filter((fact) => differing(standard, contrary).includes(fact)))('notices %s alone', (fact) => {
    const dialect = structuredClone(standard) as unknown as Record<string, unknown>
    const pieces = fact.startsWith('event.names.') ? ['event', 'names', fact.slice(12)] : fact.split('.')
    const last = pieces.at(-1) ?? ''
    const holder = pieces.slice(0, -1).reduce((at, name) => at[name] as Record<string, unknown>, dialect)
    const other = pieces.reduce<unknown>((at, name) => (at as Record<string, unknown>)[name], contrary)
    holder[last] = other
    const findings = checkDialect(dialect as unknown as Dialect, openapiOf(standard))
    expect(named(findings, 'disagrees')).toContain(fact)
  })

  test('says nothing where the document says nothing', () => {
    for (const document of [undefined, 'text', {}, { paths: { '/orders': 7 } }, { openapi: '3.1.0', paths: {} }]) {
      const findings = checkDialect(standard, document)
      expect(findings.map(({ fact }) => fact).sort()).toEqual(factsOf(standard).sort())
      expect(named(findings, 'disagrees')).toEqual([])
    }
  })

  test('ends with references that lead in circles', () => {
    const loop = { $ref: '#/components/schemas/Loop' }
    const tree = { type: 'object', properties: { child: { $ref: '#/components/schemas/Tree' } } }
    const content = { 'application/json': { schema: { $ref: '#/components/schemas/Tree' } } }
    const get = { responses: { 200: { content }, 400: loop } }
    const document = { components: { schemas: { Loop: loop, Tree: tree } }, paths: { '/products/{id}': { get } } }
    expect(checkDialect(standard, document).length).toBeGreaterThan(100)
  })
})

async function serve(dialect: Dialect) {
  const apiKey = 'sk_test_0123456789abcdef'
  const sandbox = await startHeldSandbox({ dialect, apiKey, automatic: false })
  onTestFinished(() => sandbox.close())
  const folder = temporaryFolder()
  const config = path.join(folder, 'quayside.json')
  const stores = [{ id: 'main-k3j9x2p7', kind: 'backend', name: 'Main', callbackUrl: 'http://127.0.0.1:9/' }]
  writeFileSync(config, JSON.stringify({ supplier: { baseUrl: sandbox.baseUrl }, stores }))
  const env = { QUAYSIDE_API_KEY: apiKey, QUAYSIDE_KEY_ENCRYPTION_KEY: Buffer.alloc(32, 'kek').toString('base64') }
  return { config, env, folder }
}

describe('quayside dialect check', () => {
  test('ends with 1 and names each difference when the supplier speaks another dialect', async () => {
    const { config, env } = await serve(contrary)
    const { exitCode, stdout, stderr } = await run(['dialect', 'check', '--json', '--config', config], { env })
    expect(stderr).toBe('')
    expect(exitCode).toBe(1)
    const { findings, disagrees } = JSON.parse(stdout) as { findings: Finding[]; disagrees: number }
    expect(disagrees).toBeGreaterThan(110)
    expect(findings.filter(({ verdict }) => verdict === 'agrees')).toEqual([])
    const find = (fact: string) => findings.find((finding) => finding.fact === fact)?.document
    // The document was fetched although the dialect is wrong about how: that shows two facts by itself.
    expect(find('headers.apiKey')).toBe('x-caller-key')
    expect(find('openapiNeedsKey')).toBe('true')
    expect(find('signature.encoding')).toBe('base64')
    expect(find('paging.limitMax')).toBe('25')
    expect(find('orderRequired')).toBe('article, pieces, your_ref')
  })

  test('ends with 0 when nothing disagrees, and prints a table', async () => {
    const { config, env } = await serve(standard)
    const { exitCode, stdout } = await run(['dialect', 'check', '--config', config], { env, terminal: true })
    expect(exitCode).toBe(0)
    expect(stdout).toMatch(/^FACT +VERDICT +DIALECT +DOCUMENT$/m)
    expect(stdout).toMatch(/^signature\.header +agrees +x-service-signature/m)
    expect(stdout).toMatch(/^settleSeconds +not said +90/m)
    expect(stdout).toContain('0 disagree, 11 are not said.')
    expect(Math.max(...stdout.split('\n').map((line) => line.length))).toBeLessThanOrEqual(80)
  })

  test('compares another dialect with a document that was saved, without a configuration', async () => {
    const file = path.join(temporaryFolder(), 'openapi.json')
    writeFileSync(file, JSON.stringify(openapiOf(contrary)))
    const env = { QUAYSIDE_CONFIG: '/nowhere.json' }
    const good = await run(['dialect', 'check', '--document', file, '--dialect', 'contrary'], { env })
    expect(good).toMatchObject({ exitCode: 0, stderr: '' })
    const bad = await run(['dialect', 'check', '--document', '/nowhere', '--dialect', 'contrary'], { env })
    expect(bad.exitCode).toBe(2)
  })

  test('says what the supplier answered when it shows no description', async () => {
    const { config, env } = await serve(contrary)
    const { exitCode, stderr } = await run(['dialect', 'check', '--config', config], {
      env: { ...env, QUAYSIDE_API_KEY: 'another-key' },
    })
    expect(exitCode).toBe(1)
    expect(stderr).toContain('GET /openapi answered 403')
    expect(stderr).not.toContain('another-key')
  })
})
