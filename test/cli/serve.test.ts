import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import path from 'node:path'
import { text } from 'node:stream/consumers'
import { describe, expect, it, onTestFinished } from 'vitest'
import { commandLine } from '../../src/cli/words.ts'
import { loadConfig } from '../../src/config/config.ts'
import { writeDemoConfig } from '../../src/demo/files.ts'
import { banner, callbackLine } from '../../src/demo/service.ts'
import { createDatabase, openSetUp } from '../../src/installation.ts'
import { generatedCatalogue } from '../../src/sandbox/catalogue.ts'
import { run, temporaryFolder, widest } from '../support/cli-run.ts'
import { freePort } from '../support/free-port.ts'
import { startHttp } from '../support/supplier-server.ts'

const place = () => ({
  folder: temporaryFolder(),
  baseUrl: 'http://127.0.0.1:1/v1',
  apiKey: 'k'.repeat(20),
  dialect: 'reseller-v1.1',
})

const program = (...argv: string[]) =>
  spawn(process.execPath, ['src/quayside.js', ...argv], { cwd: path.join(import.meta.dirname, '../..') })

describe('what runs in the foreground', () => {
  it('is what the named configuration says, and never the demo by a misspelt name', async () => {
    const { folder, ...more } = place()
    const held = await startHttp((_heard, response) => response.end())
    onTestFinished(() => held.close())
    // The port of the configuration is taken: the service can only listen at the one that the command line names.
    const port = Number(new URL(held.origin).port)
    const config = writeDemoConfig({ folder, ...more, port, storePort: 1 })
    await createDatabase(loadConfig(config, {}))
    const env = { QUAYSIDE_DATA_DIR: path.join(folder, 'demo') }
    const served = await run(['serve', '--config', config, '--port', '0'], { env })
    expect(served.exitCode).toBe(0)
    const [, url = ''] = /^Quayside listens at (http:\/\/127\.0\.0\.1:\d+)\n$/.exec(served.stderr) ?? []
    await expect(fetch(`${url}/livez`), 'closed').rejects.toMatchObject({ cause: { code: 'ECONNREFUSED' } })
    await (await openSetUp(config, {})).close()
    expect((await run(['serve', '--config', `${config}.typo`], { env })).exitCode).toBe(4)
    expect(existsSync(env.QUAYSIDE_DATA_DIR), 'no demo').toBe(false)
  })

  it('prints no line of the demo wider than 80 columns, and the address of its API in one piece', () => {
    const port = (number: number) => `http://127.0.0.1:${number}`
    const text = banner({
      url: port(65_535),
      consoleUrl: port(65_532),
      sandboxUrl: `${port(65_534)}/v1`,
      shopUrl: `${port(65_533)}/callbacks`,
      token: `qs_s_${'a'.repeat(43)}`,
      reference: '1001',
      sku: 'GAM-RAIL4',
      folder: 'data/demo',
      commandLine,
    })
    expect(text).toContain(`\n  ${'npx quayside orders show 1001'.padEnd(42)}  from the store order to the keys\n`)
    expect(text).toContain('  http://127.0.0.1:65535\n')
    expect(text).toContain('  http://127.0.0.1:65535/api/v1/docs\n')
    expect(widest(text)).toBeLessThanOrEqual(80)
  })

  it('prints the licence keys of a line below each other where they do not fit beside each other', () => {
    const keys = ['X5AUX-GSMXU-KG7U6-6VF96-BW5V8', 'MZ3JD-BULEZ-GQZ8J-8KG8T-R9SLA']
    const of = { store: 'demo-quaysi00', reference: '1001', line: '1', sku: 'GAM-RAIL4', quantity: 2 }
    const head = { id: 'c1', timestamp: '' }
    const fulfilled = { ...of, keys, delivered: 2, complete: true }
    expect(
      callbackLine({ ...head, type: 'line.fulfilled', data: fulfilled }),
    ).toBe(`  store ◂ line.fulfilled   order 1001, line 1: ${keys[0]}
                           ${keys[1]}
`)
    const data = {
      ...of,
      state: 'failed',
      code: 'out_of_stock',
      message: 'none is left '.repeat(9),
      advice: '',
    } as const
    const failed = { ...head, type: 'line.failed', data } as const
    expect(widest(callbackLine(failed))).toBeLessThanOrEqual(80)
  })

  it('asks for the lost database before it names the command that creates an empty one, within 80 columns', async () => {
    const { folder, ...more } = place()
    const config = writeDemoConfig({ folder, ...more, port: await freePort(), storePort: 1 })
    const child = program('serve', '--config', config)
    const said = await text(child.stderr)
    expect(child.exitCode).not.toBe(0)
    expect(widest(said.replaceAll(folder, 'data'))).toBeLessThanOrEqual(80)
    const words = said.replaceAll(/\s+/g, ' ')
    expect(words).toContain(`quayside: there is no database at ${path.join(folder, 'quayside.db')}`)
    const [lost, command] = [words.indexOf('If there was one'), words.indexOf('npx quayside database create')]
    expect(lost).toBeGreaterThan(0)
    expect(command).toBeGreaterThan(lost)
    expect(words).toContain(`npx quayside restore <backup> --config ${config}`)
    expect(words).toContain(`npx quayside database create --config ${config}`)
  })

  it('gets the options of the sandbox as numbers', async () => {
    const child = program('sandbox', '--offers', '50000', '--seed', '7', '--port', '0')
    onTestFinished(() => void child.kill('SIGKILL'))
    const ended = once(child, 'exit')
    const [said] = (await once(child.stderr, 'data')) as [Buffer]
    const [baseUrl = ''] = /http:\/\/127\.0\.0\.1:\d+\/v1/.exec(String(said)) ?? []
    expect(new URL(baseUrl).port, 'a free one').not.toBe('8090')
    // Named and answered as the dialect reseller-v1.1 says.
    const answer = await fetch(`${baseUrl}/products?limit=1`, { headers: { 'x-api-key': 'sandbox-key' } })
    const { id, sku, name } = generatedCatalogue(50_000, 7).at(0)
    expect(await answer.json()).toMatchObject({ success: true, data: { items: [{ id, sku, name }], total: 50_000 } })
    child.kill('SIGTERM')
    expect(await ended).toEqual([0, null])
  })
})
