import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { axisSteps, barPlot, monotonePath, tideCurve, tideStaff, timePlot } from '../../src/console/plots.ts'
import { clock, dayOf, money, sentenceOf } from '../../src/console/words.ts'
import { counted, duration, grouped } from '../../src/domain/figures.ts'
import { html } from '../../src/domain/html.ts'

const labels = Array.from({ length: 24 }, (_, hour) => `${String(hour).padStart(2, '0')}:00`)

test('a template escapes what is put into it, in text and in attributes, and nests what is markup', () => {
  const hostile = `"><script>alert('1')</script>&`
  const inner = html`<b title="${hostile}">${hostile}</b>`
  expect(html`<p>${inner}${[hostile, 1, null, undefined, false]}</p>`.toString()).not.toMatch(/<script|"><|alert\('/)
  expect(html`<p>${html`<i>x</i>`}</p>`.toString()).toBe('<p><i>x</i></p>')
})

describe('the tide curve', () => {
  test('never shows more or less than was counted between two hours', () => {
    const values = fc.array(fc.integer({ min: 0, max: 1_000 }), { minLength: 2, maxLength: 24 })
    fc.assert(
      fc.property(values, (counts) => {
        const points = counts.map((count, index): [number, number] => [index * 10, count])
        const curves = [
          ...monotonePath(points).matchAll(/C([\d.-]+) ([\d.-]+) ([\d.-]+) ([\d.-]+) ([\d.-]+) ([\d.-]+)/g),
        ]
        expect(curves).toHaveLength(counts.length - 1)
        curves.forEach(([, , from, , to], index) => {
          const [least, most] = [counts[index] ?? 0, counts[index + 1] ?? 0].sort((a, b) => a - b) as [number, number]
          for (const control of [Number(from), Number(to)]) {
            expect(control).toBeGreaterThanOrEqual(least - 0.1)
            expect(control).toBeLessThanOrEqual(most + 0.1)
          }
        })
      }),
    )
  })

  test('says its peak in words, and has its numbers as a table', () => {
    const orders = labels.map((_, hour) => (hour === 17 ? 4 : 1))
    const drawn = tideCurve({ orders, ordersBefore: labels.map(() => 0), labels }).toString()
    expect(drawn).toContain('<b>27 orders</b>, busiest at 17:00 with 4. Dotted: the 24 hours before, 0')
    expect(drawn.match(/<tr><th scope="row">/g)).toHaveLength(24)
    const none = tideCurve({ orders: labels.map(() => 0), ordersBefore: labels.map(() => 0), labels }).toString()
    expect(none).toContain('<b>0 orders</b>, none came')
    expect(none).not.toContain('NaN')
  })
})

test('a time without keys is a gap, and a day without any draws no line', () => {
  const none = labels.map(() => null)
  const given = { id: 'p', title: 'Time', figure: 'f', description: 'd', labels, none: 'no keys' }
  const some = timePlot({ ...given, p50: [1_000, null, 2_000, ...none.slice(3)], p95: none }).toString()
  expect(/<path class="line" d="([^"]*)"/.exec(some)?.[1]?.match(/M/g)).toHaveLength(2)
  const empty = timePlot({ ...given, p50: none, p95: none }).toString()
  expect(empty).toContain('<path class="line" d=""/>')
  expect(some + empty).not.toMatch(/NaN|Infinity|style=/)
})

test('bars begin at zero, and what was refused is named where it happened', () => {
  const given = { id: 'p', title: 'T', figure: 'f', description: 'd', labels, heads: ['Time', 'Received', 'Refused'] }
  const drawn = barPlot({
    ...given,
    values: labels.map(() => 2),
    refused: labels.map((_, hour) => (hour === 5 ? 3 : 0)),
  })
  expect(drawn.toString()).toContain('3 refused')
  expect(drawn.toString().match(/class="bar"/g)).toHaveLength(24)
  const none = barPlot({ ...given, values: labels.map(() => 0), refused: labels.map(() => 0) }).toString()
  expect(none).not.toMatch(/<rect|NaN|0 refused/)
})

test('the staff ends at fourteen days, and is red under the mark at which Quayside warns', () => {
  expect(tideStaff(400, 3).toString()).toContain('class="level" x="2" y="6" width="326"')
  expect(tideStaff(400, 3).toString()).not.toContain('class="low"')
  expect(tideStaff(2, 3).toString()).toContain('class="low"')
  expect(tideStaff(0, 3).toString()).toContain('less than an hour')
})

test.each([0, 1, 3, 4, 7, 21, 99, 142.65, 1_000, 84_213])(
  'an axis up to %s has two to six lines that people read easily',
  (max) => {
    const steps = axisSteps(max)
    expect(steps.length).toBeGreaterThanOrEqual(2)
    expect(steps.length).toBeLessThanOrEqual(6)
    expect(String(steps[1])).toMatch(/^[125]0*$/)
  },
)

test('numbers, amounts and times are as people read them', () => {
  expect([grouped(11_842), grouped('10842.60'), grouped(-1_234)]).toEqual(['11,842', '10,842.60', '-1,234'])
  expect([counted(1, 'order'), counted(2, 'order')]).toEqual(['1 order', '2 orders'])
  expect([money('19.99', 'EUR'), money(null, 'EUR')]).toEqual(['19.99 EUR', '–'])
  expect([180, 1_800, 63_000, 48 * 60_000, 23_880_000, 12 * 86_400_000].map(duration)).toEqual([
    ...['180 ms', '1.8 s', '1 min 3 s', '48 min', '6 h 38 min', '12 days'],
  ])
  const now = Date.parse('2026-03-12T09:42:10Z')
  expect(clock('2026-03-12T09:31:04.112Z', now, 'milliseconds')).toBe('09:31:04.112')
  expect(clock('2026-03-11T09:31:04.112Z', now)).toBe('Wed 11 March, 09:31:04')
  expect(dayOf(now)).toBe('Thu 12 March')
  expect(sentenceOf('the purchase is not held')).toBe('The purchase is not held.')
})
