import { createHash } from 'node:crypto'
import { type Dialect, valueAt } from '../dialect/dialect.ts'
import { disagreement } from '../domain/purchase.ts'
import type { AnswerEvidence, ExpectedOrder, NotExecutedCause, Placement } from '../domain/supplier.ts'
import { retryAfterMs } from './rate-limit.ts'
import {
  type ErrorAnswer,
  errorAnswer,
  NO_JSON,
  orderIdIn,
  parseOrder,
  readJson,
  refusalUnder2xx,
  requestIdOf,
  textAt,
  type UnreadField,
  unreadField,
  unwrap,
} from './records.ts'
import { type Exchange, headerText } from './request.ts'

export interface SentOrder {
  dialect: Dialect
  /** An earlier attempt with this key may have been charged: a refusal now proves nothing about that attempt. */
  maybeCharged: boolean
  expected: ExpectedOrder
  /** Epoch milliseconds; a Retry-After date counts from here. */
  nowMs: number
}

type Answered = Extract<Exchange, { stage: 'answered' }>

/**
 * What the outcome of a POST /orders means for money.
 *
 *   not sent                                        not executed
 *   429                                             not executed: the limiter comes before everything else
 *   2xx, readable, has an order id, all fields agree  accepted
 *   2xx with an order id, where the dialect says so  unknown, but clear: the order is to be read (`id_alone`)
 *   2xx, a refusal that the dialect has under 2xx   as a 4xx with the same error code
 *   any other 2xx                                   unknown
 *   401, 403, never charged                         not executed; a 401 to a token that was renewed then does not refuse the key
 *   error code for out of stock, balance, limit     rejected, if never charged and a 4xx other than 408 and 425
 *   other 4xx with an error envelope, never charged rejected
 *   any of these refusals that carries an order id  unknown
 *   everything else                                 unknown
 *
 * A wrong "unknown" costs a look-up, a wrong "rejected" costs a second charge: every doubt is unknown.
 *
 * @see Reseller API v1.1, section 4, POST /orders, and section 7
 */
export function classify(exchange: Exchange, asked: SentOrder): Placement {
  const { dialect } = asked
  if (exchange.stage === 'not_sent') {
    const cause = exchange.heldBack ? 'held_back' : exchange.refused ? 'unauthorized' : 'unreachable'
    return { outcome: 'not_executed', cause, evidence: { detail: `nothing was sent: ${exchange.cause}` } }
  }
  const requestId = headerText(exchange.headers, dialect.headers.requestId)
  const seen: AnswerEvidence = { detail: '' }
  if (exchange.status !== undefined) seen.status = exchange.status
  if (requestId !== undefined) seen.requestId = requestId
  if (exchange.stage === 'lost') return unknown(seen, exchange.cause, 'sent, and no whole answer came')

  seen.answerDigest = createHash('sha256').update(exchange.body).digest('hex')
  const json = exchange.unreadable === undefined ? readJson(exchange.body) : undefined
  const { status } = exchange
  const succeeded = status >= 200 && status <= 299
  const error = errorAnswer(json, dialect)
  // The id of the order is evidence, even when the rest of the answer is ambiguous.
  const orderId = orderIdIn(json, dialect)
  if (orderId !== undefined && orderId !== requestId) seen.supplierOrderId = orderId
  if (error) seen.code = error.code
  if (succeeded && !refusalUnder2xx(json, dialect)) return classifySuccess(json, seen, asked)
  if (error && seen.requestId === undefined) {
    const named = requestIdOf(json, dialect)
    if (named !== undefined) seen.requestId = named
  }
  if (status === 429 && seen.supplierOrderId === undefined) return limited(exchange, seen, asked)
  if (!succeeded && (status < 400 || status > 499)) {
    return unknown(seen, status >= 500 ? 'server_error' : 'unexpected_status', `answered ${status}`)
  }
  return classifyRefusal(exchange, error, seen, asked)
}

/** Classifies a 4xx (a 429 only with an order id) or a refusal under 2xx that the dialect knows. */
function classifyRefusal(
  answer: Answered,
  error: ErrorAnswer | undefined,
  seen: AnswerEvidence,
  asked: SentOrder,
): Placement {
  const { status } = answer
  if (status === 408 || status === 425) return unknown(seen, 'unexpected_status', `answered ${status}`)
  if (error?.kind === 'key_reused') {
    return unknown(seen, 'key_reused', 'the supplier knows the key with other parameters', true)
  }
  if (error?.kind === 'in_progress') return unknown(seen, 'in_progress', 'an earlier request with the key still runs')
  // The supplier reports a failure of its own, under any status.
  if (error?.kind === 'internal' || error?.kind === 'unavailable') {
    return unknown(seen, 'server_error', `answered ${status} ${error.code}`)
  }
  if (seen.supplierOrderId !== undefined) {
    return unknown(seen, 'names_order', `answered ${status}, a refusal that carries the id of an order`)
  }
  const reason = reasonOf(error)
  if (status === 409 && (reason === undefined || reason === 'other')) {
    return unknown(seen, 'conflict', 'answered 409 with a code that is not known')
  }
  if (error?.kind === 'rate_limited') return limited(answer, seen, asked)
  const unauthorized = error?.kind === 'unauthenticated' || error?.kind === 'forbidden'
  const closed = unauthorized || ((status === 401 || status === 403) && (reason === undefined || reason === 'other'))
  if (asked.maybeCharged && (error || closed)) {
    return unknown(seen, 'rejected_repeat', 'a refusal after an ambiguous attempt proves nothing about it', true)
  }
  if (closed && answer.renewal === 'done')
    return notExecuted('token_ended', seen, 'refused a token that was renewed then')
  if (closed && answer.renewal === 'away')
    return notExecuted('unreachable', seen, 'refused a token, and there is no other')
  if (closed) return notExecuted('unauthorized', seen, `the supplier refused the API key: ${status}`)
  if (!error || reason === undefined) return unknown(seen, 'unreadable', `answered ${status} without an error envelope`)
  const evidence = { ...seen, detail: `rejected: ${status} ${error.code}` }
  return { outcome: 'rejected', reason, code: error.code, message: error.message, evidence }
}

function reasonOf(error: ErrorAnswer | undefined): 'out_of_stock' | 'balance' | 'other' | undefined {
  if (error?.kind === 'out_of_stock') return 'out_of_stock'
  if (error?.kind === 'insufficient_balance' || error?.kind === 'limit_exceeded') return 'balance'
  return error ? 'other' : undefined
}

function classifySuccess(json: unknown, seen: AnswerEvidence, asked: SentOrder): Placement {
  const { dialect, expected } = asked
  const wrapped = json === undefined ? undefined : unwrap(json, dialect)
  if (dialect.orderAnswer === 'id') return classifyId(json, wrapped?.ok === true, seen, dialect)
  if (!wrapped?.ok) return unknown(seen, 'unreadable', 'answered 2xx without a success envelope')
  const order = parseOrder(wrapped.value, dialect)
  if (!order.ok) return unknown(seen, 'unreadable', `answered 2xx with an order whose ${order.field} cannot be read`)
  const differs = disagreement(order.value, expected, dialect)
  if (differs !== undefined) return unknown(seen, 'disagrees', `answered 2xx with another ${differs} than was sent`)
  return { outcome: 'accepted', order: order.value, agrees: true, evidence: { ...seen, detail: 'accepted' } }
}

/** Classifies an answer that has only the id of an order, as a field or alone. Nothing in it shows what was ordered. */
function classifyId(json: unknown, isWrapped: boolean, seen: AnswerEvidence, dialect: Dialect): Placement {
  const alone = dialect.envelope.success === null ? textAt(json, dialect.envelope.data) : undefined
  const supplierOrderId = (isWrapped ? seen.supplierOrderId : undefined) ?? alone
  if (supplierOrderId === undefined) return unknown(seen, 'unreadable', 'answered 2xx without an order id')
  return unknown({ ...seen, supplierOrderId }, 'id_alone', 'answered 2xx with the id of an order, which is to be read')
}

/** Returns the first unreadable field of an answer to an order; undefined when all fields can be read, or no whole answer came. */
export function unreadIn(exchange: Exchange, dialect: Dialect): UnreadField | undefined {
  if (exchange.stage !== 'answered') return undefined
  const json = exchange.unreadable === undefined ? readJson(exchange.body) : undefined
  if (json === undefined) return NO_JSON
  if (exchange.status > 299) return unreadField('error.code', dialect.error.code, valueAt(json, dialect.error.code))
  const wrapped = unwrap(json, dialect)
  if (dialect.orderAnswer === 'id') return wrapped.ok ? unreadField('order.id', dialect.order.id, undefined) : wrapped
  const order = wrapped.ok ? parseOrder(wrapped.value, dialect) : wrapped
  return order.ok ? undefined : order
}

function limited(answer: Answered, seen: AnswerEvidence, { dialect, nowMs }: SentOrder): Placement {
  const wait = retryAfterMs(headerText(answer.headers, dialect.headers.retryAfter), nowMs)
  return notExecuted('rate_limited', seen, `rate limited: ${answer.status}`, wait)
}

function notExecuted(cause: NotExecutedCause, seen: AnswerEvidence, detail: string, retryAfter?: number): Placement {
  const wait = retryAfter === undefined ? {} : { retryAfterMs: retryAfter }
  return { outcome: 'not_executed', cause, ...wait, evidence: { ...seen, detail } }
}

const unknown = (seen: AnswerEvidence, cause: string, detail: string, rejection = false): Placement => ({
  outcome: 'unknown',
  cause,
  rejection,
  evidence: { ...seen, detail: `${detail} (${cause})` },
})
