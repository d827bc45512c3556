/** The list of deliveries, and the requests that were refused before they became deliveries. */

import { counted } from '../domain/figures.ts'
import { type Html, html, type Piece } from '../domain/html.ts'
import { type DeliveryState, deliveryLabels, severalLabels } from '../domain/labels.ts'
import { eventNames } from '../domain/supplier.ts'
import type { StatusView } from '../http/api/status.ts'
import type { AnswerOf, ItemOf } from '../http/api/table.ts'
import {
  act,
  type Effect,
  filterField,
  forOperators,
  hidden,
  needsRole,
  notNow,
  selectField,
  timesOf,
} from './forms.ts'
import { listPage } from './list-page.ts'
import { inARow, notice, section } from './lists.ts'
import { stateMark } from './marks.ts'
import { byAdmin, byOperator, type Done, done, type Page, type Visit } from './page.ts'
import { actOnSeveral, selectedRows, tick } from './several.ts'
import { table, withQuery } from './tables.ts'
import { ago, clockTag, countedInWords, type StoreNames, storeName } from './words.ts'

type DeliveryView = ItemOf<'listDeliveries'>

export const deliveriesPage = listPage({
  path: '/deliveries',
  navigation: { group: 'Supplier', label: 'Deliveries' },
  operation: 'listDeliveries',
  nouns: ['delivery', 'deliveries'],
  filters: ['state', 'event'],
  times: 'minutes',
  headline: ({ status }) => headline(status),
  fields: ({ query }) =>
    html`${selectField({
      label: 'State',
      name: 'state',
      chosen: query.get('state') ?? '',
      options: [['', 'all states'], ...Object.keys(deliveryLabels)],
    })}${filterField('Event', 'event', query.get('event') ?? '', eventNames)}`,
  heading: ({ query }) => {
    const chosen = query.get('state')
    if (!chosen) return ['Newest first']
    const { means } = deliveryLabels[chosen as DeliveryState]
    return [`Deliveries in state ${chosen}`, html`<p class="small quiet">${chosen}: ${means}</p>`]
  },
  none: [
    'No deliveries yet',
    html`What the supplier and shops send comes here, as soon as a webhook leads to this installation. <code>quayside webhooks create</code> makes one.`,
  ],
  noMatch: [
    'No delivery matches',
    html`Choose another state, event or time. <a href="/deliveries">Show all deliveries</a>`,
  ],
  rows: (seen) => deliveryTable('Deliveries', seen),
  below: ({ visit, items }) =>
    items.length > 0 && section('replay-h', 'Actions', forOperators('Replay', visit, replayForm(visit, '/deliveries'))),
  file: ({ call, query }) =>
    call('exportDeliveries', { query: { state: query.get('state'), event: query.get('event'), ...timesOf(query) } }),
  actions: { replay: byOperator(replaySelected('/deliveries')) },
})

function headline({ counts: { deliveries, upTo }, refusedDeliveries }: StatusView): Html {
  const of = (state: string) => deliveries[state] ?? 0
  const troubles = [
    ['dead', 'dead letter', 'dead letters'],
    ['quarantined', 'unreadable one', 'unreadable ones'],
    ['orphan', 'without its order', 'without their orders'],
  ].flatMap(([state = '', one = '', several]) =>
    of(state) > 0 ? [html`<a href="/deliveries?state=${state}">${counted(of(state), one, several, upTo)}</a>`] : [],
  )
  const waiting = of('stored') + of('retry')
  const refused = html` <a href="/deliveries/refused">${refusedDeliveries.total === 0 ? 'None' : counted(refusedDeliveries.total, 'request')}</a> ${refusedDeliveries.total === 1 ? 'was' : 'were'} refused since the service started.`
  const queued =
    waiting > 0 &&
    ` ${counted(waiting, 'delivery waits', 'deliveries wait', upTo)} for ${waiting === 1 ? 'its' : 'their'} turn.`
  if (troubles.length > 0) return html`A person should look at ${inARow(troubles)}.${queued}${refused}`
  return html`${waiting === 0 ? 'Every delivery that was taken is dealt with.' : html`Nothing needs a person.${queued}`}${refused}`
}

/** Returns the sender behind a source: the name of a store, or the supplier. */
export function senderOf(source: string, names: StoreNames): string {
  const store = source.startsWith('stores/') ? source.slice('stores/'.length) : undefined
  return store === undefined ? 'the supplier' : storeName(names, store)
}

/** Shows the supplier order of an event. Where we know its purchase, the cell links to the store order. */
const supplierOrderCell = ({ supplierOrderId, purchaseId }: DeliveryView): Piece =>
  supplierOrderId &&
  (purchaseId === null
    ? html`<span class="id">${supplierOrderId}</span>`
    : html`<a class="id" href="/orders?q=${encodeURIComponent(supplierOrderId)}">${supplierOrderId}</a>`)

export const eventText = ({ event }: Pick<DeliveryView, 'event'>): string => event ?? 'event not read'

/** Draws a table of deliveries. People who may replay deliveries can select them. */
export const deliveryTable = (
  caption: string,
  given: { visit: Visit; items: readonly DeliveryView[]; stores: StoreNames; mayAct: boolean },
): Html => {
  const { visit, items, stores, mayAct } = given
  return table({
    caption,
    rows: items,
    columns: [
      [
        'Delivery',
        (one) =>
          html`${mayAct && tick(visit, 'replay', [`${eventText(one)} of ${one.receivedAt}`, one.id])}<a href="/deliveries/${one.id}">${eventText(one)}</a><small>${senderOf(one.source, stores)}</small>`,
      ],
      ['State', ({ state }) => stateMark(deliveryLabels[state]), 'top'],
      ['Supplier order', supplierOrderCell],
      ['Attempts', ({ attempts }) => attempts, 'number'],
      ['Arrived', ({ receivedAt }) => clockTag(receivedAt, visit.now)],
      ['Why', ({ lastError }) => lastError],
    ],
  })
}

/** Replays the deliveries that are selected. @param at the path of the page that has them */
export function replaySelected(at: string) {
  return async ({ call, form, query }: Visit): Promise<Done> => {
    const ids = selectedRows(form).map(([, id]) => id)
    const { replayed, left } = await call('replayDeliveries', { body: { ids } })
    const [kind, word] = replayed.length > 0 ? (['done', 'Replayed'] as const) : (['held', 'Nothing was done'] as const)
    const lost = `${countedInWords(left.length, 'other')} cannot be read again: the body was deleted.`
    const text = `${countedInWords(replayed.length, 'delivery is', 'deliveries are')} in the inbox again.`
    return { notice: { kind, word, text: left.length > 0 ? `${text} ${lost}` : text }, to: withQuery(at, query) }
  }
}

const { money, stores, undo } = severalLabels.replay
export const replayEffect: Effect = { Money: money, Store: stores, Undo: undo }

export const replayForm = (visit: Visit, at: string): Html =>
  actOnSeveral(visit, severalLabels.replay, at, 'replay', { isOpen: false })

/** Why a request was refused, by the name under which such refusals are counted. */
const refusals: Record<string, string> = {
  mismatch: 'The signature is not that of our secret: another secret, another layout, or not the supplier.',
  stale: 'It was signed too long ago, or a clock is wrong.',
  missing_signature: 'There was no signature.',
  missing_timestamp: 'There was no time beside the signature.',
  malformed: 'The headers of the signature do not have the form that the dialect describes.',
  timestamp_malformed: 'The time beside the signature cannot be read.',
  unknown_path: 'No webhook of ours has this path.',
  too_large: 'The body was larger than a delivery may be.',
  compressed: 'The body was compressed.',
  retired_webhook: 'It came through a webhook that is retired.',
  no_signature: 'The shop sent no signature.',
  malformed_signature: 'The signature of the shop does not have the form of one.',
  wrong_signature: 'The signature is not that of the secret that the shop has.',
}

export const refusedPage: Page = {
  path: '/deliveries/refused',
  below: '/deliveries',
  show: async (visit) => {
    const isAdmin = visit.caller.role === 'admin'
    const [{ refusedDeliveries: refused }, captures] = await Promise.all([
      visit.status(),
      isAdmin ? visit.call('listCaptures') : undefined,
    ])
    const reasons = Object.entries(refused.reasons)
    return {
      title: 'Refused deliveries',
      main: html`<header class="title"><p class="trail"><a href="/deliveries">Deliveries</a> / refused</p><h1>Refused deliveries</h1>
<p>${
        refused.total === 0
          ? 'Nothing was refused since the service started.'
          : html`${counted(refused.total, 'request was', 'requests were')} refused since the service started, the last one ${refused.lastAt && ago(refused.lastAt, visit.now)}.`
      } <span class="quiet">Nothing of a refused request is stored, and nothing comes of it.</span></p></header>
${section(
  'why-h',
  'Why',
  table({
    none: [
      'Nothing was refused',
      'Requests that are not authentic, or come too late, are counted here by their reason.',
    ],
    caption: 'Refused requests by reason',
    rows: reasons,
    columns: [
      ['Reason', ([reason]) => html`<code>${reason}</code>`],
      ['Requests', ([, total]) => total, 'number'],
      ['What it means', ([reason]) => refusals[reason] ?? ''],
    ],
  }),
  html`<span class="small quiet">since ${clockTag(refused.since, visit.now, 'minutes')}</span>`,
)}
${section('capture-h', 'Look at one', captures ? captureParts(captures, visit.now) : notNow(needsRole('Headers and bodies of refused requests', 'admin', visit)))}`,
    }
  },
  actions: {
    capture: byAdmin(async ({ call }) => {
      await call('startCapture')
      return done(
        'Capturing',
        'The next refused deliveries are kept, at most ten in 15 minutes. They are deleted 15 minutes later.',
      )
    }),
    reveal: byAdmin(async ({ call, form, now }) => {
      const one = await call('viewCapture', { path: { id: form.get('id') } })
      const headers = Object.entries(one.headers).flatMap(([name, values]) =>
        values.map((value) => `${name}: ${value}`),
      )
      return {
        title: 'Refused delivery',
        main: html`<header class="title"><p class="trail"><a href="/deliveries">Deliveries</a> / <a href="/deliveries/refused">refused</a></p><h1>Refused: <code>${one.reason}</code></h1><p>${refusals[one.reason]} <span class="quiet">It came to <code>${one.path}</code> at ${clockTag(one.receivedAt, now)}.</span></p></header>
${notice({ kind: 'held', word: 'Shown this once', text: 'The audit log says that you looked. Leaving the page hides it again.' })}
${section('headers-h', 'Headers', html`<pre tabindex="0">${headers.join('\n')}</pre>`)}
${section('body-h', 'Body', html`<pre tabindex="0">${Buffer.from(one.body, 'base64').toString('utf8')}</pre>`)}`,
      }
    }),
  },
}

const captureParts = ({ open, items }: AnswerOf<'listCaptures'>, now: number): Html => html`<div>${
  open
    ? html`<p>Refused deliveries are being kept until ${clockTag(open.closesAt, now, 'minutes')}, ${open.left} more at most.</p>`
    : act({
        summary: 'Keep the next refused deliveries…',
        to: '/deliveries/refused/capture',
        about: 'Keeps up to ten refused deliveries of the next 15 minutes, with headers and body, for half an hour.',
        effect: {
          Money: 'Nothing is bought, and they stay refused.',
          Record: 'The audit log keeps who started it. Those kept before are deleted.',
        },
        button: 'Keep refused deliveries',
      })
}
${items.map((one) =>
  act({
    summary: `${one.reason}, at ${one.receivedAt.slice(11, 19)}…`,
    to: '/deliveries/refused/reveal',
    about: html`Shows headers and body of a request to <code>${one.path}</code>.`,
    effect: { Record: 'The audit log keeps that you looked, and when.' },
    fields: hidden('id', one.id),
    button: 'Show headers and body',
  }),
)}</div>`
