/** The search: what begins with a text that a person typed, pages and actions too. A single hit opens at once. */
import { type PersonRole, personRoles } from '../access/sessions.ts'
import { beginsWords, meant, typedText } from '../domain/free-text.ts'
import { type Html, html, type Piece } from '../domain/html.ts'
import { foundLabels, type Label, type Sign } from '../domain/labels.ts'
import type { ItemOf } from '../http/api/table.ts'
import { listingPath } from './listing-actions.ts'
import { inARow, section } from './lists.ts'
import { sign as shape } from './marks.ts'
import { orderPath } from './orders.ts'
import type { Page } from './page.ts'
import { type StoreNames, storeName, storeNames } from './words.ts'

type Found = ItemOf<'search'>
type Way = readonly [least: PersonRole, to: string, name: string, alsoCalled: string]
type Hit = Partial<Pick<Found, 'otherName'>> & Record<'kind' | 'name' | 'to', string> & { sign: Sign; about?: Piece }

/** Actions, by the page and the id of their form. */
export const actions: readonly Way[] = [
  ['operator', '/overview#freeze', 'Stop all buying', 'freeze halt pause ordering orders'],
  ['operator', '/syncs#start', 'Request a sync', 'read the catalogue now'],
  ['operator', '/discrepancies#sweep', 'Sweep now', 'reconcile compare orders'],
  ['admin', '/settings#create-token', 'Create a token', 'new make API'],
  ['admin', '/settings#revoke-token', 'Revoke a token', 'end delete API'],
  ['admin', '/settings#secret-actions-h', 'Rotate secrets and keys', 'webhook encryption new'],
]

function waysOf(pages: readonly Page[], q: string, role: PersonRole): Hit[] {
  const places = pages.map(({ path, navigation }): Way => ['viewer', path, navigation?.label ?? '', ''])
  const roles: readonly PersonRole[] = personRoles.slice(0, personRoles.indexOf(role) + 1)
  const ways = [...places, ...actions].filter(([least, , name]) => name && roles.includes(least))
  const found = ways.filter(([, , name, also]) => beginsWords(`${name} ${also}`, q))
  return found.map(([, to, name]) => ({ kind: 'way', name, to, sign: 'planned' }))
}

const orderOf = ({ store, order }: Found) => orderPath({ store: store ?? '', reference: order ?? '' })
const paths: Record<Found['kind'], (one: Found) => string> = {
  order: orderOf,
  product: (one) =>
    one.store === null ? `/orders?q=${encodeURIComponent(one.otherName ?? '')}` : listingPath(one.store, one.id),
  purchase: (one) => `${orderOf(one)}#p-${one.id}`,
  delivery: ({ id }) => `/deliveries/${id}`,
}
function hitOf(one: Found, stores: StoreNames): Hit {
  const { word, sign } = foundLabels[one.kind].labels[one.state ?? 'none'] as Label
  const id = one.otherName && html`<span class="id">${one.otherName}</span>`
  const about = [word, one.store && storeName(stores, one.store), one.detail, id].filter(Boolean)
  return { ...one, to: paths[one.kind](one), sign, about: inARow(about, ', ') }
}
const drawn = ({ name, kind, to, sign, about }: Hit): Html =>
  html`<li>${shape(sign)}<a href="${to}"${!['product', 'way'].includes(kind) && ' data-copy'}><bdi>${name}</bdi></a>${about && html`<p>${about}</p>`}</li>\n`

/** @param pages the pages that can be found */
export const searchPage = (pages: readonly Page[]): Page => ({
  path: '/search',
  show: async (visit) => {
    const [q, only] = [typedText(visit.query.get('q') ?? ''), visit.query.get('kind')]
    const asked = { query: { q, kind: only, limit: only && '100' } }
    const { items, more } = q === '' ? { items: [], more: [] } : await visit.call('search', asked)
    const [stores, ways] = [await storeNames(visit), q === '' || only ? [] : waysOf(pages, q, visit.caller.role)]
    const hits = [...items.map((one) => hitOf(one, stores)), ...ways]
    const lists = Object.entries(foundLabels).map(([kind, { title }]) => {
      const own = hits.filter((one) => one.kind === kind)
      const all = html`<a href="/search?kind=${kind}&amp;q=${encodeURIComponent(q)}">More of them</a>`
      const rest = more.includes(kind as Found['kind']) && (only ? 'There are more: type more of it.' : all)
      const list = html`<ul class="hits">${own.map(drawn)}</ul>${rest && html`<p class="small">${rest}</p>`}`
      const beside = html`<span class="small quiet">${own.length}${rest && '+'}</span>`
      return own.length > 0 && section(`g-${kind}`, title, list, beside)
    })
    const heading = html`“<bdi>${q}</bdi>”: ${more.length > 0 && 'more than '}${hits.length || 'nothing'} found.`
    return {
      title: q === '' ? 'Search' : `Search: ${q}`,
      to: only ? undefined : meant(hits, q)?.to,
      main: html`<header class="title"><h1>${q === '' ? 'Search' : heading}</h1></header>
<form class="ask" role="search" aria-label="Here" action="/search"><label><span class="hide">Search</span><input type="search" name="q" value="${q}" maxlength="200" autocomplete="off" spellcheck="false"${q === '' && ' autofocus'}></label>
<p class="small quiet">The beginning of an order number, a word of a product, an SKU, a delivery ID, a supplier order, a purchase, a page or an action. Case and # do not matter.</p></form>
<div class="half">${lists}</div>`,
    }
  },
})
