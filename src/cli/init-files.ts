import { chmodSync, existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { configShape, type Settings } from '../config.ts'
import { Failure, messageOf } from '../errors.ts'
import type { Secret } from '../secret.ts'

/** What a person was asked, or said by flags. */
export interface Answers {
  baseUrl: string
  /** Undefined where the environment or the file that is there has it. */
  apiKey: Secret | undefined
  storeName: string
  callbackUrl: string
  publicUrl: string | null
  markup: string
}

export interface Existing {
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
  const apiKeyFile = existsSync(path.join(secretsOf(file), 'api-key'))
  if (!existsSync(file)) return { settings: undefined, apiKeyFile, kept: [] }
  try {
    const settings = configShape.parse(JSON.parse(readFileSync(file, 'utf8')))
    return { settings, apiKeyFile, kept: [`store id ${settings.stores[0]?.id}`] }
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

/**
 * Writes the secrets, then the configuration. What is permanent stays: the id of a store, and the key-encryption key,
 * without which the database could not be read any more.
 *
 * @throws Failure `invalid` with every fault, before anything is written
 */
export function writeInstallation(installation: Installation): { storeId: string; kept: string[] } {
  const { file, answers, existing, env, randomBytes } = installation
  const [store, ...others] = existing.settings?.stores ?? []
  const storeId = store?.id ?? `${slug(answers.storeName)}-${permanent(randomBytes)}`
  const { callbackUrl, storeName: name } = answers
  const pricing = { ...store?.pricing, markup: { ...store?.pricing.markup, percent: answers.markup } }
  const settings = {
    ...existing.settings,
    supplier: { ...existing.settings?.supplier, baseUrl: answers.baseUrl },
    stores: [{ ...store, id: storeId, kind: 'backend', name, callbackUrl, pricing }, ...others],
    publicUrl: answers.publicUrl,
  }
  check(settings)
  const folder = secretsOf(file)
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  chmodSync(folder, 0o700)
  const kept = [...existing.kept]
  const keyFile = path.join(folder, 'key-encryption-key')
  if (existsSync(keyFile)) kept.push('key-encryption key')
  else if (!env.QUAYSIDE_KEY_ENCRYPTION_KEY && !env.QUAYSIDE_KEY_ENCRYPTION_KEY_FILE) {
    replace(keyFile, `${Buffer.from(randomBytes(32)).toString('base64')}\n`, 0o600)
  }
  if (answers.apiKey) replace(path.join(folder, 'api-key'), `${answers.apiKey.reveal()}\n`, 0o600)
  replace(file, `${JSON.stringify(settings, undefined, 2)}\n`, 0o644)
  return { storeId, kept }
}

function check(settings: object): void {
  const result = configShape.safeParse(settings)
  if (result.success) return
  const fields = result.error.issues.map((issue) => ({
    field: issue.path.join('.'),
    message: `must be ${issue.message}`,
  }))
  throw new Failure('invalid', 'nothing was written: some answers are wrong', { fields })
}

/** A whole file or none, whenever the machine stops. */
function replace(file: string, text: string, mode: number): void {
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
