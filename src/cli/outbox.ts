import type { Command } from 'commander'
import { age, cell } from './cell.ts'
import { listCommand } from './list-command.ts'
import type { Session } from './program.ts'
import { serviceCommand } from './service-command.ts'

/** `outbox`: what is owed to a store or a person. */
export function addOutbox(root: Command, session: Session): void {
  const outbox = root.command('outbox').description('callbacks and alerts that are owed: list, redeliver')

  const list = outbox.command('list').description('effects, the newest first')
  list.option('--state <state>', 'due, done or dead').option('--kind <kind>', 'callback or alert')
  list.addHelpText('after', '\nExample:\n  quayside outbox list --state dead --kind callback')
  listCommand(list, session, {
    path: ['outbox'],
    filters: ['state', 'kind'],
    empty: 'Nothing in the outbox matches.',
    columns: ({ io }) => [
      { title: 'ID', of: (row) => cell(row.id), keep: true },
      { title: 'STATE', of: (row) => cell(row.state) },
      { title: 'TYPE', of: (row) => cell(row.type) },
      { title: 'TRIES', of: (row) => cell(row.attempts), right: true },
      { title: 'AGE', of: (row) => age(row.createdAt, io.now()), right: true },
      { title: 'ERROR', of: (row) => cell(row.lastError) },
    ],
  })

  const redeliver = outbox.command('redeliver').description('send an effect again, with all its attempts')
  redeliver.argument('<id>', 'its id')
  serviceCommand(redeliver, session, async (call) => {
    const answer = await call.client.post(['outbox', call.args[0] ?? '', 'redeliver'])
    call.print(answer, () => 'Due now.\nSee what became of it: quayside outbox list\n')
    return undefined
  })
}
