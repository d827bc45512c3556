/** What holds for every revision: what is accepted can be loaded, survives a rotated key, and comes back as it was. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import fc from 'fast-check'
import { afterAll, expect, onTestFinished, test } from 'vitest'
import { type Config, checkedConfig, loadConfig } from '../../src/config/config.ts'
import { passesFilter } from '../../src/domain/listing.ts'
import { priceOf } from '../../src/domain/pricing.ts'
import { Failure } from '../../src/errors.ts'
import { Secret } from '../../src/secret.ts'
import { openSettings, revisionChanges } from '../../src/settings/settings.ts'
import { storedSettings } from '../../src/settings/stored.ts'
import { rotateKeyEncryptionKey } from '../../src/vault/keys.ts'
import { openVault } from '../../src/vault/vault.ts'
import '../support/fixed-seed.ts'
import { memoryDatabase, TEST_NOW } from '../support/database.ts'
import { settingDocuments } from '../support/settings-arbitrary.ts'

const folder = mkdtempSync(path.join(tmpdir(), 'quayside-revisions-'))
afterAll(() => rmSync(folder, { recursive: true }))
const file = path.join(folder, 'quayside.json')
const KEK = Buffer.alloc(32, 'kek').toString('base64')
const env = { QUAYSIDE_KEY_ENCRYPTION_KEY: KEK }
const now = () => TEST_NOW

/** An installation whose database has one revision, and that asks neither supplier nor shops. */
async function installation() {
  writeFileSync(file, '{}')
  const db = memoryDatabase()
  onTestFinished(() => db.close())
  const vault = await openVault({ database: db, keyEncryptionKey: new Secret(KEK), now })
  let id = 0
  const newId = () => {
    id += 1
    return String(id).padStart(26, '0')
  }
  const parts = { db, vault, now, newId }
  const document = { supplier: { baseUrl: 'https://supplier.example/v1' }, stores: [] }
  const stored = { revision: 1, document, secrets: new Map([['api-key', new Secret('sk_test_0123456789abcdef')]]) }
  await db.commit(revisionChanges(parts, stored, { actor: 'test', why: 'first', undoes: null, changes: [] }))
  let inForce = loadConfig(file, env, stored)
  const log = { debug() {}, info() {}, warn() {}, error() {} } as never
  const change = async (next: typeof inForce, commit: () => Promise<void>) => {
    await commit()
    inForce = next
  }
  const settings = await openSettings({ ...parts, log, current: () => inForce, change })
  return { db, vault, settings, inForce: () => inForce }
}

const offers = ['GAM-A', 'SFT-B'].flatMap((sku) =>
  [1, 499, 500, 2_000].map((costMinor) => {
    const category = sku === 'GAM-A' ? 'games' : null
    const place = { localStock: 3, providerStock: 0, available: true, name: sku, basePriceMinor: null }
    return { sku, category, costMinor, currency: 'EUR', costFault: null, ...place }
  }),
)

/** What each store sells and for how much, by its settings. */
const shown = ({ stores }: Config) =>
  stores.map(({ id, policy: { pricing, stock, filter } }) => {
    const listed = offers.map((offer) => [passesFilter(offer, filter), priceOf(offer, pricing, TEST_NOW)])
    return { id, listed, stock }
  })

/** A configuration without functions and without the number of its revision. */
const comparable = (config: object) => JSON.parse(JSON.stringify({ ...config, revision: 0 }))

test('any revision that is accepted makes a configuration that loads, and undoing it brings the one before back', async () => {
  const { db, vault, settings, inForce } = await installation()
  let accepted = 0
  let undone = 0
  await fc.assert(
    fc.asyncProperty(settingDocuments, async (wanted) => {
      const before = inForce()
      const sold = shown(before)
      const { revision: base } = await settings.read()
      const document: unknown = JSON.parse(JSON.stringify(wanted))
      // Stores may go, as by the operation that removes one.
      const wish = { base, document, why: 'a property', also: async () => [] }
      const done = await settings.apply(wish, 'test').catch((error: unknown) => {
        expect(error).toBeInstanceOf(Failure)
        expect((error as Failure).fields.length).toBeGreaterThan(0)
      })
      if (!done) {
        expect((await settings.read()).revision).toBe(base)
        return
      }
      accepted += 1
      const loaded = loadConfig(file, env, await storedSettings(db, vault))
      expect(comparable(loaded)).toEqual(comparable({ ...inForce(), identity: loaded.identity }))
      expect(shown(loaded)).toEqual(shown(inForce()))
      // What a person reads and applies again, with all defaults, is the same.
      const whole = (await settings.read()).document
      const again = inForce().withSettings({
        revision: base + 1,
        document: whole,
        secrets: new Map([['api-key', loaded.apiKey]]),
      })
      expect(comparable({ ...again, document: {} })).toEqual(comparable({ ...inForce(), document: {} }))
      // Half of them stay, so that the next one is undone to something else than nothing.
      if (done.revision % 2 === 0) return
      const ids = new Set(before.stores.map((one) => one.id))
      if (inForce().stores.some(({ id, selling }) => selling !== 'off' && !ids.has(id))) {
        // A store that sells is removed, not undone.
        await expect(settings.undo(done.revision, 'test')).rejects.toMatchObject({ code: 'invalid' })
        return
      }
      undone += 1
      await settings.undo(done.revision, 'test')
      expect(comparable(inForce())).toEqual(comparable(before))
      expect(shown(loadConfig(file, env, await storedSettings(db, vault)))).toEqual(sold)
    }),
    { numRuns: 100 },
  )
  expect(accepted).toBeGreaterThan(30)
  expect(undone).toBeGreaterThan(5)
})

test('secrets of settings open after the key-encryption key was rotated', async () => {
  const { db } = await installation()
  const to = new Secret(Buffer.alloc(32, 'next').toString('base64'))
  await rotateKeyEncryptionKey(db, { from: new Secret(KEK), to, now: now(), also: [] })
  const vault = await openVault({ database: db, keyEncryptionKey: to, now })
  const stored = await storedSettings(db, vault)
  expect(stored?.secrets.get('api-key')?.reveal()).toBe('sk_test_0123456789abcdef')
})

test('a file without supplier and stores may have no other setting of the installation', () => {
  const stored = {
    revision: 1,
    document: { supplier: { baseUrl: 'https://supplier.example/v1' }, stores: [] },
    secrets: new Map([['api-key', new Secret('sk_test_0123456789abcdef')]]),
  }
  const load = (json: object) => () => checkedConfig(file, json, env, { stored })
  expect(load({ keys: { proxies: ['127.0.0.1'] }, logLevel: 'warn' })).not.toThrow()
  expect(load({ rates: [] })).toThrow(
    `rates: the settings are in the database, which has it too: take it out of ${file}`,
  )
  expect(load({ keys: { pageDays: 3 } })).toThrow('keys.pageDays: the settings are in the database')
  expect(load({ supplier: { baseUrl: 'https://supplier.example/v1' } })).toThrow('two places')
})
