import { readFileSync } from 'node:fs'
import path from 'node:path'
import type { Command } from 'commander'
import { loadConfig } from '../config.ts'
import { Failure, messageOf } from '../errors.ts'
import { Secret } from '../secret.ts'
import { readBaseUrl } from '../supplier/client.ts'
import { readDialect } from '../supplier/dialect.ts'
import { checkDialect, isFault, offersIn } from '../supplier/dialect-check.ts'
import { readSample } from '../supplier/sample.ts'
import { configFileOf } from './connection.ts'
import { checkText } from './dialect-check-text.ts'
import { exitCodes } from './exit-codes.ts'
import { readKeyFile } from './init-questions.ts'
import { chooseProducts, productView } from './product-sample.ts'
import type { Session } from './program.ts'
import { print, shareOptions } from './service-command.ts'

interface Options {
  config?: string
  json?: true
  document?: string
  dialect?: string
  baseUrl?: string
  apiKeyFile?: string
}

/** `dialect check`: reads the supplier and says of every field of the dialect what was read. */
export function addCheck(dialect: Command, { io, end }: Session): void {
  const check = dialect.command('check').description('read the supplier and say of every field what was read')
  shareOptions(check)
  check.option('--document <file>', 'an OpenAPI document that was saved, instead of GET /openapi')
  check.option('--dialect <name>', "a file in config/dialects, or a path, instead of the configuration's")
  check.option('--base-url <address>', 'a supplier that is not set up yet; ends in /v1. It takes --dialect too')
  check.option('--api-key-file <file>', 'its API key; else QUAYSIDE_API_KEY is used')
  check.addHelpText('after', EXAMPLES)
  check.action(async (options: Options) => {
    const { baseUrl, facts, apiKey } = subjectOf(options, io.env)
    const saved = options.document === undefined ? undefined : readDocument(options.document)
    const { now, sleep } = io
    const reading = readSample({ baseUrl, dialect: facts, apiKey, now, sleep, document: saved })
    const sample = await reading.catch((error: unknown) => {
      throw withNextStep(error, baseUrl, options.baseUrl === undefined)
    })
    const findings = checkDialect(facts, sample)
    const fits = !findings.some(isFault)
    const products = chooseProducts(offersIn(sample, facts))
    const document = { dialect: facts.name, supplier: baseUrl, fits, products: products.map(productView), findings }
    print(io, options.json === true, document, () => {
      const checked = { dialect: facts.name, supplier: baseUrl, findings, products }
      return checkText(checked, Math.min(io.columns, 100))
    })
    end(fits ? exitCodes.ok : exitCodes.failed)
  })
}

const EXAMPLES = `
Only GETs are sent: a page of products, one product, one that is not there, the
balance (also without the key), the orders and their filters, the webhooks, and
the OpenAPI document. Nothing is bought or changed. What no answer shows is for a
person to ask; docs/dialect.md tells which facts money rests on.

Examples:
  quayside dialect check
  quayside dialect check --base-url https://supplier.example/api/v1 \\
    --api-key-file key.txt --dialect ./my-supplier.json
  quayside dialect check --json | jq '.findings[] | select(.verdict == "unreadable")'`

/** Why the supplier cannot be checked, at which address, and what to do. @param configured: the address is from there */
function withNextStep(error: unknown, baseUrl: string, configured: boolean): unknown {
  if (!(error instanceof Failure)) return error
  const address = configured ? 'supplier.baseUrl in the configuration' : '--base-url'
  const key = configured ? 'config/secrets/api-key or QUAYSIDE_API_KEY' : '--api-key-file or QUAYSIDE_API_KEY'
  const next =
    error.reason === 'unauthorized'
      ? `Check the address (${address}) and the key (${key}).`
      : `Check the address (${address}), and that this machine may connect to it.`
  const { code, message, fields, reason } = error
  const detail = { cause: error, fields, ...(reason === undefined ? {} : { reason }) }
  return new Failure(code, `${baseUrl}: ${message}.\n${next}`, detail)
}

/** The supplier of the configuration, or one that is not set up yet. */
function subjectOf({ config, dialect, baseUrl, apiKeyFile }: Options, env: Record<string, string | undefined>) {
  const named = dialect === undefined ? undefined : readDialect(dialectFile(dialect))
  if (baseUrl === undefined) {
    const source = configFileOf(config, env)
    if (!source) throw new Failure('invalid', 'there is no configuration: name one by --config, or use --base-url')
    const { supplier, dialectFacts, apiKey } = loadConfig(source.file, env)
    return { baseUrl: supplier.baseUrl, facts: named ?? dialectFacts, apiKey }
  }
  const text = apiKeyFile === undefined ? env.QUAYSIDE_API_KEY : undefined
  if (apiKeyFile === undefined && !text) throw new Failure('invalid', 'name the API key by --api-key-file')
  const apiKey = apiKeyFile === undefined ? new Secret(text ?? '') : readKeyFile(apiKeyFile)
  readBaseUrl(baseUrl)
  return { baseUrl, facts: named ?? readDialect(dialectFile(DIALECT)), apiKey }
}

/** The default, which most suppliers differ from in a few facts. */
const DIALECT = 'reseller-v1.1'

const dialectFile = (name: string): string =>
  name.endsWith('.json')
    ? path.resolve(name)
    : path.join(import.meta.dirname, '..', '..', 'config', 'dialects', `${name}.json`)

function readDocument(file: string): unknown {
  try {
    return JSON.parse(readFileSync(file, 'utf8'))
  } catch (cause) {
    throw new Failure('invalid', `${file} cannot be read as JSON: ${messageOf(cause)}`, { cause })
  }
}
