import type { Command } from 'commander'
import { type Call, listCommand, serviceCommand } from './command.ts'
import { age, asRow, asRows, cell, details, instant, money, plain, type Row, sentence, table } from './output.ts'
import type { Session } from './program.ts'

/** `orders`: what customers bought, and how far it is. */
export function addOrders(root: Command, session: Session): void {
  const orders = root.command('orders').description('what customers bought: list, show, cancel')

  const list = orders.command('list').description('store orders, the newest first')
  list.option('--store <id>', 'of this store only')
  listCommand(list, session, {
    path: ['orders'],
    filters: ['store'],
    empty: 'No store order has come in yet.',
    columns: ({ io }) => [
      { title: 'REFERENCE', of: (row) => cell(row.reference), keep: true },
      { title: 'STATE', of: (row) => stateOf(row) },
      { title: 'STORE', of: (row) => cell(row.store) },
      { title: 'AGE', of: (row) => age(row.receivedAt, io.now()), right: true },
      { title: 'CLOSED', of: (row) => (row.closedAt ? `${age(row.closedAt, io.now())} ago` : '-'), right: true },
    ],
  })

  const show = orders.command('show').description('one order: its lines, purchases and timeline')
  show.argument('<reference>', "the store's number of the order").option('--store <id>', STORE)
  show.addHelpText('after', '\nExamples:\n  quayside orders show 1001\n  quayside orders show 1001 --json | jq .lines')
  serviceCommand(show, session, async (call) => {
    const order = asRow(await call.client.get(['orders', call.args[0] ?? ''], { store: call.option('store') }))
    call.print(order, () => orderText(order, call))
    return undefined
  })

  const cancel = orders.command('cancel').description('cancel what was not sent yet; sent purchases are flagged')
  cancel.argument('<reference>', "the store's number of the order").option('--store <id>', STORE)
  serviceCommand(cancel, session, async (call) => {
    const path = ['orders', call.args[0] ?? '', 'cancel']
    const order = asRow(await call.client.post(path, undefined, { store: call.option('store') }))
    call.print(order, () => `Cancellation asked. The order is ${stateOf(order)}.\n\n${orderText(order, call)}`)
    return undefined
  })
}

const STORE = 'its store, where several have that number'

/** `open, cancelling` until the cancellation has run its course. */
function stateOf(order: Row): string {
  const state = cell(order.state).replaceAll('_', ' ')
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
      ...(order.cancelRequestedAt
        ? [['Cancelled', `asked ${instant(order.cancelRequestedAt, now)}`] satisfies [string, string]]
        : []),
      ...(order.closedAt ? [['Closed', instant(order.closedAt, now)] satisfies [string, string]] : []),
    ],
    call.width,
  )
  return [head, linesText(lines, call), purchasesText(lines, call), timelineText(order, call)].join('\n')
}

function linesText(lines: Row[], { width }: Call): string {
  const columns = [
    { title: 'LINE', of: (row: Row) => cell(row.id), keep: true as const },
    { title: 'STATE', of: (row: Row) => cell(row.state).replaceAll('_', ' ') },
    { title: 'KEYS', of: (row: Row) => `${cell(row.delivered)}/${cell(row.quantity)}`, right: true as const },
    { title: 'SKU', of: (row: Row) => cell(row.sku) },
    { title: 'NAME', of: (row: Row) => cell(row.name) },
  ]
  return table(lines, columns, width)
}

/** Each purchase in a row, and below it why it stands still or failed, in full: that is what a person came to read. */
function purchasesText(lines: Row[], { width, io }: Call): string {
  const rows = lines.flatMap((line) => asRows(line.purchases).map((purchase): Row => ({ ...purchase, line: line.id })))
  if (rows.length === 0) return 'No purchase: none of the lines is a listing of ours.\n'
  const columns = [
    { title: 'PURCHASE', of: (row: Row) => cell(row.id), keep: true as const },
    { title: 'LINE', of: (row: Row) => cell(row.line) },
    { title: 'STATE', of: (row: Row) => cell(row.state) },
    { title: 'QTY', of: (row: Row) => cell(row.quantity), right: true as const },
    { title: 'AMOUNT', of: (row: Row) => money(row.amount, row.currency), right: true as const },
    { title: 'AGE', of: (row: Row) => age(row.changedAt, io.now()), right: true as const },
  ]
  const notes = rows.flatMap((row) => {
    const why = [row.cancelRequestedAt ? 'the store cancelled it' : undefined, whyOf(row)].filter(Boolean).join('; ')
    return why === '' ? [] : [sentence(`${cell(row.id)}: ${why}`, width, { lead: '  ', hang: 4 })]
  })
  return table(rows, columns, width) + notes.join('')
}

/** Why a purchase is where it is; undefined when nothing is in its way. */
export function whyOf(purchase: Row): string | undefined {
  const hold = typeof purchase.holdReason === 'string' ? `held, ${purchase.holdReason.replaceAll('_', ' ')}` : undefined
  const failure = typeof purchase.failureCode === 'string' ? `the supplier said ${purchase.failureCode}` : undefined
  const parts = [hold, purchase.note, failure, purchase.failureMessage]
  const said = parts.filter((part): part is string => typeof part === 'string' && part !== '')
  return said.length === 0 ? undefined : plain([...new Set(said)].join('; '))
}

function timelineText(order: Row, { width }: Call): string {
  const columns = [
    { title: 'AT', of: (row: Row) => cell(row.at).slice(0, 19).replace('T', ' '), keep: true as const },
    { title: 'WHAT', of: (row: Row) => cell(row.what) },
    { title: 'DETAIL', of: (row: Row) => cell(row.detail) },
  ]
  return table(asRows(order.timeline), columns, width)
}
