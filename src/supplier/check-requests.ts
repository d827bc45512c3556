import { joined, listed, locate, namesOf, stated } from './check-fact.ts'
import { eventNames } from './dialect.ts'
import type { Finding, Inspection } from './dialect-check.ts'
import { type Field, type Node, typesOf } from './openapi-document.ts'

/** What is sent: the order, the filters of the order list, the webhook. */
export function requestFacts({ dialect, description }: Inspection): Finding[] {
  const { orderRequest, orders, webhookRequest } = dialect
  const body = description.operation('post', '/orders')?.body
  const fields = body && description.fields(body)
  const asked = description.operation('get', '/orders')?.parameters.filter(({ place }) => place === 'query')
  const hook = description.operation('post', '/webhooks')?.body
  const whole = locate(fields ?? [], orderRequest.quantity, ({ schema }) => typesOf(schema).includes('integer'))
  const reference = locate(fields ?? [], orderRequest.externalOrderId, ({ schema }) => schema.maxLength !== undefined)
  const pages: [string, string][] = [
    ['paging.page', dialect.paging.page],
    ['paging.limit', dialect.paging.limit],
  ]
  const filters = Object.entries(orders).map(([key, name]): [string, string | null] => [`orders.${key}`, name])
  return [
    ...namesOf(
      Object.entries(orderRequest).map(([key, name]) => [`orderRequest.${key}`, name]),
      fields,
    ),
    required(dialect, body),
    stated('quantityMax', dialect.quantityMax, whole?.schema.maximum),
    stated('externalOrderIdMax', dialect.externalOrderIdMax, reference?.schema.maxLength),
    ...namesOf([...filters, ...pages], asked, {
      'orders.externalOrderId': ({ text }) => /extern|reference/i.test(text),
      'orders.status': ({ text }) => /status|state/i.test(text),
    }).filter(({ fact }) => fact.startsWith('orders.')),
    ...namesOf(
      Object.entries(webhookRequest).map(([key, path]) => [`webhookRequest.${key}`, path]),
      hook && description.fields(hook),
    ),
  ]
}

function required({ orderRequest, orderRequired }: Inspection['dialect'], body: Node | undefined): Finding {
  if (!body) return { fact: 'orderRequired', dialect: orderRequired, verdict: 'not_said' }
  const wanted = Array.isArray(body.required) ? body.required.map(String) : []
  const ours = orderRequired.map((field) => orderRequest[field])
  const same = wanted.length === ours.length && ours.every((name) => wanted.includes(name))
  const finding = { fact: 'orderRequired', dialect: orderRequired }
  return same
    ? { ...finding, verdict: 'agrees' }
    : { ...finding, verdict: 'disagrees', document: wanted.join(', ') || 'none' }
}

/** What comes: the names of the events, and the fields of their payloads. */
export function eventFacts({ dialect, description }: Inspection): Finding[] {
  const { event, eventId } = dialect
  const { events } = description
  const all = [...events.values()].flatMap(({ body }) => (body ? description.fields(body) : []))
  const fields: Field[] = [...new Map(all.map((field) => [field.path, field])).values()]
  const { names, ...paths } = event
  const words = Object.values(names)
  const strange = [...events.keys()].filter((name) => !words.includes(name))
  const payload: [string, string | null][] = [
    ...Object.entries(paths).map(([key, path]): [string, string | null] => [joined('event', key), path]),
    ['eventId', eventId],
  ]
  return [
    ...namesOf(payload, fields, {
      'event.keys': ({ schema }) => typesOf(schema).includes('array'),
      eventId: ({ text }) => /event.?id|delivery.?id|same in every delivery/i.test(text),
    }),
    ...eventNames.map((name): Finding => {
      const fact = { fact: `event.names.${name}`, dialect: names[name] }
      if (events.size === 0) return { ...fact, verdict: 'not_said' }
      if (names[name] === null) return { ...fact, verdict: 'not_said' }
      if (events.has(names[name])) return { ...fact, verdict: 'agrees' }
      return { ...fact, verdict: 'disagrees', document: listed(strange) }
    }),
  ]
}
