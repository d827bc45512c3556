import { existsSync } from 'node:fs'
import type { Command } from 'commander'
import { type Config, loadConfig } from '../config.ts'
import type { SupplierOffer } from '../domain/placement.ts'
import { Failure, messageOf } from '../errors.ts'
import { clearTextWarnings, ENCRYPT } from './clear-text.ts'
import { CONFIG_FILE } from './connection.ts'
import { exitCodes } from './exit-codes.ts'
import {
  type Answers,
  type Existing,
  type Installation,
  type Plan,
  planInstallation,
  readExisting,
  writeInstallation,
} from './init-files.ts'
import { askAnswers, askWhetherRight, type Flags, flagAnswers } from './init-questions.ts'
import { productTable, productView } from './product-sample.ts'
import type { Program, Session, SetUp } from './program.ts'
import { print, shareOptions, widthOf } from './service-command.ts'
import { wrap } from './table.ts'

/** `init`: connects a real supplier and a store, by asking on a terminal or by flags. */
export function addInit(root: Command, { io, program, end }: Session): void {
  const init = root.command('init').description('write the configuration by asking; make secrets and a first token')
  init.option('--base-url <address>', "the supplier's Reseller API; ends in /v1")
  init.option('--dialect <name or path>', 'how the supplier writes what the API leaves open; a path ends in .json')
  init.option('--api-key-file <file>', 'a file that holds the API key; else QUAYSIDE_API_KEY is used')
  init.option('--store-name <name>', 'what the store is called')
  init.option('--callback-url <address>', 'where the store is told of keys and failures')
  init.option('--public-url <address>', 'where the supplier reaches this service; polling alone without it')
  init.option('--markup <percent>', 'listing price = cost plus this')
  init.option('--yes', 'ask nothing: what no flag says takes its default')
  init.option('--force', 'write over a configuration; store ids and the key-encryption key stay')
  shareOptions(init)
  init.addHelpText('after', EXAMPLES)
  init.action(async (flags: Flags & { config?: string; yes?: true; force?: true; json?: true }) => {
    const file = flags.config ?? CONFIG_FILE
    if (existsSync(file) && !flags.force) {
      throw new Failure(
        'conflict',
        `${file} exists and stays as it is: edit it and restart the service, or use --force to answer anew.`,
      )
    }
    const existing = readExisting(file)
    if (existing.settings) await assertStopped(program, file, io.env)
    const asks = io.isTerminal && !flags.yes && !flags.json
    const answers = asks ? await askAnswers(io, flags, existing) : flagAnswers(flags, io.env, existing)
    const plan = await checked(program, { file, answers, existing, env: io.env, randomBytes: io.randomBytes })
    const width = Math.min(widthOf(io), 100)
    const warnings = clearTextWarnings(plan.config)
    // Before the API key is sent for the first time.
    if (asks) io.stdout.write(warningText(warnings, width))
    const seen = await productsOf(program, plan.config)
    if (asks) await assertRight(io, seen, width)
    const result = await setUp(program, plan, answers)
    const products = { products: seen.products.map(productView), productsFault: seen.fault }
    const dialect = plan.config.dialectFacts.name
    const document = {
      configFile: file,
      store: plan.storeId,
      dialect,
      ...result,
      ...products,
      warnings,
      kept: plan.kept,
      next: NEXT,
    }
    // Who was asked has seen them.
    print(io, flags.json === true, document, () => resultText(document, asks ? undefined : seen, width))
    end(result.webhookFault === null && seen.fault === null ? exitCodes.ok : exitCodes.failed)
  })
}

const EXAMPLES = `
Examples:
  quayside init
  quayside init --yes --base-url https://supplier.example/api/v1 \\
    --api-key-file ./key.txt --store-name 'My store' \\
    --callback-url https://shop.example/quayside
  quayside init --dialect config/my-supplier.json`

/** Under a running service, nothing is written. Other faults of what is there may be what `--force` is to mend. */
async function assertStopped(program: Program, file: string, env: Session['io']['env']): Promise<void> {
  try {
    await program.checkSetUp(loadConfig(file, env))
  } catch (error) {
    if (error instanceof Failure && error.reason === 'database_in_use') throw error
  }
}

/** Checks everything before anything is written. */
async function checked(program: Program, installation: Installation): Promise<Plan> {
  try {
    const plan = planInstallation(installation)
    await program.checkSetUp(plan.config)
    return plan
  } catch (error) {
    throw saying('nothing was written', error)
  }
}

/** Says what a failure has left of the set-up. */
function saying(what: string, error: unknown): Failure {
  const known = error instanceof Failure ? error : new Failure('unavailable', messageOf(error))
  const { code, message, fields, reason } = known
  const detail = { cause: error, fields, ...(reason === undefined ? {} : { reason }) }
  return new Failure(code, `${what}: ${message}`, detail)
}

const NEXT = ['quayside doctor', 'quayside serve', 'quayside sync --follow']

/** Writes the files, creates the database and the first token. A failure leaves nothing of them. */
async function setUp(program: Program, plan: Plan, answers: Answers) {
  const undo = writeInstallation(plan)
  let open: SetUp | undefined
  try {
    open = await program.openSetUp(plan.config, plan.madeStores)
    const token = await open.createStoreToken(plan.storeId, `${answers.storeName} (first)`)
    const secret = await open.callbackSecret(plan.storeId)
    const webhook = await webhookOf(open, answers)
    await open.close()
    return { token: token.reveal(), callbackSecret: secret.reveal(), ...webhook }
  } catch (error) {
    await open?.discard()
    undo()
    throw saying('nothing was set up', error)
  }
}

/** Three products as the dialect reads them, or why there are none. */
interface Seen {
  products: SupplierOffer[]
  fault: string | null
}

async function productsOf(program: Program, config: Config): Promise<Seen> {
  try {
    return { products: await program.readProducts(config), fault: null }
  } catch (error) {
    return { products: [], fault: messageOf(error) }
  }
}

async function assertRight(io: Session['io'], seen: Seen, width: number): Promise<void> {
  if (await askWhetherRight(io, seenText(seen, width), { wrong: seen.fault !== null })) return
  throw new Failure(
    'invalid',
    'nothing was written. Fit a dialect to this supplier by docs/fitting-a-supplier.md, and name it by --dialect.',
  )
}

function seenText({ products, fault }: Seen, width: number): string {
  const lead = wrap(
    "Products of the supplier, as the dialect reads them. Compare them with the supplier's own pages:",
    width,
  ).join('\n')
  if (fault === null) return `${lead}\n${productTable(products, width)}`
  const advice = 'If the supplier answers, the dialect does not fit it: see docs/fitting-a-supplier.md.'
  return `${wrap(`NO PRODUCT READ: ${fault}. ${advice}`, width).join('\n')}\n`
}

/** A webhook that cannot be made now is made later: the rest must not be lost. */
async function webhookOf(open: SetUp, { publicUrl }: Answers) {
  if (publicUrl === null) return { webhook: null, webhookFault: null }
  try {
    return { webhook: await open.createWebhook(), webhookFault: null }
  } catch (error) {
    return { webhook: null, webhookFault: messageOf(error) }
  }
}

/** What it means that there is no webhook, and what to do. */
const noWebhook = (dialect: string): string =>
  'Until there is one, the service works by polling alone. Start it, then run `quayside webhooks create`; if the supplier ' +
  `refuses that too, webhookRequest in the dialect ${dialect} is not what it expects.`

type Result = Awaited<ReturnType<typeof setUp>> & {
  configFile: string
  dialect: string
  store: string
  /** What crosses a public network unencrypted. */
  warnings: string[]
  kept: Existing['kept']
  next: string[]
}

const warningText = (warnings: readonly string[], width: number): string =>
  warnings.map((warning) => `\n${wrap(`WARNING: ${warning}: ${ENCRYPT}.`, width).join('\n')}\n`).join('')

function resultText(result: Result, seen: Seen | undefined, width: number): string {
  const { webhook, webhookFault, dialect } = result
  const said = [
    `Written: ${result.configFile}, and the secrets beside it (mode 0600).`,
    ...(result.kept.length === 0 ? [] : [`Kept as they were: ${result.kept.join(', ')}.`]),
    ...(webhook ? [`The supplier will send deliveries to ${webhook.url}; their secret is kept sealed.`] : []),
    ...(webhookFault === null ? [] : [`NO WEBHOOK YET: ${webhookFault}. ${noWebhook(dialect)}`]),
  ]
  return `${said.flatMap((line) => wrap(line, width)).join('\n')}
${seen ? `${warningText(result.warnings, width)}\n${seenText(seen, width)}` : ''}
Shown this once, for the backend of your store:
  store            ${result.store}
  token            ${result.token}
  callback secret  ${result.callbackSecret}

The backend sends the token with each order, and verifies callbacks with the
secret and any Standard Webhooks library.

Next:
  quayside doctor          checks all of this end to end
  quayside serve           runs it
  quayside sync --follow   reads the catalogue and shows how far it is
`
}
