/** `quayside listings` against the real API: what it prints, and what it changes. */
import { beforeEach, describe, expect, test } from 'vitest'
import { offersByProduct, putOffer } from '../../src/storage/offers.ts'
import { type ApiWorld, openApi } from '../support/api-world.ts'
import { run, widest } from '../support/cli-run.ts'
import { offerRow } from '../support/publish-world.ts'
import { STORE } from '../support/test-app.ts'

let world: ApiWorld

const call = (...argv: string[]) =>
  run(['listings', ...argv, '--url', world.url, '--token', world.tokens.owner], { terminal: true, now: world.now })
const inStore = (...argv: string[]) => call(...argv, '--store', STORE)
const release = ['listings', 'release', 'SKU-a', '--reason', 'confirmed', '--store', STORE]
/** Without a terminal, or with what a person types. */
const piped = () => run([...release, '--url', world.url, '--token', world.tokens.owner], { now: world.now })
const asked = (typed: string) =>
  run([...release, '--url', world.url, '--token', world.tokens.owner], {
    terminal: true,
    typed: [typed],
    now: world.now,
  })

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
    expect(out).toMatch(/^ID +STATE +PRICE +STOCK +PUSHED +WHY\n/)
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
    expect(out).toContain(`Let it pass:\n  npx quayside listings release SKU-a --price 36.00 --store ${STORE} `)
    expect(widest(out)).toBeLessThanOrEqual(80)
    expect((await inStore('release', 'SKU-a')).exitCode).toBe(2)
    const passed = await inStore('release', 'SKU-a', '--price', '36.00', '--reason', 'confirmed')
    expect(passed.stdout).toMatch(/^Done; the store gets it next\.\n/)
    await world.publish()
    const json = JSON.parse((await inStore('show', 'SKU-a', '--json')).stdout) as Record<string, unknown>
    expect(json).toMatchObject({ state: 'synced', known: { price: '36.00', stock: 5 } })
    expect(json.prices).toMatchObject([
      { price: '36.00', cause: 'approved' },
      { price: '12.00', cause: 'first' },
    ])
  })

  test('lists SKUs that match no offer until a person links them', async () => {
    expect((await inStore('problems')).stdout).toMatch(
      /^TWICE +held +ambiguous SKU: the SKU TWICE is of 2 products: b, c$/m,
    )
    expect((await inStore('link', 'TWICE', '--product', 'c', '--variation', 'Europe')).exitCode).toBe(0)
    await world.publish()
    expect((await inStore('problems')).stdout).toBe('No listing is held for its SKU.\n')
    expect((await inStore('show', 'TWICE')).stdout).toMatch(/^Listing +TWICE \(Europe\)\n/)
    expect((await inStore('unlink', 'TWICE')).exitCode).toBe(0)
    const { stdout: ignored } = await inStore('ignore', 'TWICE', '--reason', 'not ours')
    expect(ignored).toMatch(/^Done; nothing of it goes to the store\.\n/)
    expect(ignored).toMatch(/^State +ignored$/m)
    expect((await inStore('retry', 'TWICE')).exitCode).toBe(5)
    expect((await inStore('unignore', 'TWICE')).exitCode).toBe(0)
    expect((await inStore('show', 'nobody')).exitCode).toBe(4)
  })

  test('says by which options an offer is named when a link names none', async () => {
    for (const options of [[], ['--product', 'b', '--offer', 'TWICE']]) {
      const { exitCode, stderr } = await inStore('link', 'v-22', ...options)
      expect(exitCode).toBe(2)
      expect(stderr).toContain('--product <id>, the product of the supplier, or --offer <sku>')
      expect(stderr).not.toContain('offerSku')
      expect(widest(stderr)).toBeLessThanOrEqual(80)
    }
  })

  test('shows the prices that wait among those that are held, within 80 columns', async () => {
    const { stdout } = await inStore('list', '--state', 'held')
    expect(stdout).toMatch(/^ID +STATE +PRICE +WAITS +STOCK +PUSHED +WHY\n/)
    expect(stdout).toMatch(/^SKU-a +held +12\.00 EUR +36\.00 EUR +0 /m)
    expect(widest(stdout)).toBeLessThanOrEqual(80)
  })
})

describe('an offer whose SKU a person has linked to another product', () => {
  test('says in its price why nothing sells it, instead of none yet', async () => {
    await offer('d')
    expect((await inStore('link', 'SKU-d', '--product', 'b')).exitCode).toBe(0)
    await world.publish()
    const argv = ['price', 'explain', 'SKU-d', '--store', STORE, '--url', world.url, '--token', world.tokens.owner]
    const { stdout } = await run(argv, { terminal: true, now: world.now })
    const text = stdout.replaceAll(/\n +/g, ' ')
    expect(text).toContain('none: the listing SKU-d stands under its SKU and is of product b; take that link back')
    expect(text).toContain('quayside listings link <id> --product d')
    expect(widest(stdout)).toBeLessThanOrEqual(80)
    expect((await inStore('unlink', 'SKU-d')).exitCode).toBe(0)
    await world.publish()
    expect((await run(argv, { terminal: true, now: world.now })).stdout).toMatch(/^Listing +SKU-d is synced/m)
  })
})

describe('a release without a price', () => {
  const row = async () => (await world.ask('GET', `/stores/${STORE}/listings/SKU-a`)).body.data

  test('passes the price that is shown once a person says yes to it', async () => {
    const { exitCode, stdout } = await asked('yes')
    expect(stdout).toMatch(/^Store has +12\.00 EUR\nWaits +36\.00 EUR$/m)
    expect(widest(stdout)).toBeLessThanOrEqual(80)
    expect(exitCode).toBe(0)
    expect(await row()).toMatchObject({ state: 'pending', wantedPrice: null })
  })

  test('passes nothing when the person says no', async () => {
    expect((await asked('no')).exitCode).toBe(5)
    expect(await row()).toMatchObject({ state: 'held', wantedPrice: '36.00' })
  })

  test('is refused without a terminal, with the command that names the price and the store', async () => {
    const { exitCode, stderr } = await piped()
    expect(exitCode).toBe(2)
    expect(stderr).toContain(`release SKU-a --price 36.00 --store ${STORE} --reason confirmed`)
    expect(await row()).toMatchObject({ state: 'held', wantedPrice: '36.00' })
  })
})

describe('a release of a price that waits no more', () => {
  test('is refused with the one that waits now', async () => {
    const { exitCode, stderr } = await inStore('release', 'SKU-a', '--price', '24.00', '--reason', 'confirmed')
    expect(exitCode).toBe(5)
    expect(stderr).toContain('waits now is 36.00 EUR, not 24.00')
  })
})
