import { listed, locate, namesOf, stated } from './check-fact.ts'
import type { Dialect } from './dialect.ts'
import type { Finding, Inspection } from './dialect-check.ts'
import { asNode, type Description, type Field, type Node, typesOf, valuesOf } from './openapi-document.ts'

export const isList = ({ schema }: Field): boolean => typesOf(schema).includes('array')

/** The envelope, the records in it, and how money and instants are written there. */
export function recordFacts({ dialect, description }: Inspection): Finding[] {
  const { envelope, product, order, balance, webhook } = dialect
  const answer = (path: string, method: 'get' | 'post' = 'get') => description.operation(method, path)?.success
  const answers = recordAnswers(description)
  const wrapper = wrapperOf(description, answers, envelope.data)
  const fields = (schema: Node | undefined): Field[] | undefined => schema && below(description.fields(schema), wrapper)
  const [products, orders] = [fields(answer('/products/{}')), fields(answer('/orders/{}'))]
  const keys = locate(orders ?? [], order.keys, isList)
  const cost = locate(
    products ?? [],
    product.cost,
    (field) => /price|cost/i.test(field.text) && representation(field) !== undefined,
  )
  const words = locate(orders ?? [], order.status, ({ schema }) => valuesOf(schema).length > 2)
  const dated = [...(orders ?? []), ...(products ?? [])]
  const made = locate(dated, order.createdAt, (field) => instantsIn(field) !== undefined)
  return [
    ...namesOf([['envelope.success', envelope.success]], flags(description, answers), {
      'envelope.success': ({ schema }) => schema.const === true,
    }),
    stated('envelope.data', envelope.data, wrapper),
    ...group('product', product, products),
    ...group('order', { ...order, keyText: undefined }, orders, {
      'order.failureCode': coded,
      'order.currency': coded,
    }),
    stated('order.keyText', order.keyText, keys && textIn(description, keys)),
    ...group('balance', balance, fields(answer('/balance'))),
    ...group('webhook', webhook, fields(answer('/webhooks', 'post'))),
    stated('money.representation', dialect.money.representation, cost && representation(cost)),
    stated('money.currency', dialect.money.currency, currencyIn(products ?? [])),
    stated('instants', dialect.instants, made && instantsIn(made)),
    ...statusFacts(dialect, words),
  ]
}

/** What answers that are one record look like. */
export const recordAnswers = (description: Description): Node[] =>
  ['/products/{}', '/balance', '/orders/{}']
    .map((path) => description.operation('get', path)?.success)
    .filter((schema) => schema !== undefined)

const coded = ({ schema }: Field): boolean => valuesOf(schema).length === 1

export function group(
  name: string,
  paths: Record<string, string | null | undefined>,
  fields: Field[] | undefined,
  plain: Record<string, (field: Field) => boolean> = {},
): Finding[] {
  const facts = Object.entries(paths).flatMap(([key, path]): [string, string | null][] =>
    path === undefined ? [] : [[`${name}.${key}`, path]],
  )
  return namesOf(facts, fields, plain)
}

/** Where the answers hold their record: where the dialect says, if that is an object in all, else what they share. */
export function wrapperOf(description: Description, answers: Node[], data: string): string | undefined {
  const objects = answers.map((schema) =>
    description.fields(schema).filter((field) => Object.keys(asNode(field.schema.properties)).length > 0),
  )
  const [first, ...rest] = objects
  if (!first) return undefined
  const common = first.filter(({ path }) => rest.every((one) => one.some((other) => other.path === path)))
  if (data !== '' && common.some(({ path }) => path === data)) return data
  const top = common.filter(({ path }) => !path.includes('.'))
  return answers.length > 1 && top.length === 1 ? top[0]?.path : ''
}

/** Fields inside a wrapper, by their path from there. */
const below = (fields: Field[], wrapper = ''): Field[] =>
  wrapper === ''
    ? fields
    : fields.flatMap((field) =>
        field.path.startsWith(`${wrapper}.`) ? [{ ...field, path: field.path.slice(wrapper.length + 1) }] : [],
      )

/** Flags that every success carries. */
function flags(description: Description, answers: Node[]): Field[] | undefined {
  const [first, ...rest] = answers.map((schema) =>
    description
      .fields(schema)
      .filter(({ schema: field }) => typesOf(field).includes('boolean') || field.const === true),
  )
  return first?.filter(({ path }) => rest.every((one) => one.some((other) => other.path === path)))
}

/** The path of the text inside one key; null when a key is text itself. */
function textIn(description: Description, { schema }: Field): string | null | undefined {
  const item = description.resolve(schema.items)
  if (typesOf(item).includes('string')) return null
  return description.fields(item).find((field) => typesOf(field.schema).includes('string'))?.path
}

function representation({ schema }: Field): Dialect['money']['representation'] | undefined {
  const [type] = typesOf(schema)
  return ({ string: 'decimal', number: 'number', integer: 'minor' } as const)[type ?? '']
}

function currencyIn(fields: Field[]): string | undefined {
  const values = fields.flatMap(({ schema }) => valuesOf(schema)).filter((value) => /^[A-Z]{3}$/.test(String(value)))
  return values.length === 1 ? String(values[0]) : undefined
}

function instantsIn({ schema, text }: Field): Dialect['instants'] | undefined {
  if (schema.format === 'date-time') return 'iso'
  if (!typesOf(schema).includes('integer') || !/unix|epoch|timestamp/i.test(text)) return undefined
  return /milliseconds/i.test(text) ? 'epoch_ms' : 'epoch_s'
}

/** Every status word of the dialect, and every one of the document that the dialect leaves out: it counts as open. */
function statusFacts({ orderStatuses }: Dialect, field: Field | undefined): Finding[] {
  const words = field ? valuesOf(field.schema).filter((value) => typeof value === 'string') : []
  const unmapped = words.filter((word) => !Object.hasOwn(orderStatuses, word))
  const mapped = Object.entries(orderStatuses).map(([word, meaning]): Finding => {
    const fact = { fact: `orderStatuses.${word}`, dialect: meaning }
    if (words.length === 0) return { ...fact, verdict: 'not_said' }
    if (words.includes(word)) return { ...fact, verdict: 'agrees' }
    return { ...fact, verdict: 'disagrees', document: listed(unmapped) }
  })
  const missing = unmapped.map((word): Finding => {
    return { fact: `orderStatuses.${word}`, dialect: null, verdict: 'disagrees', document: 'a word that is not mapped' }
  })
  return [...mapped, ...missing]
}
