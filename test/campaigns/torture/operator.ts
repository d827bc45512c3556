/**
 * The person on duty, scripted: decides reviews, lets buying go on after a freeze, puts back what waits for long.
 *
 * It knows what a person knows: what the service shows, and what the supplier says on the phone. It buys again only what
 * the supplier's books do not have, and only once a request that was still on its way must have run.
 */
import type { KeysDecision } from '../../support/cancelled-keys.ts'
import { groundlessFreezes } from '../../support/freeze-causes.ts'
import { lineOf, partOf } from '../../support/references.ts'
import type { BackOffice, SupplierOrder } from './back-office.ts'
import { type ClaimEntry, type Duty, type Effect, type PurchaseEntry, Refusal, type Status } from './duty.ts'

export interface Shift {
  /** Decisions by kind. */
  decisions: Record<string, number>
  /** When an operator asked for keys to be handed over or bought again, and for which line. */
  keysDecisions: KeysDecision[]
  freezes: number
  /** Callbacks and deliveries that were put back. */
  redelivered: number
  /** Purchases and freezes that were seen, so that none is counted twice. */
  seen: Set<string>
  /** Parts of store lines that may exceed the spend cap. */
  overridden: Set<string>
  /** Purchase -> the note with which it was first seen in review. */
  reviews: Map<string, string>
  /** Freezes for reviews that cancellations caused, in words. */
  groundless: Set<string>
}

export const newShift = (): Shift => ({
  decisions: {},
  keysDecisions: [],
  freezes: 0,
  redelivered: 0,
  seen: new Set(),
  overridden: new Set(),
  reviews: new Map(),
  groundless: new Set(),
})

export interface Desk {
  duty: Duty
  office: BackOffice
  /** After this a request that had left has run and shows. */
  certainAfterMs: number
  /** When each purchase was first seen in review. */
  reviewedAt: Map<string, number>
}

const REASON = 'the supplier was asked on the phone'

/** A decision of which the answer is lost is carried out within this time: a worker that begins it later than after 15 s leaves it. */
const CARRIED_OUT_MS = 30_000

/** A callback that waits for longer than this is put back by hand: its store is there again. */
const LONG_MS = 8_000

/** One look at everything. Whatever fails, for the service is down or busy, is looked at again the next time. */
export async function lookAround(desk: Desk, shift: Shift): Promise<void> {
  const { duty } = desk
  const status = await duty.get<Status>('/status')
  for (const purchase of await duty.all<PurchaseEntry>('/purchases?state=review')) {
    if (!shift.reviews.has(purchase.id)) shift.reviews.set(purchase.id, purchase.note ?? '')
    await decide(desk, purchase, shift).catch(() => {})
  }
  for (const state of ['planned', 'waiting']) {
    for (const purchase of await duty.all<PurchaseEntry>(`/purchases?state=${state}`)) {
      if (purchase.holdReason === 'spend_cap') await override(duty, purchase, shift).catch(() => {})
    }
  }
  const seen = [...shift.reviews.values()]
  // Without all of its reviews nothing can be said of a freeze.
  const counted = (reason: string) => Number(/^\d+/.exec(reason)?.[0] ?? Number.POSITIVE_INFINITY)
  const known = (status.freeze?.causes ?? []).filter(({ reason }) => counted(reason) <= seen.length)
  const inDoubt = seen.filter((note) => !/^cancelled (after|before) /.test(note)).length
  for (const text of groundlessFreezes(known, inDoubt)) shift.groundless.add(text)
  if (status.freeze) {
    const name = `freeze ${status.freeze.at}`
    if (!shift.seen.has(name)) shift.freezes += 1
    shift.seen.add(name)
    await duty.post('/unfreeze', { causes: status.freeze.causes.map(({ id }) => id) })
  }
  await putBack(duty, shift)
}

/** Noted before it is asked for: a request whose answer is lost may have been obeyed. */
async function override(duty: Duty, { id, externalOrderId }: PurchaseEntry, shift: Shift): Promise<void> {
  shift.overridden.add(partOf(externalOrderId))
  await duty.post(`/purchases/${id}/release`, { overrideSpendCap: true })
}

async function putBack(duty: Duty, shift: Shift): Promise<void> {
  const now = Date.now()
  const again = async (route: string): Promise<void> => {
    await duty.post(route)
    shift.redelivered += 1
  }
  for (const state of ['due', 'dead']) {
    for (const effect of await duty.all<Effect>(`/outbox?kind=callback&state=${state}`)) {
      const late = state === 'dead' || Date.parse(effect.notBefore) - now > LONG_MS
      if (late) await again(`/outbox/${effect.id}/redeliver`)
    }
  }
  for (const { id } of await duty.all<{ id: string }>('/deliveries?state=dead')) await again(`/deliveries/${id}/replay`)
}

async function decide({ duty, office, certainAfterMs, reviewedAt }: Desk, purchase: PurchaseEntry, shift: Shift) {
  const since = reviewedAt.get(purchase.id) ?? Date.now()
  reviewedAt.set(purchase.id, since)
  // What is decided on is what was there before the supplier was asked: what comes meanwhile makes it void.
  const { evidenceVersion } = await duty.get<{ evidenceVersion: string }>(`/purchases/${purchase.id}/evidence`)
  const orders = await office.orders()
  const own = orders.filter(({ externalOrderId }) => externalOrderId === purchase.externalOrderId)
  const certain = Date.now() - since > certainAfterMs
  const isGiven =
    purchase.claim !== null && (await duty.get<ClaimEntry>(`/claims/${purchase.claim}`)).state === 'adopted'
  // A key that the supplier gave by hand is here: it has no order there.
  const decision = isGiven ? { decision: 'hand_over' } : decisionOn(purchase, own, certain)
  if (!decision) return
  const [reference = '', line = ''] = lineOf(purchase.externalOrderId).split('/')
  const noted = { reference, line, at: Date.now(), until: Number.POSITIVE_INFINITY }
  if (decision.decision === 'hand_over' || decision.decision === 'buy_again') shift.keysDecisions.push(noted)
  try {
    await duty.post(`/purchases/${purchase.id}/decision`, { ...decision, reason: REASON }, evidenceVersion)
    noted.until = Date.now()
  } catch (error) {
    // An answer that is lost does not undo the decision.
    noted.until = error instanceof Refusal ? Date.now() : noted.at + CARRIED_OUT_MS
    throw error
  }
  shift.decisions[decision.decision] = (shift.decisions[decision.decision] ?? 0) + 1
  reviewedAt.delete(purchase.id)
}

/** @returns undefined while it is too early to decide */
function decisionOn(
  purchase: PurchaseEntry,
  own: SupplierOrder[],
  certain: boolean,
): { decision: string; orderId?: string } | undefined {
  const [order] = own.filter(({ status }) => status === 'open' || status === 'completed')
  if (!order) return certain ? { decision: own.length > 0 ? 'close' : 'buy_again' } : undefined
  if (order.status === 'open' || order.keys.length < order.quantity) return undefined
  // What the store cancelled has been paid for: the customer gets the keys.
  const cancelled = /^cancelled (after|before) /.test(purchase.note ?? '')
  if (cancelled || /hand-over waits/.test(purchase.note ?? '')) return { decision: 'hand_over' }
  return { decision: 'adopt', orderId: order.id }
}
