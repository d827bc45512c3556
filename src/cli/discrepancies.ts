import type { Command } from 'commander'
import { age, cell } from './cell.ts'
import { listCommand } from './list-command.ts'
import type { Session } from './program.ts'

/** `discrepancies`: where our purchases and the supplier's orders differ. */
export function addDiscrepancies(root: Command, session: Session): void {
  const discrepancies = root
    .command('discrepancies')
    .description("where our purchases and the supplier's orders differ")
  listCommand(discrepancies.command('list').description('discrepancies, the newest first'), session, {
    path: ['discrepancies'],
    empty: 'None is on record. `quayside status` says when a sweep last compared all orders.',
    columns: ({ io }) => [
      { title: 'KIND', of: (row) => cell(row.kind), keep: true },
      { title: 'SUBJECT', of: (row) => cell(row.subject), keep: true },
      { title: 'AGE', of: (row) => age(row.foundAt, io.now()), right: true },
      { title: 'DETAIL', of: (row) => cell(row.detail) },
    ],
  })
}
