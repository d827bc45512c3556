/** The page at the sandbox's own address: what one can do with it, made from the tables that it runs on. */
import type { RequestHandler } from 'express'
import { sentence } from '../domain/text-layout.ts'
import { controls } from './control-table.ts'
import { type FaultName, factsOf, faultOptions, faultSubjects, faultTable, matchFields } from './faults.ts'

interface Row {
  name: string
  does: string
}

interface Section {
  title: string
  rows: Row[]
}

/** The faults by what they apply to. */
export function faultSections(): Section[] {
  const names = Object.keys(faultTable) as FaultName[]
  return Object.entries(faultSubjects).map(([subject, { title }]) => ({
    title,
    rows: names.filter((name) => factsOf(name).of === subject).map((name) => ({ name, does: faultText(name) })),
  }))
}

/** Everything that the controls take. */
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

/** What a fault does, and the options that it reads. */
function faultText(name: FaultName): string {
  const { does, options = [] } = factsOf(name)
  return options.length === 0 ? does : `${does} (${options.map((option) => `\`${option}\``).join(', ')})`
}

/** Sections for a terminal of 80 columns. */
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

/** Answers with HTML to a browser, else with text. */
export function frontPage(): RequestHandler {
  const sections = sectionsOfPage()
  return (request, response) => {
    const example = exampleAt(`http://127.0.0.1:${request.socket.localPort}`)
    if (request.accepts(['text', 'html']) === 'html') response.type('html').send(pageHtml(example, sections))
    else response.type('text').send(`${LEADS.map(paragraph).join('')}${example}\n${sectionsText(sections)}`)
  }
}

const LEADS = [
  'The sandbox of Quayside: a supplier to try things on. Its Reseller API is under /v1, its controls are under /sandbox.',
  'Set a fault, such as a lost answer to the next order, by one of:',
]

const paragraph = (text: string): string => `${sentence(text, WIDTH)}\n`

const exampleAt = (origin: string): string => `  npx quayside sandbox fault set answer-lost --url ${origin}
  curl -s ${origin}/sandbox/faults \\
    -H 'content-type: application/json' -d '{"fault":"answer-lost"}'
`

function pageHtml(example: string, sections: Section[]): string {
  const tables = sections.map(({ title, rows }) => {
    const lines = rows.map(({ name, does }) => `<tr><td><code>${html(name)}</code><td>${html(does)}`)
    return `<h2>${html(title)}</h2>\n<table>\n${lines.join('\n')}\n</table>`
  })
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>The sandbox of Quayside</title>
<style>
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem }
h2 { font-size: 1.1rem; margin: 2rem 0 .5rem }
td { vertical-align: top; padding: .15rem 1rem .15rem 0 }
td:first-child { white-space: nowrap }
pre { overflow-x: auto }
</style>
<h1>The sandbox</h1>
${LEADS.map((text) => `<p>${html(text)}</p>`).join('\n')}
<pre>${html(example)}</pre>
${tables.join('\n')}
`
}

/** Text as HTML; what is between backticks is code. */
const html = (text: string): string =>
  text
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('"', '&quot;')
    .replaceAll(/`([^`]+)`/g, '<code>$1</code>')
