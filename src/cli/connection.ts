import { existsSync, readFileSync, statSync } from 'node:fs'
import path from 'node:path'
import { z } from 'zod'
import { configShape } from '../config.ts'
import { Failure, messageOf } from '../errors.ts'
import { Secret } from '../secret.ts'

/** Where the configuration is unless told; without it, the demo runs. */
export const CONFIG_FILE = 'config/quayside.json'

type Env = Record<string, string | undefined>

/** Where the demo keeps everything: apart from the data folder of a configuration, which may come later. */
export const demoFolder = (env: Env): string => env.QUAYSIDE_DATA_DIR ?? 'data/demo'

/**
 * The configuration that a command goes by: the named one, else the usual one, else what the demo wrote when it started
 * last, which knows the ports that it found free.
 *
 * @returns undefined when there is none, and the defaults apply
 */
export function configFileOf(named: string | undefined, env: Env): { file: string; demo: boolean } | undefined {
  const wanted = named ?? env.QUAYSIDE_CONFIG
  if (wanted !== undefined && wanted !== '') return { file: wanted, demo: false }
  if (existsSync(CONFIG_FILE)) return { file: CONFIG_FILE, demo: false }
  const file = path.join(demoFolder(env), 'demo.json')
  return existsSync(file) ? { file, demo: true } : undefined
}

export interface Connection {
  /** Scheme, host and port of the running service. */
  origin: string
  token: Secret | undefined
  /** Where the owner token is looked for. */
  tokenFile: string
}

export interface ConnectionOptions {
  config?: string | undefined
  url?: string | undefined
  token?: string | undefined
}

/**
 * Where the service is and what opens it: `--url` and `--token`, else QUAYSIDE_URL and QUAYSIDE_TOKEN, else the
 * configuration's address and the owner token in its data folder.
 *
 * The owner token never leaves this machine by itself: an address elsewhere needs a token of its own.
 *
 * @throws Failure `invalid` for a wrong address or configuration, `forbidden` for a token file that others can read
 */
export function connectionOf(options: ConnectionOptions, env: Env): Connection {
  const settings = readPlace(configFileOf(options.config, env)?.file)
  const address = options.url ?? env.QUAYSIDE_URL
  const origin = address === undefined ? originOf(settings.listen) : readAddress(address)
  const tokenFile = path.join(settings.dataDir, 'owner.token')
  const given = options.token ?? env.QUAYSIDE_TOKEN
  if (given !== undefined && given !== '') return { origin, token: readToken(given, 'the token'), tokenFile }
  return { origin, token: isLoopback(origin) ? readOwnerToken(tokenFile) : undefined, tokenFile }
}

/** The part of the configuration that says where the service is; faults elsewhere in it are not this command's. */
const placeShape = z.object({ listen: configShape.shape.listen, dataDir: configShape.shape.dataDir })

/**
 * @param file undefined where the defaults apply
 * @returns the data folder as an absolute path
 */
export function readPlace(file: string | undefined): z.infer<typeof placeShape> {
  const result = placeShape.safeParse(file === undefined ? {} : readJson(file))
  if (result.success) return { ...result.data, dataDir: resolveFrom(file, result.data.dataDir) }
  const fields = result.error.issues.map((issue) => ({ field: issue.path.join('.'), message: issue.message }))
  throw new Failure('invalid', `the configuration ${file} has faults; \`npx quayside doctor\` lists them`, { fields })
}

/** Relative paths of the configuration are relative to its folder. */
export const resolveFrom = (file = CONFIG_FILE, relative: string): string => path.resolve(path.dirname(file), relative)

function readJson(file: string): unknown {
  try {
    return JSON.parse(readFileSync(file, 'utf8'))
  } catch (error) {
    throw new Failure('invalid', `${file} cannot be read as JSON: ${messageOf(error)}`, { cause: error })
  }
}

/** A service that listens everywhere is reached on loopback. */
function originOf({ host, port }: { host: string; port: number }): string {
  const near = host === '0.0.0.0' ? '127.0.0.1' : host === '::' ? '::1' : host
  return `http://${near.includes(':') ? `[${near}]` : near}:${port}`
}

function readAddress(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (url && /^https?:$/.test(url.protocol) && /^(\/|\/api\/v1\/?)$/.test(url.pathname) && !url.username)
    return url.origin
  throw new Failure('invalid', `not an address of a service: ${text}; give one such as http://127.0.0.1:8080`)
}

const isLoopback = (origin: string): boolean =>
  /^(localhost|127\.\d+\.\d+\.\d+|\[::1\])$/.test(new URL(origin).hostname)

function readOwnerToken(file: string): Secret | undefined {
  const facts = statSync(file, { throwIfNoEntry: false })
  if (!facts) return undefined
  if ((facts.mode & 0o077) !== 0) {
    throw new Failure('forbidden', `others can read the owner token ${file}: run \`chmod 600 ${file}\``)
  }
  try {
    return readToken(readFileSync(file, 'utf8').trim(), file)
  } catch (error) {
    if (error instanceof Failure) throw error
    throw new Failure(
      'forbidden',
      `the owner token cannot be read: ${messageOf(error)}; use --token or QUAYSIDE_TOKEN`,
      {
        cause: error,
      },
    )
  }
}

/** A token goes into a header, which takes no spaces and no line ends. */
function readToken(text: string, where: string): Secret {
  if (/^[\x21-\x7e]{1,500}$/.test(text)) return new Secret(text)
  throw new Failure('invalid', `${where} holds no token: 1 to 500 visible characters without spaces`)
}
