import type { Command } from 'commander'
import { asRow, asRows, cell, instant, money, type Row } from './cell.ts'
import type { Session } from './program.ts'
import { type Call, serviceCommand } from './service-command.ts'
import { details, table, wrap } from './table.ts'

/** `balance`: the money at the supplier and what explains it. */
export function addBalance(root: Command, session: Session): void {
  const balance = root.command('balance').description('the balance at the supplier and what explains it')
  balance.option('--limit <count>', 'how many movements, 1 to 200; 50 unless told')
  balance.option('--before <id>', 'go on after the last id of the page before')
  serviceCommand(balance, session, async (call) => {
    const query = { limit: call.option('limit'), before: call.option('before') }
    const answer = asRow(await call.client.get(['balance'], query))
    call.print(answer, () => balanceText(answer, call))
    return undefined
  })
}

function balanceText(answer: Row, { io, width }: Call): string {
  const now = io.now()
  const [reading, account] = [asRow(answer.balance), asRow(answer.account)]
  if (answer.balance === null) return 'Not read yet.\n'
  const text = (amount: unknown) => money(amount, reading.currency)
  const read: [string, string] = ['Balance', `${text(reading.amount)}, ${instant(reading.readAt, now)}`]
  if (answer.account === null) return details([read], width)
  const pairs: [string, string][] = [
    read,
    ['Explained', `${text(account.expected)}, ${instant(account.explainedAt, now)}`],
    ['  at the start', `${text(account.start)}, ${instant(account.startedAt, now)}`],
    ['  - charges', text(account.charges)],
    ['  + refunds', text(account.refunds)],
    ['  + credits', `${text(account.credits)}: top-ups, cashback, whatever else rose`],
    ['  - unexplained', text(account.unexplained)],
    ['Seen once', Number(account.pending) === 0 ? 'nothing' : `${text(account.pending)}, not believed yet`],
    ['Owed back', `${text(account.owedBack)} of orders that failed`],
  ]
  const rows = asRows(answer.items)
  const columns = [
    { title: 'AT', of: (row: Row) => cell(row.at).slice(0, 19).replace('T', ' '), keep: true as const },
    { title: 'WHAT', of: (row: Row) => cell(row.kind) },
    { title: 'AMOUNT', of: (row: Row) => money(row.amount, reading.currency), right: true as const },
  ]
  const more = typeof answer.next === 'string' ? `There is more: --before ${answer.next}\n` : ''
  const moved = rows.length === 0 ? `${wrap('Nothing moved yet.', width).join('\n')}\n` : table(rows, columns, width)
  return `${details(pairs, width)}\n${moved}${more}`
}
