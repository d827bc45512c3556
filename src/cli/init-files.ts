import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmdirSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import path from 'node:path'
import { type Config, checkedConfig, configShape, type Settings } from '../config.ts'
import { Failure, messageOf } from '../errors.ts'
import { Secret } from '../secret.ts'

/** What a person was asked, or said by flags. */
export interface Answers {
  baseUrl: string
  /** As the configuration has it: a name, or a path from its folder. */
  dialect: string
  /** Undefined where the environment or the file that is there has it. */
  apiKey: Secret | undefined
  storeName: string
  callbackUrl: string
  publicUrl: string | null
  markup: string
}

export interface Existing {
  /** Where the configuration is, or will be. */
  folder: string
  /** The configuration that `--force` writes over, when it can be read. */
  settings: Settings | undefined
  /** Whether an API key is in its place already. */
  apiKeyFile: boolean
  /** What an earlier installation had and this one goes on with, for people. */
  kept: string[]
}

const secretsOf = (file: string): string => path.join(path.dirname(file), 'secrets')

/**
 * What is there already. An unreadable configuration stops everything: it may hold a store's permanent id, and a new one
 * would buy again what the old one bought.
 *
 * @throws Failure `conflict`
 */
export function readExisting(file: string): Existing {
  const folder = path.dirname(file)
  const apiKeyFile = existsSync(path.join(secretsOf(file), 'api-key'))
  if (!existsSync(file)) return { folder, settings: undefined, apiKeyFile, kept: [] }
  try {
    const settings = configShape.parse(JSON.parse(readFileSync(file, 'utf8')))
    return { folder, settings, apiKeyFile, kept: [`store id ${settings.stores[0]?.id}`] }
  } catch (cause) {
    const why = `${file} cannot be read, and holds the permanent id of a store: mend it, or move it away yourself.`
    throw new Failure('conflict', `${why}\n${messageOf(cause).split('\n')[0]}`, { cause })
  }
}

export interface Installation {
  file: string
  answers: Answers
  existing: Existing
  env: Record<string, string | undefined>
  randomBytes: (count: number) => Uint8Array
}

/** An installation that was checked, and of which nothing is written yet. */
export interface Plan {
  file: string
  /** As the service will read it. */
  config: Config
  storeId: string
  /** Stores whose permanent ids are new. */
  madeStores: string[]
  kept: string[]
  /** Contents of the files, with their modes, in the order in which they are written. */
  files: { file: string; text: string; mode: number }[]
}

/**
 * Makes the configuration and its secrets. What is permanent stays: the id of a store, and the key-encryption key,
 * without which the database could not be read any more.
 *
 * @throws Failure `invalid` with every fault
 */
export function planInstallation(installation: Installation): Plan {
  const { file, answers, existing, env, randomBytes } = installation
  const [store, ...others] = existing.settings?.stores ?? []
  const storeId = store?.id ?? `${slug(answers.storeName)}-${permanent(randomBytes)}`
  const { callbackUrl, storeName: name, apiKey } = answers
  const pricing = { ...store?.pricing, markup: { ...store?.pricing.markup, percent: answers.markup } }
  const settings = {
    ...existing.settings,
    supplier: { ...existing.settings?.supplier, baseUrl: answers.baseUrl, dialect: answers.dialect },
    stores: [{ ...store, id: storeId, kind: 'backend', name, callbackUrl, pricing }, ...others],
    publicUrl: answers.publicUrl,
  }
  const kept = [...existing.kept]
  const files: Plan['files'] = []
  const keyFile = path.join(secretsOf(file), 'key-encryption-key')
  const elsewhere = env.QUAYSIDE_KEY_ENCRYPTION_KEY || env.QUAYSIDE_KEY_ENCRYPTION_KEY_FILE
  let keyEncryptionKey: Secret | undefined
  if (existsSync(keyFile)) kept.push('key-encryption key')
  else if (!elsewhere) {
    keyEncryptionKey = new Secret(Buffer.from(randomBytes(32)).toString('base64'))
    files.push({ file: keyFile, text: `${keyEncryptionKey.reveal()}\n`, mode: 0o600 })
  }
  if (apiKey) files.push({ file: path.join(secretsOf(file), 'api-key'), text: `${apiKey.reveal()}\n`, mode: 0o600 })
  files.push({ file, text: `${JSON.stringify(settings, undefined, 2)}\n`, mode: 0o644 })
  const config = checkedConfig(file, settings, env, { apiKey, keyEncryptionKey })
  return { file, config, storeId, madeStores: store ? [] : [storeId], kept, files }
}

/** Writes the secrets, then the configuration. @returns what puts everything back as it was */
export function writeInstallation({ file, files }: Plan): () => void {
  const secrets = secretsOf(file)
  const undo = remember([...files.map((one) => one.file), ...files.map((one) => `${one.file}.new`)], secrets)
  try {
    mkdirSync(secrets, { recursive: true, mode: 0o700 })
    chmodSync(secrets, 0o700)
    for (const one of files) replace(one.file, one.text, one.mode)
    return undo
  } catch (error) {
    undo()
    throw error
  }
}

/** @returns what gives these files the contents that they have now, and removes those folders that are not there now */
function remember(files: string[], folder: string): () => void {
  const before = files.map((file) => {
    const facts = statSync(file, { throwIfNoEntry: false })
    return { file, text: facts && readFileSync(file), mode: facts && facts.mode & 0o777 }
  })
  const made: string[] = []
  for (let one = path.resolve(folder); !existsSync(one); one = path.dirname(one)) made.push(one)
  return () => {
    for (const { file, text, mode } of before) {
      if (text === undefined) rmSync(file, { force: true })
      else replace(file, text, mode ?? 0o600)
    }
    for (const one of made) if (existsSync(one) && readdirSync(one).length === 0) rmdirSync(one)
  }
}

/** A whole file or none, whenever the machine stops. */
function replace(file: string, text: string | Buffer, mode: number): void {
  const next = `${file}.new`
  writeFileSync(next, text, { mode })
  chmodSync(next, mode)
  renameSync(next, file)
}

/** `Anna's Games` is `anna-s-games`; at most 40 characters, `store` when nothing is left. */
function slug(name: string): string {
  const plain = name
    .normalize('NFKD')
    .toLowerCase()
    .replaceAll(/\p{M}+/gu, '')
  return (
    plain
      .replaceAll(/[^a-z0-9]+/g, '-')
      .slice(0, 40)
      .replaceAll(/^-+|-+$/g, '') || 'store'
  )
}

/** 8 random characters of 32: two installations on one API key meet with a chance of one in 10^12. */
const permanent = (randomBytes: (count: number) => Uint8Array): string =>
  [...randomBytes(8)].map((byte) => '0123456789abcdefghjkmnpqrstvwxyz'[byte & 31]).join('')
