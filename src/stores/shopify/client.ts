import { z } from 'zod'
import { Secret } from '../../secret.ts'
import { type Connecting, jsonIn } from '../connection.ts'
import type { CatalogueSettings } from '../shop-catalogue.ts'
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
import type { ShopCredentials, StoreNeeds } from '../store-kind.ts'
import type { ShopDocument } from './documents.ts'
import type { ShopifySettings } from './kind.ts'

export type ShopSettings = CatalogueSettings &
  Pick<
    ShopifySettings,
    | 'name'
    | 'location'
    | 'otherLocations'
    | 'holdAtRisk'
    | 'metafieldNamespace'
    | 'retryTag'
    | 'buyTestOrders'
    | 'deliver'
  > & {
    /** ISO 4217; null: there is no configuration of the shop yet, so any currency is right. */
    currency: string | null
  }

export interface ShopOptions
  extends Connecting,
    Pick<StoreNeeds, 'sleep'>,
    Pick<ShopifySettings, 'url' | 'apiVersion'> {
  /** Client id and client secret of an app, or an admin token and the API secret key of its app. */
  credentials: ShopCredentials
  settings: ShopSettings
}

/** A shop of Shopify, the first parameter of each function that calls the shop. Failures quote nothing of an answer. */
export type Shop = ReturnType<typeof openShop>

/** The facts about a shop that were learned from its answers. All copies of a `Shop` share one such object. */
interface Known {
  /** The points that each document costs, by its name. */
  costs: Map<string, number>
  bucket?: Bucket
  token?: { secret: Secret; renewAt: number } | undefined
  renewal?: Promise<ShopFailure | undefined> | undefined
  /** The currency that the shop sells in, and the location whose stock is written. */
  sale?: { currency: string; location: string; readAt: number }
  /** The publication of the online store; null: the shop has none. */
  publication?: string | null
  /** True: none of our bulk operations is running, as far as this process knows. */
  hasNoBulk: boolean
  defined: Set<string>
}

export function openShop(options: ShopOptions) {
  const { origin, host } = new URL(options.url)
  const known: Known = { costs: new Map(), hasNoBulk: false, defined: new Set() }
  return {
    ...options,
    sleep: options.sleep ?? wait,
    origin,
    host,
    requests: shopRequests(options),
    known,
    /** No request that writes is sent from this instant on. */
    until: Number.POSITIVE_INFINITY,
    /** True for work that can wait, such as prices. It leaves a part of the shop's limit to orders. */
    canWait: false,
  }
}

/**
 * How a call ended. `data` is not checked. `answeredAt`: the time of the shop's clock; null when the shop did not say. `version`:
 * the version of the API that answered.
 */
type ShopAnswer = { ok: true; data: unknown; answeredAt: number | null; version: string | null } | ShopFailure

/** Sends one request. Sends it again where the shop wanted fewer requests or a new token. */
export async function call(shop: Shop, document: ShopDocument, variables: object = {}): Promise<ShopAnswer> {
  const { known, now, sleep } = shop
  for (let tries = 1; ; tries += 1) {
    const cost = known.costs.get(document.name) ?? COST_UNKNOWN
    if (known.bucket) {
      const reserved = shop.canWait ? known.bucket.maximumAvailable / 4 : 0
      const ms = waitFor(known.bucket, { cost, reserved, now: now() })
      if (ms > 0) await sleep(ms)
      // The cost is taken off the known points at once, because other requests may leave before this request is answered.
      const currentlyAvailable = Math.max(0, availableAt(known.bucket, now()) - cost)
      known.bucket = { ...known.bucket, currentlyAvailable, at: now() }
    }
    const { answer, isThrottled } = await sendDocument(shop, document, variables)
    if (!isThrottled || tries === THROTTLED_MAX) return answer
    const again = { cost: known.costs.get(document.name) ?? cost, reserved: 0, now: now() }
    await sleep(Math.max(known.bucket ? waitFor(known.bucket, again) : 0, THROTTLED_WAIT_MS))
  }
}

/** Sends a request as `call` does, and reads the answer by a schema. */
export async function ask<Value>(
  shop: Shop,
  document: ShopDocument,
  variables: object,
  schema: z.ZodType<Value>,
): Promise<Read<Value>> {
  const answer = await call(shop, document, variables)
  if (!answer.ok) return answer.failure
  const seen = schema.safeParse(answerIn(document, answer.data))
  if (seen.success) return asRead(seen.data)
  return unavailable(`${shop.host} answered with something that Shopify does not`, isMutation(document))
}

/** Returns the part of an answer that the document asks for: its `field`; without `field`, the whole answer. */
export const answerIn = ({ field }: ShopDocument, data: unknown): unknown =>
  field === undefined ? data : (data as Record<string, unknown> | null | undefined)?.[field]

/** An error about a value that the shop does not take. `field`: the path to the value. Some documents do not ask for `code`. */
const userError = z.object({ code: z.string().nullish(), field: z.array(z.string()).nullish() })
export type UserError = z.infer<typeof userError>
/** The answer to a mutation. Callers extend this schema by further fields that they read. */
export const written = z.object({ userErrors: z.array(userError) })

/** Sends a mutation that the shop takes or refuses as a whole. @param refusal says that the shop does not take the mutation */
export async function pushMutation(
  shop: Shop,
  mutation: ShopDocument,
  variables: object,
  refusal: string,
): Promise<PushResult> {
  const pushed = await ask(shop, mutation, variables, written)
  if (pushed.outcome !== 'read') return pushed
  return pushed.value.userErrors.length === 0 ? CONFIRMED : refused(422, refusal)
}

const pageInfo = z.object({ hasNextPage: z.boolean(), endCursor: z.string().nullable() })
/** Returns the schema of a page of a list. `next`: the cursor of the next page; null at the end of the list. */
export const pageOf = <Node>(node: z.ZodType<Node>) =>
  z
    .object({ nodes: z.array(node), pageInfo })
    // Without a cursor the next page cannot be read. Such a page is not taken for the end of the list.
    .refine(({ pageInfo: page }) => !page.hasNextPage || page.endCursor !== null)
    .transform(({ nodes, pageInfo: page }) => ({ nodes, next: page.hasNextPage ? page.endCursor : null }))
type Page<Node> = z.infer<ReturnType<typeof pageOf<Node>>>

/** Reads a list to its end, or `pagesMax` pages of it. @param from the cursor to begin at; null: the first page */
export async function readPages<Node>(
  shop: Shop,
  document: ShopDocument,
  variables: object,
  schema: z.ZodType<Page<Node>>,
  pagesMax: number,
  from: string | null = null,
): Promise<Read<Node[]>> {
  const found: Node[] = []
  let after = from
  for (let pages = 0; pages < pagesMax; pages += 1) {
    const page: Read<Page<Node>> = await ask(shop, document, { after, ...variables }, schema)
    if (page.outcome !== 'read') return page
    found.push(...page.value.nodes)
    after = page.value.next
    if (after === null) break
  }
  return asRead(found)
}

/**
 * Sends a request without a token to an address that the shop named. The address must be https, or at the origin of the shop.
 * Returns undefined where no whole answer came, or where the request must not be sent.
 */
export async function transfer(
  { requests, origin }: Shop,
  to: string,
  given: { method: 'GET' | 'POST'; headers?: Record<string, string>; body?: Buffer },
): Promise<RawAnswer | undefined> {
  const address = URL.parse(to)
  if (address === null || (address.protocol !== 'https:' && address.origin !== origin)) return undefined
  const answer = await requests.send(address, { headers: {}, ...given, isWrite: false, deadlineMs: DEADLINE_MS })
  return 'ok' in answer ? undefined : answer
}

const DEADLINE_MS = 30_000
/** An access token is renewed so long before its end. */
const RENEWAL_MS = 300_000
/** How often a request is sent to a shop that wants fewer requests, before the shop counts as unavailable. */
const THROTTLED_MAX = 3
const THROTTLED_WAIT_MS = 1_000
/** The longest wait for points. Even a large limit of a shop is restored within this time. */
const WAIT_MAX_MS = 30_000

/**
 * The points that Shopify allows an app for requests to a shop. Requests use points up, and points come back with time.
 * `restoreRate`: points that come back in a second.
 */
const throttleStatus = z.object({
  maximumAvailable: z.number().positive(),
  currentlyAvailable: z.number(),
  restoreRate: z.number().positive(),
})
/** `at`: the instant at which the points were available. */
export type Bucket = z.infer<typeof throttleStatus> & { at: number }

/**
 * Returns how many milliseconds to wait until a request fits.
 *
 * @param cost points that the request costs at most
 * @param reserved points that are to be left for other requests
 */
export function waitFor(bucket: Bucket, { cost, reserved, now }: { cost: number; reserved: number; now: number }) {
  const need = Math.min(cost + reserved, bucket.maximumAvailable)
  const missing = need - availableAt(bucket, now)
  return missing <= 0 ? 0 : Math.min(WAIT_MAX_MS, Math.ceil((missing / bucket.restoreRate) * 1000))
}

export const availableAt = ({ currentlyAvailable, maximumAvailable, restoreRate, at }: Bucket, now: number): number =>
  Math.min(maximumAvailable, currentlyAvailable + (restoreRate * Math.max(0, now - at)) / 1000)

export const wait = (ms: number): Promise<void> => new Promise<void>((resolve) => void setTimeout(resolve, ms))

/** Whether a key is the token of an app that a merchant made in the shop. Any other key is a client id. */
const isToken = (key: string): boolean => /^shp[a-z]{2}_/.test(key)

const accessToken = z.object({ access_token: z.string().min(1), expires_in: z.number().positive().catch(3_600) })

async function fetchToken({ requests, origin, host, credentials, known, now }: Shop): Promise<ShopFailure | undefined> {
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
  known.token = { secret: new Secret(given.access_token), renewAt: now() + given.expires_in * 1000 - RENEWAL_MS }
  return undefined
}

/** Returns the access token for a request, and renews it in time. */
async function authorised(shop: Shop): Promise<string | ShopFailure> {
  const { credentials, known, now } = shop
  const key = credentials.key.reveal()
  if (isToken(key)) return key
  if (!known.token || now() >= known.token.renewAt) {
    // One renewal serves all callers that need a new token.
    known.renewal ??= fetchToken(shop).finally(() => {
      known.renewal = undefined
    })
    const failure = await known.renewal
    // If the renewal fails, the old token is used: it is still valid for a few minutes.
    if (failure && !(known.token && now() < known.token.renewAt + RENEWAL_MS)) return failure
  }
  return known.token?.secret.reveal() ?? ''
}

async function sendDocument(
  shop: Shop,
  document: ShopDocument,
  variables: object,
): Promise<{ answer: ShopAnswer; isThrottled: boolean }> {
  const { requests, apiVersion, origin, credentials, until, known } = shop
  const isWrite = isMutation(document)
  for (let isAgain = false; ; isAgain = true) {
    const access = await authorised(shop)
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
      if (known.token?.secret.reveal() === access) known.token = undefined
      continue
    }
    const seen = readAnswer(answer, { isWrite, host: shop.host })
    if (seen.cost) {
      known.costs.set(document.name, seen.cost.requestedQueryCost)
      if (seen.cost.throttleStatus) known.bucket = { ...seen.cost.throttleStatus, at: shop.now() }
    }
    return seen
  }
}

const isMutation = ({ text }: ShopDocument): boolean => /^mutation/.test(text)

/** The assumed cost of a request that was never sent before. */
const COST_UNKNOWN = 50

const TOO_MANY = 'it wants fewer requests'
const SCOPES_FIX =
  'Where `stores test` names missing access scopes, release a version of the app with them, and accept it in the shop.'

/** The points that a request cost, and those that are left. */
const answerCost = z.object({ requestedQueryCost: z.number(), throttleStatus: throttleStatus.optional() })

const graphAnswer = z.object({
  data: z.unknown().optional(),
  /** Shopify may mark a throttled request by its message alone, without a code. */
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
  extensions: z.object({ cost: answerCost }).optional().catch(undefined),
})

/** Says what an answer means. @param given.isWrite whether the shop may have acted although its answer does not say so */
export function readAnswer(
  raw: RawAnswer,
  given: { isWrite: boolean; host: string },
): { answer: ShopAnswer; cost: z.infer<typeof answerCost> | undefined; isThrottled: boolean } {
  const { data: graph } = graphAnswer.safeParse(jsonIn(raw.text))
  const isOk = raw.status >= 200 && raw.status < 300
  const cost = graph?.extensions?.cost
  const codes = graph?.errors ?? []
  if (isOk && graph?.data != null && codes.length === 0) {
    const named = raw.headers['x-shopify-api-version']
    const version = typeof named === 'string' ? named : null
    const answer = { ok: true, data: graph.data, answeredAt: answeredAt(raw), version } as const
    return { answer, cost, isThrottled: false }
  }
  const meaning = isOk && codes.length > 0 ? meaningOfCodes(codes) : meaningOfStatus(raw)
  const isThrottled = (meaning.status ?? raw.status) === 429
  return { answer: failureOf(raw, meaning, given), cost, isThrottled }
}

const LOCKED: Meaning = {
  cause: 'the shop is frozen or locked',
  fix: 'Look into the plan of the shop.',
  isTaken: 'later',
}
const FAILED: Meaning = { cause: 'it failed', isTaken: 'unknown' }

/** The meanings of GraphQL error codes. The first code here that an answer has counts. `status` replaces the answer's 200. */
const CODES: Record<string, Meaning> = {
  THROTTLED: { cause: TOO_MANY, isTaken: 'later', status: 429 },
  ACCESS_DENIED: { cause: 'the app may not do this', fix: SCOPES_FIX, isTaken: 'no', status: 403 },
  SHOP_INACTIVE: { ...LOCKED, cause: 'the shop is not active', status: 402 },
  INTERNAL_SERVER_ERROR: { ...FAILED, status: 500 },
  TIMEOUT: { ...FAILED, status: 500 },
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
  // Shopify once answered 420 for shops that are locked.
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

/** Returns why no access token came. The shop has not acted: a request is sent only with a token. */
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
