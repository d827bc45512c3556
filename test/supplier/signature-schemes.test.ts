/** How suppliers of other kinds sign: what is signed, the digest, the form of the secret, and a secret that is sent itself. */
import { createHash, createHmac } from 'node:crypto'
import { Webhook } from 'standardwebhooks'
import { describe, expect, it } from 'vitest'
import { type Dialect, dialectShape } from '../../src/dialect/dialect.ts'
import { Secret } from '../../src/secret.ts'
import { faultOfHeaders, signedHeaders, signingKey, verify } from '../../src/supplier/signature.ts'
import { dialect as standard } from '../support/supplier-server.ts'

type Layout = Dialect['signature']

const nowMs = 1_700_000_000_500
const text = 'a-secret-from-a-dashboard-0123456789'
const other = 'a-secret-from-a-dashboard-9876543210'
const body = Buffer.from('{"orderId":"ord_1","note":"Grüße"}')

const layout = (set: Partial<Layout>): Layout => ({
  header: 'x-signature',
  encoding: 'hex',
  prefix: '',
  separator: null,
  timestamp: { in: 'header', header: '' },
  timestampUnit: 's',
  toleranceSeconds: 300,
  deliveryIdHeader: null,
  ...set,
})

function check(
  signature: Layout,
  headers: Record<string, string | string[]>,
  more: { body?: Buffer; nowMs?: number; secrets?: string[]; eventId?: string } = {},
) {
  const { secrets = [text], eventId = null, ...rest } = more
  const distinct = Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, [value].flat()]))
  const keys = secrets.map((one) => signingKey(new Secret(one), signature.secret))
  return verify({ dialect: { signature, eventId }, secrets: keys, headers: distinct, body, nowMs, ...rest })
}

const flip = (bytes: Buffer, bit: number): Buffer => {
  const copy = Buffer.from(bytes)
  copy[bit >> 3] = (copy[bit >> 3] ?? 0) ^ (1 << (bit & 7))
  return copy
}

describe('a signature of the body alone', () => {
  const alone = layout({ string: '{body}' })
  const hex = createHmac('sha256', text).update(body).digest('hex')

  it('is verified, and the delivery is as old as its receipt', () => {
    expect(check(alone, { 'x-signature': hex })).toMatchObject({ valid: true, timestampMs: null })
    expect(check(alone, { 'x-signature': hex }, { nowMs: nowMs + 10 * 365 * 86_400_000 })).toMatchObject({
      valid: true,
    })
    expect(faultOfHeaders({ signature: alone }, { 'x-signature': [hex] })).toBeUndefined()
  })

  it.each<[string, Record<string, string | string[]>, string]>([
    ['no header', {}, 'missing_signature'],
    ['two lines of the header', { 'x-signature': [hex, hex] }, 'malformed'],
    ['another secret', { 'x-signature': createHmac('sha256', other).update(body).digest('hex') }, 'mismatch'],
    [
      'a time before the body',
      { 'x-signature': createHmac('sha256', text).update('.').update(body).digest('hex') },
      'mismatch',
    ],
    ['SHA-512', { 'x-signature': createHmac('sha512', text).update(body).digest('hex') }, 'malformed'],
  ])('is refused with %s', (_, headers, reason) => {
    expect(check(alone, headers)).toEqual({ valid: false, reason })
  })

  it('is refused with any bit of it or of the body flipped', () => {
    for (let bit = 0; bit < 256; bit++)
      expect(check(alone, { 'x-signature': flip(Buffer.from(hex, 'hex'), bit).toString('hex') }).valid).toBe(false)
    for (let bit = 0; bit < body.length * 8; bit++)
      expect(check(alone, { 'x-signature': hex }, { body: flip(body, bit) }).valid).toBe(false)
  })

  it('makes equal bodies one delivery within two seconds, and no longer: the same words may be news', () => {
    const at = (ms: number) => check(alone, { 'x-signature': hex }, { nowMs: ms })
    const [first, second, later] = [at(1_700_000_000_000), at(1_700_000_001_999), at(1_700_000_002_000)]
    if (!first.valid || !second.valid || !later.valid) throw new Error('not valid')
    expect(second).toEqual(first)
    expect(later.mac.equals(first.mac)).toBe(false)
    expect(later.deliveryId).not.toBe(first.deliveryId)
    // The read that the delivery causes comes after all deliveries that are one with it.
    expect([first.notBefore, later.notBefore]).toEqual([1_700_000_002_000, 1_700_000_004_000])
  })

  it('is known by the ID of its event or header, whenever it comes', () => {
    const withId = layout({ string: '{body}', deliveryIdHeader: 'x-id' })
    const headers = { 'x-signature': hex, 'x-id': 'dlv_7' }
    expect(check(withId, headers)).toMatchObject({ deliveryId: 'dlv_7' })
    expect(check(withId, headers, { nowMs: nowMs + 86_400_000 })).toMatchObject({ deliveryId: 'dlv_7' })
    expect(check(alone, { 'x-signature': hex }, { eventId: 'orderId' })).toMatchObject({ deliveryId: 'ord_1' })
  })
})

describe('a signature by SHA-512', () => {
  const stamped = (encoding: Layout['encoding']) =>
    layout({ mac: 'sha512', encoding, timestamp: { in: 'header', header: 'x-time' } })
  const mac = createHmac('sha512', text).update('1700000000.').update(body).digest()

  it.each(['hex', 'base64', 'base64url'] as const)('is verified in %s, and has one spelling', (encoding) => {
    const as = (signature: string) => check(stamped(encoding), { 'x-signature': signature, 'x-time': '1700000000' })
    const written = mac.toString(encoding)
    expect(as(written)).toMatchObject({ valid: true, timestampMs: 1_700_000_000_000, mac: mac.subarray(0, 32) })
    for (let length = 0; length < 64; length++)
      expect(as(mac.subarray(0, length).toString(encoding)), String(length)).toMatchObject({ reason: 'malformed' })
    for (let bit = 0; bit < 512; bit++) expect(as(flip(mac, bit).toString(encoding)).valid).toBe(false)
    for (const longer of [`a${written}`, `${written}a`]) expect(as(longer)).toMatchObject({ reason: 'malformed' })
    if (encoding === 'hex') return
    // The last character of base64 carries two bits: all others with the same two bits decode to the same bytes.
    const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789'
    const spellings = [...alphabet].map((last) => written.replace(/.(=*)$/, `${last}$1`)).filter((one) => as(one).valid)
    expect(spellings.filter((one) => one !== written)).toEqual([])
  })

  it('is refused where only its first half is right', () => {
    const half = Buffer.concat([mac.subarray(0, 32), Buffer.alloc(32)]).toString('hex')
    expect(check(stamped('hex'), { 'x-signature': half, 'x-time': '1700000000' })).toEqual({
      valid: false,
      reason: 'mismatch',
    })
  })
})

describe('a signature of ID, time and body, as Standard Webhooks and Svix make it', () => {
  const key = createHash('sha256').update('svix').digest()
  const secret = `whsec_${key.toString('base64')}`
  const library = new Webhook(secret)
  const svix = layout({
    header: 'webhook-signature',
    string: '{id}.{timestamp}.{body}',
    secret: 'base64',
    encoding: 'base64',
    prefix: 'v1,',
    separator: ' ',
    timestamp: { in: 'header', header: 'webhook-timestamp' },
    deliveryIdHeader: 'webhook-id',
  })
  const signed = (id = 'msg_1', by = library) => ({
    'webhook-id': id,
    'webhook-timestamp': '1700000000',
    'webhook-signature': by.sign(id, new Date(1_700_000_000_000), body.toString()),
  })

  it('is verified as the library signs it, and agrees with node:crypto', () => {
    const made = createHmac('sha256', key).update('msg_1.1700000000.').update(body).digest()
    expect(signed()['webhook-signature']).toBe(`v1,${made.toString('base64')}`)
    expect(check(svix, signed(), { secrets: [secret] })).toMatchObject({ valid: true, deliveryId: 'msg_1', mac: made })
    expect(check(svix, signed(), { secrets: [key.toString('base64')] })).toMatchObject({ valid: true })
  })

  it('may be one of several, such as those of a rotation and of another scheme', () => {
    const old = new Webhook(`whsec_${Buffer.alloc(32, 9).toString('base64')}`)
    const both = `v1a,abc ${signed('msg_1', old)['webhook-signature']} ${signed()['webhook-signature']}`
    expect(check(svix, { ...signed(), 'webhook-signature': both }, { secrets: [secret] })).toMatchObject({
      valid: true,
    })
    expect(check(svix, signed('msg_1', old), { secrets: [secret] })).toEqual({ valid: false, reason: 'mismatch' })
  })

  it.each<[string, Record<string, string | string[]>, string]>([
    ['the ID of another delivery', { 'webhook-id': 'msg_2' }, 'mismatch'],
    ['two IDs', { 'webhook-id': ['msg_1', 'msg_1'] }, 'malformed'],
    ['no ID', { 'webhook-id': [] }, 'malformed'],
    ['an ID that cannot be read', { 'webhook-id': 'msg 1' }, 'malformed'],
    ['another time', { 'webhook-timestamp': '1700000001' }, 'mismatch'],
    ['two times', { 'webhook-timestamp': ['1700000000', '1700000000'] }, 'malformed'],
    ['no time', { 'webhook-timestamp': [] }, 'missing_timestamp'],
  ])('is refused with %s', (_, set, reason) => {
    expect(check(svix, { ...signed(), ...set }, { secrets: [secret] })).toEqual({ valid: false, reason })
  })

  it('is stale after its time', () => {
    expect(check(svix, signed(), { secrets: [secret], nowMs: nowMs + 301_000 })).toMatchObject({ reason: 'stale' })
  })
})

describe('a time in ISO 8601', () => {
  it('is signed as it is written, and read as an instant', () => {
    const iso = layout({ timestamp: { in: 'header', header: 'x-time' }, timestampUnit: 'iso' })
    const written = '2023-11-14T22:13:20+00:00'
    const hex = createHmac('sha256', text).update(`${written}.`).update(body).digest('hex')
    const verified = check(iso, { 'x-signature': hex, 'x-time': written })
    expect(verified).toMatchObject({ valid: true, timestampMs: 1_700_000_000_000 })
    const same = check(iso, { 'x-signature': hex, 'x-time': '2023-11-14T22:13:20Z' })
    expect(same).toEqual({ valid: false, reason: 'mismatch' })
  })
})

describe('a secret that stands in a header', () => {
  const sent = layout({ header: 'x-event-secret', string: 'secret' })

  it('is compared whole', () => {
    const as = (value: string | string[]) => check(sent, { 'x-event-secret': value })
    expect(as(text)).toMatchObject({ valid: true, timestampMs: null })
    for (let length = 0; length < text.length; length++)
      expect(as(text.slice(0, length)), String(length)).toEqual({ valid: false, reason: 'mismatch' })
    for (const wrong of [`${text}x`, `${text} `, text.toUpperCase(), other])
      expect(as(wrong)).toEqual({ valid: false, reason: 'mismatch' })
    expect(as([text, text])).toEqual({ valid: false, reason: 'malformed' })
    expect(check(sent, {})).toEqual({ valid: false, reason: 'missing_signature' })
  })

  it('may come behind a word, and one of two is enough during a rotation', () => {
    const bearer = layout({ header: 'authorization', string: 'secret', prefix: 'Bearer ' })
    expect(check(bearer, { authorization: `Bearer ${text}` })).toMatchObject({ valid: true })
    expect(check(bearer, { authorization: text })).toEqual({ valid: false, reason: 'malformed' })
    expect(check(sent, { 'x-event-secret': text }, { secrets: [other, text] })).toMatchObject({ secretIndex: 1 })
  })

  it('may have characters beyond ASCII, of which a header has the bytes', () => {
    const accented = `${text}-Schlüssel`
    const sentAs = Buffer.from(accented).toString('latin1')
    expect(check(sent, { 'x-event-secret': sentAs }, { secrets: [accented] })).toMatchObject({ valid: true })
  })

  it('is not what tells deliveries apart: two bodies are two deliveries', () => {
    const [one, two] = [body, Buffer.from('{}')].map((bytes) =>
      check(sent, { 'x-event-secret': text }, { body: bytes }),
    )
    if (!one?.valid || !two?.valid) throw new Error('not valid')
    expect(one.mac.equals(two.mac)).toBe(false)
    expect(one.mac).toHaveLength(32)
  })
})

describe('the headers of a delivery that we make ourselves', () => {
  const hmac = (signed: string, digest = 'sha256') => createHmac(digest, text).update(signed).update(body)
  const seconds = 1_700_000_000_000

  it.each<[string, Layout, Record<string, string>, number | null]>([
    [
      'a time in seconds, in a header of its own',
      layout({ timestamp: { in: 'header', header: 'x-time' }, deliveryIdHeader: 'x-id' }),
      { 'x-signature': hmac('1700000000.').digest('hex'), 'x-time': '1700000000', 'x-id': 'dlv_1' },
      seconds,
    ],
    [
      'a time in milliseconds',
      layout({ timestamp: { in: 'header', header: 'x-time' }, timestampUnit: 'ms', prefix: 'v1=' }),
      { 'x-signature': `v1=${hmac(`${nowMs}.`).digest('hex')}`, 'x-time': String(nowMs) },
      nowMs,
    ],
    [
      'a time in ISO 8601',
      layout({ timestamp: { in: 'header', header: 'x-time' }, timestampUnit: 'iso' }),
      { 'x-signature': hmac('2023-11-14T22:13:20.500Z.').digest('hex'), 'x-time': '2023-11-14T22:13:20.500Z' },
      nowMs,
    ],
    [
      'a time in front of the signature',
      layout({ timestamp: { in: 'signature', field: 't' }, prefix: 'v1=' }),
      { 'x-signature': `t=1700000000,v1=${hmac('1700000000.').digest('hex')}` },
      seconds,
    ],
    [
      'another separator',
      layout({ timestamp: { in: 'signature', field: 't' }, prefix: 'v1=', separator: ';', encoding: 'base64' }),
      { 'x-signature': `t=1700000000;v1=${hmac('1700000000.').digest('base64')}` },
      seconds,
    ],
    [
      'the ID signed as well',
      layout({
        string: '{id}.{timestamp}.{body}',
        timestamp: { in: 'header', header: 'x-time' },
        deliveryIdHeader: 'x-id',
      }),
      { 'x-signature': hmac('dlv_1.1700000000.').digest('hex'), 'x-time': '1700000000', 'x-id': 'dlv_1' },
      seconds,
    ],
    [
      'the body alone, by SHA-512',
      layout({ string: '{body}', mac: 'sha512', encoding: 'base64url' }),
      { 'x-signature': hmac('', 'sha512').digest('base64url') },
      null,
    ],
    [
      'the secret itself',
      layout({ header: 'authorization', string: 'secret', prefix: 'Bearer ' }),
      { authorization: `Bearer ${text}` },
      null,
    ],
  ])('have %s, and are verified', (_, signature, headers, timestampMs) => {
    const key = signingKey(new Secret(text))
    const made = signedHeaders({ signature }, { secret: key, id: 'dlv_1', body, at: nowMs })
    expect(made).toEqual(headers)
    expect(check(signature, made)).toMatchObject({ valid: true, timestampMs })
  })
})

describe('a secret that is written as base64', () => {
  it.each([
    ['is no base64', 'whsec_not+base64-at-all-0123456789abcdef', 'is not base64'],
    ['has a character too many', `whsec_${Buffer.alloc(32, 1).toString('base64').replace('=', 'AA')}`, 'is not base64'],
    ['has its prefix inside', `${Buffer.alloc(30, 1).toString('base64')}whsec_AAAA`, 'is not base64'],
    ['is short', `whsec_${Buffer.alloc(16, 1).toString('base64')}`, 'shorter than 24 bytes'],
    ['begins with a blank', ` whsec_${Buffer.alloc(32, 1).toString('base64')}`, 'white space'],
  ])('is refused where it %s, and is not shown', (_, secret, message) => {
    const read = () => signingKey(new Secret(secret), 'base64')
    expect(read).toThrow(expect.objectContaining({ code: 'invalid', message: expect.stringContaining(message) }))
    expect(read).not.toThrow(secret)
  })
})

describe('the words of a dialect', () => {
  const faults = (set: Partial<Layout>) => {
    const result = dialectShape.safeParse({ ...standard, signature: { ...standard.signature, ...set } })
    return result.success ? [] : result.error.issues.map(({ path }) => path.join('.'))
  }
  const none = { in: 'header', header: '' } as const

  it.each<[string, Partial<Layout>, string[]]>([
    ['nothing new', {}, []],
    ['a body alone beside a time', { string: '{body}' }, ['signature.timestamp']],
    ['a body alone without a time', { string: '{body}', timestamp: none }, []],
    ['a time that is signed and nowhere', { timestamp: none }, ['signature.timestamp']],
    [
      'an ID that is signed and nowhere',
      { string: '{id}.{timestamp}.{body}', deliveryIdHeader: null },
      ['signature.deliveryIdHeader'],
    ],
    ['a digest beside a bare secret', { string: 'secret', timestamp: none, mac: 'sha512' }, ['signature.string']],
    [
      'an ID in the header that has the secret, so that the secret would be stored with it',
      { string: 'secret', timestamp: none, deliveryIdHeader: standard.signature.header },
      ['signature.header'],
    ],
  ])('say where they contradict each other: %s', (_, set, paths) => {
    expect(faults(set)).toEqual(paths)
  })
})
