import { type Answer, below, findList, isObject } from './answer-parts.ts'
import { candidatesFor } from './candidates.ts'
import { flagFacts } from './check-answers.ts'
import { type Dialect, valueAt } from './dialect.ts'
import type { Judged } from './dialect-check.ts'
import { asCount, asFlag, seenText } from './fields.ts'
import type { Sample } from './sample.ts'

/** Pages: where their items are, how they are asked for, and what the filters of GET /orders do. */
export function checkLists(dialect: Dialect, sample: Sample): Judged[] {
  return [
    ...checkPlaces(dialect, sample),
    ...checkPageEnd(dialect, sample),
    ...checkPaging(dialect, sample),
    ...checkFilters(dialect, sample),
  ]
}

function checkPlaces(dialect: Dialect, { products, webhooks }: Sample): Judged[] {
  const { lists, paging } = dialect
  const found: Judged[] = []
  const rows = findList(products.json, dialect)
  const value = rows ? `${rows.value.length} products` : `GET /products answered ${products.status} without a list`
  if (rows?.expected) {
    found.push({ fact: 'paging.items', verdict: 'read', value })
    found.push({ fact: 'lists.data', verdict: 'read', value: lists.data === null ? 'as records are' : value })
  } else {
    const candidates = rows ? [{ path: rows.path, value }] : []
    const hint = 'envelope.data, or lists.data where it is not null, and paging.items together are the path of the list'
    const here = `nothing, or no list, at ${below(lists.data ?? dialect.envelope.data, paging.items)}`
    found.push({ fact: 'paging.items', verdict: 'unreadable', value: here, candidates, hint })
  }
  const hooks = findList(webhooks.json, dialect, lists.webhooks ?? paging.items)
  const bare = Array.isArray(valueAt(webhooks.json, lists.data ?? dialect.envelope.data))
  if (hooks?.expected || bare)
    found.push({ fact: 'lists.webhooks', verdict: 'read', value: `${hooks?.value.length ?? 0} webhooks` })
  else {
    const candidates = hooks ? [{ path: hooks.path, value: seenText(hooks.value) }] : []
    const here = `GET /webhooks answered ${webhooks.status}, without a list there`
    found.push({ fact: 'lists.webhooks', verdict: 'unreadable', value: here, candidates })
  }
  return found
}

/** The page that holds a list, whose own fields say how long the list is. */
function pageOf(answer: Answer, dialect: Dialect): Record<string, unknown> | undefined {
  const { lists, envelope, paging } = dialect
  const expected = valueAt(answer.json, lists.data ?? envelope.data)
  if (isObject(expected) && Array.isArray(valueAt(expected, paging.items))) return expected
  return isObject(answer.json) ? answer.json : undefined
}

/** How a page says that more follow. */
function checkPageEnd(dialect: Dialect, { products }: Sample): Judged[] {
  const { paging, flags } = dialect
  const page = pageOf(products, dialect)
  const rows = findList(products.json, dialect)?.value.length ?? 0
  if (!page || rows === 0)
    return [
      { fact: 'paging.total', verdict: 'no_sample' },
      { fact: 'paging.more', verdict: 'no_sample' },
    ]
  const found: Judged[] = []
  const meant = (names: string, read: (value: unknown) => unknown) => {
    // What stands in the records is no field of the page.
    const candidates = candidatesFor([page], { names, read }, [paging.items])
    return candidates.map(({ path, value }) => ({ path, value: seenText(value) }))
  }
  const asTotal = (value: unknown) => {
    const count = asCount(value)
    return count !== undefined && count >= rows ? count : undefined
  }
  const totals = meant('total count items records', asTotal)
  if (paging.total === null) found.push({ fact: 'paging.total', verdict: 'none', candidates: totals })
  else {
    const value = valueAt(page, paging.total)
    if (asTotal(value) !== undefined) found.push({ fact: 'paging.total', verdict: 'read', value: seenText(value) })
    else
      found.push({
        fact: 'paging.total',
        verdict: 'unreadable',
        value: `${seenText(value)} is there`,
        candidates: totals,
      })
  }
  const flagged = meant('more next another last', (value) => (typeof value === 'boolean' ? value : undefined))
  if (paging.more === null) found.push({ fact: 'paging.more', verdict: 'none', candidates: flagged })
  else {
    const [own, ...words] = flagFacts(
      'paging.more',
      'flags.more',
      [valueAt(page, paging.more)],
      (value) => asFlag(flags.more)(value) !== undefined,
    )
    if (own) found.push(own.verdict === 'read' ? own : { ...own, candidates: flagged })
    found.push(...words)
  }
  return found
}

/** What the parameters of a page do. */
function checkPaging(dialect: Dialect, { products, limit, refused, second }: Sample): Judged[] {
  const { paging } = dialect
  const rows = findList(products.json, dialect)?.value ?? []
  if (limit === null) {
    const value = `GET /products gives products only without ${paging.page}=${paging.first} and ${paging.limit}=${paging.limitDefault}`
    return (['paging.page', 'paging.limit', 'paging.first', 'paging.limitMax'] as const).map((fact) => ({
      fact,
      verdict: 'unreadable',
      value,
    }))
  }
  const found: Judged[] = []
  const total = paging.total === null ? undefined : asCount(valueAt(pageOf(products, dialect), paging.total))
  const asked = `asked for ${paging.limitMax}, ${rows.length} came`
  if (refused !== undefined) {
    const value = `asked for ${paging.limitMax}, it answered ${refused}; ${limit} is taken`
    found.push({ fact: 'paging.limitMax', verdict: 'differs', value })
  } else if (rows.length === paging.limitMax) found.push({ fact: 'paging.limitMax', verdict: 'read', value: asked })
  else if (rows.length > paging.limitMax)
    found.push({ fact: 'paging.limit', verdict: 'differs', value: `${asked}: it is ignored` })
  else if (total !== undefined && total > rows.length) {
    const hint = 'the supplier cuts larger pages to this size'
    found.push({ fact: 'paging.limitMax', verdict: 'differs', value: `${asked}, of ${total}`, hint })
  } else
    found.push({ fact: 'paging.limitMax', verdict: 'no_sample', value: `all ${rows.length} products are on one page` })
  const alone = second && (findList(second.json, dialect)?.value ?? [])
  if (!second || !alone) return found
  if (alone.length > 1) {
    const value = `asked for 1 by ${paging.limit}, ${alone.length} came`
    return [{ fact: 'paging.limit', verdict: 'differs', value }, ...found]
  }
  const text = JSON.stringify(alone[0])
  const place = rows.findIndex((row) => JSON.stringify(row) === text)
  if (alone.length === 1 && place === 1) {
    const value = 'it works'
    return [
      ...(['paging.page', 'paging.limit', 'paging.first'] as const).map(
        (fact): Judged => ({ fact, verdict: 'read', value }),
      ),
      ...found,
    ]
  }
  found.push({ fact: 'paging.limit', verdict: 'read', value: 'it works' })
  if (place === -1) return found
  const hint = `either the first page is number ${paging.first + 1 - place}, or the supplier does not know the parameter ${paging.page}`
  const value = `page ${paging.first + 1} of pages of one is product ${place + 1} of the list, not the second`
  return [...found, { fact: 'paging.first', verdict: 'differs', value, hint }]
}

const FINDS_NONE = 'find its right name; null lets Quayside page through instead'

/** What the filters of GET /orders do: one that no order can pass must give none. */
function checkFilters(dialect: Dialect, { filters }: Sample): Judged[] {
  const { total } = dialect.paging
  const empty = filters.find(({ answer, none }) => none && findList(answer.json, dialect)?.value.length === 0)
  const counted = empty && total !== null ? asCount(valueAt(pageOf(empty.answer, dialect), total)) : undefined
  const verdict = (counted === 0) === dialect.paging.totalFiltered ? 'read' : 'differs'
  const value = `of a list without a record it is ${counted}`
  const ofTotal: Judged[] = counted === undefined ? [] : [{ fact: 'paging.totalFiltered', verdict, value }]
  const found = filters.map(({ name, answer, none, reference }): Judged => {
    const fact = `orders.${name}`
    const parameter = dialect.orders[name]
    if (answer.status >= 300)
      return { fact, verdict: 'differs', value: `GET /orders?${parameter}=… answered ${answer.status}` }
    const rows = findList(answer.json, dialect)?.value ?? []
    if (none && rows.length > 0) {
      const hint = 'the supplier ignores it: null lets Quayside page through instead'
      return { fact, verdict: 'differs', value: `${rows.length} orders came that it must keep out`, hint }
    }
    // A filter that finds no order keeps out the one that is not there, too.
    const isUntried = name === 'externalOrderId' && filters.every((one) => one.reference === undefined)
    if (isUntried) return { fact, verdict: 'no_sample', value: 'no order with an external reference to try it with' }
    if (reference === undefined) return { fact, verdict: 'read', value: 'it works' }
    const isFound = rows.some((row) => valueAt(row, dialect.order.externalOrderId) === reference)
    if (isFound) return { fact, verdict: 'read', value: 'it works' }
    return { fact, verdict: 'differs', value: 'an order that is there was not found by it', hint: FINDS_NONE }
  })
  return [...ofTotal, ...found]
}
