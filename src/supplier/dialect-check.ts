import { errorFacts } from './check-errors.ts'
import { headerFacts, signatureFacts } from './check-headers.ts'
import { listFacts } from './check-lists.ts'
import { recordFacts } from './check-records.ts'
import { eventFacts, requestFacts } from './check-requests.ts'
import { type Dialect, dialectShape } from './dialect.ts'
import { type Description, readDescription } from './openapi-document.ts'

export type Verdict = 'agrees' | 'disagrees' | 'not_said'

/** What the supplier's own description says about one fact of a dialect. */
export interface Finding {
  /** Path of the setting: `signature.header`, `errors.gone.codes`. */
  fact: string
  /** What the dialect says. */
  dialect: unknown
  verdict: Verdict
  /** What the document says, where it disagrees. */
  document?: string
}

/** What a group of facts is judged from. */
export interface Inspection {
  dialect: Dialect
  description: Description
  /** Seen when the document was fetched. */
  seen: Seen
}

export interface Seen {
  /** Whether GET /openapi asked for the API key; undefined when the document came from a file. */
  needsKey?: boolean
  /** The header in which the key was accepted, when it is another than the dialect's. */
  keyHeader?: string
}

/** Nothing in an OpenAPI description says these; a person asks the supplier, and money rests on most of them. */
const SILENT = [
  ...['flags.success', 'flags.more', 'flags.available', 'flags.inStock'],
  ...[
    'signature.toleranceSeconds',
    'paging.totalFiltered',
    'paging.listMax',
    'stock',
    'settleSeconds',
    'listLagSeconds',
    'scanGapSeconds',
  ],
]

/**
 * Compares a dialect with the OpenAPI description that the supplier serves, fact by fact.
 *
 * A description is written for people as much as for machines: what it says in schemas is compared strictly, what it
 * says in sentences only where the sentence is plain. A field that is missing from a schema that is there disagrees; where
 * the schema itself is missing nothing is said.
 *
 * @param document what GET /openapi answered, parsed
 * @returns every fact of the dialect once, in the order of the dialect's shape
 */
export function checkDialect(dialect: Dialect, document: unknown, seen: Seen = {}): Finding[] {
  const inspection: Inspection = { dialect, description: readDescription(document), seen }
  const silent = SILENT.map((fact): Finding => ({ fact, dialect: settingAt(dialect, fact), verdict: 'not_said' }))
  const found = [
    ...headerFacts(inspection),
    ...signatureFacts(inspection),
    ...eventFacts(inspection),
    ...errorFacts(inspection),
    ...recordFacts(inspection),
    ...listFacts(inspection),
    ...requestFacts(inspection),
    ...silent,
  ]
  const order = Object.keys(dialectShape.shape)
  const place = ({ fact }: Finding) => order.indexOf(fact.split('.')[0] ?? '')
  return found.toSorted((a, b) => place(a) - place(b))
}

const settingAt = (dialect: Dialect, fact: string): unknown =>
  fact.split('.').reduce<unknown>((at, name) => (at as Record<string, unknown>)[name], dialect)
