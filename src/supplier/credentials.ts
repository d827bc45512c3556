import { type Dialect, keyFault, keyParts, valueAt } from '../dialect/dialect.ts'
import { Failure } from '../errors.ts'
import type { Secret } from '../secret.ts'
import { readJson } from './records.ts'
import {
  ANSWER_MAX_BYTES,
  type Connections,
  type Exchange,
  exchange,
  type Network,
  noAnswerText,
  type Place,
  type Request,
} from './request.ts'

/** What a request carries. `token`: the token among it, where there is one. */
export interface Access {
  headers: Record<string, string>
  token?: string
  /** How long the token lasted at first; infinite where its endpoint does not say. */
  lifeMs?: number
}

/** Why there are no credentials: nothing was sent. */
type NoAccess = Extract<Exchange, { stage: 'not_sent' }>

/** The credentials of requests to one supplier, as `auth` of the dialect says. */
export interface Credentials {
  /** @param lifeMs how long the request may take: a token lasts at least so long */
  access: (lifeMs: number) => Promise<Access | NoAccess>
  /** Notes that the supplier answered a token by something other than 401. */
  taken: (token: string, isPost: boolean) => void
  /** Notes that a token was answered by 401. @returns other credentials, or why there are none; undefined: the API key is refused */
  refused: (token: string, isPost: boolean) => Promise<Access | NoAccess | undefined>
  /** What no answer of that status may show, in every spelling. */
  spellings: (status: number) => readonly string[]
}

interface Given extends Place {
  apiKey: Secret
  /** Milliseconds of a clock that does not jump. */
  monotonic: () => number
  agent: Pick<Connections, 'dispatch'>
  after: Network['after']
  fetchDeadlineMs: number
}

type OAuth = Extract<Dialect['auth'], { kind: 'oauth2_client_credentials' }>

/** A token endpoint answers in a second. All requests wait for it, and an order has a third of `settleSeconds` to leave. */
const DEADLINE_MS = 10_000

/** The wait after a failed renewal, doubled for each in a row: the third try comes after a second, and then fewer than one a second. */
const BACKOFF_MS = 250
const BACKOFF_MAX_MS = 30_000

/** A token that replaced a refused one and is refused too is no matter of tokens: for so long, no other is asked for. */
const CURE_GAP_MS = 60_000

/** Where each new token may read, and so many orders in a row were refused by 401, the key may not buy. */
const POSTS_MAX = 3

/** Finds the credentials. Nothing is sent before the first request. @throws Failure `invalid`, naming `supplier.apiKey` */
export function createCredentials(given: Given): Credentials {
  const { dialect, apiKey } = given
  const { auth, headers } = dialect
  const key = apiKey.reveal()
  const message = keyFault(dialect, key)
  if (message !== undefined)
    throw new Failure('invalid', `supplier.apiKey ${message}`, { fields: [{ field: 'supplier.apiKey', message }] })
  if (auth === undefined) return constant({ [headers.apiKey]: key }, [key])
  const { id, secret } = keyParts(key)
  if (auth.kind === 'basic') return constant({ authorization: basic(id, secret) }, secretsOf(key, id, secret), [id])
  if (auth.kind === 'oauth2_client_credentials') return tokens(given, auth)
  const values: Record<string, string> = { apiKey: key, id, secret }
  const fill = (text: string) => text.replaceAll(/\{(apiKey|id|secret)\}/g, (_, name) => values[name] ?? '')
  const filled = Object.entries(auth.headers).map(([name, text]) => [name, fill(text)])
  return constant(Object.fromEntries(filled), [key, secret], [id])
}

const basic = (id: string, secret: string): string => `Basic ${Buffer.from(`${id}:${secret}`).toString('base64')}`

/** As RFC 6749, section 2.3.1, has it: both parts are encoded before they are joined. */
const encodedBasic = (id: string, secret: string): string => basic(encodeURIComponent(id), encodeURIComponent(secret))

/** Without the id, the name of an account: a store may have the same name, which is then in the references of all its orders. */
const secretsOf = (key: string, id: string, secret: string): string[] =>
  [key, secret, basic(id, secret), encodedBasic(id, secret)].map((text) => text.replace(/^Basic /, ''))

function constant(headers: Record<string, string>, secrets: string[], names: string[] = []): Credentials {
  const [hidden, ofRefusals] = [spellingsOf(secrets), spellingsOf([...secrets, ...names])]
  const spellings = (status: number) => (status < 300 ? hidden : ofRefusals)
  return { access: async () => ({ headers }), taken: () => {}, refused: async () => undefined, spellings }
}

interface Token {
  text: string
  askedAt: number
  /** How long it lasts from then on; infinite where the endpoint does not say. */
  lifeMs: number
  /** It replaced a token that was refused. */
  isCure: boolean
  isTaken: boolean
  isRefused: boolean
}

/**
 * OAuth2: the API key is exchanged for a token, in the memory of this process alone, when it is first needed. One renewal runs at a
 * time, and all requests wait for it. The time of a token counts from the instant at which it was asked for.
 *
 * @see RFC 6749, sections 4.4, 5.1 and 5.2; RFC 6750, section 2.1
 */
function tokens(given: Given, auth: OAuth): Credentials {
  const { apiKey, monotonic } = given
  const { id, secret } = keyParts(apiKey.reveal())
  const [own, names] = [spellingsOf(secretsOf(apiKey.reveal(), id, secret)), spellingsOf([id])]
  const request = tokenRequest(given, auth, id, secret)
  let token: Token | undefined
  let hidden = own
  let renewing: Promise<Token | NoAccess> | undefined
  let failed: { tries: number; until: number; why: NoAccess } | undefined
  let refusedPosts = 0

  const renewOnce = async (): Promise<Token | NoAccess> => {
    if (failed && monotonic() < failed.until) return failed.why
    const askedAt = monotonic()
    const got = readToken(await exchange(given.agent, request, given.after), auth)
    if ('stage' in got) {
      const tries = (failed?.tries ?? 0) + 1
      failed = { tries, why: got, until: monotonic() + Math.min(BACKOFF_MS * 2 ** (tries - 1), BACKOFF_MAX_MS) }
      return got
    }
    failed = undefined
    // An answer to a request with the token before may still come.
    hidden = [...spellingsOf(token ? [got.text, token.text] : [got.text]), ...own]
    const isCure = token?.isRefused ?? false
    token = { ...got, askedAt, isCure, isTaken: false, isRefused: false }
    return token
  }
  const renew = (): Promise<Token | NoAccess> => {
    renewing ??= renewOnce().finally(() => {
      renewing = undefined
    })
    return renewing
  }
  const lastsFor = ({ isRefused, askedAt, lifeMs }: Token, ms: number) =>
    !isRefused && monotonic() + ms < askedAt + lifeMs
  const accessOf = ({ text: token, lifeMs }: Token): Access => {
    return { headers: { authorization: `Bearer ${token}` }, token, lifeMs }
  }

  return {
    access: async (lifeMs) => {
      const has = token
      // A token that is shorter than what is asked for would be renewed for every request: half of it is enough then.
      const needed = lifeMs + auth.renewBeforeSeconds * 1_000
      if (has && lastsFor(has, Math.min(needed, has.lifeMs / 2))) return accessOf(has)
      const next = await renew()
      if (!('stage' in next)) return accessOf(next)
      // It was renewed early so that a token endpoint that is away for a moment stops nothing.
      return has && !next.refused && lastsFor(has, lifeMs) ? accessOf(has) : next
    },
    taken: (text, isPost) => {
      if (token?.text === text) token.isTaken = true
      if (isPost) refusedPosts = 0
    },
    refused: async (text, isPost) => {
      if (token && token.text !== text) return accessOf(token)
      if (isPost && !token?.isRefused) refusedPosts += 1
      if (isPost && refusedPosts > POSTS_MAX) return undefined
      if (token?.isCure && !token.isTaken && monotonic() < token.askedAt + CURE_GAP_MS) return undefined
      if (token) token.isRefused = true
      const next = await renew()
      if ('stage' in next) return next.refused ? undefined : next
      return next.text === text ? undefined : accessOf(next)
    },
    spellings: (status) => (status < 300 ? hidden : [...hidden, ...names]),
  }
}

function tokenRequest(given: Given, auth: OAuth, id: string, secret: string): Request {
  const { base, dialect, fetchDeadlineMs } = given
  const inFields = auth.credentials === 'fields'
  const own: Record<string, string> = inFields ? { client_id: id, client_secret: secret } : {}
  const scope: Record<string, string> = auth.scope === null ? {} : { scope: auth.scope }
  const fields = { grant_type: 'client_credentials', ...own, ...scope, ...auth.fields }
  const form = String(new URLSearchParams(fields))
  const isWhole = URL.canParse(auth.token)
  const { origin, pathname, search } = new URL(isWhole ? auth.token : `${base.origin}${base.path}${auth.token}`)
  const path = pathname + search
  const type = { form: 'application/x-www-form-urlencoded', json: 'application/json', query: undefined }[auth.send]
  return {
    method: 'POST',
    origin,
    path: auth.send === 'query' ? `${path}${search === '' ? '?' : '&'}${form}` : path,
    headers: {
      accept: 'application/json',
      'user-agent': 'quayside',
      // Another host has another API, to which the headers of this one mean nothing.
      ...(isWhole ? {} : dialect.constantHeaders),
      ...(type === undefined ? {} : { 'content-type': type }),
      ...(inFields ? {} : { authorization: encodedBasic(id, secret) }),
    },
    body: { form, json: JSON.stringify(fields), query: '' }[auth.send],
    deadlineMs: Math.min(fetchDeadlineMs, DEADLINE_MS),
    bodyMaxBytes: ANSWER_MAX_BYTES,
  }
}

/** The codes of RFC 6749, section 5.2. Nothing else of an answer is shown, because it may repeat the secret. */
const CODES = /^(invalid_(request|client|grant|scope)|unauthorized_client|unsupported_grant_type)$/

function readToken(ended: Exchange, auth: OAuth): Pick<Token, 'text' | 'lifeMs'> | NoAccess {
  const none = (why: string, refused = false): NoAccess => {
    return { stage: 'not_sent', cause: `its token endpoint ${why}`, heldBack: false, refused }
  }
  if (ended.stage !== 'answered') return none(noAnswerText(ended))
  const { status } = ended
  const json = ended.unreadable === undefined ? readJson(ended.body) : undefined
  if (status < 200 || status > 299) {
    const code = valueAt(json, 'error')
    const named = typeof code === 'string' && CODES.test(code) ? ` ${code}` : ''
    return none(`answered ${status}${named}`, [400, 401, 403].includes(status))
  }
  const text = valueAt(json, auth.accessToken)
  const isToken = typeof text === 'string' && /^[\x21-\x7e]{1,8000}$/.test(text)
  if (!isToken) return none(`answered without ${auth.accessToken}`)
  const lasts = Number(valueAt(json, auth.expiresIn) ?? Number.NaN)
  return { text, lifeMs: lasts > 0 ? lasts * 1_000 : Number.POSITIVE_INFINITY }
}

/** A shorter secret is not removed, because so short a text is in many answers by chance. */
const HIDDEN_MIN_LENGTH = 8

function spellingsOf(secrets: string[]): string[] {
  const texts = secrets.filter((text) => text.length >= HIDDEN_MIN_LENGTH)
  const spelled = texts.flatMap((text) => {
    const json = JSON.stringify(text).slice(1, -1)
    const encoded = [encodeURIComponent(text), String(new URLSearchParams([[text, '']])).slice(0, -1)]
    const small = encoded.map((one) => one.replaceAll(/%../g, (hex) => hex.toLowerCase()))
    return [text, json, json.replaceAll('/', '\\/'), ...encoded, ...small]
  })
  return [...new Set(spelled)].toSorted((one, other) => other.length - one.length)
}

/** Removes what is secret from an answer: suppliers repeat a key that they refuse. */
export function withoutSecrets<E extends Exchange>(ended: E, credentials: Pick<Credentials, 'spellings'>): E {
  const spellings = ended.stage === 'answered' ? credentials.spellings(ended.status) : []
  if (ended.stage !== 'answered' || !spellings.some((text) => ended.body.includes(text))) return ended
  const body = spellings.reduce((text, one) => text.replaceAll(one, '[secret]'), ended.body.toString('latin1'))
  return { ...ended, body: Buffer.from(body, 'latin1') }
}
