/** The settings of the installation, as people and programs read and change them while the service runs. */
import { channelSource } from '../config/alert-settings.ts'
import { type Config, credentialsSource, SECRETS, type StoredSettings } from '../config/config.ts'
import { conflict, Failure, type FieldFault } from '../errors.ts'
import type { Log } from '../log.ts'
import type { Secret } from '../secret.ts'
import type { Change, Database } from '../storage/database.ts'
import { audited } from '../storage/evidence.ts'
import { forgetRevisionSecrets, insertRevision, revisionsBelow, type SettingsRevision } from '../storage/settings.ts'
import type { Vault } from '../vault/vault.ts'
import { type Difference, differences, documentShape, type SettingsDocument } from './document.ts'
import { noteIdentity } from './identity.ts'
import { newestRevision, openRevision, sealedSecrets } from './stored.ts'
import { findingsOf, type SettingsFinding } from './trial.ts'

/** A change that a person wants. */
export interface SettingsChange {
  document: unknown
  /** Secrets that are new or changed, by name: `api-key`, `store-<id>`, `alert-<channel>`. The others stay. */
  secrets?: Record<string, Secret> | undefined
}

export interface SettingsTrial {
  faults: FieldFault[]
  /** What the supplier and the shops said, where the change is about them. */
  findings: SettingsFinding[]
  changes: Difference[]
}

export interface InstallationSettings {
  home: 'file' | 'database'
  /** The settings in force. @returns `revision` 0 where the file is their home; `secrets`: names of those that are set */
  read(): Promise<{ revision: number; document: SettingsDocument; secrets: string[] }>
  /** Checks the settings, and asks the supplier and the shops that the change is about. Writes nothing. */
  try(change: SettingsChange): Promise<SettingsTrial>
  /**
   * Tries a change, then puts it in force.
   *
   * @param change.base the revision that the person has seen
   * @throws Failure `conflict`, reason `settings_changed` where another revision came meanwhile; reason `settings_in_file`
   * @throws Failure `invalid` with every fault, also those of a supplier or a shop that does not answer
   */
  apply(
    change: SettingsChange & { base: number; why: string },
    by: string,
  ): Promise<{ revision: number; changes: Difference[] }>
  /** Puts the settings before the newest revision in force again. @throws Failure as `apply` does */
  undo(base: number, by: string): Promise<{ revision: number; changes: Difference[] }>
  /** Revisions below a number, the newest first. */
  revisions(page: { before?: number | undefined; limit: number }): Promise<RevisionEntry[]>
}

export type RevisionEntry = Pick<SettingsRevision, 'number' | 'at' | 'actor' | 'why' | 'undoes' | 'changes'>

export interface SettingsParts {
  db: Database
  vault: Vault
  /** Epoch ms. */
  now: () => number
  newId: () => string
  log: Log
  /** The configuration in force. */
  current: () => Config
  /** Ends the work by the old settings, commits, begins by the new ones. Rejects where it cannot begin. */
  change: (next: Config, commit: () => Promise<void>) => Promise<void>
}

/** @throws Failure `conflict`, reason `two_homes`, where the file has settings of the installation and the database too */
export async function openSettings(parts: SettingsParts): Promise<InstallationSettings> {
  const { home, file, withSettings } = parts.current()
  const newest = home === 'file' ? await newestRevision(parts.db) : undefined
  // The configuration refuses a revision beside such a file, and says what to do.
  if (newest) withSettings({ revision: newest.number, document: newest.document, secrets: new Map() })
  return home === 'file' ? inFile(parts, file) : inDatabase(parts)
}

function inFile({ current }: SettingsParts, file: string): InstallationSettings {
  const refused = (): Promise<never> => {
    const message = `these settings are lines of ${file}: change them there and restart, or move them into the database by \`quayside settings adopt\``
    return Promise.reject(conflict('settings_in_file', message))
  }
  const read = async () => {
    const config = current()
    return { revision: 0, document: documentShape.parse(config.document), secrets: secretNamesOf(config) }
  }
  return { home: 'file', read, try: refused, apply: refused, undo: refused, revisions: async () => [] }
}

/** Names of the secrets that settings need. */
export const secretNamesOf = ({ stores, alerts }: Pick<Config, 'stores' | 'alerts'>): string[] => [
  SECRETS.apiKey.file,
  ...stores.filter(({ credentials }) => credentials).map(({ id }) => credentialsSource(id).file),
  ...Object.keys(alerts.channels).map((name) => channelSource(name).file),
]

function inDatabase(parts: SettingsParts): InstallationSettings {
  const { db, vault, now, log, current } = parts

  const newest = async (): Promise<SettingsRevision> => {
    const found = await newestRevision(db)
    if (!found) throw new Failure('internal', 'the database has no revision of the settings')
    return found
  }
  const newestFrom = async (base: number): Promise<SettingsRevision> => {
    const found = await newest()
    if (found.number === base) return found
    const message = `${found.actor} has changed the settings meanwhile: the newest revision is ${found.number}, and yours was made from ${base}. Read them again`
    throw conflict('settings_changed', message)
  }
  const changesOf = (before: SettingsRevision, after: Config, secrets: readonly string[]): Difference[] => [
    ...differences(documentShape.parse(before.document), documentShape.parse(after.document)),
    ...secrets.map((name) => {
      return { field: `secrets.${name}`, before: before.secretNames.includes(name) ? 'set' : null, after: 'set anew' }
    }),
  ]

  /** Makes the configuration that a change leads to. @throws Failure `invalid` with every fault */
  function nextOf(before: SettingsRevision, { document, secrets = {} }: SettingsChange) {
    const known = openRevision(before, vault)
    const all = new Map([...known.secrets, ...Object.entries(secrets)])
    const made = current().withSettings({
      revision: before.number + 1,
      document: document as object,
      secrets: all,
    })
    // A secret of a store or channel that is gone goes with it.
    const needed = secretNamesOf(made)
    const stored = {
      revision: made.revision ?? 0,
      document: made.document,
      secrets: new Map([...all].filter(([name]) => needed.includes(name))),
    }
    return {
      stored,
      next: { ...made, listen: current().listen },
      changes: changesOf(
        before,
        made,
        Object.keys(secrets).filter((name) => needed.includes(name)),
      ),
    }
  }

  async function putInForce(next: Config, stored: StoredSettings, entry: Omit<RevisionEntry, 'number' | 'at'>) {
    await noteIdentity(next)
    await parts.change(next, async () => {
      await db.commit(revisionChanges(parts, stored, entry)).catch((error: unknown) => {
        const isTaken = error instanceof Failure && error.code === 'conflict'
        throw isTaken
          ? conflict('settings_changed', 'another person has changed the settings just now: read them again')
          : error
      })
    })
    log.info('settings.applied', { count: stored.revision, actor: entry.actor })
    return { revision: stored.revision, changes: entry.changes }
  }

  return {
    home: 'database',
    read: async () => {
      const { number, document, secretNames } = await newest()
      return { revision: number, document: documentShape.parse(document), secrets: secretNames }
    },
    try: async (change) => {
      try {
        const { next, changes } = nextOf(await newest(), change)
        return { faults: [], findings: await findingsOf(next, current(), now), changes }
      } catch (error) {
        if (!(error instanceof Failure) || error.code !== 'invalid' || error.fields.length === 0) throw error
        return { faults: error.fields, findings: [], changes: [] }
      }
    },
    apply: async ({ base, why, ...change }, by) => {
      const { next, stored, changes } = nextOf(await newestFrom(base), change)
      const failed = (await findingsOf(next, current(), now)).filter(({ state }) => state === 'failed')
      if (failed.length > 0) {
        const fields = failed.map(({ field, detail, fix }) => ({
          field,
          message: fix === null ? detail : `${detail}: ${fix}`,
        }))
        throw new Failure('invalid', 'the settings do not work, and the ones before stay in force', { fields })
      }
      return putInForce(next, stored, { actor: by, why, undoes: null, changes })
    },
    undo: async (base, by) => {
      const last = await newestFrom(base)
      const [before] = await db.query(revisionsBelow(base, 1))
      if (!before)
        throw conflict('settings_first', 'the first revision cannot be undone: there are no settings before it')
      const stored = { ...openRevision(before, vault), revision: base + 1 }
      const next = { ...current().withSettings(stored), listen: current().listen }
      return putInForce(next, stored, {
        actor: by,
        why: `undoes revision ${base}`,
        undoes: base,
        changes: changesOf(last, next, []),
      })
    },
    revisions: async ({ before = 2 ** 31, limit }) => db.query(revisionsBelow(before, limit)),
  }
}

/** Returns what stores a revision: the row, the audit entry, and that secrets of older revisions are forgotten. */
export function revisionChanges(
  { vault, now, newId }: Pick<SettingsParts, 'vault' | 'now' | 'newId'>,
  stored: StoredSettings,
  { actor, why, undoes, changes }: Omit<RevisionEntry, 'number' | 'at'>,
): Change[] {
  const { revision: number, document } = stored
  const at = now()
  const named = changes.map(({ field }) => field)
  const detail = `${why}: ${named.slice(0, 20).join(', ')}${named.length > 20 ? ` and ${named.length - 20} more` : ''}`
  return [
    insertRevision({ number, at, actor, why, undoes, document, changes, ...sealedSecrets(stored, vault) }),
    forgetRevisionSecrets(number - 1),
    audited({ newId, now: () => at }, actor, 'settings.apply', `revision ${number}`, detail),
  ]
}
