import { describe, expect, test } from 'vitest'
import { run, startService } from '../support/cli-run.ts'

const id = '01k3m5x7z9abcdefghjkmnpqrs'
const at = '2026-08-02T14:03:11.000Z'
const now = () => Date.parse('2026-08-02T14:13:11.000Z')
const sweep = {
  id,
  cause: 'ann',
  state: 'complete',
  from: null,
  startedAt: at,
  finishedAt: '2026-08-02T14:03:12.500Z',
  pages: 1,
  orders: 3,
  matched: 3,
  refreshed: 0,
  orphans: 0,
  foreign: 0,
  missing: 0,
  notListed: 0,
  errors: 0,
  unreadable: 0,
  error: null as string | null,
}

/** A service whose sweep is over at the third look. */
async function sweeping(ended: Partial<typeof sweep>) {
  let looks = 0
  return startService({
    'POST /sweeps': () => ({ sweep: { ...sweep, state: 'running', finishedAt: null } }),
    [`GET /sweeps/${id}`]: () => {
      looks += 1
      return looks < 3 ? { ...sweep, state: 'running', finishedAt: null } : { ...sweep, ...ended }
    },
  })
}

describe('quayside sweep', () => {
  test('waits for the end and tells what was found', async () => {
    const { config, heard } = await sweeping({ orphans: 1, orders: 4 })
    const { stdout, exitCode } = await run(['sweep', '--config', config], { now })
    expect(exitCode).toBe(0)
    expect(heard.map(({ method }) => method)).toEqual(['POST', 'GET', 'GET', 'GET'])
    expect(stdout).toContain('Took            1.5 s')
    expect(stdout).toContain('Looked back to  the beginning')
    expect(stdout).toContain("Orphans         1 (orders under our stores' references without a purchase)")
    expect(stdout).toContain('See each: npx quayside discrepancies list')
    expect(stdout).not.toContain('Not readable')
  })

  test('ends with 1 when the list could not be read as a whole', async () => {
    const { config } = await sweeping({ state: 'failed', error: 'the supplier answered 500', unreadable: 2 })
    const { stdout, exitCode } = await run(['sweep', '--config', config], { now })
    expect(exitCode).toBe(1)
    expect(stdout).toContain('the supplier answered 500')
    expect(stdout).toContain('2 (orders in the list)')
  })

  test('shows the last one, and says how to start the first', async () => {
    const { config } = await startService({ 'GET /sweeps': () => ({ items: [], next: null }) })
    const { stderr, exitCode } = await run(['sweep', 'show', '--config', config], { now })
    expect(exitCode).toBe(4)
    expect(stderr).toContain('no sweep yet: `npx quayside sweep` starts one')
  })
})

describe('quayside balance', () => {
  test('says what explains it, and what is not believed yet', async () => {
    const { config } = await startService({
      'GET /balance': () => ({
        balance: { amount: '95.00', currency: 'EUR', readAt: at },
        account: {
          currency: 'EUR',
          startedAt: at,
          start: '100.00',
          charges: '10.00',
          refunds: '5.00',
          credits: '1.00',
          unexplained: '0.00',
          expected: '96.00',
          pending: '-1.00',
          owedBack: '0.00',
          explainedAt: at,
          judgedAt: at,
        },
        items: [{ id, kind: 'charge', amount: '-10.00', at }],
        next: null,
      }),
    })
    const { stdout, exitCode } = await run(['balance', '--config', config], { now })
    expect(exitCode).toBe(0)
    expect(stdout).toContain('Balance          95.00 EUR')
    expect(stdout).toContain('Explained        96.00 EUR')
    expect(stdout).toContain('-1.00 EUR, not believed yet')
    expect(stdout).toMatch(/charge +-10\.00 EUR/)
  })
})
