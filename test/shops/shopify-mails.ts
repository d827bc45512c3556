/**
 * What a customer of the Shopify shop reads: the mails by the template of the shop, and the order status page.
 *
 * The standard template prints tracking as copies of Shopify's own do: a single number is a link only where the fulfilment names a
 * company. What an app keeps in its own namespace is in no template: no document says that mails can read it.
 */
import { escaped } from './html.ts'
import type { ShopifyFulfilment } from './shopify-fulfilments.ts'
import type { ShopifyMetafield } from './shopify-metafields.ts'
import type { ShopifyOrder } from './shopify-orders.ts'

const TRACKING = `{% if fulfillment.tracking_numbers.size > 0 %}
  {% if fulfillment.tracking_numbers.size == 1 and fulfillment.tracking_company and fulfillment.tracking_url %}
    {{ fulfillment.tracking_company | escape }} tracking number: <a href="{{ fulfillment.tracking_url }}">{{ fulfillment.tracking_numbers.first }}</a>
  {% elsif fulfillment.tracking_numbers.size == 1 %}
    Tracking number: {{ fulfillment.tracking_numbers.first }}
  {% else %}
    {{ fulfillment.tracking_company | escape }} tracking numbers:
    {% for number in fulfillment.tracking_numbers %}
      {% if fulfillment.tracking_urls[forloop.index0] %}<a href="{{ fulfillment.tracking_urls[forloop.index0] }}">{{ number }}</a>
      {% else %}{{ number }}{% endif %}
    {% endfor %}
  {% endif %}
{% endif %}`

/** "Shipping confirmation" and "Shipping update" as a new shop has them. */
export const STANDARD_MAIL = `<p>Order {{ order.name }}</p>
${TRACKING}
{% for line in fulfillment.fulfillment_line_items %}
<p>{{ line.line_item.title | escape }} × {{ line.quantity }}</p>
{% endfor %}`

/** The same with lines of a merchant's that print the keys, as the page about Shopify shows them. */
export const mailWithKeys = (namespace: string): string => `${STANDARD_MAIL}
{% assign fields = order.metafields['${namespace}'] %}
{% for number in (1..250) %}
  {% assign field = 'keys_' | append: number %}
  {% if fields[field] != blank %}<p>{{ fields[field].value | escape | newline_to_br }}</p>{% endif %}
{% endfor %}`

/**
 * How the shop of a merchant is set up who has the keys printed in mails, in the best case: mails read what an app keeps, and none is
 * left out.
 *
 * @param namespace of the merchant's own; null: that of the app
 */
export const keysInMails = (namespace: string | null = null) => ({
  mailTemplate: mailWithKeys(namespace ?? 'app--580111--quayside'),
  mailsReadAppFields: namespace === null,
  leavesOutRepeats: false,
})

/** @param fields the metafields of the order that the template may read */
export function mailOf(
  template: string,
  order: ShopifyOrder,
  one: ShopifyFulfilment,
  fields: ShopifyMetafield[],
): string {
  const byNamespace = Map.groupBy(fields, ({ namespace }) => namespace)
  const metafields = [...byNamespace].map(([name, own]) => [
    name,
    Object.fromEntries(own.map(({ key, value }) => [key, { value }])),
  ])
  return rendered(template, {
    order: { name: order.name, metafields: Object.fromEntries(metafields) },
    fulfillment: {
      ...trackingOf(one),
      fulfillment_line_items: one.lines.map(({ line, quantity }) => ({ quantity, line_item: { title: line.name } })),
    },
  })
}

/** The order status page. Of a carrier that Shopify does not know, it shows the number as a link to its address. */
export function statusPageOf({ name, fulfilments }: ShopifyOrder): string {
  const shown = fulfilments.filter(({ status }) => status === 'SUCCESS')
  return [`<h1>${name}</h1>`, ...shown.map((one) => rendered(TRACKING, { fulfillment: trackingOf(one) }))].join('\n')
}

function trackingOf({ tracking }: ShopifyFulfilment) {
  const [first] = tracking
  return {
    tracking_company: first?.company ?? null,
    tracking_url: first?.url ?? null,
    tracking_urls: tracking.map(({ url }) => url),
    tracking_numbers: tracking.flatMap(({ number }) => number ?? []),
  }
}

/* As much of Liquid as these templates need. */

type Scope = Record<string, unknown>
type Piece = { text: string } | { put: string } | { tag: string; rest: string }

/** @throws Error at a tag or a filter that is not known here */
export function rendered(template: string, scope: Scope): string {
  const pieces = template.split(/(\{\{.*?\}\}|\{%.*?%\})/s).map((piece): Piece => {
    const inside = piece.slice(2, -2).replace(/^-|-$/g, '').trim()
    if (piece.startsWith('{{')) return { put: inside }
    if (!piece.startsWith('{%')) return { text: piece }
    const [tag = ''] = inside.split(/\s/)
    return { tag, rest: inside.slice(tag.length).trim() }
  })
  return renderedPieces(pieces, { ...scope }).replaceAll(/\n\s*\n/g, '\n')
}

function renderedPieces(pieces: Piece[], scope: Scope): string {
  let out = ''
  for (let at = 0; at < pieces.length; at += 1) {
    const piece = pieces[at] as Piece
    if ('text' in piece) out += piece.text
    else if ('put' in piece) out += printed(valueIn(piece.put, scope))
    else if (piece.tag === 'assign') {
      const [, name = '', value = ''] = /^(\w+)\s*=(.*)$/s.exec(piece.rest) ?? []
      scope[name] = valueIn(value, scope)
    } else {
      const parts = blockFrom(pieces, at)
      at += parts.reduce((sum, { body }) => sum + body.length + 1, 0)
      if (piece.tag === 'for') out += loop(piece.rest, parts[0]?.body ?? [], scope)
      else if (piece.tag === 'if') {
        const chosen = parts.find(({ tag, rest }) => tag === 'else' || isTrue(rest, scope))
        out += chosen ? renderedPieces(chosen.body, scope) : ''
      } else throw new Error(`The templates have no tag ${piece.tag}.`)
    }
  }
  return out
}

/** The parts of a block: what follows its tag, and what follows each `elsif` and `else`. */
function blockFrom(pieces: Piece[], from: number): { tag: string; rest: string; body: Piece[] }[] {
  const parts: { tag: string; rest: string; body: Piece[] }[] = []
  let depth = 0
  for (const piece of pieces.slice(from)) {
    const tag = 'tag' in piece ? piece.tag : ''
    if (/^end/.test(tag)) depth -= 1
    if (depth === 0 && parts.length > 0 && /^end/.test(tag)) return parts
    const isPart = parts.length === 0 || (depth === 1 && (tag === 'elsif' || tag === 'else'))
    if (isPart && 'tag' in piece) parts.push({ ...piece, body: [] })
    else parts.at(-1)?.body.push(piece)
    if (tag === 'if' || tag === 'for') depth += 1
  }
  throw new Error('A block of the template has no end.')
}

function loop(rest: string, body: Piece[], scope: Scope): string {
  const [, name = '', of = ''] = /^(\w+)\s+in\s+(.*)$/s.exec(rest) ?? []
  const [, from, to] = /^\((\d+)\.\.(\d+)\)$/.exec(of) ?? []
  const range = Array.from({ length: Number(to) - Number(from) + 1 || 0 }, (_, index) => Number(from) + index)
  const items = from === undefined ? (valueIn(of, scope) as unknown[]) : range
  return items
    .map((item, index) => renderedPieces(body, Object.assign(scope, { [name]: item, forloop: { index0: index } })))
    .join('')
}

const isTrue = (condition: string, scope: Scope): boolean =>
  condition.split(/\s+and\s+/).every((part) => {
    const [, left = part, operator, right = ''] = /^(.*?)\s*(==|!=|>)\s*(.*)$/s.exec(part) ?? []
    const value = valueIn(left, scope)
    if (operator === undefined) return value != null && value !== false
    const isBlank = value == null || value === '' || value === false
    const isSame = right === 'blank' ? isBlank : value === valueIn(right, scope)
    return operator === '>' ? Number(value) > Number(valueIn(right, scope)) : isSame === (operator === '==')
  })

const printed = (value: unknown): string => (value == null ? '' : String(value))

function valueIn(expression: string, scope: Scope): unknown {
  const [first = '', ...filters] = expression.split('|').map((part) => part.trim())
  return filters.reduce(
    (value, filter) => {
      const [, name = '', given = ''] = /^(\w+)(?::\s*(.*))?$/s.exec(filter) ?? []
      if (name === 'escape') return escaped(printed(value))
      if (name === 'newline_to_br') return printed(value).replaceAll('\n', '<br />\n')
      if (name === 'append') return printed(value) + printed(valueIn(given, scope))
      if (name === 'default') return value == null || value === '' ? valueIn(given, scope) : value
      throw new Error(`The templates have no filter ${name}.`)
    },
    plainValue(first, scope),
  )
}

function plainValue(text: string, scope: Scope): unknown {
  if (/^'.*'$/.test(text)) return text.slice(1, -1)
  if (/^\d+$/.test(text)) return Number(text)
  const steps = text.match(/\w+|\['[^']*'\]|\[[\w.]+\]/g) ?? []
  return steps.reduce<unknown>((value, step) => {
    const inside = step.startsWith('[') ? step.slice(1, -1) : undefined
    const name = inside === undefined ? step : plainValue(inside, scope)
    if (Array.isArray(value) && name === 'size') return value.length
    if (Array.isArray(value) && name === 'first') return value[0]
    return value == null ? undefined : (value as Scope)[String(name)]
  }, scope)
}
