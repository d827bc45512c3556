/** What a person sees and does on the sandbox's own page: faults as buttons, the order that meets one, the ledger, the customer of a demo. */
import { type Request, type RequestHandler, Router, urlencoded } from 'express'
import { z } from 'zod'
import { Html, html } from '../domain/html.ts'
import { formatDecimal } from '../domain/money.ts'
import { messageOf } from '../errors.ts'
import { isFromThisMachine } from './control.ts'
import { type Control, type ControlParts, controls } from './control-table.ts'
import { type FaultName, factsOf, faultTable, readFault } from './faults.ts'
import type { LedgerEntry } from './ledger.ts'
import { Refusal } from './refusal.ts'
import { type ExchangeLog, type Known, type Story, span, stageOf, storyOf } from './stage.ts'

/** The demo that the sandbox supplies: the customer who buys there, and the console that shows the orders. */
export interface SandboxDemo {
  customer: {
    state: () => { running: boolean; lastReference: string | null; lastAt: number | null; problem: string | null }
    start: () => void
    stop: () => void
    /**
     * @param how `before` is called with the reference before each try to order under it; the units, else a few by chance
     * @returns the reference of the order; rejects when the order was not taken
     */
    orderNow: (how?: { quantity?: number | undefined; before?: (reference: string) => void }) => Promise<string>
    /** Rejects while Quayside does not answer. */
    orderOf: (reference: string) => Promise<NonNullable<Known['quayside']>>
  }
  /** Returns the common beginning of the references under which Quayside buys for this order. */
  stemOf: (reference: string) => string
  consoleUrl: string
}

export interface PanelParts extends ControlParts {
  exchanges: ExchangeLog
  now: () => number
  demo: SandboxDemo | undefined
}

/** A fault that a person set on the page, with the order that was placed for it. */
interface Press {
  /** That of the fault. */
  id: number
  fault: FaultName
  /** Undefined outside a demo, where the next order of any client meets the fault. */
  ordered: Known['ordered']
  /** What Quayside said last. */
  quayside: Known['quayside']
  /** The reference at the supplier of the order that met the fault, null where it has none; undefined before. */
  met?: string | null | undefined
}

/** So many presses stay on the page. */
const PRESSES_MAX = 30

/** The report on a press of a button, and the typed amount where the press was refused. */
interface Said {
  text: string | Html
  isRefused?: boolean
  add?: string | undefined
}

interface FaultButton {
  title: string
  /** How Quayside recovers from the fault. */
  heals: string
  /** The delay in milliseconds, long enough to be watched. */
  delayMs?: number
  /** The units of its order, where the fault needs several. */
  quantity?: number
}

const LOOKED_UP = 'It may be charged. Quayside looks for its own reference at the supplier, and does not send it again.'

/** Every fault as a button. */
export const faultButtons: Record<FaultName, FaultButton> = {
  'answer-lost': { title: 'Lose the answer', heals: LOOKED_UP },
  'error-before': {
    title: 'Fail before',
    heals: 'It may be charged: Quayside looks first, then repeats the same key.',
  },
  'error-after': { title: 'Fail after', heals: LOOKED_UP },
  slow: { title: 'Answer 5 s late', heals: 'Quayside waits, or looks the purchase up.', delayMs: 5_000 },
  'rate-limit': { title: 'Limit the rate', heals: 'Nothing was charged. It is sent again under the same key, later.' },
  'out-of-stock': { title: 'Sell out', heals: 'The line waits for stock, and its store hears of it.' },
  'insufficient-balance': { title: 'Empty the balance', heals: 'The purchase waits for balance, then it goes on.' },
  'failed-order': { title: 'Fail the order', heals: 'The money comes back. Then a person retries the order, or not.' },
  'list-lag': { title: 'Hide it for 30 s', heals: 'Quayside reads the order by its own id.', delayMs: 30_000 },
  'partial-keys': {
    title: 'Hold a key back for 20 s',
    heals: 'Keys that came are kept, and go to the store together with the others. Quayside reads the order again.',
    delayMs: 20_000,
    quantity: 2,
  },
  'hold-open': { title: 'Leave it open', heals: 'It stays open until you end it below. Quayside goes on reading it.' },
  'short-pages': { title: 'Shorten the pages', heals: 'Quayside reads on until a page is empty.' },
  'capped-total': { title: 'Cap the count', heals: 'A count is no proof of the end: Quayside reads on.' },
  'filter-misses': { title: 'Miss a search', heals: 'An empty search proves nothing: Quayside reads the list itself.' },
  'duplicate-delivery': { title: 'Send it twice', heals: 'The second one is known by its id, and does nothing.' },
  'reorder-deliveries': { title: 'Swap two', heals: 'The newest fact wins: an older one changes nothing.' },
  'drop-delivery': { title: 'Lose it', heals: 'A delivery is only a hint: Quayside reads the order by itself, too.' },
}

/** By what a fault applies to: the heading above the buttons of such faults, and the event that the next such fault disturbs. */
const subjects = {
  request: { title: 'The request to buy', next: 'next purchase' },
  order: { title: 'The order', next: 'next order' },
  delivery: { title: 'The delivery', next: 'next delivery' },
  list: { title: 'The list', next: 'next list' },
}

const faultNames = Object.keys(faultTable) as FaultName[]
const nextOf = (name: FaultName): string => subjects[factsOf(name).of].next

/** The page shows so many open orders and entries of the ledger, and reads so many deliveries for those that were dropped. */
const OPEN_MAX = 50
const DELIVERIES_READ = 200
const LEDGER_SHOWN = 20

/**
 * Makes the markup of the panel and the route of its buttons. Only a browser of this machine sees the panel. Only the page
 * itself may call the route: the route needs no key, so another site could call it through that browser.
 */
export function createPanel(parts: PanelParts, page: (request: Request, panel: Html) => string) {
  /** The newest first. */
  const presses: Press[] = []
  const doings = doingsOf(parts, presses)
  /** This report is shown once, at the top of the next page that a person opens. */
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
      const done = await doing(form)
      if (typeof done !== 'number') said = { text: done }
      response.redirect(303, typeof done === 'number' ? `/?seen=${done}` : request.url)
    } catch (error) {
      const status = error instanceof Refusal ? (error.status ?? 400) : error instanceof z.ZodError ? 400 : 503
      const why = error instanceof z.ZodError ? z.prettifyError(error) : messageOf(error)
      const refused = { text: `Nothing was done. ${why}`, isRefused: true, add: form.add }
      const panel = await shown(parts, presses, request, refused)
      response.status(status).type('html').send(page(request, panel))
    }
  }

  return {
    routes: Router().post('/', urlencoded({ extended: false }), act),
    /** Resolves with the panel for a browser of this machine, and with empty markup for any other. */
    of: async (request: Request): Promise<Html> => {
      if (!isOfThisMachine(request)) return html`<header class="title of-page"><h1>The sandbox</h1></header>`
      // The script of a page reads it again, too, also between a button and the page that the button leads to.
      if (request.headers['sec-fetch-dest'] === 'empty') return shown(parts, presses, request)
      const now = said
      said = undefined
      return shown(parts, presses, request, now)
    },
  }
}

type Doing = (form: z.infer<typeof formShape>) => Promise<string | Html | number>

/** Returns the action of each button. An action resolves with the report for the page, or with the id of a press to show. */
function doingsOf(parts: PanelParts, presses: Press[]): Record<string, Doing> {
  const { demo, faults, world, now } = parts
  const run = (call: Control['call'], input: { id?: string; body?: unknown }): unknown =>
    controls.find((control) => control.call === call)?.run(parts, { id: '', body: undefined, ...input })
  const customer = () => {
    if (!demo) throw new Refusal('not_found', 'This sandbox has no customer: it is not that of a demo.', 404)
    return demo.customer
  }
  /** Sets a fault for the order that is placed for it, and for no other; outside a demo, for the next order. */
  const press = (fault: FaultName, reference?: string): Press => {
    const match = demo && reference !== undefined && { externalOrderId: demo.stemOf(reference) }
    const { delayMs } = faultButtons[fault]
    const { id } = faults.add({ fault, ...(delayMs && { delayMs }), ...(match && { match }) })
    const ordered = reference === undefined ? undefined : { reference, at: now() }
    return { id, fault, ordered, quayside: undefined }
  }
  return {
    fault: async (form) => {
      const { fault } = readFault({ fault: form.fault })
      let made: Press | undefined
      const before = (reference: string) => {
        if (made) faults.remove(made.id)
        made = press(fault, reference)
      }
      try {
        if (demo) await demo.customer.orderNow({ quantity: faultButtons[fault].quantity, before })
      } catch (error) {
        if (made) faults.remove(made.id)
        throw error
      }
      made ??= press(fault)
      presses.unshift(made)
      presses.splice(PRESSES_MAX)
      return made.id
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

/** A press as it stands now. */
type Standing = Awaited<ReturnType<typeof standingOf>>

async function standingOf({ world, faults, exchanges, demo }: PanelParts, press: Press) {
  const { ordered } = press
  press.met ??= faults.list().find(({ id, fired }) => id === press.id && fired > 0)?.firedFor
  const stem = ordered && demo?.stemOf(ordered.reference)
  const range = stem ? { from: stem, to: `${stem}\x7f` } : { from: press.met ?? '', to: `${press.met ?? ''}\0` }
  if (ordered && press.quayside?.state !== 'fulfilled') {
    press.quayside = await demo?.customer.orderOf(ordered.reference).catch(() => press.quayside)
  }
  const entries = world.entriesOf(range.from, range.to)
  const droppedAt = world.webhooks
    .newest(DELIVERIES_READ)
    .filter(({ state, orderId }) => state === 'dropped' && entries.some((entry) => entry.orderId === orderId))
    .map(({ createdAt }) => createdAt)
  const story = storyOf({ ordered, exchanges: exchanges.of(range), entries, droppedAt, quayside: press.quayside })
  const charges = entries.filter(({ kind }) => kind === 'charge').length
  return { ...press, story, entries, charged: ['not', 'once', 'twice'][charges] ?? `${charges} times` }
}

async function shown(parts: PanelParts, presses: Press[], request: Request, now?: Said): Promise<Html> {
  const { demo, dialect } = parts
  const standings = await Promise.all(presses.map((press) => standingOf(parts, press)))
  const wanted = Number(new URL(request.url, 'http://sandbox').searchParams.get('seen'))
  const one = standings.find(({ id }) => id === wanted) ?? standings[0]
  const groups = Object.entries(subjects).filter(([subject]) => !demo || subject !== 'list')
  return html`<header class="title of-page" id="heading" aria-live="polite">${one ? titleOf(one) : html`<h1>Break the supplier, and watch an order heal</h1>`}</header>
${now && html`<p role="status" class="notice ${now.isRefused ? 'is-stop' : ''}">${now.text}</p>`}
<div id="stage" class="split">${one && stagePart(parts, one)}</div>
<form method="post" class="stack"><div class="head quay"><h2>Break something${one && ' else'}</h2><span class="small quiet">${demo ? 'Each button places its own order and shows it above.' : 'Each button is for the next order.'}</span></div>
${groups.map(
  ([subject, { title }]) => html`<h3>${title}</h3>
<ul class="faults">${faultNames.filter((name) => factsOf(name).of === subject).map((name) => html`<li><button name="fault" value="${name}"${one?.fault === name && html` class="armed"`}><b>${faultButtons[name].title}</b><small>${factsOf(name).does.replaceAll('`', '')}</small></button></li>`)}</ul>`,
)}<input type="hidden" name="do" value="fault"></form>
<section class="stack" id="seen">${standings.length > 0 && seenPart(parts, standings)}</section>
<section class="stack" id="now"><h2 class="quay">Now</h2>${customerPart(parts)}${faultsSet(parts)}${openPart(parts)}</section>
<section class="stack"><h2 class="quay" id="whole">The whole ledger</h2>
<form method="post" class="filters"><label>Add to the balance, in ${dialect.money.currency} <input name="add" value="${now?.add ?? '500.00'}" inputmode="decimal" required maxlength="20"></label> <button name="do" value="top-up">Top up</button></form>
<div id="ledger" class="stack">${ledgerPart(parts)}</div></section>`
}

function titleOf({ fault, story: { state, healedMs }, charged, ordered, met }: Standing): Html {
  const healed = `${ordered ? 'the customer has the key' : 'its keys were read'} ${span(healedMs ?? 0)} later`
  const waits = ordered ? 'the customer waits for the key' : 'its keys were not read yet'
  const end = state === 'healed' ? healed : state === 'failed' ? 'no key came' : waits
  const outcome = `${end}, and the supplier charged ${charged === 'not' ? 'nothing' : charged}`
  const isSet = state === 'coming' || (met === undefined && !ordered)
  return html`<p class="trail">The supplier ${factsOf(fault).does.replaceAll('`', '')}.</p><h1>${faultButtons[fault].title}: ${isSet ? (ordered ? 'the order is on its way' : `set for the ${nextOf(fault)}`) : outcome}.</h1>`
}

function stagePart(parts: PanelParts, { fault, ordered, story, entries, charged, met }: Standing): Html {
  const { title, heals } = faultButtons[fault]
  const rows = entries.map(({ kind, orderId, amountMinor, balanceMinor }, at) => {
    const before = balanceMinor + (kind === 'charge' ? amountMinor : -amountMinor)
    const row = (what: Html | string, sum: string) => html`<li><span>${what}</span><b>${sum}</b></li>`
    return html`${entries[at - 1]?.balanceMinor !== before && row('Before', amount(parts, before))}${row(html`${entryKinds[kind]} <span class="id">${orderId?.slice(0, 8)}</span>`, signed(parts, kind, amountMinor))}${row('After', amount(parts, balanceMinor))}`
  })
  return html`<section class="stack"><div class="head quay"><h2>Order ${ordered ? orderLink(parts.demo, ordered.reference) : html`<bdi>${met}</bdi>`}</h2>${stateMark(story)}</div>
${story.steps.length > 0 && stageOf(story, ordered !== undefined, (minor) => amount(parts, minor))}</section>
<div class="stack wide"><section class="stack"><div class="head quay"><h2>The supplier’s ledger</h2><b>charged ${charged}</b></div>
<ol class="steps plain">${rows}</ol><p class="small quiet">It is kept apart from Quayside. <a href="#whole">The whole ledger</a></p></section>
<section class="stack"><h2 class="quay">What you see</h2><p>${heals}</p><form method="post"><input type="hidden" name="do" value="fault"><button class="go" name="fault" value="${fault}">${title} again</button></form></section></div>`
}

const seenPart = (parts: PanelParts, standings: Standing[]): Html => html`<h2 class="quay">Seen so far</h2>
<table class="rows of-faults"><thead><tr><th scope="col">Order<th scope="col">Fault<th scope="col" class="num">Healed in<th scope="col">Charged<th scope="col">State</thead><tbody>${standings.map(
  ({ id, ordered, met, fault, story, charged, entries }) => html`
<tr><th scope="row"><a href="/?seen=${id}"><bdi>${ordered?.reference ?? met ?? 'next'}</bdi></a><td data-label="Fault">${faultButtons[fault].title}<td class="num" data-label="Healed in">${story.healedMs === null ? '–' : span(story.healedMs)}<td data-label="Charged">${charged}${entries.map(({ kind, amountMinor }) => `, ${kind === 'refund' ? 'refunded ' : ''}${amount(parts, amountMinor)}`)}<td class="top">${stateMark(story, true)}`,
)}</tbody></table>`

const marks = {
  coming: ['off', 'on its way', '<circle cx="6" cy="6" r="4.6" fill="none" stroke-width="1.5"/>'],
  moving: ['moving', 'under way', '<circle cx="6" cy="6" r="4.9" fill="none"/><path d="M6 1.1a4.9 4.9 0 0 1 0 9.8z"/>'],
  held: ['held', 'held', '<path d="M6 1 11 6 6 11 1 6z" fill="none" stroke-width="1.6"/>'],
  failed: ['stop', 'failed', '<path d="M1.2 1.2h9.6v9.6H1.2z" stroke="none"/>'],
  healed: ['done', 'healed', '<path d="M6 .8 11.4 11H.6z" stroke="none"/>'],
} as const

/** Draws the sign and the word of a state. The page is read again soon while it has a `data-moves`. */
function stateMark({ state, healedMs }: Story, isShort = false): Html {
  const [sign, word, shape] = marks[state]
  const took = !isShort && healedMs !== null && ` in ${span(healedMs)}`
  return html`<span class="mark is-${sign}"${/off|moving/.test(sign) && html` data-moves`}><svg viewBox="0 0 12 12" aria-hidden="true">${new Html(shape)}</svg>${word}${took}</span>`
}

function customerPart({ demo }: PanelParts): Html | '' {
  if (!demo) return ''
  const { running, lastReference, lastAt, problem } = demo.customer.state()
  const last = lastReference !== null && html` Last order: ${orderLink(demo, lastReference)} at ${timeOf(lastAt ?? 0)}.`
  return html`<form method="post" class="head"><p>${running ? 'A demo customer orders about twice a minute.' : 'The demo customer is stopped.'}${last}${problem && ` The last try failed: ${problem}.`}</p>
<p><button name="do" value="${running ? 'stop' : 'start'}">${running ? 'Stop the customer' : 'Start the customer'}</button> <button name="do" value="order">Order now</button></p></form>`
}

function faultsSet({ faults }: PanelParts): Html {
  const set = faults.list().filter(({ left }) => left > 0)
  return set.length === 0
    ? html`<p>No fault is set: the supplier works as it should.</p>`
    : html`<form method="post" class="head"><ul>${set.map(({ fault, left, match: { externalOrderId: only } }) => html`<li><b>${faultButtons[fault].title}</b>: ${left === 1 ? nextOf(fault) : `${left} times from the ${nextOf(fault)}`}${only && html` of <code>${only}</code>`}</li>`)}</ul><button name="do" value="clear">Clear all faults</button></form>`
}

/** The orders that are open, each with the buttons that end it. */
function openPart(parts: PanelParts): Html {
  const { world } = parts
  const open = world.orders.known(OPEN_MAX, 'open')
  return html`<p>${open.length === 0 ? 'No order is open.' : `${open.length === OPEN_MAX ? `${OPEN_MAX} or more` : open.length} open.`}</p>
${
  open.length > 0 &&
  html`<table class="rows of-orders"><thead><tr><th scope="col">Reference<th scope="col">What<th scope="col">Keys<th scope="col" class="num">Amount, ${parts.dialect.money.currency}<th scope="col">By hand</thead><tbody>${open.map(
    ({ id, createdAt, externalOrderId, productId, quantity, amountMinor }) => html`
<tr><th scope="row"><code>${externalOrderId ?? id}</code><small>since ${timeOf(createdAt)}</small><td>${world.offers.get(productId)?.name ?? productId}<td data-label="Keys">${world.orders.keysOf(id).length} of ${quantity}<td class="num" data-label="Amount">${amount(parts, amountMinor)}<td><form method="post" class="doing"><input type="hidden" name="id" value="${id}"><button name="do" value="complete">Hand out its keys</button> <button name="do" value="fail">Fail it, give the money back</button></form>`,
  )}</tbody></table>`
}`
}

function ledgerPart(parts: PanelParts): Html {
  const { world, dialect } = parts
  const { currency } = dialect.money
  const { startMinor, balanceMinor, closes, charges, refunds, topUps, keysIssued, newest } = world.summary(LEDGER_SHOWN)
  return html`<p>Kept apart from Quayside’s own records, so that the two can be compared. ${closes ? 'It is balanced to the cent.' : html`<b>It does not add up.</b>`}</p>
<p><b>${amount(parts, balanceMinor)} ${currency}</b>: began with ${amount(parts, startMinor)}, ${charges.count} charged with ${amount(parts, charges.minor)}, ${refunds.count} refunded with ${amount(parts, refunds.minor)}, ${topUps.count} topped up with ${amount(parts, topUps.minor)}. Licence keys handed out: ${keysIssued}.</p>
<div class="scroll" tabindex="0" role="region" aria-label="Newest entries"><table class="tight"><thead><tr><th scope="col">At<th scope="col">Entry<th scope="col">Reference<th scope="col" class="num">Amount, ${currency}<th scope="col" class="num">Balance</thead><tbody>${newest.map(
    (entry) => html`
<tr><td>${timeOf(entry.at)}<td>${entryKinds[entry.kind]}<td><code>${entry.externalOrderId ?? ''}</code><td class="num">${signed(parts, entry.kind, entry.amountMinor)}<td class="num">${amount(parts, entry.balanceMinor)}`,
  )}</tbody></table></div>`
}

const amount = ({ dialect }: PanelParts, minor: number): string =>
  formatDecimal({ minor, currency: dialect.money.currency })

const signed = (parts: PanelParts, kind: LedgerEntry['kind'], minor: number): string =>
  `${kind === 'charge' ? '−' : '+'}${amount(parts, minor)}`

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
