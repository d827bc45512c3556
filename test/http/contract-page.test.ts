import { describe, expect, test } from 'vitest'
import { openApi } from '../support/api-world.ts'

async function openPage() {
  const { url } = await openApi()
  const address = `${url}/api/v1/docs`
  const answer = await fetch(address)
  const html = await answer.text()
  const sources = [...html.matchAll(/(?:src|href)="([^"]+)"/g)].map(([, source = '']) => source)
  const files = sources.filter((source) => source !== 'data:,')
  return { url, address, answer, html, files }
}

describe('the page about the API', () => {
  test('is there for everybody, without a token', async () => {
    const { answer, html } = await openPage()
    expect([answer.status, answer.headers.get('content-type')]).toEqual([200, 'text/html; charset=utf-8'])
    expect(html).toContain('<title>Quayside API</title>')
  })

  test('gets everything from the service itself', async () => {
    const { address, html, files } = await openPage()
    expect(html).not.toMatch(/https?:|"\/\//)
    const types: (string | null)[] = []
    for (const file of files) {
      const part = await fetch(new URL(file, address))
      expect(part.status, file).toBe(200)
      expect((await part.text()).length).toBeGreaterThan(0)
      types.push(part.headers.get('content-type'))
    }
    expect(types.map((type) => type?.split(';')[0])).toEqual([
      'text/css',
      'application/json',
      'text/javascript',
      'text/javascript',
    ])
  })

  test('carries a policy under which no script or style of its own text runs, and none of a stranger', async () => {
    const { answer, html } = await openPage()
    const policy = answer.headers.get('content-security-policy') ?? ''
    expect(policy).toMatch(/^default-src 'none'; script-src 'self'; style-src 'self';/)
    expect(policy).toContain("frame-ancestors 'none'")
    expect(policy).not.toMatch(/unsafe|https?:|\*/)
    expect(html).not.toMatch(/<script>|<style|style=|\son\w+=/)
  })

  test('sends no request of the API and shows the address to no validator', async () => {
    const { address } = await openPage()
    const start = await (await fetch(`${address}/start.js`)).text()
    expect(start).toContain('supportedSubmitMethods: []')
    expect(start).toContain('validatorUrl: null')
  })

  test('keeps the files of the package for good and its own for no time', async () => {
    const { address, files } = await openPage()
    const kept = async (file: string) => (await fetch(new URL(file, address))).headers.get('cache-control')
    const packaged = files.filter((file) => /\d+\.\d+\.\d+\//.test(file))
    expect(packaged).toHaveLength(2)
    for (const file of packaged) expect(await kept(file)).toBe('public, max-age=31536000, immutable')
    for (const file of ['docs', 'docs/start.js']) expect(await kept(file)).toBe('no-cache')
  })

  test('serves nothing else of the package', async () => {
    const { url, address, files } = await openPage()
    const folder = files.find((file) => file.endsWith('.css'))?.replace(/[^/]+$/, '')
    for (const name of [
      'package.json',
      'index.html',
      'swagger-ui-bundle.js.map',
      '',
      '..%2fpackage.json',
      '%2e%2e%2f',
    ]) {
      expect((await fetch(`${url}/api/v1/${folder}${name}`)).status, name).toBe(404)
    }
    expect((await fetch(`${address}/`)).status).toBe(404)
    expect((await fetch(address, { method: 'POST' })).status).toBe(405)
  })
})
