/** Stores: where each is, how publishing to it and reading from it go, and what a person can do about a store. */

import { counted, duration, grouped } from '../domain/figures.ts'
import { type Html, html } from '../domain/html.ts'
import { countsByWord, listingLabels, type Sign } from '../domain/labels.ts'
import type { ListingState } from '../domain/listing.ts'
import type { AnswerOf, ItemOf } from '../http/api/table.ts'
import { triggerBody } from '../http/input.ts'
import { actOf, hidden, needsRole, notNow, reasonField, selectField, textField, textsIn, typedFor } from './forms.ts'
import { listPage } from './list-page.ts'
import { type Fact, facts, notice, section } from './lists.ts'
import { mark, stateMark } from './marks.ts'
import { byAdmin, byOperator, done, type Page, type Visit } from './page.ts'
import { table } from './tables.ts'
import { ago, clockTag, countedInWords } from './words.ts'

type StoreView = ItemOf<'listStores'>

export const storesPage = listPage({
  path: '/stores',
  navigation: { group: 'Selling', label: 'Stores' },
  operation: 'listStores',
  headline: ({ items }) => headline(items),
  heading: () => ['Each store'],
  none: ['No store yet', html`<code>quayside stores add</code> connects one.`],
  caption: 'Stores',
  columns: () => [
    [
      'Store',
      ({ id, name, kindLabel }) => html`<span><a href="/stores/${id}">${name}</a> <small>${kindLabel}</small></span>`,
    ],
    ['State', stateOf, 'top'],
    ['Address', ({ address }) => html`<span class="id">${address}</span>`],
    ['Listings', listingsText],
    ['To be pushed', ({ publications }) => pagesText(publications)],
  ],
})

function headline(stores: readonly StoreView[]): string {
  const troubled = stores.filter((store) => problemOf(store) !== undefined)
  const [one] = troubled
  if (stores.length === 0) return 'No store is connected.'
  if (stores.length === 1 && !one) return 'The store is up to date.'
  if (!one) return `${stores.length === 2 ? 'Both' : `All ${stores.length}`} stores are up to date.`
  if (troubled.length === 1) return `${one.name} needs a look: ${problemOf(one)?.text}.`
  return `${countedInWords(troubled.length, 'store')} need a look: ${troubled.map(({ name }) => name).join(', ')}.`
}

/** Returns the worst thing that is wrong with a store; undefined where nothing is wrong. */
function problemOf(store: StoreView): { sign: Sign; word: string; text: string } | undefined {
  const { shop, pausedUntil, listings } = store
  if (store.selling === 'off') return { sign: 'planned', word: 'not live', text: 'it was not started yet' }
  if (shop?.failingSince) return { sign: 'stop', word: 'orders not read', text: 'its orders cannot be read' }
  if (store.selling === 'paused') return { sign: 'off', word: 'sells nothing', text: 'a person has paused it' }
  if (pausedUntil) return { sign: 'held', word: 'paused', text: 'it refused its listings, and is tried again later' }
  const failed = `${counted(listings.failed ?? 0, 'listing')} failed`
  if (listings.failed) return { sign: 'stop', word: failed, text: failed }
  return isUnproven(store) ? { sign: 'held', word: 'not proven', text: NOT_PROVEN } : undefined
}

function stateOf(store: StoreView): Html {
  const problem = problemOf(store)
  if (problem) return mark(problem.sign, problem.word)
  return store.publications > 0 ? mark('moving', 'being pushed') : mark('done', 'up to date')
}

/** What is not known of a store before it is proven. */
export const NOT_PROVEN = 'it is not known that its customers get at their keys'
export const isUnproven = ({ needsProof, proven }: Pick<StoreView, 'needsProof' | 'proven'>): boolean =>
  needsProof && proven === null

const pagesText = (count: number): string => (count === 0 ? 'nothing' : counted(count, 'page'))

const listingsText = ({ listings }: StoreView): string => countsByWord(listings, listingLabels) || 'none yet'

const findingSigns = { ok: 'done', doubtful: 'held', failed: 'stop' } as const

export const storePage: Page = {
  path: '/stores/:store',
  below: '/stores',
  show: async (visit) => {
    const store = await storeOf(visit)
    return { title: store.name, main: await storeMain(visit, store) }
  },
  actions: {
    test: byOperator(async (visit) => {
      const store = await storeOf(visit)
      const { order } = textsIn(visit.form, 'order')
      const tested = await visit.call('testStore', { path: { store: store.id }, body: { ...(order && { order }) } })
      return { title: `${store.name}, tested`, main: await storeMain(visit, store, testedPart(tested)) }
    }),
    confirm: byOperator(async ({ call, path, form }) => {
      const { order } = textsIn(form, 'order')
      await call('confirmMail', { path: { store: path.store }, body: { order } })
      return done('Confirmed', `The mail of order ${order} proves the store.`)
    }),
    example: byOperator(async ({ call, path, form }) => {
      const type = form.get('type') ?? ''
      const { outcome, detail, ms } = await call('triggerUpdate', { path, body: { type } })
      const example = `the example of ${type} after ${duration(ms)}`
      if (outcome === 'confirmed') return done('Confirmed', `The store took ${example}.`)
      const text = `The store did not take ${example}: ${detail ?? outcome}`
      return { notice: { kind: 'held', word: outcome === 'refused' ? 'Refused' : 'No answer', text } }
    }),
    selling: byAdmin(async ({ call, path, form }) => {
      const body = textsIn(form, 'selling', 'reason')
      await call('setSelling', { path, body })
      return body.selling === 'paused'
        ? done(
            'Paused',
            'It sells nothing from now on: each listing goes there without stock. What is paid is still bought.',
          )
        : done('On', 'It sells again: prices and stock go there now.')
    }),
    credentials: byAdmin(async ({ call, path, form }) => {
      await call('changeCredentials', { path, body: textsIn(form, 'key', 'secret', 'reason') })
      return done(
        'Changed',
        'The shop took the new credentials, and Quayside uses them. Revoke the ones before in the shop.',
      )
    }),
    remove: byAdmin(async ({ call, path, form }) => {
      await call('removeStore', { path, body: textsIn(form, 'reason') })
      return done(
        'Removed',
        'Its orders and keys can be read as before. Revoke the credentials in the shop.',
        '/stores',
      )
    }),
    'rotate-secret': byAdmin(async (visit) => {
      const { overlapHours: hours } = textsIn(visit.form, 'overlapHours')
      const made = await visit.call('rotateCallbackSecret', {
        path: { store: visit.path.store },
        body: { overlapHours: /^\d+$/.test(hours) ? Number(hours) : hours },
      })
      const store = await storeOf(visit)
      return { title: `${store.name}, new secret`, main: await storeMain(visit, store, rotatedPart(made, visit.now)) }
    }),
  },
}

/** @throws Failure `not_found` as the API would answer it */
async function storeOf(visit: Visit): Promise<StoreView> {
  const id = visit.path.store ?? ''
  const store = (await visit.call('listStores')).items.find((one) => one.id === id)
  if (store) return store
  // This call throws the failure of the API for a store that does not exist, or that the caller may not see.
  await visit.call('listStoreListings', { path: { store: id }, query: { limit: '1' } })
  throw new Error(`the store ${id} has listings and is not configured`)
}

async function storeMain(visit: Visit, store: StoreView, first?: Html): Promise<Html> {
  const isInFile = (await visit.call('viewSettings')).home === 'file'
  const { id, name, kindLabel, address, publications, pausedUntil, error, shop, callbackSecret, listings, selling } =
    store
  const { now } = visit
  const problem = problemOf(store)
  const states = Object.entries(listings)
  return html`<header class="title"><p class="trail"><a href="/stores">Stores</a></p><h1>${name}</h1>
<p>${problem ? `It needs a look: ${problem.text}.` : store.publications > 0 ? 'Changes are being pushed to it.' : 'It is up to date.'}</p></header>
${first}
<div class="split"><div class="stack wide">${section(
    'store-h',
    'The store',
    facts([
      ['Kind', kindLabel],
      [callbackSecret ? 'Callbacks go to' : 'Address', html`<span class="id">${address}</span>`],
      ['Permanent id', html`<span class="id">${id}</span>`],
      ['To be pushed', pagesText(publications)],
      pausedUntil && ['Paused until', clockTag(pausedUntil, now)],
      error && ['It said', error],
      store.proven && ['Proven', html`by the ${store.proven.by} of an order, ${ago(store.proven.at, now)}`],
      selling === 'off' && [
        'Not live',
        'Nothing is written to it, and no order of it is taken, before its set-up ends.',
      ],
      selling === 'paused' && ['Paused by a person', 'It shows no stock. What is paid is still bought.'],
      isUnproven(store) && ['Not proven', 'Buy something there yourself, then test the store with that order.'],
    ]),
    stateOf(store),
  )}
${section(
  'listings-h',
  'Listings',
  table<[string, number]>({
    none: ['No listing yet', 'They come with the next sync of the catalogue.'],
    caption: 'Listings by state',
    rows: states,
    columns: [
      ['State', ([state]) => stateMark(listingLabels[state as ListingState])],
      ['Listings', ([, count]) => grouped(count), 'number'],
    ],
  }),
  html`<a href="/listings?store=${id}">All listings</a>`,
)}
${shop && section('shop-h', 'Orders and products', facts(shopFacts(shop, now)), shop.failingSince ? mark('stop', 'orders not read') : mark('done', 'read'))}
${
  callbackSecret &&
  section(
    'secret-h',
    'Callback secret',
    facts([
      ['Generation', String(callbackSecret.generation)],
      ['Changed', callbackSecret.changedAt ? ago(callbackSecret.changedAt, now) : 'never: it is the first one'],
      callbackSecret.previousUntil &&
        Date.parse(callbackSecret.previousUntil) > now && [
          'The one before',
          html`valid until ${clockTag(callbackSecret.previousUntil, now, 'minutes')}`,
        ],
    ]),
    mark('done', 'set'),
  )
}</div>
<div class="stack">${section('actions-h', 'Actions', actionsOf(visit, store, isInFile))}</div></div>`
}

const shopFacts = (shop: NonNullable<StoreView['shop']>, now: number): Fact[] => [
  ['Connected', html`${ago(shop.connectedAt, now)}; what was paid before is not bought`],
  ['Orders read', shop.ordersReadAt ? ago(shop.ordersReadAt, now) : 'not yet'],
  shop.failingSince && ['Failing since', ago(shop.failingSince, now)],
  shop.error && ['It said', shop.error],
  ['Products read', shop.productsReadAt ? ago(shop.productsReadAt, now) : 'not yet'],
  [
    'Webhook',
    shop.webhookUrl
      ? html`<span class="id">${shop.webhookUrl}</span>`
      : 'none: without publicUrl its orders are polled',
  ],
]

function actionsOf(visit: Visit, store: StoreView, isInFile: boolean): Html {
  const { id, name, kindLabel, callbackSecret } = store
  const { role } = visit.caller
  const isOperator = role !== 'viewer'
  return html`<div>${
    isOperator &&
    actOf(visit, {
      summary: 'Test the connection…',
      to: `/stores/${id}/test`,
      about: `Tries ${name}: whether it lets Quayside in, its webhook, how its orders are read, what it did not take.`,
      effect: { Store: 'Nothing in it changes, save that a missing webhook is made.', Undo: 'Not needed.' },
      fields: html`${textField(typedFor(visit, 'test'), { label: 'Walk along an order of yours, by its number there (optional)', name: 'order', at: 'test', isShort: true })}`,
      button: `Test ${name}`,
    })
  }${
    isOperator &&
    isUnproven(store) &&
    actOf(visit, {
      summary: 'Confirm a mail…',
      to: `/stores/${id}/confirm`,
      about: 'You saw the mail of an order in its mailbox, and it has the keys, or the link to them.',
      fields: html`${textField(typedFor(visit, 'confirm'), { label: 'Number of the order', name: 'order', isShort: true, isRequired: true })}`,
      effect: { Store: 'It is proven from then on.', Record: 'The audit log keeps your name.', Undo: 'None.' },
      button: 'Confirm this mail',
    })
  }${
    isOperator &&
    callbackSecret &&
    actOf(visit, {
      summary: 'Send an example…',
      to: `/stores/${id}/example`,
      about: 'Sends one callback that is marked as a test. It is sent once and stored nowhere.',
      fields: selectField({
        label: 'Callback',
        name: 'type',
        options: triggerBody.shape.type.options,
        chosen: visit.form.get('type') ?? 'line.fulfilled',
      }),
      effect: { Store: 'It must know that `test: true` is no order.', Undo: 'Not needed.' },
      button: 'Send the example',
    })
  }${
    role === 'admin' &&
    callbackSecret &&
    actOf(visit, {
      summary: 'Rotate the callback secret…',
      to: `/stores/${id}/rotate-secret`,
      about: `Takes generation ${callbackSecret.generation + 1} into use. Its text is shown once, on the page that follows.`,
      fields: html`${textField(typedFor(visit, 'rotate-secret'), { label: 'Hours for which the previous secret stays valid', name: 'overlapHours', value: '168', isShort: true, isRequired: true })}`,
      effect: {
        Store: 'Callbacks carry both signatures until then, so that none is refused while the new secret is installed.',
        'With 0': 'The previous one ends at once: the store refuses callbacks until it has the new one.',
        Undo: 'None: rotate again.',
      },
      button: `Rotate the secret of ${name}`,
      stops: true,
    })
  }${role === 'admin' && !isInFile && settingActs(visit, store)}</div>
${notNow(
  role === 'admin' && isInFile && IN_FILE,
  !isOperator && needsRole('Test, confirm, example', 'operator', visit),
  !callbackSecret && `Examples, callback secret: ${kindLabel} gets no callbacks.`,
  callbackSecret !== null && role !== 'admin' && needsRole('Rotate the callback secret', 'admin', visit),
)}`
}

const IN_FILE =
  'Pause, credentials, remove: the stores are lines of the configuration file. `quayside settings adopt` moves them here.'

/** What changes the settings of a store. */
function settingActs(visit: Visit, { id, name, shop, callbackSecret, selling }: StoreView): Html {
  const isPaused = selling === 'paused'
  const start = actOf(visit, {
    summary: 'Start selling here…',
    to: `/stores/${id}/selling`,
    about: `Makes ${name} live.`,
    fields: html`${hidden('selling', 'on')}${reasonField(typedFor(visit, 'selling'), 'selling')}`,
    effect: {
      Store: html`Its products get their prices and their stock: <a href="/syncs/dry-run">look at them</a> first.`,
      Orders: 'Those that are paid from now on are bought; earlier ones are not.',
      Undo: 'Pause it.',
    },
    button: `Start selling in ${name}`,
  })
  return html`${
    selling === 'off'
      ? start
      : actOf(visit, {
          summary: isPaused ? 'Sell again…' : 'Pause: sell nothing here…',
          to: `/stores/${id}/selling`,
          about: isPaused
            ? `Shows the stock of each listing in ${name} again.`
            : `Takes the stock of each listing in ${name}, at its price.`,
          fields: html`${hidden('selling', isPaused ? 'on' : 'paused')}${reasonField(typedFor(visit, 'selling'), 'selling')}`,
          effect: {
            Orders: 'Those that are paid, and those that still come, are bought as before.',
            Undo: isPaused ? 'Pause it again.' : 'Let it sell again.',
          },
          button: isPaused ? `Sell in ${name} again` : `Pause ${name}`,
          stops: !isPaused,
        })
  }${
    !callbackSecret &&
    actOf(visit, {
      summary: 'Change the credentials…',
      to: `/stores/${id}/credentials`,
      about: `Tries new credentials of ${name}. Where the shop refuses them, the ones before stay.`,
      fields: html`${textField(typedFor(visit, 'credentials'), { label: 'Key, or client id', name: 'key', isRequired: true, isSecret: true, maxLength: 2_000 })}${textField(typedFor(visit, 'credentials'), { label: 'Secret', name: 'secret', isRequired: true, isSecret: true, maxLength: 2_000 })}${reasonField(typedFor(visit, 'credentials'), 'credentials')}`,
      effect: {
        Store: 'Nothing in it changes.',
        Secrets: 'They are sealed, and never shown again.',
        Undo: 'Undo the revision.',
      },
      button: `Change the credentials of ${name}`,
    })
  }${actOf(visit, {
    summary: 'Remove the store…',
    to: `/stores/${id}/remove`,
    about: `Takes ${name} out of the settings, once nothing of it is under way.`,
    fields: html`${reasonField(typedFor(visit, 'remove'), 'remove')}`,
    effect: {
      Store: shop
        ? 'Its products stay as they are, so pause it first: then it shows no stock.'
        : 'Its tokens end: it places no more orders.',
      Records: 'Orders, keys and prices stay. Its permanent id is never used again.',
      Undo: 'Undo the revision; a backend needs a new token then.',
    },
    button: `Remove ${name}`,
    stops: true,
  })}`
}

export const testedPart = ({ healthy, findings }: Pick<AnswerOf<'testStore'>, 'healthy' | 'findings'>): Html =>
  section(
    'tested-h',
    'What the test found',
    findingsTable(findings),
    healthy ? mark('done', 'nothing failed') : mark('stop', 'something failed'),
  )

export const findingsTable = (findings: AnswerOf<'testStore'>['findings']): Html =>
  table<AnswerOf<'testStore'>['findings'][number]>({
    caption: 'Findings',
    rows: findings,
    columns: [
      ['Tried', ({ check }) => check],
      ['State', ({ state }) => mark(findingSigns[state], state), 'top'],
      ['Found', ({ detail, fix }) => html`<span>${detail}${fix && html` <small>${fix}</small>`}</span>`, 'plain'],
    ],
  })

const rotatedPart = ({ secret, generation, previousUntil }: AnswerOf<'rotateCallbackSecret'>, now: number): Html =>
  html`${notice({ kind: 'done', word: 'Rotated', text: html`Generation ${generation} is in use. The one before stays valid until ${clockTag(previousUntil, now, 'minutes')}.` })}
<section class="sheet stack" aria-labelledby="new-h"><h2 id="new-h">The new secret, shown this once</h2><pre tabindex="0" id="secret">${secret}</pre><p class="small quiet">Put it into the store now. When you leave this page it is gone; only another rotation makes one.</p></section>`
