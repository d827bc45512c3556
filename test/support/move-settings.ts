/** Moves the settings of an installation that does not run from its file into its database, as revision 1. */
import { randomBytes } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { loadConfig, partsOf } from '../../src/config/config.ts'
import { createIds } from '../../src/ids.ts'
import { identityOf } from '../../src/settings/identity.ts'
import { revisionChanges } from '../../src/settings/settings.ts'
import { openForService } from '../../src/storage/database-place.ts'
import { openVault } from '../../src/vault/vault.ts'

export async function moveSettings(configFile: string): Promise<void> {
  const now = Date.now
  const config = loadConfig(configFile, {})
  const { process, document } = partsOf(JSON.parse(readFileSync(configFile, 'utf8')))
  const { db } = await openForService(config, { now })
  try {
    const vault = await openVault({ database: db, keyEncryptionKey: config.keyEncryptionKey, now })
    const parts = { vault, now, newId: createIds(now, randomBytes) }
    const stored = { revision: 1, document, secrets: new Map([['api-key', config.apiKey]]) }
    await db.commit(revisionChanges(parts, stored, { actor: 'test', why: 'the first', undoes: null, changes: [] }))
  } finally {
    await db.close()
  }
  writeFileSync(configFile, JSON.stringify({ ...process, identity: identityOf(config) }))
}
