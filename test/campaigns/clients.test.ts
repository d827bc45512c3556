/**
 * Clients that generators make of the OpenAPI document compile, and place an order. The generators come from the registry,
 * Java and Python from Debian: a campaign, so it runs where it is asked for.
 */
import { execFileSync } from 'node:child_process'
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterAll, beforeAll, describe, expect, type TestContext, test } from 'vitest'
import { isNeeded } from '../support/needs.ts'
import { openInstallation, until } from '../support/service-process.ts'

const ROOT = path.join(import.meta.dirname, '../..')
/** The one of Debian, which has the packages of Debian. */
const PYTHON = '/usr/bin/python3'
const GENERATOR = 'node_modules/@openapitools/openapi-generator-cli/bin/openapi-generator.jar'
const runs = isNeeded('campaigns')
const needs = runs ? '' : ' (skipped: a campaign that needs Java, Python and the registry, which .ci/run runs)'

/** Takes null out of an enumeration that is `nullable`. */
const withoutNull = (name: string, value: unknown): unknown =>
  name === 'enum' && Array.isArray(value) ? value.filter((one) => one !== null) : value

describe.runIf(runs)(`a client made of the OpenAPI document${needs}`, { timeout: 600_000 }, () => {
  let folder: string
  beforeAll(() => {
    folder = mkdtempSync(path.join(tmpdir(), 'quayside-clients-'))
    cpSync(path.join(import.meta.dirname, 'clients'), folder, { recursive: true })
    run('npm', ['ci', '--ignore-scripts', '--no-audit', '--no-fund'])
  }, 600_000)
  afterAll(() => rmSync(folder, { recursive: true, force: true }))

  /** Runs a program in the folder of the clients. @returns what it wrote; throws, with its words, when it fails */
  function run(program: string, args: string[], env: Record<string, string> = {}): string {
    try {
      const shared = { cwd: folder, encoding: 'utf8', stdio: 'pipe', maxBuffer: 2 ** 26 } as const
      return execFileSync(program, args, { ...shared, env: { ...process.env, ...env } })
    } catch (error) {
      const { stdout = '', stderr = '' } = error as { stdout?: string; stderr?: string }
      throw new Error(`${program} ${args.join(' ')}\n${stdout}${stderr}`.slice(-4_000), { cause: error })
    }
  }
  const tool = (name: string, ...args: string[]) => run(path.join(folder, 'node_modules/.bin', name), args)

  /** A service with its sandbox; its document is stored in the folder. */
  async function openService(onTestFinished: TestContext['onTestFinished']) {
    const service = await openInstallation(onTestFinished)
    await service.start()
    const answer = await fetch(`${service.url}/api/v1/openapi.json`, { headers: { connection: 'close' } })
    writeFileSync(path.join(folder, 'openapi.json'), await answer.text())
    return service
  }

  /** Places an order with a client and looks at it once the store has its keys. */
  async function order({ url, token, shop }: Awaited<ReturnType<typeof openService>>, program: string, file: string) {
    const env = { QUAYSIDE_URL: url, QUAYSIDE_TOKEN: token }
    const placed = JSON.parse(run(program, [file, 'place', file], env)) as object
    await until('the licence keys', () => shop.keys().get(`${file}/1`))
    await until('the order to end', () => shop.received().some(({ type }) => type === 'order.closed'))
    return { ...placed, ...(JSON.parse(run(program, [file, 'show', file], env)) as object) }
  }
  const asItShould = { taken: 202, repeated: 200, isReused: true, state: 'fulfilled', keys: 2 }

  test('by openapi-typescript compiles, refuses mistakes, and places an order', async ({ onTestFinished }) => {
    const service = await openService(onTestFinished)
    tool('openapi-typescript', 'openapi.json', '-o', 'quayside.d.ts')
    const types = ['--types', 'node', '--typeRoots', path.join(ROOT, 'node_modules/@types')]
    const how = ['--strict', '--noEmit', '--target', 'es2024', '--module', 'nodenext', '--allowImportingTsExtensions']
    const [, shown = ''] = /```ts\n(.*?)```/s.exec(readFileSync(path.join(ROOT, 'docs/api.md'), 'utf8')) ?? []
    writeFileSync(path.join(folder, 'shown.ts'), `declare const baseUrl: string, token: string\n${shown}`)
    tool('tsc', ...how, ...types, 'order.ts', 'mistakes.ts', 'shown.ts')
    expect(await order(service, process.execPath, 'order.ts')).toEqual({ ...asItShould, field: 'lines.0.quantity' })
  })

  test('by OpenAPI Generator for Python compiles, refuses mistakes, and places an order', async ({
    onTestFinished,
  }) => {
    const service = await openService(onTestFinished)
    // The release that the registry has is of 2021: it reads no OpenAPI 3.1, and no null in an enumeration.
    tool('openapi-down-convert', '--input', 'openapi.json', '--output', 'openapi-3.0.json')
    const older = JSON.parse(readFileSync(path.join(folder, 'openapi-3.0.json'), 'utf8'), withoutNull) as object
    writeFileSync(path.join(folder, 'openapi-3.0.json'), JSON.stringify(older))
    const output = ['-o', '.', '--package-name', 'quayside_client']
    run('java', ['-jar', GENERATOR, 'generate', '-g', 'python', '-i', 'openapi-3.0.json', ...output])
    run(PYTHON, ['-W', 'error', '-m', 'compileall', '-q', 'quayside_client'])
    expect(await order(service, PYTHON, 'order.py')).toEqual({
      ...asItShould,
      field: 'lines.1.id',
      doesNotFit: [true, true, true, true, true],
    })
  })
})
