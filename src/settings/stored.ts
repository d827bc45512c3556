/** The revisions of the settings in a database: how one is read and sealed, and how a configuration is made of the newest. */
import { type Config, loadConfig, loadOwn, type ProcessConfig, type StoredSettings } from '../config/config.ts'
import { Failure } from '../errors.ts'
import { Secret } from '../secret.ts'
import { type Database, first } from '../storage/database.ts'
import { type DatabasePlace, openBeside, placeName } from '../storage/database-place.ts'
import { revisionsBelow, type SettingsRevision } from '../storage/settings.ts'
import { checkKeys } from '../vault/keys.ts'
import { openVault, type Vault } from '../vault/vault.ts'

/** Above the number of every revision. */
export const ABOVE_ALL = 2 ** 31

/** @returns undefined where the database has no revision */
export const newestRevision = (db: Pick<Database, 'query'>): Promise<SettingsRevision | undefined> =>
  first(db, revisionsBelow(ABOVE_ALL, 1))

const placeOf = (number: number) => ({ table: 'settings_revisions', row: String(number) })

/** Opens what a revision has sealed. @throws Failure `internal` for a revision whose secrets were forgotten */
export function openRevision({ number, document, secrets, keyId }: SettingsRevision, vault: Vault): StoredSettings {
  if (secrets === null || keyId === null) throw new Failure('internal', `revision ${number} has no secrets any more`)
  const texts = JSON.parse(vault.open(placeOf(number), secrets, keyId).toString()) as Record<string, string>
  const named = Object.entries(texts).map(([name, text]) => [name, new Secret(text)] as const)
  return { revision: number, document, secrets: new Map(named) }
}

/** Seals the secrets of a revision, and names them. */
export function sealedSecrets({ revision, secrets }: StoredSettings, vault: Vault) {
  const texts = Object.fromEntries([...secrets].map(([name, secret]) => [name, secret.reveal()]))
  const { ciphertext, keyId } = vault.seal(placeOf(revision), JSON.stringify(texts))
  return { secretNames: [...secrets.keys()].sort(), secrets: ciphertext, keyId }
}

/** Returns the configuration with other settings. The ports are those that this process listens at. */
export const configWith = (config: Config, stored: StoredSettings): Config => ({
  ...config.withSettings(stored),
  listen: config.listen,
  console: config.console,
})

/** Reads the newest settings; undefined where the database has none. */
export async function storedSettings(db: Pick<Database, 'query'>, vault: Vault): Promise<StoredSettings | undefined> {
  const newest = await newestRevision(db)
  return newest && openRevision(newest, vault)
}

/**
 * Reads the configuration: from the file alone, or with the newest settings of the database. A service may be using the database.
 *
 * @param place a copy of the database, where that one is to be read
 * @throws Failure as `loadConfig` and `openBeside` do; `not_found`, reason `no_database`, where the settings are in a database that
 *   is not there
 */
export async function readConfig(
  file: string,
  env: Record<string, string | undefined>,
  place: Partial<DatabasePlace> = {},
): Promise<Config> {
  const { home, ...process } = { ...loadOwn(file, env), ...place }
  if (home === 'file') return loadConfig(file, env)
  const read = await openBeside(process)
  if (!read) {
    const message = `there is no database in ${placeName(process)}, and the settings of ${file} are in it`
    throw new Failure('not_found', message, { reason: 'no_database' })
  }
  let stored: StoredSettings | undefined
  try {
    stored = await storedSettings(read, await vaultBeside(process, read))
    return loadConfig(file, env, stored)
  } catch (error) {
    if (!stored || !(error instanceof Failure) || error.code !== 'invalid') throw error
    const { fields } = error
    throw new Failure('invalid', `${error.message}\n${OTHER_VERSION}`, {
      cause: error,
      fields,
      reason: 'refused_settings',
    })
  } finally {
    await read.close()
  }
}

/** Older settings are never taken by themselves: the service would buy by a ceiling that a person has lowered since. */
const OTHER_VERSION =
  'Another version has put them in force, or what they name has gone. `quayside settings undo` puts the ones before in force; `quayside settings export` and `settings apply` correct them.'

/** Opens the vault of a database that is only read. @throws Failure `invalid`, reason `wrong_key` */
export async function vaultBeside(
  config: Pick<ProcessConfig, 'keyEncryptionKey' | 'nextKeyEncryptionKey' | 'dataDir' | 'databaseUrl'>,
  read: Pick<Database, 'query' | 'close'>,
): Promise<Vault> {
  const { next } = await checkKeys(config, read)
  const keyEncryptionKey = (next && config.nextKeyEncryptionKey()) || config.keyEncryptionKey
  const commit = () => Promise.reject(new Failure('internal', `${placeName(config)} is only read here`))
  return openVault({ database: { query: read.query, commit, close: read.close }, keyEncryptionKey, now: Date.now })
}
