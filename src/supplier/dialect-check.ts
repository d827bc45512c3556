/**
 * Holds a dialect against what its supplier answers, field by field.
 *
 * What a real answer shows counts; the supplier's OpenAPI document is asked only for what no answer shows, and only where
 * it states a fact exactly (`check-document`). Nothing is guessed from sentences.
 */
import type { SupplierOffer } from '../domain/placement.ts'
import { findList } from './answer-parts.ts'
import { checkAnswers } from './check-answers.ts'
import { checkDocument } from './check-document.ts'
import { type Dialect, dialectShape } from './dialect.ts'
import { readOffer } from './offer-record.ts'
import type { Sample } from './sample.ts'

export type Verdict =
  /** An answer has a value there, and it can be read. */
  | 'read'
  /** An answer should have it, and it cannot be read: the dialect is wrong. */
  | 'unreadable'
  /** An answer, or the document, says something else than the dialect: it is wrong. */
  | 'differs'
  /** No record has it, and records can do without it. */
  | 'missing'
  /** The dialect says that the supplier has no such thing. */
  | 'none'
  /** There was no record to see it in: no order yet, no webhook yet. */
  | 'no_sample'
  /** No answer shows it, and the document says the same as the dialect. */
  | 'documented'
  /** No answer shows it, nor does the document: a person asks the supplier. */
  | 'not_shown'

export interface DialectFinding {
  /** The setting: `product.cost`. */
  fact: string
  /** What the dialect says. */
  dialect: unknown
  verdict: Verdict
  /** What was read, or what is there instead, for people. */
  value?: string
  /** What to do about it. */
  hint?: string
  /** Paths in the real answers that could be meant. */
  candidates?: { path: string; value: string }[]
}

/** What a part of the check found of a setting; the rest is filled in. */
export type Judged = Omit<DialectFinding, 'dialect'>

/** Verdicts of a dialect that does not fit. */
export const isFault = ({ verdict }: Pick<DialectFinding, 'verdict'>): boolean =>
  verdict === 'unreadable' || verdict === 'differs'

/** Settings that are no facts of the supplier. */
const OURS = ['name', 'about']

/** @returns every setting of the dialect once, in the order of its shape, and each status word that it lacks */
export function checkDialect(dialect: Dialect, sample: Sample): DialectFinding[] {
  const settings = settingsOf(dialect)
  const shown = new Map<string, Judged>()
  const hidden = new Map<string, Judged>()
  for (const one of checkAnswers(dialect, sample)) {
    const into = one.verdict === 'no_sample' ? hidden : shown
    if (!into.has(one.fact) || isFault(one)) into.set(one.fact, one)
  }
  const documented = new Map(checkDocument(dialect, sample.document).map((one) => [one.fact, one]))
  const facts = [...new Set([...settings.keys(), ...shown.keys(), ...documented.keys()])]
  const order = Object.keys(dialectShape.shape)
  const rank = (fact: string) => order.indexOf(fact.split('.')[0] ?? '')
  return facts
    .map((fact): DialectFinding => {
      const setting = settings.has(fact) ? settings.get(fact) : null
      const judged = shown.get(fact) ?? documented.get(fact) ?? hidden.get(fact)
      if (judged) return { ...judged, dialect: setting }
      return { fact, dialect: setting, verdict: setting === null ? 'none' : 'not_shown' }
    })
    .toSorted((a, b) => rank(a.fact) - rank(b.fact))
}

/** The products of the first page that the dialect can read. */
export const offersIn = ({ products }: Sample, dialect: Dialect): SupplierOffer[] =>
  (findList(products.json, dialect)?.value ?? [])
    .map((record) => readOffer(record, dialect))
    .flatMap((read) => (read.ok ? [read.value] : []))

/** Each setting by its path. Lists are one setting each, and so are those that have forms. */
function settingsOf(dialect: Dialect): Map<string, unknown> {
  const settings = new Map<string, unknown>()
  const visit = (value: unknown, path: string): void => {
    const whole = /^(flags\.\w+|signature\.timestamp|money\.representation)$/.test(path)
    if (whole || typeof value !== 'object' || value === null || Array.isArray(value)) {
      settings.set(path, value)
      return
    }
    for (const [name, inner] of Object.entries(value)) visit(inner, path === '' ? name : `${path}.${name}`)
  }
  visit(dialect, '')
  for (const name of OURS) settings.delete(name)
  return settings
}
