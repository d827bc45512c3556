import { type Dialect, valueAt } from '../dialect/dialect.ts'
import { formatDecimal } from '../domain/money.ts'
import {
  asAmount,
  asCount,
  asCurrency,
  asDescription,
  asFlag,
  asId,
  asImage,
  asInstant,
  asMoney,
  asText,
} from '../supplier/records.ts'

/* The fields of the supplier's records for `dialect check`: the kind of each and its usual names. */

export type RecordGroup = 'product' | 'order' | 'balance' | 'webhook'

/** The kind of a value, in words, and the setting that says how such a value is written. */
export interface FieldKind {
  what: string
  /** @returns a reader of a value and the object that contains it */
  read: (dialect: Dialect) => (value: unknown, around?: unknown) => unknown
  setting?: 'money' | 'instants' | 'flags'
}

export interface FieldCheck {
  kind: FieldKind
  /** Usual names of the field, in single words. */
  names: string
  /** True: a record cannot be used without the field, so a mapped field that no record has is a fault. */
  required?: boolean
  unique?: boolean
}

const id: FieldKind = { what: 'an id', read: () => asId }
const text: FieldKind = { what: 'a text', read: () => asText }
const description: FieldKind = { what: 'a text', read: () => asDescription }
const image: FieldKind = { what: 'an http or https address', read: () => asImage }
const count: FieldKind = { what: 'a whole number', read: () => asCount }
const currency: FieldKind = { what: 'a currency code such as EUR', read: () => asCurrency }
const money = { what: 'an amount', setting: 'money' } as const
const amount: FieldKind = { ...money, read: (dialect) => asAmount(dialect, dialect.money.currency) }
const signed: FieldKind = { ...money, read: (dialect) => asMoney(dialect, dialect.money.currency) }
const flag: FieldKind = { what: 'yes or no', read: ({ flags }) => asFlag(flags.available), setting: 'flags' }
const list: FieldKind = { what: 'a list', read: () => (value) => (Array.isArray(value) ? value : undefined) }

/** From 2001 to 2100: an instant that is read in the wrong unit lies far outside. */
const PLAUSIBLE = { from: 978_307_200_000, to: 4_102_444_800_000 }

const instant: FieldKind = {
  what: 'an instant',
  read: (dialect) => (value) => {
    const at = asInstant(dialect)(value)
    return at !== undefined && at >= PLAUSIBLE.from && at < PLAUSIBLE.to ? at : undefined
  },
  setting: 'instants',
}

/** Every field that a GET may show. `order.keyText` is left out: it is inside of `order.keys`. */
export const recordFields: { [G in RecordGroup]: Partial<Record<keyof Dialect[G], FieldCheck>> } = {
  product: {
    id: { kind: id, names: 'id uuid nr no number code product', required: true, unique: true },
    sku: { kind: id, names: 'sku article code label ref', required: true, unique: true },
    name: { kind: text, names: 'name title description', required: true },
    category: { kind: text, names: 'category genre group type shelf' },
    description: { kind: description, names: 'description details about text body summary' },
    image: { kind: image, names: 'image picture photo cover thumbnail url' },
    cost: { kind: amount, names: 'cost price vip api net wholesale amount', required: true },
    basePrice: { kind: amount, names: 'base price list regular retail rrp msrp' },
    cashback: { kind: amount, names: 'cashback back bonus reward' },
    currency: { kind: currency, names: 'currency unit iso' },
    localStock: { kind: count, names: 'stock local own quantity qty count' },
    providerStock: { kind: count, names: 'stock provider supplier external theirs' },
    available: {
      kind: flag,
      names: 'available availability buyable sellable purchasable active stock',
      required: true,
    },
    origin: { kind: text, names: 'origin source fulfillment fulfilment served' },
    updatedAt: { kind: instant, names: 'updated modified changed touched at date time' },
  },
  order: {
    id: { kind: id, names: 'id uuid nr no number code order', required: true, unique: true },
    externalOrderId: { kind: text, names: 'external reference ref your custom client order id', required: true },
    productId: { kind: id, names: 'product article item id sku', required: true },
    quantity: { kind: count, names: 'quantity qty count units pieces', required: true },
    status: { kind: id, names: 'status state phase', required: true },
    amount: { kind: amount, names: 'amount total sum price cost charged' },
    currency: { kind: currency, names: 'currency unit iso' },
    keys: { kind: list, names: 'keys codes licences licenses serials goods items', required: true },
    failureCode: { kind: text, names: 'failure error reason code' },
    failureMessage: { kind: text, names: 'failure error reason message text' },
    createdAt: { kind: instant, names: 'created made placed ordered at date time' },
    updatedAt: { kind: instant, names: 'updated modified changed touched at date time' },
  },
  balance: {
    amount: { kind: signed, names: 'balance amount funds credit available', required: true },
    currency: { kind: currency, names: 'currency unit iso' },
    tier: { kind: id, names: 'tier vip level club' },
    requestsPerMinute: { kind: count, names: 'requests per minute rpm rate limit pace' },
    quantityMax: { kind: count, names: 'quantity max pieces order limit' },
  },
  webhook: {
    id: { kind: id, names: 'id uuid nr no number', required: true, unique: true },
    url: { kind: text, names: 'url address target endpoint', required: true },
    events: { kind: list, names: 'events topics types subscriptions', required: true },
    createdAt: { kind: instant, names: 'created made registered at date time' },
  },
}

/** Returns a dialect setting, and what to set it to, so that all `values` could be read; undefined when there is none. */
export function otherWriting(
  kind: FieldKind,
  dialect: Dialect,
  values: unknown[],
  arounds: unknown[] = [],
): { setting: string; to: string } | undefined {
  const reads = (other: Dialect) =>
    values.every((value, index) => kind.read(other)(value, arounds[index]) !== undefined)
  if (kind.setting === 'money') {
    const { currency } = dialect.money
    const scaled = scaledIn(values[0]) ?? []
    const fits = (representation: Dialect['money']['representation']): string[] => {
      const other = { ...dialect, money: { ...dialect.money, representation } }
      // A whole number may be units or minor units: a person decides by the amounts.
      const minor = reads(other) ? kind.read(other)(values[0]) : undefined
      if (typeof minor !== 'number') return []
      return [`${JSON.stringify(representation)} (${formatDecimal({ minor, currency })} ${currency})`]
    }
    const usual = (['decimal', 'number', 'minor', ...scaled] as const).flatMap(fits)
    const fitting = usual.length === 0 ? fits('number_or_decimal') : usual
    return fitting.length === 0 ? undefined : { setting: 'money.representation', to: fitting.join(' or ') }
  }
  if (kind.setting === 'instants') {
    const to = (['iso', 'epoch_s', 'epoch_ms'] as const).find((instants) => reads({ ...dialect, instants }))
    return to && { setting: 'instants', to: JSON.stringify(to) }
  }
  if (kind.setting !== 'flags') return undefined
  const counts = values.map(asCount)
  if (counts.every((count) => count !== undefined) && counts.some((count) => count > 1))
    return { setting: 'flags.available', to: '"quantity"' }
  const words = flagWordsIn(values)
  return words === undefined ? undefined : { setting: 'flags.available', to: words }
}

/** Reads an object of an amount and an exponent as a setting. The sign of the exponent says what the exponent counts. */
function scaledIn(value: unknown): (Dialect['money']['representation'] & object)[] | undefined {
  const nameIn = (names: string[]) => names.find((name) => valueAt(value, name) !== undefined)
  const amount = nameIn(['amount', 'value', 'units', 'minor'])
  const exponent = nameIn(['exponent', 'scale', 'decimals', 'precision'])
  if (amount === undefined || exponent === undefined) return undefined
  return [{ amount, exponent, counts: Number(valueAt(value, exponent)) < 0 ? 'power_of_ten' : 'decimals' }]
}

/** A currency with two decimals, one with three, and one without decimals. */
const CURRENCIES = ['EUR', 'KWD', 'JPY']

/** Whether a value can be read in any writing: its path is then found even if the dialect has the wrong writing too. */
export const inAnyWriting = (kind: FieldKind, dialect: Dialect) => (value: unknown) => {
  if (kind.read(dialect)(value) !== undefined) return true
  const others = CURRENCIES.map((currency) =>
    otherWriting(kind, { ...dialect, money: { ...dialect.money, currency } }, [value]),
  )
  return others.some((other) => other !== undefined && !other.to.includes(UNKNOWN)) ? true : undefined
}

/** A placeholder for a meaning that a person must fill in. */
const UNKNOWN = 'true or false'

const YES = /^(y|yes|true|t|1|on|ok|success|available|in.?stock|active)$/i
const NO = /^(n|no|false|f|0|off|error|fail(ed|ure)?|unavailable|out.?of.?stock|sold.?out|inactive)$/i

const WORDS_MAX = 6

/**
 * Returns the words of some values as `flags` takes them. The meaning of an unusual word is left to a person.
 *
 * @returns undefined when the values are no such words, `null` when the values are JSON true and false
 */
export function flagWordsIn(values: unknown[]): string | undefined {
  if (values.length === 0) return undefined
  if (values.every((value) => typeof value === 'boolean')) return 'null'
  if (values.some((value) => typeof value === 'object' || String(value).length > 40)) return undefined
  const words = [...new Set(values.map(String))]
  if (words.length > WORDS_MAX) return undefined
  const meaning = (word: string) => (YES.test(word) ? 'true' : NO.test(word) ? 'false' : UNKNOWN)
  const pairs = words.map((word) => `${JSON.stringify(word)}: ${meaning(word)}`)
  // Both meanings are needed, and a sample may have one of them only.
  for (const one of ['true', 'false']) if (!pairs.some((pair) => pair.endsWith(one))) pairs.push(`"…": ${one}`)
  return `{${pairs.join(', ')}}`
}
