/** Stores are removed: by the service, or from the file of an installation that does not run. */
import { existsSync } from 'node:fs'
import path from 'node:path'
import { type Config, credentialsSource } from '../config/config.ts'
import { sentence } from '../domain/text-layout.ts'
import { Failure } from '../errors.ts'
import { setUpOf } from '../installation.ts'
import { noteIdentity, replaceJson } from '../settings/identity.ts'
import { secretsOf } from '../settings/set-up-files.ts'
import { readConfig } from '../settings/stored.ts'
import { type Call, neededReason, proseWidth, storeAmong, storeNamed } from './command.ts'
import { saying } from './exit-codes.ts'
import { fileAlone } from './settings.ts'
import { TEST_DEADLINE_MS } from './stores.ts'
import { storesOf } from './stores-add.ts'
import { cell } from './words.ts'

/** Removes a store: by the service, or from the file of an installation that does not run. */
export async function runRemoveStore(call: Call): Promise<undefined> {
  const [named = ''] = call.args
  const reason = neededReason(call)
  const removed = await byService(call, named, reason).catch(async (error: unknown) => {
    const config = await readConfig(fileAlone(call, error), call.io.env)
    // Settings in the database are changed by the service, which tries them first.
    if (config.home === 'database') throw error
    return fromFile(config, storeAmong(config.stores, named), reason)
  })
  call.print(removed, () => {
    const { store, file } = removed
    const credentials = file && path.join(secretsOf(file), credentialsSource(store).file)
    const said = [
      `Removed: the store ${cell(store)}${file === null ? '' : ` from ${file}, which keeps its id in identity`}.`,
      'Its orders and keys stay readable, and its tokens have ended. End what lets Quayside into its shop, too.',
      ...(credentials && existsSync(credentials) ? [`Nothing reads ${credentials} any more: remove it.`] : []),
    ]
    return said.map((one) => sentence(one, proseWidth(call.io))).join('')
  })
  return undefined
}

async function byService(call: Call, named: string, reason: string) {
  const store = await storeNamed(call, named)
  const asked = { path: { store }, body: { reason }, deadlineMs: TEST_DEADLINE_MS }
  const { revision } = await call.client.call('POST /stores/:store/remove', asked).catch((error: unknown) => {
    if (!(error instanceof Failure) || error.reason !== 'settings_in_file') throw error
    throw saying(`nothing of ${store} is under way, so stop the service and run this again`, error)
  })
  return { store, revision, file: null }
}

async function fromFile(config: Config, store: string, reason: string) {
  const { file } = config
  const open = await setUpOf(config)
  try {
    // A file that cannot be written is found before anything ends. After a crash the same command ends what it has begun.
    await noteIdentity(config)
    await open.retireStore(store, reason)
    const json = storesOf(file)
    await replaceJson(file, { ...json, stores: json.stores.filter(({ id }) => id !== store) })
    return { store, revision: null, file }
  } finally {
    await open.discard()
  }
}
