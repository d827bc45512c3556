import { z } from 'zod'
import { rotateSecretBody } from '../input.ts'
import { type ApiContext, type Operation, operation } from '../operation.ts'
import { storeAt } from './listings.ts'
import { iso } from './views.ts'

const at = z.string().meta({ format: 'date-time', examples: ['2026-03-01T09:30:00.000Z'] })

const RotatedSecret = z.object({
  store: z.string(),
  secret: z.string().meta({ description: 'Shown this once', examples: ['whsec_'] }),
  generation: z.int().min(2),
  previousUntil: at.meta({ description: 'Until then callbacks are signed with the secret before, too' }),
})

/** Stores: what callbacks to them are signed with. */
export function storeOperations({
  callbackSecrets,
  stores,
}: Pick<ApiContext, 'callbackSecrets' | 'stores'>): Operation[] {
  return [
    operation({
      name: 'rotateCallbackSecret',
      method: 'post',
      path: '/stores/:store/rotate-secret',
      summary: 'Take a new callback secret into use. Its text is in this answer and never shown again.',
      allowed: { people: 'admin' },
      body: rotateSecretBody,
      answer: RotatedSecret,
      success: { 201: 'In use; callbacks carry the signatures of both until the one before ends' },
      failures: {
        404: 'no such store',
        409: '`too_many_secrets`: four are valid already; `rotated_meanwhile`: another request was faster',
      },
      async handle({ caller, path, body: { overlapHours } }) {
        const store = storeAt(stores, caller, path)
        const made = await callbackSecrets.rotate(store, overlapHours * 3_600_000, caller.actor)
        const { generation, previousUntil } = made
        return {
          status: 201,
          data: { store, secret: made.secret.reveal(), generation, previousUntil: iso(previousUntil) },
        }
      },
    }),
  ]
}
