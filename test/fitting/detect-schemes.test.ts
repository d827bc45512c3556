/** How deliveries of other kinds are signed is found from one of them: each is made here by node:crypto, or by the library. */
import { createHmac } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import path from 'node:path'
import { Webhook } from 'standardwebhooks'
import { describe, expect, test } from 'vitest'
import { dialectShape } from '../../src/dialect/dialect.ts'
import { detectSignature } from '../../src/fitting/detect.ts'
import { Secret } from '../../src/secret.ts'
import { signingKey } from '../../src/supplier/signature.ts'
import { run, temporaryFolder } from '../support/cli-run.ts'
import { dialect } from '../support/supplier-server.ts'

const secret = 'a-secret-from-a-dashboard-0123456789'
const key = Buffer.alloc(32, 7)
const whsec = `whsec_${key.toString('base64')}`
const body = Buffer.from('{"productId":"p1"}')
const mac = (name: string, lead: string, by: string | Buffer = secret) =>
  createHmac(name, by).update(lead).update(body).digest()
const find = (headers: Record<string, string>, by = secret) => {
  const distinct = Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, [value]]))
  return detectSignature({ headers: distinct, body }, signingKey(new Secret(by)))
}
const none = { in: 'header', header: '' }
const iso = '2023-11-14T22:13:20.000Z'

const cases: [string, Record<string, string>, object, string?][] = [
  [
    'the body alone',
    { 'x-sign': mac('sha256', '').toString('hex') },
    { header: 'x-sign', string: '{body}', timestamp: none },
  ],
  [
    'SHA-512 in base64 behind a prefix',
    { 'x-sign': `sha512=${mac('sha512', '').toString('base64')}` },
    { string: '{body}', mac: 'sha512', encoding: 'base64', prefix: 'sha512=' },
  ],
  [
    'a time in ISO 8601',
    { 'x-sign': mac('sha256', `${iso}.`).toString('base64url'), 'x-time': iso },
    { encoding: 'base64url', timestamp: { in: 'header', header: 'x-time' }, timestampUnit: 'iso' },
  ],
  [
    'Standard Webhooks',
    {
      'webhook-id': 'msg_1',
      'webhook-timestamp': '1700000000',
      'webhook-signature': new Webhook(whsec).sign('msg_1', new Date(1_700_000_000_000), body.toString()),
    },
    { string: '{id}.{timestamp}.{body}', secret: 'base64', prefix: 'v1,', deliveryIdHeader: 'webhook-id' },
    whsec,
  ],
  [
    'Svix during a rotation',
    {
      'svix-id': 'msg_1',
      'svix-timestamp': '1700000000',
      'svix-signature': `v1,${Buffer.alloc(32, 1).toString('base64')} v1,${mac('sha256', 'msg_1.1700000000.', key).toString('base64')}`,
    },
    { header: 'svix-signature', separator: ' ', prefix: 'v1,', secret: 'base64', string: '{id}.{timestamp}.{body}' },
    whsec,
  ],
  [
    'the secret itself',
    { 'x-event-name': 'product.update', 'x-event-secret': secret },
    { header: 'x-event-secret', string: 'secret', prefix: '', timestamp: none },
  ],
  [
    'the secret behind a word',
    { authorization: `Bearer ${secret}` },
    { header: 'authorization', string: 'secret', prefix: 'Bearer ' },
  ],
]

describe('the layout of a captured delivery', () => {
  test.each(cases)('is found: %s', (_, headers, wanted, by) => {
    const found = find(headers, by)
    expect(found).toMatchObject({ fits: true, signature: wanted, others: [] })
    if (!found.fits) throw new Error(found.why)
    expect(found.tried).toBeGreaterThan(0)
    expect(dialectShape.shape.signature.safeParse(found.signature).error).toBeUndefined()
    expect(dialectShape.safeParse({ ...dialect, signature: found.signature }).error).toBeUndefined()
  })

  test('is doubtful where two headers fit: both are said', () => {
    const hex = mac('sha256', '').toString('hex')
    expect(find({ 'x-a': hex, 'x-b': hex })).toMatchObject({
      signature: { header: 'x-a' },
      others: [{ header: 'x-b' }],
    })
  })

  test.each<[string, Record<string, string>]>([
    ['another secret', { 'x-event-secret': `${secret}0` }],
    ['the beginning of the secret', { 'x-event-secret': secret.slice(0, -1) }],
    ['half of a SHA-512', { 'x-sign': mac('sha512', '').subarray(0, 32).toString('hex') }],
    ['SHA-1', { 'x-sign': createHmac('sha1', secret).update(body).digest('hex') }],
  ])('is not found: %s', (_, headers) => {
    expect(find(headers)).toMatchObject({ fits: false })
  })
})

test('`dialect detect` prints the group to paste, how many combinations were tried, and what else fits', async () => {
  const folder = temporaryFolder()
  const hex = mac('sha256', '').toString('hex')
  const delivery = { headers: { 'X-A': hex, 'X-B': hex }, body: body.toString('base64') }
  for (const [name, text] of Object.entries({ 'delivery.json': JSON.stringify(delivery), secret: `${secret}\n` }))
    writeFileSync(path.join(folder, name), text)
  const argv = ['--delivery', path.join(folder, 'delivery.json'), '--secret-file', path.join(folder, 'secret')]
  const { exitCode, stdout } = await run(['dialect', 'detect', ...argv])
  expect(exitCode).toBe(0)
  const groups = stdout.match(/^\{\n[\s\S]*?\n\}$/gm)?.map((text) => JSON.parse(text).signature)
  expect(groups).toMatchObject([{ header: 'x-a', string: '{body}' }, { header: 'x-b' }])
  // No time is signed: a header without a name was printed as its place.
  for (const group of groups ?? []) expect(group).not.toHaveProperty('timestamp')
  expect(stdout).toMatch(/It verifies; \d+ combinations were tried\./)
  expect(stdout).toContain('fits the following too')
  expect(stdout).not.toContain(secret)
})
