/** `quayside listings` against the real API: what it prints, and what it changes. */
import { beforeEach, describe, expect, test } from 'vitest'
import { offersByProduct, putOffer } from '../src/storage/offers.ts'
import { type ApiWorld, openApi } from './api-world.ts'
import { run, widest } from './cli-run.ts'
import { STORE } from './harbour.ts'
import { offerRow } from './publish-world.ts'

let world: ApiWorld

const call = (...argv: string[]) =>
  run(['listings', ...argv, '--url', world.url, '--token', world.tokens.owner], { terminal: true, now: world.now })
const inStore = (...argv: string[]) => call(...argv, '--store', STORE)

/** Stores an offer and tells the store of it. */
async function offer(...given: Parameters<typeof offerRow>): Promise<void> {
  const row = offerRow(...given)
  const [known] = await world.db.query(offersByProduct([row.productId]))
  await world.db.commit([putOffer({ ...row, asOf: (known?.asOf ?? row.asOf) + 1 })])
}

beforeEach(async () => {
  world = await openApi()
  await offer('a')
  await offer('b', { sku: 'TWICE' })
  await offer('c', { sku: 'TWICE' })
  await world.publish()
  await offer('a', { costMinor: 3_000 })
  await world.ask('POST', `/stores/${STORE}/listings/SKU-a/retry`)
  await world.publish()
})

describe('quayside listings', () => {
  test('lists what a store sells, within 80 columns', async () => {
    const { stdout: out, exitCode } = await inStore('list')
    expect(exitCode).toBe(0)
    expect(out).toMatch(/^ID +STATE +PRICE +STOCK +TOLD +WHY\n/)
    expect(out).toMatch(/^SKU-a +held +12\.00 EUR +0 +0 s +price jump: /m)
    expect(widest(out)).toBeLessThanOrEqual(80)
    expect((await inStore('list', '--state', 'synced')).stdout).toBe('No listing of the store matches.\n')
  })

  test('asks which store, where there are several', async () => {
    const { stderr: err, exitCode } = await call('list')
    expect(exitCode).toBe(2)
    expect(err).toContain(`which store? Name it by --store: one of ${STORE}, other-ef56gh78`)
  })

  test('shows one with what waits, and lets its price pass', async () => {
    const { stdout: out } = await inStore('show', 'SKU-a')
    expect(out).toContain('Waits       the price 36.00 EUR')
    expect(out).toContain("Let it pass: quayside listings release SKU-a --reason '…'")
    expect(widest(out)).toBeLessThanOrEqual(80)
    expect((await inStore('release', 'SKU-a')).exitCode).toBe(2)
    expect((await inStore('release', 'SKU-a', '--reason', 'confirmed')).stdout).toMatch(
      /^Done; the store is told next\.\n/,
    )
    await world.publish()
    const json = JSON.parse((await inStore('show', 'SKU-a', '--json')).stdout) as Record<string, unknown>
    expect(json).toMatchObject({ state: 'synced', known: { price: '36.00', stock: 5 } })
    expect(json.prices).toMatchObject([
      { price: '36.00', cause: 'approved' },
      { price: '12.00', cause: 'first' },
    ])
  })

  test('lists SKUs that nobody can say an offer for, until a person does', async () => {
    expect((await inStore('problems')).stdout).toMatch(
      /^TWICE +held +ambiguous sku: the SKU TWICE is of 2 products: b, c$/m,
    )
    expect((await inStore('link', 'TWICE', '--product', 'c', '--variation', 'Europe')).exitCode).toBe(0)
    await world.publish()
    expect((await inStore('problems')).stdout).toBe('Every SKU of the store is clear.\n')
    expect((await inStore('show', 'TWICE')).stdout).toMatch(/^Listing +TWICE \(Europe\)\n/)
    expect((await inStore('unlink', 'TWICE')).exitCode).toBe(0)
    expect((await inStore('ignore', 'TWICE', '--reason', 'not ours')).exitCode).toBe(0)
    expect((await inStore('retry', 'TWICE')).exitCode).toBe(5)
    expect((await inStore('unignore', 'TWICE')).exitCode).toBe(0)
    expect((await inStore('show', 'nobody')).exitCode).toBe(4)
  })
})
