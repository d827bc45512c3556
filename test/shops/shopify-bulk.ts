/** Staged uploads and bulk operations of the Shopify shop. */
import type { ShopAnswer, ShopRequest } from './shop-server.ts'
import {
  connection,
  dateTime,
  gid,
  isFields,
  type NodeFields,
  needNumber,
  objectsIn,
  type RootFields,
  type UserError,
  userErrors,
} from './shopify-answers.ts'
import { type Fields, GraphqlRefusal, readDocument } from './shopify-graphql.ts'

export interface ShopifyBulkOperation {
  id: string
  mutation: string
  /** The variables of its calls, one line each. */
  lines: string[]
  status: 'CANCELED' | 'CANCELING' | 'COMPLETED' | 'CREATED' | 'EXPIRED' | 'FAILED' | 'RUNNING'
  errorCode: 'ACCESS_DENIED' | 'INTERNAL_SERVER_ERROR' | 'TIMEOUT' | null
  createdAt: number
  completedAt: number | null
  /** One line for each call, in whatever order. */
  result: string
}

interface BulkOptions {
  now: () => number
  newId: () => string
  home: () => string
  /** Milliseconds that an operation takes. */
  durationMs: () => number
  /** Runs one call; its whole answer. */
  run: (mutation: string, variables: Fields) => Fields
  /** What befalls an operation by order of a test. */
  failure: () => Pick<ShopifyBulkOperation, 'status' | 'errorCode'> | undefined
}

/** Operations of an app that may run at once. */
const RUNNING_MAX = 5
const FILE_MAX_BYTES = 100_000_000

export function createBulk({ now, newId, home, durationMs, run, failure }: BulkOptions) {
  const uploads = new Map<string, string | null>()
  const operations = new Map<string, ShopifyBulkOperation>()

  /** Runs what is due by the clock: nothing happens while no request comes. */
  const advance = (): void => {
    for (const one of operations.values()) {
      if (one.status === 'CANCELING' && one.createdAt < now()) {
        one.status = 'CANCELED'
        one.completedAt = now()
      }
      if (one.status === 'CREATED' && one.createdAt < now()) one.status = 'RUNNING'
      if ((one.status !== 'CREATED' && one.status !== 'RUNNING') || one.createdAt + durationMs() > now()) continue
      one.completedAt = now()
      const failed = failure()
      if (failed) {
        Object.assign(one, failed)
        continue
      }
      const answers = one.lines.map((line, index) => ({ ...run(one.mutation, JSON.parse(line)), __lineNumber: index }))
      // Shopify runs them side by side, and promises no order.
      one.result = answers
        .toReversed()
        .map((answer) => `${JSON.stringify(answer)}\n`)
        .join('')
      one.status = 'COMPLETED'
    }
  }

  const operationFields = (one: ShopifyBulkOperation): NodeFields => {
    const url = one.status === 'COMPLETED' ? `${home()}/bulk-results/${one.id}.jsonl?signature=s${one.id}` : null
    return {
      __typename: 'BulkOperation',
      id: gid('BulkOperation', one.id),
      status: one.status,
      errorCode: one.errorCode,
      type: 'MUTATION',
      query: one.mutation,
      createdAt: dateTime(one.createdAt),
      completedAt: one.completedAt === null ? null : dateTime(one.completedAt),
      objectCount: String(one.result === '' ? 0 : one.lines.length),
      rootObjectCount: String(one.result === '' ? 0 : one.lines.length),
      fileSize: one.completedAt === null ? null : String(Buffer.byteLength(one.result)),
      url,
      partialDataUrl: null,
    }
  }

  const stage = ({ input }: Fields): Fields => {
    const targets = objectsIn(input).map(({ resource, filename, mimeType, httpMethod }) => {
      const isBulk = resource === 'BULK_MUTATION_VARIABLES' && mimeType === 'text/jsonl' && httpMethod === 'POST'
      if (!isBulk) throw new Error('The shop stages only JSON lines for bulk mutations, sent by POST.')
      const key = `tmp/1/bulk/${newId()}/${filename}`
      uploads.set(key, null)
      const parameters = { 'Content-Type': mimeType, success_action_status: '201', acl: 'private', key, signature: 'x' }
      return {
        __typename: 'StagedMediaUploadTarget',
        url: `${home()}/staged-uploads/`,
        resourceUrl: null,
        parameters: Object.entries(parameters).map(([name, value]) => ({
          __typename: 'StagedUploadParameter',
          name,
          value,
        })),
      }
    })
    return { __typename: 'StagedUploadsCreatePayload', stagedTargets: targets, userErrors: [] }
  }
  const start = ({ mutation, stagedUploadPath }: Fields): Fields => {
    const text = uploads.get(String(stagedUploadPath))
    const running = operations.values().filter(({ status }) => status === 'CREATED' || status === 'RUNNING')
    const errors: UserError[] = []
    const refuse = (code: string, field: string, message: string) => void errors.push({ code, field: [field], message })
    if (text == null) {
      refuse('NO_SUCH_FILE', 'stagedUploadPath', 'The JSONL file could not be found. Try uploading the file again.')
    } else if ([...running].length >= RUNNING_MAX) {
      errors.push({ code: 'OPERATION_IN_PROGRESS', field: null, message: 'Too many bulk operations are in progress.' })
    }
    try {
      if (readDocument(String(mutation)).kind !== 'mutation') throw new GraphqlRefusal('INVALID', 'Not a mutation.')
    } catch {
      refuse('INVALID_MUTATION', 'mutation', 'The mutation is invalid.')
    }
    const lines = (text ?? '').split('\n').filter((line) => line.trim() !== '')
    if (text != null && (lines.length === 0 || !lines.every(isJsonObject))) {
      refuse('INVALID_STAGED_UPLOAD_FILE', 'stagedUploadPath', 'The JSONL file is not valid.')
    }
    const made: ShopifyBulkOperation = {
      id: newId(),
      mutation: String(mutation),
      lines,
      status: 'CREATED',
      errorCode: null,
      createdAt: now(),
      completedAt: null,
      result: '',
    }
    if (errors.length === 0) operations.set(made.id, made)
    return {
      __typename: 'BulkOperationRunMutationPayload',
      bulkOperation: errors.length === 0 ? () => operationFields(made) : null,
      userErrors: userErrors('BulkMutationUserError', errors),
    }
  }

  /** The first half of its calls was made by then. */
  const cancel = ({ id }: Fields): Fields => {
    const one = operations.get(needNumber('BulkOperation', id))
    const isRunning = one?.status === 'CREATED' || one?.status === 'RUNNING'
    if (one && isRunning) {
      for (const line of one.lines.slice(0, Math.ceil(one.lines.length / 2))) run(one.mutation, JSON.parse(line))
      one.status = 'CANCELING'
    }
    const refusal = { field: ['id'], message: 'A bulk operation cannot be canceled when it is completed' }
    return {
      __typename: 'BulkOperationCancelPayload',
      bulkOperation: one ? operationFields(one) : null,
      userErrors: userErrors('UserError', isRunning ? [] : [refusal]),
    }
  }

  /** Answers what goes to the address of a staged upload: a form of several parts, the file last. */
  const upload = ({ headers, body }: ShopRequest): ShopAnswer => {
    const boundary = /boundary="?([^";]+)"?/.exec(String(headers['content-type'] ?? ''))?.[1]
    const text = String(body ?? '')
    const parts = boundary === undefined ? [] : text.split(`--${boundary}`).slice(1, -1)
    const fields = parts.map((part) => ({
      name: /name="([^"]+)"/.exec(part)?.[1] ?? '',
      value: part.slice(part.indexOf('\r\n\r\n') + 4).replace(/\r\n$/, ''),
    }))
    const key = fields.find(({ name }) => name === 'key')?.value ?? ''
    const file = fields.at(-1)
    const isSound = uploads.has(key) && file?.name === 'file' && file.value.length <= FILE_MAX_BYTES
    if (!isSound || headers['x-shopify-access-token'] !== undefined) {
      return {
        status: 400,
        headers: { 'content-type': 'application/xml' },
        body: '<Error><Code>InvalidPolicyDocument</Code></Error>',
      }
    }
    uploads.set(key, file.value)
    return {
      status: 201,
      headers: { 'content-type': 'application/xml' },
      body: `<PostResponse><Key>${key}</Key></PostResponse>`,
    }
  }
  /** Answers what asks for the result of an operation. */
  const download = (url: URL, headers: ShopRequest['headers']): ShopAnswer => {
    const found = operations.get(/\/(\d+)\.jsonl$/.exec(url.pathname)?.[1] ?? '')
    const isAllowed = url.searchParams.get('signature') === `s${found?.id}`
    if (!found || !isAllowed || headers['x-shopify-access-token'] !== undefined) {
      return {
        status: 403,
        headers: { 'content-type': 'application/xml' },
        body: '<Error><Code>AccessDenied</Code></Error>',
      }
    }
    return { status: 200, headers: { 'content-type': 'application/jsonl' }, body: found.result }
  }

  const nodeOf = (type: string, id: string): NodeFields | undefined => {
    const found = type === 'BulkOperation' ? operations.get(id) : undefined
    return found && operationFields(found)
  }
  const root: RootFields = {
    queries: {
      bulkOperations: {
        isNullable: false,
        answer: (given) =>
          connection(
            'BulkOperation',
            [...operations.values()],
            given,
            ({ createdAt, id }) => [createdAt, id],
            operationFields,
          ),
      },
      bulkOperation: {
        isNullable: true,
        answer: ({ id }) => nodeOf('BulkOperation', needNumber('BulkOperation', id)) ?? null,
      },
    },
    mutations: {
      stagedUploadsCreate: { isNullable: true, answer: stage },
      bulkOperationRunMutation: { isNullable: true, answer: start },
      bulkOperationCancel: { isNullable: true, answer: cancel },
    },
  }
  return { operations, root, nodeOf, advance, upload, download }
}

function isJsonObject(line: string): boolean {
  try {
    return isFields(JSON.parse(line))
  } catch {
    return false
  }
}
