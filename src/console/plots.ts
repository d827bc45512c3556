/**
 * Plots as SVG that the server draws; classes alone give their style. Each plot says in words what it shows, and has its numbers
 * as a table. A missing value is a gap, never a zero.
 */

import { counted, duration, grouped, lastsText } from '../domain/figures.ts'
import { type Html, html, type Piece } from '../domain/html.ts'
import { numbersTable } from './tables.ts'
import { clockTag } from './words.ts'

/** The area in which a plot draws, in units of its view box of 360 by 164. */
const LEFT = 34
const RIGHT = 356
const TOP = 10
const BASE = 142

const short = (value: number): string => String(Math.round(value * 10) / 10)

/** Returns steps of an axis that people read easily: 1, 2 or 5 times a power of ten, with three to five lines in all. */
export function axisSteps(max: number): number[] {
  const rough = Math.max(max, 1) / 4
  const power = 10 ** Math.floor(Math.log10(rough))
  const step = Math.max(1, ([1, 2, 5, 10].find((factor) => factor * power >= rough) ?? 10) * power)
  return Array.from({ length: Math.floor(Math.max(max, step) / step) + 1 }, (_, index) => index * step)
}

/** @example { at: '2026-03-12T10:00:00Z' } */
export type Label = string | { at: string }

const textOf = (label: Label | undefined): string =>
  typeof label === 'object' ? label.at.slice(11, 16) : (label ?? '')

const pieceOf = (label: Label | undefined): Piece =>
  typeof label === 'object' ? clockTag(label.at, Date.parse(label.at), 'minutes') : label

interface PlotWords {
  id: string
  title: string
  /** The number for the whole period, as text. */
  figure: string
  /** What a person would see: range, peak, exception. */
  description: string
  /** The name of each step: an instant, which is shown as its time, such as `10:00`; or a text. */
  labels: readonly Label[]
  /** The last label of the axis (default: now). */
  end?: string
}

const plot = ({ id, title, figure, description, labels, end }: PlotWords, drawn: Html, table: Html): Html =>
  html`<figure class="plot"><figcaption><h3>${title}</h3><p>${figure}</p></figcaption>
<svg viewBox="0 0 360 164" role="img" aria-labelledby="${id}-t ${id}-d"><title id="${id}-t">${title}</title><desc id="${id}-d">${description}</desc>
${drawn}
<path class="base" d="M${LEFT} ${BASE}H${RIGHT}"/>
${timeAxis(labels, end)}</svg>
${table}</figure>\n`

function timeAxis(labels: readonly Label[], end = 'now'): Html[] {
  const at = (share: number) => LEFT + (RIGHT - LEFT) * share
  const quarters = [0, 1, 2, 3].map((quarter) => {
    const label = labels[Math.round((labels.length * quarter) / 4)]
    const instant = typeof label === 'object' && html` data-at="${label.at}" data-clock="minutes"`
    return html`<text x="${short(at(quarter / 4))}" y="158"${instant}>${textOf(label)}</text>`
  })
  return [...quarters, html`<text x="${RIGHT}" y="158" text-anchor="end">${end}</text>`]
}

const gridLine = (y: number, text: string): Html =>
  html`<path class="grid" d="M${LEFT} ${short(y)}H${RIGHT}"/><text x="28" y="${short(y + 4)}" text-anchor="end">${text}</text>`

export interface BarPlot extends PlotWords {
  values: readonly number[]
  /** Of what each bar is a part: drawn pale behind it. */
  wholes?: readonly number[]
  /** The last step is not over: its bar is pale. */
  isUnfinished?: boolean
  /** The rows of the table, where it says more than the bars do. */
  rows?: readonly (readonly Piece[])[]
  /** The second part of each bar, drawn above the first part. The largest second part is named at its bar. */
  refused?: readonly number[]
  /** An upper limit that is drawn as a line. */
  limit?: { value: number; text: string } | undefined
  /** Amounts are drawn lighter than counts. */
  isSoft?: boolean
  heads: readonly string[]
  /** Returns the text of a value in the table that stands below the plot. */
  text?: (value: number) => string
}

export function barPlot(given: BarPlot): Html {
  const { values, wholes = [], refused = [], limit, isSoft = false, labels, heads, text = grouped } = given
  const width = (RIGHT - LEFT) / values.length
  const peak = Math.max(...values.map((value, index) => value + (refused[index] ?? 0)), ...wholes, limit?.value ?? 0, 1)
  const steps = axisSteps(peak)
  const top = Math.max(peak, steps.at(-1) ?? 1) * 1.08
  const height = (value: number) => (value / top) * (BASE - TOP)
  const bar = (className: string, index: number, from: number, value: number) =>
    value > 0 &&
    html`<rect class="${className}${given.isUnfinished && index === values.length - 1 && ' unfinished'}" x="${short(LEFT + width * index + width * 0.11)}" y="${short(BASE - height(from + value))}" width="${short(width * 0.78)}" height="${short(height(value))}"/>`
  const worst = refused.indexOf(Math.max(...refused, 0))
  const named = Math.max(...refused, 0) > 0 && {
    x: LEFT + width * (worst + 0.5),
    y: BASE - height((values[worst] ?? 0) + (refused[worst] ?? 0)) - 7,
  }
  return plot(
    given,
    html`${steps.map((step) => gridLine(BASE - height(step), grouped(step)))}
${values.map((value, index) => [bar('bar-soft', index, 0, wholes[index] ?? 0), bar(isSoft ? 'bar-soft' : 'bar', index, 0, value), bar('bar-refused', index, value, refused[index] ?? 0)])}${
  named &&
  html`<text class="name" x="${short(named.x)}" y="${short(named.y)}" text-anchor="${anchorOf(named.x)}">${grouped(refused[worst] ?? 0)} refused</text>`
}${limit && html`<path class="limit" d="M${LEFT} ${short(BASE - height(limit.value))}H${RIGHT}"/><text x="${RIGHT}" y="${short(BASE - height(limit.value) - 4)}" text-anchor="end">${limit.text}</text>`}`,
    numbersTable(
      given.title,
      heads,
      given.rows ??
        labels.map((label, index) => {
          const second = refused.length > 0 ? [text(refused[index] ?? 0)] : []
          return [pieceOf(label), text(values[index] ?? 0), ...second]
        }),
    ),
  )
}

const anchorOf = (x: number): string => (x < LEFT + 50 ? 'start' : x > RIGHT - 50 ? 'end' : 'middle')

const SECOND = 1_000
const MINUTE = 60 * SECOND
/** Lines of the axis of times, which is logarithmic. */
const TIMES = [SECOND, 10 * SECOND, MINUTE, 10 * MINUTE, 60 * MINUTE, 24 * 60 * MINUTE]

export interface TimePlot extends PlotWords {
  /** Milliseconds of each step; null where a step has no value. */
  p50: readonly (number | null)[]
  p95: readonly (number | null)[]
  none: string
}

/** Draws how long something took, on a logarithmic scale. */
export function timePlot(given: TimePlot): Html {
  const { p50, p95, labels, none } = given
  const known = [...p50, ...p95].filter((value) => value !== null)
  const least = Math.min(SECOND, ...known) / 2
  const most = Math.max(60 * SECOND, ...known) * 1.2
  const y = (ms: number) => BASE - (Math.log(ms / least) / Math.log(most / least)) * (BASE - TOP - 6)
  const width = (RIGHT - LEFT) / labels.length
  const x = (index: number) => LEFT + width * (index + 0.5)
  const line = (values: readonly (number | null)[]) =>
    values
      .map((value, index) => {
        if (value === null) return ''
        const isAlone = values[index - 1] == null && values[index + 1] == null
        const to = `${(values[index - 1] ?? null) === null ? 'M' : 'L'}${short(x(index))} ${short(y(value))}`
        return isAlone ? `${to}h0.1` : to
      })
      .join('')
  const nameAt = (values: readonly (number | null)[], name: string, by: number) => {
    const last = values.findLast((value) => value !== null)
    if (last == null) return undefined
    const at = Math.min(y(last) + by, BASE - 3)
    return html`<text class="name" x="${RIGHT}" y="${short(at)}" text-anchor="end">${name}</text>`
  }
  return plot(
    given,
    html`${TIMES.filter((ms) => ms >= least && ms <= most).map((ms) => gridLine(y(ms), duration(ms).replace('24 h', '1 day').replace('1.0 s', '1 s')))}
<path class="line line-2" d="${line(p95)}"/><path class="line" d="${line(p50)}"/>${nameAt(p95, '95 %', -7)}${nameAt(p50, 'half', 14)}`,
    numbersTable(
      given.title,
      ['Time', 'Half within', '95 % within'],
      labels.map((label, index) => [
        pieceOf(label),
        ...[p50[index], p95[index]].map((ms) => (ms == null ? none : duration(ms))),
      ]),
    ),
  )
}

/**
 * Returns a curve through all points. Between two points the curve is monotone, so that it never shows more or less than the
 * points have (Fritsch and Carlson, SIAM J. Numer. Anal. 17, 1980).
 */
export function monotonePath(points: readonly (readonly [x: number, y: number])[]): string {
  const slopes = points.slice(1).map(([x, y], index) => {
    const [x0, y0] = points[index] as [number, number]
    return (y - y0) / (x - x0)
  })
  const tangents = points.map((_, index) => {
    const [before, after] = [slopes[index - 1], slopes[index]]
    if (before === undefined || after === undefined || before * after <= 0) return 0
    return Math.sign(before) * Math.min(Math.abs(before), Math.abs(after), Math.abs(before + after) / 4) * 2
  })
  const [[x0, y0] = [0, 0], ...rest] = points
  return rest.reduce(
    (path, [x, y], index) => {
      const [px, py] = points[index] as [number, number]
      const third = (x - px) / 3
      const [from, to] = [py + (tangents[index] ?? 0) * third, y - (tangents[index + 1] ?? 0) * third]
      return `${path}C${short(px + third)} ${short(from)} ${short(x - third)} ${short(to)} ${short(x)} ${short(y)}`
    },
    `M${short(x0)} ${short(y0)}`,
  )
}

interface TideCurve extends Pick<PlotWords, 'labels'> {
  /** The orders of each hour. The last hour is still under way. */
  orders: readonly number[]
  ordersBefore: readonly number[]
}

/** Draws the orders of 24 hours over the whole width, and the day before as dots. The SVG is stretched, so the hours are HTML. */
export function tideCurve({ orders, ordersBefore, labels }: TideCurve): Html {
  const peak = Math.max(...orders, ...ordersBefore, 1)
  const points = (values: readonly number[]) =>
    values.map((value, index): [number, number] => [(index * 1000) / (values.length - 1), 100 - (value / peak) * 78])
  // The last hour is not over: its line is straight and dashed, and ends at what has come so far.
  const [over, unfinished] = [points(orders).slice(0, -1), points(orders).slice(-2)]
  const [[from = 0] = []] = unfinished
  const crest = monotonePath(over)
  const last = `M${unfinished.map(([x, y]) => `${short(x)} ${short(y)}`).join('L')}`
  const sum = (values: readonly number[]) => values.reduce((all, one) => all + one, 0)
  const [total, most] = [sum(orders), Math.max(...orders)]
  const hour = labels[orders.indexOf(most)]
  const busiest = (at: Piece) => (most > 0 ? html`busiest at ${at} with ${grouped(most)}` : 'none came')
  const rest = grouped(orders.at(-1) ?? 0)
  const title = 'Orders per hour, last 24 hours'
  const before = `the 24 hours before, ${grouped(sum(ordersBefore))}`
  return html`<figcaption><h2>${title}</h2><span><b>${counted(total, 'order')}</b>, ${busiest(pieceOf(hour))}. Dotted: ${before}</span></figcaption>
<svg viewBox="0 0 1000 100" preserveAspectRatio="none" role="img" aria-labelledby="tide-t tide-d"><title id="tide-t">${title}</title><desc id="tide-d">${counted(total, 'order')}, ${busiest(`${textOf(hour)} UTC`)}; ${before}. The hour that is not over has ${rest}.</desc><path class="water" d="${crest}L${short(from)} 100L0 100Z"/><path class="water unfinished" d="${last}L1000 100L${short(from)} 100Z"/><path class="before" d="${monotonePath(points(ordersBefore))}"/><path class="crest" d="${crest}"/><path class="crest unfinished" d="${last}"/></svg>
<div class="hours" aria-hidden="true">${[0, 4, 8, 12, 16, 20].map((hour) => html`<span>${pieceOf(labels[hour])}</span>`)}<span>${pieceOf(labels.at(-1))}, not over: ${rest}</span></div>
${numbersTable(
  title,
  ['Hour', 'Orders', 'The day before'],
  labels.map((label, index) => [pieceOf(label), orders[index] ?? 0, ordersBefore[index] ?? 0]),
)}`
}

/** How many days the tide staff shows. */
const STAFF_DAYS = 14

/** Draws the balance as days of sales, with the mark at which Quayside warns. */
export function tideStaff(days: number, warnDays: number): Html {
  const x = (day: number) => 2 + (Math.min(day, STAFF_DAYS) / STAFF_DAYS) * 326
  const ticks = Array.from({ length: STAFF_DAYS + 1 }, (_, day) => {
    const [from, to] = day === warnDays ? [0, 24] : [18, day % 7 === 0 ? 26 : 22]
    return html`<path class="tick" d="M${short(x(day))} ${from}V${to}"/>`
  })
  const text = `Balance lasts ${lastsText(days)}; the warning line is at ${warnDays} days.`
  return html`<svg class="staff" viewBox="0 0 330 44" role="img" aria-labelledby="staff-t"><title id="staff-t">${text}</title>
<rect class="track" x="2" y="6" width="326" height="12"/>${days < warnDays && html`<rect class="low" x="2" y="6" width="${short(x(warnDays) - 2)}" height="12"/>`}<rect class="level" x="2" y="6" width="${short(x(days) - 2)}" height="12"/>
${ticks}
<text x="2" y="39">0</text><text x="${short(x(warnDays))}" y="39" text-anchor="middle">warns at ${warnDays}</text><text x="165" y="39" text-anchor="middle">7</text><text x="328" y="39" text-anchor="end">14 days</text></svg>`
}
