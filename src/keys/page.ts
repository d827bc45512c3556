/** The HTML of the page of keys. It stands in the name of the shop, and names no customer. */
import MarkdownIt from 'markdown-it'
import { Html, html, type Piece } from '../domain/html.ts'
import { countsOf, replacements, type ShownLine } from '../domain/key-page.ts'
import { contentOf, partsOfPair } from '../domain/licence-key.ts'
import { nameOf, type OpenedPage, type SealedKey } from './key-pages.ts'
import { type Language, type Texts, textsIn } from './texts.ts'

/** The shop in whose name a page speaks. */
export interface PageShop {
  name: string
  /** The address of the shop, and an address at which its customers reach it; null where it states none. */
  url: string | null
  contact: string | null
  /** A language tag, such as `de-AT`. */
  language: string
  redeem: readonly RedeemText[]
}

interface Selling {
  stores: readonly { id: string; name: string; language: string; contact: string | null; url?: string }[]
  keys: Pick<PageShop, 'redeem'>
}

/** Returns the shop of a page. A store that the configuration no longer has is named by its id; no store, by nothing. */
export function shopOfPage({ stores, keys: { redeem } }: Selling, id?: string): PageShop {
  const store = stores.find((one) => one.id === id)
  const { name = id ?? '', url = null, contact = null, language = stores[0]?.language ?? 'en' } = store ?? {}
  return { name, url, contact, language, redeem }
}

export interface PageFiles {
  style: string
  script: string
}

interface Speaking {
  texts: Texts
  language: Language
  shop: PageShop
}

/** @param keys the keys that this answer shows, by what names them on the page; none in the answer to a GET */
export function keysPage(
  page: OpenedPage,
  shop: PageShop,
  files: PageFiles,
  keys: ReadonlyMap<SealedKey, string> = new Map(),
): Html {
  const speaking = { ...textsIn(shop.language), shop }
  const { texts } = speaking
  const { here, coming } = countsOf(page)
  const isClosed = page.closed !== null
  const nothing = page.lines.some(({ kept }) => kept > 0) ? texts.notYet : texts.nothing
  const title = isClosed ? texts.closed : here + coming === 0 ? nothing : texts.title(here, coming)
  const lines = page.lines.map((line) =>
    isClosed
      ? closedLine(line, speaking)
      : openLine(line, speaking, { keys, redeem: redeemText(shop.redeem, page.offers.get(line.id), shop.language) }),
  )
  const lead = leadOf(page, speaking, keys.size)
  const footer = isClosed
    ? []
    : [html`<p>${texts.secret}</p>`, html`<p>${texts.closes(dayIn(page.closesAt, speaking.language))}</p>`]
  return frame(speaking, files, {
    title,
    head: html`<p class="order">${texts.order(page.number)}</p><h1>${title}</h1>${lead && html`<p>${lead}</p>`}`,
    body: html`<ul class="goods">${lines}</ul>`,
    footer,
  })
}

/** @param shown how many keys this answer shows */
function leadOf(page: OpenedPage, { texts, shop }: Speaking, shown: number): string | undefined {
  if (page.closed !== null) return texts.closedWhy(shop.name)[page.closed]
  if (shown > 0) return texts.copyThem
  const { here, coming } = countsOf(page)
  if (coming > 0) return texts.wait
  return here > 0 ? texts.lead(shop.name) : undefined
}

/** The answer to a token that no page has. It does not say whose page it might be. */
export function unknownPage(language: string, files: PageFiles): Html {
  const speaking = { ...textsIn(language), shop: { name: '', url: null, contact: null, language, redeem: [] } }
  const { unknown: title, unknownWhy } = speaking.texts
  return frame(speaking, files, { title, head: html`<h1>${title}</h1><p>${unknownWhy}</p>`, body: null, footer: [] })
}

function frame(
  { texts, language, shop }: Speaking,
  { style, script }: PageFiles,
  { title, head, body, footer }: { title: string; head: Html; body: Piece; footer: Html[] },
): Html {
  const name = html`<bdi>${shop.name}</bdi>`
  return html`<!doctype html>
<html lang="${language}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="robots" content="noindex, nofollow">
<title>${shop.name === '' ? title : `${title} · ${shop.name}`}</title>
<link rel="stylesheet" href="${style}">
<script src="${script}" defer></script>
</head>
<body data-copied="${texts.copied}">
<header><p>${shop.url === null ? name : html`<a href="${shop.url}" rel="noreferrer">${name}</a>`}</p></header>
<main><div class="lead">${head}</div>${body}</main>
<footer>${footer}${shop.contact !== null && html`<p><a href="${shop.contact}" rel="noreferrer">${texts.contact(shop.name)}</a></p>`}</footer>
</body>
</html>
`
}

function openLine(
  { id, name, keys, here, kept, coming, replacing, isShort }: ShownLine<SealedKey>,
  { texts, language, shop }: Speaking,
  { keys: opened, redeem }: { keys: ReadonlyMap<SealedKey, string>; redeem: Html | undefined },
): Html {
  const count = coming > 0 ? texts.someOf(here, here + coming) : texts.keys(here)
  const replacementOf = replacements(keys)
  const shown = keys.flatMap((key) => {
    const text = opened.get(key)
    return text === undefined
      ? []
      : [shownKey(text, key, { texts, language, line: id, isReplaced: replacementOf(key) !== undefined })]
  })
  return html`<li><div class="name"><h2><bdi>${name}</bdi></h2><span>${count}</span></div>
${shown}
${keys.length > shown.length && html`<form method="post"><button class="wide" name="line" value="${id}">${texts.show(Math.max(1, here))}</button></form>`}
${keys.length > shown.length && keys.every(({ revealedAt }) => revealedAt !== null) && html`<p class="small quiet">${texts.opened(timeIn(firstOf(keys), language))}</p>`}
${replacing > 0 && html`<p class="state late">${texts.replacing}</p>`}
${coming > replacing && html`<p class="state late">${texts.coming}</p><p>${texts.comingWhy(shop.name)}</p>`}
${coming > 0 && html`<form method="get"><button class="plain wide">${texts.again}</button></form>`}
${kept > 0 && html`<p class="state off">${texts.kept(shop.name)}</p>`}
${isShort && html`<p class="state off">${texts.short(shop.name)}</p>`}
${redeem && keys.length > 0 && html`<details${shown.length > 0 && ' open'}><summary>${texts.redeem}</summary><div class="how">${redeem}</div></details>`}</li>`
}

const shownKey = (
  text: string,
  key: SealedKey,
  { texts, language, line, isReplaced }: { texts: Texts; language: Language; line: string; isReplaced: boolean },
): Html => {
  const { revealedAt, claimed } = key
  return html`<div class="key">${contentOfKey(text, key, texts, line)}${
    revealedAt !== null && html`<p class="small quiet">${texts.opened(timeIn(revealedAt, language))}</p>`
  }${claimed !== null && isReplaced && html`<p class="state off">${texts.replaced(dayIn(claimed.at, language))}</p>`}</div>`
}

/** What a customer uses of a key. A download is one more POST, so that a key is in no address. */
function contentOfKey(text: string, key: SealedKey, texts: Texts, line: string): Piece {
  const copied = (shown: Html) =>
    html`${shown}<button class="plain" type="button" hidden data-copy>${texts.copy}</button>`
  const code = (text: string) => copied(html`<code translate="no">${text}</code>`)
  switch (key.type) {
    case 'text':
      return code(text)
    case 'url':
      return copied(html`<a class="address" href="${text}" rel="noreferrer noopener" translate="no">${text}</a>`)
    case 'pair':
      return partsOfPair(text).map((part) => html`<p class="small quiet">${part.label}</p>${code(part.text)}`)
    default: {
      const { type, ending, isImage } = contentOf(text)
      const picture =
        key.type === 'image' && isImage && html`<img src="data:${type};base64,${text}" alt="${texts.picture}">`
      return html`${picture}<form method="post"><input type="hidden" name="line" value="${line}"><button class="plain" name="key" value="${nameOf(key)}">${texts.download(ending.toUpperCase())}</button></form>`
    }
  }
}

function closedLine({ name, keys, kept }: ShownLine<SealedKey>, { texts, language }: Speaking): Html {
  const opened = keys.filter(({ revealedAt }) => revealedAt !== null)
  const says = opened.length > 0 ? texts.wasOpened(timeIn(firstOf(opened), language)) : texts.neverOpened
  return html`<li><div class="name"><h2><bdi>${name}</bdi></h2><span>${texts.keys(keys.length + kept)}</span></div>
<p class="state off">${says}</p></li>`
}

const firstOf = (keys: readonly SealedKey[]): number =>
  Math.min(...keys.flatMap(({ revealedAt }) => (revealedAt === null ? [] : [revealedAt])))

/** With the day before the month, as the other languages have it. */
const placeOf = (language: Language): string => (language === 'en' ? 'en-GB' : language)

/** The page knows no reader, so it names the zone of its times. */
const timeIn = (at: number, language: Language): string =>
  `${new Intl.DateTimeFormat(placeOf(language), { dateStyle: 'long', timeStyle: 'short', timeZone: 'UTC' }).format(at)} UTC`

const dayIn = (at: number, language: Language): string =>
  new Intl.DateTimeFormat(placeOf(language), { dateStyle: 'long', timeZone: 'UTC' }).format(at)

/** How customers redeem their keys: a text of the merchant. Its HTML is shown as text, and nothing is loaded from elsewhere. */
export interface RedeemText {
  /** The supplier's id of a product, and a category of the supplier. Without both, the text is for every key. */
  product?: string | undefined
  category?: string | undefined
  /** Markdown, or Markdown by language. */
  text: string | Record<string, string>
}

interface Redeemed {
  productId: string
  category: string | null
}

const markdown = new MarkdownIt('commonmark', { html: false }).disable('image')
markdown.validateLink = (address) => /^(https:\/\/|mailto:)/i.test(address)
const { rules } = markdown.renderer
// The page has headings of its own, so a heading of the text is a bold line.
rules.heading_open = () => '<p><b>'
rules.heading_close = () => '</b></p>'
rules.link_open = (tokens, index, options, _, renderer) => {
  tokens[index]?.attrSet('rel', 'noreferrer nofollow')
  return renderer.renderToken(tokens, index, options)
}

/**
 * Returns the text for a product: the one that names it, else the one for its category, else the one for all. The first of equals counts.
 *
 * @param of undefined: the supplier does not sell it any more
 * @param language a tag such as `de-AT`
 */
export function redeemText(texts: readonly RedeemText[], of: Redeemed | undefined, language: string): Html | undefined {
  const fitting = texts.filter(
    ({ product, category }) =>
      (product === undefined || product === of?.productId) && (category === undefined || category === of?.category),
  )
  const nearest =
    fitting.find(({ product }) => product !== undefined) ??
    fitting.find(({ category }) => category !== undefined) ??
    fitting[0]
  return nearest && new Html(markdown.render(inLanguage(nearest.text, language)))
}

function inLanguage(text: RedeemText['text'], tag: string): string {
  if (typeof text === 'string') return text
  const [primary = ''] = tag.split('-')
  return text[tag] ?? text[primary] ?? text.en ?? Object.values(text)[0] ?? ''
}
