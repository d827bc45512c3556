/** What is known of an order's page of keys: whether it is withdrawn, and which keys its customer opened there. */
import { conflict } from '../errors.ts'
import { commitUnlessStale, type Database, first } from '../storage/database.ts'
import { audited } from '../storage/evidence.ts'
import { type KeyReveal, keyPageOfOrder, revealsOfOrder, withdrawKeyPage } from '../storage/key-pages.ts'
import type { Ordering } from './context.ts'

export interface Opening {
  purchaseId: string
  ordinal: number
  /** When the customer first opened it, epoch ms, and from which network, truncated. */
  at: number
  network: string
  times: number
}

/** Returns what was opened, each key once, by the order in which the keys were first opened. @param reveals the oldest first */
export const openingsOf = (reveals: readonly KeyReveal[]): Opening[] =>
  [...Map.groupBy(reveals, ({ purchaseId, ordinal }) => `${purchaseId} ${ordinal}`).values()].flatMap(
    ([one, ...others]) => {
      if (!one) return []
      const { purchaseId, ordinal, at, network } = one
      return [{ purchaseId, ordinal, at, network, times: others.length + 1 }]
    },
  )

/** @returns the page, undefined for an order without one, and the keys that were opened there */
export async function keysPageOf(db: Pick<Database, 'query'>, orderId: string) {
  const [page, reveals] = await Promise.all([first(db, keyPageOfOrder(orderId)), db.query(revealsOfOrder(orderId))])
  return { keysPage: page && { madeAt: page.createdAt, withdrawnAt: page.withdrawnAt }, openings: openingsOf(reveals) }
}

/**
 * Withdraws the page of keys of an order: it opens no key any more. The keys that were opened are known to the customer.
 *
 * @param reason why, in the operator's words, for the audit
 * @throws Failure `conflict`, reason `no_page` for an order without a page, `withdrawn` where that was done before
 */
export async function withdrawKeysPage(
  ordering: Pick<Ordering, 'db' | 'now' | 'newId'>,
  orderId: string,
  { actor, reason }: { actor: string; reason: string },
): Promise<void> {
  const { db, now } = ordering
  const { keysPage } = await keysPageOf(db, orderId)
  if (!keysPage) throw conflict('no_page', 'the order has no page of keys')
  const audit = audited(ordering, actor, 'order.withdraw_keys', orderId, reason)
  const isDone = await commitUnlessStale(db, [withdrawKeyPage(orderId, actor, now()), audit])
  if (!isDone) throw conflict('withdrawn', 'the page of keys is withdrawn already')
}
