import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { age, cell, instant } from '../src/cli/cell.ts'
import { columnsOf, details, table } from '../src/cli/table.ts'

const rows = [
  { id: '01k3m5x7z9', state: 'waiting', name: 'A very long name of a product that no terminal has room for at all' },
  { id: '01k3m5x7za', state: 'done', name: 'Short' },
]
const columns = [
  { title: 'ID', of: (row: Record<string, unknown>) => cell(row.id), keep: true as const },
  { title: 'STATE', of: (row: Record<string, unknown>) => cell(row.state) },
  { title: 'NAME', of: (row: Record<string, unknown>) => cell(row.name) },
]

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
})

describe('an instant', () => {
  const now = Date.parse('2026-08-02T14:07:11Z')

  it.each([
    ['2026-08-02T14:07:00Z', '11 s'],
    ['2026-08-02T13:07:10Z', '1 h'],
    ['2026-07-30T14:07:11Z', '3 d'],
    [null, '-'],
  ])('%s is %s old', (at, words) => {
    expect(age(at, now)).toBe(words)
  })

  it('says how far away it is, before and after', () => {
    expect(instant('2026-08-02T14:03:11.500Z', now)).toBe('2026-08-02 14:03:11Z (3 min ago)')
    expect(instant('2026-08-02T14:12:11Z', now)).toBe('2026-08-02 14:12:11Z (in 5 min)')
  })
})
