/**
 * Holds a server to its OpenAPI document: every answer to any caller is compared with what the document says of that
 * operation and status. A header or a field that the document does not name is a fault, as is one that is missing.
 */
import { subscribe } from 'node:diagnostics_channel'
import type { IncomingMessage, OutgoingHttpHeaders, ServerResponse } from 'node:http'
import { closed, type Json, pointerTo, type Schemas, schemasOf } from './contract-schema.ts'

/** One answer, as it left the server. */
export interface Answered {
  method: string
  /** Below the address that the document describes. */
  path: string
  status: number
  headers: OutgoingHttpHeaders
  body: string
}

export interface Contract {
  /** What of an answer is not as the document says. */
  faultsOf(answered: Answered): string[]
  /** The same for a request that the server sends: an event, to a webhook of that name. */
  faultsOfEvent(name: string, headers: NodeJS.Dict<string | string[]>, body: string): string[]
  /** The operationId that a request is for; undefined when the document has none. */
  operationAt(method: string, path: string): string | undefined
}

export interface Held {
  contract: Contract
  faults: string[]
  /** What was answered, such as `listOrders 200`. */
  answered: Set<string>
}

/**
 * From now on compares whatever the server at a port answers.
 *
 * @param base path that the document describes, such as `/v1`; what is outside of it is not looked at
 * @param apart paths below it that are no part of the API
 * @param onFault called with each fault when it is found, beside being kept
 */
export function hold(
  port: number,
  base: string,
  document: object,
  apart: string[] = [],
  onFault: (fault: string) => void = () => {},
): Held {
  const held = { faults: [], answered: new Set<string>(), contract: contractOf(document) }
  servers.set(port, { held, base, apart, onFault })
  return held
}

interface HeldServer {
  held: Held
  base: string
  apart: string[]
  onFault: (fault: string) => void
}

const servers = new Map<number, HeldServer>()

// Node announces every request of every server in the process: nothing stands between a server and who asks it.
subscribe('http.server.request.start', (message) => {
  const { request, response } = message as { request: IncomingMessage; response: ServerResponse }
  const server = servers.get(request.socket.localPort ?? 0)
  const { method = '', url = '' } = request
  if (!server || !url.startsWith(`${server.base}/`)) return
  const { held, base, apart, onFault } = server
  // A target with what no URL has, in its query too, is at no path of the document.
  const below = url.slice(base.length)
  const path = /^[\x21\x24-\x5b\x5d-\x7e]*$/.test(below) ? (below.split('?')[0] ?? '') : below
  if (apart.some((one) => path === one || path.startsWith(`${one}/`))) return
  onBody(response, (body) => {
    const answered = { method, path, status: response.statusCode, headers: response.getHeaders(), body }
    for (const fault of held.contract.faultsOf(answered)) {
      held.faults.push(fault)
      onFault(fault)
    }
    held.answered.add(`${held.contract.operationAt(method, path)} ${response.statusCode}`)
  })
})

/** Express gives an answer in JSON to `end` as a whole. */
function onBody(response: ServerResponse, done: (body: string) => void): void {
  response.end = new Proxy(response.end, {
    apply(end, self, parts: unknown[]) {
      const [chunk] = parts
      done(chunk instanceof Uint8Array ? Buffer.from(chunk).toString() : typeof chunk === 'string' ? chunk : '')
      return Reflect.apply(end, self, parts)
    },
  })
}

const contracts = new Map<string, Contract>()
const ofDocuments = new WeakMap<object, Contract>()

/** Documents that are equal share one contract: compiling the schemas takes longer than most tests. */
export function contractOf(document: object): Contract {
  const known = ofDocuments.get(document)
  if (known) return known
  const text = JSON.stringify(document)
  const contract = contracts.get(text) ?? read(JSON.parse(text) as Json)
  contracts.set(text, contract)
  ofDocuments.set(document, contract)
  return contract
}

function read(document: Json): Contract {
  const schemas = schemasOf(closed(document))
  const paths = Object.entries((document.paths ?? {}) as Record<string, Json>).map(([template, item]) => {
    return { template, item, pattern: new RegExp(`^${template.replace(/\{\w+\}/g, '[^/]+')}$`) }
  })
  const find = (method: string, path: string) => {
    // As OpenAPI has it, a path without variables comes before one with them.
    const place = paths.find(({ template }) => template === path) ?? paths.find(({ pattern }) => pattern.test(path))
    const verb = method === 'HEAD' ? 'get' : method.toLowerCase()
    const operation = place?.item[verb] as { operationId: string; responses: Json } | undefined
    return place && operation && { ...operation, pointer: pointerTo('paths', place.template, verb) }
  }
  const faultsOf = (answered: Answered): string[] => {
    const { method, path, status } = answered
    const operation = find(method, path)
    if (!operation) return outsideFaults(schemas, document, answered)
    const { responses, pointer } = operation
    if (!Object.hasOwn(responses, status)) return ['the status is not in the document']
    return answerFaults(schemas, `${pointer}/responses/${status}`, answered)
  }
  return {
    operationAt: (method, path) => find(method, path)?.operationId,
    faultsOf: (answered) => {
      const { method, path, status, body } = answered
      return faultsOf(answered).map((fault) => `${method} ${path} ${status}: ${fault} in ${body.slice(0, 300)}`)
    },
    faultsOfEvent(name, headers, body) {
      const { pointer, value } = schemas.at(pointerTo('webhooks', name, 'post'))
      const parameters = (value.parameters ?? []) as { name: string }[]
      const missing = parameters.filter((one) => headers[one.name.toLowerCase()] === undefined)
      return [...missing.map((one) => `${one.name}: missing`), ...bodyFaults(schemas, `${pointer}/requestBody`, body)]
    },
  }
}

/** Headers that belong to HTTP and not to the API. */
const plumbing = ['content-type', 'content-length', 'cache-control', 'x-content-type-options', 'connection', 'allow']

function answerFaults(schemas: Schemas, answer: string, { method, headers, body }: Answered): string[] {
  const { pointer, value } = schemas.at(answer)
  const names = Object.keys((value.headers ?? {}) as Json)
  const known = [...plumbing, ...names.map((name) => name.toLowerCase())]
  const wrong = names.flatMap((name) => {
    const header = schemas.at(`${pointer}/headers/${name}`)
    const text = headers[name.toLowerCase()]
    if (text === undefined) return header.value.required === true ? [`${name}: missing`] : []
    const isNumber = (header.value.schema as Json).type === 'integer' && /^\d+$/.test(String(text))
    const faults = schemas.faultsOf(`${header.pointer}/schema`, isNumber ? Number(text) : text)
    return faults.map((fault) => `${name}: ${fault}`)
  })
  const type = headers['content-type']
  const streamed = Object.keys((value.content ?? {}) as Json).filter((one) => one !== 'application/json')
  const types = streamed.length === 0 ? ['application/json'] : streamed
  return [
    ...Object.keys(headers).flatMap((name) => (known.includes(name) ? [] : [`${name}: not in the document`])),
    ...wrong,
    ...(types.some((one) => type === `${one}; charset=utf-8`) ? [] : [`content-type: ${type}`]),
    ...(method === 'HEAD' || streamed.length > 0 ? [] : bodyFaults(schemas, pointer, body)),
  ]
}

function bodyFaults(schemas: Schemas, holder: string, body: string): string[] {
  let value: unknown
  try {
    value = JSON.parse(body)
  } catch {
    return ['the body is not JSON']
  }
  return schemas.faultsOf(`${schemas.at(holder).pointer}/content/application~1json/schema`, value)
}

/** At paths and methods that the document does not have there are failures only, and they look like those within. */
function outsideFaults(schemas: Schemas, document: Json, answered: Answered): string[] {
  const { status, headers } = answered
  const [[template, item] = ['', {}]] = Object.entries((document.paths ?? {}) as Record<string, Json>)
  const [verb = ''] = Object.keys(item)
  const { value: responses } = schemas.at(pointerTo('paths', template, verb, 'responses'))
  const alike = Object.hasOwn(responses, status) && status >= 400 ? String(status) : '400'
  return [
    ...(status < 400 ? ['it is no refusal'] : []),
    ...(status === 405 && headers.allow === undefined ? ['allow: missing'] : []),
    ...answerFaults(schemas, pointerTo('paths', template, verb, 'responses', alike), answered),
  ]
}
