import { z } from 'zod'
import { channelSource } from '../../config/alert-settings.ts'
import { type Config, credentialsSource, SECRETS, type SecretSource } from '../../config/config.ts'
import { settingsInForce } from '../../config/settings-in-force.ts'
import { messageOf } from '../../errors.ts'
import { Secret } from '../../secret.ts'
import { fixedWhy, type SettingsDocument } from '../../settings/document.ts'
import type { RevisionEntry } from '../../settings/settings.ts'
import { placeName } from '../../storage/database-place.ts'
import { nameOfKey } from '../../vault/vault.ts'
import { applySettingsBody, invalidField, revisionsPaging, trySettingsBody } from '../input.ts'
import { type ApiContext, admin, ok, operation, viewer } from '../operation.ts'
import { page } from './list-operation.ts'
import { at, component, finding, view, words } from './views.ts'

const SecretInForce = z.object({
  name: z.string().meta({
    description: 'Where it is read from: a variable, or the same with `_FILE`',
    examples: ['QUAYSIDE_API_KEY'],
  }),
  file: z.string().describe('The file beside the configuration that stands for it'),
  about: z.string(),
  isSet: z.boolean(),
  keyName: words.describe('Of a key-encryption key: the name that backups and the audit call it by'),
  fault: words.describe('Why it cannot be read'),
})
const Settings = component('Settings', {
  file: z.string().describe('Of the configuration'),
  home: z
    .enum(['file', 'database'])
    .describe('Where the settings of the installation are; in a file they are read at the start'),
  revision: z.int().nullable().describe('Of the settings in force; null where they are in the file'),
  settings: z.array(
    z.object({
      name: z.string().meta({ examples: ['ordering.inFlight'] }),
      value: z.string().describe('Texts as they are, all else as JSON; addresses without credentials'),
      isDefault: z.boolean(),
      fileOnly: words.describe('Why it can be changed in the configuration file alone; null: it can be changed here'),
    }),
  ),
  dialect: z
    .object({ name: z.string(), about: z.string().describe('What its file says that it is for') })
    .describe('How the supplier writes what its API leaves open'),
  secrets: z.array(SecretInForce).describe('Whether each is set. No text of a secret is ever in an answer'),
  keyInUse: z.string().describe('Name of the key-encryption key that the database is sealed under'),
  keyConfigured: z.string().describe('Name of the one that the configuration had at the start'),
})

const Difference = z.object({
  field: z.string().meta({ examples: ['stores.demo-1234abcd.pricing.markup.percent'] }),
  before: words.describe('Null: it was not there'),
  after: words.describe('Null: it is not there any more'),
})
const Fault = z.object({ field: z.string(), message: z.string() })
const SettingsTrial = component('SettingsTrial', {
  faults: z
    .array(Fault)
    .describe('What is wrong in the settings themselves; then the supplier and the shops were not asked'),
  findings: z
    .array(finding.extend({ field: z.string().describe('`supplier` or `stores.<id>`') }))
    .describe('What the supplier and the shops said that the change is about'),
  changes: z.array(Difference),
})
export const Applied = component('SettingsApplied', { revision: z.int(), changes: z.array(Difference) })
const Document = component('SettingsDocument', {
  home: z.enum(['file', 'database']),
  revision: z.int().describe('For If-Match; 0 where the settings are in the file, and cannot be changed here'),
  document: z.custom<SettingsDocument>().meta({
    description: 'As in the configuration file, with all defaults',
    override: { type: 'object', additionalProperties: true },
  }),
  secrets: z.array(z.string()).describe('Names of the secrets that are set'),
})
const Revision = view(
  component('SettingsRevision', {
    revision: z.int(),
    at,
    actor: z.string(),
    reason: z.string(),
    undoes: z.int().nullable().describe('The revision that it undoes'),
    changes: z.array(Difference),
  }),
  ({ number, why, ...entry }: RevisionEntry) => ({ ...entry, revision: number, reason: why }),
)

export const ifMatch = 'The `revision` that the change is based on, in quotes'
export const CONFLICTS =
  '`settings_in_file`: they are lines of the configuration; `settings_changed`: another revision came'
/** What all operations that change settings have in common. */
export const changing = {
  needsWorker: true,
  allowed: admin,
  answer: Applied,
  success: { 200: 'In force' },
  failures: { 409: CONFLICTS },
} as const

const sealedIn = (secrets: Record<string, string> = {}) =>
  Object.fromEntries(Object.entries(secrets).map(([name, text]) => [name, new Secret(text)]))

export function settingsOperations({ config, keys, settings }: ApiContext) {
  return {
    viewSettings: operation({
      route: 'GET /settings',
      allowed: viewer,
      summary: 'The settings in force, and which secrets are set.',
      answer: Settings,
      success: { 200: 'All of them' },
      handle: async () =>
        ok({
          file: config.file,
          home: config.home,
          revision: config.revision,
          settings: settingsInForce(config).map((one) => ({ ...one, fileOnly: fixedWhy(one.name) ?? null })),
          dialect: { name: config.dialectFacts.name, about: config.dialectFacts.about },
          secrets: secretsOf(config),
          keyInUse: nameOfKey(keys.current()),
          keyConfigured: nameOfKey(config.keyEncryptionKey),
        }),
    }),
    viewSettingsDocument: operation({
      route: 'GET /settings/document',
      allowed: viewer,
      summary: 'The settings of the installation as one document, without secrets.',
      answer: Document,
      success: { 200: 'Those in force' },
      handle: async () => ok({ home: settings.home, ...(await settings.read()) }),
    }),
    listSettingsRevisions: operation({
      route: 'GET /settings/revisions',
      allowed: viewer,
      summary: 'Who changed the settings, when, why, and what; newest first.',
      query: revisionsPaging,
      answer: page(Revision),
      success: { 200: 'A page of revisions; none where the settings are in the file' },
      handle: async ({ query: { limit, before } }) => {
        const found = await settings.revisions({ before, limit: limit + 1 })
        const items = found.slice(0, limit)
        return ok({ items, next: found.length > limit ? String(items.at(-1)?.number) : null })
      },
    }),
    trySettings: operation({
      ...changing,
      route: 'POST /settings/try',
      summary: 'Try settings: check them, and ask the supplier and the shops that they are about. Nothing changes.',
      body: trySettingsBody,
      answer: SettingsTrial,
      success: { 200: 'What was found' },
      failures: { 409: 'the settings are in the file' },
      handle: async ({ body: { document, secrets } }) =>
        ok(await settings.try({ document, secrets: sealedIn(secrets) })),
    }),
    applySettings: operation({
      ...changing,
      route: 'POST /settings/document',
      summary: 'Try settings, then put them in force, without a restart.',
      ifMatch,
      body: applySettingsBody,
      async handle({ body: { document, secrets, reason }, version, caller }) {
        const wanted = { base: revisionIn(version), document, secrets: sealedIn(secrets), why: reason }
        return ok(await settings.apply(wanted, caller.actor))
      },
    }),
    undoSettings: operation({
      ...changing,
      route: 'POST /settings/undo',
      summary: 'Undo the newest revision: the settings before it are in force again, as a revision of their own.',
      ifMatch,
      handle: async ({ version, caller }) => ok(await settings.undo(revisionIn(version), caller.actor)),
    }),
  }
}

/** @throws Failure `invalid` for a version that is no number */
export function revisionIn(version: string): number {
  if (/^\d{1,9}$/.test(version)) return Number(version)
  throw invalidField('If-Match', 'must be the number of a revision in quotes, such as "12"')
}

function secretsOf(config: Config): z.input<typeof SecretInForce>[] {
  const secret = ({ variable, file }: SecretSource, about: string) => ({
    name: variable,
    file: `secrets/${file}`,
    about,
    isSet: true,
    keyName: null,
    fault: null,
  })
  const { apiKey, keyEncryptionKey, nextKeyEncryptionKey, databaseUrl } = SECRETS
  return [
    secret(apiKey, 'opens the API of the supplier'),
    {
      ...secret(keyEncryptionKey, 'seals licence keys and secrets in the database'),
      keyName: nameOfKey(config.keyEncryptionKey),
    },
    { ...secret(nextKeyEncryptionKey, 'the key that a rotation takes into use'), ...nextKeyOf(config) },
    // The address of the database server is either in the configuration or a secret.
    ...(config.databaseUrl && config.database.url === null
      ? [secret(databaseUrl, `the address of the database, ${placeName(config)}`)]
      : []),
    ...config.stores
      .filter(({ credentials }) => credentials)
      .map(({ id, name }) => secret(credentialsSource(id), `opens the shop ${name}`)),
    ...Object.keys(config.alerts.channels).map((name) =>
      secret(channelSource(name), `where the channel ${name} sends alerts to`),
    ),
  ]
}

function nextKeyOf({
  nextKeyEncryptionKey,
}: Config): Pick<z.input<typeof SecretInForce>, 'isSet' | 'keyName' | 'fault'> {
  try {
    const next = nextKeyEncryptionKey()
    return { isSet: next !== undefined, keyName: next ? nameOfKey(next) : null, fault: null }
  } catch (error) {
    return { isSet: true, keyName: null, fault: messageOf(error) }
  }
}
