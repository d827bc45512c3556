/** A dialect file with faults: each is named with its line and, for a misspelt word, the word that is meant. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import fc from 'fast-check'
import { afterAll, describe, expect, test } from 'vitest'
import { loadConfig } from '../../src/config/config.ts'
import { readDialect } from '../../src/dialect/dialect.ts'
import { Failure, type FieldFault } from '../../src/errors.ts'
import { run } from '../support/cli-run.ts'
import { wordy } from '../support/dialect-wordy.ts'

const folder = mkdtempSync(path.join(tmpdir(), 'quayside-faults-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))
const file = path.join(folder, 'wordy.json')

const written = JSON.stringify(wordy, undefined, 2)
const lineOf = (text: string, part: string) => text.slice(0, text.indexOf(part)).split('\n').length

/** The faults of a text as a dialect file, which must have some. */
function faultsOf(text: string): FieldFault[] {
  writeFileSync(file, text)
  try {
    readDialect(file)
  } catch (error) {
    if (error instanceof Failure) return error.fields
    throw error
  }
  return []
}

/** The text with one part replaced, and the faults of it, as a person reads them. */
function withChange(...changes: [part: string, by: string][]): string[] {
  let text = written
  for (const [part, by] of changes) {
    expect(text.split(part), part).toHaveLength(2)
    text = text.replace(part, by)
  }
  return faultsOf(text).map(({ line, field, message }) => `${line} ${field}: ${message}`)
}

describe('a dialect file', () => {
  test('with every new word is read', () => {
    expect(faultsOf(written)).toEqual([])
  })

  test('with an unknown word says its line and the word that is meant', () => {
    const [line, ofKind] = [lineOf(written, '"idempotency"'), lineOf(written, '"kind": "cursor"')]
    expect(withChange(['"idempotency"', '"idempotancy"'])).toEqual([
      `${line} idempotancy: unknown; did you mean \`idempotency\`?`,
    ])
    expect(withChange(['"kind": "cursor"', '"kind": "cursr"'])[0]).toBe(
      `${ofKind} paging.kind: must be one of page, offset, cursor; did you mean \`cursor\`?`,
    )
  })

  test('with a group or a pair left out says what it must be in words: it said "record" and "tuple"', () => {
    const said = [
      ['"words"', '"wrds"'],
      ['"labels"', '"lbls"'],
    ] as [string, string][]
    expect(said.flatMap((change) => withChange(change)).filter((one) => /missing/.test(one))).toEqual([
      expect.stringMatching(/keys\.type\.words: missing: must be an object$/),
      expect.stringMatching(/keys\.second\.labels: missing: must be a list$/),
    ])
  })

  test('with a word that is like no other lists the words that are known there', () => {
    expect(withChange(['"basePrice"', '"zzzzzz"']).at(-1)).toMatch(/product.zzzzzz: unknown; known are id, sku, name/)
  })

  test('with a misspelt placeholder says where in the body it is', () => {
    const line = lineOf(written, '"{quantity:text}"')
    expect(withChange(['"{quantity:text}"', '"{quantty:text}"'])).toEqual([
      expect.stringMatching('orderBody: needs {quantity}'),
      expect.stringMatching(
        new RegExp(`^${line} orderBody.products.0.qty: must be exactly one of .*did you mean \`\\{quantity:text\\}\``),
      ),
    ])
  })

  test('with a word twice says both words: the second would count, and nothing would say so', () => {
    const line = lineOf(written, '"quantityMax"')
    expect(withChange(['"quantityMax": 10,', '"quantityMax": 10,\n  "quantityMax": 1000,'])).toEqual([
      `${line + 1} quantityMax: is there twice: leave one of them`,
    ])
  })

  test('with faults of every kind lists all at once, in the order of the file', () => {
    const lines = withChange(
      ['"idempotency"', '"idempotancy"'],
      ['"quantityMax": 10,', '"quantityMax": 10,\n  "quantityMax": 1000,'],
      ['"{quantity:text}"', '"{quantty:text}"'],
    ).map((text) => text.replace(/: .*/, ''))
    const numbers = lines.map((text) => Number.parseInt(text, 10))
    expect(numbers).toEqual(numbers.toSorted((a, b) => a - b))
    expect(lines.map((text) => text.replace(/^\d+ /, ''))).toEqual(
      expect.arrayContaining(['idempotancy', 'quantityMax', 'orderBody.products.0.qty']),
    )
  })

  test('whose words contradict each other says so in the line of one of them', () => {
    const line = lineOf(written, '"keyText"')
    expect(withChange(['"keyText": null', '"keyText": "code"'])).toEqual([
      `${line} order.keyText: must be null beside keys.text`,
    ])
  })

  test('has its faults named by every command that reads it', async () => {
    const faulty = written.replace('"settleSeconds"', '"setleSeconds"')
    const line = lineOf(faulty, '"setleSeconds"')
    writeFileSync(file, faulty)
    const config = path.join(folder, 'quayside.json')
    writeFileSync(config, JSON.stringify({ supplier: { baseUrl: 'http://127.0.0.1:1/v1', dialect: file }, stores: [] }))
    const said = new RegExp(`line ${line}: setleSeconds: unknown; did you mean \`settleSeconds\``)
    expect(() => loadConfig(config, {})).toThrow(said)
    for (const argv of [
      ['serve', '--config', config],
      ['dialect', 'check', '--config', config],
      ['dialect', 'check', '--base-url', 'http://127.0.0.1:1/v1', '--dialect', file],
      ['sandbox', '--dialect', file],
    ]) {
      const { exitCode, stderr } = await run(argv)
      expect({ exitCode, text: stderr.replaceAll(/\s+/g, ' ') }, argv.join(' ')).toEqual({
        exitCode: 2,
        text: expect.stringMatching(said),
      })
    }
  })
})

/** The names that are words of the supplier: any text is right there. */
const THEIRS =
  /^(constantHeaders|auth\.fields|orderBody|orderStatuses|keys\.type\.words|orderRequired|.*\.codes|flags\.\w+)\./

/** Each name and each value that only Quayside knows, by its path. */
function* words(value: unknown, at = ''): Generator<{ word: string; at: string; isName: boolean }> {
  if (typeof value !== 'object' || value === null) return
  for (const [word, inner] of Object.entries(value)) {
    const here = at === '' ? word : `${at}.${word}`
    if (!Array.isArray(value) && !THEIRS.test(here)) yield { word, at: here, isName: true }
    if (typeof inner === 'string' && VALUES.has(here)) yield { word: inner, at: here, isName: false }
    yield* words(inner, here)
  }
}

const VALUES = new Set([
  ...['auth.kind', 'auth.send', 'auth.credentials', 'paging.kind', 'idempotency', 'orderAnswer', 'stock', 'instants'],
  ...['signature.string', 'signature.mac', 'signature.secret', 'signature.encoding', 'rateResetUnit'],
  ...['signature.timestamp.in', 'keys.type.words.image/png', 'money.representation'],
])

test('any single word of a dialect with new words, misspelt, is reported with its line and the right suggestion', () => {
  const all = [...words(wordy)].filter(({ word }) => word.length > 2)
  expect(all.length).toBeGreaterThan(120)
  const slip = fc.record({ place: fc.nat(), letter: fc.constantFrom('x', 'q', '') })
  fc.assert(
    fc.property(fc.constantFrom(...all), slip, ({ word, at, isName }, { place, letter }) => {
      const index = place % word.length
      const misspelt = word.slice(0, index) + letter + word.slice(index + 1)
      fc.pre(misspelt !== word)
      // The line is found by a mark that stands in no other place.
      const marked = JSON.stringify(renamed(wordy, at, isName ? 'MARK' : undefined), undefined, 2)
      const text = marked.replace('MARK', misspelt)
      const fault = faultsOf(text).find(
        (one) => one.line === lineOf(marked, 'MARK') && one.message.includes(`did you mean \`${word}\`?`),
      )
      expect(fault, `${at}: ${misspelt}`).toBeDefined()
    }),
    { numRuns: 200 },
  )
})

/** A copy in which the last name of a path, or else its value, is `MARK`. */
function renamed(value: unknown, at: string, name: string | undefined): unknown {
  const entries = Object.entries(value as object).map(([key, inner]): [string, unknown] => {
    if (key === at) return name === undefined ? [key, 'MARK'] : [name, inner]
    return at.startsWith(`${key}.`) ? [key, renamed(inner, at.slice(key.length + 1), name)] : [key, inner]
  })
  return Array.isArray(value) ? entries.map(([, inner]) => inner) : Object.fromEntries(entries)
}
