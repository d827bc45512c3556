import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { details } from '../../src/cli/facts.ts'
import { type Columns, key, table } from '../../src/cli/tables.ts'
import { ageOf, instant } from '../../src/cli/words.ts'
import { columnsOf, sentence } from '../../src/domain/text-layout.ts'

interface Record {
  id: string
  state: string
  name: string
}
const rows: Record[] = [
  { id: '01k3m5x7z9', state: 'waiting', name: 'A very long name of a product that no terminal has room for at all' },
  { id: '01k3m5x7za', state: 'done', name: 'Short' },
]
const columns: Columns<Record> = { ID: key('id'), STATE: 'state', NAME: 'name' }

describe('a table', () => {
  it('cuts the widest column and leaves the others whole', () => {
    expect(table(rows, columns, 40)).toBe(
      ['ID          STATE    NAME', '01k3m5x7z9  waiting  A very long name o…', '01k3m5x7za  done     Short', ''].join(
        '\n',
      ),
    )
  })

  it('cuts nothing where there is no terminal', () => {
    expect(table(rows, columns, Number.POSITIVE_INFINITY)).toContain('no terminal has room for at all')
  })

  it('is never wider than the terminal, whatever its cells hold', () => {
    const words = fc.oneof(fc.string({ unit: 'grapheme', maxLength: 60 }), fc.constant('漢字'.repeat(20)))
    const lines = fc.array(fc.record({ id: words, state: words, name: words }), { maxLength: 6 })
    fc.assert(
      fc.property(lines, fc.integer({ min: 24, max: 120 }), (some, width) => {
        const text = table(some, columns, width)
        expect(Math.max(...text.split('\n').map(columnsOf))).toBeLessThanOrEqual(width)
      }),
    )
  })

  it('prints escape sequences as spaces', () => {
    const hostile = [{ id: '1', state: 'x\u001b[2J\u001b]0;gone\u0007', name: 'a\r\nb\u202ec' }]
    expect(table(hostile, columns, 80)).toMatch(/^[^\p{C}]*$/mu)
    expect(table(hostile, columns, 80)).not.toContain('\u001b')
  })

  it('wraps details at words below their beginning', () => {
    expect(
      details(
        [
          ['Why', 'one unit costs more than the ceiling'],
          ['State', 'held'],
        ],
        28,
      ),
    ).toBe(['Why    one unit costs more', '       than the ceiling', 'State  held', ''].join('\n'))
  })

  it('wraps details at 80 columns in a pipe too', () => {
    const why = 'the store answered 500 '.repeat(10).trim()
    expect(details([['Why', why]], Number.POSITIVE_INFINITY)).toBe(details([['Why', why]], 80))
  })
})

describe('a sentence', () => {
  const text = 'Start it with `npx quayside serve`; an address elsewhere goes into --url.'

  it('goes on below its beginning, and breaks no command', () => {
    expect(sentence(text, 30, { lead: 'note: ', hang: 2 })).toBe(
      ['note: Start it with', '  `npx quayside serve`; an', '  address elsewhere goes into', '  --url.', ''].join('\n'),
    )
  })

  it('is as wide in a pipe as in a terminal of 80 columns', () => {
    const long = `${text} `.repeat(5).trim()
    expect(sentence(long, Number.POSITIVE_INFINITY, { hang: 2 })).toBe(sentence(long, 80, { hang: 2 }))
  })

  it('is never wider than the terminal, whatever stands between its backticks', () => {
    const words = fc.array(fc.constantFrom('a', 'word', '`', '`npx', 'quayside`', 'longer-word', '``'), {
      maxLength: 40,
    })
    fc.assert(
      fc.property(words, fc.integer({ min: 24, max: 80 }), (some, width) => {
        const shown = sentence(some.join(' '), width, { lead: '  ', hang: 4 })
        expect(Math.max(...shown.split('\n').map(columnsOf))).toBeLessThanOrEqual(width)
        expect(shown.split(/\s+/).filter(Boolean)).toEqual(some)
      }),
    )
  })
})

describe('an instant', () => {
  const now = Date.parse('2026-08-02T14:07:11Z')

  it.each([
    ['2026-08-02T14:07:00Z', '11 s'],
    ['2026-08-02T13:07:10Z', '1 h'],
    ['2026-07-30T14:07:11Z', '3 days'],
    [null, '-'],
  ])('%s is %s old', (at, words) => {
    expect(ageOf(at, now)).toBe(words)
  })

  it('says how far away it is, before and after', () => {
    expect(instant('2026-08-02T14:03:11.500Z', now)).toBe('2026-08-02 14:03:11Z (3 min ago)')
    expect(instant('2026-08-02T14:12:11Z', now)).toBe('2026-08-02 14:12:11Z (in 5 min)')
  })
})
