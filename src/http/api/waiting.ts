import { z } from 'zod'
import { helpLabels, waitLabels } from '../../domain/labels.ts'
import { isForPerson, type WaitCause, waitCauses, waitHelps } from '../../domain/waiting.ts'
import { orderCalled } from '../../ordering/order-view.ts'
import { WAITING_MAX, type WaitingLineView, waitingLines } from '../../ordering/waiting.ts'
import { sharedInTurn } from '../../storage/database.ts'
import { choice, inStore, orderNumber } from '../input.ts'
import { type ApiContext, ok, operation, viewer } from '../operation.ts'
import { amount, amountOf, at, component, count, currency, enumeration, maybeAt, view, words } from './views.ts'

const Item = view(
  component('WaitingLine', {
    store: z.string().describe('Id of the store'),
    reference: z.string().meta({ description: "The store's own number of the order", examples: ['1001'] }),
    number: words.describe('By which people of the store know the order, such as `#1001`; null: by its reference'),
    line: z.string().meta({ description: "The store's own id of the line", examples: ['1'] }),
    sku: z.string().describe('As the store wrote it'),
    name: words.describe('Of the product'),
    units: count.describe('Licence keys that the customer is entitled to'),
    missing: count.describe('Those of them that the store does not have'),
    paid: amount.nullable().describe('What the customer paid for the missing ones; null where the store does not say'),
    currency: currency.nullable().describe('Of `paid`'),
    charged: amount
      .nullable()
      .describe(
        'What the supplier has charged for the missing ones and not given back; null: nothing, as far as is known',
      ),
    chargedCurrency: currency.describe('Of `charged`: the one that the supplier sells in'),
    since: at.describe('When the customer had paid and the order had come in'),
    cause: enumeration('WaitCause', waitLabels),
    forPerson: z.boolean().describe('It waits for a person; false: it goes on by itself'),
    detail: words.describe('More about the cause, for people'),
    nextAt: maybeAt.describe('When it is tried or looked at again without a person'),
    help: enumeration('WaitHelp', helpLabels),
    actsAtOnce: z
      .boolean()
      .describe('The help acts at once, and costs no more than was allowed before; false: a person reads on first'),
    purchaseId: words.describe('The purchase that the help is about'),
    updateId: words.describe('The update of the outbox that `send_again` sends'),
    most: amount
      .nullable()
      .describe(
        'What the help costs at most, in `chargedCurrency`; null: it buys nothing, or asks for a ceiling first',
      ),
  }),
  ({ paidMinor, chargedMinor, mostMinor, ...line }: WaitingLineView) => ({
    ...line,
    most: amountOf(mostMinor, line.chargedCurrency),
    paid: line.currency === null ? null : amountOf(paidMinor, line.currency),
    charged: amountOf(chargedMinor, line.chargedCurrency),
    forPerson: isForPerson(line.cause),
    actsAtOnce: waitHelps[line.help] === 'now',
  }),
)

const customers = count.describe('Customers who wait for keys, one for each order')
const whole = {
  upTo: count.describe('How far customers are counted: this number stands for more, too'),
  customers,
  forPerson: customers.describe('Those of them who wait for a person'),
  longestSince: maybeAt.describe('Since when the first of them waits; null: no customer waits'),
  money: z
    .array(z.object({ currency, paid: amount, charged: amount }))
    .describe(
      'What they paid for keys that they do not have, and what the supplier has charged for these, by currency',
    ),
}
export const WaitingSummary = component('WaitingSummary', whole)
const Waiting = component('Waiting', {
  ...whole,
  causes: z.record(z.string(), count).describe('Customers by cause; a customer with several causes counts for each'),
  items: z.array(Item).describe('The lines, those who have waited longest first'),
})

/** Sums up the customers who wait. @param lines of at most `WAITING_MAX` customers and a few more */
export function summaryOf(lines: readonly WaitingLineView[]) {
  const sums = new Map<string, { paid: number; charged: number }>()
  const add = (currency: string, name: 'paid' | 'charged', minor: number) => {
    const sum = sums.get(currency) ?? { paid: 0, charged: 0 }
    sum[name] += minor
    sums.set(currency, sum)
  }
  for (const { currency, paidMinor, chargedCurrency, chargedMinor } of lines) {
    if (currency !== null && paidMinor !== null) add(currency, 'paid', paidMinor)
    if (chargedMinor !== null) add(chargedCurrency, 'charged', chargedMinor)
  }
  return {
    upTo: WAITING_MAX,
    customers: customersOf(lines).size,
    forPerson: customersOf(lines.filter(({ cause }) => isForPerson(cause))).size,
    longestSince: lines[0]?.since ?? null,
    money: [...sums].map(([currency, { paid, charged }]) => ({
      currency,
      paid: amountOf(paid, currency),
      charged: amountOf(charged, currency),
    })),
  }
}

type Whose = Pick<WaitingLineView, 'store' | 'reference'>
const customerOf = ({ store, reference }: Whose): string => JSON.stringify([store, reference])
const customersOf = (lines: readonly Whose[]): Set<string> => new Set(lines.map(customerOf))

/** Returns the lines of those who have waited longest, of at most `WAITING_MAX` customers. */
export const readWaiting = sharedInTurn((ordering: ApiContext['ordering']) => waitingOf(ordering))

async function waitingOf(ordering: ApiContext['ordering'], orderId?: string): Promise<WaitingLineView[]> {
  const lines = await waitingLines(ordering, orderId)
  const counted = new Set([...customersOf(lines)].slice(0, WAITING_MAX))
  return lines.filter((line) => counted.has(customerOf(line)))
}

export function waitingOperations({ ordering }: ApiContext) {
  return {
    viewWaiting: operation({
      route: 'GET /waiting',
      allowed: viewer,
      summary: 'The customers who wait for keys: each paid line without its keys, since when, why, and what helps.',
      query: {
        cause: choice(waitCauses, 'Only lines with this cause; the counts and sums stay those of all'),
        order: orderNumber,
        store: inStore,
      },
      answer: Waiting,
      success: { 200: 'As of now' },
      failures: { 404: 'no order has this number', 409: 'several stores have an order under it: name one' },
      async handle({ query: { cause, order, store } }) {
        const called = order && (await orderCalled(ordering.db, store, order)).id
        const lines = await (called === undefined ? readWaiting(ordering) : waitingOf(ordering, called))
        const asked = lines.filter(
          (line) => (cause === undefined || line.cause === cause) && (store === undefined || line.store === store),
        )
        const causes: [WaitCause, number][] = waitCauses.map((one) => [
          one,
          customersOf(lines.filter((line) => line.cause === one)).size,
        ])
        return ok({
          ...summaryOf(lines),
          causes: Object.fromEntries(causes.filter(([, total]) => total > 0)),
          items: asked,
        })
      },
    }),
  }
}
