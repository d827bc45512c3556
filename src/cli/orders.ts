import { holdLabels, lineLabels, orderLabels, wordOf } from '../domain/labels.ts'
import { orderStates } from '../domain/store-order.ts'
import { plain, sentence } from '../domain/text-layout.ts'
import type { Call, CommandRow } from './command.ts'
import { orderExport, REASON } from './exports.ts'
import {
  ageOf,
  ago,
  asRows,
  cell,
  details,
  instant,
  key,
  money,
  number,
  type Row,
  right,
  table,
  time,
} from './output.ts'

const STORE = { '--store <id>': 'its store, where several have that number' }
/** Of what is done without a reason, too. */
export const reasonOf = ({ option }: Pick<Call, 'option'>): object => ({ reason: option('reason') })
const REFERENCE = "the store's number of the order"

/** What customers bought, and how far it is. */
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
      STATE: stateOf,
      STORE: 'store',
      AGE: ago('receivedAt'),
      CLOSED: right((row, now) => (row.closedAt ? `${ageOf(row.closedAt, now)} ago` : '-')),
    },
  },
  {
    command: 'orders show <reference>',
    about: 'one order: its lines, purchases and timeline',
    args: [REFERENCE],
    options: STORE,
    help: '\nExamples:\n  quayside orders show 1001\n  quayside orders show 1001 --json | jq .lines',
    call: 'GET /orders/{reference}',
    filters: ['store'],
    text: orderText,
  },
  orderExport,
  {
    command: 'orders cancel <reference>',
    about: 'cancel what was not sent yet; sent purchases are flagged',
    args: [REFERENCE],
    options: { ...STORE, ...REASON },
    call: 'POST /orders/{reference}/cancel',
    filters: ['store'],
    body: reasonOf,
    text: (order, call) => `Cancellation asked. The order is ${stateOf(order)}.\n\n${orderText(order, call)}`,
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
    call: 'POST /orders/{reference}/take',
    filters: ['store', 'line'],
    text: (order, call) => `Taken. The order is ${stateOf(order)}.\n\n${orderText(order, call)}`,
  },
  {
    command: 'orders release <reference>',
    about: 'let an order go on that waits for a person in its shop',
    args: ['its number in the shop'],
    options: { '--store <id>': 'the shop, where there are several' },
    help: `
An order waits after money was refunded without naming units, and where the shop
says that less of it is paid than before. Released, it goes on as it is now.`,
    call: 'POST /orders/{reference}/release',
    filters: ['store'],
    text: (order, call) => `Released. The order is ${stateOf(order)}.\n\n${orderText(order, call)}`,
  },
  {
    command: 'orders resend <reference>',
    about: 'have the shop send the customer the same keys again',
    args: [REFERENCE],
    options: { ...STORE, ...REASON },
    call: 'POST /orders/{reference}/resend',
    filters: ['store'],
    body: reasonOf,
    text: ({ keys }) =>
      `The shop has sent the customer ${keys === 1 ? 'the key' : `the ${cell(keys)} keys`} of this order again.\n`,
  },
]

/** `open, cancelling` until the cancellation has run its course. */
function stateOf(order: Row): string {
  const state = wordOf(orderLabels, cell(order.state))
  return order.cancelRequestedAt && order.state === 'open' ? `${state}, cancelling` : state
}

function orderText(order: Row, call: Call): string {
  const now = call.io.now()
  const lines = asRows(order.lines)
  const head = details(
    [
      ['Order', cell(order.reference)],
      ['Store', cell(order.store)],
      ['State', stateOf(order)],
      ['Received', instant(order.receivedAt, now)],
      Boolean(order.cancelRequestedAt) && ['Cancelled', `asked ${instant(order.cancelRequestedAt, now)}`],
      Boolean(order.closedAt) && ['Closed', instant(order.closedAt, now)],
    ],
    call.width,
  )
  return [head, linesText(lines, call), purchasesText(lines, call), timelineText(order, call)].join('\n')
}

function linesText(lines: Row[], { width }: Call): string {
  const columns = {
    LINE: key('id'),
    STATE: (row: Row) => wordOf(lineLabels, cell(row.state)),
    KEYS: right((row) => `${cell(row.delivered)}/${cell(row.quantity)}`),
    SKU: 'sku',
    NAME: 'name',
  }
  return table(lines, columns, width)
}

/** Each purchase in a row, and below it why it stands still or failed, in full: that is what a person came to read. */
function purchasesText(lines: Row[], { width, io }: Call): string {
  const rows = lines.flatMap((line) => asRows(line.purchases).map((purchase): Row => ({ ...purchase, line: line.id })))
  if (rows.length === 0) return 'No purchase: none of the lines is a listing of ours.\n'
  const columns = {
    PURCHASE: key('id'),
    LINE: 'line',
    STATE: 'state',
    QTY: number('quantity'),
    AMOUNT: right((row) => money(row.amount, row.currency)),
    AGE: ago('changedAt'),
  }
  const notes = rows.flatMap((row) => {
    const why = [row.cancelRequestedAt ? 'the store cancelled it' : undefined, whyOf(row)].filter(Boolean).join('; ')
    return why === '' ? [] : [sentence(`${cell(row.id)}: ${why}`, width, { lead: '  ', hang: 4 })]
  })
  return table(rows, columns, width, io.now()) + notes.join('')
}

/** Why a purchase is where it is; undefined when nothing is in its way. */
export function whyOf(purchase: Row): string | undefined {
  const hold = typeof purchase.holdReason === 'string' ? `held, ${wordOf(holdLabels, purchase.holdReason)}` : undefined
  const failure = typeof purchase.failureCode === 'string' ? `the supplier said ${purchase.failureCode}` : undefined
  const parts = [hold, purchase.note, failure, purchase.failureMessage]
  const said = parts.filter((part): part is string => typeof part === 'string' && part !== '')
  return said.length === 0 ? undefined : plain([...new Set(said)].join('; '))
}

function timelineText(order: Row, { width }: Call): string {
  return table(asRows(order.timeline), { AT: time('at'), WHAT: 'what', DETAIL: 'detail' }, width)
}
