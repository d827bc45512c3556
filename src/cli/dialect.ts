import { z } from 'zod'
import { dialectFileOf, readJson, readText } from '../config/config.ts'
import { readDialect } from '../dialect/dialect.ts'
import { counted } from '../domain/figures.ts'
import type { SupplierOffer } from '../domain/supplier.ts'
import { plain, sentence } from '../domain/text-layout.ts'
import { Failure } from '../errors.ts'
import { checkDialect, offersIn } from '../fitting/check.ts'
import { type CapturedDelivery, detectSignature } from '../fitting/detect.ts'
import { readSample } from '../fitting/sample.ts'
import { type DialectFinding, isFault, type SettingVerdict } from '../fitting/verdicts.ts'
import { Secret } from '../secret.ts'
import { readConfig } from '../settings/stored.ts'
import { chooseProducts, productView } from '../settings/supplier-trial.ts'
import { readBaseUrl } from '../supplier/client.ts'
import { signingKey } from '../supplier/signature.ts'
import { configFileOf } from './client.ts'
import { type Io, print, widthOf } from './command.ts'
import type { CheckOptions, DetectOptions } from './commands.ts'
import { exitCodes, saying } from './exit-codes.ts'
import { details, type Pair } from './facts.ts'
import { DIALECT, readKeyFile } from './init-questions.ts'
import { productTable } from './supplier-sample.ts'
import { type Columns, key, table } from './tables.ts'
import { cell } from './words.ts'

/** Does `dialect check`: reads the supplier and says of every field of the dialect what was read. @returns the exit code */
export async function runCheck(io: Io, options: CheckOptions): Promise<number> {
  const { baseUrl, facts, apiKey } = await subjectOf(options, io.env)
  const saved = options.document === undefined ? undefined : readJson(options.document)
  const { now, sleep } = io
  const reading = readSample({ baseUrl, dialect: facts, apiKey, now, sleep, document: saved })
  const sample = await reading.catch((error: unknown) => {
    throw withNextStep(error, baseUrl, options.baseUrl === undefined)
  })
  const findings = checkDialect(facts, sample)
  const fits = !findings.some(isFault)
  const products = chooseProducts(offersIn(sample, facts))
  const document = { dialect: facts.name, supplier: baseUrl, fits, products: products.map(productView), findings }
  print(io, options.json, document, () => checkText({ ...document, products }, Math.min(io.columns, 100)))
  return fits ? exitCodes.ok : exitCodes.failed
}

/** Says why a supplier cannot be checked, and what to do. @param configured whether the configuration gives its address */
function withNextStep(error: unknown, baseUrl: string, configured: boolean): unknown {
  if (!(error instanceof Failure)) return error
  const address = configured ? 'supplier.baseUrl in the configuration' : '--base-url'
  const key = configured ? 'config/secrets/api-key or QUAYSIDE_API_KEY' : '--api-key-file or QUAYSIDE_API_KEY'
  const ofToken = error.message.includes('its token endpoint') ? ' and auth in the dialect' : ''
  const next =
    error.reason === 'unauthorized' || error.code === 'invalid' || ofToken !== ''
      ? `Check the address (${address}), the key (${key})${ofToken || ' and how the dialect sends it'}.`
      : `Check the address (${address}), and that this machine may connect to it.`
  return saying(baseUrl, error, `.\n${next}`)
}

/** Returns the supplier to check: that of the configuration, or a supplier that is not set up yet. */
async function subjectOf(
  { config, dialect, baseUrl, apiKeyFile }: CheckOptions,
  env: Record<string, string | undefined>,
) {
  const named = dialect === undefined ? undefined : readDialect(dialectFileOf(dialect, '.'))
  if (baseUrl === undefined) {
    const source = configFileOf(config, env)
    if (!source) throw new Failure('invalid', 'there is no configuration: name one by --config, or use --base-url')
    const { supplier, dialectFacts, apiKey } = await readConfig(source.file, env)
    return { baseUrl: supplier.baseUrl, facts: named ?? dialectFacts, apiKey }
  }
  const apiKey = apiKeyFile === undefined ? new Secret(env.QUAYSIDE_API_KEY ?? '') : readKeyFile(apiKeyFile)
  if (apiKey.reveal() === '') throw new Failure('invalid', 'name the API key by --api-key-file')
  const facts = named ?? readDialect(dialectFileOf(DIALECT, '.'))
  readBaseUrl(baseUrl, facts)
  return { baseUrl, facts, apiKey }
}

/** A captured delivery in a file. Other fields of the file are for people. */
const fileShape = z.object({
  /** The value of each header by its name, or all values of a header that came several times. */
  headers: z.record(z.string(), z.union([z.string(), z.array(z.string())])),
  /** The bytes of the body, in base64. */
  body: z.string().regex(/^[A-Za-z0-9+/]*={0,2}$/, 'must be base64'),
})

/** Does `dialect detect`: finds the signature layout of one delivery whose secret is known. @returns the exit code */
export function runDetect(io: Io, options: DetectOptions): number {
  const secret = signingKey(new Secret(readText(options.secretFile).replace(/\r?\n$/, '')))
  const found = detectSignature(readDelivery(options.delivery), secret)
  print(io, options.json, found, () => {
    const tried = counted(found.tried, 'combination was tried', 'combinations were tried')
    if (!found.fits) return lines(`No known layout fits: ${found.why}. ${tried}.`, io)
    const { signature, others } = found
    const isNamed = signature.deliveryIdHeader !== null
    const id = isNamed ? 'deliveryIdHeader is the header whose name says so' : 'No header is named for a delivery ID'
    const advice = lines(`It verifies; ${tried}. ${id}, and toleranceSeconds is the default: ask the supplier.`, io)
    const text = (one: typeof signature) => JSON.stringify({ signature: one }, stamped, 2)
    const doubt = lines('This delivery fits the following too: the supplier must say which is meant.', io)
    return [`${text(signature)}\n\n${advice}`, ...others.flatMap((one) => [doubt, `${text(one)}\n`])].join('')
  })
  return found.fits ? exitCodes.ok : exitCodes.failed
}

/** Leaves out where no timestamp is, as the file of a dialect does. */
const stamped = (_: string, value: { header?: string } | null) => (value?.header === '' ? undefined : value)
const lines = (text: string, io: Io): string => sentence(text, Math.min(widthOf(io), 100))

function readDelivery(file: string): CapturedDelivery {
  const result = fileShape.safeParse(readJson(file))
  if (!result.success) {
    const fields = result.error.issues.map(({ path, message }) => ({ field: path.join('.') || 'the file', message }))
    throw new Failure('invalid', `${file} is no captured delivery`, { fields })
  }
  const { headers, body } = result.data
  const distinct = Object.entries(headers).map(([name, values]) => [name.toLowerCase(), [values].flat()])
  return { headers: Object.fromEntries(distinct), body: Buffer.from(body, 'base64') }
}

interface Checked {
  dialect: string
  supplier: string
  findings: DialectFinding[]
  products: SupplierOffer[]
}

/** Writes the result for people: what fits, what was not seen, and what to ask. The faults come last, above the totals. */
export function checkText({ dialect, supplier, findings, products }: Checked, width: number): string {
  // The statuses of errors are left out: a supplier may choose them, since Quayside goes by the code of an error.
  const shown = findings.filter(({ fact, verdict }) => verdict !== 'not_shown' || !/^errors\..*status$/.test(fact))
  const by = (one: SettingVerdict) => shown.filter(({ verdict }) => verdict === one)
  const [read, documented, unproven] = [by('read'), by('documented'), by('needs_order')]
  const faults = findings.filter(isFault)
  const doubted = by('none').filter(({ candidates = [] }) => candidates.length > 0)
  const [money, others] = [by('not_shown').filter(isMoney), by('not_shown').filter((one) => !isMoney(one))]
  const sections = [
    `What ${supplier} answers, by the dialect ${dialect}.\n`,
    read.length === 0 ? '' : table(read, readColumns, width),
    productsText(products, width),
    listText('The document says the same', documented, width),
    ...noSampleTexts(by('no_sample'), width),
    listText('Shown by no answer: ask the supplier, for money rests on these', money, width, true),
    listText('Shown by no answer: ask the supplier, or see the first delivery', others, width),
    blocksText('Null in the dialect, and there is something', doubted, width),
    blocksText('In no answer', by('missing'), width),
    listText(NEEDS_ORDER, unproven, width, true),
    blocksText('WRONG', faults, width),
  ]
  const later = unproven.length === 0 ? '' : `, ${unproven.length} not proven until the first order`
  const fit = counted(read.length + documented.length, 'fact fits', 'facts fit')
  const wrong = counted(faults.length, 'is wrong', 'are wrong')
  return `${sections.filter(Boolean).join('\n')}\n${fit}, ${wrong}${later}.\n`
}

const NEEDS_ORDER =
  'Not proven until the first order: a check sends GETs alone, and only an order or its delivery shows these'

/** Shows products with their prices, as only a person notices that a dialect reads the price from a wrong field. */
function productsText(products: SupplierOffer[], width: number): string {
  if (products.length === 0) return ''
  const count = products.length === 1 ? 'One product' : `${products.length} products`
  return `${count} as Quayside reads them. Are name, cost and stock right?\n${productTable(products, width)}`
}

const isMoney = ({ fact }: DialectFinding): boolean =>
  /Seconds$|Max$|^stock$/.test(fact) && !fact.startsWith('signature')

const readColumns: Columns<DialectFinding> = {
  FACT: key('fact'),
  DIALECT: ({ dialect }) => settingText(dialect),
  READ: ({ value }) => value ?? '',
}

/** Writes a value as the dialect file does, so that an empty text and null look different. */
const settingText = (value: unknown): string =>
  typeof value === 'string' && value !== '' ? plain(value) : JSON.stringify(value)

function listText(title: string, findings: DialectFinding[], width: number, withSetting = false): string {
  if (findings.length === 0) return ''
  const facts = findings.map(({ fact, dialect }) => (withSetting ? `${fact} (${cell(dialect)})` : fact))
  return `${sentence(title, width)}${sentence(plain(facts.join(', ')), width, { lead: '  ' })}`
}

/** Lists the facts that could not be checked, by reason: `No order yet: these fields could not be checked`. */
function noSampleTexts(findings: DialectFinding[], width: number): string[] {
  const reasons = Map.groupBy(findings, ({ value = 'no value' }) => value)
  return [...reasons].map(([reason, facts]) => {
    const what = facts.length === 1 ? 'this field' : 'these fields'
    return listText(`${reason.slice(0, 1).toUpperCase()}${reason.slice(1)}: ${what} could not be checked`, facts, width)
  })
}

/** Writes wrong facts: what the answer has instead, and what to do. Facts with the same cause stand together. */
function blocksText(title: string, findings: DialectFinding[], width: number): string {
  if (findings.length === 0) return ''
  const same = Map.groupBy(findings, ({ value, hint, candidates }) => JSON.stringify([value, hint, candidates]))
  const blocks = [...same.values()].map((facts) => {
    const [{ value = '', hint, candidates = [] } = { candidates: [] }] = facts
    const names = facts.map(({ fact, dialect }) => `${fact} (${settingText(dialect)})`).join(', ')
    return [
      sentence(plain(names), width, { lead: '  ' }),
      value && sentence(plain(value), width, { lead: '    ' }),
      hint && sentence(plain(hint), width, { lead: '    -> ' }),
      details(candidates.map(candidatePair), width),
    ].join('')
  })
  return `${title}\n${blocks.join('')}`
}

const COULD_BE = '    -> could be '

const candidatePair = ({ path, value }: NonNullable<DialectFinding['candidates']>[number], index: number): Pair => [
  `${index === 0 ? COULD_BE : ' '.repeat(COULD_BE.length)}${path}`,
  value,
]
