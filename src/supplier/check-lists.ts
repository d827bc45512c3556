import { joined, locate, namesOf, stated } from './check-fact.ts'
import { isList, recordAnswers, wrapperOf } from './check-records.ts'
import type { Dialect } from './dialect.ts'
import type { Finding, Inspection } from './dialect-check.ts'
import { type Field, typesOf } from './openapi-document.ts'

const isFlag = ({ schema }: Field): boolean => typesOf(schema).includes('boolean') && schema.const === undefined
const isCount = ({ schema }: Field): boolean => typesOf(schema).includes('integer')

/** Pages: their parameters, and where their items, count and flag are. */
export function listFacts({ dialect, description }: Inspection): Finding[] {
  const { paging, lists, envelope } = dialect
  const products = description.operation('get', '/products')
  const place = lists.data ?? envelope.data
  const fields = products?.success && description.fields(products.success)
  const items = fields && locate(fields.filter(isList), joined(place, paging.items), isList)?.path
  const wrapper = wrapperOf(description, recordAnswers(description), envelope.data)
  const counts = fields?.filter((field) => isCount(field) || isFlag(field))
  const hooks = description.operation('get', '/webhooks')?.success
  const hookItems = joined(place, lists.webhooks ?? paging.items)
  const hookList = hooks && locate(description.fields(hooks).filter(isList), hookItems, isList)?.path
  const asked = products?.parameters.filter((one) => one.place === 'query')
  const size = locate(asked ?? [], paging.limit, ({ text }) => /page.?size|per.?page|limit/i.test(text))?.schema
  const number = locate(asked ?? [], paging.page, ({ text, schema }) => schema !== size && /page/i.test(text))?.schema
  const at = (path: string | null) => (path === null ? null : joined(place, path))
  return [
    listAt('paging.items', paging.items, items, joined(place, paging.items)),
    ...relabelled(
      namesOf(
        [
          ['paging.total', at(paging.total)],
          ['paging.more', at(paging.more)],
        ],
        counts,
        {
          'paging.total': isCount,
          'paging.more': isFlag,
        },
      ),
      paging,
    ),
    stated('lists.data', lists.data, items && placeOf(items, wrapper ?? '', dialect)),
    listAt('lists.webhooks', lists.webhooks, hookList, hookItems),
    ...namesOf([['paging.page', paging.page], ['paging.limit', paging.limit], ...searches(dialect)], asked),
    stated('paging.first', paging.first, number?.minimum ?? number?.default),
    stated('paging.limitMax', paging.limitMax, size?.maximum),
    stated('paging.limitDefault', paging.limitDefault, size?.default),
  ]
}

const searches = ({ products }: Dialect): [string, string | null][] => [
  ['products.search', products.search],
  ['products.category', products.category],
  ['products.inStock', products.inStock],
]

/** A path that was looked for as a whole and is said as the dialect writes it. */
function listAt(fact: string, dialect: string | null, found: string | undefined, expected: string): Finding {
  if (found === undefined) return { fact, dialect, verdict: 'not_said' }
  return found === expected
    ? { fact, dialect, verdict: 'agrees' }
    : { fact, dialect, verdict: 'disagrees', document: `the list is at ${found}` }
}

const relabelled = (findings: Finding[], { total, more }: Dialect['paging']): Finding[] =>
  findings.map((finding) => ({ ...finding, dialect: finding.fact === 'paging.total' ? total : more }))

/** What `lists.data` is, by where the items of a page are and where records are wrapped. */
function placeOf(items: string, wrapper: string, { lists }: Dialect): string | null {
  const isIn = (place: string) => place !== '' && items.startsWith(`${place}.`)
  const expected = lists.data ?? wrapper
  const right = expected === '' ? !isIn(wrapper) : isIn(expected)
  return right ? lists.data : isIn(wrapper) ? null : ''
}
