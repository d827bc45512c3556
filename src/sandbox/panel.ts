/** What a person sees and does on the sandbox's own page: faults as buttons, orders, the ledger, the customer of a demo. */
import { type Request, type RequestHandler, Router, urlencoded } from 'express'
import { z } from 'zod'
import { type Html, html } from '../domain/html.ts'
import { formatDecimal } from '../domain/money.ts'
import { messageOf } from '../errors.ts'
import { isFromThisMachine } from './control.ts'
import { type Control, type ControlParts, controls } from './control-table.ts'
import { type FaultName, factsOf, faultTable } from './faults.ts'
import type { LedgerEntry } from './ledger.ts'
import { Refusal } from './refusal.ts'

/** The demo that the sandbox supplies: the customer who buys there, and the console that shows the orders. */
export interface SandboxDemo {
  customer: {
    state: () => { running: boolean; lastReference: string | null; lastAt: number | null; problem: string | null }
    start: () => void
    stop: () => void
    /** @returns the reference of the order; rejects when the order was not taken */
    orderNow: () => Promise<string>
  }
  consoleUrl: string
}

export interface PanelParts extends ControlParts {
  demo: SandboxDemo | undefined
}

/** The report on a press of a button, and the typed amount where the press was refused. */
interface Said {
  text: string | Html
  isRefused?: boolean
  add?: string | undefined
}

interface FaultButton {
  title: string
  /** How Quayside recovers from the fault. The page says this when the fault is set. */
  heals: string
  /** The delay in milliseconds, long enough to be watched. */
  delayMs?: number
}

const LOOKED_UP = 'The purchase is unknown until Quayside has looked it up; it never pays twice.'

/** Every fault as a button. */
export const faultButtons: Record<FaultName, FaultButton> = {
  'answer-lost': { title: 'Lose the answer', heals: LOOKED_UP },
  'error-before': {
    title: 'Fail before',
    heals: 'Quayside cannot know that nothing was charged: it looks, then sends it again under the same key.',
  },
  'error-after': { title: 'Fail after', heals: LOOKED_UP },
  slow: {
    title: 'Answer 20 s late',
    heals: 'Quayside waits, or looks the purchase up when it has waited for long enough.',
    delayMs: 20_000,
  },
  'rate-limit': {
    title: 'Limit the rate',
    heals: 'Nothing was charged. Quayside sends it again under the same key.',
  },
  'out-of-stock': {
    title: 'Sell out',
    heals: 'The line waits for stock, and its store learns of it. It is tried again by itself.',
  },
  'insufficient-balance': {
    title: 'Empty the balance',
    heals: 'Purchases wait for balance. Top it up below, and they go on.',
  },
  'failed-order': {
    title: 'Fail the order',
    heals:
      'The money comes back, and the store hears that the line failed. It is not bought again by itself: a person retries the order.',
  },
  'list-lag': {
    title: 'Hide it for 30 s',
    heals: 'It is read by its own id. Only together with a lost answer does the list matter.',
    delayMs: 30_000,
  },
  'partial-keys': {
    title: 'Hold a key back for 20 s',
    heals:
      'Keys that came are kept, and go to the store together with the others. Quayside reads the order again by itself.',
    delayMs: 20_000,
  },
  'hold-open': { title: 'Leave it open', heals: 'It stays open until you end it, in the list of orders.' },
  'short-pages': {
    title: 'Shorten the pages',
    heals: 'Quayside goes by what it got, and reads on until a page is empty.',
  },
  'capped-total': { title: 'Cap the count', heals: 'A count is no proof of the end: Quayside reads on.' },
  'filter-misses': {
    title: 'Miss a search',
    heals: 'A search that finds nothing proves nothing: Quayside reads the list itself before it sends again.',
  },
  'duplicate-delivery': { title: 'Send it twice', heals: 'The second one is known by its id, and does nothing.' },
  'reorder-deliveries': {
    title: 'Swap two',
    heals: 'The newest fact wins: the older one changes nothing any more.',
  },
  'drop-delivery': {
    title: 'Lose it',
    heals: 'A delivery is only a hint: Quayside reads the order by itself, too.',
  },
}

/** By what a fault applies to: the heading above the buttons of such faults, and the event that the next such fault disturbs. */
const subjects = {
  request: { title: 'Break the next request to buy', next: 'next purchase' },
  order: { title: 'Break the next order', next: 'next order' },
  delivery: { title: 'Disturb the next delivery', next: 'next delivery' },
  list: { title: 'Disturb the next list', next: 'next list' },
}

const faultNames = Object.keys(faultTable) as FaultName[]
const nextOf = (name: FaultName): string => subjects[factsOf(name).of].next

/** The page shows this many orders, the newest ones, and up to `OPEN_MAX` that are open. */
const ORDERS_SHOWN = 8
const OPEN_MAX = 50
const LEDGER_SHOWN = 20

/**
 * Makes the markup of the panel and the route of its buttons. Only a browser of this machine sees the panel. Only the page
 * itself may call the route: the route needs no key, so another site could call it through that browser.
 */
export function createPanel(parts: PanelParts, page: (request: Request, panel: Html) => string) {
  const doings = doingsOf(parts)
  /** This report is shown once, at the top of the next page. */
  let said: Said | undefined

  const act: RequestHandler = async (request, response) => {
    if (!isFromThisPage(request)) {
      response
        .status(403)
        .type('text')
        .send('The buttons are pressed on the page of the sandbox itself. Nothing was done.\n')
      return
    }
    const form = formShape.safeParse(request.body).data ?? { do: '' }
    try {
      const doing = doings[form.do]
      if (!doing) throw new Refusal('invalid', 'There is no such button.', 400)
      said = { text: await doing(form) }
      response.redirect(303, '/')
    } catch (error) {
      const status = error instanceof Refusal ? (error.status ?? 400) : error instanceof z.ZodError ? 400 : 503
      const why = error instanceof z.ZodError ? z.prettifyError(error) : messageOf(error)
      const panel = shown(parts, { text: `Nothing was done. ${why}`, isRefused: true, add: form.add })
      response.status(status).type('html').send(page(request, panel))
    }
  }

  return {
    routes: Router().post('/', urlencoded({ extended: false }), act),
    /** Returns the panel for a browser of this machine, and empty markup for any other. */
    of: (request: Request): Html => {
      if (!isOfThisMachine(request)) return html``
      const now = said
      said = undefined
      return shown(parts, now)
    },
  }
}

/** Returns the action of each button. An action resolves with the report for the page. */
function doingsOf(parts: PanelParts): Record<string, (form: z.infer<typeof formShape>) => Promise<string | Html>> {
  const { demo, world } = parts
  const run = (call: Control['call'], input: { id?: string; body?: unknown }): unknown =>
    controls.find((control) => control.call === call)?.run(parts, { id: '', body: undefined, ...input })
  const customer = () => {
    if (!demo) throw new Refusal('not_found', 'This sandbox has no customer: it is not that of a demo.', 404)
    return demo.customer
  }
  return {
    fault: async ({ fault }) => {
      const { heals = '', delayMs } = faultButtons[fault as FaultName] ?? {}
      run('POST /faults', { body: { fault, ...(delayMs !== undefined && { delayMs }) } })
      // A person who breaks something wants to see it now, and not at the customer's next order.
      const ordered = demo?.customer.state().running && (await demo.customer.orderNow().catch(() => undefined))
      const order = ordered && html` The customer has just ordered ${orderLink(demo, ordered)}.`
      return html`Set for the ${nextOf(fault as FaultName)}.${order} ${heals}`
    },
    clear: async () => {
      run('DELETE /faults', {})
      return 'The supplier works as it should again. What a fault did before stays done.'
    },
    'top-up': async ({ add }) => {
      run('POST /balance', { body: { add } })
      return `The balance is ${amount(parts, world.balanceMinor())} ${parts.dialect.money.currency}. Quayside reads it within five minutes.`
    },
    complete: async ({ id = '' }) => {
      run('POST /orders/{id}/complete', { id })
      return 'Completed: the supplier has handed out the keys, and Quayside is on its way to get them.'
    },
    fail: async ({ id = '' }) => {
      run('POST /orders/{id}/fail', { id })
      return 'Failed: the supplier has given the money back.'
    },
    start: async () => {
      customer().start()
      return 'The customer orders within seconds, then about twice a minute.'
    },
    stop: async () => {
      customer().stop()
      return 'The customer orders no more. What was ordered is still bought and handed over.'
    },
    order: async () => html`The customer has ordered ${orderLink(demo, await customer().orderNow())}.`,
  }
}

const shown = (parts: PanelParts, now: Said | undefined): Html => html`
<p>No real money moves. Break something, then watch the order recover${parts.demo && html` <a href="${parts.demo.consoleUrl}/orders">in the console</a>`}.</p>
${now && html`<p role="status" class="${now.isRefused ? 'refused' : 'said'}">${now.text}</p>`}
<div id="now">${customerPart(parts)}${faultsSet(parts)}${ordersPart(parts)}</div>
<form method="post">${Object.entries(subjects).map(
  ([subject, { title }]) => html`<h2>${title}</h2>
<ul class="buttons">${faultNames.filter((name) => factsOf(name).of === subject).map((name) => html`<li><button name="fault" value="${name}"><b>${faultButtons[name].title}</b><br>${factsOf(name).does.replaceAll('`', '')}</button></li>`)}</ul>`,
)}<input type="hidden" name="do" value="fault"></form>
<h2>Ledger</h2>
<form method="post"><label>Add to the balance, in ${parts.dialect.money.currency} <input name="add" value="${now?.add ?? '500.00'}" inputmode="decimal" required maxlength="20"></label> <button name="do" value="top-up">Top up</button></form>
<div id="ledger">${ledgerPart(parts)}</div>`

function customerPart({ demo }: PanelParts): Html | '' {
  if (!demo) return ''
  const { running, lastReference, lastAt, problem } = demo.customer.state()
  const last = lastReference !== null && html` Last order: ${orderLink(demo, lastReference)} at ${timeOf(lastAt ?? 0)}.`
  return html`<form method="post"><p>${running ? 'A demo customer orders about twice a minute.' : 'The demo customer is stopped.'}${last}${problem && ` The last try failed: ${problem}.`}
<button name="do" value="${running ? 'stop' : 'start'}">${running ? 'Stop the customer' : 'Start the customer'}</button> <button name="do" value="order">Order now</button></p></form>`
}

function faultsSet({ faults }: PanelParts): Html {
  const set = faults.list().filter(({ left }) => left > 0)
  return set.length === 0
    ? html`<p>No fault is set: the supplier works as it should.</p>`
    : html`<form method="post"><ul>${set.map(({ fault, left }) => html`<li><b>${faultButtons[fault].title}</b>: ${left === 1 ? nextOf(fault) : `${left} times from the ${nextOf(fault)}`}</li>`)}</ul><button name="do" value="clear">Clear all faults</button></form>`
}

function ordersPart(parts: PanelParts): Html {
  const { world } = parts
  const open = world.orders.known(OPEN_MAX, 'open')
  const ended = world.orders.known(ORDERS_SHOWN).filter(({ status }) => status !== 'open')
  const orders = [...open, ...ended].slice(0, Math.max(open.length, ORDERS_SHOWN))
  return html`<h2>Orders</h2><p>${open.length === 0 ? 'No order is open.' : `${open.length === OPEN_MAX ? `${OPEN_MAX} or more` : open.length} open.`}</p>
<table tabindex="0"><tr><th>At<th>Reference<th>What<th>State<th>Keys<th>Amount, ${parts.dialect.money.currency}<th>By hand${orders.map(
    ({ id, createdAt, externalOrderId, productId, status, quantity, amountMinor }) => html`
<tr><td>${timeOf(createdAt)}<td><code>${externalOrderId ?? id}</code><td>${world.offers.get(productId)?.name ?? productId}<td>${status}<td>${world.orders.keysOf(id).length} of ${quantity}<td class="number">${amount(parts, amountMinor)}<td>${status === 'open' && html`<form method="post"><input type="hidden" name="id" value="${id}"><button name="do" value="complete">Hand out its keys</button> <button name="do" value="fail">Fail it, give the money back</button></form>`}`,
  )}</table>`
}

function ledgerPart(parts: PanelParts): Html {
  const { world, dialect } = parts
  const { currency } = dialect.money
  const { startMinor, balanceMinor, closes, charges, refunds, topUps, keysIssued, newest } = world.summary(LEDGER_SHOWN)
  return html`<p>Kept apart from Quayside’s own records, so that the two can be compared. ${closes ? 'It is balanced to the cent.' : html`<b>It does not add up.</b>`}</p>
<p><b>${amount(parts, balanceMinor)} ${currency}</b>: began with ${amount(parts, startMinor)}, ${charges.count} charged with ${amount(parts, charges.minor)}, ${refunds.count} refunded with ${amount(parts, refunds.minor)}, ${topUps.count} topped up with ${amount(parts, topUps.minor)}. Licence keys handed out: ${keysIssued}.</p>
<table tabindex="0"><tr><th>At<th>Entry<th>Reference<th>Amount, ${currency}<th>Balance${newest.map(
    (entry) => html`
<tr><td>${timeOf(entry.at)}<td>${entryKinds[entry.kind]}<td><code>${entry.externalOrderId ?? ''}</code><td class="number">${entry.kind === 'charge' ? '−' : '+'}${amount(parts, entry.amountMinor)}<td class="number">${amount(parts, entry.balanceMinor)}`,
  )}</table>`
}

const amount = ({ dialect }: PanelParts, minor: number): string =>
  formatDecimal({ minor, currency: dialect.money.currency })

const orderLink = (demo: PanelParts['demo'], reference: string): Html =>
  html`<a href="${demo?.consoleUrl}/orders?q=${encodeURIComponent(reference)}">${reference}</a>`

const formShape = z.object({
  do: z.string(),
  fault: z.string().optional(),
  add: z.string().optional(),
  id: z.string().optional(),
})

const entryKinds: Record<LedgerEntry['kind'], string> = { charge: 'charge', refund: 'refund', top_up: 'top-up' }

/** `09:31:04`, in UTC. */
const timeOf = (at: number): string => new Date(at).toISOString().slice(11, 19)

/** True for a request from this machine to a name of this machine. A page under another name is a foreign page. */
const isOfThisMachine = (request: Request): boolean =>
  isFromThisMachine(request) && /^(localhost|127\.0\.0\.1|\[::1\])(:\d+)?$/.test(request.headers.host ?? '')

const isFromThisPage = (request: Request): boolean =>
  isOfThisMachine(request) && request.headers.origin === `http://${request.headers.host}`
