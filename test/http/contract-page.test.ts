import { describe, expect, test } from 'vitest'
import { openApi } from '../support/api-world.ts'

interface Documented {
  paths: Record<string, Record<string, { operationId: string; summary: string }>>
  webhooks: Record<string, { post: { operationId: string } }>
  components: { schemas: Record<string, { properties?: object }> }
}

async function openPage() {
  const { url } = await openApi()
  const address = `${url}/api/v1/docs`
  const answer = await fetch(address)
  const html = await answer.text()
  const document = (await (await fetch(`${url}/api/v1/openapi.json`)).json()) as Documented
  return { url, address, answer, html, document }
}

const all = (html: string, pattern: RegExp) => [...html.matchAll(pattern)].map(([, found = '']) => found)

describe('the page about the API', () => {
  test('is there for everybody, without a token', async () => {
    const { answer, html } = await openPage()
    expect([answer.status, answer.headers.get('content-type')]).toEqual([200, 'text/html; charset=utf-8'])
    expect(html).toContain('<title>Quayside API</title>')
  })

  test('begins with the guide, and has each operation, callback and schema of the document', async () => {
    const { html, document } = await openPage()
    expect(html).toContain('<h2 id="placing-an-order">Placing an order</h2>')
    const anchors = all(html, / id="([^"]+)"/g)
    const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
      Object.entries(methods).map(([method, one]) => ({ ...one, path, method: method.toUpperCase() })),
    )
    expect(operations.length).toBeGreaterThan(80)
    for (const { method, path, operationId } of operations) {
      expect(html, path).toContain(`<b class="tag">${method}</b> <code>${path}</code>`)
      expect(anchors).toContain(operationId)
    }
    expect(anchors).toEqual(
      expect.arrayContaining([
        ...Object.values(document.webhooks).map(({ post }) => post.operationId),
        ...Object.keys(document.components.schemas).map((name) => `/components/schemas/${name}`),
      ]),
    )
    expect(html).toMatch(/<dt><code>lines\[\]\.\w+<\/code>|<dt><code>lines<\/code>/)
    expect(html).toContain('Asks for a store token with the scope <code>orders</code>.')
    expect(html).toContain('Asks for no token.')
  })

  test('has one place for each of its links', async () => {
    const { html } = await openPage()
    const anchors = all(html, / id="([^"]+)"/g)
    expect(anchors.filter((anchor, at) => anchors.indexOf(anchor) !== at)).toEqual([])
    const links = all(html, / href="#([^"]+)"/g)
    expect(links).toContain('/components/schemas/ErrorCode')
    expect(links.filter((link) => !anchors.includes(link))).toEqual([])
  })

  test('shows no text of the document as markup', async () => {
    const { html } = await openPage()
    expect(html).toContain('Authorization: Bearer &lt;token&gt;')
    expect(html).not.toContain('<token>')
  })

  test('loads nothing but its style sheet, which is kept for good while it stays the same', async () => {
    const { address, answer, html } = await openPage()
    expect(all(html, /(?:src|<link [^>]*href)="([^"]+)"/g)).toEqual([
      'data:,',
      expect.stringMatching(/^docs\/\w+\.css$/),
    ])
    expect(html).not.toMatch(/<script|<style|<form|<img|<iframe|style=|\son\w+=/)
    const style = await fetch(new URL(all(html, /stylesheet" href="([^"]+)"/g)[0] ?? '', address))
    expect([style.status, style.headers.get('content-type'), style.headers.get('cache-control')]).toEqual([
      200,
      'text/css; charset=utf-8',
      'public, max-age=31536000, immutable',
    ])
    expect(await style.text()).not.toMatch(/url\(|@import/)
    expect(answer.headers.get('cache-control')).toBe('no-cache')
  })

  test('carries a policy under which no script runs, nothing is sent, and nothing of a stranger is shown', async () => {
    const { answer } = await openPage()
    expect(answer.headers.get('content-security-policy')).toBe(
      "default-src 'none'; style-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    )
    expect(answer.headers.get('referrer-policy')).toBe('no-referrer')
  })

  test('serves nothing else beside it', async () => {
    const { url, address } = await openPage()
    for (const name of ['docs/', 'docs/console.css', 'docs/..%2fpackage.json', 'docs/package.json']) {
      expect((await fetch(`${url}/api/v1/${name}`)).status, name).toBe(404)
    }
    expect((await fetch(address, { method: 'POST' })).status).toBe(405)
  })
})
