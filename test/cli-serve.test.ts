import { Router } from 'express'
import { describe, expect, it, onTestFinished } from 'vitest'
import { banner } from '../src/demo-service.ts'
import { createHttpServer } from '../src/http/server.ts'
import { run, widest, writePlace } from './cli-run.ts'

describe('what runs in the foreground', () => {
  it('is what the named configuration says, and never the demo by a misspelt name', async () => {
    const { config } = writePlace('http://127.0.0.1:1')
    const asked: unknown[] = []
    const serve = (options: unknown) => {
      asked.push(options)
      return Promise.resolve(0)
    }
    expect((await run(['serve', '--config', config, '--port', '0'], { program: { serve } })).exitCode).toBe(0)
    expect((await run(['serve', '--config', `${config}.typo`], { program: { serve } })).exitCode).toBe(4)
    expect(asked).toEqual([{ configFile: config, demo: false, port: 0 }])
  })

  it('prints no line of the demo wider than 80 columns, and the address of its API in one piece', () => {
    const port = (number: number) => `http://127.0.0.1:${number}`
    const text = banner({
      ...{ url: port(65_535), sandboxUrl: `${port(65_534)}/v1`, shopUrl: `${port(65_533)}/callbacks`, count: 1_000 },
      ...{ token: `qs_s_${'a'.repeat(43)}`, sku: 'GAM-RAIL4', folder: 'data/demo' },
    })
    expect(text).toContain('  http://127.0.0.1:65535\n')
    expect(text).toContain('  http://127.0.0.1:65535/api/v1/openapi.json\n')
    expect(widest(text)).toBeLessThanOrEqual(80)
  })

  it('says that another program has the port, and what to do', async () => {
    const quiet = () => undefined
    const serverOf = () =>
      createHttpServer({
        webhooks: Router(),
        api: [],
        health: Router(),
        log: { info: quiet, warn: quiet, error: quiet },
        newId: () => 'request-1',
        monotonic: () => performance.now(),
        count: quiet,
      })
    const first = serverOf()
    const { port } = await first.listen('127.0.0.1', 0)
    onTestFinished(() => first.close())
    await expect(serverOf().listen('127.0.0.1', port)).rejects.toMatchObject({
      code: 'conflict',
      message: expect.stringMatching(/^another program listens at 127\.0\.0\.1:\d+, perhaps the demo: stop it/),
    })
  })

  it('gets the options of the sandbox as numbers', async () => {
    const asked: unknown[] = []
    const sandbox = (options: unknown) => {
      asked.push(options)
      return Promise.resolve(0)
    }
    await run(['sandbox', '--offers', '50000', '--seed', '7', '--port', '0'], { program: { sandbox } })
    expect(asked).toEqual([{ port: 0, offers: 50_000, seed: 7, dialect: 'reseller-v1.1', apiKey: 'sandbox-key' }])
  })
})
