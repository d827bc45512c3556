/** The page at the sandbox's own address. It shows what the sandbox can do, from the tables that the sandbox runs on. */
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
  const docsHtml = sections.map(
    ({ title, rows }) => html`<h2>${withCode(title)}</h2>
<table tabindex="0">${rows.map(
      ({ name, does }) => html`
<tr><td><code>${name}</code><td>${withCode(does)}`,
    )}</table>`,
  )
  const exampleAt = ({ socket: { localPort } }: Request) => exampleOf(`http://127.0.0.1:${localPort}`)
  const pageOf = (request: Request, panel: Html): string =>
    `${html`${HEAD}${panel}
<hr>
<p>${SET_ONE}</p>
<pre tabindex="0">${exampleAt(request)}</pre>
${docsHtml}
</main>
`}`
  const panel = createPanel(parts, pageOf)
  return Router()
    .use(panel.routes)
    .get(['/', '/sandbox'], (request, response) => {
      if (request.accepts(['text', 'html']) === 'html') response.type('html').send(pageOf(request, panel.of(request)))
      else response.type('text').send(`${textLead}${exampleAt(request)}\n${sectionsText(sections)}`)
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

/** The script reads the page again every three seconds, and swaps in the new state of each part while no person uses that part. */
const HEAD = html`<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<meta name="color-scheme" content="light dark">
<title>The sandbox of Quayside</title>
<style>
body { font: 16px/1.5 system-ui, sans-serif; max-width: 72rem; margin: 2rem auto; padding: 0 1rem }
h2 { font-size: 1.1rem; margin: 2rem 0 .5rem }
table { display: block; overflow-x: auto; border-spacing: 0 }
td, th { vertical-align: top; text-align: left; padding: .15rem 1rem .15rem 0 }
td:first-child, th { white-space: nowrap }
.number { text-align: right; font-variant-numeric: tabular-nums }
pre { overflow-x: auto }
button, input { font: inherit; padding: .2rem .6rem }
.buttons { display: grid; grid-template-columns: repeat(auto-fill, minmax(14rem, 1fr)); gap: .5rem; padding: 0; list-style: none }
.buttons button { width: 100%; height: 100%; text-align: left }
[role=status] { border-left: .3rem solid; padding: .3rem .8rem }
</style>
<script type="module">
setInterval(async () => {
  const text = await (await fetch(location.pathname, { headers: { accept: 'text/html' } })).text()
  const page = new DOMParser().parseFromString(text, 'text/html')
  for (const id of ['now', 'ledger']) {
    const shown = document.getElementById(id)
    if (shown && !shown.contains(document.activeElement)) shown.replaceWith(page.getElementById(id))
  }
}, 3000)
</script>
<main>
<h1>The sandbox</h1>
<p>${ABOUT}</p>`

const withCode = (text: string) =>
  text.split('`').map((piece, index) => (index % 2 === 0 ? piece : html`<code>${piece}</code>`))
