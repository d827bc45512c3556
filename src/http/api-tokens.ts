import { Failure } from '../errors.ts'
import { allTokens } from '../storage/tokens.ts'
import { createToken, revokeToken, type TokenFlows } from '../tokens.ts'
import { tokenBody } from './api-input.ts'
import type { ConfiguredStore } from './api-listings.ts'
import { NewToken, page, Token, tokenView } from './api-views.ts'
import { type Operation, ok, operation } from './operation.ts'

/** Who may ask: tokens are made, listed and revoked by admins. */
export function tokenOperations(needs: TokenFlows & { stores: readonly ConfiguredStore[] }): Operation[] {
  const admin = { people: 'admin' } as const
  return [
    operation({
      ...{ name: 'listTokens', method: 'get', path: '/tokens', allowed: admin },
      summary: 'All tokens, revoked ones too, without their text.',
      ...{ answer: page(Token), success: { 200: 'All of them' } },
      handle: async () => ok({ items: (await needs.db.query(allTokens())).map(tokenView), next: null }),
    }),
    operation({
      ...{ name: 'createToken', method: 'post', path: '/tokens', allowed: admin, body: tokenBody },
      summary: 'Make a token. Its text is in this answer and never shown again.',
      ...{ answer: NewToken, success: { 201: 'Made' } },
      async handle({ caller, body: { name, role, store = null, scopes = [], expiresInDays = null } }) {
        if (store !== null && !needs.stores.some(({ id }) => id === store)) {
          const message = `must be one of ${needs.stores.map(({ id }) => id).join(', ')}`
          throw new Failure('invalid', `store: ${message}`, { fields: [{ field: 'store', message }] })
        }
        const wanted = { name, role, store, scopes: [...new Set(scopes)], expiresInDays }
        const { token, row } = await createToken(needs, wanted, caller.actor)
        return { status: 201, data: { ...tokenView(row), token: token.reveal() } }
      },
    }),
    operation({
      ...{ name: 'revokeToken', method: 'delete', path: '/tokens/:id', allowed: admin },
      summary: 'Revoke a token at once. The owner token is no row: it changes with each start.',
      ...{ answer: Token, success: { 200: 'Revoked' }, failures: { 404: 'unknown id, or revoked already' } },
      handle: async ({ caller, path }) => ok(tokenView(await revokeToken(needs, path.id ?? '', caller.actor))),
    }),
  ]
}
