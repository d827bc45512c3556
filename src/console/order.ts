/** One order: what happened, its lines with their keys, and what a person can do now. */

import { counted } from '../domain/figures.ts'
import { type Html, html, type Piece } from '../domain/html.ts'
import { lineLabels, purchaseLabels } from '../domain/labels.ts'
import { amountText, parseDecimal } from '../domain/money.ts'
import { type HoldReason, isOver } from '../domain/purchase.ts'
import { currentParts, hasLeft } from '../domain/store-order.ts'
import type { StatusView } from '../http/api/status.ts'
import type { AnswerOf } from '../http/api/table.ts'
import {
  act,
  actOf,
  formOf,
  hidden,
  maybeReason,
  maybeReasonField,
  needsRole,
  notNow,
  reasonField,
  textField,
  textsIn,
  typedFor,
} from './forms.ts'
import { type Fact, facts, folded, notice, section, sectionHead, type Tab, tabs, timeline } from './lists.ts'
import { live } from './live.ts'
import { stateMark } from './marks.ts'
import { answerOf, type OrderHistoryView } from './order-answer.ts'
import { claimActions, claimsOf } from './order-claims.ts'
import { eventsOf } from './order-events.ts'
import { numberOf, orderPath } from './orders.ts'
import { byAdmin, byOperator, done, type Page, type Visit } from './page.ts'
import { withQuery } from './tables.ts'
import { queueActions, type WaitingItem } from './waiting.ts'
import { ago, clockTag, money, type StoreNames, sentenceOf, storeName, storeNames } from './words.ts'

type Line = OrderHistoryView['lines'][number]
type Purchase = Line['purchases'][number]
type Key = Line['keys'][number]

/** Names an order by its store and reference, which the address of the page has. */
const named = ({ path: { store = '', reference = '' } }: Pick<Visit, 'path'>) => ({
  path: { reference },
  query: { store },
})

const historyOf = (visit: Visit): Promise<OrderHistoryView> => visit.call('viewOrderHistory', named(visit))

/** Returns the lines of the order whose customer waits. */
const waitsOf = async ({ call, path: { store = '', reference = '' } }: Visit): Promise<readonly WaitingItem[]> =>
  (await call('viewWaiting', { query: { store, order: reference } })).items

export const orderPage: Page = {
  path: '/orders/:store/:reference',
  below: '/orders',
  show: async (visit) => {
    const [order, waits, status, stores] = await Promise.all([
      historyOf(visit),
      waitsOf(visit),
      visit.status(),
      storeNames(visit),
    ])
    const claims = await claimsOf(order, visit)
    return { title: `Order ${numberOf(order)}`, main: contentOf(order, claims, { visit, status, stores, waits }) }
  },
  parts: {
    answer: async (visit) => {
      const [order, waits, stores] = await Promise.all([historyOf(visit), waitsOf(visit), storeNames(visit)])
      return answerOf(order, waits, storeName(stores, order.store), visit)
    },
    log: async (visit) => {
      const [order, stores] = await Promise.all([historyOf(visit), storeNames(visit)])
      return logOf(order, visit, storeName(stores, order.store))
    },
  },
  actions: {
    ...claimActions,
    retry: byOperator(async ({ call, form }) => {
      await call('retryPurchase', { path: { id: form.get('purchase') }, body: maybeReason(form) })
      return done('Retried', 'It is planned again, under a key of its own, and goes to the supplier now.')
    }),
    release: byOperator(async ({ call, form }) => {
      const { ceiling } = textsIn(form, 'ceiling')
      const body = {
        ...(ceiling && { ceiling }),
        ...(form.has('overrideSpendCap') && { overrideSpendCap: true }),
        ...maybeReason(form),
      }
      await call('releasePurchase', { path: { id: form.get('purchase') }, body })
      return done('Released', 'All rules are checked again. If none holds it, it goes to the supplier now.')
    }),
    cancel: byOperator(async (visit) => {
      const { state } = await visit.call('cancelOrder', { ...named(visit), body: maybeReason(visit.form) })
      return done(
        'Cancelled',
        state === 'open'
          ? 'What was never sent has ended. What may be bought is looked up, and ends or waits for a decision.'
          : 'What was not bought has ended, and the store is notified.',
      )
    }),
    resend: byOperator(async (visit) => {
      const { keys, detail } = await visit.call('resendOrder', { ...named(visit), body: maybeReason(visit.form) })
      return done('Sent again', detail ?? `The shop has sent the customer ${counted(keys, 'key')} again.`)
    }),
    'withdraw-keys': byOperator(async (visit) => {
      await visit.call('withdrawKeysPage', { ...named(visit), body: textsIn(visit.form, 'reason') })
      return done('Withdrawn', 'The page opens no key any more.')
    }),
    ...queueActions,
    proceed: byOperator(async (visit) => {
      await visit.call('releaseShopOrder', named(visit))
      return done('Read again', 'The order was read again in its shop. What waited for a person goes on.')
    }),
    take: byOperator(async (visit) => {
      const { path, query } = named(visit)
      await visit.call('takeShopOrder', { path, query: { ...query, line: visit.form.get('line') } })
      return done('Taken', 'The units are bought now.')
    }),
    reveal: byAdmin(async (visit) => {
      const body = { line: visit.form.get('line') ?? '', ...textsIn(visit.form, 'reason') }
      const revealed = await visit.call('revealKeys', { ...named(visit), body })
      return { title: `Keys of order ${visit.path.reference}`, main: revealedOf(revealed, visit) }
    }),
  },
}

interface Around {
  visit: Visit
  waits: readonly WaitingItem[]
  status: StatusView
  stores: StoreNames
}

function contentOf(order: OrderHistoryView, claims: Piece, around: Around): Html {
  const { visit, stores, waits } = around
  const { receivedAt, cancelRequestedAt } = order
  const { now } = visit
  const here = orderPath(order)
  const name = storeName(stores, order.store)
  return html`<header class="title"><p class="trail"><a href="/orders">Orders</a> / <a href="/orders?store=${encodeURIComponent(order.store)}">${name}</a> / <span class="id">${numberOf(order)}</span></p><h1>Order ${numberOf(order)}</h1>
<p class="quiet">Received ${ago(receivedAt, now)}, ${clockTag(receivedAt, now)}.${cancelRequestedAt !== null && html` Cancelled ${clockTag(cancelRequestedAt, now)}.`}</p></header>
${live({ id: 'answer', class: 'stack wide', labelledBy: 'ans-h', from: `${here}/parts/answer`, content: answerOf(order, waits, name, visit) })}
<div class="split">
${live({ id: 'log', labelledBy: 'log-h', from: `${here}/parts/log?${visit.query.toString()}`, content: logOf(order, visit, name) })}
<div class="stack wide">
${order.lines.map((line, index) => lineSection(order, line, index, around))}
${claims}
${section('whole-h', 'The whole order', wholeOf(order, name, around))}
</div></div>`
}

const isHeld = ({ state, holdReason }: Purchase): boolean =>
  holdReason !== null && (state === 'planned' || state === 'waiting')

function logOf(order: OrderHistoryView, { query, now }: Pick<Visit, 'query' | 'now'>, store: string): Html {
  const chosen = query.get('line') ?? ''
  const all = eventsOf(order, store)
  const isOne = order.lines.length === 1
  /** An entry of the only line names its part alone. */
  const tagOf = (tag?: string) => (isOne && !tag?.includes('part') ? undefined : tag)
  const events = folded(all.filter(({ line }) => chosen === '' || line === undefined || line === chosen))
  const lines = order.lines.slice(0, LINES_MAX).map(({ id }): Tab => [id, `Line ${id}`])
  const choice = tabs('Lines', [['', 'All'], ...lines], chosen, (line) =>
    withQuery(orderPath(order), new URLSearchParams(line && { line })),
  )
  const shown = order.lines.reduce((sum, { purchases }) => sum + purchases.length, 0)
  const isPart = order.purchases > shown
  return html`<div class="stack">${sectionHead('log-h', 'What happened', !isOne && choice)}
${isPart && html`<p class="small quiet">Of its ${counted(order.purchases, 'purchase')} those ${shown} are here that changed last.</p>`}
${timeline(
  events.map((event) => ({ ...event, tag: tagOf(event.tag) })),
  now,
)}</div>`
}

/** How many lines have a tab of their own. */
const LINES_MAX = 11

function lineSection(order: OrderHistoryView, line: Line, index: number, around: Around): Html {
  const { visit } = around
  const current = currentParts(line.purchases)
  const left = line.keys.filter(hasLeft)
  const title = html`Line ${line.id}: <bdi>${line.name ?? line.sku}</bdi>`
  const actions = [
    left.length > 0 && visit.caller.role === 'admin' && revealForm(order, line, left, index, visit),
    ...current.slice(0, PARTS_SHOWN).map((purchase) => purchaseAction(order, line, purchase, around)),
  ].filter((one) => one !== false)
  return section(
    `l-${index}`,
    title,
    html`${facts(lineFacts(line, current, visit.now))}
${line.keys.length > 0 && keysOf(line.keys, order.openings, visit.now)}
${actions.length > 0 && html`<div>${actions}</div>`}`,
    stateMark(lineLabels[line.state]),
  )
}

/** How many parts of a line have their actions on the page. */
const PARTS_SHOWN = 8
const KEYS_SHOWN = 20

function lineFacts(line: Line, current: readonly Purchase[], now: number): Fact[] {
  const [first] = current
  const one = current.length === 1 ? first : undefined
  return [
    first && isHeld(first) && line.cost && ['Cost now', `${money(line.cost, line.currency)} a unit`],
    first && ['Ceiling', `${money(first.ceiling, first.currency)} a unit`],
    one?.supplierOrderId != null && ['Supplier order', html`<span class="id">${one.supplierOrderId}</span>`],
    one && ['Reference', html`<span class="id">${one.externalOrderId}</span>`],
    one?.failureCode != null && [
      'Why',
      html`<code>${one.failureCode}</code>${one.failureMessage !== null && ` ${sentenceOf(one.failureMessage)}`}`,
    ],
    one && isHeld(one) && ['Continues', continues(one, now)],
    one && one.state in underWay && ['Waits for', waitingFor(one)],
    current.length > 1 && ['Parts', partsText(current)],
  ]
}

const underWay: Partial<Record<Purchase['state'], string>> = {
  sending: 'the answer of the supplier.',
  unknown: 'a look-up at the supplier, which goes on by itself.',
  accepted: 'the keys of the supplier. Its order is read again and again by itself.',
}

const waitingFor = ({ id, state }: Purchase): Html =>
  html`${underWay[state]}${state === 'accepted' && html` <a href="/reviews/${id}">See the evidence, or decide</a>`}`

/** Sums what purchases cost. A purchase whose charge is not known yet counts with the most that it may cost. */
function mostOf(purchases: readonly Purchase[]): string {
  const currency = purchases[0]?.currency ?? ''
  const minor = ({ amount, ceiling, quantity }: Purchase) =>
    amount === null ? (parseDecimal(ceiling, currency) ?? 0) * quantity : (parseDecimal(amount, currency) ?? 0)
  return amountText(
    purchases.reduce((sum, one) => sum + minor(one), 0),
    currency,
  )
}

const partsText = (current: readonly Purchase[]): string =>
  [...Map.groupBy(current, ({ state }) => state).entries()]
    .map(([state, all]) => `${all.length} ${purchaseLabels[state].word}`)
    .join(', ')

function continues({ holdReason, notBefore, deadlineAt }: Purchase, now: number): Piece {
  const look =
    notBefore === null ? 'when a person releases it' : html`by itself, looked at again ${clockTag(notBefore, now)}`
  const until = html`; given up ${clockTag(deadlineAt, now, 'minutes')}`
  return html`${look}${holdReason !== 'frozen' && until}`
}

function keysOf(keys: readonly Key[], openings: OrderHistoryView['openings'], now: number): Html {
  const shown = keys.slice(0, KEYS_SHOWN)
  const opened = ({ purchaseId, ordinal }: Key) => {
    const one = openings.find((other) => other.purchaseId === purchaseId && other.ordinal === ordinal)
    return one && html`; opened ${clockTag(one.at, now)}${one.times > 1 && `, ${counted(one.times, 'time')}`}`
  }
  return html`<ul class="keys">${shown.map(
    (key, index) =>
      html`<li><span class="masked" aria-hidden="true">•••••-•••••-•••••</span><span class="hide">Key ${index + 1}, masked</span><span class="small quiet">${
        key.handedOverAt !== null
          ? html`handed over ${clockTag(key.handedOverAt, now)}`
          : key.begunAt !== null
            ? 'on its way to the store'
            : 'kept here'
      }${opened(key)}</span></li>`,
  )}</ul>${keys.length > KEYS_SHOWN && html`<p class="small quiet">and ${keys.length - KEYS_SHOWN} more keys</p>`}`
}

function revealForm(order: OrderHistoryView, line: Line, left: readonly Key[], index: number, visit: Visit): Html {
  const keys = left.length === 1 ? 'the key' : `the ${left.length} keys`
  const { typed, own, isOpen } = formOf(visit, 'line', line.id)
  const kept = line.keys.length - left.length
  return act({
    summary: `Reveal ${keys}…`,
    to: `${orderPath(order)}/reveal`,
    about: `Shows ${keys} on a page of ${left.length === 1 ? 'its' : 'their'} own, once. Leave it and ${left.length === 1 ? 'it is' : 'they are'} masked again.${kept > 0 ? ` The ${counted(kept, 'key')} that the store does not have yet ${kept === 1 ? 'is' : 'are'} not shown.` : ''}`,
    effect: {
      Money: 'Nothing is spent.',
      Store: 'Sees nothing of it.',
      Record: 'The audit log keeps your name, the time and your reason, for good.',
    },
    fields: html`${own}${reasonField(typed, String(index))}`,
    button: `Reveal ${counted(left.length, 'key')}`,
    isOpen,
  })
}

function purchaseAction(
  order: OrderHistoryView,
  line: Line,
  purchase: Purchase,
  { visit, status }: Around,
): Html | false {
  const { id, state, holdReason, currency, quantity } = purchase
  if (visit.caller.role === 'viewer') return false
  if (!isOver(state) && (!isHeld(purchase) || holdReason === 'frozen')) return false
  const of = currentParts(line.purchases).length > 1 ? ` part ${purchase.part}` : ''
  const what = `${quantity} × ${line.name ?? line.sku}`
  const most = `At most ${mostOf([{ ...purchase, amount: null }])}.`
  const balance = status.balance ? ` Balance now: ${money(status.balance.amount, status.balance.currency)}.` : ''
  const { typed, own, isOpen: isFaulty } = formOf(visit, 'purchase', id)
  const isOpen = isFaulty || visit.query.get('do') === id
  if (isOver(state)) {
    const lost =
      state === 'failed' && purchase.amount !== null
        ? ` ${money(purchase.amount, currency)} of the order that failed is lost unless the supplier gives it back.`
        : ''
    return html`<div id="p-${id}">${act({
      summary: `Retry${of}…`,
      to: `${orderPath(order)}/retry`,
      about: `Buys ${what} again, what of it the store has no keys of, as generation ${purchase.generation + 1}.`,
      effect: {
        Money: `${most}${lost}${balance}`,
        Store: 'Gets the keys when they come. It may have refunded the customer by now: look there first.',
        Undo: 'Cancel it before it is sent; it is sent within seconds.',
      },
      fields: html`${own}${maybeReasonField(typed, `retry-${id}`)}`,
      button: `Buy ${what} again`,
      isOpen,
    })}</div>`
  }
  const releases: Partial<Record<HoldReason, { way: string; about: string; money?: string; field: Html }>> = {
    ceiling: {
      way: ' with a new ceiling',
      about: `Buys ${what} now, if a unit costs no more than you allow here.`,
      money: `${quantity} × the ceiling at most; the supplier asks ${money(line.cost, line.currency)} a unit now.`,
      field: textField(typed, {
        label: `New ceiling for one unit, ${currency}`,
        name: 'ceiling',
        value: line.cost ?? purchase.ceiling,
        isRequired: true,
        isShort: true,
        isDecimal: true,
        at: id,
      }),
    },
    spend_cap: {
      way: ' beyond the spend caps',
      about: `Buys ${what} now, whatever the spend caps say. Other purchases keep to them.`,
      field: hidden('overrideSpendCap', 'true'),
    },
  }
  const release = holdReason === null ? undefined : releases[holdReason]
  return html`<div id="p-${id}">${act({
    summary: `Release${of}${release?.way ?? ''}…`,
    to: `${orderPath(order)}/release`,
    about: release?.about ?? `Checks all rules for ${what} again now, and buys it if none holds it any more.`,
    effect: {
      Money: `${release?.money ?? most}${balance}`,
      Store: `Gets ${counted(quantity, 'key')}, usually within seconds.`,
      Undo: 'Not once it is sent.',
    },
    fields: html`${own}${release?.field}${maybeReasonField(typed, `release-${id}`)}`,
    button: `Release ${what}`,
    isOpen,
  })}</div>`
}

/** Draws what concerns all lines, and names the actions that do not apply now. */
function wholeOf(order: OrderHistoryView, store: string, { visit, waits }: Around): Html {
  const here = orderPath(order)
  const { role } = visit.caller
  const current = order.lines.flatMap(({ purchases }) => currentParts(purchases))
  const moving = current.filter(({ state }) => !isOver(state) && state !== 'fulfilled')
  const sent = moving.filter(({ state }) => !['planned', 'waiting'].includes(state))
  const waiting = order.updates.filter(({ state }) => state !== 'done')
  const keys = order.lines.flatMap((line) => line.keys)
  const canAct = role !== 'viewer'
  const actions = canAct
    ? [
        ...waits.map((item) => agreement(item, order, store, visit)),
        order.resendRefusal === null &&
          actOf(visit, {
            summary: 'Send the keys to the customer again…',
            to: `${here}/resend`,
            about: `Has ${store} send the customer the same keys again: those that were handed over, and no others.`,
            effect: {
              Money: 'Nothing is bought.',
              Store: 'Writes to the customer once more.',
              Undo: 'A mail cannot be called back.',
            },
            fields: html`${maybeReasonField(typedFor(visit, 'resend'), 'resend')}`,
            button: `Send ${counted(keys.filter(({ handedOverAt }) => handedOverAt !== null).length, 'key')} again`,
          }),
        order.keysPage?.withdrawnAt === null && withdrawForm(order, visit),
        ...waiting.slice(0, UPDATES_SHOWN).map((update) =>
          act({
            summary: `Send ${update.type} again…`,
            to: `${here}/redeliver`,
            about: html`Sends the update <code>${update.type}</code> to ${store} now. ${update.lastError !== null && sentenceOf(update.lastError)}`,
            effect: {
              Money: 'Nothing is bought.',
              Store: 'Gets the same update under the same id; a store that has it ignores it.',
              Undo: 'Not needed.',
            },
            fields: hidden('update', update.id),
            button: `Send ${update.type} now`,
          }),
        ),
        moving.length > 0 &&
          actOf(visit, {
            summary: 'Cancel what is not bought…',
            to: `${here}/cancel`,
            about: `Ends what was never sent. ${sent.length > 0 ? `${counted(sent.length, 'purchase')} may be bought already: keys that come wait for a decision.` : 'Nothing of it was sent yet.'}`,
            effect: {
              Money:
                sent.length > 0
                  ? `What was charged stays charged: ${mostOf(sent)} at most.`
                  : 'Nothing was charged, nothing is lost.',
              Store: html`Is notified with <code>line.failed</code>; refund the customer there. Keys that it has stay with it.`,
              Undo: 'No, but each purchase can be retried.',
            },
            fields: html`${maybeReasonField(typedFor(visit, 'cancel'), 'cancel')}`,
            button: `Cancel order ${order.reference}`,
            stops: true,
          }),
      ].filter((one) => one !== false)
    : []
  const reviews = current.filter(({ state }) => state === 'review')
  const reasons = [
    !canAct && needsRole('Retry, release, cancel, send again, withdraw', 'operator', visit),
    role !== 'admin' && keys.length > 0 && needsRole('Reveal', 'admin', visit),
    role === 'admin' &&
      keys.length > 0 &&
      !keys.some(hasLeft) &&
      'Reveal: the store has no key yet, and a cancellation may still keep them from it.',
    canAct &&
      current.some(({ holdReason }) => holdReason === 'frozen') &&
      'Release: all buying is frozen. Lift the freeze on the overview.',
    canAct && moving.length === 0 && 'Cancel: nothing of it is open.',
    canAct && order.resendRefusal !== null && `Send to the customer again: ${order.resendRefusal}.`,
    canAct && order.keysPage?.withdrawnAt != null && 'Withdraw the page of keys: it is withdrawn.',
  ]
  const decide = reviews.map(
    ({ id }) => html`<p><a class="button" href="/reviews/${id}">Decide on the purchase in review</a></p>`,
  )
  return html`${facts([
    ['Store', html`<a href="/stores/${encodeURIComponent(order.store)}">${store}</a>`],
    ['Received', clockTag(order.receivedAt, visit.now)],
    order.closedAt !== null && ['Closed', clockTag(order.closedAt, visit.now)],
    order.keysPage && [
      'Page of keys',
      order.keysPage.withdrawnAt === null
        ? html`open to the customer${visit.caller.role === 'admin' && '; its address is shown with the keys'}`
        : html`withdrawn ${clockTag(order.keysPage.withdrawnAt, visit.now)}`,
    ],
  ])}
${decide}${actions.length > 0 && html`<div>${actions}</div>`}
${notNow(...reasons)}`
}

/** Draws the form by which a person continues a held order, or agrees to units that came later. */
function agreement(item: WaitingItem, order: OrderHistoryView, store: string, visit: Visit): Html | false {
  const isOpen = visit.query.get('do') === item.help
  const effect = {
    Store: `Gets the keys. ${store} is read again first: look there before.`,
    Undo: 'Not once it is sent.',
  }
  if (item.help === 'proceed') {
    return act({
      summary: 'Continue the order…',
      to: `${orderPath(order)}/proceed`,
      about: `${sentenceOf(item.detail ?? 'The order is held')} If the shop itself holds the order, only the shop ends that.`,
      effect: { Money: 'What waits for it is bought, each unit up to the ceiling that it has.', ...effect },
      button: `Continue order ${numberOf(order)}`,
      isOpen,
    })
  }
  const what = `${counted(item.missing, 'unit')} of ${item.name ?? item.sku}`
  return (
    item.help === 'take' &&
    act({
      summary: `Buy what was added to line ${item.line}…`,
      to: `${orderPath(order)}/take`,
      about: `Buys ${what} now, which the customer has paid and no person has agreed to buy.`,
      effect: { Money: 'Each unit costs at most its ceiling, which follows from what the customer paid.', ...effect },
      fields: hidden('line', item.line),
      button: `Buy ${what}`,
      isOpen,
    })
  )
}

const UPDATES_SHOWN = 5

const withdrawForm = (order: OrderHistoryView, visit: Visit): Html =>
  actOf(visit, {
    summary: 'Withdraw the page of keys…',
    to: `${orderPath(order)}/withdraw-keys`,
    about:
      'The page opens no key any more, and says so to the customer. What was opened there stays known to the customer.',
    effect: { Money: 'Nothing is spent or given back.', Store: 'Hears nothing of it.', Undo: 'None.' },
    fields: html`${reasonField(typedFor(visit, 'withdraw-keys'), 'withdraw')}`,
    button: `Withdraw the page of order ${order.reference}`,
    stops: true,
  })

function revealedOf({ items, keysUrl }: AnswerOf<'revealKeys'>, visit: Visit): Html {
  const { store = '', reference = '' } = visit.path
  const here = orderPath({ store, reference })
  return html`<header class="title"><p class="trail"><a href="/orders">Orders</a> / <a href="${here}">Order ${reference}</a></p><h1>${counted(items.flatMap(({ keys }) => keys).length, 'key')} of order ${reference}</h1></header>
${notice({
  kind: 'held',
  word: 'Shown this once',
  text: html`The <a href="/audit?action=order.reveal">audit log</a> has your name and your reason. Leaving the page masks them again.`,
})}
${items.map(({ line, keys }, index) =>
  section(
    `line-${index}`,
    `Line ${line}`,
    html`<ul class="keys">${keys.map(
      ({ key, type, handedOverAt }) =>
        html`<li>${type === 'image' || type === 'file' ? `The ${type}, on the page of keys` : html`<code>${key}</code>`}<span class="small quiet">${handedOverAt === null ? 'on its way to the store' : html`handed over ${clockTag(handedOverAt, visit.now)}`}</span></li>`,
    )}</ul>`,
  ),
)}
${
  keysUrl !== null &&
  section(
    'page-h',
    'The page of keys',
    html`<p><a class="id" href="${keysUrl}" rel="noreferrer">${keysUrl}</a></p><p class="small quiet">For the customer alone: everyone who has this address can open the keys. A key that you open there counts as opened by the customer.</p>`,
  )
}
<p><a class="button" href="${here}">Back to the order, and mask them</a></p>`
}
