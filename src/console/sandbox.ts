/** The supplier of the demo: what its ledger says, and its faults as buttons. A newcomer breaks the world and watches it heal. */

import { counted, duration, grouped } from '../domain/figures.ts'
import { holdLabels, lineLabels, orderLabels, purchaseLabels } from '../domain/labels.ts'
import type { OrderEntryView } from '../http/api/orders.ts'
import type { SandboxView } from '../http/api/sandbox.ts'
import { act, hidden, notNow, selectField, textField } from './forms.ts'
import { type Html, html } from './html.ts'
import { facts, section, sectionHead } from './lists.ts'
import { live } from './live.ts'
import { mark, stateMark } from './marks.ts'
import type { Page, Visit } from './page.ts'
import { empty, table } from './tables.ts'
import { ago, clockTag, countedInWords, money } from './words.ts'

interface FaultWords {
  title: string
  /** What happens. */
  about: string
  /** What it is set for: "armed: next purchase". */
  next: string
  /** How Quayside comes back from it: said when it is set. */
  heals: string
  delayMs?: number
}

const LOOKED_UP = 'The purchase is unknown until Quayside has looked it up; it never pays twice.'
const SENT_AGAIN = 'Nothing was charged. Quayside sends it again under the same key.'
const POLLED = 'A delivery is only a hint: Quayside reads the order by itself, too.'

/** Every fault of the sandbox, in the words of this page. */
export const faultWords: Record<string, FaultWords> = {
  'answer-lost': {
    title: 'Lose the answer',
    about: 'The order is made and charged, the answer never arrives.',
    next: 'next purchase',
    heals: LOOKED_UP,
  },
  'error-before': {
    title: 'Fail before',
    about: 'Answers 500 and does nothing.',
    next: 'next purchase',
    heals: 'Quayside cannot know that nothing was charged: it looks, then sends it again under the same key.',
  },
  'error-after': { title: 'Fail after', about: 'Charges, then answers 500.', next: 'next purchase', heals: LOOKED_UP },
  slow: {
    title: 'Answer late',
    about: 'Takes 20 seconds for it.',
    next: 'next purchase',
    heals: 'Quayside waits, or looks the purchase up when it has waited for long enough.',
    delayMs: 20_000,
  },
  'rate-limit': {
    title: 'Limit the rate',
    about: 'Answers 429: wait a second.',
    next: 'next purchase',
    heals: SENT_AGAIN,
  },
  'out-of-stock': {
    title: 'Sell out',
    about: 'Answers that none is left.',
    next: 'next order',
    heals: 'The line waits for stock, and its store learns of it. It is tried again by itself.',
  },
  'insufficient-balance': {
    title: 'Empty the balance',
    about: 'Answers that the balance is too low.',
    next: 'next order',
    heals: 'Purchases wait for balance. Top it up below, and they go on.',
  },
  'failed-order': {
    title: 'Fail the order',
    about: 'Accepts it, then fails and refunds it.',
    next: 'next order',
    heals:
      'The money comes back, and the store hears that the line failed. It is not bought again by itself: a person retries the order.',
  },
  'list-lag': {
    title: 'Hide it',
    about: 'The order is missing in the list for 30 seconds.',
    next: 'next order',
    heals: 'It is read by its own id. Only together with a lost answer does the list matter.',
    delayMs: 30_000,
  },
  'partial-keys': {
    title: 'Hold a key back',
    about: 'Completes with half of the keys, the others come 20 seconds later.',
    next: 'next order',
    heals:
      'Keys that came are kept, and go to the store together with the others. Quayside reads the order again by itself.',
    delayMs: 20_000,
  },
  'hold-open': {
    title: 'Leave it open',
    about: 'The order stays open until you end it.',
    next: 'next order',
    heals: 'It stays open until you end it, below under Actions.',
  },
  'short-pages': {
    title: 'Shorten the pages',
    about: 'Gives 10 rows where more were asked for.',
    next: 'next list',
    heals: 'Quayside goes by what it got, and reads on until a page is empty.',
  },
  'capped-total': {
    title: 'Cap the count',
    about: 'Counts no more than 10 rows.',
    next: 'next list',
    heals: 'A count is no proof of the end: Quayside reads on.',
  },
  'filter-misses': {
    title: 'Miss a search',
    about: 'Finds no order by its reference.',
    next: 'next list',
    heals: 'A search that finds nothing proves nothing: Quayside reads the list itself before it sends again.',
  },
  'duplicate-delivery': {
    title: 'Send it twice',
    about: 'The same delivery under the same id.',
    next: 'next delivery',
    heals: 'The second one is known by its id, and does nothing.',
  },
  'reorder-deliveries': {
    title: 'Swap two',
    about: 'A later event arrives first.',
    next: 'next delivery',
    heals: 'The newest fact wins: the older one changes nothing any more.',
  },
  'drop-delivery': { title: 'Lose it', about: 'It is never sent.', next: 'next delivery', heals: POLLED },
}

const wordsOf = (name: string, does: string): FaultWords =>
  faultWords[name] ?? { title: name, about: does, next: 'next time', heals: '' }

/** The headings of the faults, by what they apply to. */
const subjects: readonly (readonly [subject: string, title: string])[] = [
  ['request', 'Break the next request to buy'],
  ['order', 'Break the next order'],
  ['delivery', 'Disturb the next delivery'],
  ['list', 'Disturb the next list'],
]

const NEWEST = 8

export const sandboxPage: Page = {
  path: '/sandbox',
  role: 'viewer',
  needs: 'viewSandbox',
  navigation: { group: 'Supplier', label: 'Sandbox' },
  show: async (visit) => {
    const sandbox = await visit.call<SandboxView>('viewSandbox')
    const mayBreak = visit.caller.role !== 'viewer'
    const { running } = sandbox.customer
    const part = (name: string) => `/sandbox/parts/${name}`
    return {
      title: 'Sandbox',
      main: html`<header class="title"><h1>The supplier is a sandbox: no real money moves</h1><p class="quiet">Break something, then watch the order recover. The sandbox itself is at <a href="${sandbox.address}">${sandbox.address}</a>.</p></header>
<div class="notice">${live({ tag: 'div', id: 'customer', from: part('customer'), content: customerLine(sandbox, visit.now) })}${mayBreak && customerForm(running)}</div>
${live({ id: 'healing', class: 'stack', labelledBy: 'healing-h', from: part('healing'), content: await healingPart(visit, sandbox) })}
${
  mayBreak
    ? html`<form method="post" action="/sandbox/break" class="stack wide">${subjects.map(([subject, title]) => faultButtons(sandbox, subject, title))}</form>`
    : section(
        'faults-h',
        'Break something',
        undefined,
        notNow(['Faults: setting them needs the role operator; you are viewer.']),
      )
}
<div class="split">${live({ id: 'ledger', class: 'stack', labelledBy: 'ledger-h', from: part('ledger'), content: ledgerPart(sandbox, visit.now) })}
<div class="stack">${section('actions-h', 'Actions', undefined, mayBreak ? actions(visit, sandbox) : notNow(['Top up, end orders: both need the role operator; you are viewer.']))}</div></div>`,
    }
  },
  parts: {
    customer: async (visit) => customerLine(await visit.call<SandboxView>('viewSandbox'), visit.now),
    healing: async (visit) => healingPart(visit, await visit.call<SandboxView>('viewSandbox')),
    ledger: async (visit) => ledgerPart(await visit.call<SandboxView>('viewSandbox'), visit.now),
  },
  actions: {
    break: {
      role: 'operator',
      run: async ({ call, form }) => {
        const fault = form.get('fault') ?? ''
        const { title, next, heals, delayMs } = wordsOf(fault, '')
        const { customer } = await call<SandboxView>('setSandboxFault', {
          body: { fault, ...(delayMs !== undefined && { delayMs }) },
        })
        // Someone who breaks something wants to see it now, and not at the customer's next order.
        const ordered = customer.running
          ? await call<SandboxView>('directSandboxCustomer', { body: { do: 'order' } }).catch(() => undefined)
          : undefined
        const order = ordered?.customer.lastReference
        const text = order
          ? `Set for the ${next}, and the customer has just ordered ${order}. ${heals}`
          : `Set for the ${next}. ${heals}`
        return { notice: { kind: 'held', word: title, text } }
      },
    },
    clear: {
      role: 'operator',
      run: async ({ call }) => {
        await call('clearSandboxFaults')
        return { notice: { kind: 'done', word: 'Cleared', text: 'The supplier works as it should again.' } }
      },
    },
    customer: {
      role: 'operator',
      run: async ({ call, form }) => {
        const wanted = form.get('do') ?? ''
        const { customer } = await call<SandboxView>('directSandboxCustomer', { body: { do: wanted } })
        const said: Record<string, [word: string, text: string]> = {
          start: ['Started', 'The customer orders within seconds, then about twice a minute.'],
          stop: ['Stopped', 'The customer orders no more. What was ordered is still bought and handed over.'],
          order: ['Ordered', `The customer has ordered ${customer.lastReference}.`],
        }
        const [word, text] = said[wanted] ?? ['Done', '']
        return { notice: { kind: 'done', word, text } }
      },
    },
    'top-up': {
      role: 'operator',
      run: async ({ call, form }) => {
        const { ledger, currency } = await call<SandboxView>('topUpSandbox', { body: { add: form.get('add') ?? '' } })
        const text = `The balance at the supplier is ${money(ledger.balance, currency)}. Quayside reads it within five minutes.`
        return { notice: { kind: 'done', word: 'Topped up', text } }
      },
    },
    end: {
      role: 'operator',
      run: async ({ call, form }) => {
        const as = form.get('as') ?? ''
        await call('endSandboxOrder', { path: { id: form.get('id') ?? '' }, body: { as } })
        const text =
          as === 'complete'
            ? 'The supplier has handed out the keys; Quayside is on its way to get them.'
            : 'The supplier has failed the order and given the money back.'
        return { notice: { kind: 'done', word: as === 'complete' ? 'Completed' : 'Failed', text } }
      },
    },
  },
}

function customerLine({ customer }: SandboxView, now: number): Html {
  const { running, lastReference, lastAt, problem } = customer
  const last =
    lastReference === null
      ? running && 'The first order comes within seconds.'
      : html`Last order: ${orderLink(lastReference)}, ${lastAt && ago(lastAt, now)}.`
  return html`${mark(running ? 'moving' : 'off', running ? 'A demo customer orders about twice a minute' : 'The demo customer is stopped')} <span class="quiet">${last}${problem && ` The last try failed: ${problem}.`}</span>`
}

const orderLink = (reference: string): Html =>
  html`<a href="/orders?q=${encodeURIComponent(reference)}">${reference}</a>`

const customerForm = (running: boolean): Html =>
  html`<form method="post" action="/sandbox/customer">${
    running
      ? html`<button name="do" value="stop">Stop the customer</button>`
      : html`<button name="do" value="start">Start the customer</button>`
  } <button name="do" value="order">Order now</button></form>`

/** What is broken now, the orders that are under way and the newest others: what recovers is seen here. */
async function healingPart(visit: Visit, sandbox: SandboxView): Promise<Html> {
  const limit = String(NEWEST)
  const [open, newest] = await Promise.all([
    visit.call<{ items: OrderEntryView[]; next: string | null }>('listOrders', { query: { state: 'open', limit } }),
    visit.call<{ items: OrderEntryView[] }>('listOrders', { query: { limit } }),
  ])
  const items = [...open.items, ...newest.items.filter(({ state }) => state !== 'open')].slice(0, NEWEST)
  const set = sandbox.faults.filter(({ left }) => left > 0)
  const count = open.items.length
  const beside =
    count === 0
      ? mark('done', 'every order has ended')
      : mark('moving', `${counted(count, 'order', 'orders', open.next === null ? undefined : count)} under way`)
  return html`${sectionHead('healing-h', 'What happens now', beside)}
${
  set.length === 0
    ? html`<p class="small quiet">No fault is set: the supplier works as it should.</p>`
    : html`<ul class="armed-list">${set.map(({ name, does, left }) => {
        const { title, next } = wordsOf(name, does)
        return html`<li>${mark('held', `${title}: ${left === 1 ? next : `${left} times from the ${next}`}`)}</li>`
      })}</ul>`
}
${
  items.length === 0
    ? empty('No orders yet', 'The customer orders here, or the command that the terminal printed at the start.')
    : table<OrderEntryView>({
        caption: 'Orders under way, and the newest others',
        rows: items,
        columns: [
          {
            head: 'Order',
            cell: ({ store, reference }) =>
              html`<a href="/orders/${encodeURIComponent(store)}/${encodeURIComponent(reference)}">${reference}</a>`,
          },
          { head: 'State', cell: stateOf, isTop: true },
          {
            head: 'What',
            cell: ({ lines }) => lines.map(({ quantity, name, sku }) => `${quantity} × ${name ?? sku}`).join(', '),
          },
          { head: 'Keys', cell: keysOf, isNumber: true },
          { head: 'Ordered', cell: ({ receivedAt }) => clockTag(receivedAt, visit.now) },
          {
            head: 'Took',
            isNumber: true,
            cell: ({ state, receivedAt, lastKeyAt }) =>
              state === 'open' || lastKeyAt === null ? '–' : duration(Date.parse(lastKeyAt) - Date.parse(receivedAt)),
          },
        ],
      })
}`
}

function stateOf({ state, lines }: OrderEntryView): Html {
  const waitsFor = lines.find((line) => line.waitsFor !== null)?.waitsFor
  if (state !== 'open' || !waitsFor) return stateMark(orderLabels[state])
  return html`${stateMark(waitsFor === 'review' ? purchaseLabels.review : lineLabels.held)}${waitsFor !== 'review' && html` <small>${holdLabels[waitsFor].word}</small>`}`
}

function keysOf({ lines }: OrderEntryView): string {
  const delivered = lines.reduce((sum, line) => sum + line.delivered, 0)
  return `${delivered} of ${lines.reduce((sum, line) => sum + line.quantity, 0)}`
}

function faultButtons({ faults }: SandboxView, subject: string, title: string): Html {
  const own = faults.filter((fault) => fault.subject === subject)
  const id = `faults-${subject}`
  return html`<section class="stack" aria-labelledby="${id}"><h2 id="${id}" class="quay">${title}</h2><ul class="faults">${own.map(
    ({ name, does }) => {
      const { title: button, about } = wordsOf(name, does)
      return html`<li><button name="fault" value="${name}">${button}<small>${about}</small></button></li>\n`
    },
  )}</ul></section>\n`
}

const kinds = { charge: 'charge', refund: 'refund', top_up: 'top-up' } as const

function ledgerPart({ ledger, currency }: SandboxView, now: number): Html {
  const { charges, refunds, topUps, keysIssued, newest } = ledger
  const beside = ledger.closes ? mark('done', 'balanced to the cent') : mark('stop', 'does not add up')
  return html`${sectionHead('ledger-h', 'The supplier’s ledger', beside)}
<p class="small quiet">Kept apart from Quayside’s own records, so that the two can be compared. ${countedInWords(charges.count, 'charge')}, ${counted(refunds.count, 'refund')}, ${counted(keysIssued, 'licence key')} handed out.</p>
${facts([
  ['Balance', html`<b>${money(ledger.balance, currency)}</b>`],
  ['It began with', money(ledger.start, currency)],
  [
    'Charged',
    `${money(charges.amount, currency)}${refunds.count > 0 ? `, of which ${money(refunds.amount, currency)} came back` : ''}`,
  ],
  ...(topUps.count > 0 ? [['Topped up', money(topUps.amount, currency)] as const] : []),
])}
${
  newest.length === 0
    ? empty('Nothing was charged yet', 'Each purchase is an entry here, each refund another one.')
    : table({
        caption: 'Ledger, newest first',
        rows: newest,
        columns: [
          { head: 'At', cell: ({ at }) => clockTag(at, now) },
          {
            head: 'Entry',
            isTop: true,
            cell: ({ kind }) => kinds[kind],
          },
          {
            head: 'Reference',
            cell: ({ externalOrderId }) => externalOrderId && html`<span class="id">${externalOrderId}</span>`,
          },
          {
            head: `Amount, ${currency}`,
            isNumber: true,
            cell: ({ kind, amount }) => `${kind === 'charge' ? '−' : '+'}${grouped(amount)}`,
          },
          { head: 'Balance', isNumber: true, cell: ({ balance }) => grouped(balance) },
        ],
      })
}`
}

function actions(visit: Visit, { faults, openOrders, currency }: SandboxView): Html {
  const isSet = faults.some(({ left }) => left > 0)
  return html`<div>${
    isSet &&
    act({
      summary: 'Clear the faults…',
      to: '/sandbox/clear',
      about: 'Clears every fault that has not fired yet.',
      effect: [
        ['Orders', 'What a fault did before stays done; Quayside recovers from it by itself.'],
        ['Undo', 'Set the faults again.'],
      ],
      button: 'Clear all faults',
    })
  }
${act({
  summary: 'Top up the balance…',
  to: '/sandbox/top-up',
  about: 'Adds to the balance at the supplier.',
  fields: textField(visit, {
    label: `Amount, ${currency}`,
    name: 'add',
    value: '500.00',
    isDecimal: true,
    isShort: true,
    isRequired: true,
  }),
  effect: [
    ['Money', 'None that is real.'],
    ['Orders', 'Those that wait for balance go on when Quayside has read it.'],
    ['Undo', 'None: buy something.'],
  ],
  button: 'Add to the balance',
  isOpen: visit.faults.has('add'),
})}
${openOrders.map(({ id, externalOrderId, quantity, amount, createdAt }) =>
  act({
    summary: `End the open order of ${counted(quantity, 'key')} for ${money(amount, currency)}…`,
    to: '/sandbox/end',
    about: html`The order <span class="id">${externalOrderId ?? id}</span> is open at the supplier since ${clockTag(createdAt, visit.now)}.`,
    fields: html`${hidden('id', id)}${selectField({
      label: 'How',
      name: 'as',
      options: [
        ['complete', 'hand out its keys'],
        ['fail', 'fail it, and give the money back'],
      ],
      chosen: visit.form.get('as') ?? 'complete',
      at: id,
    })}`,
    effect: [
      ['Store', 'Gets its keys; of an order that failed, those that Quayside buys in its place.'],
      ['Undo', 'None.'],
    ],
    button: 'End this order',
  }),
)}</div>
${notNow([
  ...(isSet ? [] : ['Clear the faults: none is set.']),
  ...(openOrders.length > 0 ? [] : ['End an open order: none is open at the supplier.']),
])}`
}
