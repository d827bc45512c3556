/** Stores are added: where the settings are in the database by the service, else in the file. */
import { statSync } from 'node:fs'
import path from 'node:path'
import { z } from 'zod'
import {
  type Config,
  checkedConfig,
  credentialsFault,
  credentialsSource,
  readJson,
  readText,
} from '../config/config.ts'
import { clearTextWarnings } from '../config/warnings.ts'
import { counted } from '../domain/figures.ts'
import { sentence } from '../domain/text-layout.ts'
import { Failure, type FieldFault, messageOf } from '../errors.ts'
import { offersOfSkus, type SetUp, setUpOf, webhookOfShop } from '../installation.ts'
import { Secret } from '../secret.ts'
import { newStoreId, secretsOf, writeSetUp } from '../settings/set-up-files.ts'
import { readConfig } from '../settings/stored.ts'
import { tryShop } from '../settings/trial.ts'
import { backend } from '../stores/backend/kind.ts'
import type { StoreFinding, StoreVariant } from '../stores/store.ts'
import type {
  AskHidden,
  NewShop,
  ShopAccess,
  ShopAnswers,
  ShopCorrection,
  ShopCredentials,
  ShopQuestions,
  ShopStanding,
  StoreKind,
} from '../stores/store-kind.ts'
import { everyStore, percent } from '../stores/store-settings.ts'
import { CONFIG_FILE, configFileOf, connectionOf, createClient } from './client.ts'
import { type FileFlags, type Io, print, proseWidth } from './command.ts'
import { saying } from './exit-codes.ts'
import { nextText, type Pair } from './facts.ts'
import { backendText } from './init.ts'
import { askMarkup, askName, faultOf, MARKUP, warningText } from './init-questions.ts'
import { creations, findingsText, type SellingFlags, TEST_DEADLINE_MS } from './stores.ts'
import { table } from './tables.ts'
import { openTerminal, type Terminal } from './terminal.ts'
import { commandLine, configOption } from './words.ts'

/** The options of `stores add`; the settings of the kind of shop are among them. */
export type AddOptions = SellingFlags &
  FileFlags & { url?: string; keyFile?: string; callbackUrl?: string; [setting: string]: unknown }

/** The variable that may hold the credentials of the shop, for scripts. */
const KEY_VARIABLE = 'QUAYSIDE_SHOP_KEY'

/** Tries a store, then adds it to the settings. A failure leaves nothing behind. */
export async function runAddStore(io: Io, kind: StoreKind, options: AddOptions): Promise<undefined> {
  const source = configFileOf(options.config, io.env)
  if (!source || source.demo) {
    throw new Failure('conflict', `there is no ${CONFIG_FILE} yet: \`${commandLine('init')}\` writes one`)
  }
  const config = await readConfig(source.file, io.env)
  const width = proseWidth(io)
  const terminal = io.isTerminal && !options.json ? openTerminal(io) : undefined
  try {
    const { settings, credentials, found, before, remaining } = kind.shop
      ? await meetShop(io, config, { ...kind, shop: kind.shop }, options, terminal)
      : await meetBackend(options, terminal, width)
    const usual = kind.shop ? 'My shop' : 'My store'
    const name = options.name ?? (await (terminal && askName(terminal, usual))) ?? usual
    const markup = options.markup ?? (await (terminal && askMarkup(terminal, MARKUP))) ?? MARKUP
    const added = await add(io, config, kind, options, { name, markup, settings, credentials })
    const option = configOption(options.config)
    const next: Pair[] = [
      [commandLine(`serve${option}`), 'starts the service; restart one that runs'],
      [commandLine(`stores test ${added.store}${option}`), 'then tries all of this through the service'],
    ]
    if (config.home === 'database') next.shift()
    const webhook = kind.shop && webhookOfShop(config, added.store)
    const document = { configFile: config.file, ...added, ...found, webhook, next: next.map(([command]) => command) }
    print(io, options.json, document, () => {
      const said = addedText(config, kind, added, remaining, width)
      return `${before}\n${said}${kind.shop ? '' : backendText(added)}\nNext:\n${nextText(next, width)}`
    })
  } finally {
    terminal?.close()
  }
}

/** A store that works, and how it is to sell. */
interface Met {
  /** Where it is, and what else is set, as in the configuration. */
  settings: { url?: string; callbackUrl?: string } & Record<string, string>
  credentials?: ShopCredentials
  /** What `--json` says of it. */
  found: object
  /** What a person has not seen yet. */
  before: string
  remaining?: ShopQuestions['remaining']
}

async function meetShop(
  io: Io,
  config: Config,
  kind: StoreKind & { shop: ShopAccess },
  options: AddOptions,
  terminal: Terminal | undefined,
): Promise<Met> {
  const questions = await kind.shop.questions()
  const given = givenAnswers(kind, questions, options, io.env, terminal !== undefined)
  const tried = async (answers: ShopAnswers): Promise<MetShop> => ({
    ...answers,
    ...(await tryShop(questions, answers, io.now, (shop) => matchesOf(config, shop))),
  })
  const shop = await (terminal ? askShop(io, questions, terminal, given, tried) : tried(given as ShopAnswers))
  const { more: matches, findings, url, currency, cannotPublish, credentials } = shop
  if (!matches) throw failedIn(findings)
  if (options.create === 'publish' && cannotPublish !== null) {
    throw nothingWritten('unavailable', `${cannotPublish}, which --create publish needs.`)
  }
  assertRates(config, currency)
  const said = `\n${matchesText(matches, io)}`
  terminal?.write(said)
  const create = options.create ?? (await (terminal && askCreation(terminal, matches, cannotPublish))) ?? 'nothing'
  return {
    settings: { url, ...(currency && { currency }), ...(create !== 'nothing' && { create }), ...given.settings },
    credentials,
    found: { url, currency: currency ?? config.dialectFacts.money.currency, findings, matches },
    before: terminal ? '' : findingsText(findings, proseWidth(io)) + said,
    remaining: questions.remaining,
  }
}

async function meetBackend(options: AddOptions, terminal: Terminal | undefined, width: number): Promise<Met> {
  const fault = faultOf(backend.settings.shape.callbackUrl)
  const given = options.callbackUrl ?? (terminal ? undefined : '')
  const message = given === undefined ? undefined : fault(given)
  assertAnswers([...(message ? [{ field: '--callback-url', message }] : []), ...sellingFaults(options)])
  const about = 'Where your backend gets keys and failures. It may be started later: callbacks wait in the queue.'
  const callbackUrl = given ?? (await terminal?.put({ about, ask: 'Callback URL', before: '', fault })) ?? ''
  const warnings = clearTextWarnings({ stores: [{ id: 'the backend', address: callbackUrl }] })
  return { settings: { callbackUrl }, found: { callbackUrl, warnings }, before: warningText(warnings, width) }
}

const failedIn = (findings: readonly StoreFinding[]): Failure => {
  const failed = findings.filter(({ state }) => state === 'failed')
  return nothingWritten('unavailable', failed.map(sentenceOf).join(' '))
}

const nothingWritten = (code: 'unavailable' | 'invalid' | 'conflict', why: string): Failure =>
  new Failure(code, `nothing was written: ${why}`)

const sentenceOf = ({ check, detail, fix }: StoreFinding): string =>
  `${check}: ${detail}${fix === null ? '.' : `. ${fix}`}`

/* What is known of the shop before it is tried. */

type Given = Partial<ShopAnswers> & Pick<ShopAnswers, 'settings'>

/** Reads the answers that options give. @throws Failure `invalid` that names every option that is missing or wrong */
function givenAnswers(
  { settings: ofStore, shop }: StoreKind & { shop: ShopAccess },
  questions: ShopQuestions,
  options: AddOptions,
  env: Io['env'],
  asks: boolean,
) {
  const faults: FieldFault[] = []
  const fault = (field: string, message: string | undefined) => message && faults.push({ field, message })
  const settings: Given['settings'] = {}
  const shapes: Record<string, z.ZodType> = ofStore.shape
  for (const [name, [flags]] of Object.entries(shop.help.options)) {
    const text = options[name]
    if (typeof text !== 'string') continue
    fault(flags.replace(/ .*/, ''), shapes[name] && faultOf(shapes[name])(text))
    settings[name] = text
  }
  const address = options.url === undefined ? undefined : questions.readAddress(options.url)
  if (address && 'fault' in address) fault('--url', address.fault)
  else if (!address && !asks) fault('--url', 'the address of the shop')
  faults.push(...sellingFaults(options))
  const text = options.keyFile === undefined ? env[KEY_VARIABLE] : readText(options.keyFile)
  const credentials = text ? questions.readCredentials(text.trim()) : undefined
  if (text && !credentials) {
    const field = options.keyFile === undefined ? KEY_VARIABLE : '--key-file'
    fault(field, credentialsFault({ ...shop, ...questions }, text.trim()))
  } else if (!credentials && !asks) {
    fault('--key-file', `a file that holds ${shop.credentials}, joined by a colon, or set ${KEY_VARIABLE}`)
  }
  assertAnswers(faults)
  return { ...(address && 'url' in address ? { url: address.url } : {}), ...(credentials && { credentials }), settings }
}

function sellingFaults({ name, markup }: AddOptions): FieldFault[] {
  const given = { '--name': name && faultOf(everyStore.name)(name), '--markup': markup && faultOf(percent)(markup) }
  return Object.entries(given).flatMap(([field, message]) => (message ? [{ field, message }] : []))
}

function assertAnswers(fields: FieldFault[]): void {
  if (fields.length === 0) return
  throw new Failure('invalid', 'nothing was written: some answers are missing or wrong', { fields })
}

type MetShop = ShopAnswers & ShopStanding & { more?: SkuMatches | undefined }

/* Questions. */

/** Asks for address and credentials, and tries them at once. An answer that does not work is asked for again. */
async function askShop(
  io: Io,
  questions: ShopQuestions,
  terminal: Terminal,
  given: Given,
  tried: (answers: ShopAnswers) => Promise<MetShop>,
): Promise<MetShop> {
  const askHidden: AskHidden = ({ about, what, fault }) =>
    terminal.put({ about, ask: `${what} (not shown while you type)`, before: '', fault }, { hidden: true })
  terminal.write('Each question says what its answer means. Enter takes what is in [brackets].\n')
  let url = given.url ?? (await askAddress(terminal, questions, ''))
  let credentials = given.credentials
  for (;;) {
    terminal.write(warningText(clearTextWarnings({ stores: [{ id: 'the shop', address: url }] }), proseWidth(io)))
    credentials ??= await questions.askCredentials(askHidden)
    const met = await tried({ ...given, url, credentials })
    terminal.write(`\n${findingsText(met.findings, proseWidth(io))}`)
    const failed = met.findings.find(({ state }) => state === 'failed')
    if (!failed) return met
    const correct = await askCorrection(terminal, questions.correctionOf(failed))
    if (correct === 'stop') throw nothingWritten('unavailable', sentenceOf(failed))
    if (correct === 'address') url = await askAddress(terminal, questions, url)
    if (correct === 'key') credentials = undefined
  }
}

async function askAddress(terminal: Terminal, questions: ShopQuestions, before: string): Promise<string> {
  const typed = await terminal.put({
    about: questions.aboutAddress,
    ask: 'Address of the shop',
    before,
    fault: (text) => {
      const read = questions.readAddress(text)
      return 'fault' in read ? read.fault : undefined
    },
  })
  const read = questions.readAddress(typed)
  return 'url' in read ? read.url : typed
}

const corrections: ShopCorrection[] = ['key', 'address', 'again', 'stop']

const askCorrection = (terminal: Terminal, likely: ShopCorrection): Promise<ShopCorrection> =>
  terminal.choose(corrections, {
    about: 'IT DOES NOT WORK YET. Correct what the shop did not take, or try it again once it is corrected there.',
    ask: 'Correct (key, address, again or stop)',
    before: likely,
  })

function askCreation(terminal: Terminal, { lacking }: SkuMatches, cannotPublish: string | null) {
  const lacks = lacking === null ? '' : ` It lacks ${counted(lacking, 'offer')} now.`
  const question = {
    about: `What becomes of an offer that the shop lacks: nothing; a draft, which you publish yourself; or publish, a product on sale.${lacks}`,
    ask: 'Offers that it lacks (nothing, draft or publish)',
    before: 'nothing',
  }
  return terminal.choose(creations, question, (create) => (create === 'publish' ? cannotPublish : null))
}

/* The configuration. */

/**
 * Requires rates both ways for a shop with another currency than the supplier's: one for its prices, one for its orders.
 *
 * @throws Failure `invalid` that says which rates are missing
 */
function assertRates({ rates, dialectFacts, file, home }: Config, currency: string | null): void {
  const ours = dialectFacts.money.currency
  if (currency === null || currency === ours) return
  const pairs = [
    [ours, currency],
    [currency, ours],
  ] as const
  const missing = pairs.filter(([from, to]) => !rates.some((rate) => rate.from === from && rate.to === to))
  if (missing.length === 0) return
  const lines = missing.map(([from, to]) => JSON.stringify({ from, to, rate: '…' }))
  const why = `the shop sells in ${currency}, the supplier in ${ours}. Prices need a rate there, and orders one back.`
  throw nothingWritten(
    'invalid',
    `${why}\nAdd to \`rates\` in ${home === 'file' ? file : 'the settings'}, then run this again:\n${lines.join('\n')}`,
  )
}

/** A store that was added. The token and the secret of callbacks are those of a backend, and are shown this once. */
interface Added {
  store: string
  /** Null where they are sealed in the database, and for a backend. */
  credentialsFile: string | null
  token?: string | null
  callbackSecret?: string | null
}

type NewStore = Pick<Met, 'settings' | 'credentials'> & { name: string; markup: string }

/** Adds a store where the settings are: by the service, or in the file. A failure leaves nothing behind. */
async function add(io: Io, config: Config, kind: StoreKind, options: AddOptions, wanted: NewStore): Promise<Added> {
  const { name, markup, settings, credentials } = wanted
  const { key, secret, previousSecret } = credentials ?? {}
  const secrets = [secret, previousSecret].flatMap((one) => one?.reveal() ?? []).join(':')
  if (config.home === 'file') {
    const deliver = config.publicUrl === null ? 'keys' : kind.deliver
    const pricing = { markup: { percent: markup } }
    const store = { id: newStoreId(name, io.randomBytes), kind: kind.kind, name, ...settings, deliver, pricing }
    return write(io, config.file, store, key && `${key.reveal()}:${secrets}`).catch((error: unknown) => {
      throw saying('nothing was written', error)
    })
  }
  const { url, callbackUrl, currency: _, ...more } = settings
  // `--url` is the address of the shop.
  const client = createClient(connectionOf({ config: options.config }, io.env))
  const { store, findings, ...access } = await client.call('POST /stores', {
    body: {
      ...{ kind: kind.kind, name, markup, address: url ?? callbackUrl, settings: { ...more, selling: 'on' } },
      ...(key && { key: key.reveal(), secret: secrets }),
    },
    deadlineMs: TEST_DEADLINE_MS,
  })
  if (store === null) throw failedIn(findings)
  return { store, credentialsFile: null, ...(!kind.shop && access) }
}

/** Checks the configuration with the new store in it. Then writes the credentials and the configuration, and makes a token. */
async function write(io: Io, file: string, store: { id: string; name: string }, credentials: string | undefined) {
  const { id, name } = store
  const json = storesOf(file)
  const settings = { ...json, stores: [...json.stores, store] }
  const config = checkedConfig(file, settings, io.env, credentials ? { stores: { [id]: new Secret(credentials) } } : {})
  const credentialsFile = credentials ? path.join(secretsOf(file), credentialsSource(id).file) : null
  const undo = writeSetUp(secretsOf(file), [
    ...(credentialsFile ? [{ file: credentialsFile, text: `${credentials}\n`, mode: 0o600 }] : []),
    { file, text: `${JSON.stringify(settings, undefined, 2)}\n`, mode: statSync(file).mode & 0o777 },
  ])
  if (credentialsFile) return { store: id, credentialsFile }
  let open: SetUp | undefined
  try {
    open = await setUpOf(config, [id])
    const [token, secret] = [await open.createStoreToken(id, `${name} (first)`), await open.callbackSecret(id)]
    await open.close()
    return { store: id, credentialsFile, token: token.reveal(), callbackSecret: secret.reveal() }
  } catch (error) {
    await open?.discard()
    undo()
    throw error
  }
}

/** Reads a configuration whose stores are lines of it. */
export const storesOf = (file: string) =>
  z.looseObject({ stores: z.array(z.looseObject({ id: z.string() })) }).parse(readJson(file))

/* What is said at the end. */

function addedText(
  config: Config,
  kind: StoreKind,
  { store, credentialsFile }: Added,
  remaining: ShopQuestions['remaining'] = null,
  width: number,
): string {
  const { file, publicUrl } = config
  const { deliver: wanted } = kind
  const deliver = publicUrl === null ? 'keys' : wanted
  const isFile = config.home === 'file'
  const credentials = credentialsFile === null ? '' : `, its credentials into ${credentialsFile} (mode 0600)`
  const from = isFile ? 'The service reads this at its start. From then on it' : 'From now on the service'
  const paragraphs = [
    isFile ? `Written: the store ${store} into ${file}${credentials}.` : `Added: the store ${store}, in the database.`,
    ...(kind.shop
      ? [
          `${from} sets price and stock of every product that matches, and buys what is paid for from then on.`,
          publicUrl === null
            ? 'There is no publicUrl: the service asks the shop for its orders every minute, and that alone works.'
            : `The service makes the webhook by which the shop sends its orders to ${webhookOfShop(config, store)}, and it asks for them every minute as well.`,
        ]
      : [`${from} takes its orders, and calls it back.`]),
    ...(deliver === wanted
      ? []
      : [
          `There is no publicUrl, so the shop brings keys to its customers in plain text. Once there is one, set \`"deliver": "${wanted}"\` in this store: customers then get a link to a page of their keys.`,
        ]),
    ...(remaining ? [remaining(deliver)] : []),
  ]
  return paragraphs.map((one) => sentence(one, width)).join('\n')
}

/** How many SKUs match. A number is null when it is not known yet. */
interface SkuMatches {
  /** How many variants of the shop were read; there are more where `isWhole` is false. */
  products: number | null
  isWhole: boolean
  matched: number | null
  lacking: number | null
  unmatched: { variant: string; sku: string | null; name: string; why: string }[]
  /** Why the matches are not known; null when they are known. */
  why: string | null
}

/** Matches the products of a shop with the offers of the catalogue. A shop can be added whatever the result is. */
async function matchesOf(config: Config, look: Pick<NewShop, 'variants'>): Promise<SkuMatches> {
  const unknown = (why: string): SkuMatches => {
    return { products: null, isWhole: false, matched: null, lacking: null, unmatched: [], why }
  }
  try {
    if (!(await offersOfSkus(config, []))) {
      const test = commandLine('stores test')
      return unknown(`The catalogue was not read yet: which SKUs match is shown after the first sync, by \`${test}\`.`)
    }
    const variants = await look.variants()
    if (variants.outcome !== 'read') return unknown(`The products of the shop were not read: ${variants.detail}.`)
    const { items, isWhole } = variants
    const skus = [...new Set(items.flatMap(({ sku }) => (sku === null ? [] : spellings(sku))))]
    const offers = await offersOfSkus(config, skus)
    if (!offers) return unknown('The catalogue cannot be read now.')
    const bySku = Map.groupBy(items, ({ sku }) => sku)
    const unmatched = items.flatMap((item) => {
      const why = whyUnmatched(item, bySku, offers.bySku)
      return why === undefined ? [] : [{ variant: item.id, sku: item.sku, name: item.name, why }]
    })
    const sold = [...bySku.keys()].filter((sku) => sku !== null && offers.bySku.has(sku)).length
    const lacking = isWhole ? offers.total - sold : null
    return { products: items.length, isWhole, matched: items.length - unmatched.length, lacking, unmatched, why: null }
  } catch (error) {
    return unknown(`Which SKUs match is not known: ${messageOf(error)}.`)
  }
}

/** Returns a SKU as it is written, and in the spellings that it most often has elsewhere. */
const spellings = (sku: string): string[] => [sku, sku.trim(), sku.trim().toUpperCase(), sku.trim().toLowerCase()]

/** Says why a variant does not match. @returns undefined where exactly one offer and one product of the shop have its SKU */
function whyUnmatched(
  { sku }: StoreVariant,
  bySku: ReadonlyMap<string | null, StoreVariant[]>,
  offers: ReadonlyMap<string, number>,
): string | undefined {
  if (sku === null) return 'it has no SKU'
  const count = offers.get(sku) ?? 0
  if (count > 1) return `${count} offers have this SKU: link one`
  if (count === 0) {
    const meant = spellings(sku).find((one) => offers.has(one))
    return meant === undefined ? 'no offer has this SKU' : `the supplier writes it ${meant}`
  }
  return (bySku.get(sku)?.length ?? 0) > 1 ? 'other products of the shop have this SKU too' : undefined
}

/** How many unmatched products are shown at most. `--json` has all of them. */
const UNMATCHED_SHOWN = 10

function matchesText(matches: SkuMatches, io: Io): string {
  const { products, isWhole, matched, unmatched, why } = matches
  const width = proseWidth(io)
  if (why !== null) return sentence(why, width)
  const of = `${isWhole ? '' : 'the first '}${counted(products ?? 0, 'product')}`
  const lead = `SKUs: ${counted(matched ?? 0, 'product')} of ${of} in the shop ${matched === 1 ? 'matches' : 'match'} an offer.`
  if (unmatched.length === 0) return sentence(lead, width)
  const more = unmatched.length - UNMATCHED_SHOWN
  return [
    sentence(`${lead} Quayside leaves the others alone:`, width),
    table(unmatched.slice(0, UNMATCHED_SHOWN), { SKU: 'sku', NAME: 'name', WHY: 'why' }, width, io.now()),
    ...(more > 0 ? [`and ${counted(more, 'other', 'others')}; --json has them all\n`] : []),
  ].join('')
}
