import { holdLabels, lineLabels, orderLabels, wordOf } from '../domain/labels.ts'
import { orderStates } from '../domain/store-order.ts'
import { plain, sentence } from '../domain/text-layout.ts'
import { claimState, numberOf } from './claims.ts'
import type { Answer } from './client.ts'
import { type Call, type CommandRow, neededReason, REASON, type RecordView, recordText } from './command.ts'
import { orderExport } from './exports.ts'
import { when } from './facts.ts'
import { ago, type Columns, key, number, right, tableOr, time } from './tables.ts'
import { ageOf, cell, instant, joined, money } from './words.ts'

type Order = Answer<'GET /orders/:reference'>
type Line = Order['lines'][number]

const STORE = { '--store <id>': 'its store, where several have that number' }
const REFERENCE = "the store's number of the order"

const orderView: RecordView<Order> = {
  facts: {
    Order: ({ number, reference }) =>
      joined(cell(number ?? reference), number !== null && `reference ${cell(reference)}`),
    Store: 'store',
    State: stateOf,
    Received: when('receivedAt'),
    Cancelled: when('cancelRequestedAt', 'asked '),
    Closed: when('closedAt'),
    'Page of keys': ({ keysPage }, now) =>
      keysPage && (keysPage.withdrawnAt ? `withdrawn ${instant(keysPage.withdrawnAt, now)}` : 'open to the customer'),
  },
  parts: ({ lines, timeline, claims = [] }, call) => [
    tableOr('', lines, lineColumns, call),
    purchasesText(lines, call),
    claims.length === 0 ? '' : tableOr('', claims, claimColumns, call),
    tableOr('', timeline, { AT: time('at'), WHAT: 'what', DETAIL: 'detail' }, call),
  ],
}

const lineColumns: Columns<Line> = {
  LINE: key('id'),
  STATE: ({ state }) => wordOf(lineLabels, state),
  KEYS: right(({ delivered, quantity }) => `${cell(delivered)}/${cell(quantity)}`),
  OPENED: right(({ keysOpened }) => cell(keysOpened.length)),
  SKU: 'sku',
  NAME: 'name',
}

const claimColumns: Columns<NonNullable<Order['claims']>[number]> = {
  CLAIM: numberOf,
  STATE: claimState,
  PURCHASE: 'purchaseId',
  KEY: number('ordinal'),
  NOTE: 'note',
}

/** Writes a row for each purchase. Below the rows it says in full why a purchase waits or failed, which most readers look for. */
function purchasesText(lines: Line[], call: Call): string {
  const rows = lines.flatMap(({ id, purchases }) => purchases.map((purchase) => ({ ...purchase, line: id })))
  const columns: Columns<(typeof rows)[number]> = {
    PURCHASE: key('id'),
    LINE: 'line',
    STATE: 'state',
    QTY: number('quantity'),
    AMOUNT: right(({ amount, currency }) => money(amount, currency)),
    AGE: ago('changedAt'),
  }
  const notes = rows.flatMap((row) => {
    const why = [row.cancelRequestedAt && 'the store cancelled it', whyOf(row)].filter(Boolean).join('; ')
    return why === '' ? [] : [sentence(`${cell(row.id)}: ${why}`, call.width, { lead: '  ', hang: 4 })]
  })
  return tableOr('No purchase: none of the lines is a listing of ours.', rows, columns, call) + notes.join('')
}

export const orders: CommandRow[] = [
  { command: 'orders', about: 'what customers bought: list, show, export, cancel, take, resend' },
  {
    command: 'orders list',
    about: 'store orders, the newest first',
    options: { '--store <id>': 'of this store only', '--state <state>': orderStates.join(', ') },
    call: 'GET /orders',
    filters: ['store', 'state'],
    empty: 'No store order has come in yet.',
    columns: {
      REFERENCE: key('reference'),
      NUMBER: ({ number }) => cell(number ?? '-'),
      STATE: stateOf,
      STORE: 'store',
      AGE: ago('receivedAt'),
      CLOSED: right(({ closedAt }, now) => (closedAt ? `${ageOf(closedAt, now)} ago` : '-')),
    },
  },
  {
    command: 'orders show <reference>',
    about: 'one order: its lines, purchases and timeline',
    args: [REFERENCE],
    options: STORE,
    examples: ['orders show 1001', 'orders show 1001 --json | jq .lines'],
    call: 'GET /orders/:reference',
    filters: ['store'],
    ...orderView,
  },
  orderExport,
  {
    command: 'orders cancel <reference>',
    about: 'cancel what was not sent yet; sent purchases are flagged',
    args: [REFERENCE],
    options: { ...STORE, ...REASON },
    call: 'POST /orders/:reference/cancel',
    filters: ['store'],
    body: ['reason'],
    text: nowText('Cancellation asked'),
  },
  {
    command: 'orders take <reference>',
    about: 'buy a paid order that was left alone, or the units of a line',
    args: ['its number in the shop'],
    options: {
      '--line <id>': 'a line whose later units are to be bought',
      '--store <id>': 'the shop, where there are several',
    },
    help: `
Orders that were placed before a shop was connected, or fulfilled elsewhere, are
left alone, because their customers may have their keys. Look in the shop that
this one has none. With --line, units that came later are bought.`,
    call: 'POST /orders/:reference/take',
    filters: ['store', 'line'],
    text: nowText('Taken'),
  },
  {
    command: 'orders release <reference>',
    about: 'let an order go on that waits for a person in its shop',
    args: ['its number in the shop'],
    options: { '--store <id>': 'the shop, where there are several' },
    help: `
An order waits after money was refunded without naming units, and where the shop
says that less of it is paid than before. Released, it goes on as it is now.`,
    call: 'POST /orders/:reference/release',
    filters: ['store'],
    text: nowText('Released'),
  },
  {
    command: 'orders resend <reference>',
    about: 'have the shop send the customer the same keys again',
    args: [REFERENCE],
    options: { ...STORE, ...REASON },
    call: 'POST /orders/:reference/resend',
    filters: ['store'],
    body: ['reason'],
    text: ({ keys, detail }) => {
      const sent = `The shop has sent the customer ${keys === 1 ? 'the key' : `the ${cell(keys)} keys`} of this order again.`
      return `${detail ?? sent}\n`
    },
  },
  {
    command: 'orders withdraw-keys <reference>',
    about: 'withdraw the page of keys: it opens no key any more',
    args: [REFERENCE],
    options: { ...STORE, ...REASON },
    help: `
Keys that the customer opened stay known to the customer. The page says that it
is withdrawn, and that cannot be undone.`,
    call: 'POST /orders/:reference/keys-page/withdraw',
    filters: ['store'],
    body: (call) => ({ reason: neededReason(call) }),
    text: nowText('Withdrawn'),
  },
]

/** Returns the state of an order. From the request for a cancellation to its end, an open order is `open, cancelling`. */
function stateOf({ state, cancelRequestedAt }: Pick<Order, 'state' | 'cancelRequestedAt'>): string {
  return joined(wordOf(orderLabels, state), cancelRequestedAt !== null && state === 'open' && 'cancelling')
}

function nowText(done: string) {
  return (order: Order, call: Call) =>
    `${done}. The order is ${stateOf(order)}.\n\n${recordText(order, orderView, call)}`
}

/** Says why a purchase waits or has failed; an empty text when neither is so. */
export function whyOf(purchase: Line['purchases'][number]): string {
  const { holdReason, note, failureCode, failureMessage } = purchase
  const hold = holdReason && `held, ${wordOf(holdLabels, holdReason)}`
  const parts = [hold, note, failureCode && `the supplier said ${failureCode}`, failureMessage]
  return plain([...new Set(parts.filter(Boolean))].join('; '))
}
