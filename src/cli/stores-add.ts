import { randomBytes } from 'node:crypto'
import { statSync } from 'node:fs'
import path from 'node:path'
import {
  type Config,
  checkedConfig,
  credentialsSource,
  loadConfig,
  readJson,
  readText,
  type ShopCredentials,
  shopCredentials,
} from '../config/config.ts'
import { percent, wooCommerceShape } from '../config/store-settings.ts'
import { wrap } from '../domain/text-layout.ts'
import { Failure, type FieldFault, messageOf } from '../errors.ts'
import { createIds } from '../ids.ts'
import { offersOfSkus } from '../installation.ts'
import { Secret } from '../secret.ts'
import type { StoreFinding, StoreVariant } from '../stores/store.ts'
import { lookAtShop, type NewShop } from '../stores/woocommerce/first-look.ts'
import { CONFIG_FILE, configFileOf } from './client.ts'
import { type Io, print, proseWidth } from './command.ts'
import { clearTextWarnings } from './doctor.ts'
import { warningText } from './init.ts'
import { askMarkup, askName, faultOf, MARKUP, openTerminal, type Terminal } from './init-questions.ts'
import { asRow, commandLine, counted, exitCodes, quoted, table } from './output.ts'
import { newStoreId, secretsOf, writeSetUp } from './set-up-files.ts'
import { creations, findingsText } from './stores.ts'

export interface AddOptions {
  url?: string
  keyFile?: string
  name?: string
  create?: (typeof creations)[number]
  markup?: string
  config?: string
  json?: true
}

/** What a person was asked, or said by options. */
interface ShopAnswers {
  url: string
  credentials: ShopCredentials
}

/** Holds the key and the secret, for scripts. */
const KEY_VARIABLE = 'QUAYSIDE_SHOP_KEY'
const NAME = 'My shop'

/** Tries a shop, then writes it into the configuration. A failure leaves nothing behind. @returns the exit code */
export async function runAddWooCommerce(io: Io, options: AddOptions): Promise<number> {
  const source = configFileOf(options.config, io.env)
  if (!source || source.demo) {
    throw new Failure('conflict', `there is no ${CONFIG_FILE} yet: \`${commandLine('init')}\` writes one`)
  }
  const { file } = source
  const config = loadConfig(file, io.env)
  const asks = io.isTerminal && !options.json
  const given = givenAnswers(options, io.env, asks)
  const terminal = asks ? openTerminal(io) : undefined
  let shop: MetShop | undefined
  try {
    shop = terminal ? await askShop(io, terminal, given) : await meet(io, given as ShopAnswers)
    const failed = shop.findings.filter(({ state }) => state === 'failed')
    if (failed.length > 0) throw nothingWritten('unavailable', failed.map(sentenceOf).join(' '))
    assertRates(config, shop.currency, file)
    const matches = await matchesOf(config, shop)
    terminal?.write(`\n${matchesText(matches, io, proseWidth(io))}`)
    const name = options.name ?? (await (terminal && askName(terminal, NAME))) ?? NAME
    const create = options.create ?? (await (terminal && askCreation(terminal, matches))) ?? 'nothing'
    const markup = options.markup ?? (await (terminal && askMarkup(terminal, MARKUP))) ?? MARKUP
    const added = write({ io, file, shop, name, create, markup })
    const document = {
      configFile: file,
      store: added.id,
      url: shop.url,
      currency: added.config.stores.at(-1)?.currency ?? null,
      credentialsFile: added.credentialsFile,
      findings: shop.findings,
      matches,
      webhook: webhookOf(added),
      next: nextOf(added.id, options.config).map(([command]) => command),
    }
    print(io, options.json === true, document, () =>
      resultText({
        added,
        option: options.config,
        // A person who was asked has seen what the shop answered.
        before: asks
          ? ''
          : `${findingsText(document.findings, proseWidth(io))}\n${matchesText(matches, io, proseWidth(io))}`,
        width: proseWidth(io),
      }),
    )
    return exitCodes.ok
  } finally {
    terminal?.close()
    await shop?.look.close()
  }
}

const nothingWritten = (code: 'unavailable' | 'invalid' | 'conflict', why: string): Failure =>
  new Failure(code, `nothing was written: ${why}`)

const sentenceOf = ({ check, detail, fix }: StoreFinding): string =>
  `${check}: ${detail}${fix === null ? '.' : `. ${fix}`}`

/* What is known of the shop before it is tried. */

/** @throws Failure `invalid` that names every option that is missing or wrong */
function givenAnswers(options: AddOptions, env: Io['env'], asks: boolean): Partial<ShopAnswers> {
  const faults: FieldFault[] = []
  const fault = (field: string, message: string | undefined) => message && faults.push({ field, message })
  if (options.url !== undefined) fault('--url', addressFault(options.url))
  else if (!asks) fault('--url', 'the address of the shop')
  if (options.name !== undefined) fault('--name', faultOf(wooCommerceShape.shape.name)(options.name))
  if (options.markup !== undefined) fault('--markup', faultOf(percent)(options.markup))
  const text = options.keyFile === undefined ? env[KEY_VARIABLE] : readText(options.keyFile)
  const credentials = text ? shopCredentials(text.trim()) : undefined
  if (text && !credentials) {
    fault(options.keyFile === undefined ? KEY_VARIABLE : '--key-file', 'must be key and secret, joined by a colon')
  } else if (!credentials && !asks) {
    fault('--key-file', `a file that holds key and secret, joined by a colon, or set ${KEY_VARIABLE}`)
  }
  if (faults.length > 0) {
    throw new Failure('invalid', 'nothing was written: some answers are missing or wrong', { fields: faults })
  }
  return {
    ...(options.url === undefined ? {} : { url: options.url }),
    ...(credentials && { credentials }),
  }
}

/** A query or a password is no part of a shop's address. */
function addressFault(text: string): string | undefined {
  const wrong = faultOf(wooCommerceShape.shape.url)(text)
  if (wrong !== undefined) return wrong
  const { search, hash, username, pathname } = new URL(text)
  if (search || hash || username) return 'the address alone, such as https://shop.example'
  if (/\/(wp-admin|wp-json)\b/.test(pathname))
    return 'the address that your customers open, such as https://shop.example'
  return undefined
}

/** A shop that was tried. */
interface MetShop extends ShopAnswers {
  look: NewShop
  findings: StoreFinding[]
  currency: string | null
}

async function meet(io: Io, answers: ShopAnswers): Promise<MetShop> {
  const { url, credentials } = answers
  const look = lookAtShop({
    url,
    consumerKey: credentials.key,
    consumerSecret: credentials.secret,
    now: io.now,
    newId: createIds(io.now, randomBytes),
  })
  try {
    return { ...answers, look, ...(await look.test()) }
  } catch (error) {
    await look.close()
    throw error
  }
}

/* Questions. */

/** Asks for address and key, and tries them at once: what does not work is asked for again. */
async function askShop(io: Io, terminal: Terminal, given: Partial<ShopAnswers>): Promise<MetShop> {
  terminal.write('Each question says what its answer means. Enter takes what is in [brackets].\n')
  let url = given.url ?? (await askAddress(terminal, ''))
  let credentials = given.credentials
  for (;;) {
    terminal.write(warningText(clearTextWarnings({ stores: [{ id: 'the shop', address: url }] }), proseWidth(io)))
    credentials ??= await askCredentials(terminal)
    const met = await meet(io, { url, credentials })
    terminal.write(`\n${findingsText(met.findings, proseWidth(io))}`)
    const failed = met.findings.find(({ state }) => state === 'failed')
    if (!failed) return met
    await met.look.close()
    const correct = await askCorrection(terminal, failed)
    if (correct === 'stop') throw nothingWritten('unavailable', sentenceOf(failed))
    if (correct === 'address') url = await askAddress(terminal, url)
    if (correct === 'key') credentials = undefined
  }
}

const askAddress = (terminal: Terminal, before: string): Promise<string> =>
  terminal.put({
    about: 'The address of your shop, as your customers open it. WooCommerce answers below it, at /wp-json/wc/v3.',
    ask: 'Address of the shop',
    before,
    fault: addressFault,
  })

async function askCredentials(terminal: Terminal): Promise<ShopCredentials> {
  const ask = (about: string, what: string, begins: string, other: string) =>
    terminal.put(
      {
        about,
        ask: `${what} (not shown while you type)`,
        before: '',
        fault: (text) => {
          if (text.startsWith(other)) return `this is the other one: it begins with ${begins}`
          return shopCredentials(`${text}:${text}`) ? undefined : `it begins with ${begins}, without spaces`
        },
      },
      { hidden: true },
    )
  const about =
    'In WooCommerce: Settings, Advanced, REST API, Add key, for a user who manages the shop, with the permission Read/Write. Key and secret are kept in a file that only you can read.'
  const key = await ask(about, 'Consumer key', 'ck_', 'cs_')
  const secret = await ask('WooCommerce shows it once, below the key.', 'Consumer secret', 'cs_', 'ck_')
  return { key: new Secret(key), secret: new Secret(secret) }
}

const corrections = ['key', 'address', 'again', 'stop'] as const

async function askCorrection(terminal: Terminal, failed: StoreFinding): Promise<(typeof corrections)[number]> {
  const isOfKey = failed.check === 'permissions' || /key|secret/.test(failed.detail)
  const typed = await terminal.put({
    about: 'IT DOES NOT WORK YET. Correct what the shop did not take, or try it again once it is corrected there.',
    ask: 'Correct (key, address, again or stop)',
    before: isOfKey ? 'key' : 'address',
    fault: (text) => (corrections.some((one) => one === text.toLowerCase()) ? undefined : corrections.join(', ')),
  })
  return corrections.find((one) => one === typed.toLowerCase()) ?? 'stop'
}

async function askCreation(terminal: Terminal, matches: SkuMatches): Promise<(typeof creations)[number]> {
  const lacking = matches.lacking === null ? '' : ` It lacks ${counted(matches.lacking, 'offer', 'offers')} now.`
  const typed = await terminal.put({
    about: `What becomes of an offer that the shop lacks: nothing; a draft, which you publish yourself; or publish, a product on sale.${lacking}`,
    ask: 'Offers that it lacks (nothing, draft or publish)',
    before: 'nothing',
    fault: (text) => (creations.some((one) => one === text.toLowerCase()) ? undefined : creations.join(', ')),
  })
  return creations.find((one) => one === typed.toLowerCase()) ?? 'nothing'
}

/* What the shop sells, beside what the supplier has. */

/** Null: not known yet. */
interface SkuMatches {
  /** Variants of the shop; not all of them where `isWhole` is false. */
  products: number | null
  isWhole: boolean
  matched: number | null
  /** Offers that the shop has no product for. */
  lacking: number | null
  unmatched: { variant: string; sku: string | null; name: string; why: string }[]
  /** Why nothing is known. */
  why: string | null
}

/** How the products of a shop and the offers of the catalogue meet; nothing of it keeps the shop from being added. */
async function matchesOf(config: Config, { look }: MetShop): Promise<SkuMatches> {
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

/** As it is written, and how it is most often written instead. */
const spellings = (sku: string): string[] => [sku, sku.trim(), sku.trim().toUpperCase(), sku.trim().toLowerCase()]

/** @returns undefined where exactly one offer has the SKU, and no other product of the shop */
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

/** Most that are shown one by one; `--json` has all. */
const UNMATCHED_SHOWN = 10

function matchesText(matches: SkuMatches, io: Io, width: number): string {
  const { products, isWhole, matched, unmatched, why } = matches
  if (why !== null) return `${wrap(why, width).join('\n')}\n`
  const of = `${isWhole ? '' : 'the first '}${counted(products, 'product', 'products')}`
  const lead = `SKUs: ${counted(matched, 'product', 'products')} of ${of} in the shop ${matched === 1 ? 'matches' : 'match'} an offer.`
  if (unmatched.length === 0) return `${wrap(lead, width).join('\n')}\n`
  const more = unmatched.length - UNMATCHED_SHOWN
  return [
    ...wrap(`${lead} Quayside leaves the others alone:`, width).map((line) => `${line}\n`),
    table(unmatched.slice(0, UNMATCHED_SHOWN).map(asRow), { SKU: 'sku', NAME: 'name', WHY: 'why' }, width, io.now()),
    ...(more > 0 ? [`and ${counted(more, 'other', 'others')}; --json has them all\n`] : []),
  ].join('')
}

/* The configuration. */

/**
 * Its orders name prices in its currency, so that rates both ways are needed.
 *
 * @throws Failure `invalid` that says which are missing
 */
function assertRates({ rates, dialectFacts }: Config, currency: string | null, file: string): void {
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
  throw nothingWritten('invalid', `${why}\nAdd to \`rates\` in ${file}, then run this again:\n${lines.join('\n')}`)
}

interface Added {
  id: string
  config: Config
  credentialsFile: string
}

interface Addition {
  io: Io
  file: string
  shop: MetShop
  name: string
  create: (typeof creations)[number]
  markup: string
}

/** Checks the configuration with the shop in it, then writes the credentials, then the configuration. */
function write({ io, file, shop, name, create, markup }: Addition): Added {
  const json = asRow(readJson(file))
  const id = newStoreId(name, io.randomBytes)
  const { url, currency, credentials } = shop
  const store = {
    id,
    kind: 'woocommerce',
    name,
    url,
    ...(currency === null ? {} : { currency }),
    ...(create === 'nothing' ? {} : { create }),
    pricing: { markup: { percent: markup } },
  }
  const settings = { ...json, stores: [...(Array.isArray(json.stores) ? json.stores : []), store] }
  const text = `${credentials.key.reveal()}:${credentials.secret.reveal()}`
  try {
    const config = checkedConfig(file, settings, io.env, { stores: { [id]: new Secret(text) } })
    const credentialsFile = path.join(secretsOf(file), credentialsSource(id).file)
    writeSetUp(secretsOf(file), [
      { file: credentialsFile, text: `${text}\n`, mode: 0o600 },
      { file, text: `${JSON.stringify(settings, undefined, 2)}\n`, mode: statSync(file).mode & 0o777 },
    ])
    return { id, config, credentialsFile }
  } catch (error) {
    if (error instanceof Failure) {
      throw new Failure(error.code, `nothing was written: ${error.message}`, { cause: error, fields: error.fields })
    }
    throw nothingWritten('unavailable', messageOf(error))
  }
}

/* What is said at the end. */

/** Where the shop will send its orders; null without a public address. */
const webhookOf = ({ id, config }: Added): string | null =>
  config.publicUrl === null ? null : `${config.publicUrl.replace(/\/+$/, '')}/webhooks/stores/${id}`

/** The command, and what it does. */
function nextOf(id: string, config: string | undefined): [command: string, does: string][] {
  const option = config === undefined ? '' : ` --config ${quoted(config)}`
  return [
    [commandLine(`serve${option}`), 'starts the service; restart one that runs'],
    [commandLine(`stores test ${id}${option}`), 'then tries all of this through the service'],
  ]
}

interface ResultParts {
  added: Added
  option: string | undefined
  before: string
  width: number
}

function resultText({ added, option, before, width }: ResultParts): string {
  const { config, credentialsFile, id } = added
  const url = webhookOf(added)
  const orders =
    url === null
      ? 'There is no publicUrl: the service asks the shop for its orders every minute, and that alone works.'
      : `At its start the service makes the webhook by which the shop sends its orders to ${url}, and it asks for them every minute as well.`
  const paragraphs = [
    `Written: the store ${id} into ${config.file}, its key and secret into ${credentialsFile} (mode 0600).`,
    'The service reads this at its start. From then on it sets price and stock of every product that matches, and buys what is paid for from then on.',
    orders,
  ]
  const next = nextOf(id, option).map(([command, does]) => `  ${command}\n      ${does}\n`)
  const text = paragraphs.map((one) => `${wrap(one, width).join('\n')}\n`).join('\n')
  return `${before}\n${text}\nNext:\n${next.join('')}`
}
