import { isObject, placesIn } from './answer-parts.ts'
import { judgeField, withCandidates } from './check-fields.ts'
import { type Dialect, eventNames, valueAt } from './dialect.ts'
import type { Judged } from './dialect-check.ts'
import { seenText } from './fields.ts'
import { recordFields } from './record-fields.ts'

/** Every status word: those that orders have, and those that only the dialect has. */
export function checkStatuses({ order, orderStatuses }: Dialect, orders: unknown[]): Judged[] {
  const words = orders.map((record) => valueAt(record, order.status)).filter((value) => typeof value === 'string')
  const seen = new Map<string, number>()
  for (const word of words) seen.set(word, (seen.get(word) ?? 0) + 1)
  const mapped = Object.keys(orderStatuses).map((word): Judged => {
    const fact = `orderStatuses.${word}`
    const count = seen.get(word)
    return count === undefined
      ? { fact, verdict: 'no_sample', value: orders.length === 0 ? 'no order yet' : 'no order has this status' }
      : { fact, verdict: 'read', value: count === 1 ? 'an order has it' : `${count} orders have it` }
  })
  const hint = 'say what it means in orderStatuses: open, completed, failed or refunded'
  const others = [...seen.keys()].filter(
    (word) => !Object.hasOwn(orderStatuses, word) && seenText(word) === JSON.stringify(word),
  )
  return [
    ...mapped,
    ...others.map(
      (word): Judged => ({
        fact: `orderStatuses.${word}`,
        verdict: 'differs',
        value: 'a word that is not mapped',
        hint,
      }),
    ),
  ]
}

/** The keys of a completed order, and the reason of a failed one. Of a key nothing is shown but that it is there. */
export function checkKeys(dialect: Dialect, all: unknown[]): Judged[] {
  const { order, orderStatuses } = dialect
  const inState = (states: string[]) =>
    all.filter((record) => states.includes(orderStatuses[String(valueAt(record, order.status))] ?? ''))
  const none = (state: string) => (all.length === 0 ? 'no order yet' : `no ${state} order yet`)
  const completed = inState(['completed'])
  const found: Judged[] = []
  for (const key of ['failureCode', 'failureMessage'] as const) {
    const check = recordFields.order[key]
    const failed = inState(['failed'])
    const fact = `order.${key}`
    if (failed.length === 0 || !check)
      found.push({ fact, verdict: order[key] === null ? 'none' : 'no_sample', value: none('failed') })
    else
      found.push(
        withCandidates(
          dialect,
          'order',
          judgeField(dialect, { fact, path: order[key], check, records: failed, from: 'failed orders' }),
          failed,
          [],
        ),
      )
  }
  if (completed.length === 0) {
    const value = none('completed')
    return [
      ...found,
      { fact: 'order.keys', verdict: 'no_sample', value },
      { fact: 'order.keyText', verdict: 'no_sample', value },
    ]
  }
  const keys = valueAt(completed[0], order.keys)
  if (!Array.isArray(keys) || keys.length === 0) {
    const lists = [...placesIn(completed)].filter(([, [value]]) => Array.isArray(value) && value.length > 0)
    const candidates = lists.map(([path, [value]]) => ({ path, value: seenText(value) }))
    return [
      ...found,
      {
        fact: 'order.keys',
        verdict: 'unreadable',
        value: `a completed order has ${Array.isArray(keys) ? 'an empty list' : shape(keys)} there`,
        candidates,
      },
    ]
  }
  found.push({ fact: 'order.keys', verdict: 'read', value: keys.length === 1 ? 'a key' : `${keys.length} keys` })
  const texts = keys.map((key) => valueAt(key, order.keyText ?? ''))
  if (texts.every((text) => typeof text === 'string' && text !== '')) {
    return [...found, { fact: 'order.keyText', verdict: 'read', value: 'the text of each key' }]
  }
  const inside = isObject(keys[0]) ? [...placesIn([keys[0]])].filter(([, [value]]) => typeof value === 'string') : []
  const candidates = inside.map(([path]) => ({ path, value: 'a text' }))
  const hint = typeof keys[0] === 'string' ? { hint: 'a key is plain text: null' } : {}
  return [
    ...found,
    { fact: 'order.keyText', verdict: 'unreadable', value: `${shape(texts[0])} is no text`, candidates, ...hint },
  ]
}

const shape = (value: unknown): string =>
  typeof value === 'object' || value === undefined ? seenText(value) : `a ${typeof value}`

/** Our words for the events that webhooks are registered for. */
export function checkEvents({ webhook, event }: Dialect, hooks: unknown[]): Judged[] {
  const words = new Set(hooks.flatMap((record) => valueAt(record, webhook.events) ?? []))
  return eventNames.flatMap((name): Judged[] => {
    const word = event.names[name]
    return word !== null && words.has(word)
      ? [{ fact: `event.names.${name}`, verdict: 'read', value: 'a webhook is registered for it' }]
      : []
  })
}
