import { statSync } from 'node:fs'
import path from 'node:path'
import { z } from 'zod'
import {
  type Config,
  checkedConfig,
  credentialsFault,
  credentialsSource,
  loadConfig,
  loadProcess,
  readJson,
  readText,
} from '../config/config.ts'
import { clearTextWarnings } from '../config/warnings.ts'
import { counted } from '../domain/figures.ts'
import type { KeyWay } from '../domain/store-update.ts'
import { sentence } from '../domain/text-layout.ts'
import { conflict, Failure, type FieldFault, messageOf } from '../errors.ts'
import { offersOfSkus, webhookOfShop } from '../installation.ts'
import { Secret } from '../secret.ts'
import { newStoreId, secretsOf, writeSetUp } from '../settings/set-up-files.ts'
import { tryShop } from '../settings/trial.ts'
import type { StoreFinding, StoreVariant } from '../stores/store.ts'
import type {
  AskHidden,
  NewShop,
  ShopAnswers,
  ShopCorrection,
  ShopCredentials,
  ShopKind,
  ShopQuestions,
  ShopStanding,
} from '../stores/store-kind.ts'
import { everyStore, percent } from '../stores/store-settings.ts'
import { CONFIG_FILE, configFileOf } from './client.ts'
import { type FileFlags, type Io, print, proseWidth } from './command.ts'
import { saying } from './exit-codes.ts'
import { nextText, type Pair } from './facts.ts'
import { askMarkup, askName, faultOf, MARKUP, warningText } from './init-questions.ts'
import { creations, findingsText, type SellingFlags } from './stores.ts'
import { table } from './tables.ts'
import { openTerminal, type Terminal } from './terminal.ts'
import { commandLine, configOption } from './words.ts'

/** The options of `stores add`; the settings of the kind of shop are among them. */
export type AddOptions = SellingFlags & FileFlags & { url?: string; keyFile?: string; [setting: string]: unknown }

/** The variable that may hold the credentials of the shop, for scripts. */
const KEY_VARIABLE = 'QUAYSIDE_SHOP_KEY'
const NAME = 'My shop'

/** Tries a shop, then writes it into the configuration. A failure leaves nothing behind. */
export async function runAddShop(io: Io, kind: ShopKind, options: AddOptions): Promise<undefined> {
  const source = configFileOf(options.config, io.env)
  if (!source || source.demo) {
    throw new Failure('conflict', `there is no ${CONFIG_FILE} yet: \`${commandLine('init')}\` writes one`)
  }
  const { file } = source
  if (loadProcess(file, io.env).home === 'database') throw conflict('settings_in_database', IN_DATABASE)
  const config = loadConfig(file, io.env)
  const asks = io.isTerminal && !options.json
  const questions = await kind.shop.questions()
  const given = givenAnswers(kind, questions, options, io.env, asks)
  const terminal = asks ? openTerminal(io) : undefined
  try {
    const tried = (answers: ShopAnswers) => meet(io, config, questions, answers)
    const shop = await (terminal ? askShop(io, questions, terminal, given, tried) : tried(given as ShopAnswers))
    const { more: matches } = shop
    if (!matches) {
      const failed = shop.findings.filter(({ state }) => state === 'failed')
      throw nothingWritten('unavailable', failed.map(sentenceOf).join(' '))
    }
    if (options.create === 'publish' && shop.cannotPublish !== null) {
      throw nothingWritten('unavailable', `${shop.cannotPublish}, which --create publish needs.`)
    }
    assertRates(config, shop.currency, file)
    terminal?.write(`\n${matchesText(matches, io)}`)
    const called = options.name ?? (await (terminal && askName(terminal, NAME))) ?? NAME
    const create =
      options.create ?? (await (terminal && askCreation(terminal, matches, shop.cannotPublish))) ?? 'nothing'
    const markup = options.markup ?? (await (terminal && askMarkup(terminal, MARKUP))) ?? MARKUP
    const store = {
      id: newStoreId(called, io.randomBytes),
      kind: kind.kind,
      name: called,
      url: shop.url,
      ...(shop.currency !== null && { currency: shop.currency }),
      ...(create !== 'nothing' && { create }),
      ...given.settings,
      deliver: config.publicUrl === null ? 'keys' : kind.deliver,
      pricing: { markup: { percent: markup } },
    }
    const added = write(io, file, store, shop.credentials)
    const option = configOption(options.config)
    const next: Pair[] = [
      [commandLine(`serve${option}`), 'starts the service; restart one that runs'],
      [commandLine(`stores test ${added.id}${option}`), 'then tries all of this through the service'],
    ]
    const document = {
      configFile: file,
      store: added.id,
      url: shop.url,
      currency: added.config.stores.at(-1)?.currency ?? null,
      credentialsFile: added.credentialsFile,
      findings: shop.findings,
      matches,
      webhook: webhookOfShop(added.config, added.id),
      next: next.map(([command]) => command),
    }
    // A person who answered questions has seen the findings and the matches already.
    const before = asks ? '' : `${findingsText(shop.findings, proseWidth(io))}\n${matchesText(matches, io)}`
    print(io, options.json, document, () => {
      return `${before}\n${resultText(added, kind.deliver, questions.remaining, next, proseWidth(io))}`
    })
  } finally {
    terminal?.close()
  }
}

const IN_DATABASE =
  'the settings of this installation are in its database: add the store on the page /setup of the console, or by `quayside settings apply`'

const nothingWritten = (code: 'unavailable' | 'invalid' | 'conflict', why: string): Failure =>
  new Failure(code, `nothing was written: ${why}`)

const sentenceOf = ({ check, detail, fix }: StoreFinding): string =>
  `${check}: ${detail}${fix === null ? '.' : `. ${fix}`}`

/* What is known of the shop before it is tried. */

type Given = Partial<ShopAnswers> & Pick<ShopAnswers, 'settings'>

/** Reads the answers that options give. @throws Failure `invalid` that names every option that is missing or wrong */
function givenAnswers(kind: ShopKind, questions: ShopQuestions, options: AddOptions, env: Io['env'], asks: boolean) {
  const { settings: ofStore, shop } = kind
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
  if (options.name !== undefined) fault('--name', faultOf(everyStore.name)(options.name))
  if (options.markup !== undefined) fault('--markup', faultOf(percent)(options.markup))
  const text = options.keyFile === undefined ? env[KEY_VARIABLE] : readText(options.keyFile)
  const credentials = text ? questions.readCredentials(text.trim()) : undefined
  if (text && !credentials) {
    const field = options.keyFile === undefined ? KEY_VARIABLE : '--key-file'
    fault(field, credentialsFault({ ...shop, ...questions }, text.trim()))
  } else if (!credentials && !asks) {
    fault('--key-file', `a file that holds ${shop.credentials}, joined by a colon, or set ${KEY_VARIABLE}`)
  }
  if (faults.length > 0) {
    throw new Failure('invalid', 'nothing was written: some answers are missing or wrong', { fields: faults })
  }
  return { ...(address && 'url' in address ? { url: address.url } : {}), ...(credentials && { credentials }), settings }
}

type MetShop = ShopAnswers & ShopStanding & { more?: SkuMatches | undefined }

/** Tries a shop, and matches its products where it works. */
const meet = async (io: Io, config: Config, questions: ShopQuestions, answers: ShopAnswers): Promise<MetShop> => ({
  ...answers,
  ...(await tryShop(questions, answers, io.now, (shop) => matchesOf(config, shop))),
})

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

/** Checks the configuration with the new shop in it. Then writes the credentials, and last the configuration. */
function write(io: Io, file: string, store: { id: string }, { key, secret, previousSecret }: ShopCredentials) {
  const json = z.looseObject({ stores: z.array(z.unknown()) }).parse(readJson(file))
  const settings = { ...json, stores: [...json.stores, store] }
  const text = [key, secret, previousSecret].flatMap((one) => one?.reveal() ?? []).join(':')
  try {
    const config = checkedConfig(file, settings, io.env, { stores: { [store.id]: new Secret(text) } })
    const credentialsFile = path.join(secretsOf(file), credentialsSource(store.id).file)
    writeSetUp(secretsOf(file), [
      { file: credentialsFile, text: `${text}\n`, mode: 0o600 },
      { file, text: `${JSON.stringify(settings, undefined, 2)}\n`, mode: statSync(file).mode & 0o777 },
    ])
    return { id: store.id, config, credentialsFile }
  } catch (error) {
    throw saying('nothing was written', error)
  }
}

/* What is said at the end. */

function resultText(
  { config, credentialsFile, id }: ReturnType<typeof write>,
  wanted: KeyWay,
  remaining: ShopQuestions['remaining'],
  next: Pair[],
  width: number,
): string {
  const url = webhookOfShop(config, id)
  const deliver = config.stores.at(-1)?.deliver ?? 'keys'
  const orders =
    url === null
      ? 'There is no publicUrl: the service asks the shop for its orders every minute, and that alone works.'
      : `At its start the service makes the webhook by which the shop sends its orders to ${url}, and it asks for them every minute as well.`
  const paragraphs = [
    `Written: the store ${id} into ${config.file}, its credentials into ${credentialsFile} (mode 0600).`,
    'The service reads this at its start. From then on it sets price and stock of every product that matches, and buys what is paid for from then on.',
    orders,
    ...(deliver === wanted
      ? []
      : [
          `There is no publicUrl, so the shop brings keys to its customers in plain text. Once there is one, set \`"deliver": "${wanted}"\` in this store: customers then get a link to a page of their keys.`,
        ]),
    ...(remaining === null ? [] : [remaining(deliver)]),
  ]
  const text = paragraphs.map((one) => sentence(one, width)).join('\n')
  return `${text}\nNext:\n${nextText(next, width)}`
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
