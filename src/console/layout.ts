/** What all pages share: the head, the navigation with what waits for a person, the notice, and pages about failures. */
import type { SessionCaller } from '../access/sessions.ts'
import { countText } from '../domain/figures.ts'
import { type Html, html, type Piece } from '../domain/html.ts'
import type { StatusView } from '../http/api/status.ts'
import { assets } from './assets.ts'
import { live } from './live.ts'
import { mark } from './marks.ts'
import { type NavigationEntry, type Notice, navigationGroups, type Shown } from './page.ts'
import { clockTag } from './words.ts'

const BRAND = html`<svg viewBox="0 0 26 26" aria-hidden="true"><path d="M2 3h9v13H2z" fill="currentColor"/><path d="M4.5 1h4v2h-4z" fill="currentColor"/><path d="M12 11.5c2 0 2-1.5 4-1.5s2 1.5 4 1.5 2-1.5 4-1.5M12 15.5c2 0 2-1.5 4-1.5s2 1.5 4 1.5 2-1.5 4-1.5M2 20.5c2.2 0 2.2-1.5 4.4-1.5s2.2 1.5 4.4 1.5 2.2-1.5 4.4-1.5 2.2 1.5 4.4 1.5 2.2-1.5 4.4-1.5M2 24.5c2.2 0 2.2-1.5 4.4-1.5s2.2 1.5 4.4 1.5 2.2-1.5 4.4-1.5 2.2 1.5 4.4 1.5 2.2-1.5 4.4-1.5" fill="none" stroke="currentColor" stroke-width="1.6" class="is-moving"/></svg>Quayside`

/** Settings of htmx. Without the first setting, htmx writes a style element into the page, which the content policy forbids. */
const HTMX = JSON.stringify({
  includeIndicatorStyles: false,
  allowEval: false,
  selfRequestsOnly: true,
  historyEnabled: false,
  timeout: 8_000,
})

const head = (title: string): Html => html`<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="robots" content="noindex">
<meta name="htmx-config" content="${HTMX}">
<title>${title} · Quayside</title>
<link rel="icon" href="${assets.icon}">
<link rel="stylesheet" href="${assets.style}">
<script src="${assets.htmx}" defer></script>
<script src="${assets.script}" defer></script>
</head>`

export interface Frame extends Shown {
  caller: SessionCaller
  navigation: readonly NavigationEntry[]
  /** The path of the navigation entry to which the page belongs. */
  current: string
  /** The status; undefined where it cannot be read. The navigation then has no counts. */
  status: StatusView | undefined
  notice?: Notice | undefined
  /** When the page was drawn, in epoch milliseconds. */
  now: number
  /** Where the stream of the page begins. */
  stream: string
  /** What stands in the footer about Quayside itself. */
  about: string
}

/** Draws the navigation with its counts, and whether Quayside buys. It is a live part of every page. */
export const standing = ({ navigation, current, status }: Pick<Frame, 'navigation' | 'current' | 'status'>): Html =>
  html`${navigationGroups.map((group) => groupOf(group, navigation, current, status))}${status && html`<p class="buying">${buyingMark(status)}</p>`}`

const STALE = html`<p class="notice is-stop" id="stale" role="status" hidden>${mark('stop', html`This page is <span aria-live="off">10</span> seconds old`)}<span>Quayside does not answer. Buying and hand-over do not depend on this page. It goes on by itself.</span></p>`

export function framed({ title, main, notice, about, stream, now, ...frame }: Frame): Html {
  const { caller, current } = frame
  const readAt = new Date(now).toISOString()
  const from = `/frame?at=${encodeURIComponent(current)}`
  return html`<!doctype html>
<html lang="en" id="top">
${head(title)}
<body>
<a class="skip" href="#main">Skip to the page</a>
<div class="pier">
<header><a class="brand" href="/overview">${BRAND}</a><p class="live" id="live-mark" data-stream="${stream}"><span hidden>${mark('done', 'live')}</span><span hidden>${mark('stop', 'stale')}</span> <span class="quiet"><span class="hide">as of </span>${clockTag(readAt, now)}</span></p><a class="open look" href="/search">Search</a><a class="open" href="#menu">Menu</a></header><form class="find" role="search" aria-label="Everything" action="/search"><input type="search" name="q" placeholder="Search" aria-label="Find orders, products, deliveries, pages" aria-keyshortcuts="/" maxlength="200" autocomplete="off"><kbd aria-hidden="true">/</kbd></form>
<nav id="menu" aria-label="Pages">
<a class="shut" href="#top">Close</a>
${live({ tag: 'div', id: 'counts', class: 'counts', from, content: standing(frame) })}
<div class="who"><p><a href="/session">${caller.name}</a>, ${caller.role}</p><form method="post" action="/signout"><input type="hidden" name="scope" value="here"><button class="text">Sign out</button></form></div>
</nav>
</div>
<main id="main">
${STALE}
${notice && html`<p class="notice is-${notice.kind}" id="notice" role="status" tabindex="-1" autofocus>${mark(notice.kind, notice.word)}<span>${notice.text}</span></p>`}
${main}
<footer><p><span id="zone">All times are UTC.</span> ${about}</p></footer><p class="hide" id="said" aria-live="polite"></p>
</main>
</body>
</html>
`
}

function groupOf(
  group: (typeof navigationGroups)[number],
  all: readonly NavigationEntry[],
  current: string,
  status: StatusView | undefined,
): Html | undefined {
  const inside = all.flatMap(({ path, navigation }) => (navigation?.group === group ? [{ path, ...navigation }] : []))
  if (inside.length === 0) return undefined
  const entries = inside.map(({ path, label, waiting, upTo = ({ counts }) => counts.upTo }) => {
    const count = (status && waiting?.(status)) ?? 0
    const waits =
      count > 0 &&
      html`<b><span class="hide">: </span>${countText(count, status && upTo(status))}<span class="hide"> waiting</span></b>`
    return html`<li><a href="${path}"${path === current && html` aria-current="page"`}>${label}${waits}</a></li>\n`
  })
  return html`<div>${group && html`<h2>${group}</h2>`}<ul>${entries}</ul></div>\n`
}

export function buyingMark(
  { freeze, unreadable, workerAbsentSince }: StatusView,
  words = ['Buying is on', 'Buying is frozen', 'Buying is paused', 'No worker buys'],
): Html {
  const [on = '', frozen = '', paused = '', absent = ''] = words
  if (workerAbsentSince) return mark('stop', absent)
  if (freeze) return mark('stop', frozen)
  return unreadable.some(({ pausesBuying }) => pausesBuying) ? mark('held', paused) : mark('done', on)
}

/** A page without navigation, for people who are not signed in. */
export const landing = (title: string, content: Piece, below?: Html): Html => html`<!doctype html>
<html lang="en">
${head(title)}
<body class="landing">
<main class="stack">
<p class="brand">${BRAND}</p>
${content}
</main>
${below}
</body>
</html>
`

const titles: Record<number, string> = {
  400: 'This request is not understood',
  401: 'You are signed out',
  403: 'Not allowed',
  404: 'There is nothing here',
  405: 'There is nothing here',
  409: 'Nothing was done',
  412: 'Nothing was done',
  421: 'This is not the address of the console',
  422: 'Nothing was done',
  429: 'Too many failed sign-ins',
}

export const refusalTitle = (status: number): string => titles[status] ?? 'This page could not be made'

/** Draws what went wrong, for a page that could not be shown or an action that has no page. @param text a sentence */
export const refusalPart = (status: number, text: string, requestId: string): Html =>
  html`<header class="title"><h1>${status >= 500 ? mark('stop', refusalTitle(status)) : refusalTitle(status)}</h1></header>
<div class="sheet stack"><p>${text}</p>${status >= 500 && html`<p>Buying and hand-over do not depend on the console.</p>`}<p class="small quiet">Reference for the log: <span class="id">${requestId}</span>. <a href="/overview">Overview</a>${status >= 500 && html`, or run <code>quayside doctor</code>`}.</p></div>`
