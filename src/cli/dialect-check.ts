import { readFileSync } from 'node:fs'
import path from 'node:path'
import type { Command } from 'commander'
import { loadConfig } from '../config.ts'
import { Failure, messageOf } from '../errors.ts'
import { type Dialect, readDialect } from '../supplier/dialect.ts'
import { checkDialect, type Finding, type Seen } from '../supplier/dialect-check.ts'
import { fetchDescription } from '../supplier/fetch-description.ts'
import { cell } from './cell.ts'
import { configFileOf } from './connection.ts'
import { exitCodes } from './exit-codes.ts'
import type { Session } from './program.ts'
import { print, shareOptions, widthOf } from './service-command.ts'
import { table } from './table.ts'

interface Options {
  config?: string
  json?: true
  document?: string
  dialect?: string
}

/** `dialect check`: holds every fact against the supplier's own description. */
export function addCheck(dialect: Command, { io, end }: Session): void {
  const check = dialect.command('check').description("compare the dialect with the supplier's OpenAPI description")
  shareOptions(check)
  check.option('--document <file>', 'a description that was saved, instead of GET /openapi')
  check.option('--dialect <name>', "a file in config/dialects, or a path, instead of the configuration's")
  check.addHelpText('after', EXAMPLES)
  check.action(async (options: Options) => {
    const { facts, document, seen } = await subjectOf(options, io.env)
    const findings = checkDialect(facts, document, seen)
    const count = (verdict: Finding['verdict']) => findings.filter((one) => one.verdict === verdict).length
    const counts = { agrees: count('agrees'), disagrees: count('disagrees'), notSaid: count('not_said') }
    print(io, options.json === true, { dialect: facts.name, ...counts, findings }, () => {
      const rows = findings.map((finding) => ({ ...finding }))
      const columns = [
        { title: 'FACT', of: (row: object) => cell((row as Finding).fact), keep: true as const },
        { title: 'VERDICT', of: (row: object) => words[(row as Finding).verdict] },
        { title: 'DIALECT', of: (row: object) => valueText((row as Finding).dialect) },
        { title: 'DOCUMENT', of: (row: object) => cell((row as Finding).document) },
      ]
      const sum = `${counts.agrees} agree, ${counts.disagrees} disagree, ${counts.notSaid} are not said.`
      return `${table(rows, columns, widthOf(io))}\n${facts.name}: ${sum}\n`
    })
    end(counts.disagrees === 0 ? exitCodes.ok : exitCodes.failed)
  })
}

const words: Record<Finding['verdict'], string> = { agrees: 'agrees', disagrees: 'DISAGREES', not_said: 'not said' }

const EXAMPLES = `
What the description does not say is for a person to ask; docs/dialect.md tells
which facts money rests on. Nothing is changed.

Examples:
  quayside dialect check
  quayside dialect check --document openapi.json --dialect ./my-supplier.json`

/** Values as the dialect file writes them, so that an empty text and null can be told apart. */
const valueText = (value: unknown): string => (value === '' || value === null ? JSON.stringify(value) : cell(value))

async function subjectOf(
  { config, document, dialect }: Options,
  env: Record<string, string | undefined>,
): Promise<{ facts: Dialect; document: unknown; seen: Seen }> {
  const named = dialect === undefined ? undefined : readDialect(dialectFile(dialect))
  if (named && document !== undefined) return { facts: named, document: readDocument(document), seen: {} }
  const source = configFileOf(config, env)
  if (!source) throw new Failure('invalid', 'there is no configuration: name one by --config, or run `quayside init`')
  const loaded = loadConfig(source.file, env)
  const facts = named ?? loaded.dialectFacts
  if (document !== undefined) return { facts, document: readDocument(document), seen: {} }
  const { baseUrl } = loaded.supplier
  return { facts, ...(await fetchDescription({ baseUrl, dialect: facts, apiKey: loaded.apiKey })) }
}

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
