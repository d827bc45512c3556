/** The rules of a store as texts of a form: read from the settings, typed by a person, and turned into settings again. */
import { Failure } from '../errors.ts'
import type { AnswerOf } from '../http/api/table.ts'
import { numbersIn, textsIn } from './forms.ts'

type Document = AnswerOf<'viewSettingsDocument'>['document']
export type Row = Record<string, string>

/** Rules of which there may be several, each with the names of its fields. */
const rowFields = {
  products: ['name', 'percent', 'flat', 'fixed'],
  categories: ['name', 'percent', 'flat'],
  bands: ['upTo', 'percent', 'flat'],
  rates: ['from', 'to', 'rate', 'validFrom', 'validUntil'],
} as const
export type Kind = keyof typeof rowFields
const kinds = Object.keys(rowFields) as Kind[]

/** Settings that there are once, by their names below `pricing`, and the spend caps. */
const ones = [
  ...[
    'markup.percent',
    'markup.flat',
    'margin.percent',
    'margin.flat',
    'jumpPercent',
    'compareAt',
    'compareAt.percent',
  ],
  ...['rounding.endings', 'rounding.step', 'rounding.direction', 'spendCaps.order', 'spendCaps.hour', 'spendCaps.day'],
] as const

export interface Draft {
  rows: Record<Kind, Row[]>
  one: Row
}

const rowOf = (kind: Kind, values: Record<string, string | null | undefined>): Row =>
  Object.fromEntries(rowFields[kind].map((name) => [name, values[name] ?? '']))

export function draftOf({ stores, rates, spendCaps }: Document, id: string): Draft {
  const pricing = stores.find((store) => store.id === id)?.pricing
  if (!pricing) throw new Failure('not_found', `the settings have no store ${id}`)
  const { compareAt, rounding } = pricing
  const all = {
    ...{ ...pricing, spendCaps },
    compareAt: typeof compareAt === 'string' ? compareAt : compareAt && 'percent',
    'compareAt.percent': typeof compareAt === 'string' ? '' : compareAt?.percent,
    rounding: { ...rounding, endings: rounding.endings?.join(' ') },
  } as Record<string, unknown>
  const textOf = (name: string): string => {
    const [first = '', second = ''] = name.split('.')
    const value = all[name] ?? (second === '' ? '' : (all[first] as Row | null)?.[second])
    return typeof value === 'string' ? value : ''
  }
  const named = (kind: Kind, rules: Record<string, object>) =>
    Object.entries(rules).map(([name, rule]) => rowOf(kind, { ...rule, name }))
  return {
    rows: {
      products: named('products', pricing.products),
      categories: named('categories', pricing.categories),
      bands: pricing.bands.map((band) => rowOf('bands', band)),
      rates: rates.map((rate) => rowOf('rates', rate)),
    },
    one: Object.fromEntries(ones.map((name) => [name, textOf(name)])),
  }
}

/** The fields that hold a number. */
const NUMBERS = /(percent|flat|fixed|upTo|rate|step)$|^spendCaps/i

/** Reads a form, and adds or removes the rule that its button names. A rule without any text is none. */
export function typed(form: URLSearchParams): Draft {
  const text = (name: string): string =>
    (NUMBERS.test(name) ? numbersIn(form, name)[name] : textsIn(form, name)[name]) ?? ''
  const [removed, added] = [form.get('remove'), form.get('add') ?? '']
  const rowsOf = (kind: Kind): Row[] => {
    const found: Row[] = []
    for (let index = 0; form.has(`${kind}.${index}.${rowFields[kind][2]}`); index += 1) {
      const texts = rowFields[kind].map((name) => [name, text(`${kind}.${index}.${name}`)] as const)
      const isLast = kind === 'bands' && !form.has(`bands.${index + 1}.flat`) && found.length > 0
      const isBlank = texts.every(([, one]) => one === '') && !isLast
      if (removed !== `${kind}.${index}` && !isBlank) found.push(rowOf(kind, Object.fromEntries(texts)))
    }
    return found
  }
  const rows = Object.fromEntries(kinds.map((kind) => [kind, rowsOf(kind)])) as Draft['rows']
  const [kind, from, to, validFrom] = added.split('.')
  if (kind === 'bands')
    rows.bands.splice(-1, 0, ...Array.from({ length: rows.bands.length === 0 ? 2 : 1 }, () => rowOf('bands', {})))
  else if (kinds.includes(kind as Kind)) rows[kind as Kind].push(rowOf(kind as Kind, { from, to, validFrom }))
  Object.assign(rows.bands.at(-1) ?? {}, { upTo: '' })
  return { rows, one: Object.fromEntries(ones.map((name) => [name, text(name)])) }
}

/** The fields that hold a draft. */
export const inForm = ({ rows, one }: Draft): [name: string, value: string][] => [
  ...kinds.flatMap((kind) =>
    rows[kind].flatMap((row, index) =>
      Object.entries(row).map(([name, value]): [string, string] => [`${kind}.${index}.${name}`, value]),
    ),
  ),
  ...Object.entries(one),
]

/** What a rule is recognised by. */
export const rowKey = (kind: Kind, { name, upTo, from, to, validFrom }: Row): string =>
  kind === 'rates'
    ? `${from} ${to} ${validFrom}`
    : kind === 'bands'
      ? upTo
        ? `up to ${upTo}`
        : 'higher costs'
      : (name ?? '')

/** Returns `20 % and 0.50`; what a rule says, to see whether it is another one. */
export const wordsOf = ({ percent, flat, fixed, rate, validUntil }: Row): string =>
  [percent && `${percent} %`, Number(flat) > 0 && flat, fixed && `${fixed} fixed`, rate, validUntil]
    .filter(Boolean)
    .join(' and ') || 'nothing'

/** Counts the rules that differ. */
export function changesBetween(before: Draft, after: Draft): number {
  const both = kinds.map((kind) => {
    const rulesOf = ({ rows }: Draft) => new Map(rows[kind].map((row) => [rowKey(kind, row), wordsOf(row)]))
    const [old, next] = [rulesOf(before), rulesOf(after)]
    return [...new Set([...old.keys(), ...next.keys()])].filter((name) => old.get(name) !== next.get(name)).length
  })
  return both.reduce((sum, one) => sum + one, 0) + ones.filter((name) => before.one[name] !== after.one[name]).length
}

/** A text that is empty is not there. */
const given = (row: Row): Row => Object.fromEntries(Object.entries(row).filter(([, text]) => text !== ''))

/** Returns the settings that a draft stands for. @throws Failure `invalid` for a product or a category that is named twice */
export function proposed({ rows, one }: Draft) {
  const named = (kind: 'products' | 'categories') => {
    const index = rows[kind].findIndex(
      ({ name }, place) => rows[kind].findIndex((other) => other.name === name) < place,
    )
    if (index >= 0) throw twice(`${kind}.${index}.name`)
    return Object.fromEntries(rows[kind].map(({ name = '', ...rule }) => [name, given(rule)]))
  }
  const both = (name: string) => given({ percent: one[`${name}.percent`] ?? '', flat: one[`${name}.flat`] ?? '' })
  const endings = (one['rounding.endings'] ?? '').split(/[\s,]+/).filter(Boolean)
  const pricing = {
    ...{ markup: both('markup'), margin: both('margin') },
    bands: rows.bands.map(given),
    ...{ categories: named('categories'), products: named('products') },
    rounding: {
      step: one['rounding.step'] || null,
      endings: endings.length === 0 ? null : endings,
      direction: one['rounding.direction'],
    },
    compareAt: one.compareAt === 'percent' ? { percent: one['compareAt.percent'] ?? '' } : one.compareAt || null,
    jumpPercent: one.jumpPercent || null,
  }
  const spendCaps = Object.fromEntries(['order', 'hour', 'day'].map((name) => [name, one[`spendCaps.${name}`] || null]))
  return { pricing, rates: rows.rates.map(given), spendCaps }
}

function twice(field: string): Failure {
  const message = 'has a rule already'
  return new Failure('invalid', `${field}: ${message}`, { fields: [{ field, message }] })
}

/** Names the faults of a failure by the fields of the form. */
export function faultsIn(thrown: unknown, { rows }: Draft): unknown {
  if (!(thrown instanceof Failure) || thrown.fields.length === 0) return thrown
  const fields = thrown.fields.map((fault) => ({ ...fault, field: fieldIn(fault.field, rows) }))
  return new Failure(thrown.code, thrown.message, { fields })
}

function fieldIn(named: string, rows: Draft['rows']): string {
  const field = named.replace(/^stores\.\d+\./, '').replace(/^pricing\./, '')
  for (const kind of ['products', 'categories'] as const) {
    const index = rows[kind].findIndex(({ name }) => `${field}.`.startsWith(`${kind}.${name}.`))
    if (index >= 0) return `${kind}.${index}${field.slice(`${kind}.${rows[kind][index]?.name}`.length) || '.percent'}`
  }
  if (/^(bands|rates)\.\d+$/.test(field)) return `${field}.${field.startsWith('rates') ? 'rate' : 'percent'}`
  return field.startsWith('rounding.endings') || field === 'rounding' ? 'rounding.endings' : field
}
