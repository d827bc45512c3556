import type { ErrorKind } from '../supplier/dialect.ts'

/** A request that the API answers with its error envelope; code and status are the dialect's. */
export class Refusal extends Error {
  readonly kind: ErrorKind
  /** Instead of the dialect's, for what HTTP itself has a status for, such as 405. */
  readonly status: number | undefined

  constructor(kind: ErrorKind, message: string, status?: number) {
    super(message)
    this.name = 'Refusal'
    this.kind = kind
    this.status = status
  }
}
