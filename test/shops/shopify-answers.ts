/** What the parts of the Shopify shop share: requests, answers, ids, lists, searches, money. */
import { decimalsOf, formatDecimal, parseDecimal } from '../../src/domain/money.ts'
import { type FieldAnswer, type Fields, GraphqlRefusal } from './shopify-graphql.ts'

/** The fields at the root of a query or mutation, and the scope that each needs. */
export interface RootFields {
  queries: Record<string, RootField>
  mutations: Record<string, RootField>
}
export interface RootField {
  /** None: a token is enough. */
  scope?: string
  /** The schema lets it be null, so that an error leaves the other fields as they are. */
  isNullable: boolean
  answer: FieldAnswer
}

/** Something with a global id, as documents see it. */
export type NodeFields = Fields & { __typename: string; id: string }

export const gid = (type: string, id: string): string => `gid://shopify/${type}/${id}`

/** The number in a global id of this type; undefined for an id of another type, or for none. */
export function numberIn(type: string, id: unknown): string | undefined {
  const match = /^gid:\/\/shopify\/(\w+)\/(\d+)(\?.*)?$/.exec(String(id))
  return match?.[1] === type ? match[2] : undefined
}

/** As {@link numberIn}, for an argument: Shopify refuses an id of the wrong form. */
export function needNumber(type: string, id: unknown): string {
  const number = numberIn(type, id)
  if (number === undefined) throw new GraphqlRefusal('RESOURCE_NOT_FOUND', `Invalid global id '${id}'`)
  return number
}

export const isFields = (value: unknown): value is Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** The objects of a list in an input; anything else counts for an empty one. */
export const objectsIn = (value: unknown): Fields[] => (Array.isArray(value) ? value.filter(isFields) : [])

export const textsIn = (value: unknown): string[] => (Array.isArray(value) ? value.map(String) : [])

export interface UserError {
  code?: string
  field: string[] | null
  message: string
  elementIndex?: number | null
}

/** Errors of a mutation, of the type that its payload has. */
export const userErrors = (type: string, errors: UserError[]): Fields[] =>
  errors.map(({ code = null, field, message, elementIndex = null }) => ({
    __typename: type,
    code,
    field,
    message,
    elementIndex,
  }))

/**
 * A page of a list. `first` is at most 250, and a cursor is the key of the item that it follows, so that items which come or go
 * meanwhile do not shift a page.
 *
 * @param keyOf by which the items are sorted, ascending
 */
export function connection<Item>(
  type: string,
  items: Item[],
  given: Fields,
  keyOf: (item: Item) => (number | string)[],
  fieldsOf: (item: Item) => Fields,
): Fields {
  const { first, after } = given
  if (typeof first !== 'number') {
    throw new GraphqlRefusal('BAD_REQUEST', `you must provide one of first or last`)
  }
  if (first < 0 || first > 250) {
    throw new GraphqlRefusal('MAX_INPUT_SIZE_EXCEEDED', `${first} is greater than the maximum allowed of 250.`)
  }
  const direction = given.reverse === true ? -1 : 1
  const sorted = items.toSorted((a, b) => direction * compareKeys(keyOf(a), keyOf(b)))
  const start = typeof after === 'string' ? keyIn(after) : undefined
  const rest = start ? sorted.filter((item) => direction * compareKeys(keyOf(item), start) > 0) : sorted
  const page = rest.slice(0, first)
  const cursors = page.map((item) => Buffer.from(JSON.stringify(keyOf(item))).toString('base64'))
  const nodes = page.map(fieldsOf)
  return {
    __typename: `${type}Connection`,
    nodes,
    edges: nodes.map((node, index) => ({ __typename: `${type}Edge`, node, cursor: cursors[index] })),
    pageInfo: {
      __typename: 'PageInfo',
      hasNextPage: rest.length > page.length,
      hasPreviousPage: start !== undefined,
      startCursor: cursors[0] ?? null,
      endCursor: cursors.at(-1) ?? null,
    },
  }
}

function keyIn(cursor: string): (number | string)[] {
  try {
    const key: unknown = JSON.parse(Buffer.from(cursor, 'base64').toString('utf8'))
    if (Array.isArray(key)) return key
  } catch {}
  throw new GraphqlRefusal('BAD_REQUEST', 'Invalid cursor for current pagination sort.')
}

/** Ids are text that may be longer than a number can be: of two texts of digits the longer is the larger. */
export function compareKeys(a: (number | string)[], b: (number | string)[]): number {
  for (const [index, one] of a.entries()) {
    const other = b[index] ?? ''
    if (one === other) continue
    if (typeof one === 'string' && typeof other === 'string') return one.length - other.length || (one < other ? -1 : 1)
    return one < other ? -1 : 1
  }
  return 0
}

export const count = (value: number): Fields => ({ __typename: 'Count', count: value, precision: 'EXACT' })

export const dateTime = (at: number): string => new Date(Math.floor(at / 1000) * 1000).toISOString().replace('.000', '')

/** `Money`: `12.50`. */
export const moneyText = (minor: number, currency: string): string => formatDecimal({ minor, currency })

/** `Decimal` of `MoneyV2`: zeros at the end are left out, but for the first decimal: `12.5`, `12.0`. */
export function amountText(minor: number, currency: string): string {
  const text = formatDecimal({ minor, currency })
  if (decimalsOf(currency) === 0) return `${text}.0`
  return text.replace(/0+$/, '').replace(/\.$/, '.0')
}

export function moneyBag(minor: number, currency: string): Fields {
  const money = { __typename: 'MoneyV2', amount: amountText(minor, currency), currencyCode: currency }
  return { __typename: 'MoneyBag', shopMoney: money, presentmentMoney: money }
}

/** Minor units of an input of type `Money`: digits beyond the currency's are rounded; undefined for what is no amount. */
export function minorIn(value: unknown, currency: string): number | undefined {
  const text = String(value)
  if (!/^-?\d{1,15}(\.\d{1,12})?$/.test(text)) return undefined
  return parseDecimal(Number(text).toFixed(decimalsOf(currency)), currency)
}

/**
 * Whether something fits a search, such as `sku:'A' OR sku:"B"` or `updated_at:>='2026-01-01T00:00:00Z'`. Text is compared
 * without regard to case, as Shopify does; a field that is not listed throws, because a test that meant it would prove nothing.
 */
export function searchOf<Item>(query: unknown, fields: Record<string, (item: Item) => string[] | number>) {
  const text = typeof query === 'string' ? query.trim() : ''
  const alternatives = text === '' ? [] : text.split(/\s+OR\s+/).map(termsOf)
  return (item: Item): boolean =>
    alternatives.length === 0 || alternatives.some((terms) => terms.every((term) => fits(term, item)))

  function termsOf(part: string) {
    const terms = [...part.matchAll(/(-?)(\w+):(>=|<=|>|<)?(?:'((?:\\.|[^'\\])*)'|"((?:\\.|[^"\\])*)"|([^\s()]+))/g)]
    const rest = terms.reduce((left, [whole]) => left.replace(whole, ''), part).replaceAll(/\bAND\b|[()\s]/g, '')
    if (rest !== '') throw new Error(`The shop cannot read this search: ${part}`)
    return terms.map(([, not, field = '', comparator = '=', single, double, bare]) => {
      const read = fields[field]
      if (!read) throw new Error(`The shop cannot search by ${field}.`)
      return { not: not === '-', read, comparator, value: (single ?? double ?? bare ?? '').replaceAll(/\\(.)/g, '$1') }
    })
  }
  function fits({ not, read, comparator, value }: ReturnType<typeof termsOf>[number], item: Item): boolean {
    const found = read(item)
    if (typeof found !== 'number') {
      const wanted = value.toLowerCase()
      return not !== found.some((one) => one.toLowerCase() === wanted)
    }
    const bound = /^\d+$/.test(value) && value.length < 12 ? Number(value) : Date.parse(value)
    if (Number.isNaN(bound)) throw new Error(`The shop cannot read this instant: ${value}`)
    const isSo = {
      '=': found === bound,
      '>': found > bound,
      '>=': found >= bound,
      '<': found < bound,
      '<=': found <= bound,
    }
    return not !== isSo[comparator as keyof typeof isSo]
  }
}

/** A whole number that may be too long for JavaScript, on its way through {@link railsJson}. */
export const bigNumber = (digits: string): string => `\u0001${digits}\u0001`

/** JSON in which a {@link bigNumber} is written as a number, whatever its length. */
export const railsJson = (value: unknown): string => JSON.stringify(value).replaceAll(/"\\u0001(-?\d+)\\u0001"/g, '$1')
