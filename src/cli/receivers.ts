/** The commands for people who write a receiver of callbacks, and the secrets that both commands work with. */
import { loadConfig, readText } from '../config/config.ts'
import { Failure } from '../errors.ts'
import { kindOf } from '../stores/kinds.ts'
import { webAddress } from '../stores/store-settings.ts'
import { configFileOf } from './client.ts'
import { type CommandRow, fileOptions, type Given, type Io, whole } from './command.ts'

const secretOptions = {
  '--secret-file <file>': 'file with the callback secret, else QUAYSIDE_SECRET, else that of the configured store',
  '--store <id>': 'which store of the configuration, when there are several',
  ...fileOptions,
}
export type SecretFlags = Given<typeof secretOptions>

const listenOptions = {
  '--port <number>': {
    about: 'where it listens; default: that of a callbackUrl on this machine, else 4000',
    parse: whole(65_535),
  },
  '--forward-to <address>': 'pass each genuine callback on, and answer what this address answers',
  ...secretOptions,
  '--json': 'print one JSON object a line, one for each callback',
}
export type ListenFlags = Given<typeof listenOptions>

export const receivers: CommandRow[] = [
  {
    command: 'listen',
    about: 'receive and print callbacks, keys too, while your backend is not there yet',
    options: listenOptions,
    help: `
It listens on this machine alone, until Ctrl-C. It answers 204 to each genuine
callback, which then counts as handed over, and 401 to all others.`,
    examples: ['listen', 'listen --forward-to http://localhost:3000/callbacks'],
    run: async (io, options: ListenFlags) => (await import('./listen.ts')).runListen(io, options),
  },
  { command: 'check', about: 'try what you have built: receiver' },
  {
    command: 'check receiver <url>',
    about: 'send it a callback and twelve odd ones; say what to change',
    args: ['address of a receiver that you test'],
    options: secretOptions,
    help: `
Each body has "test": true, and each order is one that no shop has. Whether the
receiver acts once on what comes twice shows in your store alone: look there.`,
    examples: ['check receiver http://localhost:3000/callbacks'],
    run: async (io, options: SecretFlags, url) =>
      (await import('./check-receiver.ts')).runCheckReceiver(io, options, url ?? ''),
  },
]

/** @throws Failure `invalid` */
export function readAddress(text: string): string {
  const { data, error } = webAddress.safeParse(text)
  if (data !== undefined) return data
  throw new Failure('invalid', `${text} is no address of a receiver: that is ${error.issues[0]?.message}`)
}

/**
 * Returns the callback secrets of a store, `whsec_…`, and the store where the configuration has it.
 *
 * @throws Failure `invalid` where no option says which; as `loadConfig` does
 */
export async function secretsFor({ env }: Io, { secretFile, store, config }: SecretFlags) {
  const given = secretFile === undefined ? env.QUAYSIDE_SECRET : readText(secretFile)
  if (given !== undefined && given !== '') {
    const secrets = given.trim().split(/\s+/)
    if (secrets.every((one) => /^whsec_[A-Za-z0-9+/]{32,88}={0,2}$/.test(one))) return { secrets }
    throw new Failure(
      'invalid',
      `${secretFile ?? 'QUAYSIDE_SECRET'} holds no callback secret: that is whsec_ and base64`,
    )
  }
  const source = configFileOf(config, env)
  if (!source) throw new Failure('invalid', 'name the callback secret by --secret-file: there is no configuration')
  const settings = loadConfig(source.file, source.demo ? {} : env)
  const backends = settings.stores.filter((one) => kindOf(one).shop === null)
  const [only, other] = backends.filter(({ id }) => store === undefined || id === store)
  const ids = backends.map(({ id }) => id).join(', ') || 'none'
  if (!only || other) throw new Failure('invalid', `which store? By --store, name one that gets callbacks: ${ids}`)
  const { callbackSecretsOf } = await import('../installation.ts')
  return { secrets: (await callbackSecretsOf(settings, only.id)).map((one) => one.reveal()), store: only }
}
