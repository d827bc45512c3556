/** Tokens and scopes of the Shopify shop, and the bucket that its answers cost. */
import { createHash } from 'node:crypto'
import type { ShopAnswer, ShopRequest } from './shop-server.ts'

/** An app of the Dev Dashboard, which gets its tokens by client credentials, with the secret that signs webhooks. */
export interface ShopifyApp {
  clientId: string
  secret: string
  /** An access token of an app that was made in the admin: it does not expire. */
  staticToken: string | null
  scopes: string[]
}

/** Seconds that a token of client credentials lives. */
const TOKEN_SECONDS = 86_399

interface AccessOptions {
  app: ShopifyApp
  now: () => number
  bucket: { maximum: number; restoreRate: number }
}

export function createAccess({ app, now, bucket }: AccessOptions) {
  const tokens = new Map<string, number>()
  let made = 0
  let withheld: 'app_not_installed' | 'shop_not_permitted' | null = null
  let available = bucket.maximum
  let filledAt = now()

  /** Answers a request for a token. */
  const grant = ({ headers, body }: ShopRequest): ShopAnswer => {
    const isForm = String(headers['content-type'] ?? '').startsWith('application/x-www-form-urlencoded')
    const form = isForm ? Object.fromEntries(new URLSearchParams(String(body ?? ''))) : asked(String(body ?? ''))
    const answered = (status: number, json: unknown): ShopAnswer => ({
      status,
      headers: { 'content-type': 'application/json; charset=utf-8' },
      body: JSON.stringify(json),
    })
    // A client that does not ask for JSON gets a page.
    const refused = (error: string, error_description: string): ShopAnswer => {
      if (String(headers.accept ?? '').includes('application/json')) return answered(400, { error, error_description })
      const body = `<!DOCTYPE html><html><body>Oauth error ${error}: ${error_description}</body></html>`
      return { status: 400, headers: { 'content-type': 'text/html; charset=utf-8' }, body }
    }
    if (form.grant_type !== 'client_credentials') return refused('invalid_request', 'The grant type is not supported.')
    if (form.client_id !== app.clientId) {
      return refused('application_cannot_be_found', 'Could not find Shopify API application.')
    }
    if (form.client_secret !== app.secret) return refused('invalid_client', 'The client secret is wrong.')
    if (withheld !== null) return refused(withheld, 'Client credentials cannot be performed on this shop.')
    made += 1
    const token = `shpat_${createHash('sha256').update(`${app.clientId} ${made}`).digest('hex').slice(0, 32)}`
    tokens.set(token, now() + TOKEN_SECONDS * 1000)
    return answered(200, { access_token: token, scope: app.scopes.join(','), expires_in: TOKEN_SECONDS })
  }

  const isKnown = (headers: ShopRequest['headers']): boolean => {
    const token = headers['x-shopify-access-token']
    if (typeof token !== 'string') return false
    return token === app.staticToken || (tokens.get(token) ?? 0) > now()
  }

  /** A scope to write implies that to read. */
  const may = (scope: string): boolean =>
    app.scopes.includes(scope) || app.scopes.includes(scope.replace(/^read_/, 'write_'))

  const fill = (): void => {
    const at = now()
    available = Math.min(bucket.maximum, available + (Math.max(0, at - filledAt) / 1000) * bucket.restoreRate)
    filledAt = at
  }
  return {
    grant,
    isKnown,
    may,
    /** The merchant installs the app again: earlier tokens are worth nothing. */
    revokeTokens: () => tokens.clear(),
    /** The app gets no tokens, because of this; null: it gets them again. */
    withholdTokens: (reason: typeof withheld) => {
      withheld = reason
      if (reason !== null) tokens.clear()
    },
    fits: (points: number): boolean => {
      fill()
      return available >= points
    },
    spend: (points: number): void => {
      available = Math.max(0, available - points)
    },
    throttleStatus: () => ({
      maximumAvailable: bucket.maximum,
      currentlyAvailable: Math.floor(available),
      restoreRate: bucket.restoreRate,
    }),
  }
}

function asked(text: string): Record<string, unknown> {
  try {
    return JSON.parse(text) as Record<string, unknown>
  } catch {
    return {}
  }
}
