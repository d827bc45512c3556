import { z } from 'zod'
import type { Secret } from '../../secret.ts'
import { type Connecting, jsonIn } from '../connection.ts'
import {
  ASKS_JSON,
  answeredAt,
  asRead,
  CONFIRMED,
  failureOf,
  isPage,
  type Meaning,
  type RawAnswer,
  type Read,
  refused,
  type ShopFailure,
  shopRequests,
  unavailable,
} from '../shop-client.ts'
import type { PushResult } from '../store.ts'
import type { ShopDocument, ShopMutation } from './documents.ts'

export interface ShopClientOptions extends Connecting {
  /** The shop's address at myshopify.com. */
  url: string
  /** The version of the Admin API, such as `2026-07`. */
  apiVersion: string
  /** Client id and client secret of an app, or an admin token and the API secret key of its app. */
  credentials: { key: Secret; secret: Secret }
  /** Default: a timer of this machine. */
  sleep?: ((ms: number) => Promise<void>) | undefined
}

/**
 * How a call ended. `data` is not checked. `answeredAt`: the time of the shop's clock; null when the shop did not say. `version`:
 * the version of the API that answered.
 */
export type ShopAnswer = { ok: true; data: unknown; answeredAt: number | null; version: string | null } | ShopFailure

export interface ShopClient {
  /** Sends one request. Sends it again where the shop wanted fewer requests or a new token. */
  call: (document: ShopDocument, variables?: object) => Promise<ShopAnswer>
  /** Sends a request as `call` does, and reads the answer by a schema. */
  ask: <Value>(document: ShopDocument, variables: object, schema: z.ZodType<Value>) => Promise<Read<Value>>
  /** Sends a mutation. @param answer the schema of the values that are read in addition to the errors */
  change: <Value = object>(
    mutation: ShopMutation,
    variables: object,
    answer?: z.ZodType<Value>,
  ) => Promise<Read<Value & Written>>
  /** Returns this client, which sends no request that writes from this instant on. */
  writingUntil: (until: number) => ShopClient
  /** Returns this client for work that can wait: it leaves a part of the shop's limit to orders. */
  waiting: () => ShopClient
  /**
   * Sends a request without a token to an address that the shop named. The address must be https, or at the origin of the shop.
   * Returns undefined where no whole answer came, or where the request must not be sent.
   */
  transfer: (
    url: string,
    given: { method: 'GET' | 'POST'; headers?: Record<string, string>; body?: Buffer },
  ) => Promise<{ status: number; text: string } | undefined>
  close: () => Promise<void>
}

/** An error about a value that the shop does not take. `field`: the path to the value. Documents ask for the used fields only. */
const userError = z.object({ code: z.string().nullish(), field: z.array(z.string()).nullish() })
export type UserError = z.infer<typeof userError>
const written = z.object({ userErrors: z.array(userError) })
export type Written = z.infer<typeof written>

/** Returns the schema of the answer to a mutation: the errors, and the values that are read in addition. */
export const answerOf = <Value = object>({ field }: ShopMutation, answer?: z.ZodType<Value>) =>
  z
    .record(z.string(), z.unknown())
    .transform((data) => data[field])
    .pipe(z.intersection((answer ?? z.object({})) as z.ZodType<Value>, written))

const pageInfo = z.object({ hasNextPage: z.boolean(), endCursor: z.string().nullable() })
/** Returns the schema of a page of a list. */
export const pageOf = <Node>(node: z.ZodType<Node>) => z.object({ nodes: z.array(node), pageInfo })
interface Page<Node> {
  nodes: Node[]
  pageInfo: z.infer<typeof pageInfo>
}

/** Reads a list to its end, or `pagesMax` pages of it. @param schema finds the page in an answer @param from the first cursor */
export async function readPages<Node>(
  client: ShopClient,
  document: ShopDocument,
  variables: object,
  schema: z.ZodType<Page<Node>>,
  pagesMax: number,
  from: string | null = null,
): Promise<Read<Node[]>> {
  const found: Node[] = []
  let after = from
  for (let pages = 0; pages < pagesMax; pages += 1) {
    const page: Read<Page<Node>> = await client.ask(document, { after, ...variables }, schema)
    if (page.outcome !== 'read') return page
    found.push(...page.value.nodes)
    after = page.value.pageInfo.hasNextPage ? page.value.pageInfo.endCursor : null
    if (after === null) break
  }
  return asRead(found)
}

/** Sends a mutation that the shop takes or refuses as a whole. @param refusal says that the shop does not take the mutation */
export async function pushMutation(
  client: ShopClient,
  mutation: ShopMutation,
  variables: object,
  refusal: string,
): Promise<PushResult> {
  const pushed = await client.change(mutation, variables)
  if (pushed.outcome !== 'read') return pushed
  return pushed.value.userErrors.length === 0 ? CONFIRMED : refused(422, refusal)
}

const DEADLINE_MS = 30_000
/** An access token is renewed so long before its end. */
const RENEWAL_MS = 300_000
/** How often a request is sent to a shop that wants fewer requests, before the shop counts as unavailable. */
const THROTTLED_MAX = 3
const THROTTLED_WAIT_MS = 1_000
/** The longest wait until the shop allows a request. A larger bucket fills within this time. */
const WAIT_MAX_MS = 30_000

/** The points that Shopify allows an app for requests to a shop. Requests use points up, and points come back with time. */
export interface Bucket {
  available: number
  maximum: number
  /** Points that come back in a second. */
  restoreRate: number
  /** The instant at which the points of `available` were there. */
  at: number
}

/**
 * Returns how many milliseconds to wait until a request fits.
 *
 * @param cost points that the request costs at most
 * @param reserved points that are to be left for others
 */
export function waitFor(bucket: Bucket, { cost, reserved, now }: { cost: number; reserved: number; now: number }) {
  const need = Math.min(cost + reserved, bucket.maximum)
  const missing = need - availableAt(bucket, now)
  return missing <= 0 ? 0 : Math.min(WAIT_MAX_MS, Math.ceil((missing / bucket.restoreRate) * 1000))
}

export const availableAt = ({ available, maximum, restoreRate, at }: Bucket, now: number): number =>
  Math.min(maximum, available + (restoreRate * Math.max(0, now - at)) / 1000)

export const wait = (ms: number): Promise<void> => new Promise<void>((resolve) => void setTimeout(resolve, ms))

/** Whether a key is the token of an app that a merchant made in the shop. Any other key is a client id. */
const isToken = (key: string): boolean => /^shp[a-z]{2}_/.test(key)

const accessToken = z.object({ access_token: z.string().min(1), expires_in: z.number().positive().catch(3_600) })

/** Makes requests to the Admin API of one shop of Shopify. The client quotes nothing of an answer. */
export function shopClient(options: ShopClientOptions): ShopClient {
  const { url, apiVersion, credentials, now, sleep = wait } = options
  const requests = shopRequests(options)
  const { origin, host } = new URL(url)
  const costs = new Map<string, number>()
  let bucket: Bucket | undefined
  let token: { text: string; renewAt: number } | undefined
  let renewal: Promise<ShopFailure | undefined> | undefined

  /** Gets a new access token, once for all callers that need one. */
  function renew(): Promise<ShopFailure | undefined> {
    renewal ??= fetchToken().finally(() => {
      renewal = undefined
    })
    return renewal
  }

  async function fetchToken(): Promise<ShopFailure | undefined> {
    const answer = await requests.send(new URL('/admin/oauth/access_token', origin), {
      method: 'POST',
      headers: { ...ASKS_JSON, 'content-type': 'application/x-www-form-urlencoded' },
      body: new URLSearchParams({
        grant_type: 'client_credentials',
        client_id: credentials.key.reveal(),
        client_secret: credentials.secret.reveal(),
      }).toString(),
      isWrite: false,
      deadlineMs: DEADLINE_MS,
    })
    if ('ok' in answer) return answer
    const { data: given } = accessToken.safeParse(jsonIn(answer.text))
    if (answer.status !== 200 || !given) return tokenFailure(answer, host)
    token = { text: given.access_token, renewAt: now() + given.expires_in * 1000 - RENEWAL_MS }
    return undefined
  }

  /** Returns the token that lets a request in. The secrets appear here and in `fetchToken` only. */
  async function authorised(): Promise<string | ShopFailure> {
    const key = credentials.key.reveal()
    if (isToken(key)) return key
    if (!token || now() >= token.renewAt) {
      const failure = await renew()
      // A token that is still valid for a few minutes will do.
      if (failure && !(token && now() < token.renewAt + RENEWAL_MS)) return failure
    }
    return token?.text ?? ''
  }

  async function sendDocument(
    document: ShopDocument,
    variables: object,
    until: number,
  ): Promise<{ answer: ShopAnswer; isThrottled: boolean }> {
    const isWrite = isMutation(document)
    for (let isAgain = false; ; isAgain = true) {
      const access = await authorised()
      if (typeof access !== 'string') return { answer: access, isThrottled: false }
      const answer = await requests.send(new URL(`/admin/api/${apiVersion}/graphql.json`, origin), {
        method: 'POST',
        headers: { ...ASKS_JSON, 'content-type': 'application/json', 'x-shopify-access-token': access },
        body: JSON.stringify({ query: document.text, operationName: document.name, variables }),
        isWrite,
        until,
        deadlineMs: DEADLINE_MS,
      })
      if ('ok' in answer) return { answer, isThrottled: false }
      if (answer.status === 401 && !isAgain && !isToken(credentials.key.reveal())) {
        token = token?.text === access ? undefined : token
        continue
      }
      const seen = readAnswer(answer, { isWrite, host })
      if (seen.cost) {
        costs.set(document.name, seen.cost.requested)
        if (seen.cost.bucket) bucket = { ...seen.cost.bucket, at: now() }
      }
      return seen
    }
  }

  async function callAs({ until, canWait }: Caller, document: ShopDocument, variables: object = {}) {
    for (let tries = 1; ; tries += 1) {
      const cost = costs.get(document.name) ?? COST_UNKNOWN
      if (bucket) {
        const reserved = canWait ? bucket.maximum / 4 : 0
        const ms = waitFor(bucket, { cost, reserved, now: now() })
        if (ms > 0) await sleep(ms)
        // The cost is taken off at once, because other requests may leave before this request is answered.
        bucket = { ...bucket, available: Math.max(0, availableAt(bucket, now()) - cost), at: now() }
      }
      const { answer, isThrottled } = await sendDocument(document, variables, until)
      if (!isThrottled || tries === THROTTLED_MAX) return answer
      await sleep(throttledWait(costs.get(document.name) ?? cost))
    }
  }

  function throttledWait(cost: number): number {
    const ms = bucket ? waitFor(bucket, { cost, reserved: 0, now: now() }) : 0
    return Math.max(ms, THROTTLED_WAIT_MS)
  }

  const transfer: ShopClient['transfer'] = async (to, { method, headers = {}, body }) => {
    const address = URL.parse(to)
    if (address === null || (address.protocol !== 'https:' && address.origin !== origin)) return undefined
    const given = { method, headers, body: body ?? null, isWrite: false, deadlineMs: DEADLINE_MS }
    const answer = await requests.send(address, given)
    return 'ok' in answer ? undefined : answer
  }

  function clientOf(caller: Caller): ShopClient {
    const ask: ShopClient['ask'] = async (document, variables, schema) => {
      const answer = await callAs(caller, document, variables)
      if (!answer.ok) return answer.failure
      const seen = schema.safeParse(answer.data)
      if (seen.success) return asRead(seen.data)
      return unavailable(`${host} answered with something that Shopify does not`, isMutation(document))
    }
    return {
      call: (document, variables) => callAs(caller, document, variables),
      ask,
      change: (mutation, variables, answer) => ask(mutation, variables, answerOf(mutation, answer)),
      transfer,
      writingUntil: (until) => clientOf({ ...caller, until }),
      waiting: () => clientOf({ ...caller, canWait: true }),
      close: requests.close,
    }
  }
  return clientOf({ until: Number.POSITIVE_INFINITY, canWait: false })
}

/** How requests are sent. `until`: no write is sent later. `canWait`: a part of the shop's limit is left to other requests. */
interface Caller {
  until: number
  canWait: boolean
}

const isMutation = ({ text }: ShopDocument): boolean => /^\s*mutation/.test(text)

/** The assumed cost of a request that was never sent before. */
const COST_UNKNOWN = 50

const TOO_MANY = 'it wants fewer requests'
const SCOPES_FIX =
  'Where `stores test` names missing access scopes, release a version of the app with them, and accept it in the shop.'

const graphAnswer = z.object({
  data: z.unknown().optional(),
  /** Shopify has answered a throttled request with the message alone. */
  errors: z
    .array(
      z
        .object({
          message: z.unknown().optional(),
          extensions: z.object({ code: z.string().catch('') }).catch({ code: '' }),
        })
        .transform(({ message, extensions }) => (message === 'Throttled' ? 'THROTTLED' : extensions.code)),
    )
    .optional(),
  extensions: z
    .object({
      cost: z.object({
        requestedQueryCost: z.number(),
        throttleStatus: z
          .object({
            maximumAvailable: z.number().positive(),
            currentlyAvailable: z.number(),
            restoreRate: z.number().positive(),
          })
          .optional(),
      }),
    })
    .optional()
    .catch(undefined),
})

interface AnswerCost {
  requested: number
  bucket: Omit<Bucket, 'at'> | undefined
}

/** Says what an answer means. @param isWrite whether the shop may have acted although its answer says nothing */
export function readAnswer(
  raw: RawAnswer,
  { isWrite, host }: { isWrite: boolean; host: string },
): { answer: ShopAnswer; cost: AnswerCost | undefined; isThrottled: boolean } {
  const { data: graph } = graphAnswer.safeParse(jsonIn(raw.text))
  const isOk = raw.status >= 200 && raw.status < 300
  const cost = costOf(graph)
  const codes = graph?.errors ?? []
  if (isOk && graph?.data != null && codes.length === 0) {
    const version = raw.headers['x-shopify-api-version']
    return {
      answer: {
        ok: true,
        data: graph.data,
        answeredAt: answeredAt(raw),
        version: typeof version === 'string' ? version : null,
      },
      cost,
      isThrottled: false,
    }
  }
  const meaning = isOk && codes.length > 0 ? meaningOfCodes(codes) : meaningOfStatus(raw)
  const isThrottled = (meaning.status ?? raw.status) === 429
  return { answer: failureOf(raw, meaning, { host, isWrite }), cost, isThrottled }
}

function costOf(graph: z.infer<typeof graphAnswer> | undefined): AnswerCost | undefined {
  const cost = graph?.extensions?.cost
  if (!cost) return undefined
  const { requestedQueryCost: requested, throttleStatus: status } = cost
  return {
    requested,
    bucket: status && {
      available: status.currentlyAvailable,
      maximum: status.maximumAvailable,
      restoreRate: status.restoreRate,
    },
  }
}

/** The meanings of codes of GraphQL errors. The first code here that is among the errors counts. Their status is 200. */
const CODES: Record<string, Meaning> = {
  THROTTLED: { cause: TOO_MANY, isTaken: 'later', status: 429 },
  ACCESS_DENIED: { cause: 'the app may not do this', fix: SCOPES_FIX, isTaken: 'no', status: 403 },
  SHOP_INACTIVE: {
    cause: 'the shop is not active',
    fix: 'Look into the plan of the shop.',
    isTaken: 'later',
    status: 402,
  },
  INTERNAL_SERVER_ERROR: { cause: 'it failed', isTaken: 'unknown', status: 500 },
  TIMEOUT: { cause: 'it failed', isTaken: 'unknown', status: 500 },
  MAX_COST_EXCEEDED: { cause: 'the request costs more than it allows', isTaken: 'no', status: 400 },
}

function meaningOfCodes(codes: string[]): Meaning {
  const [, meaning] = Object.entries(CODES).find(([code]) => codes.includes(code)) ?? []
  return (
    meaning ?? {
      cause: 'it does not understand the request',
      fix: 'Configure an API version that Shopify supports.',
      isTaken: 'no',
      status: 400,
    }
  )
}

const LOCKED: Meaning = {
  cause: 'the shop is frozen or locked',
  fix: 'Look into the plan of the shop.',
  isTaken: 'later',
}
const FAILED: Meaning = { cause: 'it failed', isTaken: 'unknown' }
const ADDRESS_FIX = 'Configure the address that ends in .myshopify.com.'

const STATUSES: Record<number, Meaning> = {
  401: {
    cause: 'it does not accept the access token',
    fix: 'Compare the credentials, and see that the app is installed in the shop.',
    isTaken: 'no',
  },
  402: LOCKED,
  403: {
    cause: 'an IP allowlist of the app leaves this machine out, or the app may not do this',
    fix: `In the Dev Dashboard, Settings of the app, see whether its IP allowlist has the address of this machine. ${SCOPES_FIX}`,
    isTaken: 'no',
  },
  404: { cause: 'there is no shop of Shopify at this address', fix: ADDRESS_FIX, isTaken: 'no' },
  408: FAILED,
  409: { cause: 'something else is changing the same', isTaken: 'later' },
  // Shopify once answered so for shops that are locked.
  420: LOCKED,
  423: LOCKED,
  425: FAILED,
  429: { cause: TOO_MANY, isTaken: 'later' },
  430: { cause: 'it takes the request for an attack', isTaken: 'later' },
  503: { cause: 'it is under maintenance or overloaded', isTaken: 'unknown' },
}

function meaningOfStatus(answer: RawAnswer): Meaning {
  const { status } = answer
  if (status >= 300 && status < 400) {
    const fix = 'Configure the address at myshopify.com: redirects are not followed.'
    return { cause: 'it redirects', fix, isTaken: 'no' }
  }
  const known = STATUSES[status] ?? (status >= 500 ? FAILED : undefined)
  if (known) return known
  if (isPage(answer)) {
    const cause = 'a page for people came in place of data, such as a login page'
    return { cause, fix: ADDRESS_FIX, isTaken: 'unknown' }
  }
  if (status < 300) return { cause: 'its answer broke off or is no JSON', isTaken: 'unknown' }
  return { cause: 'it refused the request', isTaken: 'no' }
}

/** Why Shopify gives an app no access token, by the code that it names. */
const tokenRefusals: Record<string, { cause: string; fix: string }> = {
  application_cannot_be_found: {
    cause: 'it knows no app with this client id',
    fix: 'Compare the client id with that in the settings of the app in the Dev Dashboard.',
  },
  invalid_client: {
    cause: 'it does not accept the client secret of the app',
    fix: 'Compare the client secret with that in the settings of the app in the Dev Dashboard.',
  },
  app_not_installed: {
    cause: 'the app is not installed in the shop',
    fix: 'Install it: in the Dev Dashboard, on the page of the app.',
  },
  shop_not_permitted: {
    cause: 'the app belongs to another organisation than the shop',
    fix: 'Make the app in the Dev Dashboard of the organisation that owns the shop.',
  },
}

/** Returns why no access token came. Without a token nothing was asked of the shop. */
function tokenFailure(answer: RawAnswer, host: string): ShopFailure {
  // The code is a field of JSON, or a word on a page.
  const code = Object.keys(tokenRefusals).find((one) => answer.text.includes(one))
  const isWrong = answer.status === 400 || answer.status === 401 || (answer.status === 403 && code !== undefined)
  const refusal = tokenRefusals[code ?? ''] ?? {
    cause: 'it gives no access token for the client id and its secret',
    fix: 'Compare both, and see that the app is installed in the shop and belongs to the same organisation.',
  }
  const meaning: Meaning = isWrong ? { ...refusal, isTaken: 'no' } : meaningOfStatus(answer)
  return failureOf(answer, meaning, { host, isWrite: false })
}
