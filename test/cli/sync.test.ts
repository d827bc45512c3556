import { describe, expect, it } from 'vitest'
import { Refusal, run, startService, widest } from '../support/cli-run.ts'

const begun = {
  id: 'run1',
  cause: 'owner',
  state: 'running',
  startedAt: '2026-08-02T14:00:00.000Z',
  finishedAt: null,
  pages: 0,
  pagesTotal: null,
  offersSeen: 0,
  offersNew: 0,
  offersChanged: 0,
  offersUnreadable: 0,
  offersGone: 0,
  error: null,
  requestId: null,
}
const steps = [
  { ...begun, pages: 10, pagesTotal: 40, offersSeen: 1_000, offersChanged: 3 },
  { ...begun, pages: 10, pagesTotal: 40, offersSeen: 1_000, offersChanged: 3 },
  { ...begun, pages: 30, pagesTotal: 40, offersSeen: 3_000, offersChanged: 5 },
]
const complete = {
  ...begun,
  state: 'complete',
  pages: 40,
  pagesTotal: 40,
  offersSeen: 4_000,
  offersChanged: 7,
  changes: [],
}

/** A run that takes these steps, one at each look. */
function startRun(looks: object[]) {
  let look = 0
  return startService({
    'POST /sync': () => ({ run: begun }),
    'GET /sync/runs/run1': () => looks[Math.min(look++, looks.length - 1)],
  })
}

/** A clock that moves a second at each look. */
const clock = () => {
  let now = Date.parse('2026-08-02T14:00:00Z')
  return () => (now += 1_000)
}

describe('sync --follow', () => {
  it('draws one line again and again, within the terminal, and ends with what was found', async () => {
    const { config } = await startRun([...steps, complete])
    const { exitCode, stdout } = await run(['sync', '--follow', '--config', config], { terminal: true, now: clock() })
    expect(exitCode).toBe(0)
    const drawn = stdout.split('\r').slice(1)
    expect(drawn.map((line) => line.split('\n')[0]?.length)).toEqual(Array(drawn.length).fill(79))
    expect(drawn[1]).toMatch(
      /^\[#{4}-{10}\] {2}10\/40 pages {2}1,000 offers {2}0 new {2}3 changed {2}\d+\/s {2}\d+ s left/,
    )
    expect(stdout).toContain('Complete: 4,000 offers, 0 new, 7 changed, 0 gone.')
    expect(stdout).toContain('quayside sync show run1')
  })

  it('counted a first import as changed, and ended with the same offers as new', async () => {
    const imported = { ...complete, pages: 1, pagesTotal: 1, offersSeen: 61, offersNew: 61, offersChanged: 0 }
    const { config } = await startRun([imported])
    const { stdout } = await run(['sync', '--follow', '--config', config], { terminal: true, now: clock() })
    expect(stdout).toMatch(/\r\[#{14}\] {2}1\/1 pages {2}61 offers {2}61 new {2}0 changed {2}\d+\/s +\n/)
    expect(stdout).toContain('Complete: 61 offers, 61 new, 0 changed, 0 gone.')
  })

  it('ended with an empty bar where the supplier does not count its offers', async () => {
    const { config } = await startRun([{ ...complete, pages: 1, pagesTotal: null }])
    const { stdout } = await run(['sync', '--follow', '--config', config], { terminal: true, now: clock() })
    expect(stdout).toMatch(/\r\[#{14}\] {2}1 page {2}/)
  })

  it('keeps a bar within 80 columns beside the counts of a million offers', async () => {
    const large = { ...begun, pages: 5_000, pagesTotal: 10_000, offersSeen: 500_000, offersNew: 500_000 }
    const { config } = await startRun([large, complete])
    const { stdout } = await run(['sync', '--follow', '--config', config], { terminal: true, now: clock() })
    expect(stdout).toMatch(
      /\r\[#+-+\] {2}5,000\/10,000 pages {2}500,000 offers {2}500,000 new {2}0 changed {2}\d s left\r/,
    )
  })

  it('said "0 s left" for as long as all pages were read and it went on', async () => {
    const { config } = await startRun([...steps, { ...complete, state: 'running' }, complete])
    const { stdout } = await run(['sync', '--follow', '--config', config], { terminal: true, now: clock() })
    expect(stdout).toContain('40/40 pages')
    expect(stdout).not.toContain(' 0 s left')
  })

  it('is said to print a line of JSON for each event', async () => {
    const { stdout } = await run(['sync', '--help'])
    expect(stdout.replaceAll(/\s+/g, ' ')).toContain('with --follow or --dry-run a line of JSON for each event')
  })

  it('draws within a terminal of 40 columns', async () => {
    const { config } = await startRun([...steps, complete])
    const options = { terminal: true, columns: 40, now: clock() }
    const { stdout } = await run(['sync', '--follow', '--config', config], options)
    for (const line of stdout.split('\r').slice(1)) expect(line.split('\n')[0]?.length).toBe(39)
  })

  it('prints progress as lines of JSON, each step once, the end last', async () => {
    const { config } = await startRun([...steps, complete])
    const { exitCode, stdout } = await run(['sync', '--follow', '--json', '--config', config], { terminal: true })
    expect(exitCode).toBe(0)
    const lines = stdout
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line))
    expect(lines.map(({ pages, state }) => [pages, state])).toEqual([
      [0, 'running'],
      [10, 'running'],
      [30, 'running'],
      [40, 'complete'],
    ])
  })

  it('ends with 1 and the cause when the run failed', async () => {
    const { config } = await startRun([
      { ...begun, state: 'failed', error: 'the supplier answered 500', requestId: 'req_9' },
    ])
    const { exitCode, stdout } = await run(['sync', '--follow', '--config', config], { now: clock() })
    expect(exitCode).toBe(1)
    expect(stdout).toContain("The run failed: the supplier answered 500 (the supplier's request req_9)")
    expect(widest(stdout)).toBeLessThanOrEqual(100)
  })

  it('ends when the service ends', async () => {
    const { config } = await startService({
      'POST /sync': () => ({ run: begun }),
      'GET /sync/runs/run1': () => {
        throw new Refusal(503, 'unavailable', 'the service is being stopped')
      },
    })
    const { exitCode, stderr } = await run(['sync', '--follow', '--config', config])
    expect(exitCode).toBe(1)
    expect(stderr).toContain('the service is being stopped')
  })
})

describe('sync show', () => {
  it('named a changed offer by its product id alone', async () => {
    const change = { productId: 'df5dda66-a706-49a1-b881-f45800b4d7fe', sku: 'GAM-RAIL4', name: 'Railway Empire 4' }
    const price = { ...change, field: 'cost', before: '12.00', after: '13.50' }
    const { config } = await startRun([{ ...complete, changes: [price] }])
    const { stdout } = await run(['sync', 'show', 'run1', '--config', config], { terminal: true })
    expect(stdout).toMatch(/^SKU +NAME +FIELD +BEFORE +AFTER\nGAM-RAIL4 +Railway Empire 4 +cost +12\.00 +13\.50$/m)
    expect(stdout).not.toContain(change.productId)
  })

  it('says of a dry run that it changed nothing, however many offers it found changed', async () => {
    const { config } = await startRun([{ ...complete, dry: true }])
    const { exitCode, stdout } = await run(['sync', 'show', 'run1', '--config', config])
    expect(exitCode).toBe(0)
    expect(stdout).toContain('4,000 seen, 0 new, 7 changed')
    expect(stdout).toContain('A dry run: it changed nothing')
  })
})

describe('sync show', () => {
  it('without an id failed, and did not show the latest run', async () => {
    const listed = { ...complete, changes: undefined }
    const { config, heard } = await startService({
      'GET /sync/runs': () => ({ items: [listed], next: null }),
      'GET /sync/runs/run1': () => complete,
    })
    const { exitCode, stdout } = await run(['sync', 'show', '--config', config], { terminal: true })
    expect(exitCode).toBe(0)
    expect(stdout).toMatch(/^Run +run1\n/)
    expect(stdout).toContain('No offer changed.')
    expect(heard.map(({ url }) => url)).toEqual(['/api/v1/sync/runs?limit=1', '/api/v1/sync/runs/run1'])
  })

  it('without an id and without a run says how to start one', async () => {
    const { config } = await startService({ 'GET /sync/runs': () => ({ items: [], next: null }) })
    const { exitCode, stderr } = await run(['sync', 'show', '--config', config])
    expect({ exitCode, stderr }).toEqual({
      exitCode: 4,
      stderr: 'quayside: no run yet: `npx quayside sync` starts one\n',
    })
  })
})
