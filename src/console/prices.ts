/** The page of prices: the rules of a store as a ladder, and what a change of them would do, before it is applied. */
import { counted, grouped, isoDay } from '../domain/figures.ts'
import { type Html, html, type Piece } from '../domain/html.ts'
import { reasonText } from '../domain/labels.ts'
import { Failure } from '../errors.ts'
import type { AnswerOf, ItemOf } from '../http/api/table.ts'
import { splitActor } from './audit.ts'
import { act, hidden, needsRole, notNow, reasonField, textsIn } from './forms.ts'
import { changeText } from './held-prices.ts'
import { lessThan, listingPath } from './listing-actions.ts'
import { inARow, sectionHead, tabs } from './lists.ts'
import { mark } from './marks.ts'
import { byAdmin, done, type Page, type Shown, type Visit } from './page.ts'
import {
  changesBetween,
  type Draft,
  draftOf,
  faultsIn,
  inForm,
  proposed,
  type Row,
  rowKey,
  typed,
  wordsOf,
} from './price-draft.ts'
import { table } from './tables.ts'
import { ageTag, ago, sentenceOf } from './words.ts'

type Settings = AnswerOf<'viewSettingsDocument'>
type Preview = AnswerOf<'previewPrices'>

export const pricesPage: Page = {
  path: '/prices',
  navigation: { group: 'Selling', label: 'Prices' },
  show: (visit) => shown(visit),
  actions: {
    /** Shows the rules as they were typed, and what they would do. Nothing is stored. */
    preview: {
      role: 'viewer',
      run: async (visit) => {
        const isWhole = ['whole', 'kind', 'skip'].some((name) => visit.form.has(name))
        if (visit.form.has('add')) return shown(visit)
        try {
          return await shown(visit, await previewOf(visit, isWhole))
        } catch (thrown) {
          // What is half typed is no failure.
          if (isWhole || !(thrown instanceof Failure) || thrown.fields.length === 0) throw thrown
          const faults = new Map(thrown.fields.map(({ field, message }) => [field, sentenceOf(message)]))
          return shown({ ...visit, faults })
        }
      },
    },
    apply: byAdmin(async (visit) => {
      const { call, form } = visit
      const preview = await previewOf(visit, false)
      const { document } = await call('viewSettingsDocument')
      const { pricing, rates, spendCaps } = proposed(typed(form))
      const stores = document.stores.map((store) => (store.id === preview.store ? { ...store, pricing } : store))
      const body = { document: { ...document, stores, rates, spendCaps }, ...textsIn(form, 'reason') }
      const applied = call('applySettings', { version: form.get('base') ?? '', body })
      const { changes } = await applied.catch((thrown) => Promise.reject(faultsIn(thrown, typed(form))))
      return done(
        'Applied',
        `${counted(changes.length, 'setting')} changed. The prices go to the store now.`,
        at(preview.store),
      )
    }),
    undo: byAdmin(async ({ call, form }) => {
      await call('undoSettings', { version: form.get('base') ?? '' })
      return done('Undone', 'The rules before are in force again.', at(form.get('store') ?? ''))
    }),
  },
}

const at = (store: string): string => `/prices?store=${encodeURIComponent(store)}`

/** The kind of prices that is asked for. Its next page is of the same kind. */
const kindIn = (form: URLSearchParams): string =>
  form.get('kind') ?? (form.has('skip') ? form.get('shown') : null) ?? 'all'

async function previewOf({ call, form }: Visit, whole: boolean): Promise<Preview> {
  const draft = typed(form)
  const { pricing, rates } = proposed(draft)
  const [kind, skip] = [kindIn(form), Number(form.get('skip') ?? 0)]
  const path = { store: form.get('store') }
  const asked = call('previewPrices', { path, body: { pricing, rates, whole, kind, skip, limit: whole ? 25 : 10 } })
  return asked.catch((thrown) => Promise.reject(faultsIn(thrown, draft)))
}

interface Drawn {
  visit: Visit
  draft: Draft
  before: Draft
  preview: Preview
  isPreviewed: boolean
}

async function shown(visit: Visit, given?: Preview): Promise<Shown> {
  const { call, form, query, caller } = visit
  const settings = await call('viewSettingsDocument')
  const { document, home, revision } = settings
  const wanted = form.get('store') ?? query.get('store')
  const store = document.stores.find(({ id }) => id === wanted) ?? document.stores[0]
  if (!store)
    return { title: 'Prices', main: html`<header class="title"><h1>Prices</h1><p>No store is connected.</p></header>` }
  const before = draftOf(document, store.id)
  const preview = given ?? (await call('previewPrices', { path: { store: store.id }, body: {} }))
  const draft = form.has('base') ? typed(form) : before
  const drawn: Drawn = { visit, draft, before, preview, isPreviewed: given !== undefined }
  const changes = changesBetween(before, draft)
  const names = document.stores.map(({ id, name }) => [id, name] as const)
  const file = home === 'file' && (await call('viewSettings')).file
  const head = html`<header class="title"><h1>${headlineOf(drawn, store.name, changes)}</h1>
<p class="quiet">${changes === 0 ? 'The nearest rule decides alone, and the floor wins over each.' : html`You changed ${counted(changes, 'rule')}. <bdi>${store.name}</bdi> still has its prices.`}${file && html` These rules are lines of <code>${file}</code>: here you can try others, and not apply them. <code>quayside settings adopt</code> moves them here.`}</p>
${names.length > 1 && tabs('Store', names, store.id, at)}</header>`
  const undo = home === 'database' && caller.role === 'admin' && (await undoPart(visit, store.id, revision))
  return {
    title: 'Prices',
    main: html`${undo}${head}
<div class="facing"><form method="post" action="/prices/preview" id="rules" class="stack" aria-labelledby="rules-h">
<button class="hide" name="whole" value="1" tabindex="-1" aria-hidden="true">Preview</button>${hidden('store', store.id)}${hidden('base', form.get('base') ?? String(revision))}${hidden('shown', kindIn(form))}
${sectionHead('rules-h', 'Rules', html`<span class="small quiet">the nearest rule wins</span>`)}
<ol class="ladder">${rungPart('products', 'Product', drawn)}${rungPart('categories', 'Category', drawn)}${rungPart('bands', 'Band of cost', drawn)}${storeRung(drawn)}</ol>
${forAllPart(drawn)}${ratesPart(drawn)}${capsPart(drawn)}
<div class="filters"><button class="go" name="whole" value="1">Preview</button>${changes > 0 && html`<a href="${at(store.id)}">Drop ${counted(changes, 'change')}</a>`}</div></form>
${previewPart(drawn, settings, changes)}</div>`,
  }
}

function headlineOf({ preview, isPreviewed, visit }: Drawn, name: string, changes: number): Piece {
  const { whole, listings, changed } = preview
  if (visit.faults.size > 0) return 'These rules cannot be used yet.'
  if (!isPreviewed || changes === 0) return html`The prices of <bdi>${name}</bdi>`
  const of = whole ? '' : ` of a sample of ${grouped(listings)}`
  const held = changed.held === 0 ? '' : `, and ${changed.held} of them ${changed.held === 1 ? 'is' : 'are'} held`
  return `With these rules ${counted(changed.all, 'price')}${of} ${changed.all === 1 ? 'changes' : 'change'}${held}.`
}

async function undoPart({ call, now }: Visit, store: string, revision: number): Promise<Html | undefined> {
  const { items } = await call('listSettingsRevisions', { query: { limit: '1' } })
  const [newest] = items
  const isOurs = newest?.changes.some(
    ({ field }) => field.startsWith(`stores.${store}.pricing`) || /^(rates|spendCaps)/.test(field),
  )
  if (!newest || !isOurs || newest.undoes !== null || newest.revision !== revision) return undefined
  const what = newest.changes.slice(0, 3).map(({ field, before, after }) => {
    // A list is too long for a line.
    const values =
      /^[[{]/.test(`${before}`) || /^[[{]/.test(`${after}`) ? '' : ` from ${before ?? 'none'} to ${after ?? 'none'}`
    return `${field.replace(`stores.${store}.`, '').replace('pricing.', '')}${values}`
  })
  const more = newest.changes.length > 3 && `, and ${newest.changes.length - 3} more`
  return html`<form class="notice is-done" method="post" action="/prices/undo">${mark('done', html`Applied ${ago(newest.at, now)} by ${splitActor(newest).name}`)}<span>${inARow(what, more ? ', ' : undefined)}${more}: <bdi>${newest.reason}</bdi></span>${hidden('store', store)}${hidden('base', String(revision))}<button>Undo</button></form>`
}

/** Draws a field with its unit, and what is wrong with it. */
function field({ visit }: Drawn, name: string, value: string, label: string, unit = ''): Html {
  const [id, fault] = [`f-${name}`, visit.faults.get(name)]
  const described = fault && html` aria-invalid="true" aria-describedby="${id}-fault"`
  return html`<label for="${id}"><span class="hide">${label}</span><input type="text" id="${id}" name="${name}" value="${value}" maxlength="200" autocomplete="off"${described}><span class="quiet">${unit}</span></label>${fault && html`<p class="fault small" id="${id}-fault">${fault}</p>`}`
}

const ruleLine = (name: Piece, fields: Piece, was?: string): Html =>
  html`<li class="rule${was !== undefined && ' changed-here'}"><span>${name}${was && html` <small>${was}</small>`}</span>${fields}</li>\n`

const rungNames = { products: 'product', categories: 'category', bands: 'band' } as const

function rungPart(kind: keyof typeof rungNames, title: string, drawn: Drawn): Html {
  const { draft, before, preview } = drawn
  const rows = draft.rows[kind]
  const lines = rows.map((row, index) => {
    const known = before.rows[kind].find((one) => rowKey(kind, one) === rowKey(kind, row))
    const isLast = kind === 'bands' && index === rows.length - 1
    const name = rowKey(kind, row) || 'this rule'
    const at = (part: string) => `${kind}.${index}.${part}`
    const what = kind === 'products' ? 'SKU' : 'category'
    let head = html`<bdi>${row.name}</bdi>${hidden(at('name'), row.name ?? '')}`
    if (isLast) head = html`${rows.length > 1 ? 'above' : 'every cost'}${hidden(at('upTo'), '')}`
    else if (kind === 'bands')
      head = html`up to ${field(drawn, at('upTo'), row.upTo ?? '', `The highest cost of band ${index + 1}`, preview.currency)}`
    else if (!known) head = field(drawn, at('name'), row.name ?? '', what, what)
    const changed = known ? (wordsOf(known) === wordsOf(row) ? undefined : `was ${wordsOf(known)}`) : 'new'
    const remove = html`<button class="text small" name="remove" value="${kind}.${index}">Remove<span class="hide"> ${name}</span></button>`
    return ruleLine(head, html`${amounts(drawn, at(''), row, name)}${remove}`, changed)
  })
  return html`<li><h3>${title}${decides(preview, rungNames[kind])}</h3><ul>${lines}</ul><p class="small"><button class="text small" name="add" value="${kind}">Add a rule<span class="hide"> for a ${title.toLowerCase()}</span></button></p></li>`
}

const decides = ({ whole, rungs }: Preview, rung: keyof Preview['rungs']): Piece =>
  whole && html`<span>${counted(rungs[rung], 'product')}</span>`

/** The fields of what a rule adds: a share, a sum, and for a product a price. */
const amounts = (drawn: Drawn, at: string, row: Row, name: string): Html =>
  html`${field(drawn, `${at}percent`, row.percent ?? '', `${name} adds, in percent`, '%')}${field(drawn, `${at}flat`, row.flat ?? '', `${name} adds, as a sum`, drawn.preview.currency)}${row.fixed !== undefined && field(drawn, `${at}fixed`, row.fixed, `${name}, a fixed price`, 'fixed')}`

function storeRung(drawn: Drawn): Html {
  const { draft, before, preview } = drawn
  const part = (of: Draft): Row => ({ percent: of.one['markup.percent'] ?? '', flat: of.one['markup.flat'] ?? '' })
  const was = wordsOf(part(draft)) === wordsOf(part(before)) ? undefined : `was ${wordsOf(part(before))}`
  const unused =
    draft.rows.bands.length > 0 && html`<p class="small quiet">The last band takes every cost: this is not used.</p>`
  return html`<li><h3>Store${decides(preview, 'store')}</h3><ul>${ruleLine('Everything else', amounts(drawn, 'markup.', part(draft), 'Everything else'), was)}</ul>${unused}</li>`
}

/** A line with single settings, marked where one of them is changed. */
function oneLine(drawn: Drawn, name: string, names: readonly (readonly [name: string, unit: string])[]): Html {
  const { draft, before } = drawn
  const differing = names.filter(([one]) => draft.one[one] !== before.one[one])
  const was = differing
    .map(([one, unit]) => `was ${before.one[one] ? `${before.one[one]} ${unit}` : 'none'}`)
    .join(', ')
  const fields = names.map(([one, unit]) => field(drawn, one, draft.one[one] ?? '', `${name}, ${unit}`, unit))
  return ruleLine(name, fields, differing.length > 0 ? was : undefined)
}

function forAllPart(drawn: Drawn): Html {
  const { draft, preview } = drawn
  const choice = (name: string, label: string, options: readonly (readonly [string, string])[]) =>
    html`<label for="f-${name}"><span class="hide">${label}</span><select id="f-${name}" name="${name}">${options.map(([value, text]) => html`<option value="${value}"${value === draft.one[name] && ' selected'}>${text}</option>`)}</select></label>`
  return html`<h3>For all prices</h3><ul>${oneLine(drawn, 'At least above the cost', [
    ['margin.percent', '%'],
    ['margin.flat', preview.currency],
  ])}
${oneLine(drawn, 'Held when it changes by more than', [['jumpPercent', '%']])}
${oneLine(drawn, 'Prices end in', [['rounding.endings', 'such as .99']])}
${oneLine(drawn, 'Or go in steps of', [['rounding.step', preview.currency]])}
${ruleLine(
  'Rounded',
  choice('rounding.direction', 'Rounded', [
    ['up', 'up'],
    ['down', 'down'],
    ['nearest', 'to the nearest'],
  ]),
)}
${ruleLine(
  'Crossed-out price',
  html`${choice('compareAt', 'Crossed-out price', [
    ['', 'none'],
    ['base_price', 'base price of the supplier'],
    ['percent', 'the price, and'],
  ])}${field(drawn, 'compareAt.percent', draft.one['compareAt.percent'] ?? '', 'Crossed-out price above the price', '%')}`,
)}</ul>`
}

function ratesPart(drawn: Drawn): Piece {
  const { draft, before, visit } = drawn
  const { currency, costCurrency } = drawn.preview
  if (currency === costCurrency && draft.rows.rates.length === 0) return undefined
  const lines = draft.rows.rates.map((row, index) => {
    const known = before.rows.rates.find((one) => rowKey('rates', one) === rowKey('rates', row))
    const at = (part: string) => `rates.${index}.${part}`
    const since =
      row.validFrom && Date.parse(row.validFrom) <= visit.now
        ? html` <small>for ${ageTag(new Date(row.validFrom).toISOString(), visit.now)}</small>`
        : ''
    return ruleLine(
      html`1 ${row.from} in ${row.to}${since}${['from', 'to', 'validUntil'].map((part) => hidden(at(part), row[part] ?? ''))}`,
      html`${field(drawn, at('rate'), row.rate ?? '', `Rate from ${row.from} to ${row.to}`, row.to)}${field(drawn, at('validFrom'), row.validFrom ?? '', 'The first day of the rate', 'first day')}<button class="text small" name="remove" value="rates.${index}">Remove</button>`,
      known ? (known.rate === row.rate ? undefined : `was ${known.rate}`) : 'new',
    )
  })
  return html`<h3>Exchange rates of all stores</h3><ul>${lines}</ul><p class="small"><button class="text small" name="add" value="rates.${costCurrency}.${currency}.${isoDay(visit.now)}">Add a rate</button></p>`
}

const capsPart = (drawn: Drawn): Html =>
  html`<h3>Spent at most, in all stores</h3><ul>${['order', 'hour', 'day'].map((name) => oneLine(drawn, `For one ${name}`, [[`spendCaps.${name}`, drawn.preview.costCurrency]]))}</ul>`

const previewTabs = { all: 'All', higher: 'Higher', lower: 'Lower', held: 'Held', floor: 'At the floor' } as const

function previewPart(drawn: Drawn, { home }: Settings, changes: number): Html {
  const { visit, preview, isPreviewed } = drawn
  const { form, faults, caller } = visit
  const live = html` hx-post="/prices/preview" hx-trigger="input from:#rules delay:300ms" hx-include="#rules" hx-select="#preview" hx-swap="outerHTML" hx-sync="this:replace"`
  const content = () => {
    if (faults.size > 0)
      return html`<ul class="not-now">${[...new Set(faults.values())].map((fault) => html`<li class="fault">${fault}</li>`)}</ul>`
    if (!isPreviewed)
      return html`<p class="quiet">Change a rule: what it would do to prices is shown here, and nothing is stored.</p>`
    const { changed, whole, items, next, margin } = preview
    const kind = kindIn(form)
    const chosen = Object.entries(previewTabs).map(
      ([name, text]) =>
        html`<button form="rules" name="kind" value="${name}"${name === kind && html` aria-current="true"`}>${text} ${grouped(changed[name as keyof typeof changed])}</button>`,
    )
    const skip = Number(form.get('skip') ?? 0)
    const turned = html`<nav class="pager" aria-label="Pages of the list"><span class="small quiet">${items.length > 0 && `${skip + 1} to ${skip + items.length} of ${grouped(changed[kind as keyof typeof changed])}`}</span>${next !== null && html`<button form="rules" class="text" name="skip" value="${next}">Next ${items.length}</button>`}</nav>`
    const none = [
      'No price changes',
      whole ? 'These rules give each product the price that it has.' : 'None of the sample does. Preview looks at all.',
    ] as const
    return html`${whole ? html`<nav class="tabs" aria-label="Which">${chosen}</nav>` : html`<p class="small quiet">A sample of ${counted(preview.listings, 'product')}: Preview looks at all, and lets you apply the rules.</p>`}
${table<ItemOf<'previewPrices'>>({
  caption: 'What would change',
  rows: items,
  isPairs: true,
  none,
  columns: [
    [
      'Product',
      ({ id, name, rule, listed }) =>
        html`${listed ? html`<a href="${listingPath(preview.store, id)}"><bdi>${name}</bdi></a>` : html`<bdi>${name}</bdi>`}<small><bdi>${rule}</bdi></small>`,
    ],
    ['Cost', ({ cost }) => cost ?? '–', 'number'],
    ['Now', ({ now }) => now ?? '–', 'number'],
    ['New', ({ price }) => html`<b>${price ?? 'none'}</b>`, 'number'],
    ['Margin', ({ margin }) => (margin === null ? '–' : `${margin} %`), 'number'],
    ['State', stateOf, 'top'],
  ],
})}
${whole && turned}
${unpricedPart(preview)}
${whole && margin.after !== null && changes > 0 && applyPart(drawn, home, caller.role)}`
  }
  return html`<section class="stack" id="preview" aria-labelledby="preview-h"${live}>${sectionHead('preview-h', 'What would change', isPreviewed && html`<span class="small quiet">in ${preview.currency}</span>`)}${content()}</section>`
}

const unpricedPart = ({ unpriced }: Preview): Piece =>
  unpriced > 0 &&
  html`<p class="small quiet">${counted(unpriced, 'product')} ${unpriced === 1 ? 'has' : 'have'} no price by these rules, and ${unpriced === 1 ? 'is' : 'are'} not sold.</p>`

function stateOf({ heldBy, now, price, currency, kinds }: ItemOf<'previewPrices'>): Html {
  const jump = heldBy === 'price_jump' && now && price && changeText(now, price, currency)
  // A state is short on a phone: `held +58 %`.
  if (jump)
    return mark('held', `held ${jump.replace(', a rise of ', '+').replace(', a fall of ', '−').replace(/\.\d/, '')}`)
  if (heldBy !== null) return mark('held', reasonText(heldBy))
  const more = now && price ? lessThan(price, now, currency) : undefined
  if (more === undefined || Number(more) === 0) return mark('planned', more === undefined ? 'new' : 'same price')
  return mark(
    'planned',
    `${more.startsWith('-') ? more.replace('-', '−') : `+${more}`}${kinds.includes('floor') ? ', floor' : ''}`,
  )
}

function applyPart({ visit, preview, draft, before }: Drawn, home: Settings['home'], role: string): Piece {
  if (home === 'file') return notNow('Apply: the rules are in the configuration file.')
  if (role !== 'admin') return notNow(needsRole('Apply', 'admin', visit))
  const { changed, margin } = preview
  const written = changed.all - changed.held
  const changes = changesBetween(before, draft)
  return act({
    to: '/prices/apply',
    about:
      written === 0
        ? 'Puts the rules in force.'
        : `Puts the rules in force, and writes ${counted(written, 'price')} to the store.`,
    effect: {
      Store: written === 0 ? 'Nothing changes.' : 'Shows the new prices. Orders that are placed already keep theirs.',
      Money: `The average margin goes from ${margin.before ?? '–'} to ${margin.after} % of the price. No price is below cost and margin.`,
      Held:
        changed.held === 0
          ? 'No price.'
          : `${counted(changed.held, 'price')} ${changed.held === 1 ? 'waits' : 'wait'} for a person on the page of held prices.`,
      Undo: 'With one click, until a person changes the settings again.',
    },
    fields: html`${inForm(draft).map(([name, value]) => hidden(name, value))}${hidden('store', preview.store)}${hidden('base', visit.form.get('base') ?? '')}${reasonField(visit)}`,
    button: written === 0 ? `Apply ${counted(changes, 'change')}` : `Apply ${counted(written, 'price')}`,
  })
}
