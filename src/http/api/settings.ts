import { z } from 'zod'
import { channelSource } from '../../config/alert-settings.ts'
import { type Config, credentialsSource, SECRETS, type SecretSource } from '../../config/config.ts'
import { settingsInForce } from '../../config/settings-in-force.ts'
import { messageOf } from '../../errors.ts'
import { placeName } from '../../storage/database-place.ts'
import { nameOfKey } from '../../vault/vault.ts'
import { type ApiContext, ok, operation, viewer } from '../operation.ts'
import { component, words } from './views.ts'

const Secret = z.object({
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
  file: z.string().describe('Of the configuration, as it was read at the start'),
  settings: z.array(
    z.object({
      name: z.string().meta({ examples: ['ordering.inFlight'] }),
      value: z.string().describe('Texts as they are, all else as JSON; addresses without credentials'),
      isDefault: z.boolean(),
    }),
  ),
  dialect: z
    .object({ name: z.string(), about: z.string().describe('What its file says that it is for') })
    .describe('How the supplier writes what its API leaves open'),
  secrets: z.array(Secret).describe('Whether each is set. No text of a secret is ever in an answer'),
  keyInUse: z.string().describe('Name of the key-encryption key that the database is sealed under'),
  keyConfigured: z.string().describe('Name of the one that the configuration had at the start'),
})

export function settingsOperations({ config, keys }: ApiContext) {
  return {
    viewSettings: operation({
      route: 'GET /settings',
      allowed: viewer,
      summary: 'The settings in force, and which secrets are set.',
      answer: Settings,
      success: { 200: 'As they were read at the start' },
      handle: async () =>
        ok({
          file: config.file,
          settings: settingsInForce(config),
          dialect: { name: config.dialectFacts.name, about: config.dialectFacts.about },
          secrets: secretsOf(config),
          keyInUse: nameOfKey(keys.current()),
          keyConfigured: nameOfKey(config.keyEncryptionKey),
        }),
    }),
  }
}

function secretsOf(config: Config): z.input<typeof Secret>[] {
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

function nextKeyOf({ nextKeyEncryptionKey }: Config): Pick<z.input<typeof Secret>, 'isSet' | 'keyName' | 'fault'> {
  try {
    const next = nextKeyEncryptionKey()
    return { isSet: next !== undefined, keyName: next ? nameOfKey(next) : null, fault: null }
  } catch (error) {
    return { isSet: true, keyName: null, fault: messageOf(error) }
  }
}
