/** Whether a supplier can be used with what a person gave, before anything is written: the cause, and what to correct. */

import type { Dialect } from '../dialect/dialect.ts'
import type { SupplierOffer } from '../domain/supplier.ts'
import { Failure, messageOf } from '../errors.ts'
import { Unreadable } from '../supplier/unreadable.ts'
import { commandLine } from './invocation.ts'
import type { SupplierAccess } from './product-sample.ts'

/** What a person can correct, or do instead. */
export type Correction = 'key' | 'address' | 'dialect' | 'again' | 'stop'

/** Why the supplier cannot be used. */
export interface AccessFault {
  /** What is most likely wrong. */
  correct: Correction
  /** The cause, and what to do about it. */
  message: string
}

/** Three products, or why there are none. */
export type SupplierTry = { products: SupplierOffer[] } | { fault: AccessFault }

const FITTING = 'See docs/fitting-a-supplier.md'

/** One sentence for each cause. @param error what reading three products threw */
export function accessFault(error: unknown, { baseUrl, dialect }: SupplierAccess): AccessFault {
  const message = messageOf(error)
  const what = message.replace(/^the supplier /, '')
  const reason = error instanceof Failure ? error.reason : undefined
  switch (reason) {
    case 'unauthorized': {
      const where = `It was sent in the header ${dialect.headers.apiKey}, as the dialect ${dialect.name} says.`
      return { correct: 'key', message: `${message}. Check the key. ${where}` }
    }
    case 'unreachable':
    case 'no_answer': {
      const check = 'Check the address, and that this machine may connect to it.'
      return { correct: 'address', message: `${baseUrl} does not answer: it ${inWords(what)}. ${check}` }
    }
    case 'unexpected_status':
      if (!message.includes('answered 404')) return otherDialect(baseUrl, what, dialect)
      return noApi(baseUrl, what)
    case 'redirect':
    case 'not_found':
      return noApi(baseUrl, what)
    case 'unreadable':
      if (!(error instanceof Unreadable)) return noApi(baseUrl, what)
      return { correct: 'dialect', message: unreadableText(error, dialect.name) }
    case 'cost': {
      const check = `${FITTING}: money in the dialect ${dialect.name} says how amounts are written.`
      return { correct: 'dialect', message: `${message}. ${check}` }
    }
    case 'empty':
      return { correct: 'key', message: `${message}. May this key see any?` }
    default:
      return { correct: 'again', message: `${baseUrl}: ${message}. Try again later.` }
  }
}

/** What the usual network errors say. */
const NETWORK_ERRORS: Record<string, string> = {
  ECONNREFUSED: 'nothing listens there',
  ENOTFOUND: 'there is no such name',
  EAI_AGAIN: 'the name cannot be looked up now',
  UND_ERR_CONNECT_TIMEOUT: 'nothing takes the connection',
  timeout: 'no answer in time',
}

function inWords(what: string): string {
  const [code = ''] = /\w+$/.exec(what) ?? []
  const words = NETWORK_ERRORS[code]
  return words === undefined ? what : `${what} (${words})`
}

function noApi(baseUrl: string, what: string): AccessFault {
  const check = 'Check the address: it ends in /v1, where the API is.'
  return { correct: 'address', message: `${baseUrl} is not the Reseller API: it ${what}. ${check}` }
}

function otherDialect(baseUrl: string, what: string, { name }: Dialect): AccessFault {
  const check = `Is that the Reseller API, and is ${name} its dialect? ${FITTING}.`
  return { correct: 'dialect', message: `${baseUrl} refuses the request: it ${what}. ${check}` }
}

function unreadableText({ unread }: Unreadable, name: string): string {
  const { field, setting, seen } = unread
  const what = `the dialect ${name} cannot read the supplier's answer: it has ${seen} at ${field} (${setting})`
  return `${what}. ${FITTING}; \`${commandLine('dialect check --help')}\` shows how to look at all of it.`
}
