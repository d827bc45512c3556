import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { Html, html, type Piece } from '../../src/domain/html.ts'

const text = (piece: Piece) => html`<p>${piece}</p>`.toString()

describe('the template for markup', () => {
  test('escapes what could end a text, an attribute or an element', () => {
    expect(text(`<script>alert("it's") && 1</script>`)).toBe(
      '<p>&lt;script&gt;alert(&quot;it&#39;s&quot;) &amp;&amp; 1&lt;/script&gt;</p>',
    )
    expect(html`<a href="${'" onclick="x'}">`.toString()).toBe('<a href="&quot; onclick=&quot;x">')
  })

  test('escapes text once, however deep it is in markup and lists', () => {
    const inner = html`<b>${'a & b'}</b>`
    expect(text([inner, ['<i>', [html`${inner}`]]])).toBe('<p><b>a &amp; b</b>&lt;i&gt;<b>a &amp; b</b></p>')
  })

  test.each([
    ['null', null],
    ['undefined', undefined],
    ['true', true],
    ['false', false],
    ['an empty text', ''],
    ['an empty list', []],
  ])('shows nothing for %s', (_, piece) => {
    expect(text(piece)).toBe('<p></p>')
  })

  test.each([0, -1.5, Number.NaN])('shows the number %d', (number) => {
    expect(text(number)).toBe(`<p>${number}</p>`)
  })

  test('takes no object of a stranger for markup, whatever it says of itself', () => {
    const claims = [
      { isEscaped: true, toString: () => '<img src=x>' },
      Object.assign(Object.create(null) as object, { text: '<img src=x>', toString: () => '<img src=x>' }),
      Object.assign(new String('<img src=x>'), { isEscaped: true }),
    ]
    for (const claim of claims) expect(text(claim as unknown as Piece)).toBe('<p>&lt;img src=x&gt;</p>')
    expect(text(new Html('<br>'))).toBe('<p><br></p>')
  })

  test('leaves no sign of markup in any text, and loses nothing of it', () => {
    const entities: Record<string, string> = { amp: '&', lt: '<', gt: '>', quot: '"', '#39': "'" }
    const said = fc.string({ unit: fc.oneof(fc.constantFrom(...`<>&"'`), fc.string({ minLength: 1, maxLength: 1 })) })
    fc.assert(
      fc.property(said, (source) => {
        const shown = html`${source}`.toString()
        expect(shown).not.toMatch(/[<>"']|&(?!(amp|lt|gt|quot|#39);)/)
        expect(shown.replace(/&([^;]+);/g, (_, name: string) => entities[name] ?? '')).toBe(source)
      }),
    )
  })
})
