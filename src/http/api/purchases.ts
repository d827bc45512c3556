import { z } from 'zod'
import { assertAllowed } from '../../access/tokens.ts'
import { holdLabels, meansOf, purchaseLabels } from '../../domain/labels.ts'
import { parseDecimal } from '../../domain/money.ts'
import { holdReasons, purchaseStates } from '../../domain/purchase.ts'
import { orderStatuses } from '../../domain/supplier.ts'
import { checkPurchase, releasePurchase, retryPurchase } from '../../ordering/actions.ts'
import { decisionTypes } from '../../ordering/choices.ts'
import { type Decision, decidePurchase } from '../../ordering/decide.ts'
import { viewEvidence } from '../../ordering/evidence.ts'
import { type PurchaseSubject, subjectsOf } from '../../ordering/order-view.ts'
import { outagesDuring } from '../../ordering/outages.ts'
import { need } from '../../storage/database.ts'
import { attemptsOf, enteredAt, transitionsOf } from '../../storage/evidence.ts'
import {
  listHeldPurchases,
  listPurchases,
  type Purchase as PurchaseRow,
  purchaseById,
} from '../../storage/purchases.ts'
import { choice, decisionBody, invalidField, maybeReasonBody, queryFlag, releaseBody } from '../input.ts'
import { type ApiContext, ok, operation, operator, viewer } from '../operation.ts'
import { byId, listOperation } from './list-operation.ts'
import { Discrepancy } from './reconcile.ts'
import { Freeze } from './status.ts'
import {
  amount,
  at,
  component,
  count,
  currency,
  enumeration,
  maybeAt,
  meaningsText,
  view,
  withAmounts,
  words,
} from './views.ts'

const State = enumeration('PurchaseState', purchaseLabels)
/** This shape has no name, because generators for OpenAPI 3.0 know no reference that may be null. */
const Hold = z
  .enum(holdReasons)
  .nullable()
  .describe(`What keeps it from being bought now\n\n${meaningsText(meansOf(holdLabels))}`)

export const purchaseShape = component('Purchase', {
  id: z.string().describe('Id of the purchase'),
  part: z
    .int()
    .describe('Which part of its line, from 1: a quantity above what the supplier sells at once is bought in several'),
  generation: z.int().describe('1 for the first purchase of the part, one more each time it is bought again'),
  state: State,
  holdReason: Hold,
  note: words.describe('About the hold or the review, for people'),
  notBefore: maybeAt.describe('Nothing is done with it before'),
  quantity: z.int().describe('Units that it buys'),
  cancelRequestedAt: maybeAt.describe('When the store asked to cancel it; what was bought already stays'),
  ceiling: amount.describe('The most that one unit may cost'),
  amount: amount
    .nullable()
    .describe('What the supplier charged for it in all, once known; it may have come back since'),
  currency: currency.describe('Of `ceiling` and `amount`: the one that the supplier sells in'),
  supplierOrderId: words.describe("The supplier's id of its order, once known"),
  externalOrderId: z.string().describe('Our reference of it, which the supplier shows with its order'),
  claim: z.int().nullable().describe('The number of the claim whose key it replaces; null where it replaces none'),
  failureCode: words.describe("Why it failed or was rejected: the supplier's code"),
  failureMessage: words.describe("The same in the supplier's words"),
  changedAt: at.describe('When anything of it changed last'),
})
export const Purchase = view(purchaseShape, withAmounts<PurchaseRow>)

type Entry = PurchaseRow & { since: number }
const entry = component('PurchaseEntry', {
  ...purchaseShape.shape,
  orderId: z.string(),
  since: at.describe('When it entered its state'),
})
const PurchaseEntry = view(entry, withAmounts<Entry>)

export const Attempt = component('Attempt', {
  kind: z.string(),
  stage: z.string(),
  number: z.int(),
  at,
  status: z.int().nullable(),
  class: words,
  code: words,
  requestId: words,
  supplierOrderId: words,
  detail: words,
})

export const Transition = component('Transition', {
  at,
  input: z.string(),
  row: z.string(),
  before: z.enum(purchaseStates),
  after: z.enum(purchaseStates),
  actor: words,
  detail: words,
})

/** A purchase in a list, with the order and the product that it is for. */
const ListedPurchase = view(
  component('ListedPurchase', {
    ...entry.shape,
    order: z.object({ store: z.string(), reference: z.string(), line: z.string() }),
    sku: z.string().describe('As the store wrote it'),
    name: words.describe('Of the product'),
    cost: amount.nullable().describe('What the supplier asks for one unit now'),
  }),
  withAmounts<Entry & PurchaseSubject>,
)

const detail = component('PurchaseDetail', {
  ...entry.shape,
  attempts: z.array(Attempt),
  transitions: z.array(Transition),
  outages: z
    .array(z.object({ beganAt: at, endedAt: maybeAt, error: z.string() }))
    .describe('While it waited, no request to the supplier was answered in these times; newest first'),
})
const PurchaseDetail = view(
  detail,
  withAmounts<Entry & Pick<z.input<typeof detail>, 'attempts' | 'transitions' | 'outages'>>,
)

export const audited = { at, actor: z.string(), action: z.string(), detail: words }

export const repeated = { times: z.int().describe('How often in a row'), lastAt: at }

type EvidenceRows = Awaited<ReturnType<typeof viewEvidence>>

const Reading = view(
  z.object({
    status: z.enum(orderStatuses),
    statusWord: z.string().describe("The supplier's own word"),
    amount: words,
    currency: z.string(),
    quantity: z.int().nullable(),
    createdAt: maybeAt,
    keys: count.describe('How many keys it carries; they are never shown here'),
    differs: z.array(z.enum(['reference', 'product', 'quantity'])).describe('From what was sent'),
  }),
  withAmounts<NonNullable<EvidenceRows['orders'][number]['reading']>>,
)

const SeenOrder = z.object({
  id: z.string(),
  own: z.boolean().describe('The purchase follows this order now'),
  generation: z
    .int()
    .nullable()
    .describe('Of the part, found by a restore; null when a purchase here has that generation'),
  takenBy: words.describe('The other purchase that it belongs to'),
  reading: Reading.nullable().describe('As the supplier shows it now; only with read=true'),
  unread: words.describe('Why there is no reading'),
})

/** The facts that an operator needs for a decision on one purchase. */
const Evidence = view(
  component('Evidence', {
    purchase: PurchaseEntry,
    order: z.object({ store: z.string(), reference: z.string(), line: z.string() }),
    keys: z.object({
      stored: count,
      left: count.describe('Of those, the ones that the store has or is being given'),
      elsewhere: z.array(z.string()).describe('Other purchases that hold one of them'),
    }),
    orders: z.array(SeenOrder),
    generations: z.array(
      z.object({
        id: z.string(),
        generation: z.int(),
        state: State,
        supplierOrderId: words,
        writtenOffAt: maybeAt,
        refundedAt: maybeAt,
      }),
    ),
    choices: z.array(
      z.object({
        decision: z.enum(decisionTypes),
        does: z.string().describe('What it would do now'),
        refusal: words.describe('Why it is not possible now; null when it is'),
      }),
    ),
    evidenceVersion: z.string().describe('The version of all this, for If-Match of a decision'),
    freeze: Freeze.nullable(),
    attempts: z.array(Attempt),
    discrepancies: z.array(Discrepancy),
    transitions: z.array(Transition.extend(repeated)),
    audit: z.array(z.object(audited)),
  }),
  ({ purchase, since, name, freeze, ...evidence }: EvidenceRows) => ({
    ...evidence,
    purchase: { ...purchase, since },
    order: name,
    freeze: freeze ?? null,
  }),
)

export function purchaseOperations({ ordering }: ApiContext) {
  const { db } = ordering
  const found = (id = '') => need(db, purchaseById(id), 'purchase', id)
  const withSince = async (rows: PurchaseRow[]): Promise<Entry[]> => {
    const entered = rows.length === 0 ? [] : await db.query(enteredAt(rows.map(byId)))
    const instants = new Map(entered.map(({ purchaseId, at }) => [purchaseId, at]))
    return rows.map((row) => ({ ...row, since: instants.get(row.id) ?? row.createdAt }))
  }
  const listed = async (rows: PurchaseRow[]) => {
    const [entries, subjects] = await Promise.all([withSince(rows), subjectsOf(db, rows)])
    return entries.map((entry) => ({ ...entry, ...(subjects.get(entry.id) as PurchaseSubject) }))
  }
  const detailOf = async (id = '') => {
    const purchase = await found(id)
    const [attempts, transitions, [entry]] = await Promise.all([
      db.query(attemptsOf([id])),
      db.query(transitionsOf([id])),
      withSince([purchase]),
    ])
    const outages = await outagesDuring(ordering, [purchase], transitions)
    return { ...purchase, attempts, transitions, outages, since: entry?.since ?? purchase.createdAt }
  }

  return {
    listPurchases: listOperation({
      route: 'GET /purchases',
      allowed: viewer,
      summary: 'Purchases at the supplier, newest first.',
      filters: {
        state: choice(purchaseStates, 'Only purchases in this state'),
        hold: choice([...holdReasons, 'any'], 'Only purchases that this hold, or any, keeps from being bought now'),
      },
      item: ListedPurchase,
      success: { 200: 'A page of purchases' },
      failures: { 400: '`state` and `hold` together' },
      db,
      read: ({ state, hold, ...wanted }) => {
        if (state !== undefined && hold !== undefined) {
          throw invalidField('hold', 'goes without state: what is held is planned or waiting')
        }
        const holdReason = hold === 'any' ? undefined : hold
        return hold === undefined ? listPurchases({ ...wanted, state }) : listHeldPurchases({ ...wanted, holdReason })
      },
      show: listed,
    }),
    viewPurchase: operation({
      route: 'GET /purchases/:id',
      allowed: viewer,
      summary: 'One purchase with its requests and transitions.',
      answer: PurchaseDetail,
      success: { 200: 'The purchase' },
      failures: { 404: 'unknown id' },
      handle: async ({ path }) => ok(await detailOf(path.id)),
    }),
    retryPurchase: operation({
      route: 'POST /purchases/:id/retry',
      allowed: operator,
      summary: 'Buy a purchase that ended without keys again, as a new generation.',
      body: maybeReasonBody,
      answer: PurchaseDetail,
      success: { 200: 'The purchase; its next generation is planned' },
      failures: { 404: 'unknown id', 409: 'it has not ended, or a later generation exists; `beyond_order`' },
      async handle({ caller, path, body: { reason } }) {
        await retryPurchase(ordering, path.id, caller.actor, reason)
        return ok(await detailOf(path.id))
      },
    }),
    releasePurchase: operation({
      route: 'POST /purchases/:id/release',
      allowed: operator,
      summary: 'Lift the hold of a purchase, with a new ceiling for one unit or beyond the spend caps where given.',
      body: releaseBody,
      answer: PurchaseDetail,
      success: { 200: 'The purchase; its guards run again' },
      failures: { 404: 'unknown id', 409: 'it is not held' },
      async handle({ caller, path, body: { ceiling, overrideSpendCap, reason } }) {
        const { id, currency } = await found(path.id)
        const ceilingMinor = ceiling === undefined ? undefined : parseDecimal(ceiling, currency)
        if (ceiling !== undefined && ceilingMinor === undefined) {
          throw invalidField('ceiling', `must be an exact amount in ${currency}`)
        }
        await releasePurchase(ordering, id, { ceilingMinor, overrideSpendCap }, caller.actor, reason)
        return ok(await detailOf(id))
      },
    }),
    checkPurchase: operation({
      route: 'POST /purchases/:id/check',
      allowed: operator,
      summary:
        'Try a held purchase again now, or look at the order of a sent one. No rule is lifted: it costs no more than was allowed.',
      answer: PurchaseDetail,
      success: { 200: 'The purchase; it is tried or looked at within seconds' },
      failures: { 404: 'unknown id', 409: '`ended`: nothing of it is under way; `frozen`; `order_held`' },
      async handle({ caller, path }) {
        await checkPurchase(ordering, path.id, caller.actor)
        return ok(await detailOf(path.id))
      },
    }),
    viewEvidence: operation({
      route: 'GET /purchases/:id/evidence',
      needsWorker: ({ query }) => query.read,
      allowed: viewer,
      summary:
        'What is known of a purchase, and what each decision would do. With read=true an operator asks the supplier too.',
      query: { read: queryFlag('Read its orders from the supplier; for operators') },
      answer: Evidence,
      success: { 200: 'The evidence' },
      failures: { 404: 'unknown id' },
      async handle({ caller, path, query: { read } }) {
        if (read) assertAllowed(caller, operator)
        return ok(await viewEvidence(ordering, path.id, { read }))
      },
    }),
    decidePurchase: operation({
      route: 'POST /purchases/:id/decision',
      needsWorker: true,
      allowed: operator,
      summary: 'Decide on a purchase in review, or on an accepted one: adopt an order, hand over, close, or buy again.',
      body: decisionBody,
      ifMatch: 'The `evidenceVersion` that the decision is based on, in quotes',
      answer: Evidence,
      success: { 200: 'Done; the evidence as it is now' },
      failures: {
        404: 'unknown id',
        409: 'its state does not allow it, or the order belongs to another purchase',
        412: '`evidence_changed`: it has changed since that version',
      },
      async handle({ caller, path, version, body: { decision: type, orderId, overrideSpendCap, reason } }) {
        const id = path.id
        const decision: Decision = type === 'adopt' ? { type, orderId: orderId ?? '' } : { type, overrideSpendCap }
        await decidePurchase(ordering, id, decision, { actor: caller.actor, reason, evidenceVersion: version })
        return ok(await viewEvidence(ordering, id, { read: false }))
      },
    }),
  }
}
