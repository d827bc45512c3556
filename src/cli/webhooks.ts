import type { Command } from 'commander'
import { age, asRow, asRows, cell } from './cell.ts'
import { listCommand } from './list-command.ts'
import type { Session } from './program.ts'
import { serviceCommand } from './service-command.ts'
import { wrap } from './table.ts'

/** `webhooks`: where the supplier sends its deliveries. Signing secrets stay with the service. */
export function addWebhooks(root: Command, session: Session): void {
  const webhooks = root
    .command('webhooks')
    .description('where the supplier sends deliveries: list, create, rotate, retire, check')

  const list = webhooks.command('list').description('webhooks of ours at the supplier')
  listCommand(list, session, {
    path: ['webhooks'],
    whole: true,
    empty: 'No webhook: the service works by polling. `quayside webhooks create` makes one.',
    columns: ({ io }) => [
      { title: 'ID', of: (row) => cell(row.id), keep: true },
      { title: 'URL', of: (row) => cell(row.url) },
      { title: 'STATE', of: (row) => cell(row.state) },
      { title: 'AGE', of: (row) => age(row.createdAt, io.now()), right: true },
      { title: 'RECEIVED', of: (row) => cell(row.received), right: true },
      { title: 'LAST', of: (row) => age(row.lastReceivedAt, io.now()), right: true },
    ],
  })

  const create = webhooks.command('create').description('create a webhook at the supplier and keep its secret')
  create.option('--url <address>', 'where deliveries go; under the configured publicUrl unless told')
  create.addHelpText('after', '\nThe service itself is found by QUAYSIDE_URL or the configuration.')
  serviceCommand(create, session, async (call) => {
    const url = call.option('url')
    const webhook = asRow(await call.client.post(['webhooks'], url === undefined ? {} : { url }))
    call.print(
      webhook,
      () => `Created ${cell(webhook.id)}; its secret is kept sealed.\nDeliveries go to ${cell(webhook.url)}\n`,
    )
    return undefined
  })
  addRotate(webhooks, session)
  addCheck(webhooks, session)
}

function addRotate(webhooks: Command, session: Session): void {
  const rotate = webhooks.command('rotate').description('take a new signing secret into use; the old one stays valid')
  rotate.option('--url <address>', 'where deliveries go; under the configured publicUrl unless told')
  rotate.addHelpText(
    'after',
    `
The API has no way to remove a webhook. This creates a second one, with a
secret and a path of its own; both are valid from then on. Remove the old one
in the supplier's own pages, then retire it here. The service itself is found
by QUAYSIDE_URL or the configuration.`,
  )
  serviceCommand(rotate, session, async (call) => {
    const url = call.option('url')
    const rotated = asRow(await call.client.post(['webhooks', 'rotate'], url === undefined ? {} : { url }))
    call.print(rotated, () => {
      const webhook = asRow(rotated.webhook)
      const old = Array.isArray(rotated.replaces) ? rotated.replaces.map(cell) : []
      const told = [
        ...wrap(`Created ${cell(webhook.id)}; deliveries go to ${cell(webhook.url)}`, call.width),
        ...wrap(`Still valid beside it: ${old.join(', ')}`, call.width),
        'Next, once `quayside webhooks list` shows deliveries through the new one:',
        ...old.flatMap((id) => [`  remove ${id} in the pages of the supplier`, `  quayside webhooks retire ${id}`]),
      ]
      return `${told.join('\n')}\n`
    })
    return undefined
  })

  const retire = webhooks.command('retire').description('take the secret of a replaced webhook out of use')
  retire.argument('<id>', 'as `webhooks list` shows it')
  retire.addHelpText(
    'after',
    `
What the supplier still sends through it is answered 200 and counted, and has
no effect.`,
  )
  serviceCommand(retire, session, async (call) => {
    const webhook = asRow(await call.client.post(['webhooks', call.args[0] ?? '', 'retire'], {}))
    call.print(webhook, () => `Retired ${cell(webhook.id)}.\nWhat still comes through it has no effect.\n`)
    return undefined
  })
}

function addCheck(webhooks: Command, session: Session): void {
  const check = webhooks
    .command('check')
    .description("compare the supplier's webhooks with ours, and mend what differs")
  check.addHelpText(
    'after',
    `
The service does this by itself at its start and every night. A webhook that
leads here under a secret that is not held is replaced, once a day at most.`,
  )
  serviceCommand(check, session, async (call) => {
    const found = asRow(await call.client.post(['webhooks', 'check'], {}))
    call.print(found, () => {
      const unheld = asRows(found.unheld).flatMap(({ id, url, replacedBy }) => [
        `${cell(id)} leads here under a secret that is not held`,
        `  at ${cell(url)}`,
        `  ${typeof replacedBy === 'string' ? `replaced by ${cell(replacedBy)}` : 'not replaced yet'}; remove it at the supplier`,
      ])
      const gone = Array.isArray(found.gone) ? found.gone : []
      const lines = [...unheld, ...gone.map((id) => `${cell(id)} is gone at the supplier`)]
      if (gone.length > 0) lines.push('  `quayside webhooks create` makes another')
      if (lines.length === 0) lines.push("The supplier's webhooks are those whose secrets are held.")
      return `${lines.join('\n')}\n`
    })
    return undefined
  })
}
