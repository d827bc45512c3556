/** What a customer reads of how a key is redeemed: the merchant's text, and nothing that it should not be able to do. */
import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { configShape } from '../../src/config/config.ts'
import { redeemText } from '../../src/keys/page.ts'
import { openKeyPage } from '../support/key-page.ts'

const MINUTE = 60_000
const game = { productId: 'prd-1', category: 'Games' }
const shown = (text: string | Record<string, string>, language = 'en') => String(redeemText([{ text }], game, language))

describe('the text of a key', () => {
  const all = { text: 'for all' }
  const category = { category: 'Games', text: 'for games' }
  const product = { product: 'prd-1', text: 'for this game' }
  const others = [
    { product: 'prd-2', text: 'x' },
    { category: 'Office', text: 'x' },
    { product: 'prd-1', category: 'Office', text: 'x' },
  ]

  test.each([
    { of: 'its product', texts: [all, category, product], says: '<p>for this game</p>' },
    { of: 'its category', texts: [all, category], says: '<p>for games</p>' },
    { of: 'all', texts: [all], says: '<p>for all</p>' },
  ])('is that of $of, wherever it stands', ({ texts, says }) => {
    expect(String(redeemText([...others, ...texts], game, 'en')).trim()).toBe(says)
    expect(String(redeemText([...texts, ...others].toReversed(), game, 'en')).trim()).toBe(says)
  })

  test('is none where no text is for it', () => {
    expect(redeemText(others, game, 'en')).toBeUndefined()
    expect(redeemText([product, category], undefined, 'en')).toBeUndefined()
    expect(String(redeemText([product, all], undefined, 'en'))).toContain('for all')
  })

  test('is in the language of the store, else in English, else in the first', () => {
    const text = { fr: 'un', en: 'one', de: 'eins', 'de-AT': 'oans' }
    expect(['de-AT', 'de-CH', 'fr', 'it'].map((language) => shown(text, language).trim())).toEqual([
      '<p>oans</p>',
      '<p>eins</p>',
      '<p>un</p>',
      '<p>one</p>',
    ])
    expect(shown({ fr: 'un' }, 'de')).toContain('un')
  })

  test('has lists, emphasis and headings, which are bold lines', () => {
    expect(shown('# Steps\n\n1. Open **it**.\n2. Enter `the key`.')).toBe(
      '<p><b>Steps</b></p><ol>\n<li>Open <strong>it</strong>.</li>\n<li>Enter <code>the key</code>.</li>\n</ol>\n',
    )
  })

  test.each([
    '<script>alert(1)</script>',
    '<img src=x onerror=alert(1)>',
    '![a](http://tracker.example/x.png)',
    '![a](https://tracker.example/x.png)',
    '![a][1]\n\n[1]: https://tracker.example/x.png',
    '[a](javascript:alert(1))',
    '[a](JaVa\tScRiPt:alert(1))',
    '[a](&#106;avascript:alert(1))',
    '[a](data:text/html,<script>alert(1)</script>)',
    '[a](vbscript:x)',
    '[a](//elsewhere.example)',
    '[a](/k/files)',
    '[a](http://elsewhere.example)',
    '<javascript:alert(1)>',
    'http://elsewhere.example and www.elsewhere.example',
    '[a](https://a.example "x\\" onclick=\\"alert(1)")',
    '```html\n<iframe src="https://a.example">\n```',
    '[a](<https://a.example/"onmouseover="alert(1)>)',
    '<!-- --><style>*{display:none}</style>',
  ])('does nothing but to show itself: %s', (text) => {
    const made = shown(text)
    const tags = [...made.matchAll(/<\/?([a-z]+)([^>]*)>/gi)].map(([, tag, attributes]) => `${tag}${attributes}`)
    const harmless =
      /^(p|pre|code( class="language-html")?|a( href="https:\/\/[^" ]*"( title="[^"]*")? rel="noreferrer nofollow")?)$/
    expect(tags.filter((tag) => !harmless.test(tag))).toEqual([])
  })

  test('leads to https and mail, and says nothing of the page there', () => {
    expect(shown('<https://a.example> [b](mailto:b@b.example)')).toBe(
      '<p><a href="https://a.example" rel="noreferrer nofollow">https://a.example</a> <a href="mailto:b@b.example" rel="noreferrer nofollow">b</a></p>\n',
    )
  })
})

test('stands folded under a line whose keys are here, and open under the keys that are shown', async () => {
  const { app, call, open } = await openKeyPage({ shop: { redeem: [{ text: 'Enter it *there*.' }] } })
  expect((await call('GET')).text, 'there is no key to redeem yet').not.toContain('How to redeem')
  await app.pass(MINUTE)
  const text = '<summary>How to redeem</summary><div class="how"><p>Enter it <em>there</em>.</p>'
  expect((await call('GET')).text).toContain(`<details>${text}`)
  expect((await open()).text).toContain(`<details open>${text}`)
})

test('is written as the document shows', () => {
  const page = readFileSync(new URL('../../docs/keys-page.md', import.meta.url), 'utf8')
  const [, example = ''] = /```json\n([\s\S]*?)```/.exec(page) ?? []
  const { redeem } = configShape.shape.keys.parse(JSON.parse(`{${example}}`).keys)
  const says = (offer: { productId: string; category: string }) => String(redeemText(redeem, offer, 'de-AT'))
  expect(says({ productId: 'prd-1042', category: 'Office' })).toContain('<strong>Redeem a code</strong>')
  expect(says({ productId: 'prd-1', category: 'Office' })).toContain('Geben Sie den Schlüssel')
  expect(says({ productId: 'prd-1', category: 'Games' })).toContain('href="mailto:help@shop.example"')
})

test.each([
  { redeem: [{ text: '' }], field: ['redeem', 0, 'text'] },
  { redeem: [{ text: 'x'.repeat(2_001) }], field: ['redeem', 0, 'text'] },
  { redeem: [{ sku: 'A', text: 'x' }], field: ['redeem', 0] },
  { proxies: ['localhost'], field: ['proxies', 0] },
  { proxies: ['10.0.0.0/33'], field: ['proxies', 0] },
  { proxies: ['10.0.0.0/0'], field: ['proxies', 0] },
])('refuses $redeem $proxies in the configuration', ({ field, ...keys }) => {
  const { error } = configShape.shape.keys.safeParse(keys)
  expect(error?.issues.map(({ path }) => path)).toEqual([field])
  const fine = { redeem: [{ text: { en: 'x', 'de-AT': 'y' } }], proxies: ['127.0.0.1', '10.0.0.0/8', 'fd00::/8'] }
  expect(configShape.shape.keys.parse(fine)).toMatchObject(fine)
})
