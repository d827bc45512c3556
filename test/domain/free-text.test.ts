import { describe, expect, test } from 'vitest'
import { beginsWords, meant, plainText, typedText, withoutKeys } from '../../src/domain/free-text.ts'
import { Secret } from '../../src/secret.ts'
import { errorAnswer } from '../../src/supplier/records.ts'
import { HOUR, known, MINUTE } from '../support/reviews.ts'
import { defaultDialect, first, openTestApp } from '../support/test-app.ts'

describe('what a supplier writes for people', () => {
  test.each([
    ['ABCDE-12345-FGHIJ'],
    ['ABCD-EFGH-JKLM'],
    ['abcd1-efgh2-jklm3'],
    ['1234-5678-9012-3456'],
    ['A1B2C3D4E5F6G7H8'],
    ['a1b2c3d4e5f6a7b8c9d0'],
    ['1234567890123456'],
    ['ABCDEF12-GHIJKL34'],
    ['0b5e1c1e-3d5a-4f7e-9a54-1f2d3c4b5a69'],
  ])('loses a word that may be a licence key: %s', (key) => {
    expect(withoutKeys(`the key ${key} was revoked`)).toBe('the key [removed] was revoked')
    expect(withoutKeys(`"${key}",${key}.`)).toBe('"[removed]",[removed].')
  })

  test.each([
    ['The provider could not fulfil the order.'],
    ['out_of_stock'],
    [
      'Product is out-of-stock since 2026-11-21T16:07:09Z, 2-factor-authentication required; unauthorisedredistribution',
    ],
    ['auto-generated-message: price is 12.99 EUR, limit 5000'],
    ['Mögliche Überschreitung der Bestellmenge'],
    [''],
  ])('is kept where it is words: %s', (text) => expect(withoutKeys(text)).toBe(text))

  test('loses the keys of its order whatever they look like, in either case', () => {
    const keys = ['ab (1)', 'ab (1)+', 'Wort', 'x']
    expect(withoutKeys('AB (1)+ and ab (1) and WORT, x', keys)).toBe('[removed] and [removed] and [removed], x')
  })

  test('loses a key in a refusal that would be cut in half', () => {
    const message = `${'a '.repeat(245)}ABCDE-12345-FGHIJ`
    const answer = errorAnswer({ success: false, error: { code: 'no', message } }, defaultDialect())
    expect(answer?.message).toContain('a [removed')
    expect(answer?.message).not.toContain('ABCDE')
  })
})

describe('an order that fails after some of its keys came', () => {
  async function openPart() {
    const app = await openTestApp()
    app.sandbox.faults.add({ fault: 'partial-keys', first: 1, status: 'open', delayMs: 20 * HOUR })
    return app
  }

  test('keeps no licence key in its failure message, though the supplier quotes one', async () => {
    const app = await openPart()
    const orderId = await app.buy('1001', { quantity: 3 })
    await app.pass(MINUTE)
    const key = first([...app.shop.keys().values()].flat())
    app.sandbox.world.orders.fail(first(known(app)), `key ${key} was revoked by the publisher`)
    await app.pass(20 * MINUTE)
    expect((await app.purchase(orderId)).failureMessage).toBe('key [removed] was revoked by the publisher')
    expect(app.lines.filter((line) => line.includes(key))).toEqual([])
  })

  test('keeps none that is a word, and that the order no longer lists', async () => {
    const app = await openPart()
    const { order } = app.supplier
    let keys = [new Secret('Wintergarten')]
    app.supplier.order = async (id) => {
      const read = await order(id)
      return read && { ...read, keys }
    }
    // A process uses the supplier of its start.
    await app.restart()
    const orderId = await app.buy('1001', { quantity: 3 })
    await app.pass(MINUTE)
    expect([...app.shop.keys().values()].flat()).toEqual(['Wintergarten'])
    keys = []
    app.sandbox.world.orders.fail(first(known(app)), 'the key Wintergarten was revoked')
    await app.pass(20 * MINUTE)
    expect((await app.purchase(orderId)).failureMessage).toBe('the key [removed] was revoked')
  })
})

describe('a description', () => {
  test.each([
    ['Two lines,\r\nno HTML.', 'Two lines,\nno HTML.'],
    ['a < b and c > d & e', 'a < b and c > d & e'],
    ['<h2>Office</h2><ul><li>For 1&nbsp;PC</li><li>R&amp;D &#8364;&#x20AC;</li></ul>', 'Office\n\nFor 1 PC\n\nR&D €€'],
    ['<p class="x">One<br/>two</p>\n\n\n<p>three</p>', 'One\ntwo\n\nthree'],
    ['<b>bold</b>ly <a href="https://a.example/?x=1">here</a>', 'boldly here'],
    ['before<style>p { color: red }</style><script>if (a<b) alert("</p>")</script> after', 'before after'],
    ['kept <script>alert(1)', 'kept'],
    ['<!-- hidden -->seen<?xml version="1.0"?>', 'seen'],
    ['&lt;b&gt; is a tag, &unknown; and &constructor; are not', '<b> is a tag, &unknown; and &constructor; are not'],
    ['bell\u0007, null&#0;, half \ud83d&#xd83d;, &#9999999;', 'bell, null, half \ufffd\ufffd, &#9999999;'],
    ['  \n <p> </p> ', ''],
  ])('%j is the plain text %j', (text, shown) => {
    expect(plainText(text, 1_000)).toBe(shown)
  })

  test('is cut at its longest length, between characters and without a blank at its end', () => {
    expect(plainText('<i>abc</i> def', 4)).toBe('abc')
    expect(plainText('abc😀', 4)).toBe('abc')
    expect(plainText('abc😀', 5)).toBe('abc😀')
  })

  test.each(['<a', '<script>', '<!--', '&#1', '<b ', ' \n', '\r', '<a-a'])(
    'of a million characters of %j takes no longer than it is long',
    (piece) => {
      const text = piece.repeat(1_000_000 / piece.length)
      const startedAt = performance.now()
      plainText(text, 10_000)
      expect(performance.now() - startedAt).toBeLessThan(5_000)
    },
  )
})

describe('what a person types', () => {
  test('is looked for without what is invisible, and not beyond its greatest length', () => {
    expect(typedText(' \u200b#1042\u202e ')).toBe('#1042')
    expect(typedText('1\u00000\n42')).toBe('1 0 42')
    expect(typedText('👩‍👩‍👧 x')).toBe('👩‍👩‍👧 x')
    expect([...typedText('😀'.repeat(300))]).toHaveLength(200)
    expect(typedText('ab  c', 4)).toBe('ab')
    expect(typedText('\u200b\u0000')).toBe('')
  })

  test('names what has a word for each of its words', () => {
    expect(beginsWords('Stop all buying freeze', 'STOP fre')).toBe(true)
    expect(beginsWords('Stop all buying freeze', 'stop selling')).toBe(false)
    expect(beginsWords('Stop all buying', 'top')).toBe(false)
  })

  test('means what is called exactly so, else the only thing that it finds', () => {
    const [long, exact, other] = [{ name: '#1042' }, { name: '#104' }, { name: 'x', otherName: 'SKU-1' }]
    expect(meant([long, exact], '104')).toBe(exact)
    expect(meant([long, other], 'sku-1')).toBe(other)
    expect(meant([long], '10')).toBe(long)
    expect(meant([long, exact], '10')).toBeUndefined()
    expect(meant([exact, { name: '104' }], '#104')).toBeUndefined()
    expect(meant([], '10')).toBeUndefined()
  })
})
