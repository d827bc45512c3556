import { z } from 'zod'
import { createToken, revokeToken, roles, scopes } from '../../access/tokens.ts'
import { allTokens } from '../../storage/tokens.ts'
import { invalidField, tokenBody } from '../input.ts'
import { type ApiContext, admin, created, ok, operation } from '../operation.ts'
import { page } from './list-operation.ts'
import { at, component, maybeAt, oneOf, words } from './views.ts'

const Token = component('Token', {
  id: z.string(),
  name: z.string(),
  hint: z.string(),
  role: oneOf(roles),
  store: words,
  scopes: z.array(oneOf(scopes)),
  createdAt: at,
  expiresAt: maybeAt,
  revokedAt: maybeAt,
})
const NewToken = component('NewToken', { ...Token.shape, token: z.string().describe('Shown this once') })

export function tokenOperations({ ordering, stores, randomBytes }: ApiContext) {
  const { db, now, newId } = ordering
  const context = { db, now, newId, randomBytes }
  return {
    listTokens: operation({
      route: 'GET /tokens',
      allowed: admin,
      summary: 'All tokens, revoked ones too, without their text.',
      answer: page(Token),
      success: { 200: 'All of them' },
      handle: async () => ok({ items: await db.query(allTokens()), next: null }),
    }),
    createToken: operation({
      route: 'POST /tokens',
      allowed: admin,
      body: tokenBody,
      summary: 'Create a token. Its text is in this answer and never shown again.',
      answer: NewToken,
      success: { 201: 'Created' },
      async handle({ caller, body: { name, role, store = null, scopes = [], expiresInDays = null } }) {
        if (store !== null && !stores.some(({ id }) => id === store)) {
          throw invalidField('store', `must be one of ${stores.map(({ id }) => id).join(', ')}`)
        }
        const wanted = { name, role, store, scopes: [...new Set(scopes)], expiresInDays }
        const { token, row } = await createToken(context, wanted, caller.actor)
        return created({ ...row, token: token.reveal() })
      },
    }),
    revokeToken: operation({
      route: 'DELETE /tokens/:id',
      allowed: admin,
      summary: 'Revoke a token at once. The owner token cannot be revoked: it changes with each start.',
      answer: Token,
      success: { 200: 'Revoked' },
      failures: { 404: 'unknown id, or already revoked' },
      handle: async ({ caller, path }) => ok(await revokeToken(context, path.id, caller.actor)),
    }),
  }
}
