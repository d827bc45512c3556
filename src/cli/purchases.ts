import type { Command } from 'commander'
import { age, asRow, asRows, cell, instant, money, type Row } from './cell.ts'
import { listCommand } from './list-command.ts'
import { whyOf } from './orders.ts'
import type { Session } from './program.ts'
import { type Call, serviceCommand } from './service-command.ts'
import { details, table } from './table.ts'

/** `purchases`: what we order from the supplier for each line, and the decisions that a person takes on it. */
export function addPurchases(root: Command, session: Session): void {
  const purchases = root.command('purchases').description('our orders with the supplier: list, show, retry, release')

  const list = purchases.command('list').description('purchases, the newest first')
  list.option('--state <state>', 'planned, waiting, sending, unknown, accepted, completed, fulfilled, ...')
  list.addHelpText(
    'after',
    '\nExamples:\n  quayside purchases list --state unknown\n  quayside purchases list --state waiting',
  )
  listCommand(list, session, {
    path: ['purchases'],
    filters: ['state'],
    empty: 'No purchase matches.',
    columns: ({ io }) => [
      { title: 'ID', of: (row) => cell(row.id), keep: true },
      {
        title: 'STATE',
        of: (row) => (row.holdReason ? `${cell(row.state)}, ${cell(row.holdReason)}` : cell(row.state)),
      },
      { title: 'QTY', of: (row) => cell(row.quantity), right: true },
      { title: 'CEILING', of: (row) => money(row.ceiling, row.currency), right: true },
      { title: 'AMOUNT', of: (row) => money(row.amount, row.currency), right: true },
      { title: 'AGE', of: (row) => age(row.since, io.now()), right: true },
    ],
  })

  const show = purchases.command('show').description('one purchase with every attempt and change')
  show.argument('<id>', 'its id')
  serviceCommand(show, session, async (call) => {
    const purchase = asRow(await call.client.get(['purchases', call.args[0] ?? '']))
    call.print(purchase, () => purchaseText(purchase, call))
    return undefined
  })

  const retry = purchases.command('retry').description('buy again what was rejected, failed or cancelled')
  retry.argument('<id>', 'its id')
  serviceCommand(retry, session, async (call) => {
    const id = call.args[0] ?? ''
    const answer = await call.client.post(['purchases', id, 'retry'])
    call.print(answer, () => `Planned again, as a new generation.\nWatch it: npx quayside purchases show ${id}\n`)
    return undefined
  })

  const release = purchases.command('release').description('lift the hold of a purchase; its guards run again')
  release.argument('<id>', 'its id').option('--ceiling <amount>', 'a new ceiling for one unit, such as 12.34')
  release.option('--override-spend-cap', 'it may exceed the spend caps of its order, the hour and the day')
  release.addHelpText('after', '\nExample:\n  quayside purchases release 01k3… --ceiling 12.34')
  serviceCommand(release, session, async (call) => {
    const id = call.args[0] ?? ''
    const ceiling = call.option('ceiling')
    const answer = await call.client.post(['purchases', id, 'release'], {
      ...(ceiling === undefined ? {} : { ceiling }),
      ...(call.flag('overrideSpendCap') ? { overrideSpendCap: true } : {}),
    })
    call.print(answer, () => `Released.\nWatch it: npx quayside purchases show ${id}\n`)
    return undefined
  })
}

function purchaseText(purchase: Row, { io, width }: Call): string {
  const now = io.now()
  const why = whyOf(purchase)
  const pairs: [string, string][] = [
    ['Purchase', cell(purchase.id)],
    ['State', cell(purchase.state)],
    ...(why === undefined ? [] : [['Why', why] satisfies [string, string]]),
    ...(purchase.notBefore ? [['Not before', instant(purchase.notBefore, now)] satisfies [string, string]] : []),
    ['Quantity', `${cell(purchase.quantity)} (part ${cell(purchase.part)}, generation ${cell(purchase.generation)})`],
    ['Ceiling', `${money(purchase.ceiling, purchase.currency)} for one unit`],
    ['Amount', money(purchase.amount, purchase.currency)],
    ['At supplier', cell(purchase.supplierOrderId)],
    ['Reference', cell(purchase.externalOrderId)],
    ['Changed', instant(purchase.changedAt, now)],
    ...(purchase.cancelRequestedAt
      ? [['Cancellation', `asked ${instant(purchase.cancelRequestedAt, now)}`] satisfies [string, string]]
      : []),
    ...nextOf(purchase),
  ]
  return [details(pairs, width), attemptsText(purchase, width), changesText(purchase, width)].join('\n')
}

/** What has to be changed for a release to help. */
const releaseOptions: Record<string, string> = {
  ceiling: ' --ceiling <amount>',
  spend_cap: ' --override-spend-cap',
}

/** The command for what a person can decide here. */
function nextOf({ id, state, holdReason }: Row): [string, string][] {
  const option = releaseOptions[cell(holdReason)] ?? ''
  if (state === 'review') return [['Next', `npx quayside reviews show ${cell(id)}`]]
  if (holdReason) return [['Next', `npx quayside purchases release ${cell(id)}${option}`]]
  const ended = state === 'rejected' || state === 'failed' || state === 'cancelled'
  return ended ? [['Next', `npx quayside purchases retry ${cell(id)}`]] : []
}

const time = (row: Row): string => cell(row.at).slice(0, 19).replace('T', ' ')

function attemptsText(purchase: Row, width: number): string {
  const rows = asRows(purchase.attempts)
  if (rows.length === 0) return 'Nothing was sent to the supplier yet.\n'
  const columns = [
    { title: 'REQUEST AT', of: time, keep: true as const },
    { title: 'KIND', of: (row: Row) => cell(row.kind) },
    { title: 'STAGE', of: (row: Row) => cell(row.stage) },
    { title: 'HTTP', of: (row: Row) => cell(row.status), right: true as const },
    { title: 'CODE', of: (row: Row) => cell(row.code) },
    { title: 'DETAIL', of: (row: Row) => cell(row.detail ?? row.supplierOrderId) },
    { title: 'REQUEST ID', of: (row: Row) => cell(row.requestId) },
  ]
  return table(rows, columns, width)
}

function changesText(purchase: Row, width: number): string {
  const rows = asRows(purchase.transitions)
  if (rows.length === 0) return 'Nothing changed yet.\n'
  const columns = [
    { title: 'CHANGE AT', of: time, keep: true as const },
    { title: 'INPUT', of: (row: Row) => cell(row.input) },
    { title: 'FROM', of: (row: Row) => cell(row.before) },
    { title: 'TO', of: (row: Row) => cell(row.after) },
    { title: 'BY', of: (row: Row) => cell(row.actor) },
    { title: 'DETAIL', of: (row: Row) => cell(row.detail ?? row.row) },
  ]
  return table(rows, columns, width)
}
