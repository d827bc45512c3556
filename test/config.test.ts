import { mkdirSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { describe, expect, test } from 'vitest'
import { loadConfig } from '../src/config.ts'
import { Failure } from '../src/errors.ts'
import { databaseFile } from './database.ts'

const GOOD = {
  supplier: { baseUrl: 'https://supplier.example/v1' },
  stores: [{ id: 'main-k3j9x2p7', kind: 'backend', name: 'Main', callbackUrl: 'https://shop.example/' }],
}
const SECRETS = { QUAYSIDE_API_KEY: 'key', QUAYSIDE_KEY_ENCRYPTION_KEY: 'kek' }

function load(settings: unknown, env: Record<string, string> = SECRETS) {
  const file = path.join(path.dirname(databaseFile()), 'quayside.json')
  writeFileSync(file, JSON.stringify(settings))
  return loadConfig(file, env)
}

/** Every fault by its field. */
function faultsOf(settings: unknown, env?: Record<string, string>): Record<string, string> {
  try {
    load(settings, env)
  } catch (error) {
    if (error instanceof Failure) return Object.fromEntries(error.fields.map(({ field, message }) => [field, message]))
    throw error
  }
  return {}
}

describe('the configuration', () => {
  test('needs no more than a supplier and a store', () => {
    expect(load(GOOD)).toMatchObject({ listen: { host: '127.0.0.1', port: 8080 }, dataDir: 'data/run' })
  })

  test('names every fault at once, each with what would be right', () => {
    const faults = faultsOf(
      {
        supplier: { baseUrl: 'https://supplier.example/api', dialct: 'x' },
        stores: [{ ...GOOD.stores[0], id: 'x', kind: 'shop', markupPercent: 20 }],
        listen: { port: 99_999 },
        ordering: { inFlight: 9 },
        syncCron: 'often',
        spendCaps: { day: 'much' },
        logLevel: 'loud',
        colour: 'blue',
      },
      {},
    )
    expect(faults).toEqual({
      'supplier.baseUrl': 'an address that ends in /v1',
      'supplier.dialct': 'unknown; known are baseUrl, dialect',
      'stores.0.id': expect.stringContaining('quayside init'),
      'stores.0.kind': 'must be one of backend',
      'stores.0.markupPercent': 'must be text, in quotes',
      'listen.port': 'must be at most 65535',
      'ordering.inFlight': 'must be at most 4',
      syncCron: expect.stringContaining('cron expression'),
      'spendCaps.day': expect.stringContaining('250.00'),
      logLevel: 'must be one of debug, info, warn, error',
      colour: expect.stringContaining('unknown; known are supplier, stores,'),
      QUAYSIDE_API_KEY: expect.stringContaining('not set'),
      QUAYSIDE_KEY_ENCRYPTION_KEY: expect.stringContaining('not set'),
    })
  })

  test('takes secrets from the variable, the named file or the folder beside it, but not from one that others can read', () => {
    const folder = path.dirname(databaseFile())
    const file = path.join(folder, 'quayside.json')
    writeFileSync(file, JSON.stringify(GOOD))
    mkdirSync(path.join(folder, 'secrets'))
    writeFileSync(path.join(folder, 'secrets', 'api-key'), 'from-folder', { mode: 0o600 })
    writeFileSync(path.join(folder, 'kek'), 'from-file', { mode: 0o600 })
    const config = loadConfig(file, { QUAYSIDE_KEY_ENCRYPTION_KEY_FILE: path.join(folder, 'kek') })
    expect([config.apiKey.reveal(), config.keyEncryptionKey.reveal()]).toEqual(['from-folder', 'from-file'])
    expect(JSON.stringify(config)).not.toContain('from-f')
    writeFileSync(path.join(folder, 'open'), 'x', { mode: 0o644 })
    expect(() => loadConfig(file, { QUAYSIDE_KEY_ENCRYPTION_KEY_FILE: path.join(folder, 'open') })).toThrow('chmod 600')
  })
})
