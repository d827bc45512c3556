import type { ServerResponse } from 'node:http'
import { type Heard, sendJson, startHttp } from './supplier-server.ts'

export const CLIENT = { id: 'reseller-4711', secret: 's/cr+t=of~the&reseller' }

/**
 * A supplier behind OAuth2, as RFC 6749 (4.4, 5.1, 5.2) and RFC 6750 (2.1, 3.1) have it. Its clock is its own. One with `query`
 * takes the fields of the token request in the query, as the SDK of CodesWholesale sends them.
 *
 * @param api answers what comes with a good token
 */
export async function startTokenServer(
  api: (heard: Heard, response: ServerResponse) => unknown,
  given: { clock: () => number; lastsSeconds?: number; query?: boolean; json?: boolean },
) {
  const state = {
    lastsSeconds: given.lastsSeconds ?? 3_600,
    /** What the token endpoint does instead of an answer. */
    endpoint: 'answers' as 'answers' | 'away' | 'silent' | 'refuses' | 'same',
    /** Whether the API refuses every token. */
    shut: false,
    /** Whether a good token may also send a POST. */
    mayBuy: true,
    asked: [] as Heard[],
    posts: [] as string[],
    refused: 0,
    issued: [] as string[],
    ends: new Map<string, number>(),
    /** A token that someone revokes is known no more. */
    revoke: () => state.ends.clear(),
  }

  const issue = (heard: Heard, response: ServerResponse) => {
    state.asked.push(heard)
    if (state.endpoint === 'silent') return response.destroy()
    if (state.endpoint === 'away') return sendJson(response, 503, { error: 'temporarily_unavailable' })
    const url = new URL(heard.url, 'http://x')
    const fields = given.query
      ? url.searchParams
      : new URLSearchParams(given.json ? JSON.parse(heard.body) : heard.body)
    const [, encoded = ''] = heard.headers.authorization?.split(' ') ?? []
    const [user, password] = Buffer.from(encoded, 'base64').toString().split(':').map(decodeURIComponent)
    const id = fields.get('client_id') ?? user
    const secret = fields.get('client_secret') ?? password
    if (fields.get('grant_type') !== 'client_credentials') return sendJson(response, 400, { error: 'invalid_request' })
    if (state.endpoint === 'refuses' || id !== CLIENT.id || secret !== CLIENT.secret)
      return sendJson(response, 401, { error: 'invalid_client', error_description: `no client ${id} with ${secret}` })
    const last = state.issued.at(-1)
    const text = state.endpoint === 'same' && last ? last : `tok_${state.issued.length}_${'x'.repeat(20)}`
    state.issued.push(text)
    state.ends.set(text, given.clock() + state.lastsSeconds * 1_000)
    const answer = { access_token: text, token_type: 'Bearer', expires_in: state.lastsSeconds }
    return sendJson(response, 200, answer, { 'cache-control': 'no-store' })
  }

  const server = await startHttp((heard, response) => {
    if (heard.url.startsWith('/oauth/token')) return void issue(heard, response)
    const [scheme, text = ''] = heard.headers.authorization?.split(' ') ?? []
    const isGood =
      scheme === 'Bearer' &&
      (state.ends.get(text) ?? 0) > given.clock() &&
      !state.shut &&
      (state.mayBuy || heard.method === 'GET')
    if (heard.method === 'POST') state.posts.push(`${heard.url} ${isGood ? 'taken' : 'refused'}`)
    if (isGood) return void api(heard, response)
    state.refused += 1
    // Some suppliers repeat what they refuse.
    const says = { error: 'invalid_token', error_description: `the token ${text} has ended` }
    return sendJson(response, 401, says, { 'www-authenticate': 'Bearer error="invalid_token"' })
  })
  return Object.assign(state, { origin: server.origin, heard: server.heard, close: server.close })
}
