/** Who may ask a WooCommerce shop: keys by Basic or in the query over https, OAuth 1.0a over http. */
import { createHmac, timingSafeEqual } from 'node:crypto'
import type { ShopRequest } from './shop-server.ts'
import { WooRefusal } from './woocommerce-answers.ts'

export interface WooKey {
  key: string
  secret: string
  permissions: 'read' | 'write' | 'read_write'
}

export interface AccessOptions {
  keys: WooKey[]
  scheme: 'http' | 'https'
  /** The host's web server takes the Authorization header away. */
  hidesAuthorization: () => boolean
  now: () => number
}

/** How far the clock of a client may be from the shop's. */
const toleranceMs = 15 * 60_000

const refused = (message: string): WooRefusal => new WooRefusal(401, 'woocommerce_rest_authentication_error', message)

/** Finds the key of a request: null for one that names none, or an unknown one over https. Throws where it is refused. */
export function createAccess({ keys, scheme, hidesAuthorization, now }: AccessOptions) {
  const usedNonces = new Set<string>()
  const known = (key: string) => keys.find((one) => one.key === key)

  const bySecret = (authorization: string | undefined, query: URLSearchParams): WooKey | null => {
    const basic = /^Basic (.+)$/.exec(authorization ?? '')?.[1]
    const [user = '', password = ''] = splitOnce(Buffer.from(basic ?? '', 'base64').toString('utf8'))
    const inQuery = query.has('consumer_key') && query.has('consumer_secret')
    const key = known(inQuery ? (query.get('consumer_key') ?? '') : user)
    if (!key) return null
    const secret = inQuery ? query.get('consumer_secret') : password
    if (secret !== key.secret) throw refused('Consumer secret is invalid.')
    return key
  }

  const bySignature = (method: string, url: URL, header: string | undefined): WooKey | null => {
    const parameters = [...url.searchParams, ...oauthHeader(header)]
    const value = (name: string) => parameters.find(([one]) => one === name)?.[1]
    const names = ['oauth_consumer_key', 'oauth_timestamp', 'oauth_nonce', 'oauth_signature', 'oauth_signature_method']
    const missing = names.filter((name) => !value(name))
    if (missing.length === names.length) return null
    if (missing.length > 0) {
      const message = `Missing OAuth parameters ${missing.join(', ')}`
      throw new WooRefusal(401, 'woocommerce_rest_authentication_missing_parameter', message)
    }
    const key = known(value('oauth_consumer_key') ?? '')
    if (!key) throw refused('Consumer key is invalid.')
    const signed = parameters.filter(([name]) => name !== 'oauth_signature')
    const algorithm = { 'HMAC-SHA1': 'sha1', 'HMAC-SHA256': 'sha256' }[value('oauth_signature_method') ?? '']
    if (!algorithm) throw refused('Invalid signature - signature method is invalid.')
    const base = signatureBase(method, `${scheme}://${url.host}${url.pathname}`, signed)
    const expected = createHmac(algorithm, `${key.secret}&`).update(base).digest()
    const given = Buffer.from(value('oauth_signature') ?? '', 'base64')
    if (given.length !== expected.length || !timingSafeEqual(given, expected)) {
      throw refused('Invalid signature - provided signature does not match.')
    }
    const at = Number(value('oauth_timestamp')) * 1000
    if (!(Math.abs(now() - at) <= toleranceMs)) throw refused('Invalid timestamp.')
    const nonce = `${key.key} ${value('oauth_nonce')}`
    if (usedNonces.has(nonce)) throw refused('Invalid nonce - nonce has already been used.')
    usedNonces.add(nonce)
    return key
  }

  return ({ method, url, headers }: ShopRequest): WooKey | null => {
    const parsed = new URL(url)
    const given = hidesAuthorization() ? undefined : headers.authorization
    const authorization = Array.isArray(given) ? given[0] : given
    const key = scheme === 'https' ? bySecret(authorization, parsed.searchParams) : null
    const found = key ?? bySignature(method, parsed, authorization)
    if (!found) return null
    const isRead = method === 'GET' || method === 'HEAD'
    if (found.permissions === (isRead ? 'write' : 'read')) {
      throw refused(`The API key provided does not have ${isRead ? 'read' : 'write'} permissions.`)
    }
    return found
  }
}

/** What an OAuth 1.0a signature covers (RFC 5849, 3.4.1). */
function signatureBase(method: string, address: string, parameters: [string, string][]): string {
  const encoded = parameters.map(([name, value]): [string, string] => [percent(name), percent(value)])
  const ordered = encoded.toSorted(([a, x], [b, y]) => (a < b ? -1 : a > b ? 1 : x < y ? -1 : 1))
  const query = ordered.map(([name, value]) => `${name}=${value}`).join('&')
  return `${method.toUpperCase()}&${percent(address)}&${percent(query)}`
}

const percent = (text: string): string =>
  encodeURIComponent(text).replaceAll(/[!'()*]/g, (one) => `%${one.charCodeAt(0).toString(16).toUpperCase()}`)

function oauthHeader(header: string | undefined): [string, string][] {
  const list = /^OAuth (.+)$/.exec(header ?? '')?.[1]
  const pairs = [...(list ?? '').matchAll(/(\w+)="([^"]*)"/g)]
  return pairs.map(([, name = '', value = '']): [string, string] => [name, decodeURIComponent(value)])
}

function splitOnce(text: string): string[] {
  const at = text.indexOf(':')
  return at < 0 ? [text] : [text.slice(0, at), text.slice(at + 1)]
}
