import { existsSync } from 'node:fs'
import path from 'node:path'
import { checkedConfig, configShape, loadConfig, readJson } from '../config/config.ts'
import { clearTextWarnings } from '../config/warnings.ts'
import { pathsOf } from '../dialect/dialect.ts'
import type { SupplierOffer } from '../domain/supplier.ts'
import { sentence } from '../domain/text-layout.ts'
import { conflict, Failure, messageOf } from '../errors.ts'
import { checkSetUp, hasDatabase, type SetUp, setUpOf } from '../installation.ts'
import { Secret } from '../secret.ts'
import { newStoreId, type SetUpFile, secretsOf, writeSetUp } from '../settings/set-up-files.ts'
import { productView, type SupplierAccess, trySupplier } from '../settings/supplier-trial.ts'
import { placeName } from '../storage/database-place.ts'
import { backend } from '../stores/backend/kind.ts'
import { shopKinds } from '../stores/kinds.ts'
import { isLoopback } from '../stores/store-settings.ts'
import { CONFIG_FILE } from './client.ts'
import { type Io, print, proseWidth } from './command.ts'
import type { InitOptions } from './commands.ts'
import { saying } from './exit-codes.ts'
import { nextText, type Pair } from './facts.ts'
import { type Answers, accessOf, askAnswers, backendOf, flagAnswers, warningText } from './init-questions.ts'
import { productsText } from './supplier-sample.ts'
import { commandLine, configOption } from './words.ts'

export async function runInit(io: Io, flags: InitOptions): Promise<undefined> {
  const file = flags.config ?? (io.env.QUAYSIDE_CONFIG || CONFIG_FILE)
  const width = proseWidth(io)
  if (existsSync(file) && !flags.force) {
    const how = 'Edit it and restart the service, or use --force to answer again.'
    throw new Failure('conflict', `${file} exists and stays as it is.\n${how}`)
  }
  const existing = readExisting(file)
  if (existing.settings) await assertStopped(file, io.env)
  const asks = io.isTerminal && !flags.yes && !flags.json
  const asked = asks ? await askAnswers(io, flags, existing) : undefined
  const answers = asked?.answers ?? flagAnswers(flags, io.env, existing)
  const isOwn = existing.settings !== undefined || flags.force === true
  const plan = await checked(answers, existing, io, isOwn)
  const products = flags.offline
    ? undefined
    : (asked?.products ?? (await productsOf(accessOf(answers, existing, io.env))))
  const made = await setUp(plan, answers, flags.offline === true)
  const option = configOption(flags.config)
  const next = nextOf(plan, option)
  const document = {
    configFile: file,
    store: plan.storeId,
    dialect: plan.config.dialectFacts.name,
    ...made,
    products: products?.map(productView) ?? null,
    warnings: clearTextWarnings(plan.config),
    kept: plan.kept,
    next: next.map(([command]) => command),
  }
  print(io, flags.json, document, () => {
    // A person who answered questions has seen the products and the warnings about the supplier already.
    const hasSeen = asked?.products !== undefined
    const warnings = clearTextWarnings(hasSeen ? { stores: plan.config.stores } : plan.config)
    const shown = products && !hasSeen ? productsText(products, width) : ''
    const said = saidOf(plan, made, products !== undefined, flags).map((line) => sentence(line, width))
    const first = [said.join(''), warningText(warnings, width), shown].filter(Boolean).join('\n')
    const ofBackend = plan.storeId === null ? '' : backendText({ store: plan.storeId, ...made })
    return `${first}${ofBackend}\nNext:\n${nextText(next, width)}`
  })
}

/** Refuses to write while a service runs. Other faults of an earlier set-up are ignored: `--force` may be meant to fix them. */
async function assertStopped(file: string, env: Io['env']): Promise<void> {
  try {
    await checkSetUp(loadConfig(file, env))
  } catch (error) {
    if (error instanceof Failure && error.reason === 'database_in_use') throw error
  }
}

/** Checks everything before anything is written. @param isOwn whether an existing database belongs to this configuration */
async function checked(answers: Answers, existing: Existing, io: Io, isOwn: boolean): Promise<Plan> {
  try {
    const plan = planInstallation(answers, existing, io)
    await checkSetUp(plan.config)
    if (isOwn || !(await hasDatabase(plan.config))) return plan
    throw conflict('database_exists', `${placeName(plan.config)} is there already: --force goes on with it`)
  } catch (error) {
    const isShared = !isOwn && error instanceof Failure && OF_ANOTHER.includes(error.reason ?? '')
    const own = '.\nIs it the database of another configuration? Then a folder of its own is given by --data-dir.'
    throw saying('nothing was written', error, isShared ? own : '')
  }
}

/** Failures of the check that mean that another configuration uses the same data folder. */
const OF_ANOTHER = ['database_exists', 'database_in_use', 'wrong_key']

const STORES_TO_ADD = [...shopKinds, backend].map(({ kind, label, shop }): Pair => {
  return [`stores add ${kind}`, shop ? `connects your shop, where it is one of ${label}` : `connects ${label}`]
})

const LISTEN: Pair = ['listen', 'receives and prints callbacks, while there is no backend']

function nextOf({ config }: Plan, option: string): Pair[] {
  const next: Pair[] = [
    ...(config.stores.length > 0 ? [] : STORES_TO_ADD),
    ['doctor', 'checks all of this end to end'],
    ...(config.stores.some(({ address }) => isLoopback(new URL(address).hostname)) ? [LISTEN] : []),
    ['serve', 'runs it, until Ctrl-C'],
    ['sync --follow', 'beside it: reads the catalogue and shows how far it is'],
  ]
  return next.map(([command, does]) => [commandLine(command + option), does])
}

/** Writes the files of the plan, and creates the database and the first token. After a failure, none of these is left behind. */
async function setUp(plan: Plan, answers: Answers, offline: boolean) {
  const undo = writeSetUp(secretsOf(plan.file), plan.files)
  let open: SetUp | undefined
  try {
    open = await setUpOf(plan.config, plan.madeStores)
    const { storeId } = plan
    // The backend of a store needs a token and the secret of callbacks.
    const token = storeId === null ? null : await open.createStoreToken(storeId, `${answers.storeName} (first)`)
    const secret = storeId === null ? null : await open.callbackSecret(storeId)
    // The webhook is made last, because it cannot be undone.
    const webhook = answers.publicUrl === null || offline || isByHand(plan) ? null : await webhookOf(open, plan)
    await open.close()
    return { token: token?.reveal() ?? null, callbackSecret: secret?.reveal() ?? null, webhook }
  } catch (error) {
    await open?.discard()
    undo()
    throw saying('nothing was set up', error)
  }
}

/** Returns three products as the dialect reads them. @throws Failure `unavailable` that says why there are no products */
async function productsOf(access: SupplierAccess): Promise<SupplierOffer[]> {
  const result = await trySupplier(access)
  if ('products' in result) return result.products
  const offline = '--offline writes the set-up without asking the supplier.'
  throw new Failure('unavailable', `nothing was written: ${result.fault.message} ${offline}`)
}

/** Makes the webhook at the supplier. @throws Failure `unavailable` that says how to go on without a webhook */
async function webhookOf(open: SetUp, { config }: Plan) {
  try {
    return await open.createWebhook()
  } catch (error) {
    const advice =
      `If the supplier answers otherwise, webhookRequest in the dialect ${config.dialectFacts.name} is not what it expects. ` +
      'Leave --public-url out to go on by polling alone; a webhook can be made later, by publicUrl in the configuration ' +
      `and \`${commandLine('webhooks create')}\`.`
    throw new Failure('unavailable', `no webhook could be made: ${messageOf(error)}. ${advice}`, { cause: error })
  }
}

type Made = Awaited<ReturnType<typeof setUp>>

const keepText = (keyFile: string): string =>
  `Keep a copy of ${keyFile} elsewhere: without that key nothing opens the database or its backups, and all is lost.`

/** Returns sentences on what was done, and what a person must know about it. @param isAsked whether the supplier was asked */
function saidOf({ file, files, kept, config }: Plan, made: Made, isAsked: boolean, flags: InitOptions): string[] {
  const create = commandLine(`webhooks create${configOption(flags.config)}`)
  const written = files.map((one) => path.basename(one.file))
  const secrets = written.some((name) => name === 'key-encryption-key' || name === 'api-key')
  const later = config.publicUrl === null ? '' : ` Once the service runs, \`${create}\` makes the webhook.`
  return [
    `Written: ${file}${secrets ? ', and the secrets beside it (mode 0600)' : '; the secrets stay where they are'}.`,
    ...(flags.apiKeyFile && written.includes('api-key')
      ? [`The API key is among them: remove ${flags.apiKeyFile}.`]
      : []),
    ...files.flatMap((one) => (path.basename(one.file) === 'key-encryption-key' ? [keepText(one.file)] : [])),
    ...(kept.length === 0 ? [] : [`Kept as they were: ${kept.join(', ')}.`]),
    ...(isAsked ? [] : [`The supplier was not asked: nothing of it is checked yet.${later}`]),
    ...(made.webhook ? [`The supplier will send deliveries to ${made.webhook.url}; their secret is kept sealed.`] : []),
    ...(isByHand({ config }) && config.publicUrl !== null ? [byHandText(config.publicUrl)] : []),
    ...(config.stores.length > 0 ? [] : [NO_STORE]),
  ]
}

const isByHand = ({ config }: Pick<Plan, 'config'>): boolean => pathsOf(config.dialectFacts).webhooks === null
const byHandText = (publicUrl: string): string =>
  `Webhooks are made in the supplier's dashboard: make one there to ${publicUrl}/webhooks/supplier, and once the service runs ` +
  `\`${commandLine('webhooks add --secret-file <file>')}\` keeps its secret.`
const NO_STORE = 'There is no store yet.'

export const backendText = ({ store, token, callbackSecret }: Shown): string => `
Shown this once, for the backend of your store:
  store            ${store}
  token            ${token}
  callback secret  ${callbackSecret}

The backend sends the token with each order, and verifies callbacks with the
secret and any Standard Webhooks library.
`
interface Shown {
  store: string
  token?: string | null
  callbackSecret?: string | null
}

export type Existing = ReturnType<typeof readExisting>

/**
 * Reads the earlier set-up. An unreadable configuration stops everything: it may hold a store's permanent id, and with a new
 * id the store would buy again what it has bought.
 *
 * @returns `settings`: the configuration that `--force` writes over. `kept`: what stays of it, in words for people
 * @throws Failure `conflict`
 */
function readExisting(file: string) {
  const folder = path.dirname(file)
  if (!existsSync(file)) return { file, folder, settings: undefined, kept: [] }
  try {
    const settings = configShape.parse(readJson(file))
    return { file, folder, settings, kept: settings.stores.map(({ id }) => `store id ${id}`) }
  } catch (cause) {
    const why = `${file} cannot be read, and holds the permanent id of a store: fix it, or move it away yourself.`
    throw new Failure('conflict', `${why}\n${messageOf(cause).split('\n')[0]}`, { cause })
  }
}

/** A checked installation, of which no file is written yet. */
type Plan = ReturnType<typeof planInstallation>

/**
 * Makes the configuration and its secrets. An existing store id and key-encryption key stay as they are: without that key,
 * the database could not be read any more.
 *
 * @returns the configuration as the service will read it, and the files in the order in which they are written. `storeId` is
 *   null where there is no store with a backend; `madeStores` are stores whose permanent ids are new.
 * @throws Failure `invalid` with every fault
 */
function planInstallation(answers: Answers, existing: Existing, { env, randomBytes }: Io) {
  const { file } = existing
  const stores = existing.settings?.stores ?? []
  const store = backendOf(existing.settings)
  const others = stores.filter((one) => one !== store)
  const { callbackUrl, storeName: name, apiKey } = answers
  const storeId = callbackUrl === null ? null : (store?.id ?? newStoreId(name, randomBytes))
  const pricing = { ...store?.pricing, markup: { ...store?.pricing.markup, percent: answers.markup } }
  const settings = {
    ...existing.settings,
    supplier: { ...existing.settings?.supplier, baseUrl: answers.baseUrl, dialect: answers.dialect },
    stores: [
      ...(storeId === null ? [] : [{ ...store, id: storeId, kind: backend.kind, name, callbackUrl, pricing }]),
      ...others,
    ],
    publicUrl: answers.publicUrl,
    dataDir: answers.dataDir,
    ...(answers.port === undefined ? {} : { listen: { ...existing.settings?.listen, port: answers.port } }),
  }
  const kept = [...existing.kept]
  const files: SetUpFile[] = []
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
  return { file, config, storeId, madeStores: store || storeId === null ? [] : [storeId], kept, files }
}
