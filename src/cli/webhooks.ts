import type { Command } from 'commander'
import { age, asRow, cell } from './cell.ts'
import { listCommand } from './list-command.ts'
import type { Session } from './program.ts'
import { serviceCommand } from './service-command.ts'

/** `webhooks`: where the supplier sends its deliveries. Signing secrets stay with the service. */
export function addWebhooks(root: Command, session: Session): void {
  const webhooks = root.command('webhooks').description('where the supplier sends deliveries: list, create')

  const list = webhooks.command('list').description('webhooks of ours at the supplier')
  listCommand(list, session, {
    path: ['webhooks'],
    whole: true,
    empty: 'No webhook: the service works by polling. `quayside webhooks create` makes one.',
    columns: ({ io }) => [
      { title: 'ID', of: (row) => cell(row.id), keep: true },
      { title: 'URL', of: (row) => cell(row.url) },
      { title: 'AGE', of: (row) => age(row.createdAt, io.now()), right: true },
      { title: 'EVENTS', of: (row) => (Array.isArray(row.events) ? cell(row.events.length) : '-'), right: true },
    ],
  })

  const create = webhooks.command('create').description('create a webhook at the supplier and keep its secret')
  create.option('--url <address>', 'where deliveries go; under the configured publicUrl unless told')
  create.addHelpText(
    'after',
    `
The API has no way to remove a webhook: to rotate a secret, create a second
webhook, then remove the old one in the supplier's own pages. Both are verified
until then. The service itself is found by QUAYSIDE_URL or the configuration.`,
  )
  serviceCommand(create, session, async (call) => {
    const url = call.option('url')
    const webhook = asRow(await call.client.post(['webhooks'], url === undefined ? {} : { url }))
    call.print(
      webhook,
      () => `Created ${cell(webhook.id)}; its secret is kept sealed.\nDeliveries go to ${cell(webhook.url)}\n`,
    )
    return undefined
  })
}
