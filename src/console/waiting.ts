/** The customers who wait for keys: one row for each line, with its cause and the one thing that helps. */

import { countText, money as moneyText } from '../domain/figures.ts'
import { type Html, html, type Piece } from '../domain/html.ts'
import { helpLabels, severalLabels, waitLabels } from '../domain/labels.ts'
import { sumText } from '../domain/money.ts'
import { waitCauses } from '../domain/waiting.ts'
import type { StatusView } from '../http/api/status.ts'
import type { ItemOf } from '../http/api/table.ts'
import { hidden, textsIn } from './forms.ts'
import { inARow, sectionHead, type Tab, tabs } from './lists.ts'
import { live, liveHeadline } from './live.ts'
import { sign, stateMark } from './marks.ts'
import { numberOf, orderPath } from './orders.ts'
import { type Action, byOperator, done, type Page, type Visit } from './page.ts'
import { AT_ONCE, actOnSeveral, doToEach, type Row, textOf, tick } from './several.ts'
import { empty, table } from './tables.ts'
import { ageTag, clockTag, countedInWords, money, type StoreNames, sentenceOf, storeName, storeNames } from './words.ts'

export type WaitingItem = ItemOf<'viewWaiting'>
type Summary = StatusView['waiting']
type Items = readonly WaitingItem[]

/** `Seven customers wait for a key, the longest since 09:58.` */
export function waitingSentence({ customers, longestSince, upTo }: Summary, now: number): Piece {
  if (customers === 0 || longestSince === null) return 'No customer waits for a key.'
  const since = html`since ${clockTag(longestSince, now, 'minutes')}.`
  if (customers === 1) return html`One customer waits for a key, ${since}`
  return html`${countedInWords(customers, 'customer', 'customers', upTo)} wait for a key, the longest ${since}`
}

/** Says what they paid and what is charged for them, and how many of them wait for a person. */
export function waitingMoney({ customers, forPerson, money, upTo }: Summary): string {
  const sums = (name: 'paid' | 'charged') =>
    money
      .filter((sum) => Number(sum[name]) > 0)
      .map((sum) => moneyText(sum[name], sum.currency))
      .join(' and ')
  const [paid, charged] = [sums('paid'), sums('charged')]
  const isOne = customers === 1
  const said = charged === '' ? 'nothing is charged' : `the supplier has charged ${charged}`
  const whole = `${paid ? `${isOne ? 'The customer' : 'They'} paid ${paid}, and ` : ''}${said} for ${isOne ? 'the key' : 'them'}`
  const rest = customers - forPerson
  const whose = isOne
    ? forPerson === 1
      ? 'It waits for you.'
      : 'It goes on by itself.'
    : [
        forPerson > 0 && `${countedInWords(forPerson, 'waits', 'wait', upTo)} for you.`,
        rest > 0 && countedInWords(rest, 'goes on by itself.', 'go on by themselves.', upTo),
      ]
        .filter(Boolean)
        .join(' ')
  return `${sentenceOf(whole)} ${whose}`
}

/** How many rows the overview has. */
const ROWS_SHOWN = 8

/** Draws the queue. @param at the path of the page that has it @param chosen a cause, `you` or nothing, on the page of its own */
export async function queuePart(visit: Visit, at: string, chosen = ''): Promise<Html> {
  const [waiting, stores] = await Promise.all([visit.waiting(), storeNames(visit)])
  const { items, customers, forPerson, causes, upTo } = waiting
  const counted = (text: string, count: number) => `${text} ${countText(count, upTo)}`
  const all: Tab[] = [
    ['', counted('All', customers)],
    ...(forPerson > 0 ? [['you', counted('For you', forPerson)] as const] : []),
    ...waitCauses.flatMap((cause): Tab[] => {
      const count = causes[cause]
      return count ? [[cause, counted(waitLabels[cause].short, count)]] : []
    }),
  ]
  const choice = tabs('Cause', all, chosen, (name) => `/waiting${name && `?cause=${name}`}`)
  const wanted = items.filter((item) => chosen === '' || item.cause === chosen || (chosen === 'you' && item.forPerson))
  const shown = at === '/overview' ? wanted.slice(0, ROWS_SHOWN) : wanted
  const more = wanted.length - shown.length
  const those = selectable(shown, visit)
  return html`${sectionHead('wait-h', 'Customers waiting', customers > 0 && choice)}
${shown.length > 0 ? rowsOf(shown, those, visit, stores, at) : none(chosen)}${severalPart(those, visit)}${
  more > 0 && html`<p><a href="/waiting">${countedInWords(more, 'more line waits', 'more lines wait')}</a></p>`
}`
}

/** What a row of the queue stands for: if any of it is another now, the row has changed. */
const rowOf = (item: WaitingItem): Row => {
  const { help, purchaseId, updateId, most } = item
  return [`${numberOf(item)}, ${item.name ?? item.sku}`, help, purchaseId ?? '', updateId ?? '', most ?? '']
}

/** The help that can be given to several lines at once. Of reviews and ceilings a person reads first, each on a page of its own. */
const atOnce = ['retry', 'try_now', 'look_now', 'send_again'] as const
const isAtOnce = (item: WaitingItem): item is WaitingItem & { help: (typeof atOnce)[number] } =>
  atOnce.some((one) => one === item.help)

/** Returns the lines that can be selected, on the page of one cause: one thing can be done about all of them at once. */
function selectable(items: readonly WaitingItem[], { caller, query }: Visit) {
  const those = items.filter(isAtOnce).filter(({ cause }) => cause === query.get('cause'))
  return caller.role === 'viewer' ? [] : those.filter(({ help }) => help === those[0]?.help).slice(0, AT_ONCE)
}

function severalPart(items: ReturnType<typeof selectable>, visit: Visit): Html | undefined {
  const [first] = items
  if (!first) return undefined
  const label = severalLabels[first.help]
  const sum = (name: 'most' | 'charged') => sumText(items.map((item) => [item[name], item.chargedCurrency]))
  const most = sum('most') ? `At most ${sum('most')} for all ${items.length}. ` : ''
  const lost = first.help === 'retry' && sum('charged')
  const money = `${most}${lost ? `${lost} of what failed is lost unless the supplier gives it back.` : label.money}`
  return actOnSeveral(visit, label, '/waiting', 'several', { money })
}

const none = (chosen: string): Html =>
  chosen === ''
    ? html`<p class="quiet">No customer waits for a key. A customer who has paid and has no key comes here after a minute, or as soon as something is wrong.</p>`
    : empty('No customer waits for this cause', html`<a href="/waiting">Show all who wait</a>`)

/** Draws the rows. @param those which of them can be selected */
function rowsOf(items: Items, those: Items, visit: Visit, stores: StoreNames, at: string): Html {
  const { now } = visit
  const [first, ...others] = new Set(items.flatMap(({ paid, currency }) => (paid === null ? [] : [currency])))
  const one = others.length === 0 ? first : undefined
  const paidOf = ({ paid, currency }: WaitingItem): Piece =>
    paid !== null && one ? html`${money(paid, null)}<span class="unit"> ${one}</span>` : money(paid, currency)
  const orderOf = (item: WaitingItem) =>
    html`${those.includes(item) && tick(visit, 'several', rowOf(item), true)}<a href="${orderPath(item)}"><bdi>${numberOf(item)}</bdi></a><small><bdi>${storeName(stores, item.store)}</bdi></small>`
  const productOf = ({ name, sku, missing, units }: WaitingItem) =>
    html`<bdi>${name ?? sku}</bdi><small>${missing} of ${units} ${units === 1 ? 'key' : 'keys'}</small>`
  const causeOf = (item: WaitingItem) =>
    html`<span>${stateMark(waitLabels[item.cause])}<small>${detailOf(item, now)}</small></span>`
  return table({
    caption: 'Customers waiting, the longest first',
    isQueue: true,
    rows: items,
    columns: [
      ['Order', orderOf],
      ['Product', productOf, 'plain'],
      [one ? `Paid, ${one}` : 'Paid', paidOf, 'top number'],
      ['Waiting since', ({ since }) => html`${clockTag(since, now, 'minutes')}<small>${ageTag(since, now)}</small>`],
      ['Cause', causeOf, 'cause'],
      ['What helps', (item) => helpOf(item, visit, at), 'do'],
    ],
  })
}

/** Says more about the cause: the money that is charged, and when it is tried again. */
export function detailOf({ detail, charged, chargedCurrency, nextAt }: WaitingItem, now: number): readonly Piece[] {
  const next = nextAt !== null && Date.parse(nextAt) > now && html`next try ${clockTag(nextAt, now, 'minutes')}`
  const parts: Piece[] = [
    detail?.replace(/ \(request [^)]*\)|\.$/g, ''),
    charged !== null && `${money(charged, chargedCurrency)} is charged`,
    next,
  ]
  return inARow(parts.filter(Boolean), ', ')
}

/** The page or form to which help leads that does not act at once. */
function helpPath(item: WaitingItem): string {
  const order = orderPath(item)
  const ofPurchase = `${order}?do=${item.purchaseId}#p-${item.purchaseId}`
  const ofOrder = `${order}?do=${item.help}#whole-h`
  const paths: Partial<Record<WaitingItem['help'], string>> = {
    decide: `/reviews/${item.purchaseId}`,
    top_up: '/balance',
    unfreeze: '/overview?do=unfreeze#buy-h',
    retry: ofPurchase,
    release: ofPurchase,
    take: ofOrder,
    proceed: ofOrder,
  }
  return paths[item.help] ?? order
}

const actionOf: Partial<Record<WaitingItem['help'], string>> = {
  try_now: 'check',
  look_now: 'check',
  send_again: 'redeliver',
}

/**
 * Draws the one button that helps. A viewer may only look.
 *
 * @param at the path of the page that has the actions
 * @param more `beside`: what the button says besides its word
 */
export function helpOf(
  item: WaitingItem,
  { caller }: Pick<Visit, 'caller'>,
  at: string,
  { isMain = false, beside = '' }: { isMain?: boolean; beside?: string } = {},
): Html {
  const about = html`${beside}<span class="hide"> of order ${numberOf(item)}</span>`
  const action = caller.role === 'viewer' ? undefined : actionOf[item.help]
  if (action !== undefined) {
    return html`<form method="post" action="${at}/${action}">${hidden('purchase', item.purchaseId ?? '')}${hidden('update', item.updateId ?? '')}<button${isMain && html` class="go"`}>${helpLabels[item.help].word}${about}</button></form>`
  }
  const shown = caller.role === 'viewer' ? { ...item, help: 'look' as const } : item
  const { word } = helpLabels[shown.help]
  return html`<a class="button" href="${helpPath(shown)}">${word}${shown.help === 'look' ? html`<span class="hide"> ${numberOf(item)}</span>` : about}</a>`
}

/** What the buttons of the queue do at once. None of it spends more than was allowed before. */
export const queueActions: Record<string, Action> = {
  check: byOperator(async ({ call, form }) => {
    await call('checkPurchase', { path: { id: form.get('purchase') } })
    return done('Tried now', 'What comes of it is here within seconds. All rules and the ceiling stay as they are.')
  }),
  redeliver: byOperator(async ({ call, form }) => {
    await call('redeliverEffect', { path: { id: form.get('update') } })
    return done('Queued', 'The update goes to the store now. Its attempts start over.')
  }),
}

/** Does for each selected line what its button does alone. */
const several = byOperator(async (visit) => {
  const { call, form } = visit
  const { items } = await call('viewWaiting')
  const waits = new Map(items.filter(isAtOnce).map((item) => [textOf(rowOf(item)), item]))
  const [help = ''] = form.getAll('row').map((text) => text.split('\t')[1])
  const label = severalLabels[atOnce.find((one) => one === help) ?? 'look_now']
  return doToEach(visit, label, '/waiting', async (row) => {
    const item = waits.get(textOf(row))
    if (item?.help !== help) return { changed: 'it does not wait for this any more' }
    const path = { id: item.purchaseId }
    if (help === 'retry') return call('retryPurchase', { path, body: textsIn(form, 'reason') })
    if (help === 'send_again') return call('redeliverEffect', { path: { id: item.updateId } })
    return call('checkPurchase', { path })
  })
})

const partOf = (visit: Visit): Promise<Html> => queuePart(visit, '/waiting', visit.query.get('cause') ?? '')

async function headlinePart(visit: Visit): Promise<Html> {
  const { waiting } = await visit.status()
  const isEmpty = waiting.customers === 0
  return html`<h1>${sign(isEmpty ? 'done' : 'review')}<span>${waitingSentence(waiting, visit.now)}</span></h1>${!isEmpty && html`<p>${waitingMoney(waiting)}</p>`}`
}

export const waitingPage: Page = {
  path: '/waiting',
  navigation: {
    group: 'Needs attention',
    label: 'Customers waiting',
    waiting: ({ waiting }) => waiting.customers,
    upTo: ({ waiting }) => waiting.upTo,
  },
  show: async (visit) => {
    const [headline, content] = await Promise.all([headlinePart(visit), partOf(visit)])
    const from = `/waiting/parts/queue?${visit.query.toString()}`
    // A list from which a person selects stays as it was read.
    const isStill = selectable((await visit.waiting()).items, visit).length > 0
    const main = html`${liveHeadline('/waiting/parts/headline', headline)}
${isStill ? html`<section class="stack" aria-labelledby="wait-h">${content}</section>` : live({ id: 'waiting', class: 'stack', labelledBy: 'wait-h', from, content })}`
    return { title: 'Customers waiting', main }
  },
  parts: { headline: headlinePart, queue: partOf },
  actions: { ...queueActions, several },
}
