/** The settings of the installation, as people and programs read and change them while the service runs. */
import { type Config, type StoredSettings, secretSourcesOf, twoHomes } from '../config/config.ts'
import { conflict, Failure, type FieldFault } from '../errors.ts'
import type { Log } from '../log.ts'
import type { Secret } from '../secret.ts'
import type { Change, Database } from '../storage/database.ts'
import { audited } from '../storage/evidence.ts'
import { forgetRevisionSecrets, insertRevision, revisionsBelow, type SettingsRevision } from '../storage/settings.ts'
import type { Vault } from '../vault/vault.ts'
import { type Difference, differences, documentShape, type SettingsDocument } from './document.ts'
import { noteIdentity } from './identity.ts'
import { ABOVE_ALL, configWith, newestRevision, openRevision, sealedSecrets } from './stored.ts'
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
    change: SettingsChange & {
      base: number
      why: string
      /** Called once work by the old settings has ended: what is committed with the revision. It may refuse by a failure. */
      also?: (() => Promise<Change[]>) | undefined
    },
    by: string,
  ): Promise<{ revision: number; changes: Difference[] }>
  /** Puts the settings before the newest revision in force again. @throws Failure as `apply` does */
  undo(base: number, by: string): Promise<{ revision: number; changes: Difference[] }>
  /** Revisions below a number, the newest first. */
  revisions(page: { before?: number | undefined; limit: number }): Promise<RevisionEntry[]>
}

/** What an edit of the settings is, and what else belongs to it; see `apply`. */
type Edit = { actor: string; why: string } & Partial<
  Pick<Parameters<InstallationSettings['apply']>[0], 'secrets' | 'also'>
>

/** Edits the settings in force, and applies the result. @throws Failure as `apply` does */
export async function editSettings(
  settings: Pick<InstallationSettings, 'read' | 'apply'>,
  { actor, ...more }: Edit,
  edit: (document: SettingsDocument) => object,
) {
  const { revision: base, document } = await settings.read()
  return settings.apply({ base, document: edit(document), ...more }, actor)
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

/** The settings that a change begins from. */
interface Before extends StoredSettings {
  secretNames: string[]
}

/** @throws Failure `conflict`, reason `two_homes`, where the file has settings of the installation and the database too */
export async function openSettings(parts: SettingsParts): Promise<InstallationSettings> {
  const { db, vault, now, log, current } = parts
  const { home, file } = current()
  const found = await newestRevision(db)
  if (home === 'file' && found) throw twoHomes(file, found.number)

  const newestRow = async () => (home === 'file' ? undefined : newestRevision(db))
  const asRead = (row: SettingsRevision | undefined) => {
    if (row) return { revision: row.number, document: row.document, secretNames: row.secretNames }
    return { revision: 0, document: current().document, secretNames: secretNamesOf(current()) }
  }
  const newest = async (): Promise<Before> => {
    const row = await newestRow()
    return { ...asRead(row), secrets: row ? openRevision(row, vault).secrets : new Map() }
  }

  /** @throws Failure `conflict`, see `apply` */
  const newestFrom = async (base: number): Promise<Before> => {
    if (home === 'file') {
      const message = `these settings are lines of ${file}: change them there and restart, or move them into the database by \`quayside settings adopt\``
      throw conflict('settings_in_file', message)
    }
    const before = await newest()
    if (before.revision === base) return before
    const message = `the settings were changed meanwhile: the newest revision is ${before.revision}, and yours was made from ${base}. Read them again`
    throw conflict('settings_changed', message)
  }

  /**
   * Makes the configuration that a change leads to.
   *
   * @param isRemoval whether the caller sees to what a store that goes leaves behind
   * @throws Failure `invalid` with every fault
   */
  function nextOf(before: Before, { document, secrets = {} }: SettingsChange, isRemoval = false) {
    const all = new Map([...before.secrets, ...Object.entries(secrets)])
    const next = configWith(current(), {
      revision: before.revision + 1,
      document: document as StoredSettings['document'],
      secrets: all,
    })
    if (!isRemoval) assertGoesOn(current(), next)
    // The secret of a store or channel that is gone goes with it.
    const needed = secretNamesOf(next)
    const stored = { ...storedIn(next), secrets: new Map([...all].filter(([name]) => needed.includes(name))) }
    const given = Object.keys(secrets).filter((name) => needed.includes(name))
    return { stored, next, changes: changesOf(before, stored, given) }
  }
  async function putInForce(
    next: Config,
    stored: StoredSettings,
    entry: Omit<RevisionEntry, 'number' | 'at'>,
    also: () => Promise<Change[]> = async () => [],
  ) {
    // The id of a store that this change removes stays in the file for good.
    await noteIdentity({ ...next, stores: [...current().stores, ...next.stores] })
    await parts.change(next, async () => commitRevision(parts, stored, entry, await also()))
    log.info('settings.applied', { count: stored.revision, actor: entry.actor })
    return { revision: stored.revision, changes: entry.changes }
  }

  return {
    home,
    read: async () => {
      const { revision, document, secretNames } = asRead(await newestRow())
      // A person corrects settings that this version refuses, so they are shown as they are.
      const read = documentShape.safeParse(document).data ?? (document as SettingsDocument)
      return { revision, document: read, secrets: secretNames }
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
    apply: async ({ base, why, also, ...change }, by) => {
      const { next, stored, changes } = nextOf(await newestFrom(base), change, also !== undefined)
      await assertWorks(next, current(), now)
      return putInForce(next, stored, { actor: by, why, undoes: null, changes }, also)
    },
    undo: async (base, by) => {
      const last = await newestFrom(base)
      const [row] = await db.query(revisionsBelow(base, 1))
      if (!row) throw conflict('settings_first', 'the first revision cannot be undone: there are no settings before it')
      const stored = { ...openRevision(row, vault), revision: base + 1 }
      const changes = changesOf(last, stored, [])
      const next = configWith(current(), stored)
      assertGoesOn(current(), next)
      return putInForce(next, stored, {
        actor: by,
        why: `undoes revision ${base}`,
        undoes: base,
        changes,
      })
    },
    revisions: async ({ before = ABOVE_ALL, limit }) => db.query(revisionsBelow(before, limit)),
  }
}

/** Names of the secrets that settings need. */
const secretNamesOf = (config: Pick<Config, 'stores' | 'alerts'>): string[] =>
  secretSourcesOf(config).map((source) => source.file)

const storedIn = ({ revision, document }: Config) => ({ revision: revision ?? 0, document })

function changesOf(before: Before | null, after: Pick<StoredSettings, 'document'>, given: readonly string[]) {
  // An earlier version may have taken settings that this version refuses.
  const old = documentShape.safeParse(before?.document).data ?? null
  const secret = (name: string) => ({
    field: `secrets.${name}`,
    before: before?.secretNames.includes(name) ? 'set' : null,
    after: 'set again',
  })
  return [...differences(old, documentShape.parse(after.document)), ...given.map(secret)]
}

/** @throws Failure `invalid` for a store that sells and would be off or gone: its shop would go on selling, and no order be read */
function assertGoesOn(before: Config, next: Config): void {
  const sold = before.stores.filter(({ selling }) => selling !== 'off').map(({ id }) => id)
  const off = 'the store sells already, and its shop would go on selling: pause it by "paused", or remove it'
  const gone = 'the store sells, and what it has under way would be lost: `quayside stores remove` takes it out'
  const fields = [
    ...next.stores.flatMap(({ id, selling }, index) =>
      selling === 'off' && sold.includes(id) ? [{ field: `stores.${index}.selling`, message: off }] : [],
    ),
    ...sold
      .filter((id) => !next.stores.some((one) => one.id === id))
      .map((id) => ({ field: `stores.${id}`, message: gone })),
  ]
  if (fields.length > 0) throw new Failure('invalid', 'nothing was changed', { fields })
}

/** @throws Failure `invalid` with what the supplier or a shop refuses */
async function assertWorks(next: Config, before: Config | null, now: () => number): Promise<void> {
  const failed = (await findingsOf(next, before, now)).filter(({ state }) => state === 'failed')
  if (failed.length === 0) return
  const fields = failed.map(({ field, detail, fix }) => ({
    field,
    message: fix === null ? detail : `${detail}: ${fix}`,
  }))
  throw new Failure('invalid', 'the settings do not work, and nothing was changed', { fields })
}

type RevisionParts = Pick<SettingsParts, 'db' | 'vault' | 'now' | 'newId'>

/**
 * Stores the first settings of a database, for a set-up and for `settings adopt`. No service may have the database open.
 *
 * @param next made of the file and the settings, see `checkedConfig`
 * @throws Failure as `apply` of `InstallationSettings` does
 */
export async function beginSettings(
  parts: RevisionParts,
  next: Config,
  secrets: StoredSettings['secrets'],
  by: { actor: string; why: string },
) {
  await assertWorks(next, null, parts.now)
  await noteIdentity(next)
  const stored = { ...storedIn(next), secrets }
  await commitRevision(parts, stored, { ...by, undoes: null, changes: changesOf(null, stored, []) })
}

const commitRevision = async (
  parts: RevisionParts,
  stored: StoredSettings,
  entry: Omit<RevisionEntry, 'number' | 'at'>,
  also: Change[] = [],
) => {
  await parts.db.commit([...revisionChanges(parts, stored, entry), ...also]).catch((error: unknown) => {
    if (!(error instanceof Failure) || error.code !== 'conflict') throw error
    throw conflict('settings_changed', 'another person has changed the settings just now: read them again')
  })
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
