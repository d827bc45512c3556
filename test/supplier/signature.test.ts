import { createHash, createHmac, type KeyObject } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Dialect } from '../../src/dialect/dialect.ts'
import { Secret } from '../../src/secret.ts'
import { faultOfHeaders, signingKey, verify } from '../../src/supplier/signature.ts'
import { dialect } from '../support/supplier-server.ts'

const text = 'whsec_test_0123456789abcdef0123456789abcdef'
const secret = signingKey(new Secret(text))
const otherSecret = signingKey(new Secret('whsec_other_123456789abcdef0123456789abc'))
const T = '1700000000'
const nowMs = 1_700_000_000_000
const body = Buffer.from('{"type":"order.completed","data":{"id":"ord_1"}}')
const vector = '82a150f3f3d744d4dc2125ea6de5af452036bd229ee109bd7c0ae29c129b8caa'

type Parts = { signature?: string[] | undefined; timestamp?: string[] | undefined; id?: string[] | undefined }

function check(
  { signature, timestamp = [T], id }: Parts,
  more: { body?: Buffer; nowMs?: number; secrets?: KeyObject[]; dialect?: Dialect } = {},
) {
  const headers = { 'x-service-signature': signature, 'x-service-timestamp': timestamp, 'x-service-delivery-id': id }
  return verify({ dialect, secrets: [secret], body, nowMs, ...more, headers })
}

const under = (signature: Partial<Dialect['signature']>): Dialect => ({
  ...dialect,
  signature: { ...dialect.signature, ...signature },
})

/** The MAC over any timestamp text, made without the code under test. */
const mac = (timestamp: string, bytes: Buffer | string = body, key = text, hash = 'sha256') =>
  createHmac(hash, key).update(`${timestamp}.`).update(bytes).digest()
const hex = (...given: Parameters<typeof mac>) => mac(...given).toString('hex')

describe('the signature of a delivery', () => {
  it.each([
    [body.toString(), vector],
    ['', '6ae26e13153cef6fdee7f8f3f98fa44066807ce069cf52d8d2075f0279ebc559'],
    ['{"n":1.0,"u":"\\u001B\\/é"}', 'b908525258f83dab780ed6f40afa47101442b041abe727352be3444ec8cc6e3a'],
  ])('matches the published vector for %s', (payload, signature) => {
    const verified = check({ signature: [signature] }, { body: Buffer.from(payload) })
    expect(verified).toMatchObject({
      valid: true,
      timestampMs: nowMs,
      secretIndex: 0,
      mac: Buffer.from(signature, 'hex'),
    })
  })

  it('is accepted in upper case, as the same bytes', () => {
    const lower = check({ signature: [vector] })
    expect(check({ signature: [vector.toUpperCase()] })).toEqual(lower)
  })

  it.each<[string, string[] | undefined, string]>([
    ['none', undefined, 'missing_signature'],
    ['no line', [], 'missing_signature'],
    ['an empty one', [''], 'malformed'],
    ['another body', [hex(T, '{}')], 'mismatch'],
    ['another secret', [hex(T, body, 'whsec_other')], 'mismatch'],
    ['an empty key', [hex(T, body, '')], 'mismatch'],
    ['the body alone', [createHmac('sha256', text).update(body).digest('hex')], 'mismatch'],
    ['body.timestamp', [createHmac('sha256', text).update(body).update(`.${T}`).digest('hex')], 'mismatch'],
    ['no dot', [createHmac('sha256', text).update(T).update(body).digest('hex')], 'mismatch'],
    ['a colon', [createHmac('sha256', text).update(`${T}:`).update(body).digest('hex')], 'mismatch'],
    ['SHA-1', [hex(T, body, text, 'sha1')], 'malformed'],
    ['SHA-512', [hex(T, body, text, 'sha512')], 'malformed'],
    ['a plain hash', [createHash('sha256').update(text).update(body).digest('hex')], 'mismatch'],
    ['junk after it', [`${vector}zz`], 'malformed'],
    ['one digit more', [`${vector}a`], 'malformed'],
    ['white space', [` ${vector}`], 'malformed'],
    ['a newline', [`${vector}\n`], 'malformed'],
    ['base64 where hex is due', [mac(T).toString('base64')], 'malformed'],
    ['a prefix that is not due', [`v1=${vector}`], 'malformed'],
    ['two lines', [vector, vector], 'malformed'],
    ['valid and junk in two lines', [vector, 'junk'], 'malformed'],
    ['valid and junk joined', [`${vector}, junk`], 'malformed'],
    ['a list', [`${vector},${vector}`], 'malformed'],
    ['ten thousand candidates', [Array(10_000).fill(vector).join(',')], 'malformed'],
    ['punctuation', ['=,='], 'malformed'],
  ])('is refused: %s', (_, signature, reason) => {
    expect(check({ signature })).toEqual({ valid: false, reason })
  })

  it('is refused with any of its bits flipped', () => {
    for (let bit = 0; bit < 256; bit++) {
      const bytes = mac(T)
      bytes[bit >> 3] = (bytes[bit >> 3] ?? 0) ^ (1 << (bit & 7))
      expect(check({ signature: [bytes.toString('hex')] })).toEqual({ valid: false, reason: 'mismatch' })
    }
  })

  it('is refused with any bit of the body flipped', () => {
    for (let bit = 0; bit < body.length * 8; bit++) {
      const bytes = Buffer.from(body)
      bytes[bit >> 3] = (bytes[bit >> 3] ?? 0) ^ (1 << (bit & 7))
      expect(check({ signature: [vector] }, { body: bytes })).toEqual({ valid: false, reason: 'mismatch' })
    }
  })

  it.each(['hex', 'base64', 'base64url'] as const)('is refused when it is cut short, in %s', (encoding) => {
    const layout = under({ encoding })
    for (let length = 0; length < 32; length++) {
      const signature = [mac(T).subarray(0, length).toString(encoding)]
      expect(check({ signature }, { dialect: layout })).toEqual({ valid: false, reason: 'malformed' })
    }
  })

  it('is refused when there is no secret', () => {
    expect(check({ signature: [vector] }, { secrets: [] })).toEqual({ valid: false, reason: 'mismatch' })
  })

  it('verifies under every secret of a rotation and says which it was', () => {
    expect(check({ signature: [vector] }, { secrets: [otherSecret, secret] })).toMatchObject({ secretIndex: 1 })
    expect(check({ signature: [vector] }, { secrets: [secret, otherSecret, secret] })).toMatchObject({ secretIndex: 0 })
  })

  it('never throws on any headers', () => {
    const lines = fc.option(fc.array(fc.oneof(fc.string(), fc.constant(vector), fc.constant(T)), { maxLength: 3 }), {
      nil: undefined,
    })
    const layouts = [
      dialect,
      under({ encoding: 'base64', prefix: 'v1=', timestamp: { in: 'signature', field: 't' } }),
      under({ encoding: 'base64url', prefix: '', timestamp: { in: 'signature', field: 't' } }),
    ]
    fc.assert(
      fc.property(lines, lines, lines, fc.constantFrom(...layouts), (signature, timestamp, id, layout) => {
        const verified = check({ signature, timestamp, id }, { dialect: layout })
        expect(typeof verified.valid).toBe('boolean')
      }),
    )
  })
})

describe('the headers of a delivery', () => {
  it.each<[string, Parts, string | undefined]>([
    ['no signature', { timestamp: [T] }, 'missing_signature'],
    ['no timestamp', { signature: [vector] }, 'missing_timestamp'],
    ['a signature of another form', { signature: ['junk'], timestamp: [T] }, 'malformed'],
    ['two ids', { signature: [vector], timestamp: [T], id: ['a', 'b'] }, 'malformed'],
    ['a signature of the right form', { signature: ['0'.repeat(64)], timestamp: [T] }, undefined],
  ])('are judged without the body: %s', (_, { signature, timestamp, id }, fault) => {
    const headers = { 'x-service-signature': signature, 'x-service-timestamp': timestamp, 'x-service-delivery-id': id }
    expect(faultOfHeaders(dialect, headers)).toBe(fault)
  })
})

describe('other layouts of a signature', () => {
  it.each(['base64', 'base64url'] as const)('has exactly one spelling in %s', (encoding) => {
    const layout = under({ encoding, prefix: 'v1=' })
    const good = mac(T).toString(encoding)
    expect(check({ signature: [`v1=${good}`] }, { dialect: layout })).toMatchObject({ valid: true })
    const spare = good.replace(/.(=?)$/, (_, pad: string) => `${nextOf(good.replace('=', '').at(-1) as string)}${pad}`)
    for (const wrong of [
      ...[good, `v1=${good}AAAA`, `v1=${good} `, `v1= ${good}`, `v1=${good.slice(0, 20)}\n${good.slice(20)}`],
      ...[`v1=${good.slice(0, 20)}*${good.slice(21)}`, `v1=${mac(T).toString('hex')}`, 'v1=', 'v1', '=', `V1=${good}`],
      ...[`v1=${spare}`, encoding === 'base64' ? `v1=${good.slice(0, -1)}` : `v1=${good}=`],
    ]) {
      expect(check({ signature: [wrong] }, { dialect: layout }), wrong).toEqual({ valid: false, reason: 'malformed' })
    }
  })

  const inHeader = under({ prefix: 'v1=', timestamp: { in: 'signature', field: 't' }, deliveryIdHeader: null })
  const inside = (line: string) => check({ signature: [line], timestamp: undefined }, { dialect: inHeader })

  it('reads the timestamp from inside the header, and ignores a header of its own', () => {
    expect(inside(`t=${T},v1=${vector}`)).toMatchObject({ valid: true, timestampMs: nowMs })
    expect(inside(`v1=${vector}, t=${T}`)).toMatchObject({ valid: true })
  })

  it('takes the valid one of up to five candidates, and ignores other schemes', () => {
    const wrong = `v1=${'0'.repeat(64)}`
    expect(inside(`t=${T},${wrong},v0=${vector},v1=${vector}`)).toMatchObject({ valid: true })
    expect(inside(`t=${T},${[wrong, wrong, wrong, wrong].join(',')},v1=${vector}`)).toMatchObject({ valid: true })
  })

  it('ignores other schemes also where the timestamp has a header of its own', () => {
    const layout = under({ prefix: 'v1=', separator: ',' })
    for (const other of [`v0=${vector}`, `t=${T}`, 'undefined=1', '']) {
      const verified = check({ signature: [`${other},v1=${vector}`] }, { dialect: layout })
      expect(verified, other).toMatchObject({ valid: true, timestampMs: nowMs })
    }
  })

  it('reads a header of 1,024 characters and none that is longer', () => {
    const head = `t=${T},v1=${vector},v0=`
    expect(inside(head.padEnd(1_024, 'x'))).toMatchObject({ valid: true })
    expect(inside(head.padEnd(1_025, 'x'))).toEqual({ valid: false, reason: 'malformed' })
  })

  it.each([
    ['six candidates', `t=${T},${Array(6).fill(`v1=${vector}`).join(',')}`, 'malformed'],
    ['ten thousand candidates', `t=${T},${Array(10_000).fill(`v1=${vector}`).join(',')}`, 'malformed'],
    ['only another scheme', `t=${T},v0=${vector}`, 'malformed'],
    ['only a timestamp', `t=${T}`, 'malformed'],
    ['an empty timestamp alone', 't=', 'malformed'],
    ['no timestamp', `v1=${vector}`, 'malformed'],
    ['two timestamps', `t=${T},t=${T},v1=${vector}`, 'malformed'],
    ['an empty candidate', `t=${T},v1=`, 'malformed'],
    ['a malformed candidate and a valid one', `t=${T},v1=zz,v1=${vector}`, 'malformed'],
    ['an empty timestamp, signed', `t=,v1=${hex('')}`, 'timestamp_malformed'],
    ['commas', ',,,', 'malformed'],
  ])('refuses %s', (_, line, reason) => {
    expect(inside(line)).toEqual({ valid: false, reason })
  })
})

describe('the timestamp of a delivery', () => {
  const at = (timestamp: string, more: Parameters<typeof check>[1] = {}) =>
    check({ signature: [hex(timestamp)], timestamp: [timestamp] }, more)

  it.each([
    [-301, 'stale'],
    [-299, true],
    [-300, true],
    [0, true],
    [299, true],
    [301, 'stale'],
  ])('%i s from now: %s', (offset, outcome) => {
    const verified = at(String(1_700_000_000 + offset))
    expect(verified.valid ? true : verified.reason).toBe(outcome)
  })

  it.each([
    ...[
      'NaN',
      'abc',
      '',
      '1700000000abc',
      '1700000000.999',
      '0x6553f100',
      '0o17',
      '1.7e9',
      '-1',
      '-0',
      '0',
      '+1700000000',
    ],
    ...['Infinity', '9007199254740993', '9223372036854775808', '17000000000000000000', '1700000000000', '01700000000'],
    ...[' 1700000000', '1700000000 ', '１７０００００００'],
  ])('is refused although it is signed: %j', (timestamp) => {
    const bytes = Buffer.concat([Buffer.from(`${timestamp}.`, 'latin1'), body])
    const signature = [createHmac('sha256', text).update(bytes).digest('hex')]
    expect(check({ signature, timestamp: [timestamp] })).toEqual({ valid: false, reason: 'timestamp_malformed' })
  })

  it('is in the unit that the dialect says', () => {
    const inMs = under({ timestampUnit: 'ms' })
    expect(at('1700000000999', { dialect: inMs })).toMatchObject({ valid: true, timestampMs: 1_700_000_000_999 })
    for (const wrong of ['1700000000', '17000000009990', '01700000000999', '1700000000999x', 'x1700000000999']) {
      expect(at(wrong, { dialect: inMs }), wrong).toEqual({ valid: false, reason: 'timestamp_malformed' })
    }
  })

  it('may have at most 64 characters, and need not be an instant', () => {
    expect(at('1'.repeat(64))).toEqual({ valid: false, reason: 'timestamp_malformed' })
    expect(at('1'.repeat(65))).toEqual({ valid: false, reason: 'malformed' })
  })

  it('is judged only after the signature verified', () => {
    expect(check({ signature: [vector], timestamp: ['1600000000'] })).toEqual({ valid: false, reason: 'mismatch' })
    expect(check({ signature: ['0'.repeat(64)], timestamp: ['abc'] })).toEqual({ valid: false, reason: 'mismatch' })
  })

  it.each([
    ['missing', undefined, 'missing_timestamp'],
    ['no line', [], 'missing_timestamp'],
    ['twice', [T, T], 'malformed'],
    ['longer than any instant', ['1'.repeat(65)], 'malformed'],
  ])('is refused: %s', (_, timestamp, reason) => {
    const headers = { 'x-service-signature': [vector], 'x-service-timestamp': timestamp }
    expect(verify({ dialect, secrets: [secret], body, nowMs, headers })).toEqual({ valid: false, reason })
  })
})

describe('the id of a delivery', () => {
  it('is the header, where there is one', () => {
    expect(check({ signature: [vector], id: ['dlv_1'] })).toMatchObject({ valid: true, deliveryId: 'dlv_1' })
  })

  it('is the digest of the signed bytes, where there is none', () => {
    const digest = createHash('sha256').update(`${T}.`).update(body).digest('hex')
    expect(check({ signature: [vector] })).toMatchObject({ deliveryId: digest })
    const without = under({ deliveryIdHeader: null })
    expect(check({ signature: [vector], id: ['dlv_1'] }, { dialect: without })).toMatchObject({ deliveryId: digest })
    const headers = { 'x-service-signature': [vector], 'x-service-timestamp': [T], null: ['dlv_1'] }
    const verified = verify({ dialect: without, secrets: [secret], body, nowMs, headers })
    expect(verified).toMatchObject({ deliveryId: digest })
  })

  it('is the id of the event, where only the body has one', () => {
    const layout = { ...under({ deliveryIdHeader: null }), eventId: 'event.id' }
    const idOf = (payload: string, id?: string[]) => {
      const bytes = Buffer.from(payload)
      const verified = check({ signature: [hex(T, bytes)], id }, { body: bytes, dialect: layout })
      return verified.valid ? verified.deliveryId : verified.reason
    }
    const digestOf = (payload: string) => createHash('sha256').update(`${T}.${payload}`).digest('hex')
    expect(idOf('{"event":{"id":"evt_1"}}')).toBe('evt_1')
    for (const payload of ['{"event":{"id":"evt 1"}}', '{"event":{}}', 'no JSON', '{"event":{"id":""}}']) {
      expect(idOf(payload), payload).toBe(digestOf(payload))
    }
    const both = { ...dialect, eventId: 'data.id' }
    expect(check({ signature: [vector], id: ['dlv_1'] }, { dialect: both })).toMatchObject({ deliveryId: 'dlv_1' })
    expect(check({ signature: [vector] }, { dialect: both })).toMatchObject({ deliveryId: 'ord_1' })
  })

  it.each([
    ['empty', ''],
    ['blank', ' '],
    ['two words', 'a b'],
    ['beyond ASCII', 'é'],
    ['a control character', 'a\u0000'],
    ['201 characters long', 'a'.repeat(201)],
    ['10 KB long', 'a'.repeat(10_240)],
  ])('is the digest of what was signed where the header is %s', (_, id) => {
    const digest = createHash('sha256').update(`${T}.`).update(body).digest('hex')
    expect(check({ signature: [vector], id: [id] })).toMatchObject({ valid: true, deliveryId: digest })
  })

  it('is refused when it is there twice', () => {
    expect(check({ signature: [vector], id: ['a', 'a'] })).toEqual({ valid: false, reason: 'malformed' })
  })
})

describe('a signing secret', () => {
  it.each([[''], ['short'], ['a'.repeat(23)], [` ${'a'.repeat(30)}`], [`${'a'.repeat(30)}\n`], [' '.repeat(30)]])(
    'is refused when it is %j',
    (value) => {
      expect(() => signingKey(new Secret(value))).toThrowError(expect.objectContaining({ code: 'invalid' }))
    },
  )

  it('is refused with what is wrong with it', () => {
    expect(() => signingKey(new Secret(`${'a'.repeat(30)}\n`))).toThrowError(/white space/)
    expect(() => signingKey(new Secret('a'.repeat(23)))).toThrowError(/shorter than 24 bytes/)
  })

  it('is never shown by the refusal', () => {
    expect(() => signingKey(new Secret('sensitive '))).not.toThrowError(/sensitive/)
  })

  it('may be as short as 24 bytes', () => {
    expect(signingKey(new Secret('é'.repeat(12))).symmetricKeySize).toBe(24)
  })
})

/** Another character that a lax decoder reads as the same four bits. */
function nextOf(last: string): string {
  const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789'
  return alphabet[alphabet.indexOf(last) + 1] as string
}
