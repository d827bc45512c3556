/** Who did what: every action of people and stores, newest first. */

import { commonTimes } from '../domain/figures.ts'
import { type Html, html } from '../domain/html.ts'
import { decisionLabels } from '../domain/labels.ts'
import type { ItemOf } from '../http/api/table.ts'
import { filterField } from './forms.ts'
import { listPage, type Seen } from './list-page.ts'
import { facts, inARow, section } from './lists.ts'
import { ago, clockTag } from './words.ts'

/** Every action that the audit knows, in words that follow a name: here, and in the timeline of an order. */
export const auditWords: Record<string, string> = {
  'alert.acknowledge': 'looks after an alert',
  'alert.mute': 'muted an alert',
  'alert.test': 'tried the channels of alerts',
  'alert.unmute': 'ended the muting of an alert',
  backup: 'made a backup',
  'capture.reveal': 'looked at a refused delivery',
  'capture.start': 'kept refused deliveries',
  'claim.adopted': 'gave the new key of the supplier for one that does not work',
  'claim.bought': 'bought again in place of a key that does not work',
  'claim.raise': 'raised a claim about a key',
  'claim.refused': 'refused a claim about a key',
  'console.end_session': 'ended a session of the console',
  'console.link': 'made a link to sign in',
  'console.remove_person': 'removed a person',
  'console.sign_in': 'signed in',
  'console.sign_out': 'signed out',
  'database.move': 'moved the database to another server',
  'delivery.export': 'exported deliveries',
  'delivery.replay': 'replayed a delivery',
  'delivery.reveal': 'revealed bodies of deliveries',
  freeze: 'froze buying',
  'keys.rotate': 'rotated the key-encryption key',
  'listing.ignore': 'ignored a listing',
  'listing.link': 'linked a listing',
  'listing.release': 'released a held price',
  'listing.retry': 'had a listing pushed again',
  'listing.unignore': 'took a listing up again',
  'listing.unlink': 'unlinked a listing',
  'money.export': 'exported money',
  'order.cancel': 'cancelled what was not bought',
  'order.export': 'exported orders',
  'order.resend': 'had the keys sent to the customer again',
  'order.reveal': 'revealed licence keys',
  'order.take': 'took an order by hand',
  'order.uncancel': 'took a cancellation back',
  'order.withdraw_keys': 'withdrew a page of keys',
  'outbox.redeliver': 'had an update sent again',
  'purchase.check': 'had a purchase tried or looked at',
  'purchase.release': 'released a held purchase',
  'purchase.retry': 'had a part bought again',
  ...Object.fromEntries(
    Object.entries(decisionLabels).map(([decision, { said }]) => [`purchase.${decision}`, `decided: ${said}`]),
  ),
  restore: 'restored a backup',
  'restore.reattached': 'reattached orders after a restore',
  'store.confirm_mail': 'confirmed the mail of an order',
  'store.remove': 'removed a store',
  'store.rotate_secret': 'rotated a callback secret',
  'store.trigger': 'sent an example callback',
  'token.create': 'created a token',
  'token.revoke': 'revoked a token',
  unfreeze: 'let buying go on',
  'webhook.add': 'added a webhook',
  'webhook.create': 'created a webhook',
  'webhook.retire': 'retired a webhook',
  'webhook.test': 'tested a webhook',
}

export const auditPage = listPage({
  path: '/audit',
  navigation: { group: 'This installation', label: 'Audit log' },
  operation: 'listAudit',
  nouns: ['entry', 'entries'],
  filters: ['actor', 'action', 'subject'],
  times: 'days',
  headline: (seen) => html`${headline(seen)} <span class="quiet">Entries are added and never changed.</span>`,
  above: async ({ visit, isFiltered, now }) => {
    const { items } = isFiltered ? { items: [] } : await visit.call('listActors')
    const shown = items.slice(0, ACTORS_SHOWN).map(({ name, lastAt }) => [name, actorDays(name, lastAt, now)] as const)
    return shown.length > 0 && section('who-h', 'Who did something last', facts(shown))
  },
  fields: ({ query, items }) =>
    html`${filterField('Actor', 'actor', query.get('actor') ?? '', [...new Set(items.map((entry) => splitActor(entry).name))])}${filterField('Action', 'action', query.get('action') ?? '', Object.keys(auditWords))}${filterField('Subject', 'subject', query.get('subject') ?? '')}`,
  heading: ({ isFiltered }) => ['Newest first', isFiltered && html`<a href="/audit">Show everything</a>`],
  none: ['Nothing was done yet', 'Whatever a person or a store has done through Quayside stands here.'],
  noMatch: ['No entry matches', 'An actor is a name as it stands here, a subject an id or a word such as buying.'],
  caption: 'Audit log',
  columns: ({ now }) => [
    ['At', ({ at }) => clockTag(at, now)],
    [
      'Actor',
      (entry) => {
        const { name, by } = splitActor(entry)
        return html`<span><a href="/audit?actor=${encodeURIComponent(name)}">${name}</a>${by && html` <small>${by.startsWith('console ') ? 'in the console' : 'by a token'}</small>`}</span>`
      },
    ],
    [
      'Action',
      ({ action }) =>
        html`<span>${auditWords[action] ?? action} <small><a href="/audit?action=${encodeURIComponent(action)}"><code>${action}</code></a></small></span>`,
    ],
    [
      'Subject',
      ({ subject }) => html`<a class="id" href="/audit?subject=${encodeURIComponent(subject)}">${subject}</a>`,
    ],
    ['Detail', ({ detail }) => detail],
  ],
})

/** How many names have links of their own. Others are found by the filter. */
const ACTORS_SHOWN = 8

/** Draws links to what a person or a store did on a day. */
function actorDays(actor: string, lastAt: string, now: number): Html {
  const links = Object.entries(commonTimes(now)).map(
    ([text, days]) =>
      html`<a href="/audit?${new URLSearchParams({ actor, ...days }).toString()}" aria-label="${text}: ${actor}">${text}</a>`,
  )
  return html`${inARow(links.slice(0, 3), ', ')} <span class="quiet small">last ${ago(lastAt, now)}</span>`
}

function headline({ now, items: [newest], isFiltered }: Seen<'listAudit'>): Html | string {
  if (!newest) return isFiltered ? 'Nothing matches.' : 'Nothing was done yet.'
  const { name } = splitActor(newest)
  return html`${isFiltered ? 'The last that matches' : 'The last'}: ${name} ${auditWords[newest.action] ?? newest.action}, ${ago(newest.at, now)}.`
}

/** Splits `Ann (B) (console 7)` into the name `Ann (B)` and the session `console 7`. A token stands in the same place. */
export function splitActor({ actor }: Pick<ItemOf<'listAudit'>, 'actor'>): { name: string; by: string } {
  const [, name = actor, by = ''] = /^(.*) \(([^()]*)\)$/.exec(actor) ?? []
  return { name, by }
}
