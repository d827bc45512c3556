/** The commands for people who write a receiver of callbacks, and the secrets that both commands work with. */
import { readText } from '../config/config.ts'
import { plain, sentence } from '../domain/text-layout.ts'
import { Failure } from '../errors.ts'
import { createIds } from '../ids.ts'
import { readConfig } from '../settings/stored.ts'
import { kindOf } from '../stores/kinds.ts'
import { isLoopback, webAddress } from '../stores/store-settings.ts'
import { configFileOf } from './client.ts'
import { type CommandRow, fileOptions, type Given, type Io, proseWidth, whole } from './command.ts'
import { exitCodes } from './exit-codes.ts'
import { findingText } from './facts.ts'

const secretOptions = {
  '--secret-file <file>': 'file with the callback secret, else QUAYSIDE_SECRET, else that of the configured store',
  '--store <id>': 'which store of the configuration, when there are several',
  ...fileOptions,
}
type SecretFlags = Given<typeof secretOptions>

const listenOptions = {
  '--port <number>': {
    about: 'where it listens; default: that of a callbackUrl on this machine, else 4000',
    parse: whole(65_535),
  },
  '--forward-to <address>': 'pass each genuine callback on, and answer what this address answers',
  ...secretOptions,
  '--json': 'print one JSON object a line, one for each callback',
}
type ListenFlags = Given<typeof listenOptions>

export const receivers: CommandRow[] = [
  {
    command: 'listen',
    about: 'receive and print callbacks, keys too, while your backend is not there yet',
    options: listenOptions,
    help: `
It listens on this machine alone, until Ctrl-C. It answers 204 to each genuine
callback, which then counts as handed over, and 401 to all others.`,
    examples: ['listen', 'listen --forward-to http://localhost:3000/callbacks'],
    run: runListen,
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
    run: runCheckReceiver,
  },
]

/** @throws Failure `invalid` */
function readAddress(text: string): string {
  const { data, error } = webAddress.safeParse(text)
  if (data !== undefined) return data
  throw new Failure('invalid', `${text} is no address of a receiver: that is ${error.issues[0]?.message}`)
}

/**
 * Returns the callback secrets of a store, `whsec_…`, and the store where the configuration has it.
 *
 * @throws Failure `invalid` where no option says which; as `loadConfig` does
 */
async function secretsFor({ env }: Io, { secretFile, store, config }: SecretFlags) {
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
  const settings = await readConfig(source.file, source.demo ? {} : env)
  const backends = settings.stores.filter((one) => kindOf(one).shop === null)
  const [only, other] = backends.filter(({ id }) => store === undefined || id === store)
  const ids = backends.map(({ id }) => id).join(', ') || 'none'
  if (!only || other) throw new Failure('invalid', `which store? By --store, name one that gets callbacks: ${ids}`)
  const { callbackSecretsOf } = await import('../installation.ts')
  return { secrets: (await callbackSecretsOf(settings, only.id)).map((one) => one.reveal()), store: only }
}

const PORT = 4000
const WIDEST_TYPE = 'listings.changed'.length

/** Does `listen`, until a signal. */
async function runListen(io: Io, options: ListenFlags): Promise<undefined> {
  const stopped = io.stopSignal()
  const forwardTo = options.forwardTo === undefined ? undefined : readAddress(options.forwardTo)
  const { secrets, store } = await secretsFor(io, options)
  const { aboutCallback, startReceiver } = await import('../stores/backend/receiver.ts')
  const { protocol, hostname, port } = new URL(store?.address ?? 'none:')
  const own = protocol === 'http:' && isLoopback(hostname) ? Number(port || 80) : undefined
  const receiver = await startReceiver({
    secrets,
    port: options.port ?? own ?? PORT,
    now: io.now,
    forwardTo,
    onAnswer: ({ status: answered, why, callback }) => {
      if (options.json) return void io.stdout.write(`${JSON.stringify({ answered, why, callback })}\n`)
      const lead = `${new Date(io.now()).toISOString().slice(11, 19)}  `
      const type = plain(callback?.type ?? 'refused').padEnd(WIDEST_TYPE)
      const about = callback ? `${aboutCallback(callback)}${callback.test ? ', a test' : ''}` : `answered ${answered}`
      io.stdout.write(sentence(plain(about), proseWidth(io), { lead: `${lead}${type}  ` }))
      const fault = callback ? `answered ${answered}: ${why}` : plain(why ?? '')
      if (why) io.stdout.write(sentence(`-> ${fault}`, proseWidth(io), { lead: ' '.repeat(lead.length) }))
    },
  })
  if (!options.json) io.stderr.write(`Listening at ${receiver.url}; Ctrl-C ends it.\n`)
  if (store && receiver.port !== own) {
    const move = `Quayside sends the callbacks of ${store.id} to ${store.address}. Set its callbackUrl to ${receiver.url}, and restart it.`
    io.stderr.write(sentence(move, proseWidth(io)))
  }
  await stopped
  receiver.close()
}

/** Does `check receiver`. Prints each finding as it is made. @returns the exit code */
async function runCheckReceiver(io: Io, options: SecretFlags, given = ''): Promise<number> {
  const url = readAddress(given)
  const { secrets } = await secretsFor(io, options)
  const { checkReceiver } = await import('../stores/backend/receiver-check.ts')
  const keys = secrets.map((text) => Buffer.from(text.slice('whsec_'.length), 'base64'))
  const { now, sleep, randomBytes } = io
  const checks = []
  for await (const finding of checkReceiver({ url, secrets: keys, now, sleep, newId: createIds(now, randomBytes) })) {
    checks.push(finding)
    const { check, passed, detail, fix } = finding
    if (!options.json) io.stdout.write(findingText(passed ? 'ok' : 'fail', check, detail, fix, proseWidth(io)))
  }
  const failed = checks.filter(({ passed }) => !passed).length
  const passed = failed === 0
  const counts = checks.length === 1 ? 'No other callback was sent.' : `${failed} of ${checks.length} failed.`
  if (options.json) io.stdout.write(`${JSON.stringify({ receiver: url, passed, checks }, undefined, 2)}\n`)
  else io.stdout.write(`\n${sentence(passed ? PASSED : counts, proseWidth(io))}`)
  return passed ? exitCodes.ok : exitCodes.failed
}

const PASSED = 'All passed. Look into your store whether it kept each id once: answers do not show that.'
