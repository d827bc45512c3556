import { existsSync } from 'node:fs'
import path from 'node:path'
import { Router } from 'express'
import { describe, expect, onTestFinished, test } from 'vitest'
import { createDryRuns } from '../../src/catalogue/dry-runner.ts'
import { dryRunOperations } from '../../src/http/api/catalogue.ts'
import { openApiDocument } from '../../src/http/openapi.ts'
import { type ApiContext, listed, routerOf } from '../../src/http/operation.ts'
import { createHttpServer } from '../../src/http/server.ts'
import { openApi } from '../support/api-world.ts'
import { idAt, listWorld, productRecord } from '../support/catalogue-world.ts'
import { run, widest, writePlace } from '../support/cli-run.ts'
import { databaseFile, fileDatabase } from '../support/database.ts'
import { publishWorld } from '../support/publish-world.ts'
import { until } from '../support/test-app.ts'

/** A service that has dry runs alone, for a supplier of 40 products in four pages and a store that has all of them. */
async function dryService() {
  const file = databaseFile()
  const db = fileDatabase(file)
  const selling = await publishWorld({ stock: { zeroUnder: 3 } }, { db })
  const world = await listWorld(40, { db })
  const { catalogue } = world
  catalogue.stores = [selling.store]
  await world.sync()
  selling.clock.at = world.clock.at
  await selling.settle()
  // Waits at the third page when the test says so.
  const gate: { opened?: Promise<void> } = {}
  const { products } = catalogue.supplier
  catalogue.supplier = {
    ...catalogue.supplier,
    products: async (query) => {
      if (query.page === 3) await gate.opened
      return products(query)
    },
  }
  const halt = new AbortController()
  catalogue.signal = halt.signal
  const dataDir = path.dirname(file)
  const dryRuns = createDryRuns({ catalogue, stores: [selling.store], dataDir })
  const operations = listed(dryRunOperations({ dryRuns } as ApiContext))
  const server = createHttpServer({
    webhooks: Router(),
    health: Router(),
    log: catalogue.log,
    newId: catalogue.newId,
    monotonic: Date.now,
    api: [routerOf(operations, async () => ({ kind: 'person', role: 'operator', actor: 'test' }) as never)],
  })
  const { port } = await server.listen('127.0.0.1', 0)
  onTestFinished(() => server.close())
  const url = `http://127.0.0.1:${port}`
  const ask = (query = '', signal?: AbortSignal) =>
    fetch(`${url}/api/v1/sync/dry-run${query}`, { method: 'POST', ...(signal ? { signal } : {}) })
  const place = writePlace(url)
  const quayside = (...argv: string[]) =>
    run(['sync', '--dry-run', '--config', place.config, ...argv], { terminal: true })
  return { ...world, ask, quayside, gate, halt, scratch: path.join(dataDir, 'dry-run.db'), operations }
}

const linesOf = (text: string): Record<string, unknown>[] =>
  text
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line))

describe('POST /sync/dry-run', () => {
  test('is a line of JSON for each event, the first before the last page is read', async () => {
    const { ask, gate, list } = await dryService()
    list.records[3] = productRecord(idAt(3), { api_price: '11.00' })
    let open = () => {}
    gate.opened = new Promise((resolve) => {
      open = resolve
    })
    const answer = await ask()
    expect([answer.status, answer.headers.get('content-type')]).toEqual([200, 'application/x-ndjson; charset=utf-8'])
    const reader = (answer.body as ReadableStream<Uint8Array>).getReader()
    let text = ''
    while (!text.includes('"pages":2')) text += new TextDecoder().decode((await reader.read()).value)
    expect(text).not.toContain('"type":"end"')
    open()
    for (let step = await reader.read(); !step.done; step = await reader.read())
      text += new TextDecoder().decode(step.value)
    const events = linesOf(text)
    expect(events[0]).toMatchObject({ type: 'start', syncUnderWay: null })
    expect(events.at(-1)).toMatchObject({
      type: 'end',
      offers: { seen: 40, changed: 1 },
      stores: [{ pushed: 1, held: 0 }],
    })
  })

  test('is one at a time, and free again when its caller has gone away', async () => {
    const { ask, gate, scratch, pages } = await dryService()
    let open = () => {}
    gate.opened = new Promise((resolve) => {
      open = resolve
    })
    pages.length = 0
    const gone = new AbortController()
    const answer = await ask('', gone.signal)
    await (answer.body as ReadableStream).getReader().read()
    await until(() => pages.includes(2))
    const second = await ask()
    expect(second.status).toBe(409)
    expect(await second.json()).toMatchObject({ error: { code: 'dry_run_under_way' } })
    pages.length = 0
    gone.abort()
    open()
    await until(() => !existsSync(scratch))
    // It is free a moment after its copy is gone.
    let third = await ask()
    while (third.status === 409) third = await ask()
    expect(third.status).toBe(200)
    expect(linesOf(await third.text()).at(-1)).toMatchObject({ type: 'end' })
    // At most the page that was under way and the one after it; then the four of the third.
    expect(pages.length).toBeLessThanOrEqual(6)
  })

  test('ends with a line that says why when it breaks off', async () => {
    const { ask, hooks, halt, scratch } = await dryService()
    hooks.tamper = (page) => page === 2 && halt.abort()
    const events = linesOf(await (await ask()).text())
    expect(events.at(-1)).toEqual({ type: 'error', code: 'unavailable', message: 'the service is being stopped' })
    expect(existsSync(scratch)).toBe(false)
    expect((await ask()).status).toBe(503)
  })

  test('is for operators, takes a limit of events, and is described line by line', async () => {
    const world = await openApi()
    const asked = (token: string, query = '') => world.ask('POST', `/sync/dry-run${query}`, { token })
    expect((await asked(world.tokens.viewer)).status).toBe(403)
    expect((await asked(world.tokens.operator, '?most=10001')).status).toBe(400)
    const { status, body } = await asked(world.tokens.operator, '?most=0')
    const events = body as unknown as { type: string }[]
    expect(status).toBe(200)
    expect(events.filter(({ type }) => type === 'offer' || type === 'listing')).toEqual([])
    expect(events.at(-1)).toMatchObject({ type: 'end', truncated: true })
    const { body: runs } = await world.ask('GET', '/sync/runs', { token: world.tokens.viewer })
    expect(runs.data.items[0]).toMatchObject({ dry: true, cause: 'dry run', state: 'complete' })
    const document = JSON.stringify(openApiDocument(world.operations))
    expect(document).toContain('"application/x-ndjson":{"schema":{"$ref":"#/components/schemas/DryRunSyncLine"}}')
  })
})

describe('quayside sync --dry-run', () => {
  test('draws a bar, then what would change and why, within 80 columns', async () => {
    const { quayside, list } = await dryService()
    list.records[1] = productRecord(idAt(1), { api_price: '11.00', local_stock: 1, provider_stock: 1 })
    list.records[2] = productRecord(idAt(2), { api_price: '90.00' })
    list.records[4] = { id: idAt(4), sku: 7 }
    list.records.push(
      productRecord('p-new', { sku: 'A-SKU-LONGER-THAN-ANY-COLUMN-OF-A-TABLE-MAY-BE', category: 'software' }),
    )
    const { exitCode, stdout } = await quayside()
    if (process.env.SHOW) process.stdout.write(stdout.replaceAll('\r', '\n'))
    expect(exitCode).toBe(0)
    const [drawn, printed] = [stdout.split('\n')[0] ?? '', stdout.slice(stdout.indexOf('\n') + 1)]
    for (const bar of drawn.split('\r').slice(1)) expect(bar.length).toBe(79)
    expect(drawn).toContain('5/5 pages')
    expect(widest(printed)).toBeLessThanOrEqual(80)
    expect(printed).toMatch(/^SKU-p00001 +Product p00001 +cost +10\.00 +11\.00$/m)
    expect(printed).toMatch(/^SKU-p00001 +price +12\.00 +13\.20 +markup: the cost plus 20 %$/m)
    expect(printed).toMatch(/^ +stock +7 +0 +fewer than 3 count as none$/m)
    expect(printed.replaceAll(/\s+/g, ' ')).toContain(
      "Page 1: cannot be read, 1 in all: record 4 (p00004): name is nothing (the supplier's request req_",
    )
    expect(printed.replaceAll(/\s+/g, ' ')).toContain(
      'Nothing was changed. A sync run now would find 40 offers: 1 new, 2 changed',
    )
    expect(printed).toContain('would get 3 listings, 1 held.')
  })

  test('--json prints every event as a line', async () => {
    const { quayside, list } = await dryService()
    list.records = list.records.map((_, place) => productRecord(idAt(place), { api_price: '11.00' }))
    const { exitCode, stdout } = await quayside('--json', '--most', '3')
    expect(exitCode).toBe(0)
    const events = linesOf(stdout)
    expect(events.filter(({ type }) => type === 'offer')).toHaveLength(3)
    expect(events.at(-1)).toMatchObject({ type: 'end', truncated: true, offers: { changed: 40 } })
  })

  test('ends with 1 when the catalogue cannot be read, and with 5 beside another one', async () => {
    const { quayside, hooks, gate, ask } = await dryService()
    hooks.tamper = (_page, answer) => {
      answer.status = 400
    }
    const { exitCode, stdout } = await quayside()
    expect(exitCode).toBe(1)
    if (process.env.SHOW) process.stdout.write(stdout.replaceAll('\r', '\n'))
    expect(stdout).toContain('A sync run now would fail: page 1')
    expect(stdout).toMatch(/the supplier's request\s+req_\d+/)
    delete hooks.tamper
    let open = () => {}
    gate.opened = new Promise((resolve) => {
      open = resolve
    })
    const answer = await ask()
    const refused = await quayside()
    expect([refused.exitCode, refused.stderr]).toEqual([5, expect.stringContaining('a dry run is under way')])
    open()
    await answer.text()
  })

  test('ends with 1 when the events break off', async () => {
    const { quayside, hooks, halt } = await dryService()
    hooks.tamper = (page) => page === 2 && halt.abort()
    const { exitCode, stderr } = await quayside()
    expect(exitCode).toBe(1)
    expect(stderr).toContain('the dry run broke off: the service is being stopped')
  })
})
