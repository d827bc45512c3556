/** The page at the sandbox's own address. It shows what the sandbox can do, from the tables that the sandbox runs on. */
import { readFileSync } from 'node:fs'
import { type Request, Router } from 'express'
import { type Html, html } from '../domain/html.ts'
import { sentence } from '../domain/text-layout.ts'
import { controls } from './control-table.ts'
import { type FaultName, factsOf, faultOptions, faultSubjects, faultTable, matchFields } from './faults.ts'
import { createPanel, type PanelParts } from './panel.ts'

interface Row {
  name: string
  does: string
}

interface Section {
  title: string
  rows: Row[]
}

export function faultSections(): Section[] {
  const names = Object.keys(faultTable) as FaultName[]
  return Object.entries(faultSubjects).map(([subject, { title }]) => ({
    title,
    rows: names.filter((name) => factsOf(name).of === subject).map((name) => ({ name, does: faultText(name) })),
  }))
}

export function sectionsOfPage(): Section[] {
  return [
    {
      title: 'Controls, as JSON and from this machine only',
      rows: controls.map(({ call, does, fields }) => ({
        name: call.replace(' /', ' /sandbox/'),
        does: fields === undefined ? does : `${does}, such as \`${fields}\``,
      })),
    },
    ...faultSections(),
    { title: 'Options of a fault', rows: faultOptions },
    { title: 'Fields of `match`, which choose what a fault applies to', rows: matchFields },
  ]
}

function faultText(name: FaultName): string {
  const { does, options = [] } = factsOf(name)
  return options.length === 0 ? does : `${does} (${options.map((option) => `\`${option}\``).join(', ')})`
}

/** Writes sections for a terminal of 80 columns. */
export const sectionsText = (sections: Section[]): string =>
  sections.map(({ title, rows }) => `${sentence(`${title}:`, WIDTH)}${rowsText(rows)}`).join('\n')

const WIDTH = 80

function rowsText(rows: Row[]): string {
  const width = Math.max(...rows.map(({ name }) => name.length))
  // Beside long names there is no room for a sentence.
  const below = width > WIDTH / 3
  return rows
    .map(({ name, does }) =>
      below
        ? `  ${name}\n${sentence(does, WIDTH, { lead: '      ' })}`
        : sentence(does, WIDTH, { lead: `  ${name.padEnd(width)}  ` }),
    )
    .join('')
}

/** Answers a browser with HTML, whose upper part is the panel for people. Answers any other client with text. */
export function frontPage(parts: PanelParts): Router {
  const sections = sectionsOfPage()
  const exampleAt = ({ socket: { localPort } }: Request) => exampleOf(`http://127.0.0.1:${localPort}`)
  const pageOf = (request: Request, panel: Html): string =>
    `${html`${HEAD}
<header class="quaybar"><a class="brand" href="/">Quayside sandbox</a><p class="quiet">No real money moves here.</p>${parts.demo && html`<a href="${parts.demo.consoleUrl}">Console</a>`}<span id="live" role="status">as of <time>${new Date(parts.now()).toISOString().slice(11, 19)}</time> UTC</span></header>
<main id="main">
${panel}
<section class="stack"><h2 class="quay">From a terminal</h2><p>${ABOUT}</p><p>${SET_ONE}</p>
<pre tabindex="0">${exampleAt(request)}</pre>
<details class="more"><summary>All controls, faults and options</summary><pre tabindex="0">${sectionsText(sections)}</pre></details></section>
<footer><p>Times are UTC. Faults end with the process of the sandbox.</p></footer>
</main>
`}`
  const panel = createPanel(parts, pageOf)
  return Router()
    .all(['/', '/sandbox'], (_request, response, next) => {
      response.set('content-security-policy', POLICY)
      next()
    })
    .use(panel.routes)
    .get('/panel.css', (_request, response) => void response.type('css').send(STYLE))
    .get('/panel.js', (_request, response) => void response.type('js').send(SCRIPT))
    .get(['/', '/sandbox'], async (request, response) => {
      if (request.accepts(['text', 'html']) === 'html') {
        response.type('html').send(pageOf(request, await panel.of(request)))
      } else response.type('text').send(`${textLead}${exampleAt(request)}\n${sectionsText(sections)}`)
    })
}

const ABOUT =
  'The sandbox of Quayside: a supplier to try things on. Its Reseller API is under /v1, its controls are under /sandbox.'
const SET_ONE = 'Set a fault, such as a lost answer to the next order, by one of:'
const textLead = `${sentence(ABOUT, WIDTH)}\n${sentence(SET_ONE, WIDTH)}\n`

const exampleOf = (origin: string): string => `  npx quayside sandbox fault set answer-lost --url ${origin}
  curl -s ${origin}/sandbox/faults \\
    -H 'content-type: application/json' -d '{"fault":"answer-lost"}'
`

const POLICY =
  "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

/** The page looks as the console does. Its own rules follow. */
const STYLE = ['../console/console.css', 'panel.css']
  .map((file) => readFileSync(new URL(file, import.meta.url), 'utf8'))
  .join('\n')

/** Reads the page again, more often while an order is under way, and swaps in what changed while no person uses that part. */
const SCRIPT = `const live = document.getElementById('live')
async function read() {
  try {
    const answer = await fetch(location.href, { headers: { accept: 'text/html' }, signal: AbortSignal.timeout(5000) })
    const page = new DOMParser().parseFromString(await answer.text(), 'text/html')
    for (const id of ['heading', 'stage', 'seen', 'now', 'ledger']) {
      const shown = document.getElementById(id), next = page.getElementById(id)
      for (const details of shown?.querySelectorAll('details[open]') ?? []) next.querySelector('#' + details.id)?.setAttribute('open', '')
      if (shown && next && !shown.contains(document.activeElement) && shown.innerHTML !== next.innerHTML)
        shown.replaceChildren(...next.childNodes)
    }
    live.textContent = 'live'
    live.className = 'is-done'
  } catch {
    live.textContent = 'The sandbox does not answer.'
    live.className = 'is-stop'
  }
  setTimeout(read, document.querySelector('[data-moves]') && !document.hidden ? 500 : 3000)
}
setTimeout(read, 500)
`

const HEAD = html`<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>The sandbox of Quayside</title>
<link rel="stylesheet" href="/panel.css">
<script type="module" src="/panel.js"></script>
<a class="skip" href="#main">Skip to the page</a>`
