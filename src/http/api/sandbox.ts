import { z } from 'zod'
import { formatDecimal, parseDecimal } from '../../domain/money.ts'
import { Failure, messageOf } from '../../errors.ts'
import { audited } from '../../storage/evidence.ts'
import { sandboxCustomerBody, sandboxEndBody, sandboxFaultBody, sandboxTopUpBody } from '../input.ts'
import { type ApiContext, type EmbeddedSandbox, ok, operation } from '../operation.ts'
import { amount, at, count, currency, maybeAt, view, words } from './views.ts'

const sum = z.object({ count, amount })
const Sandbox = view(
  z
    .object({
      address: z.string().meta({ description: 'Of its own page' }),
      currency,
      ledger: z
        .object({
          start: amount.meta({ description: 'The first balance' }),
          balance: amount,
          closes: z.boolean().meta({ description: 'start + top-ups - charges + refunds = balance, exactly' }),
          charges: sum,
          refunds: sum,
          topUps: sum,
          keysIssued: count,
          newest: z.array(
            z.object({
              kind: z.enum(['charge', 'refund', 'top_up']),
              orderId: words.meta({ description: "The supplier's own id of the order" }),
              externalOrderId: words.meta({ description: 'The reference under which Quayside bought' }),
              amount,
              balance: amount.meta({ description: 'After it' }),
              at,
            }),
          ),
        })
        .meta({ description: "The supplier's own record, kept apart from the database of Quayside" }),
      faults: z.array(
        z.object({
          name: z.string().meta({ examples: ['answer-lost'] }),
          subject: z.string().meta({ description: 'What it applies to', examples: ['request'] }),
          does: z.string(),
          left: count.meta({ description: 'How often it can still fire; 0: it is not set' }),
          fired: count.meta({ description: 'How often it has fired since the faults were cleared' }),
        }),
      ),
      openOrders: z.array(
        z.object({
          id: z.string(),
          externalOrderId: words,
          quantity: count,
          amount,
          createdAt: at,
        }),
      ),
      customer: z
        .object({
          running: z.boolean(),
          orders: count.meta({ description: 'How many it has placed since the start' }),
          lastReference: words,
          lastAt: maybeAt,
          problem: words.meta({ description: 'Why its last order was not taken' }),
        })
        .meta({ description: 'It orders in the demo store, about twice a minute' }),
    })
    .meta({ id: 'Sandbox' }),
  ({ address, currency, ledger, faults, openOrders, customer }: EmbeddedSandbox) => {
    const text = (minor: number) => formatDecimal({ minor, currency })
    const { startMinor, balanceMinor, closes, charges, refunds, topUps, keysIssued, newest } = ledger(LEDGER_SHOWN)
    const sumOf = ({ count, minor }: { count: number; minor: number }) => ({ count, amount: text(minor) })
    return {
      address,
      currency,
      ledger: {
        start: text(startMinor),
        balance: text(balanceMinor),
        closes,
        charges: sumOf(charges),
        refunds: sumOf(refunds),
        topUps: sumOf(topUps),
        keysIssued,
        newest: newest.map(({ amountMinor, balanceMinor: after, ...entry }) => ({
          ...entry,
          amount: text(amountMinor),
          balance: text(after),
        })),
      },
      faults: faults(),
      openOrders: openOrders().map(({ amountMinor, ...order }) => ({ ...order, amount: text(amountMinor) })),
      customer: customer.state(),
    }
  },
)
export type SandboxView = z.output<typeof Sandbox>

/** A page of a person; the whole ledger is in the sandbox's own control API. */
const LEDGER_SHOWN = 20

/** The supplier of a demo. Where the supplier is another service there are none of these. */
export function sandboxOperations({ ordering, sandbox }: Pick<ApiContext, 'ordering' | 'sandbox'>) {
  if (!sandbox) return []
  const operator = { people: 'operator' } as const
  const { db } = ordering
  const written = (actor: string, action: string, subject: string, detail?: string) =>
    db.commit([audited(ordering, actor, action, subject, detail)])
  return [
    operation({
      name: 'viewSandbox',
      method: 'get',
      path: '/sandbox',
      allowed: { people: 'viewer' },
      summary:
        "The supplier of the demo: its ledger, its faults and orders that are open there, and the demo's customer.",
      answer: Sandbox,
      success: { 200: 'As of now' },
      handle: async () => ok(sandbox),
    }),
    operation({
      name: 'setSandboxFault',
      method: 'post',
      path: '/sandbox/faults',
      allowed: operator,
      summary:
        'Set a fault of the supplier: it fires once, for the next request, order, list or delivery that it applies to.',
      body: sandboxFaultBody,
      answer: Sandbox,
      success: { 201: 'Set' },
      async handle({ caller, body: { fault, delayMs } }) {
        sandbox.setFault(fault, delayMs)
        await written(caller.actor, 'sandbox.fault', fault)
        return { status: 201, data: sandbox }
      },
    }),
    operation({
      name: 'clearSandboxFaults',
      method: 'delete',
      path: '/sandbox/faults',
      allowed: operator,
      summary: 'Clear all faults of the supplier.',
      answer: Sandbox,
      success: { 200: 'None is set' },
      async handle({ caller }) {
        sandbox.clearFaults()
        await written(caller.actor, 'sandbox.clear', 'faults')
        return ok(sandbox)
      },
    }),
    operation({
      name: 'topUpSandbox',
      method: 'post',
      path: '/sandbox/balance',
      allowed: operator,
      summary: 'Add to the balance at the supplier of the demo.',
      body: sandboxTopUpBody,
      answer: Sandbox,
      success: { 200: 'Added' },
      async handle({ caller, body: { add } }) {
        const minor = parseDecimal(add, sandbox.currency)
        if (minor === undefined || minor <= 0) {
          const message = `must be a positive amount in ${sandbox.currency}`
          throw new Failure('invalid', `add: ${message}`, { fields: [{ field: 'add', message }] })
        }
        sandbox.topUp(minor)
        await written(caller.actor, 'sandbox.top_up', 'balance', `${add} ${sandbox.currency}`)
        return ok(sandbox)
      },
    }),
    operation({
      name: 'endSandboxOrder',
      method: 'post',
      path: '/sandbox/orders/:id/end',
      allowed: operator,
      summary: 'End an order that is open at the supplier of the demo.',
      body: sandboxEndBody,
      answer: Sandbox,
      success: { 200: 'Ended' },
      failures: { 404: 'unknown id', 409: 'its money went back already' },
      async handle({ caller, path: { id = '' }, body: { as } }) {
        const ended = sandbox.endOrder(id, as)
        if (ended === 'unknown') throw new Failure('not_found', 'the supplier has no such order')
        if (ended === 'over') throw new Failure('conflict', 'the money of that order went back already')
        await written(caller.actor, `sandbox.${as}`, id)
        return ok(sandbox)
      },
    }),
    operation({
      name: 'directSandboxCustomer',
      method: 'post',
      path: '/sandbox/customer',
      allowed: operator,
      summary: "Start or stop the demo's customer, or have it order now.",
      body: sandboxCustomerBody,
      answer: Sandbox,
      success: { 200: 'Done' },
      failures: { 503: 'its order was not taken' },
      async handle({ caller, body: { do: wanted } }) {
        await written(caller.actor, `sandbox.customer_${wanted}`, 'customer')
        if (wanted === 'order') {
          await sandbox.customer.orderNow().catch((cause: unknown) => {
            throw new Failure('unavailable', `the customer could not order: ${messageOf(cause)}`, { cause })
          })
        } else sandbox.customer[wanted]()
        return ok(sandbox)
      },
    }),
  ]
}
