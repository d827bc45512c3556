import { locate, namesOf, stated } from './check-fact.ts'
import type { Dialect } from './dialect.ts'
import type { Finding, Inspection } from './dialect-check.ts'
import type { Description, Field, Operation } from './openapi-document.ts'

/** The headers of requests and answers, and what they count. */
export function headerFacts({ dialect, description, seen }: Inspection): Finding[] {
  const { headers } = dialect
  const order = description.operation('post', '/orders')
  const key =
    seen.keyHeader ?? (description.keyHeaders.length === 0 ? undefined : keyHeader(description, headers.apiKey))
  const inOrder = order?.parameters.filter(({ place, path }) => place === 'header' && path !== key)
  const once = locate(inOrder ?? [], headers.idempotencyKey, ({ text }) => /idempot|remember/i.test(text))
  const answered = answerHeaders(description)
  const reset = locate(answered, headers.rateReset, ({ text }) => /reset|are back/i.test(text))
  return [
    stated('headers.apiKey', headers.apiKey, key),
    ...namesOf([['headers.idempotencyKey', headers.idempotencyKey]], inOrder),
    ...namesOf(
      [
        ['headers.requestId', headers.requestId],
        ['headers.rateLimit', headers.rateLimit],
        ['headers.rateRemaining', headers.rateRemaining],
        ['headers.rateReset', headers.rateReset],
        ['headers.retryAfter', headers.retryAfter],
      ],
      answered,
    ),
    stated('rateResetUnit', dialect.rateResetUnit, reset && unitOfReset(reset.text)),
    stated('idempotencyMemorySeconds', dialect.idempotencyMemorySeconds, once && secondsIn(once.text)),
    stated(
      'openapiNeedsKey',
      dialect.openapiNeedsKey,
      seen.needsKey ?? description.operation('get', '/openapi')?.secured,
    ),
  ]
}

const keyHeader = ({ keyHeaders }: Description, name: string): string | undefined =>
  keyHeaders.includes(name) ? name : keyHeaders[0]

/** Every header of any answer, once. */
function answerHeaders(description: Description): Field[] {
  const operations = (['/products', '/products/{}', '/balance', '/orders', '/orders/{}', '/webhooks'] as const).flatMap(
    (path) => [description.operation('get', path), description.operation('post', path)],
  )
  const all = operations.flatMap((one) => one?.answers.flatMap(({ headers }) => headers) ?? [])
  return [...new Map(all.map((header) => [header.path, header])).values()]
}

function unitOfReset(text: string): Dialect['rateResetUnit'] | undefined {
  if (/\b(until|left|remaining)\b/i.test(text)) return 'left_s'
  if (/milliseconds/i.test(text)) return 'epoch_ms'
  return /unix|epoch|timestamp/i.test(text) ? 'epoch_s' : undefined
}

const SECONDS: Record<string, number> = { second: 1, minute: 60, hour: 3_600, day: 86_400 }

/** The only length of time in a sentence. */
function secondsIn(text: string): number | undefined {
  const matches = [...text.matchAll(/\b(\d+)[ -](second|minute|hour|day)s?\b/gi)]
  const [, count, unit = ''] = matches[0] ?? []
  return matches.length === 1 ? Number(count) * (SECONDS[unit.toLowerCase()] ?? Number.NaN) : undefined
}

/** How deliveries are signed, as far as the document describes what it sends. */
export function signatureFacts({ dialect, description }: Inspection): Finding[] {
  const { signature } = dialect
  const headers = deliveryHeaders([...description.events.values()])
  const signed = locate(headers, signature.header, ({ text }) => /sign|hmac/i.test(text))
  const text = signed?.text ?? ''
  const inside = /(?:^|\s)([a-z]+)=<[^<>]*>(\S)\S*<signature>/.exec(text)
  const others = headers.filter((header) => header !== signed)
  const named = signature.timestamp.in === 'header' ? signature.timestamp.header : null
  const dated = inside ? undefined : locate(others, named, (field) => /time/i.test(field.text))
  const layout = /([^\s,;<>]*)<signature>/.exec(text)
  const timestamp = inside ? { in: 'signature', field: inside[1] } : dated && { in: 'header', header: dated.path }
  const ids = others.filter((header) => header !== dated)
  return [
    ...namesOf([['signature.header', signature.header]], headers.length === 0 ? undefined : [signed ?? headers].flat()),
    stated('signature.encoding', signature.encoding, /\b(base64url|base64|hex)\b/i.exec(text)?.[1]?.toLowerCase()),
    stated('signature.prefix', signature.prefix, layout?.[1]),
    stated('signature.separator', signature.separator ?? null, layout ? (inside?.[2] ?? null) : undefined),
    stated('signature.timestamp', signature.timestamp, timestamp),
    stated('signature.timestampUnit', signature.timestampUnit, unitIn(inside ? text : dated?.text)),
    ...namesOf([['signature.deliveryIdHeader', signature.deliveryIdHeader]], ids, {
      'signature.deliveryIdHeader': (field) => /\bid\b|message|every attempt/i.test(field.text),
    }),
  ]
}

function deliveryHeaders(events: Operation[]): Field[] {
  const all = events.flatMap(({ parameters }) => parameters.filter(({ place }) => place === 'header'))
  return [...new Map(all.map((header) => [header.path, header])).values()]
}

function unitIn(text = ''): Dialect['signature']['timestampUnit'] | undefined {
  if (/milliseconds/i.test(text)) return 'ms'
  return /seconds/i.test(text) ? 's' : undefined
}
