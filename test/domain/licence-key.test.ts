import { describe, expect, test } from 'vitest'
import { isTextKey, normalKey } from '../../src/domain/licence-key.ts'

const base64 = (...bytes: (number | string)[]): string =>
  Buffer.concat(bytes.map((one) => (typeof one === 'string' ? Buffer.from(one, 'latin1') : Buffer.of(one)))).toString(
    'base64',
  )
const png = base64('\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x19\0\0\0\x19\b\x06')

describe('the normal form of a key', () => {
  test.each([
    ['AAAA-BBBB', 'AAAA-BBBB'],
    [' AAAA-BBBB\t', 'AAAA-BBBB'],
    ['\uFEFFAAAA-BBBB\u00A0', 'AAAA-BBBB'],
    ['user: one\r\npass: two\r\n', 'user: one\npass: two'],
    ['user: one\rpass: two', 'user: one\npass: two'],
    ['user: one  \n  pass: two', 'user: one\n  pass: two'],
    ['a b  c', 'a b  c'],
    [' \r\n ', ''],
  ])('of %j is %j, and stays as it is', (came, form) => {
    expect(normalKey(came)).toBe(form)
    expect(normalKey(form)).toBe(form)
  })
})

describe('a key that a customer can use as it is', () => {
  test.each([
    ['five groups', 'TW8XQ-9FBJK-2M4NP-7RSTV-WX6YZ'],
    ['a user and a password', 'user: one\npass: two'],
    ['an address', 'https://example.org/redeem?code=AB12&lang=de'],
    ['digits', '0123456789012345678901234'],
    ['a word in base64', base64('this is a key in base64')],
    ['what only begins like a picture', 'BMWX-PNG0-GIF8'],
    ['letters of base64 that are no whole number of bytes', 'iVBOR'],
    ['512 characters', 'x'.repeat(512)],
    ['a text about data', 'data: 5 GB of it'],
  ])('%s', (_, key) => {
    expect(isTextKey(key)).toBe(true)
  })
})

describe('a key that is no text', () => {
  test.each([
    ['a picture in base64', png],
    ['the same in lines', png.replaceAll(/(.{20})/g, '$1\n').trim()],
    ['the same in the alphabet for addresses', png.replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '')],
    ['a data URL', `data:image/png;base64,${png}`],
    ['a data URL in capitals', 'DATA:,hello'],
    ['a JPEG', base64(0xff, 0xd8, 0xff, 0xe0, '\0\x10JFIF')],
    ['a GIF', base64('GIF89a\x19\0\x19\0')],
    ['a WebP', base64('RIFF\x24\0\0\0WEBPVP8 ')],
    ['a bitmap', base64('BM\x46\0\0\0\0\0\0\0\x36\0')],
    ['a PDF', base64('%PDF-1.7\n%')],
    ['an archive', base64('PK\x03\x04\x14\0')],
    ['a compressed file', base64(0x1f, 0x8b, 0x08, 0)],
    ['a drawing', '<svg xmlns="http://www.w3.org/2000/svg"/>'],
    ['513 characters', 'x'.repeat(513)],
    ['nothing', ''],
  ])('%s', (_, key) => {
    expect(isTextKey(key)).toBe(false)
  })
})
