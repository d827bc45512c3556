import { readText } from '../config/config.ts'
import { printable, wrap } from '../domain/text-layout.ts'
import { type CommandRow, proseWidth } from './command.ts'
import { deliveryExport } from './exports.ts'
import { maybe, when } from './facts.ts'
import { findingsText } from './stores.ts'
import { ago, key, number, tableOr } from './tables.ts'
import { cell, commandLine, instant } from './words.ts'

export const deliveries: CommandRow[] = [
  { command: 'deliveries', about: "the supplier's webhook requests: list, show, export, replay" },
  {
    command: 'deliveries list',
    about: 'deliveries, the newest first',
    options: { '--state <state>': 'stored, applied, ignored, orphan, quarantined, retry or dead' },
    examples: ['deliveries list --state dead'],
    call: 'GET /deliveries',
    filters: ['state'],
    empty: 'No delivery matches. None comes without a public address; `quayside status` counts the refused.',
    columns: {
      ID: key('id'),
      STATE: 'state',
      EVENT: 'event',
      TRIES: number('attempts'),
      AGE: ago('receivedAt'),
      ERROR: 'lastError',
    },
  },
  {
    command: 'deliveries show <id>',
    about: 'one delivery and what became of it',
    options: { '--reveal': 'its body too; takes the role admin, and is written to the audit' },
    call: 'GET /deliveries/:id',
    filters: ['reveal'],
    facts: {
      Delivery: 'id',
      State: 'state',
      Event: 'event',
      'Came by': 'source',
      "Supplier's id": 'deliveryId',
      Order: 'supplierOrderId',
      Purchase: 'purchaseId',
      Signed: when('signedAt'),
      Received: when('receivedAt'),
      Finished: ({ finishedAt }, now) => instant(finishedAt, now),
      Attempts: 'attempts',
      Error: maybe('lastError'),
    },
    parts: ({ body }) => [typeof body === 'string' ? `${printable(body)}\n` : ''],
  },
  deliveryExport,
  {
    command: 'deliveries replay <id>',
    about: 'put a delivery back into the inbox, with a new set of attempts',
    call: 'POST /deliveries/:id/replay',
    text: (_, { args }) => `Back in the inbox.\nSee what became of it: ${commandLine(`deliveries show ${args[0]}`)}\n`,
  },
]

export const outbox: CommandRow[] = [
  { command: 'outbox', about: 'callbacks and alerts that are queued: list, redeliver' },
  {
    command: 'outbox list',
    about: 'callbacks and alerts, the newest first',
    options: {
      '--state <state>': 'due, done or dead',
      '--kind <kind>': 'callback or alert',
      '--store <id>': 'only messages to this store',
    },
    examples: ['outbox list --state dead --kind callback'],
    call: 'GET /outbox',
    filters: ['state', 'kind', 'store'],
    empty: 'Nothing in the outbox matches.',
    columns: {
      ID: key('id'),
      STATE: 'state',
      TYPE: 'type',
      TRIES: number('attempts'),
      AGE: ago('createdAt'),
      ERROR: 'lastError',
    },
  },
  {
    command: 'outbox redeliver <id>',
    about: 'redeliver a callback or an alert, with a new set of attempts',
    call: 'POST /outbox/:id/redeliver',
    text: () => `Due now.\nSee what became of it: ${commandLine('outbox list')}\n`,
  },
]

const WEBHOOK_URL = { '--url <address>': 'where deliveries go (default: under the configured publicUrl)' }

/** The commands for webhooks, to which the supplier sends its deliveries. Signing secrets stay with the service. */
export const webhooks: CommandRow[] = [
  { command: 'webhooks', about: 'where the supplier sends deliveries: list, create, add, rotate, retire, check, test' },
  {
    command: 'webhooks list',
    about: 'webhooks of ours at the supplier',
    call: 'GET /webhooks',
    page: null,
    empty: `No webhook: the service works by polling. \`${commandLine('webhooks create')}\` makes one.`,
    columns: {
      ID: key('id'),
      URL: 'url',
      STATE: 'state',
      AGE: ago('createdAt'),
      RECEIVED: number('received'),
      LAST: ago('lastReceivedAt'),
    },
  },
  {
    command: 'webhooks create',
    about: 'create a webhook at the supplier and keep its secret',
    options: WEBHOOK_URL,
    help: '\nThe service itself is found by QUAYSIDE_URL or the configuration.',
    call: 'POST /webhooks',
    body: ['url'],
    text: (webhook) =>
      `Created ${cell(webhook.id)}; its secret is kept sealed.\nDeliveries go to ${cell(webhook.url)}\n`,
  },
  {
    command: 'webhooks add',
    about: "keep the secret of a webhook made in the supplier's dashboard",
    options: {
      '--secret-file <file>': { about: 'file that holds its signing secret', required: true },
      ...WEBHOOK_URL,
    },
    help: `
For a supplier whose webhooks people make in its dashboard. Each has an address
of its own, which is printed: enter it there. A second one is for a rotation;
both are valid until the old one is retired here.`,
    examples: ['webhooks add --secret-file secret.txt'],
    call: 'POST /webhooks/add',
    body: ({ option, values }) => ({
      ...values('url'),
      secret: readText(option('secretFile') ?? '').replace(/\r?\n$/, ''),
    }),
    text: (webhook) =>
      `Added ${cell(webhook.id)}; its secret is kept sealed.\nIts address in the dashboard is ${cell(webhook.url)}\n`,
  },
  {
    command: 'webhooks rotate',
    about: 'take a new signing secret into use; the old one stays valid',
    options: WEBHOOK_URL,
    help: `
The API has no way to remove a webhook. This creates a second one, with a
secret and a path of its own; both are valid from then on. Remove the old one
in the supplier's own pages, then retire it here. The service itself is found
by QUAYSIDE_URL or the configuration.`,
    call: 'POST /webhooks/rotate',
    body: ['url'],
    text({ webhook, replaces }, { width }) {
      const lines = [
        ...wrap(`Created ${cell(webhook.id)}; deliveries go to ${cell(webhook.url)}`, width),
        ...wrap(`Still valid beside it: ${replaces.map(cell).join(', ')}`, width),
        `Next, once \`${commandLine('webhooks list')}\` shows deliveries through the new one:`,
        ...replaces.flatMap((id) => [
          `  remove ${cell(id)} in the pages of the supplier`,
          `  ${commandLine(`webhooks retire ${cell(id)}`)}`,
        ]),
      ]
      return `${lines.join('\n')}\n`
    },
  },
  {
    command: 'webhooks retire <id>',
    about: 'take the secret of a replaced webhook out of use',
    args: [`as \`${commandLine('webhooks list')}\` shows it`],
    help: `
What the supplier still sends through it is answered 200 and counted, and has
no effect.`,
    call: 'POST /webhooks/:id/retire',
    text: (webhook) => `Retired ${cell(webhook.id)}.\nWhat still comes through it has no effect.\n`,
  },
  {
    command: 'webhooks check',
    about: "compare the supplier's webhooks with ours, and fix what differs",
    help: `
The service does this by itself at its start and every night. A webhook that
leads here under a secret that is not held is replaced, once a day at most.`,
    call: 'POST /webhooks/check',
    text({ unheld, gone }) {
      const lines = [
        ...unheld.flatMap(({ id, url, replacedBy }) => [
          `${cell(id)} leads here under a secret that is not held`,
          `  at ${cell(url)}`,
          `  ${replacedBy === null ? 'not replaced yet' : `replaced by ${cell(replacedBy)}`}; remove it at the supplier`,
        ]),
        ...gone.map((id) => `${cell(id)} is gone at the supplier`),
        ...(gone.length > 0 ? [`  \`${commandLine('webhooks create')}\` makes another`] : []),
      ]
      const fine = "The supplier's webhooks are those whose secrets are held."
      return `${lines.length === 0 ? fine : lines.join('\n')}\n`
    },
  },
  {
    command: 'webhooks test [id]',
    about: 'send a signed delivery to its public address, and see it arrive',
    args: [`as \`${commandLine('webhooks list')}\` shows it; the newest, if it is left out`],
    options: WEBHOOK_URL,
    help: `
It is signed with the secret that is held, and comes from the service, over the
name, the TLS and the proxy that the supplier uses. It has no effect and is
stored nowhere. The exit code is 1 where it does not arrive.`,
    call: 'POST /webhooks/test',
    body: ({ args, values }) => ({ ...values('url'), ...(args[0] !== undefined && { webhook: args[0] }) }),
    fails: ({ healthy }) => !healthy,
    text: ({ findings }, { io }) => findingsText(findings, proseWidth(io)),
  },
]

export const captures: CommandRow[] = [
  { command: 'dialect capture', about: 'refused deliveries to detect from: start, list, show' },
  {
    command: 'dialect capture start',
    about: 'keep the next refused deliveries: at most 10, for 15 minutes',
    help: `
For a webhook whose deliveries are all refused, when it is not known how they
are signed. Takes the role admin; the audit records who started it and who
looked.`,
    examples: ['dialect capture start', 'dialect capture show 01kb3q8z4x9r2m5t7v0w1y3a6c > delivery.json'],
    call: 'POST /captures',
    text: (state, { io }) => {
      const now = io.now()
      return (
        `Taking up to ${cell(state.left)} refused deliveries until ${instant(state.closesAt, now)}.\n` +
        `They are deleted at ${instant(state.keptUntil, now)}.\nSee them: ${commandLine('dialect capture list')}\n`
      )
    },
  },
  {
    command: 'dialect capture list',
    about: 'what is kept',
    call: 'GET /captures',
    text: ({ items, open }, call) => {
      const columns = { ID: key('id'), PATH: 'path', 'REFUSED FOR': 'reason', AGE: ago('receivedAt') } as const
      const state = open
        ? `Taking up to ${cell(open.left)} more until ${instant(open.closesAt, call.io.now())}.\n`
        : `No capture goes on. \`${commandLine('dialect capture start')}\` begins one.\n`
      return tableOr('Nothing is kept.', items, columns, call) + state
    },
  },
  {
    command: 'dialect capture show <id>',
    about: 'one as it came, for a file; is written to the audit',
    call: 'GET /captures/:id',
    // The output is JSON with and without `--json`: a person saves it for `dialect detect`.
    text: (delivery) => `${JSON.stringify(delivery, undefined, 2)}\n`,
  },
]
