import { createHmac } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import path from 'node:path'
import { describe, expect, test } from 'vitest'
import type { Dialect } from '../../src/dialect/dialect.ts'
import { detectSignature } from '../../src/fitting/detect.ts'
import { signedHeaders } from '../../src/sandbox/webhooks.ts'
import { Secret } from '../../src/secret.ts'
import { signingKey, verify } from '../../src/supplier/signature.ts'
import { run, temporaryFolder } from '../support/cli-run.ts'
import { type CapturedFile, distinct, fixture } from '../support/dialect-files.ts'
import { contrary, standard } from '../support/dialect-pair.ts'

const { secret, deliveries } = fixture('captured.json') as CapturedFile<{ signature: Dialect['signature'] }>
const key = signingKey(new Secret(secret))
const capturedOf = ({ headers, body }: (typeof deliveries)[number]) => ({
  headers: distinct(headers),
  body: Buffer.from(body, 'base64'),
})
const [some] = deliveries
if (!some) throw new Error('no delivery was captured')

describe('the layout of a captured delivery', () => {
  test.each(deliveries)('is found: $name', (delivery) => {
    const found = detectSignature(capturedOf(delivery), key, 300)
    expect(found).toMatchObject({ fits: true, signature: { ...delivery.signature, toleranceSeconds: 300 } })
  })

  test('differs among the ten in encoding, prefix, place and unit of the timestamp', () => {
    const kinds = (of: (signature: Dialect['signature']) => string) =>
      new Set(deliveries.map(({ signature }) => of(signature))).size
    expect(deliveries).toHaveLength(10)
    expect(kinds(({ encoding }) => encoding)).toBe(3)
    expect(kinds(({ prefix }) => prefix)).toBeGreaterThan(5)
    expect(kinds(({ timestamp }) => timestamp.in)).toBe(2)
    expect(kinds(({ timestampUnit }) => timestampUnit)).toBe(2)
    expect(kinds(({ separator }) => String(separator))).toBe(4)
  })

  test.each([standard, contrary])('of the sandbox under $name is that of the dialect', ({ signature, eventId }) => {
    const body = '{"a":1}'
    const headers = signedHeaders({ signature, eventId } as Dialect, {
      secret,
      deliveryId: 'dlv_1',
      body,
      at: 1_767_225_600_123,
    })
    const found = detectSignature(
      { headers: distinct(headers), body: Buffer.from(body) },
      key,
      signature.toleranceSeconds,
    )
    expect(found).toMatchObject({ fits: true, signature })
  })

  test('is one that the verifier accepts', () => {
    for (const delivery of deliveries) {
      const found = detectSignature(capturedOf(delivery), key, 300)
      if (!found.fits) throw new Error(delivery.name)
      const dialect = { signature: found.signature, eventId: null }
      const request = { ...capturedOf(delivery), dialect, secrets: [key], nowMs: 1_767_225_600_123 }
      expect(verify(request)).toMatchObject({ valid: true })
      expect(verify({ ...request, body: Buffer.from('{}') })).toMatchObject({ valid: false })
    }
  })
})

describe('a delivery that no layout fits', () => {
  const { headers, body } = capturedOf(some)
  const other = signingKey(new Secret('whsec_another_0123456789abcdef0123456789'))
  const dotless = createHmac('sha256', secret).update('1767225600').update(body).digest('hex')
  const why = (delivery: Parameters<typeof detectSignature>[0], secretKey = key) => {
    const found = detectSignature(delivery, secretKey, 300)
    return found.fits ? 'fits' : found.why
  }

  test('names a wrong secret or a changed body', () => {
    expect(why({ headers, body }, other)).toContain('the secret is wrong')
    expect(why({ headers, body: Buffer.concat([body, Buffer.from('\n')]) })).toContain('the body was changed')
    expect(why({ headers: { ...headers, 'x-service-signature': [dotless] }, body })).toContain(
      'timestamp, dot and body',
    )
  })

  test('names a missing signature or timestamp', () => {
    expect(why({ headers: {}, body })).toContain('no header holds a SHA-256 MAC')
    expect(why({ headers: { 'x-service-signature': ['v1=short'] }, body })).toContain('no header holds')
    expect(why({ headers: { 'x-service-signature': headers['x-service-signature'] ?? [] }, body })).toContain(
      'no header holds a timestamp',
    )
  })

  test('is one whose signature header came twice', () => {
    const twice = [...(headers['x-service-signature'] ?? []), 'junk']
    expect(why({ headers: { ...headers, 'x-service-signature': twice }, body })).not.toBe('fits')
  })

  test('costs little, however it is made', () => {
    const long = Array.from({ length: 200 }, () => 'a'.repeat(64)).join(',')
    const many = Object.fromEntries(Array.from({ length: 90 }, (_, n) => [`x-${n}`, ['1767225600']]))
    const { tried } = detectSignature({ headers: { ...many, 'x-sig': [long.slice(0, 1_024)] }, body }, key, 300)
    expect(tried).toBeLessThan(5_000)
  })
})

describe('quayside dialect detect', () => {
  function files(delivery: unknown, secretText = secret) {
    const folder = temporaryFolder()
    const at = (name: string, text: string) => {
      writeFileSync(path.join(folder, name), text)
      return path.join(folder, name)
    }
    const file = typeof delivery === 'string' ? delivery : JSON.stringify(delivery)
    return ['--delivery', at('delivery.json', file), '--secret-file', at('secret', `${secretText}\n`)]
  }

  test.each(deliveries)('prints the profile that verifies: $name', async (delivery) => {
    const { exitCode, stdout } = await run(['dialect', 'detect', ...files(delivery)])
    expect(exitCode).toBe(0)
    const profile = JSON.parse(stdout.slice(0, stdout.indexOf('\n}\n') + 2)) as { signature: Dialect['signature'] }
    expect(profile.signature).toEqual({ ...delivery.signature, toleranceSeconds: 300 })
  })

  test('says plainly that none fits', async () => {
    const argv = ['dialect', 'detect', ...files(some, 'whsec_another_0123456789abcdef0123456789')]
    const { exitCode, stdout } = await run(argv)
    expect(exitCode).toBe(1)
    expect(stdout).toMatch(/^No known layout fits: /)
    expect(JSON.parse((await run([...argv, '--json'])).stdout)).toMatchObject({ fits: false, why: expect.any(String) })
  })

  test.each([
    ['no JSON', '{'],
    ['no headers', { body: '' }],
    ['a body that is no base64', { headers: {}, body: '{}' }],
  ])('refuses a file with %s', async (_what, delivery) => {
    const { exitCode, stderr } = await run(['dialect', 'detect', ...files(delivery)])
    expect(exitCode).toBe(2)
    expect(stderr).toContain('delivery.json')
  })
})
