import { z } from 'zod'
import { assertAllowed } from '../../access/auth.ts'
import { formatDecimal } from '../../domain/money.ts'
import { purchaseStates } from '../../domain/purchase.ts'
import { decisionTypes } from '../../ordering/choices.ts'
import { type Decision, decidePurchase } from '../../ordering/decide.ts'
import type { Evidence as EvidenceRows, OrderReading } from '../../ordering/evidence.ts'
import { viewEvidence } from '../../ordering/evidence.ts'
import { choice, decisionBody } from '../input.ts'
import { type ApiContext, type Operation, ok, operation } from '../operation.ts'
import * as views from './views.ts'

const { iso, maybeIso } = views
const at = views.PurchaseEntry.shape.since
const words = z.string().nullable()
const count = z.int().min(0)
const orderStatuses = ['open', 'completed', 'failed', 'refunded'] as const

const Reading = z.object({
  status: z.enum(orderStatuses),
  statusWord: z.string().meta({ description: "The supplier's own word" }),
  amount: words,
  currency: z.string(),
  quantity: z.int().nullable(),
  createdAt: at.nullable(),
  keys: count.meta({ description: 'How many it carries; they are never shown here' }),
  differs: z.array(z.enum(['reference', 'product', 'quantity'])).meta({ description: 'From what was sent' }),
})

const SeenOrder = z.object({
  id: z.string(),
  own: z.boolean().meta({ description: 'The purchase goes by this one now' }),
  generation: z.int().nullable().meta({
    description: 'Of the part, found by a restore; null unless no purchase here has that generation',
  }),
  takenBy: words.meta({ description: 'The other purchase that it belongs to' }),
  reading: Reading.nullable().meta({ description: 'As the supplier shows it now; only with read=true' }),
  unread: words.meta({ description: 'Why there is no reading' }),
})

const Generation = z.object({
  id: z.string(),
  generation: z.int(),
  state: z.enum(purchaseStates),
  supplierOrderId: words,
  writtenOffAt: at.nullable(),
  refundedAt: at.nullable(),
})

/** What a person needs to decide on one purchase. */
const Evidence = z.object({
  purchase: views.PurchaseEntry,
  order: z.object({ store: z.string(), reference: z.string(), line: z.string() }),
  keys: z.object({
    stored: count,
    left: count.meta({ description: 'Of those, the ones that the store has or is being given' }),
    elsewhere: z.array(z.string()).meta({ description: 'Other purchases that hold one of them' }),
  }),
  orders: z.array(SeenOrder),
  generations: z.array(Generation),
  choices: z.array(
    z.object({
      decision: z.enum(decisionTypes),
      does: z.string().meta({ description: 'What it would do now' }),
      refusal: words.meta({ description: 'Why it is not possible now; null when it is' }),
    }),
  ),
  basis: z.string().meta({ description: 'Names all this; a decision that is taken on it carries it' }),
  freeze: views.Freeze.nullable(),
  attempts: z.array(views.Attempt),
  discrepancies: z.array(views.Discrepancy),
  transitions: z.array(
    views.Transition.extend({ times: z.int().meta({ description: 'The same in a row is one' }), lastAt: at }),
  ),
  audit: z.array(z.object({ at, actor: z.string(), action: z.string(), detail: words })),
})

/** What waits for a person's decision: the evidence, and the decision itself. */
export function reviewOperations({ ordering }: Pick<ApiContext, 'ordering'>): Operation[] {
  const operator = { people: 'operator' } as const
  return [
    operation({
      name: 'viewEvidence',
      method: 'get',
      path: '/purchases/:id/evidence',
      allowed: { people: 'viewer' },
      summary:
        'What is known of a purchase, and what each decision would do. An operator asks the supplier too, with read=true.',
      query: { read: choice(['true', 'false']) },
      answer: Evidence,
      success: { 200: 'The evidence' },
      failures: { 404: 'unknown id' },
      async handle({ caller, path, query }) {
        const read = query.read === 'true'
        if (read) assertAllowed(caller, operator)
        return ok(evidenceView(await viewEvidence(ordering, path.id ?? '', { read })))
      },
    }),
    operation({
      name: 'decidePurchase',
      method: 'post',
      path: '/purchases/:id/decision',
      allowed: operator,
      summary: 'Decide on a purchase in review, or on an accepted one: adopt an order, hand over, close, or buy again.',
      body: decisionBody,
      answer: Evidence,
      success: { 200: 'Done; the evidence as it is now' },
      failures: {
        404: 'unknown id',
        409: 'its state does not allow it, it has changed since the evidence of that basis, or the order is not its',
      },
      async handle({ caller, path, body: { decision: type, orderId, overrideSpendCap, reason, basis } }) {
        const id = path.id ?? ''
        const decision: Decision = type === 'adopt' ? { type, orderId: orderId ?? '' } : { type, overrideSpendCap }
        await decidePurchase(ordering, id, decision, { actor: caller.actor, reason, basis })
        return ok(evidenceView(await viewEvidence(ordering, id, { read: false })))
      },
    }),
  ]
}

const evidenceView = (evidence: EvidenceRows): z.infer<typeof Evidence> => ({
  purchase: views.purchaseEntry(evidence.purchase, evidence.since),
  order: { store: evidence.name.store, reference: evidence.name.reference, line: evidence.name.line },
  keys: evidence.keys,
  orders: evidence.orders.map(({ reading, ...order }) => ({ ...order, reading: reading && readingView(reading) })),
  generations: evidence.generations.map(({ id, generation, state, supplierOrderId, ...row }) => ({
    id,
    generation,
    state,
    supplierOrderId,
    writtenOffAt: maybeIso(row.writtenOffAt),
    refundedAt: maybeIso(row.refundedAt),
  })),
  choices: evidence.choices,
  basis: evidence.basis,
  freeze: evidence.freeze ? views.freezeView(evidence.freeze) : null,
  attempts: evidence.attempts.map(views.attemptView),
  discrepancies: evidence.discrepancies.map(views.discrepancyView),
  transitions: evidence.transitions.map((met) => ({
    ...views.transitionView(met),
    times: met.times,
    lastAt: iso(met.lastAt),
  })),
  audit: evidence.audit.map(({ at, actor, action, detail }) => ({ at: iso(at), actor, action, detail })),
})

function readingView({ amountMinor, ...reading }: OrderReading): z.infer<typeof Reading> {
  const { status, statusWord, currency, quantity, keys, differs } = reading
  const amount = amountMinor === null ? null : formatDecimal({ minor: amountMinor, currency })
  return { status, statusWord, amount, currency, quantity, keys, differs, createdAt: maybeIso(reading.createdAt) }
}
