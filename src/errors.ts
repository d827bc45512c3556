/** The codes a Failure can carry. Few on purpose: what a caller does next differs for each. */
export type FailureCode =
  | 'invalid'
  | 'unauthenticated'
  | 'forbidden'
  | 'not_found'
  | 'conflict'
  | 'rejected'
  | 'unavailable'
  | 'unknown_outcome'
  | 'internal'

/** One fault of an input: which field, what is wrong with it and what would be right. */
export interface FieldFault {
  /** Path of the field, dots between its parts: `lines.0.quantity`. */
  field: string
  message: string
}

/**
 * The one class for everything that goes wrong and is not an outcome.
 *
 * `message` is shown to people, save for `internal`, whose text stays in the log.
 */
export class Failure extends Error {
  readonly code: FailureCode
  /** Set with `invalid`: every fault of the input, not only the first. */
  readonly fields: FieldFault[]
  /** A finer name for machines, where the code alone says too little: `reference_reused`. */
  readonly reason: string | undefined
  /** Of the answer that it came in, from the supplier or, on the command line, from the service. */
  readonly requestId: string | undefined

  constructor(
    code: FailureCode,
    message: string,
    detail: {
      cause?: unknown
      fields?: FieldFault[]
      reason?: string | undefined
      requestId?: string | undefined
    } = {},
  ) {
    super(message, detail.cause === undefined ? undefined : { cause: detail.cause })
    this.name = 'Failure'
    this.code = code
    this.fields = detail.fields ?? []
    this.reason = detail.reason
    this.requestId = detail.requestId
  }
}

/** The code of any thrown value; strangers are `internal`, so that nothing leaks. */
export const codeOf = (error: unknown): FailureCode => (error instanceof Failure ? error.code : 'internal')

/** The text of any thrown value, for logs and for people who run the service. */
export const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))
