import type { Command } from 'commander'
import { listCommand, serviceCommand } from './command.ts'
import { age, asRow, asRows, cell, details, instant, wrap } from './output.ts'
import type { Session } from './program.ts'

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
