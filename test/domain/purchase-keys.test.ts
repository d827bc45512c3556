import { createHash } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  carriesStore,
  externalOrderId,
  firstOf,
  generationOf,
  idempotencyKey,
  type PurchaseName,
  rangeOf,
} from '../../src/domain/purchase-keys.ts'

const name: PurchaseName = { store: 'demo-a1b2c3d4', reference: '1001', line: '1', part: 1, generation: 1 }
const foreign: PurchaseName = {
  store: 'boutique-zz99yy88',
  reference: '#10.01/ä~€ 😀',
  line: 'gid://shop/Line/7',
  part: 2,
  generation: 13,
}
const long: PurchaseName = { ...name, reference: 'R'.repeat(100) }

/** The bits of the digest in groups of five: slow, and independent of the code under test. */
function base32(digest: Buffer): string {
  const bits = [...digest].map((byte) => byte.toString(2).padStart(8, '0')).join('')
  return (bits.match(/.{1,5}/g) ?? [])
    .map((group) => 'abcdefghijklmnopqrstuvwxyz234567'[Number.parseInt(group.padEnd(5, '0'), 2)])
    .join('')
}

/** Any text that can be written as UTF-8. */
const text = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 40 }),
  fc.string({ unit: fc.constantFrom('.', '~', '%', '2', 'E', '1', ':', 'a'), maxLength: 12 }),
)
const count = fc.integer({ min: 1, max: 30 })
const names = fc.record({ store: text, reference: text, line: text, part: count, generation: count })
const twoNames = fc
  .tuple(names, fc.oneof(names, fc.record({ store: text, reference: text }, { requiredKeys: [] })))
  .map(([first, other]): [PurchaseName, PurchaseName] => [first, { ...first, ...other }])
  .filter(([first, second]) => Object.keys(first).some((key) => first[key as 'store'] !== second[key as 'store']))

describe('an idempotency key', () => {
  test.each([
    ['46f5ju74f6mju7icvhxug34imh2jryb6ld76wsweliharofa7qyq', name],
    ['u5nweh7dvxdbmsu32ojhhivq7kfe7jaszt5gzedhefoqlzxwga4q', { ...name, generation: 2 }],
    ['foaopsldykyegs3fjm4idrtbrgcn5lvp7t4ds7bdku7gs3gpr4mq', foreign],
    ['jrvmqeqjvxaqpyi5vr6gfo2gaf6hmognnuwwpjjbhxzib4fftthq', long],
  ])('is always %s', (key, of) => {
    expect(idempotencyKey(of)).toBe(key)
  })

  test('is base32 of the SHA-256 of the pieces, each with its length in bytes', () => {
    const pieces = '2:q117:boutique-zz99yy8818:#10.01/ä~€ 😀17:gid://shop/Line/71:22:13'
    expect(idempotencyKey(foreign)).toBe(base32(createHash('sha256').update(pieces, 'utf8').digest()))
  })

  test('is 52 letters and digits, whatever the name', () => {
    fc.assert(fc.property(names, (of) => /^[a-z2-7]{52}$/.test(idempotencyKey(of))))
  })

  test('is never shared by two names', () => {
    fc.assert(fc.property(twoNames, ([first, second]) => idempotencyKey(first) !== idempotencyKey(second)))
  })

  test('is the same whenever it is derived', () => {
    fc.assert(fc.property(names, (of) => idempotencyKey(of) === idempotencyKey(structuredClone(of))))
  })

  test('differs for names whose pieces read the same when joined', () => {
    const keys = [
      { ...name, reference: '12', line: '3' },
      { ...name, reference: '1', line: '23' },
      { ...name, store: 'demo-a1b2c3d41', reference: '001' },
    ].map(idempotencyKey)
    expect(new Set(keys).size).toBe(3)
  })
})

describe('an external reference', () => {
  test('names store, order, line, part and generation', () => {
    expect(externalOrderId(name, 120)).toBe('q1.demo-a1b2c3d4.1001.1.1.1')
  })

  test('percent-encodes every piece, its dots and tildes too', () => {
    expect(externalOrderId(foreign, 120)).toBe(
      'q1.boutique-zz99yy88.%2310%2E01%2F%C3%A4%7E%E2%82%AC%20%F0%9F%98%80.gid%3A%2F%2Fshop%2FLine%2F7.2.13',
    )
  })

  test('is whole at its cap and ends in a digest above it', () => {
    const whole = 'q1.boutique-zz99yy88.%2310%2E01%2F%C3%A4%7E%E2%82%AC%20%F0%9F%98%80.gid%3A%2F%2Fshop%2FLine%2F7.2.13'
    expect(externalOrderId(foreign, whole.length)).toBe(whole)
    const digest = createHash('sha256').update(whole).digest('hex').slice(0, 32)
    expect(externalOrderId(foreign, whole.length - 1)).toBe(`${whole.slice(0, whole.length - 34)}~${digest}`)
    expect(externalOrderId(foreign, 64)).toBe('q1.boutique-zz99yy88.%2310%2E01~a38187b51d046188c12ba261752c93ec')
    expect(externalOrderId(long, 64)).toBe('q1.demo-a1b2c3d4.RRRRRRRRRRRRRR~c1426156a4bc1fcc073a320036434ddd')
  })

  test('is plain text within its cap, whatever the name', () => {
    fc.assert(
      fc.property(names, fc.integer({ min: 64, max: 400 }), (of, lengthMax) => {
        const reference = externalOrderId(of, lengthMax)
        expect(reference.length).toBeLessThanOrEqual(lengthMax)
        expect(reference).toMatch(/^q1\.[A-Za-z0-9_!*'()%.~-]+$/)
        expect(reference).toBe(externalOrderId(structuredClone(of), lengthMax))
      }),
    )
  })

  test('is never shared by two names, below its cap or above it', () => {
    fc.assert(
      fc.property(twoNames, fc.constantFrom(64, 80, 120, 5_000), ([first, second], lengthMax) => {
        return externalOrderId(first, lengthMax) !== externalOrderId(second, lengthMax)
      }),
    )
  })

  test('above its cap still differs when only the last piece does', () => {
    const generations = Array.from({ length: 50 }, (_, generation) => externalOrderId({ ...long, generation }, 64))
    expect(new Set(generations).size).toBe(50)
  })
})

describe('a reference of a store', () => {
  const stores = fc.stringMatching(/^[a-z]{1,40}-[a-z0-9]{8}$/)

  test('is known as one of its own, whatever it names and however short the cap is', () => {
    fc.assert(
      fc.property(names, fc.integer({ min: 64, max: 200 }), (of, lengthMax) => {
        expect(carriesStore(externalOrderId(of, lengthMax), of.store, lengthMax)).toBe(true)
      }),
    )
  })

  test('is not taken for one of another store, as far as the cap leaves the id of the store whole', () => {
    fc.assert(
      fc.property(names, stores, stores, (of, store, other) => {
        fc.pre(store !== other)
        expect(carriesStore(externalOrderId({ ...of, store }, 120), other, 120)).toBe(false)
      }),
    )
  })

  test.each<[string, boolean]>([
    ['q1.demo-a1b2c3d4.1001.1.1.1', true],
    ['q1.demo-a1b2c3d4.', true],
    ['q1.demo-a1b2c3d4', false],
    ['q1.demo-a1b2c3d45.1001.1.1.1', false],
    ['x.q1.demo-a1b2c3d4.', false],
    ['q2.demo-a1b2c3d4.1001.1.1.1', false],
    ['', false],
  ])('%j begins as those of the store: %s', (reference, carries) => {
    expect(carriesStore(reference, 'demo-a1b2c3d4', 120)).toBe(carries)
  })

  test('whose digest swallowed the end of the store is known by its length, its tilde and what is left', () => {
    const store = `${'s'.repeat(50)}-a1b2c3d4`
    const cut = externalOrderId({ ...name, store }, 64)
    expect(cut).toMatch(/^q1\.s{28}~[0-9a-f]{32}$/)
    expect(carriesStore(cut, store, 64)).toBe(true)
    expect(carriesStore(cut, 's'.repeat(30), 64)).toBe(true)
    expect(carriesStore(cut, 's'.repeat(27), 64)).toBe(false)
    expect(carriesStore(cut, `t${store}`, 64)).toBe(false)
    expect(carriesStore(cut.slice(0, -1), store, 64)).toBe(false)
    expect(carriesStore(`${cut}0`, store, 64)).toBe(false)
    expect(carriesStore(cut.replace('~', '.'), store, 64)).toBe(false)
    expect(carriesStore(cut, store, 65)).toBe(false)
  })
})

describe('the generation that a reference is of', () => {
  const part = { store: 'main-1', reference: '10.01~a', line: '1', part: 2 }
  test.each([120, 64, 65])('is found for every number, with a cap of %i characters', (cap) => {
    for (const name of [part, { ...part, reference: 'x'.repeat(80) }]) {
      for (const generation of [1, 2, 9, 10, 11, 99, 100, 250]) {
        const reference = externalOrderId({ ...name, generation }, cap)
        const { from, to } = rangeOf(name, cap)
        expect(generationOf(reference, name, cap)).toBe(generation)
        expect(reference >= from && reference < to).toBe(true)
        const one = externalOrderId({ ...name, part: 1, generation: 1 }, cap)
        const where = firstOf(reference)
        expect(where && ('is' in where ? where.is === one && where.part === 2 : one.startsWith(where.begins))).toBe(
          true,
        )
        for (const other of [
          { ...name, part: 22 },
          { ...name, line: '11' },
          { ...name, store: 'main-2' },
        ]) {
          expect(generationOf(reference, other, cap)).toBeUndefined()
        }
      }
    }
  })

  test.each([
    '',
    'q1.main-1.1',
    'q1.main-1.10%2E01%7Ea.1.2.',
    'q1.main-1.10%2E01%7Ea.1.2.01',
    'q1.main-1.10%2E01%7Ea.1.2.1x',
    'another text',
  ])('is none for %j', (text) => expect(generationOf(text, part, 120)).toBeUndefined())

  test('belongs to a part, whose number may have several digits', () => {
    expect(firstOf('q1.main-1.10.1.12.3')).toEqual({ is: 'q1.main-1.10.1.1.1', part: 12 })
    expect(firstOf('q1.main-1.10.1.1x.3')).toBeUndefined()
  })

  test('is compared with the first thousand where a digest hides it', () => {
    const name = { ...part, reference: 'x'.repeat(80) }
    expect(generationOf(externalOrderId({ ...name, generation: 1_000 }, 64), name, 64)).toBe(1_000)
    expect(generationOf(externalOrderId({ ...name, generation: 1_001 }, 64), name, 64)).toBeUndefined()
  })
})

describe('the references of a part', () => {
  const part = { store: 'main-1', reference: 'x'.repeat(40), line: '1', part: 2 }

  test('are searched by all that comes before the generation, while nine digits have room behind it', () => {
    const stem = `q1.main-1.${part.reference}.1.2.`
    expect(stem).toHaveLength(55)
    expect(rangeOf(part, 64)).toEqual({ from: stem, to: `${stem}\x7f` })
  })

  test('are searched by what is left before a digest, where a generation may lack room', () => {
    const beginning = `q1.main-1.${'x'.repeat(21)}`
    expect(rangeOf({ ...part, reference: 'x'.repeat(41) }, 64)).toEqual({ from: beginning, to: `${beginning}\x7f` })
  })

  const digest = '0123456789abcdef'.repeat(2)
  test.each<[string, ReturnType<typeof firstOf>]>([
    // Its line is called as its part and its generation are: the line was cut off in their place.
    ['q1.s.1001.2.2.2', { is: 'q1.s.1001.2.1.1', part: 2 }],
    ['q1.main-1.1001.1.2.13', { is: 'q1.main-1.1001.1.1.1', part: 2 }],
    ['q1.main-1.1001.1.2.123456789', { is: 'q1.main-1.1001.1.1.1', part: 2 }],
    ['q1.main-1.1001.1.02.1', undefined],
    ['q1.main-1.1001.1.1234567890.1', undefined],
    ['q1.main-1.1001.1.2.1234567890', undefined],
    ['q1.main-1.1001.1.2.01', undefined],
    ['q1.main-1.1001.1.2.1x', undefined],
    [`q1.main-1.10~${digest}`, { begins: 'q1.main-1.10' }],
    [`q1.main-1.10~${digest}x`, undefined],
    [`q1.main-1.10~${digest.slice(1)}`, undefined],
  ])('%j is of the line that begins with %j', (reference, first) => {
    expect(firstOf(reference)).toEqual(first)
  })
})
