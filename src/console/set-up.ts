/** The set-up of a shop: five steps on one page, each tested when it is posted, and each kept by itself. */

import { counted, grouped } from '../domain/figures.ts'
import { type Html, html, type Piece } from '../domain/html.ts'
import { parsePercent } from '../domain/pricing-rules.ts'
import { Failure } from '../errors.ts'
import { WHY } from '../http/api/set-up.ts'
import type { AnswerOf, ItemOf } from '../http/api/table.ts'
import { invalidField } from '../http/input.ts'
import {
  actOf,
  formOf,
  hidden,
  needsRole,
  notNow,
  numbersIn,
  selectField,
  type Typed,
  textField,
  textsIn,
  typedFor,
} from './forms.ts'
import { facts, figures, section } from './lists.ts'
import { live } from './live.ts'
import { mark } from './marks.ts'
import { byAdmin, done, type Notice, type Page, type Shown, type Visit } from './page.ts'
import { editSettings, editStore } from './settings.ts'
import { findingsTable } from './stores.ts'
import { table } from './tables.ts'
import { clockTag, money, sentenceOf } from './words.ts'

type SetUpView = AnswerOf<'viewSetUp'>
type TestedView = AnswerOf<'trySupplier'>
type AddedView = AnswerOf<'addStore'>
type CountedView = AnswerOf<'countProducts'>
type Settings = AnswerOf<'viewSettingsDocument'>['document']

/** How far the set-up is, with the store that was connected last, and settings that its steps change. */
interface State extends SetUpView {
  store: ItemOf<'listStores'> | undefined
  channels: Settings['alerts']['channels']
  own: Settings['stores'][number] | undefined
  caps: Settings['spendCaps']
}

/** What an action has found, for the page that follows it. */
interface Found {
  supplier?: TestedView
  store?: AddedView
  counts?: CountedView
}

const later = [
  'The address of its API, your key, and three of its products to compare.',
  'A shop, or a backend of your own. You need five minutes and the rights of an owner there.',
  'Choose by category, cost and name. Each filter shows how many products it leaves.',
  'A markup, a floor, and how prices end.',
  'A dry run shows each change. You set the caps and the alerts, then you start buying.',
]
const names = ['Supplier', 'Shop', 'Products', 'Prices', 'Go live']

export const setUpPage: Page = {
  path: '/setup',
  navigation: { group: 'This installation', label: 'Set-up' },
  show: (visit) => shown(visit),
  actions: {
    'test-supplier': byAdmin(async (visit) => {
      const { form } = await mine(visit)
      const body = textsIn(form, 'baseUrl', 'dialect', 'apiKey')
      return shown(visit, { supplier: await visit.call('trySupplier', { body }) })
    }),
    found: byAdmin(async (visit) => {
      const { link, file } = await (await mine(visit)).call('foundInstallation')
      return { title: 'Your installation starts', main: foundedPart(link, file, visit.caller.name), next: link }
    }),
    'add-store': byAdmin(async (visit) => {
      const { form, call } = await mine(visit)
      const { kind, name, address, key, secret } = textsIn(form, 'kind', 'name', 'address', 'key', 'secret')
      const body = { kind, name, address, ...(key && { key }), ...(secret && { secret }) }
      const store = await call('addStore', { body })
      if (store.store === null) return shown(visit, { store })
      if (store.token !== null) return { title: 'Your backend', main: backendPart(store, await call('viewSettings')) }
      return done('Connected', `${name} is connected. Nothing is written to it before the last step.`)
    }),
    'try-callback': byAdmin(async (visit) => {
      const { call, form } = await mine(visit)
      const path = { store: form.get('store') }
      const { outcome, detail } = await call('triggerUpdate', { path, body: { type: 'line.fulfilled' } })
      if (outcome === 'confirmed') return done('Taken', 'Your backend took a test callback with an example of a key.')
      const text = `Your backend did not take it: ${detail ?? outcome}. Start the receiver at its address, with the secret, then try again.`
      return { notice: { kind: 'held', word: 'Not taken', text } }
    }),
    products: byAdmin(async (visit) => {
      const { form, call } = await mine(visit)
      const store = form.get('store') ?? ''
      const listings = filterIn(form)
      const counts = await call('countProducts', { path: { store }, body: { listings } })
      if (form.get('do') !== 'keep') return shown(visit, { counts })
      if (counts.chosen === 0)
        throw invalidField('text', `none of ${counts.offered} products is left: choose less strictly`)
      const create = form.has('create') && { create: form.get('create') || null }
      await editStore(visit, store, WHY.products, (one) => ({
        listings: { ...listings, mode: one.listings.mode },
        ...create,
      }))
      return done('Kept', `${grouped(counts.chosen)} of ${grouped(counts.offered)} products are chosen.`)
    }),
    prices: byAdmin(async (visit) => {
      const { form } = await mine(visit)
      const { store, endings } = textsIn(form, 'store', 'endings')
      const { markup, margin } = numbersIn(form, 'markup', 'margin')
      const [adds, least] = [parsePercent(markup), parsePercent(margin)]
      if (adds !== undefined && least !== undefined && adds < least) {
        const message = `is below the floor of ${margin} %: every price would be the floor. Raise it, or lower the floor`
        throw invalidField('markup', message)
      }
      await editStore(visit, store, WHY.prices, ({ pricing }) => ({
        pricing: {
          ...pricing,
          markup: { ...pricing.markup, percent: markup },
          margin: { ...pricing.margin, percent: margin },
          // What the form does not show stays where it was not changed.
          ...(endings !== (pricing.rounding.endings?.[0] ?? '') && {
            rounding: { ...pricing.rounding, step: null, endings: endings === '' ? null : [endings] },
          }),
        },
      }))
      return done('Kept', `Prices are the cost plus ${markup} %${endings ? `, and end in ${endings}` : ''}.`)
    }),
    guards: byAdmin(async (visit) => {
      const { form, call } = await mine(visit)
      const { kind, address, to } = textsIn(form, 'kind', 'address', 'to')
      const caps = numbersIn(form, 'day', 'order')
      const mail = kind === 'email' && { from: to, to: [to] }
      const body = { kind, address, ...mail, test: true, reason: WHY.guards }
      await editSettings(visit, 'set-up: caps', ({ spendCaps }) => ({ spendCaps: { ...spendCaps, ...caps } }))
      await call('putAlertChannel', { path: { channel: 'owner' }, body })
      return done('Kept', 'A test alert was sent. Look whether it has arrived.')
    }),
    'dry-run': byAdmin(async (visit) => {
      await (await mine(visit)).call('startDryRun')
      return done('Started', 'The dry run reads the catalogue on a copy. Nothing is changed.')
    }),
    start: byAdmin(async (visit) => {
      const { form, call } = await mine(visit)
      const buy = form.get('do') !== 'listings'
      await call('startSelling', { body: { buy, ...textsIn(form, 'keyBegins') } })
      if (!buy) return done('Started', 'Products and prices go out now. Nothing is bought yet.')
      const text = 'Products and prices go out now, and Quayside buys for each order from this moment on.'
      return done('Started', text, '/overview')
    }),
  },
  parts: {
    dry: async ({ call, now, query }) => {
      const { run } = await call('viewDryRun')
      return query.get('is') === 'running' && run?.state !== 'running' ? undefined : dryState(run, now)
    },
  },
}

/** The products that a form chooses, as in the configuration. */
function filterIn(form: URLSearchParams) {
  const { text } = textsIn(form, 'text')
  const { costMin, costMax } = numbersIn(form, 'costMin', 'costMax')
  const categories = form.has('category') ? form.getAll('category') : null
  const costs = { costMin: costMin || null, costMax: costMax || null }
  return { mode: 'all' as const, categories, text: text || null, ...costs, inStockOnly: form.has('inStockOnly') }
}

/** @throws Failure `conflict` where another person is at the set-up */
async function mine(visit: Visit): Promise<Visit> {
  const setUp = await visit.call('viewSetUp')
  if (setUp.by === null || setUp.by === visit.caller.name) return visit
  throw new Failure('conflict', takenBy(setUp), { reason: 'set_up_taken' })
}

const takenBy = ({ by, phase }: SetUpView): string =>
  `${by} is at the set-up, and one person does it. ${phase === 'first_run' ? 'It is free again ten minutes after their last step' : `A link from npx quayside console --name ${by} goes on in their name`}`

async function shown(visit: Visit, found: Found = {}): Promise<Shown> {
  const [view, { document }, { items }] = await Promise.all([
    visit.call('viewSetUp'),
    visit.call('viewSettingsDocument'),
    visit.call('listStores'),
  ])
  const store = view.done.includes('shop') ? items.at(-1) : undefined
  const own = document.stores.find(({ id }) => id === store?.id)
  const setUp: State = { ...view, store, own, caps: document.spendCaps, channels: document.alerts.channels }
  const passed = setUp.done.filter((one) => one !== 'guards').length
  const here = Math.min(passed, 4)
  const isTaken = setUp.by !== null && setUp.by !== visit.caller.name
  const may = visit.caller.role === 'admin' && !isTaken
  const content = [supplierStep, shopStep, productsStep, pricesStep, liveStep]
  const steps = await Promise.all(
    content.map(async (step, index) => {
      const isPast = index < passed
      const beside = isPast ? mark('done', 'done') : index === here ? mark('moving', 'here') : mark('planned', 'later')
      const own = may && index <= passed ? await step(visit, setUp, found) : html`<p class="quiet">${later[index]}</p>`
      return section(`s${index + 1}`, `${index + 1}. ${names[index]}`, own, beside)
    }),
  )
  const notice = noticeOf(found)
  return {
    title: 'Set-up',
    ...(notice && { notice }),
    main: html`<header class="title"><p class="trail">Set-up, step ${here + 1} of 5</p><h1>${headline(setUp, passed)}</h1><p class="quiet">${setUp.phase === 'done' ? 'Each step can be changed here.' : 'Nothing is bought, and nothing in your shop changes, before the last step. What you enter is kept after each step: leave, and go on later.'}</p></header>
${notNow(isTaken && `${takenBy(setUp)}.`, !isTaken && !may && needsRole('Set-up', 'admin', visit))}
${steps}`,
  }
}

/** What a test has found, at the top of the page: the findings may be far below. */
function noticeOf({ supplier, store }: Found): Notice | undefined {
  if (supplier?.correct === null)
    return { kind: 'done', word: 'It answers', text: 'Compare its products below, then say whether they are right.' }
  if (!supplier && !store) return undefined
  const text = html`The test failed, and nothing was kept. <a href="#${supplier ? 's1' : 's2'}">What it found</a>`
  return { kind: 'held', word: 'Not connected', text }
}

function headline({ phase }: SetUpView, passed: number): string {
  if (phase === 'done') return 'The set-up is done'
  if (phase === 'first_run') return 'Connect your supplier'
  const heads = ['Connect your supplier', 'Connect your shop', 'Choose your products', 'Set your prices']
  return heads[passed] ?? 'Look at what would happen, then start'
}

/* 1. Supplier */

async function supplierStep(visit: Visit, setUp: SetUpView, { supplier: tested }: Found): Promise<Html> {
  if (setUp.supplier) return supplierFacts(visit, setUp.supplier)
  const found = tested && html`<div class="stack"><h3>What the test found</h3>${findingsTable(tested.findings)}</div>`
  if (tested?.correct !== null) return html`${supplierForm(visit, setUp, tested)}${found}`
  return html`${rightPart(visit, tested)}${found}<details class="act"><summary>Something is wrong…</summary><div><p>A dialect says how a supplier writes its answers. Fit one to this supplier by <code>docs/fitting-a-supplier.md</code>, or correct what you typed.</p>${supplierForm(visit, setUp, tested)}</div></details>`
}

async function supplierFacts(visit: Visit, { baseUrl, dialect }: NonNullable<SetUpView['supplier']>): Promise<Html> {
  const { balance, counts, freshness } = await visit.status()
  const read = freshness.catalogueAt && clockTag(freshness.catalogueAt, visit.now, 'minutes')
  return facts([
    ['Address', html`<span class="id">${baseUrl}</span>`],
    ['Dialect', html`<code>${dialect}</code>`],
    ['Balance', balance ? money(balance.amount, balance.currency) : 'not read yet'],
    ['Catalogue', read ? html`${counted(counts.offers.total, 'product')}, read at ${read}` : 'is read now'],
  ])
}

function supplierForm(visit: Visit, { dialects }: SetUpView, tested?: TestedView): Html {
  const faults = new Map(visit.faults)
  if (tested?.correct === 'key') faults.set('apiKey', 'The supplier did not take this key. Nothing was kept of it.')
  if (tested?.correct === 'address') faults.set('baseUrl', 'This address did not work.')
  const own = { ...visit, faults }
  const known = dialects.map(({ name, about }) => [name, `${name}: ${about.split(/[:,]/)[0]}`] as const)
  return html`<form class="stack" method="post" action="/setup/test-supplier">
${textField(own, { label: 'Address of the API', name: 'baseUrl', isRequired: true, maxLength: 500, about: 'That of the Reseller API, version 1, ends in /v1.' })}
${textField(own, { label: 'API key', name: 'apiKey', isRequired: true, isSecret: true, maxLength: 500, about: 'The key that the supplier gave you. It is kept sealed, and never shown.' })}
${selectField({ label: 'Dialect: how the supplier writes its API', name: 'dialect', isRequired: true, options: [['', 'choose one'], ...known], chosen: visit.form.get('dialect') ?? '' })}
<button class="go">Test the supplier</button></form>`
}

function rightPart({ form }: Visit, { products, balance }: TestedView): Html {
  return html`${facts([
    ['Address', html`<span class="id">${form.get('baseUrl')}</span>`],
    ['Balance', balance ?? 'could not be read'],
  ])}
<div class="stack"><h3>Are these right?</h3><p class="quiet">Products as Quayside reads them. Compare name, cost and stock with your supplier’s own page: a dialect that does not fit can take cents for euros, and nothing else would show it.</p>
${table<TestedView['products'][number]>({
  caption: 'Products of the supplier',
  rows: products,
  columns: [
    ['Product', ({ name, sku }) => html`<bdi>${name}</bdi><small>${sku}</small>`],
    ['Cost', ({ cost }) => cost, 'number'],
    ['Stock', ({ stock }) => stock, 'number'],
  ],
})}
<form method="post" action="/setup/found"><button class="go">Yes, these are right</button></form></div>`
}

const foundedPart = (link: string, file: string, name: string): Html =>
  html`<header class="title"><p class="trail">Set-up, step 1 of 5</p><h1>Your installation starts</h1><p class="quiet"><code>${file}</code> is written. The demo ends, and this page goes on to the link that signs you in.</p></header>
<p><a class="button" href="${link}">Go on</a></p>
<p class="small quiet">The link works once, within ten minutes. After that, <code>npx quayside console --name ${name}</code> makes another one on this machine.</p>`

/* 2. Shop */

async function shopStep(visit: Visit, { kinds, store }: State, found: Found): Promise<Html> {
  const shopsFirst = kinds.toSorted((one, next) => Number(next.isShop) - Number(one.isShop))
  const other = html`<div>${shopsFirst.map((kind) => kindForm(visit, kind, found.store))}</div>`
  if (!store) return other
  const { id, name, kindLabel, address, callbackSecret } = store
  return html`${facts([
    ['Name', name],
    ['Kind', kindLabel],
    [callbackSecret ? 'Callbacks go to' : 'Address', html`<span class="id">${address}</span>`],
  ])}
${callbackSecret && html`<form method="post" action="/setup/try-callback">${hidden('store', id)}<button>Send a test callback</button></form>`}
<p class="small"><a href="/stores/${id}">Test or change it</a></p>
<details class="act"${visit.action === 'add-store' && ' open'}><summary>Connect another one…</summary>${other}</details>`
}

function kindForm(visit: Visit, kind: SetUpView['kinds'][number], added: AddedView | undefined): Html {
  const { typed, own, isOpen } = formOf(visit, 'kind', kind.kind)
  const isOurs = visit.form.get('kind') === kind.kind
  const [key, secret] = kind.parts
  const at = kind.kind
  return html`<details class="act"${(isOpen || (added && isOurs)) && ' open'}><summary>${kind.isShop ? kind.label : 'A backend of your own'}…</summary><form method="post" action="/setup/add-store">${own}
${kind.credentialsFrom !== null && html`<p>${kind.credentialsFrom}</p>`}
${textField(typed, { label: 'Name, as you call it', name: 'name', isRequired: true, maxLength: 100, at })}
${textField(typed, { label: 'Address', name: 'address', isRequired: true, maxLength: 500, at, about: sentenceOf(kind.address) })}
${key !== undefined && textField(typed, { label: key, name: 'key', isRequired: true, isSecret: true, maxLength: 500, at })}
${secret !== undefined && textField(typed, { label: secret, name: 'secret', isRequired: true, isSecret: true, maxLength: 500, at })}
<button class="go">Test and connect</button>
${isOurs && added && html`<h3>What the test found. Nothing was kept.</h3>${findingsTable(added.findings)}`}</form></details>`
}

function backendPart({ store, token, callbackSecret }: AddedView, { settings }: AnswerOf<'viewSettings'>): Html {
  const port = settings.find(({ name }) => name === 'listen.port')?.value ?? '8080'
  const receiver = `import { createHmac, timingSafeEqual } from 'node:crypto'
import { createServer } from 'node:http'
const key = Buffer.from(process.env.QUAYSIDE_SECRET.slice(6), 'base64')
createServer(async (request, response) => {
  const body = Buffer.concat(await request.toArray())
  const { 'webhook-id': id, 'webhook-timestamp': at, 'webhook-signature': all = '' } = request.headers
  const mac = createHmac('sha256', key).update(\`\${id}.\${at}.\`).update(body).digest('base64')
  const isSigned = all.split(' ').some((one) => one.length === mac.length + 3 && timingSafeEqual(Buffer.from(one), Buffer.from(\`v1,\${mac}\`)))
  if (isSigned) console.log(String(body)) // store it once by its id: it has the keys
  response.writeHead(isSigned ? 204 : 401).end()
}).listen(4000)`
  const order = `curl -s http://127.0.0.1:${port}/api/v1/orders -H 'Authorization: Bearer ${token}' \\
  -H 'Content-Type: application/json' \\
  -d '{"reference":"test-1","lines":[{"id":"1","sku":"a SKU of yours","quantity":1}]}'`
  return html`<header class="title"><p class="trail">Set-up, step 2 of 5</p><h1>Your backend is connected</h1><p class="quiet">Its token and its secret are shown this once. Copy them now.</p></header>
${facts([
  ['Store', html`<span class="id">${store}</span>`],
  ['Token', html`<code class="id" id="token">${token}</code>`],
  ['Callback secret', html`<code class="id" id="secret">${callbackSecret}</code>`],
])}
<section class="stack"><h2>A receiver to copy</h2><p class="quiet">Run it with Node and <code>QUAYSIDE_SECRET</code> set to the secret: it verifies each callback and prints it. <code>quayside listen</code> does the same on this machine.</p><pre tabindex="0">${receiver}</pre></section>
<section class="stack"><h2>A test order</h2><p class="quiet">Place it once the last step is done: it is a real order, and its key is bought.</p><pre tabindex="0">${order}</pre></section>
<form action="/setup#s3"><button class="go">I have copied them, go on</button></form>`
}

/* 3. Products */

/** What becomes of a product that a shop lacks. */
const ways = [
  ['', 'leave them out'],
  ['draft', 'make drafts, which you publish yourself'],
  ['publish', 'put them on sale'],
] as const

async function productsStep(visit: Visit, setUp: State, found: Found): Promise<Html | undefined> {
  const { store, supplier, own } = setUp
  if (!store || !own) return undefined
  const { listings } = own
  const before: Record<string, unknown> = { ...listings, create: 'create' in own ? own.create : null }
  const counts = found.counts ?? (await visit.call('countProducts', { path: { store: store.id }, body: { listings } }))
  const fields = ({ form, faults }: Typed) => {
    const isTyped = form.size > 0
    const chosen = new Set(isTyped ? form.getAll('category') : listings.categories)
    const names = new Set([...counts.categories.slice(0, 30).flatMap(({ category }) => category ?? []), ...chosen])
    const text = (label: string, name: string, more: object = {}) =>
      textField({ form, faults }, { label, name, value: String(before[name] ?? ''), ...more })
    const amount = { isDecimal: true, isShort: true, maxLength: 20 }
    const box = (name: string, value: string, label: string, isOn: boolean) =>
      html`<label><input type="checkbox" name="${name}" value="${value}"${isOn && ' checked'}> <span>${label}</span></label>`
    return html`<fieldset><legend class="small">Categories; tick none to sell all of them</legend>${[...names].map((name) => box('category', name, name, chosen.has(name)))}</fieldset>
${text('Name or SKU contains', 'text')}${text(`Cost from, ${supplier?.currency}`, 'costMin', amount)}${text(`Cost up to, ${supplier?.currency}`, 'costMax', amount)}
${box('inStockOnly', 'on', 'In stock only', isTyped ? form.has('inStockOnly') : listings.inStockOnly)}
${!store.callbackSecret && selectField({ label: 'Products that your shop lacks (they are matched by SKU)', name: 'create', options: ways, chosen: String((isTyped ? form.get('create') : before.create) ?? '') })}`
  }
  const byCategory = table<CountedView['categories'][number]>({
    caption: 'Products by category',
    rows: counts.categories.slice(0, 12),
    columns: [
      ['Category', ({ category }) => category ?? 'without one'],
      ['Offered', ({ offered }) => grouped(offered), 'number'],
      ['Chosen', (row) => grouped(row.chosen), 'number'],
      ['In stock', ({ inStock }) => grouped(inStock), 'number'],
    ],
    isPairs: true,
  })
  const shownCounts = html`<p>${grouped(counts.chosen)} of ${grouped(counts.offered)} products are chosen, ${grouped(counts.inStock)} of them in stock.</p>`
  const reading = html`<p class="quiet">The catalogue is being read. <a href="/setup">Look again</a>.</p>`
  const buttons = html`<button class="go" name="do" value="keep">Use these products</button> <button name="do" value="count">Count again</button>`
  return formStep(
    visit,
    setUp,
    'products',
    counts.offered > 0 ? shownCounts : reading,
    fields,
    buttons,
    counts.offered > 0 && byCategory,
  )
}

/* 4. Prices */

const usualEndings = ['.99', '.95', '.90', '.00']

async function pricesStep(visit: Visit, setUp: State): Promise<Html | undefined> {
  if (!setUp.own) return undefined
  const { markup, margin, rounding } = setUp.own.pricing
  const [ending = ''] = rounding.endings ?? []
  const percent = { isDecimal: true, isShort: true, isRequired: true, maxLength: 10 }
  const options = [['', 'as computed'], ...new Set([...usualEndings, ...(rounding.endings ?? [])])] as const
  const text = html`<p>Cost plus ${markup.percent} %, at least ${margin.percent} % above the cost${ending !== '' && `, ending in ${ending}`}.</p>`
  const fields = (
    typed: Typed,
  ) => html`${textField(typed, { label: 'Markup on the cost, %', name: 'markup', value: markup.percent, ...percent })}
${textField(typed, { label: 'Never below the cost plus, %', name: 'margin', value: margin.percent, ...percent })}
${selectField({ label: 'Prices end in', name: 'endings', options, chosen: typed.form.get('endings') ?? ending })}`
  return formStep(visit, setUp, 'prices', text, fields, html`<button class="go">Use these prices</button>`)
}

/** Draws a step that is a form. Once the step is done, its form is behind a click. */
function formStep(
  visit: Visit,
  { done: steps, store }: State,
  step: 'products' | 'prices' | 'guards',
  text: Html,
  fields: (typed: Typed) => Piece,
  buttons: Html,
  above?: Piece,
): Html {
  const typed = typedFor(visit, step)
  const form = html`${above}<form class="stack" method="post" action="/setup/${step}">${hidden('store', store?.id ?? '')}
${fields(typed)}
<p>${buttons}</p></form>`
  if (!steps.includes(step)) return html`${text}${form}`
  return html`${text}<details class="act"${typed.form.size > 0 && ' open'}><summary>Change ${step === 'guards' ? 'the caps and the alerts' : `the ${step}`}…</summary><div>${form}</div></details>`
}

/* 5. Go live */

const channelKinds = [
  ['webhook', 'a webhook of your own'],
  ['slack', 'Slack, or a chat like it'],
  ['email', 'a mail address'],
] as const

async function liveStep(visit: Visit, setUp: State): Promise<Html> {
  const { done: steps, caps, channels, supplier } = setUp
  const [channel] = Object.values(channels)
  const isGuarded = steps.includes('guards')
  const amount = { isDecimal: true, isShort: true, isRequired: true, maxLength: 20 }
  const text = isGuarded
    ? html`<p>At most ${money(caps.day, supplier?.currency)} a day and ${money(caps.order, supplier?.currency)} an order. ${channel ? `Alerts go out by ${channel.kind}.` : 'No alert is sent.'}</p>`
    : html`<p class="quiet">Orders above a cap wait for you. A test alert is sent when you save.</p>`
  const fields = (
    typed: Typed,
  ) => html`${textField(typed, { label: `Spend at most in a day, ${supplier?.currency}`, name: 'day', value: caps.day ?? '', ...amount })}
${textField(typed, { label: `Spend at most on one order, ${supplier?.currency}`, name: 'order', value: caps.order ?? '', ...amount })}
${selectField({ label: 'Alerts go to', name: 'kind', options: channelKinds, chosen: typed.form.get('kind') ?? 'webhook' })}
${textField(typed, { label: 'Address that they are sent to', name: 'address', isRequired: true, isSecret: true, maxLength: 500, about: 'Of mail: that of the mail server, such as smtps://me:secret@mail.example. It is kept sealed.' })}
${textField(typed, { label: 'Mail address of who is alerted (mail only)', name: 'to' })}`
  const save = html`<button class="go">Save, and send a test alert</button>`
  const guards = formStep(visit, setUp, 'guards', text, fields, save)
  return html`<h3>Caps and alerts</h3>${guards}${isGuarded && (await startPart(visit, setUp))}`
}

type DryRunView = AnswerOf<'viewDryRun'>['run']

async function startPart(visit: Visit, setUp: State): Promise<Html> {
  const { run } = await visit.call('viewDryRun')
  const isRunning = run?.state === 'running'
  const dry = html`<h3>What would change</h3>
${live({ tag: 'div', id: 'dry', class: 'stack', from: `/setup/parts/dry${isRunning ? '?is=running' : ''}`, content: dryState(run, visit.now) })}
${!isRunning && html`<form method="post" action="/setup/dry-run"><button${!run && html` class="go"`}>${run ? 'Run it again' : 'Show what would change'}</button></form>`}`
  return html`${dry}${(run?.state === 'complete' || setUp.phase === 'done') && startForm(visit, setUp)}`
}

function dryState(run: DryRunView, now: number): Html {
  if (!run)
    return html`<p class="quiet">A dry run reads the catalogue and computes prices and stock on a copy. Nothing is changed.</p>`
  if (run.state === 'running')
    return html`<p>${mark('moving', 'dry run under way')} since ${clockTag(run.startedAt, now)}. <a href="/setup#s5">Look again</a></p>`
  if (run.state !== 'complete' || !run.end) return html`<p>${mark('stop', 'dry run failed')} ${run.error}</p>`
  const [pushed, held] = (['pushed', 'held'] as const).map(
    (name) => run.end?.stores.reduce((sum, one) => sum + one[name], 0) ?? 0,
  )
  const none = html`<p>${mark('held', 'nothing is written')} None of the products that you chose is in your shop: they are matched by SKU. Correct the SKUs there, or <a href="#s3">choose what becomes of products that your shop lacks</a>.</p>`
  return html`${!pushed && !held && none}${figures([
    { name: 'Would be written', value: grouped(pushed ?? 0), beside: 'products with price and stock' },
    { name: 'Would wait for you', value: grouped(held ?? 0), beside: 'held prices' },
  ])}
<p class="small"><a href="/syncs/dry-run">Read all of it</a>. It ended ${run.endedAt && clockTag(run.endedAt, now)}.</p>`
}

function startForm(visit: Visit, { phase, keyFile, caps, supplier, own }: State): Html | undefined {
  if (phase === 'done') {
    if (own?.selling !== 'off') return undefined
    return html`<p>${own.name} is not live yet: <a href="/stores/${own.id}">start selling there</a>.</p>`
  }
  return actOf(visit, {
    summary: 'Keep the key, then start…',
    to: '/setup/start',
    isOpen: true,
    about: html`Without the key-encryption key nothing opens the database or its backups, and all is lost. It is in <code>${keyFile}</code>. Keep a copy elsewhere, such as in a password manager, and type its first four characters from that copy.`,
    fields: html`${textField(typedFor(visit, 'start'), { label: 'The first four characters of the key', name: 'keyBegins', isRequired: true, isShort: true, maxLength: 44 })}`,
    effect: {
      Money: `Quayside buys for each paid order from now on: at most ${money(caps.day, supplier?.currency)} a day, ${money(caps.order, supplier?.currency)} an order.`,
      Shop: 'The products above get their prices and their stock.',
      'Old orders': 'Orders that were placed before this moment are not bought.',
      Undo: 'Freeze buying at any time, on the overview.',
    },
    button: 'Start buying',
    buttons: html`<button name="do" value="listings">Only write products and prices</button>`,
  })
}
