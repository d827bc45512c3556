import { randomBytes } from 'node:crypto'
import { mkdirSync } from 'node:fs'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { SetUp } from './cli/program.ts'
import { loadConfig } from './config.ts'
import { Failure } from './errors.ts'
import { createIds } from './ids.ts'
import { createWebhook } from './inbox/webhooks.ts'
import { Secret } from './secret.ts'
import { openDatabase } from './storage/open.ts'
import { openVault } from './storage/vault.ts'
import { allWebhooks } from './storage/webhooks.ts'
import { secretText } from './stores/webhook-signature.ts'
import { createSupplier } from './supplier/client.ts'
import { createToken } from './tokens.ts'

/**
 * Opens an installation that does not run, for `quayside init`.
 *
 * @throws Failure `conflict`, reason `database_in_use`, while a service runs
 */
export async function openSetUp(configFile: string, env: Record<string, string | undefined>): Promise<SetUp> {
  const config = loadConfig(configFile, env)
  const now = () => Date.now()
  const newId = createIds(now, randomBytes)
  mkdirSync(config.dataDir, { recursive: true, mode: 0o700 })
  const db = openDatabase({ file: path.join(config.dataDir, 'quayside.db'), now })
  const vault = await openVault({ database: db, keyEncryptionKey: config.keyEncryptionKey, now })
  const supplier = createSupplier({
    ...{ baseUrl: config.supplier.baseUrl, dialect: config.dialectFacts, apiKey: config.apiKey },
    ...{ now, random: Math.random, sleep: (ms: number) => sleep(ms) },
  })
  return {
    createWebhook: async () => {
      if (config.publicUrl === null) throw new Failure('invalid', 'the configuration has no publicUrl')
      const wanted = `${config.publicUrl.replace(/\/+$/, '')}/webhooks/supplier`
      const known = (await db.query(allWebhooks())).find(({ url }) => url === wanted)
      return known ?? createWebhook({ db, vault, supplier, now, newId }, config.publicUrl, 'init')
    },
    createStoreToken: async (store, name) => {
      const input = { name, role: 'store', store, scopes: ['orders', 'keys'], expiresInDays: null } as const
      const { token } = await createToken(
        { db, now, newId, randomBytes },
        { ...input, scopes: [...input.scopes] },
        'init',
      )
      return token
    },
    callbackSecret: (store) => Promise.resolve(new Secret(secretText(vault.subKey(`callback:${store}`)))),
    close: async () => {
      await supplier.close()
      await db.close()
    },
  }
}
