import type { Command } from 'commander'
import { age, asRow, cell, instant } from './cell.ts'
import { listCommand } from './list-command.ts'
import type { Session } from './program.ts'
import { serviceCommand } from './service-command.ts'
import { details } from './table.ts'

/** `deliveries`: the signed webhook requests that the supplier sent, as received. */
export function addDeliveries(root: Command, session: Session): void {
  const deliveries = root.command('deliveries').description("the supplier's webhook requests: list, show, replay")

  const list = deliveries.command('list').description('deliveries, the newest first')
  list.option('--state <state>', 'stored, applied, ignored, orphan, quarantined, retry or dead')
  list.addHelpText('after', '\nExample:\n  quayside deliveries list --state dead')
  listCommand(list, session, {
    path: ['deliveries'],
    filters: ['state'],
    empty: 'No delivery matches. Without a public address the service works by polling, and none will come.',
    columns: ({ io }) => [
      { title: 'ID', of: (row) => cell(row.id), keep: true },
      { title: 'STATE', of: (row) => cell(row.state) },
      { title: 'EVENT', of: (row) => cell(row.event) },
      { title: 'TRIES', of: (row) => cell(row.attempts), right: true },
      { title: 'AGE', of: (row) => age(row.receivedAt, io.now()), right: true },
      { title: 'ERROR', of: (row) => cell(row.lastError) },
    ],
  })

  const show = deliveries.command('show').description('one delivery and what became of it')
  show.argument('<id>', 'its id')
  show.option('--reveal', 'its body too; takes the role admin, and is written to the audit')
  serviceCommand(show, session, async (call) => {
    const query = call.flag('reveal') ? { reveal: true } : {}
    const delivery = asRow(await call.client.get(['deliveries', call.args[0] ?? ''], query))
    const now = call.io.now()
    call.print(delivery, () => {
      const pairs: [string, string][] = [
        ['Delivery', cell(delivery.id)],
        ['State', cell(delivery.state)],
        ['Event', cell(delivery.event)],
        ['Came by', cell(delivery.source)],
        ["Supplier's id", cell(delivery.deliveryId)],
        ['Order', cell(delivery.supplierOrderId)],
        ['Purchase', cell(delivery.purchaseId)],
        ['Signed', instant(delivery.signedAt, now)],
        ['Received', instant(delivery.receivedAt, now)],
        ['Finished', instant(delivery.finishedAt, now)],
        ['Attempts', cell(delivery.attempts)],
        ...(delivery.lastError ? [['Error', cell(delivery.lastError)] satisfies [string, string]] : []),
      ]
      const body = typeof delivery.body === 'string' ? `\n${printable(delivery.body)}\n` : ''
      return details(pairs, call.width) + body
    })
    return undefined
  })

  const replay = deliveries.command('replay').description('put a delivery back into the inbox, with all its attempts')
  replay.argument('<id>', 'its id')
  serviceCommand(replay, session, async (call) => {
    const id = call.args[0] ?? ''
    const answer = await call.client.post(['deliveries', id, 'replay'])
    call.print(answer, () => `Back in the inbox.\nSee what became of it: quayside deliveries show ${id}\n`)
    return undefined
  })
}

/** A body as it came, line ends and tabs kept, and nothing in it that a terminal would obey. */
const printable = (body: string): string => body.replaceAll(/(?![\n\t])\p{C}/gu, '\ufffd')
