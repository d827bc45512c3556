/** The settings of an installation whose service does not run: how they are changed there, and moved from the file into the database. */
import { randomBytes } from 'node:crypto'
import { copyFileSync, existsSync } from 'node:fs'
import path from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import {
  type Config,
  checkedConfig,
  loadConfig,
  loadProcess,
  type ProcessConfig,
  partsOf,
  readJson,
  readOneSecret,
  secretSourcesOf,
  twoHomes,
} from '../config/config.ts'
import { Failure } from '../errors.ts'
import { createIds } from '../ids.ts'
import { createLog } from '../log.ts'
import { openAlone } from '../storage/database-place.ts'
import { revisionsBelow } from '../storage/settings.ts'
import { openVault } from '../vault/vault.ts'
import { identityOf, replaceJson } from './identity.ts'
import { beginSettings, type InstallationSettings, openSettings, type SettingsChange } from './settings.ts'
import { ABOVE_ALL, newestRevision, openRevision } from './stored.ts'

type Env = Record<string, string | undefined>
const now = () => Date.now()

/** Opens the database of an installation whose service does not run. @throws Failure `conflict`, reason `database_in_use` */
async function openParts(process: ProcessConfig) {
  const db = await openAlone(process, { now, mustExist: true })
  try {
    const vault = await openVault({ database: db, keyEncryptionKey: process.keyEncryptionKey, now })
    return { db, vault, now, newId: createIds(now, randomBytes) }
  } catch (error) {
    await db.close()
    throw error
  }
}

/** Uses the settings of an installation whose service does not run. @throws Failure as `openAlone` and `loadConfig` do */
export async function withSettings<T>(file: string, env: Env, use: (settings: InstallationSettings) => Promise<T>) {
  const process = loadProcess(file, env)
  const parts = await openParts(process)
  try {
    const config = process.home === 'file' ? loadConfig(file, env) : await usable(file, env, parts)
    const log = createLog({ level: 'error', write: () => undefined })
    return await use(await openSettings({ ...parts, log, current: () => config, change: (_, commit) => commit() }))
  } finally {
    await parts.db.close()
  }
}

/** Reads the newest settings; where this version refuses them, those before, so that a person can take the newest back. */
async function usable(file: string, env: Env, { db, vault }: Awaited<ReturnType<typeof openParts>>): Promise<Config> {
  const [newest, before] = await db.query(revisionsBelow(ABOVE_ALL, 2))
  try {
    return loadConfig(file, env, newest && openRevision(newest, vault))
  } catch (error) {
    if (!before || !(error instanceof Failure) || error.code !== 'invalid') throw error
    return loadConfig(file, env, openRevision(before, vault))
  }
}

/**
 * Puts the first settings into the database of an installation whose service does not run.
 *
 * @throws Failure as `apply` of `InstallationSettings` does, and as `openAlone` does
 */
export async function beginAlone(file: string, env: Env, change: SettingsChange & { why: string }, actor: string) {
  const parts = await openParts(loadProcess(file, env))
  try {
    const secrets = new Map(Object.entries(change.secrets ?? {}))
    const stored = { revision: 1, document: change.document as Config['document'], secrets }
    const next = checkedConfig(file, readJson(file), env, { stored })
    await beginSettings(parts, next, secrets, { actor, why: change.why })
  } finally {
    await parts.db.close()
  }
}

export interface Adopted {
  file: string
  /** Where the file as it was is kept. */
  kept: string
  revision: number
  /** The files and variables of secrets that are not read any more. */
  unused: { variable: string; file: string }[]
}

/**
 * Moves the settings of the installation from the file into its database, and leaves the file without them. Done again after a crash,
 * it ends what it has begun.
 *
 * @throws Failure `conflict` where they are in the database already; reason `two_homes` where the database has other settings
 * @throws Failure `invalid` where they have faults, or the supplier or a shop does not answer; nothing was changed then
 */
export async function adoptSettings(file: string, env: Env): Promise<Adopted> {
  if (loadProcess(file, env).home === 'database') {
    throw new Failure('conflict', `the settings of ${file} are in the database already`)
  }
  const config = loadConfig(file, env)
  const sources = secretSourcesOf(config)
  const folder = path.dirname(path.resolve(file))
  const secrets = new Map(sources.map((source) => [source.file, readOneSecret(source, folder, env)]))
  const json = { ...partsOf(readJson(file)).process, identity: identityOf(config) }
  const parts = await openParts(config)
  try {
    const there = await newestRevision(parts.db)
    if (there && !isDeepStrictEqual(there.document, config.document)) throw twoHomes(file, there.number)
    const kept = `${file}.before-adopt`
    if (!there || !existsSync(kept)) copyFileSync(file, kept)
    if (!there) {
      const next = checkedConfig(file, json, env, { stored: { revision: 1, document: config.document, secrets } })
      await beginSettings(parts, next, secrets, { actor: 'settings adopt', why: `moved from ${file}` })
    }
    await replaceJson(file, json)
    return { file, kept, revision: there?.number ?? 1, unused: sources }
  } finally {
    await parts.db.close()
  }
}
