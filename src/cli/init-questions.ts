import { existsSync } from 'node:fs'
import path from 'node:path'
import type { z } from 'zod'
import {
  baseUrlFault,
  configShape,
  dialectFileOf,
  hasApiKey,
  readApiKey,
  readText,
  shippedDialects,
} from '../config/config.ts'
import { clearTextWarnings, ENCRYPT } from '../config/warnings.ts'
import { readDialect } from '../dialect/dialect.ts'
import { sayWhatIsRight } from '../dialect/file-faults.ts'
import { either, sentence } from '../domain/text-layout.ts'
import { Failure, type FieldFault, messageOf } from '../errors.ts'
import { Secret } from '../secret.ts'
import { type AccessFault, type Correction, trySupplier } from '../settings/supplier-trial.ts'
import { backend } from '../stores/backend/kind.ts'
import { shopKinds } from '../stores/kinds.ts'
import { percent } from '../stores/store-settings.ts'
import { type Io, proseWidth } from './command.ts'
import type { InitOptions } from './commands.ts'
import type { Existing } from './init.ts'
import { productsText } from './supplier-sample.ts'
import { openTerminal, type Terminal } from './terminal.ts'

/** The default name and markup, so that the first store can sell at once. Each is one line of the configuration. */
const NAME = 'My store'
export const MARKUP = '20'

/** Writes a dialect for the configuration: a name stays as it is, a path becomes relative to the configuration's folder. */
const dialectSetting = (given: string, folder: string): string =>
  given.endsWith('.json') ? pathSetting(given, folder) : given

/** Writes a path for the configuration: an absolute path stays, any other becomes relative to the configuration's folder. */
const pathSetting = (given: string, folder: string): string =>
  given === '' || path.isAbsolute(given) ? given : path.relative(path.resolve(folder), path.resolve(given))

/**
 * Returns the answers without asking: a flag counts first, then the configuration that is there already, then the default.
 *
 * @throws Failure `invalid` that names every flag that is missing
 */
export function flagAnswers(flags: InitOptions, env: Io['env'], existing: Existing): Answers {
  const before = defaultsOf(flags, existing)
  const faults: FieldFault[] = []
  if (!before.baseUrl) faults.push({ field: '--base-url', message: "the address of the supplier's Reseller API" })
  const given: [flag: string, shape: z.ZodType, text: string | null][] = [
    ['--callback-url', callbackUrlShape, before.callbackUrl],
    ['--public-url', publicUrlShape, before.publicUrl],
    ['--markup', percent, before.markup],
  ]
  const addressFault = before.baseUrl ? addressFaultOf(before.dialect, existing.folder)(before.baseUrl) : undefined
  if (addressFault !== undefined) faults.push({ field: '--base-url', message: addressFault })
  for (const [field, shape, text] of given) {
    const message = text ? faultOf(shape)(text) : undefined
    if (message !== undefined) faults.push({ field, message })
  }
  if (!flags.apiKeyFile && !hasApiKey(existing.folder, env)) {
    faults.push({ field: '--api-key-file', message: 'a file that holds the API key, or set QUAYSIDE_API_KEY' })
  }
  if (faults.length > 0)
    throw new Failure('invalid', 'nothing was written: some answers are missing or wrong', { fields: faults })
  const apiKey = flags.apiKeyFile ? readKeyFile(flags.apiKeyFile) : undefined
  return { ...before, apiKey }
}

/** The answers of a person to the questions, or by flags. */
export type Answers = ReturnType<typeof defaultsOf> & {
  /** Undefined where the environment or an existing file has the API key. */
  apiKey: Secret | undefined
}

function defaultsOf(flags: InitOptions, { settings, folder }: Existing) {
  const store = backendOf(settings)
  return {
    baseUrl: flags.baseUrl ?? settings?.supplier.baseUrl ?? '',
    dialect: flags.dialect ? dialectSetting(flags.dialect, folder) : (settings?.supplier.dialect ?? DIALECT),
    storeName: flags.storeName ?? store?.name ?? NAME,
    /** Null: there is no store with a backend. */
    callbackUrl: flags.callbackUrl ?? store?.callbackUrl ?? null,
    publicUrl: flags.publicUrl ?? settings?.publicUrl ?? null,
    markup: flags.markup ?? store?.pricing.markup.percent ?? MARKUP,
    /** Undefined: the configuration does not name the folder, and the default applies. The same goes for `port`. */
    dataDir: flags.dataDir === undefined ? settings?.dataDir : pathSetting(flags.dataDir, folder),
    port: flags.port ?? settings?.listen.port,
  }
}

export const backendOf = (settings: Existing['settings']) =>
  settings?.stores.find((store) => store.kind === backend.kind)

export function readKeyFile(file: string): Secret {
  const text = readText(file).trim()
  const fault = keyFault(text)
  if (fault !== undefined) throw new Failure('invalid', `${file} holds no API key: that is ${fault}`)
  return new Secret(text)
}

const keyFault = (text: string): string | undefined =>
  /^[\x21-\x7e]{1,500}$/.test(text) ? undefined : '1 to 500 visible characters without spaces'

const { baseUrl: baseUrlShape, dialect: dialectNameShape } = configShape.shape.supplier.shape
/** The default dialect. Most suppliers differ from this dialect in a few facts. */
export const DIALECT = dialectNameShape.parse(undefined)
const { publicUrl: publicUrlShape } = configShape.shape
const { name: nameShape, callbackUrl: callbackUrlShape } = backend.settings.shape

export const faultOf = (shape: z.ZodType) => (text: string) => {
  const result = shape.safeParse(text, { error: sayWhatIsRight })
  return result.success ? undefined : result.error.issues[0]?.message
}
const optional = (shape: z.ZodType) => (text: string) => (text === '' ? undefined : faultOf(shape)(text))

/**
 * Asks on the terminal. A question with an impossible answer is asked again. The answer `-` removes an optional value.
 *
 * @returns the answers, and the products that the person has seen; no products where the supplier was not asked
 */
export async function askAnswers(io: Io, flags: InitOptions, existing: Existing) {
  const before = defaultsOf(flags, existing)
  const hasBackend = backendOf(existing.settings) !== undefined
  const terminal = openTerminal(io)
  try {
    io.stdout.write('Each question says what its answer means. Enter takes what is in [brackets].\n')
    const { products, ...supplier } = await askSupplier(terminal, io, flags, existing)
    const callbackUrl = await terminal.put({
      about: `Where your store's backend gets keys and failures. It may be started later: callbacks wait in the queue.${hasBackend ? '' : ` Leave it empty where you have no such backend: a shop of ${either(shopKinds.map(({ label }) => label))} is added afterwards.`}`,
      ask: hasBackend ? 'Callback URL' : 'Callback URL (optional)',
      before: before.callbackUrl ?? '',
      // Without a callback URL, the store with a backend would be removed, and its permanent id with it.
      fault: hasBackend ? faultOf(callbackUrlShape) : optional(callbackUrlShape),
    })
    const storeName = callbackUrl === '' ? before.storeName : await askName(terminal, before.storeName)
    const publicUrl = await terminal.put({
      about:
        'Where the supplier and shops reach this service, and customers the page of their keys. Left out, it polls, and keys are sent in plain text.',
      ask: 'Public URL (optional)',
      before: before.publicUrl ?? '',
      fault: optional(publicUrlShape),
    })
    const markup = callbackUrl === '' ? before.markup : await askMarkup(terminal, before.markup)
    const store = { storeName, callbackUrl: callbackUrl || null, publicUrl: publicUrl || null, markup }
    const answers: Answers = { ...before, ...supplier, ...store }
    return { answers, products }
  } finally {
    terminal.close()
  }
}

export const askName = (terminal: Terminal, before: string): Promise<string> =>
  terminal.put({
    about: 'Your store, as people call it. A permanent id is made from it once.',
    ask: 'Store name',
    before,
    fault: faultOf(nameShape),
  })

export const askMarkup = (terminal: Terminal, before: string): Promise<string> =>
  terminal.put({
    about: 'Your prices: what the supplier charges you, plus this percentage.',
    ask: 'Markup in percent',
    before,
    fault: faultOf(percent),
  })

type SupplierAnswers = Pick<Answers, 'baseUrl' | 'dialect' | 'apiKey'>

export function accessOf({ baseUrl, dialect, apiKey }: SupplierAnswers, { file, folder }: Existing, env: Io['env']) {
  return { baseUrl, dialect: readDialect(dialectFileOf(dialect, folder)), apiKey: readApiKey(file, env, apiKey) }
}

/**
 * Asks for address, dialect and key, and tries them at once. An answer that does not work is asked for again.
 *
 * @throws Failure `unavailable` when the person stops, `invalid` when the products are not right
 */
async function askSupplier(terminal: Terminal, io: Io, flags: InitOptions, existing: Existing) {
  const width = proseWidth(io)
  const before = defaultsOf(flags, existing)
  const ofAddress = (dialect: string) => addressFaultOf(dialect, existing.folder)
  const dialect = await askDialect(terminal, before.dialect, existing.folder)
  const baseUrl = await askAddress(terminal, before.baseUrl, ofAddress(dialect))
  const apiKey = flags.apiKeyFile ? readKeyFile(flags.apiKeyFile) : await askKey(terminal, io.env, existing)
  const answers: SupplierAnswers = { baseUrl, dialect, apiKey }
  while (!flags.offline) {
    const access = accessOf(answers, existing, io.env)
    // The warning comes before the API key is sent for the first time.
    terminal.write(warningText(clearTextWarnings({ supplier: access, stores: [] }), width))
    const result = await trySupplier(access)
    if ('products' in result) {
      await assertRight(terminal, productsText(result.products, width))
      return { ...answers, ...result }
    }
    const correct = await askCorrection(terminal, result.fault, io.env)
    if (correct === 'stop') throw new Failure('unavailable', `nothing was written: ${result.fault.message}`)
    if (correct === 'key') answers.apiKey = await askKey(terminal, io.env, existing)
    if (correct === 'address') answers.baseUrl = await askAddress(terminal, answers.baseUrl, ofAddress(answers.dialect))
    if (correct === 'dialect') answers.dialect = await askDialect(terminal, answers.dialect, existing.folder)
  }
  return { ...answers, products: undefined }
}

export const warningText = (warnings: readonly string[], width: number): string =>
  warnings.map((warning) => `\n${sentence(`WARNING: ${warning}: ${ENCRYPT}.`, width)}`).join('')

const askAddress = (terminal: Terminal, before: string, fault: (text: string) => string | undefined): Promise<string> =>
  terminal.put({
    about: "The supplier's API. The address of the Reseller API, version 1, ends in /v1.",
    ask: 'Base URL',
    before,
    fault,
  })

/** What is wrong with an address for the dialect of that name. A dialect that cannot be read is a fault of its own. */
const addressFaultOf = (dialect: string, folder: string) => (text: string) =>
  faultOf(baseUrlShape)(text) ??
  (dialectFault(dialect, folder) ? undefined : baseUrlFault(text, readDialect(dialectFileOf(dialect, folder))))

const LIST_WIDTH = 78

async function askDialect(terminal: Terminal, before: string, folder: string): Promise<string> {
  const settingOf = (text: string): string => (text === before ? text : dialectSetting(text, folder))
  const known = shippedDialects().map(({ name, about }) =>
    sentence(`${name}: ${about}`, LIST_WIDTH, { lead: '  ', hang: 4 }),
  )
  terminal.write(`\nThese dialects come with Quayside:\n${known.join('')}`)
  const text = await terminal.put({
    about: `How the supplier writes what the API leaves open: the name of a dialect, or the path of a file. ${DIALECT} is the default; docs/fitting-a-supplier.md leads to another.`,
    ask: 'Dialect',
    before,
    fault: (typed) => dialectFault(settingOf(typed), folder),
  })
  return settingOf(text)
}

function askCorrection(terminal: Terminal, fault: AccessFault, env: Io['env']): Promise<Correction> {
  // A key in the environment wins over a typed key, so typing another key would not help.
  const variable = ['QUAYSIDE_API_KEY', 'QUAYSIDE_API_KEY_FILE'].find((name) => env[name])
  const choices: Correction[] = ['address', 'dialect', 'again', 'stop']
  if (variable === undefined) choices.unshift('key')
  const isFixed = fault.correct === 'key' && variable !== undefined
  return terminal.choose(choices, {
    about: `IT DOES NOT WORK YET: ${fault.message}${isFixed ? ` It comes from ${variable}: set a right one there.` : ''}`,
    ask: `Correct (${choices.slice(0, -1).join(', ')} or stop)`,
    before: isFixed ? 'stop' : fault.correct,
  })
}

function dialectFault(setting: string, folder: string): string | undefined {
  const fault = faultOf(dialectNameShape)(setting)
  if (fault !== undefined) return fault
  try {
    readDialect(dialectFileOf(setting, folder))
    return undefined
  } catch (error) {
    return messageOf(error)
  }
}

/** Shows the products that were read, and asks whether they are right. @throws Failure `invalid` when they are not */
async function assertRight(terminal: Terminal, products: string): Promise<void> {
  terminal.write(`\n${products}`)
  const answer = await terminal.put({
    about: 'A dialect that does not fit can take cents for euros, and nothing else would show it.',
    ask: 'Are they right (yes or no)',
    before: '',
    fault: (typed) => (/^(yes|y|no|n)$/i.test(typed) ? undefined : 'yes or no'),
  })
  if (answer.toLowerCase().startsWith('y')) return
  const then = 'Fit a dialect to this supplier by docs/fitting-a-supplier.md, and name it by --dialect.'
  throw new Failure('invalid', `nothing was written. ${then}`)
}

async function askKey(terminal: Terminal, env: Io['env'], existing: Existing): Promise<Secret | undefined> {
  const has = hasApiKey(existing.folder, env)
  const text = await terminal.put(
    {
      about: 'The key that the supplier gave you. It is kept in a file that only you can read, and never shown.',
      ask: has ? 'API key (Enter keeps the one that is set)' : 'API key (not shown while you type)',
      before: '',
      fault: (key) => {
        if (key === '') return has ? undefined : 'it is needed'
        return existsSync(key) ? 'this is a file: type what it holds, or name it by --api-key-file' : keyFault(key)
      },
    },
    { hidden: true },
  )
  return text === '' ? undefined : new Secret(text)
}
