import { createHmac } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { Dialect } from '../../../src/dialect/dialect.ts'
import { Secret } from '../../../src/secret.ts'
import { signingKey, type Verification, verify } from '../../../src/supplier/signature.ts'

type Layout = Dialect['signature']

const NOW = 1_700_000_000_000

const layouts: fc.Arbitrary<Layout> = fc
  .record({
    encoding: fc.constantFrom('hex' as const, 'base64' as const, 'base64url' as const),
    prefix: fc.constantFrom('', 'v1=', 'sha256='),
    separator: fc.constantFrom(null, ',' as const, ';' as const, ' ' as const),
    timestampUnit: fc.constantFrom('s' as const, 'ms' as const),
    toleranceSeconds: fc.integer({ min: 1, max: 3_600 }),
    inside: fc.boolean(),
    withId: fc.boolean(),
  })
  .map(({ inside, withId, ...rest }) => ({
    ...rest,
    header: 'x-sig',
    deliveryIdHeader: withId ? 'x-id' : null,
    timestamp: inside ? { in: 'signature' as const, field: 't' } : { in: 'header' as const, header: 'x-at' },
  }))

const secretTexts = fc
  .string({ unit: 'binary', minLength: 24, maxLength: 80 })
  .filter((text) => text === text.trim() && text.isWellFormed())
const bodies = fc.uint8Array({ maxLength: 300 }).map((bytes) => Buffer.from(bytes))

/** An honest delivery, and what it was made of. */
const signed = fc
  .record({ layout: layouts, secret: secretTexts, body: bodies, share: fc.double({ min: -1, max: 1, noNaN: true }) })
  .map(({ layout, secret, body, share }) => {
    const at = NOW + Math.trunc(share * layout.toleranceSeconds) * 1_000
    return { layout, secret, body, timestamp: String(layout.timestampUnit === 's' ? at / 1_000 : at) }
  })
type Signed = typeof signed extends fc.Arbitrary<infer T> ? T : never

const macOf = (secret: string, timestamp: string, body: Buffer): Buffer =>
  createHmac('sha256', Buffer.from(secret, 'utf8')).update(timestamp).update('.').update(body).digest()

/** The headers of a delivery. @param texts the signatures, encoded; one unless there are candidates */
function headersOf({ layout, timestamp }: Pick<Signed, 'layout' | 'timestamp'>, texts: string[]) {
  const separator = layout.separator ?? ','
  const signatures = texts.map((text) => `${layout.prefix}${text}`)
  const line =
    layout.timestamp.in === 'header' ? signatures.join(separator) : [`t=${timestamp}`, ...signatures].join(separator)
  return { 'x-sig': [line], ...(layout.timestamp.in === 'header' ? { 'x-at': [timestamp] } : {}), 'x-id': ['id_1'] }
}

function judge(delivery: Signed, change: { texts?: string[]; secrets?: string[]; body?: Buffer; nowMs?: number } = {}) {
  const { layout, secret, body, timestamp } = delivery
  const { texts = [macOf(secret, timestamp, body).toString(layout.encoding)], secrets = [secret], nowMs = NOW } = change
  return verify({
    dialect: { signature: layout, eventId: null },
    secrets: secrets.map((text) => signingKey(new Secret(text))),
    headers: headersOf(delivery, texts),
    body: change.body ?? body,
    nowMs,
  })
}

const reasonOf = (verification: Verification) => (verification.valid ? 'valid' : verification.reason)

describe('the verifier', () => {
  test('accepts every honest delivery in every layout, and gives what was signed', () => {
    fc.assert(
      fc.property(signed, (delivery) => {
        const { layout, secret, timestamp, body } = delivery
        expect(judge(delivery)).toMatchObject({
          valid: true,
          secretIndex: 0,
          mac: macOf(secret, timestamp, body),
          timestampMs: Number(timestamp) * (layout.timestampUnit === 's' ? 1_000 : 1),
        })
      }),
      { numRuns: 300 },
    )
  })

  test('accepts under any one of several secrets, and under no other', () => {
    fc.assert(
      fc.property(signed, fc.uniqueArray(secretTexts, { maxLength: 4 }), fc.nat(4), (delivery, others, place) => {
        const strangers = others.filter((text) => text !== delivery.secret)
        const secrets = strangers.toSpliced(place, 0, delivery.secret)
        const index = secrets.indexOf(delivery.secret)
        expect(judge(delivery, { secrets })).toMatchObject({ valid: true, secretIndex: index })
        expect(reasonOf(judge(delivery, { secrets: strangers }))).toBe('mismatch')
      }),
      { numRuns: 200 },
    )
  })

  test('refuses any other body', () => {
    fc.assert(
      fc.property(signed, bodies, (delivery, body) => {
        fc.pre(!body.equals(delivery.body))
        expect(reasonOf(judge(delivery, { body }))).toBe('mismatch')
      }),
      { numRuns: 200 },
    )
  })

  test('refuses a body from which bytes moved into the timestamp, or the other way', () => {
    fc.assert(
      fc.property(signed, fc.stringMatching(/^\d{1,3}$/), (delivery, digits) => {
        const { layout, secret, body, timestamp } = delivery
        const texts = [macOf(secret, timestamp, Buffer.concat([Buffer.from(digits), body])).toString(layout.encoding)]
        expect(judge({ ...delivery, timestamp: timestamp + digits }, { texts }).valid).toBe(false)
        expect(judge(delivery, { texts }).valid).toBe(false)
      }),
      { numRuns: 200 },
    )
  })

  test('refuses every other spelling of a signature, but for the case of hex digits', () => {
    const edits = fc.record({ at: fc.nat(90), drop: fc.integer({ min: 0, max: 2 }), put: fc.string({ maxLength: 2 }) })
    fc.assert(
      fc.property(signed, edits, (delivery, { at, drop, put }) => {
        const { layout, secret, timestamp, body } = delivery
        const good = macOf(secret, timestamp, body).toString(layout.encoding)
        const text = good.slice(0, at) + put + good.slice(at + drop)
        const same = layout.encoding === 'hex' ? text.toLowerCase() === good : text === good
        // A separator parts the header before anything is read; what stands after it is another candidate or scheme.
        fc.pre(!/[,; ]/.test(put))
        expect(judge(delivery, { texts: [text] }).valid).toBe(same)
      }),
      { numRuns: 1_000 },
    )
  })

  test('accepts up to the tolerance, and not a millisecond more', () => {
    fc.assert(
      fc.property(signed, fc.integer({ min: -2, max: 2 }), fc.constantFrom(1, -1), (delivery, off, side) => {
        const { layout, timestamp } = delivery
        const signedAt = Number(timestamp) * (layout.timestampUnit === 's' ? 1_000 : 1)
        const nowMs = signedAt + side * (layout.toleranceSeconds * 1_000 + off)
        expect(reasonOf(judge(delivery, { nowMs }))).toBe(off > 0 ? 'stale' : 'valid')
      }),
      { numRuns: 200 },
    )
  })

  test('tells nothing of the timestamp before the signature is right', () => {
    fc.assert(
      fc.property(signed, fc.uint8Array({ minLength: 32, maxLength: 32 }), fc.string(), (delivery, mac, timestamp) => {
        fc.pre(!/[,; ]/.test(timestamp))
        const texts = [Buffer.from(mac).toString(delivery.layout.encoding)]
        expect(['mismatch', 'malformed']).toContain(reasonOf(judge({ ...delivery, timestamp }, { texts })))
      }),
      { numRuns: 300 },
    )
  })

  test('takes the right one of up to five candidates wherever it stands', () => {
    const wrong = fc.array(fc.uint8Array({ minLength: 32, maxLength: 32 }), { maxLength: 6 })
    fc.assert(
      fc.property(signed, wrong, fc.nat(6), (delivery, macs, place) => {
        const { layout, secret, timestamp, body } = delivery
        const listed = layout.separator !== null || layout.timestamp.in === 'signature'
        const texts = [
          ...macs.map((mac): Buffer => Buffer.from(mac)).toSpliced(place, 0, macOf(secret, timestamp, body)),
        ].map((mac) => mac.toString(layout.encoding))
        const few = texts.length === 1 || (listed && texts.length <= 5)
        expect(judge(delivery, { texts }).valid).toBe(few)
      }),
      { numRuns: 300 },
    )
  })
})
