import { Router } from 'express'
import type MarkdownIt from 'markdown-it'
import { Html, html, type Piece } from '../domain/html.ts'
import { keptFile, methodNotAllowed } from './answers.ts'

/**
 * Serves `/docs`: the OpenAPI document as a page for people. The page needs neither a token nor scripts, and sends no requests to
 * the API, because a wrong click could buy something.
 *
 * @param document returns the document as JSON. The page is made at the first request, and kept as text; one that fails is made again
 */
export function referenceRouter(document: () => string): Router {
  const router = Router({ strict: true, caseSensitive: true })
  let page: Promise<string> | undefined
  router.get('/docs', async (_request, response) => {
    page ??= import('markdown-it')
      .then(({ default: Markdown }) => pageOf(JSON.parse(document()) as Document, new Markdown({ html: false })))
      .catch((error: unknown) => {
        page = undefined
        throw error
      })
    response.set({ 'content-security-policy': policy, 'referrer-policy': 'no-referrer', 'x-frame-options': 'DENY' })
    response.set('cache-control', 'no-cache').type('html')
    response.send(await page)
  })
  router.get(`/${stylePath}`, style.send)
  router.all(['/docs', `/${stylePath}`], methodNotAllowed('GET, HEAD'))
  return router
}

/** The style sheet of the console, so that both look alike. */
const style = keptFile(new URL('../console/console.css', import.meta.url), 'css')
const stylePath = `docs/${style.digest}.css`

/** Allows our own style sheet and the empty icon, and no script at all. */
const policy =
  "default-src 'none'; style-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

/** The parts of a JSON schema that the document has. */
interface Shape {
  $ref?: string
  type?: string | string[]
  description?: string
  enum?: (string | null)[]
  items?: Shape
  anyOf?: Shape[]
  properties?: Record<string, Shape>
  required?: string[]
  additionalProperties?: Shape | false
  examples?: unknown[]
  format?: string
}

interface Answer {
  $ref?: string
  description?: string
  content?: Record<string, { schema: Shape }>
}

interface DocumentedOperation {
  operationId: string
  summary: string
  description?: string
  tags?: string[]
  parameters?: { name: string; in: string; required?: boolean; description?: string; schema: Shape }[]
  requestBody?: Answer
  responses: Record<string, Answer>
}

interface Document {
  info: { description: string }
  tags: { name: string; description: string }[]
  paths: Record<string, Record<string, DocumentedOperation>>
  webhooks: Record<string, { post: DocumentedOperation }>
  components: { schemas: Record<string, Shape>; responses: Record<string, Answer> }
}

/** Addresses are relative, so that the page works behind a proxy that adds a path before ours. */
function pageOf(
  { info, tags, paths, webhooks, components }: Document,
  markdown: InstanceType<typeof MarkdownIt>,
): string {
  const text = (source = ''): Html => new Html(markdown.renderInline(source))
  const headings: string[] = []
  const { rules } = markdown.renderer
  rules.heading_open = (tokens, index) => {
    const heading = tokens[index + 1]?.content ?? ''
    headings.push(heading)
    return `<h2 id="${anchorOf(heading)}">`
  }
  // What is wider than a phone is moved by touch, or by the keys of a reader who can focus it.
  rules.fence = (tokens, index) => `<pre tabindex="0">${html`<code>${tokens[index]?.content}</code>`}</pre>`
  rules.table_open = () => '<div class="scroll" tabindex="0"><table>'
  rules.table_close = () => '</table></div>'
  const guide = new Html(markdown.render(info.description))

  const field = (name: string, type: Piece, about: Piece) =>
    html`<div><dt><code>${name}</code> <span>${type}</span></dt><dd>${about}</dd></div>\n`
  const property = (path: string, shape: Shape, isRequired: boolean): Html =>
    field(path, [typeOf(shape), limitsOf(shape), !isRequired && ', optional'], text(shape.description))
  const properties = ({ properties: inside = {}, required = [] }: Shape, before = ''): Html[] =>
    Object.entries(inside).flatMap(([name, shape]) => [
      property(`${before}${name}`, shape, required.includes(name)),
      ...properties(shape.items ?? shape, `${before}${name}${shape.items ? '[]' : ''}.`),
    ])
  const list = (title: string, rows: Html[]) =>
    rows.length > 0 && html`<h3>${title}</h3><dl class="fields">${rows}</dl>`

  const bodyOf = ({ content = {} }: Answer): Html[] =>
    Object.entries(content).map(([type, { schema }]) => {
      const inside = schema.$ref ? (components.schemas[nameOf(schema.$ref)] ?? {}) : schema
      return html`<h3>Body</h3><p>${type}: ${typeOf(schema)}</p><dl class="fields">${properties(inside)}</dl>`
    })
  const answer = ([status, given]: [string, Answer]): Html => {
    const { description, content = {} } = given.$ref ? (components.responses[nameOf(given.$ref)] ?? {}) : given
    const bodies = Object.entries(content).map(([type, { schema }]) => (schema.$ref ? typeOf(schema) : type))
    return field(status, separated(bodies, ' or '), text(description))
  }
  const operation = (method: string, path: string, one: DocumentedOperation): Html => html`<details class="act">
<summary><span><b class="tag">${method}</b> <code>${path}</code> <span class="about">${text(one.summary)}</span></span></summary>
<div id="${one.operationId}"><p>${one.description ? text(one.description) : method === 'Callback' ? 'Sent to the address of your store.' : 'Asks for no token.'}</p>
${list(
  'Parameters',
  (one.parameters ?? []).map(({ name, in: place, required = false, description, schema }) =>
    property(name, { ...schema, description: `In the ${place}. ${description ?? ''}` }, required),
  ),
)}${one.requestBody && bodyOf(one.requestBody)}${list('Answers', Object.entries(one.responses).map(answer))}</div>
</details>
`
  const operations = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, one]) => ({ path, method: method.toUpperCase(), one })),
  )
  const groups = tags.map(({ name, description }) => ({
    name,
    description,
    inside: operations.filter(({ one }) => one.tags?.includes(name)),
  }))
  const callbacks = Object.entries(webhooks).map(([path, { post: one }]) => ({ path, method: 'Callback', one }))
  groups.push({ name: 'Callbacks', description: 'What Quayside sends to the address of a store.', inside: callbacks })

  const schema = ([name, shape]: [string, Shape]): Html => html`<section class="stack" id="/components/schemas/${name}">
<h3>${name}</h3>${shape.description && new Html(markdown.render(shape.description))}
${shape.properties ? html`<dl class="fields">${properties(shape)}</dl>` : html`<p>${typeOf(shape)}${limitsOf(shape)}</p>`}
${typeof shape.examples?.[0] === 'object' && html`<pre tabindex="0"><code>${JSON.stringify(shape.examples[0], undefined, 2)}</code></pre>`}</section>
`
  const link = (to: string, words: string) => html`<li><a href="#${to}">${words}</a></li>`
  return `${html`<!doctype html>
<html lang="en" id="top">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Quayside API</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="${stylePath}">
</head>
<body class="reference">
<a class="skip" href="#main">Skip to the page</a>
<div class="pier">
<header><a class="brand" href="#top">Quayside API</a><a class="open" href="#menu">Contents</a></header>
<nav id="menu" aria-label="Contents">
<a class="shut" href="#top">Close</a>
<div><h2>Guide</h2><ul>${headings.map((heading) => link(anchorOf(heading), heading))}</ul></div>
<div><h2>Operations</h2>${groups.map(({ name, inside }) => html`<details><summary>${name}</summary><ul>${inside.map(({ path, one }) => link(one.operationId, path.startsWith('/') ? one.operationId : path))}</ul></details>`)}</div>
<ul>${link('schemas', 'Schemas')}</ul>
</nav>
</div>
<main id="main">
<header class="stack"><h1>Quayside API</h1><p class="quiet">For machines: <a href="openapi.json">openapi.json</a>, in OpenAPI 3.1. All paths are below <code>/api/v1</code>.</p></header>
<article class="stack">${guide}</article>
${groups.map(({ name, description, inside }) => html`<section class="quay" id="${name}"><h2>${name}</h2><p class="quiet">${description}</p>${inside.map(({ method, path, one }) => operation(method, path, one))}</section>`)}
<section class="quay stack wide" id="schemas"><h2>Schemas</h2>${Object.entries(components.schemas).map(schema)}</section>
</main>
</body>
</html>
`}`
}

const anchorOf = (heading: string): string => heading.toLowerCase().replaceAll(' ', '-')

const nameOf = (reference: string): string => reference.slice(reference.lastIndexOf('/') + 1)

const separated = (pieces: Piece[], by: string): Piece =>
  pieces.flatMap((piece, at) => (at === 0 ? [piece] : [by, piece]))

/** A component has its reference as its anchor. */
function typeOf({ $ref, type, enum: words, items, anyOf, additionalProperties: values, format }: Shape): Piece {
  if ($ref) return html`<a href="${$ref}">${nameOf($ref)}</a>`
  if (words)
    return separated(
      words.map((word) => html`<code>${word ?? 'null'}</code>`),
      ' or ',
    )
  if (anyOf) return separated(anyOf.map(typeOf), ' or ')
  const named = (one = 'any value'): Piece => {
    if (one === 'array') return ['list of ', typeOf(items ?? {})]
    if (one === 'object' && values) return ['object of ', typeOf(values)]
    return one === 'string' ? (format ?? one) : one
  }
  return separated([type].flat().map(named), ' or ')
}

const limits = {
  minimum: 'at least',
  maximum: 'at most',
  maxItems: 'entries at most',
  default: 'default',
  examples: 'such as',
}

/** Lengths and patterns are left out: the descriptions say them in words. */
const limitsOf = (shape: Shape): Piece =>
  Object.entries(limits).flatMap(([name, words]) => {
    const limit = [(shape as Record<string, unknown>)[name]].flat()[0]
    return limit === undefined || typeof limit === 'object' ? [] : [html`, ${words} <code>${String(limit)}</code>`]
  })
