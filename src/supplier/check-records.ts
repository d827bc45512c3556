import { findList, findRecord } from './answer-parts.ts'
import { judgeField, withCandidates } from './check-fields.ts'
import { checkEvents, checkKeys, checkStatuses } from './check-orders.ts'
import { type Dialect, valueAt } from './dialect.ts'
import type { Judged } from './dialect-check.ts'
import { asCount, asId, type Read } from './fields.ts'
import { readOffer } from './offer-record.ts'
import { type FieldCheck, type FieldKind, type RecordGroup, recordFields } from './record-fields.ts'
import { readBalance, readOrder, readWebhook } from './records.ts'
import type { Sample } from './sample.ts'

/** The records of one kind that answers have. */
interface Records {
  group: RecordGroup
  /** Where they come from, for people. */
  from: string
  /** Of a list, each once. */
  rows: unknown[]
  /** The same or others, each by a request of its own. */
  single: unknown[]
  /** Why there are none: `no order yet`. */
  absent: string
}

/** Products, orders, the balance and webhooks, field by field. */
export function checkRecords(dialect: Dialect, sample: Sample): Judged[] {
  const products = rowsOf(sample.products.json, dialect)
  const id = products[0] === undefined ? undefined : asId(valueAt(products[0], dialect.product.id))
  const product =
    sample.product && sample.product.status < 300 ? findRecord(sample.product.json, dialect, id) : undefined
  const single = sample.order
    .filter(({ status }) => status < 300)
    .flatMap(({ json }) => findRecord(json, dialect)?.value ?? [])
  const balance = findRecord(sample.balance.json, dialect)?.value
  const hooks = rowsOf(sample.webhooks.json, dialect, dialect.lists.webhooks ?? dialect.paging.items)
  const listed = rowsOf(sample.orders.json, dialect)
  const groups: Records[] = [
    {
      group: 'product',
      from: 'products',
      rows: products,
      single: product ? [product.value] : [],
      absent: 'no product',
    },
    { group: 'order', from: 'orders', rows: listed, single, absent: 'no order yet' },
    {
      group: 'balance',
      from: 'the balance',
      rows: [],
      single: balance === undefined ? [] : [balance],
      absent: 'no balance',
    },
    { group: 'webhook', from: 'webhooks', rows: hooks, single: [], absent: 'no webhook yet' },
  ]
  const found = groups.flatMap((one) => checkGroup(dialect, one))
  return [
    ...found,
    ...checkWriting(dialect, found),
    ...checkStatuses(dialect, [...single, ...listed]),
    ...checkKeys(dialect, single.length > 0 ? single : listed),
    ...checkEvents(dialect, hooks),
    ...checkSingleProduct(sample, dialect),
    ...checkQuantity(dialect, balance),
  ]
}

function rowsOf(json: unknown, dialect: Dialect, items?: string): unknown[] {
  const bare = valueAt(json, dialect.lists.data ?? dialect.envelope.data)
  return Array.isArray(bare) ? bare : (findList(json, dialect, items)?.value ?? [])
}

/** Settings that `checkKeys` and `checkStatuses` judge in the one order that can show them. */
const BY_STATUS = ['keys', 'failureCode', 'failureMessage']

function checkGroup(dialect: Dialect, { group, from, rows, single, absent }: Records): Judged[] {
  const records = [...single, ...rows]
  const paths: Record<string, string | null> = { ...dialect[group] }
  const fields = Object.entries<FieldCheck | undefined>(recordFields[group]).filter(([key]) => !BY_STATUS.includes(key))
  if (records.length === 0) {
    return fields.map(([key]) => ({ fact: `${group}.${key}`, verdict: 'no_sample', value: absent }))
  }
  const found = fields.map(([key, check]) => {
    const path = paths[key] ?? null
    return check === undefined ? [] : [judgeField(dialect, { fact: `${group}.${key}`, path, check, records, from })]
  })
  const facts = found.flat()
  const claimed = facts.flatMap(({ fact, verdict }) =>
    verdict === 'read' ? [paths[fact.slice(group.length + 1)] ?? ''] : [],
  )
  return [
    ...facts.map((fact) => withCandidates(dialect, group, fact, rows.length > 0 ? rows : single, claimed)),
    ...wholeRecords(dialect, group, records, facts),
  ]
}

/** The readers of the live path have the last word: what they refuse is a fault, whatever was found field by field. */
function wholeRecords(dialect: Dialect, group: RecordGroup, records: unknown[], facts: Judged[]): Judged[] {
  const read: Record<RecordGroup, (record: unknown, dialect: Dialect) => Read<unknown>> = {
    product: readOffer,
    order: readOrder,
    balance: readBalance,
    webhook: readWebhook,
  }
  const refused = records.map((record) => read[group](record, dialect)).filter((result) => !result.ok)
  const [first] = refused
  if (first === undefined || facts.some(({ verdict }) => verdict === 'unreadable')) return []
  const value = `${first.seen} is there, in ${refused.length} of ${records.length}`
  return [{ fact: first.setting, verdict: 'unreadable', value }]
}

/** Settings that say how fields of several records are written, judged by what could be read of them. */
function checkWriting({ money }: Dialect, facts: Judged[]): Judged[] {
  const readBy = (setting: FieldKind['setting']) =>
    facts.find(({ fact, verdict, value }) => {
      const [group = '', key = ''] = fact.split('.')
      const check = recordFields[group as RecordGroup] as Record<string, FieldCheck | undefined> | undefined
      return verdict === 'read' && value !== 'null' && check?.[key]?.kind.setting === setting
    })
  const settings = [
    ['money.representation', 'money'],
    ['instants', 'instants'],
    ['flags.available', 'flags'],
  ] as const
  const found = settings.map(([fact, setting]): Judged => {
    const by = readBy(setting)
    const value = by?.value ?? 'nothing that is written so could be read'
    return { fact, verdict: by ? 'read' : 'no_sample', value }
  })
  const currency = facts.find(({ fact, verdict }) => fact === 'product.currency' && verdict === 'read')?.value
  if (currency === undefined) return found
  const verdict = currency === JSON.stringify(money.currency) ? 'read' : 'differs'
  return [...found, { fact: 'money.currency', verdict, value: `a product is in ${currency}` }]
}

function checkSingleProduct({ product }: Sample, { product: paths }: Dialect): Judged[] {
  if (!product || product.status < 300) return []
  return [{ fact: 'product.id', verdict: 'differs', value: `GET /products/{${paths.id}} answered ${product.status}` }]
}

/** The balance may state how many units an order may have. */
function checkQuantity({ balance, quantityMax }: Dialect, record: unknown): Judged[] {
  const stated = balance.quantityMax === null ? undefined : asCount(valueAt(record, balance.quantityMax))
  if (stated === undefined) return []
  return [
    { fact: 'quantityMax', verdict: stated < quantityMax ? 'differs' : 'read', value: `the balance says ${stated}` },
  ]
}
