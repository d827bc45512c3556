import assert from 'node:assert/strict'
import { counted } from '../domain/figures.ts'
import { needsPage } from '../domain/licence-key.ts'
import { conflict, Failure } from '../errors.ts'
import { claimsOfOrder } from '../storage/claims.ts'
import { first } from '../storage/database.ts'
import { audited } from '../storage/evidence.ts'
import { keyPageOfOrder } from '../storage/key-pages.ts'
import { auditText } from './actions.ts'
import { keysFor } from './advance.ts'
import { type Fulfilment, wayOf } from './fulfil.ts'
import { keysByLine, orderStanding, type Standing } from './order-view.ts'

/** Says why the keys of an order cannot be sent again; undefined when they can be. */
export function resendRefusal(
  { storeOf }: Pick<Fulfilment, 'storeOf'>,
  { order, keys }: Pick<Standing, 'order' | 'keys'>,
): Failure | undefined {
  if (!storeOf(order.store)?.resend) {
    const message = 'the store writes to its customers itself: it has the keys, and Quayside cannot send them again'
    return conflict('no_resend', message)
  }
  if (keys.some(({ handedOverAt }) => handedOverAt !== null)) return undefined
  return conflict('no_keys', 'the customer has no key of this order yet')
}

/**
 * Has the store send the keys of an order to its customer again: only keys that the store has, none that another key replaces, and
 * only when an operator asks.
 * The audit notes the request before it leaves. The request is never repeated automatically.
 *
 * @param reason why, in the operator's words, for the audit
 * @returns how many keys, and what the store did, as a sentence; null: it sent all keys again
 * @throws Failure `not_found`; `conflict`, reason `no_resend` for a store to which Quayside cannot send keys again, reason
 *   `no_keys` where no key is handed over, `no_page` where a key needs one, reason `withdrawn` for a link whose page is withdrawn; `unavailable` where the store did not confirm that it sent the keys
 */
export async function resendKeys(fulfilment: Fulfilment, orderId: string, actor: string, reason?: string) {
  const standing = await orderStanding(fulfilment, orderId)
  const { order } = standing
  const refusal = resendRefusal(fulfilment, standing)
  if (refusal) throw refusal
  const store = fulfilment.storeOf(order.store)
  assert(store?.resend, 'a store that cannot send keys again was refused')
  const by = wayOf(fulfilment, store, standing.keys)
  if (by === undefined && standing.keys.some(needsPage)) {
    throw conflict('no_page', 'a picture or a file reaches a customer on the page of keys alone: set publicUrl')
  }
  const page = by === undefined ? undefined : await first(fulfilment.db, keyPageOfOrder(orderId))
  if (page?.withdrawnAt != null) {
    throw conflict('withdrawn', 'the page of keys of the order is withdrawn, so that a link to it opens nothing')
  }
  const claims = await fulfilment.db.query(claimsOfOrder(orderId))
  const handedOver = keysByLine(
    standing,
    ({ handedOverAt, purchaseId, ordinal }) =>
      handedOverAt !== null &&
      !claims.some((claim) => claim.part !== null && claim.purchaseId === purchaseId && claim.ordinal === ordinal),
  )
  const count = handedOver.reduce((sum, { keys }) => sum + keys.length, 0)
  await fulfilment.db.commit([
    audited(fulfilment, actor, 'order.resend', orderId, auditText([counted(count, 'key'), reason])),
  ])
  const purchases = standing.lines.flatMap((line) => line.purchases)
  const lines = handedOver.map(({ line, keys }) => ({ id: line, keys: keysFor(fulfilment, by, keys, purchases) }))
  const result = await store.resend({
    reference: order.reference,
    lines,
    ...(by !== undefined && { by, keysUrl: await fulfilment.keysUrl?.(orderId) }),
  })
  if (result.outcome !== 'confirmed') {
    throw new Failure('unavailable', `${order.store} did not confirm that it sent them: ${result.detail}`)
  }
  return { keys: count, detail: result.detail ?? null }
}
