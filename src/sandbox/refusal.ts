import type { Dialect, ErrorKind } from '../dialect/dialect.ts'

/** A refusal that the API answers with its error envelope, with the code and the status of the dialect. */
export class Refusal extends Error {
  readonly kind: ErrorKind
  /** A status that is used instead of the dialect's status, for cases of HTTP itself, such as 405. */
  readonly status: number | undefined

  constructor(kind: ErrorKind, message: string, status?: number) {
    super(message)
    this.name = 'Refusal'
    this.kind = kind
    this.status = status
  }
}

/** A kind without a code in the dialect is answered with its own name as the code, and with this status. */
const usualStatuses: Record<ErrorKind, number> = {
  invalid: 400,
  unauthenticated: 401,
  forbidden: 403,
  not_found: 404,
  gone: 410,
  key_reused: 409,
  in_progress: 409,
  out_of_stock: 409,
  insufficient_balance: 402,
  limit_exceeded: 422,
  rate_limited: 429,
  internal: 500,
  unavailable: 503,
}

export function refusalFacts({ errors }: Dialect, kind: ErrorKind): { code: string; status: number } {
  const facts = errors[kind]
  return facts ? { code: facts.codes[0] ?? kind, status: facts.status } : { code: kind, status: usualStatuses[kind] }
}
