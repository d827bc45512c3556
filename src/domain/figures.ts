/** Counts, amounts and times as people read them, on pages, in a terminal and in messages. */

const SECOND = 1_000
const MINUTE = 60 * SECOND
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR

/** Writes a number, or decimal text, as `12,842`. */
export const grouped = (value: number | string): string => {
  const [whole = '', fraction] = String(value).split('.')
  const text = whole.replace(/\B(?=(\d{3})+$)/g, ',')
  return fraction === undefined ? text : `${text}.${fraction}`
}

/** Writes a count as `12,842`, or as `10,000+` where counting stopped. @param upTo where counting stopped */
export const countText = (count: number, upTo = Number.POSITIVE_INFINITY): string =>
  count >= upTo ? `${grouped(upTo)}+` : grouped(count)

/** Writes a count with its noun: `1 order`, `2 orders`, `10,000+ orders`. */
export const counted = (count: number, one: string, several = `${one}s`, upTo?: number): string =>
  `${countText(count, upTo)} ${count === 1 ? one : several}`

/** Writes the units that a customer ordered: `1 unit`, `3 units`. */
export const units = (count: number): string => `${countText(count)} unit${count === 1 ? '' : 's'}`

/** Writes decimal text as an amount: `1,299.00 EUR`. */
export const money = (amount: string, currency: string | null | undefined): string =>
  `${grouped(amount)} ${currency ?? ''}`.trim()

/** How long something took or takes: `180 ms`, `1.8 s`, `48 min 5 s`, `6 h 38 min`, `12 days`. */
export function duration(ms: number): string {
  if (ms < SECOND) return `${Math.max(0, Math.round(ms))} ms`
  if (ms < MINUTE)
    return ms < 10 * SECOND ? `${(Math.floor(ms / 100) / 10).toFixed(1)} s` : `${Math.floor(ms / SECOND)} s`
  if (ms < HOUR) return joined(ms, MINUTE, 'min', SECOND, 's')
  if (ms < 2 * DAY) return joined(ms, HOUR, 'h', MINUTE, 'min')
  return `${Math.floor(ms / DAY)} days`
}

function joined(ms: number, unit: number, name: string, part: number, partName: string): string {
  const rest = Math.floor((ms % unit) / part)
  return `${Math.floor(ms / unit)} ${name}${rest === 0 ? '' : ` ${rest} ${partName}`}`
}

/** Writes an estimate of how long a stock or a balance lasts: `about 11 days`, `about 7 hours`. */
export function lastsText(days: number): string {
  if (days > 99) return 'more than 99 days'
  const hours = Math.floor(days * 24)
  if (hours < 1) return 'less than an hour'
  return `about ${days < 1 ? counted(hours, 'hour') : counted(Math.floor(days), 'day')}`
}

/** Writes an age so coarsely that it can be read while it changes: `52 s`, `11 min`, `6 h 38 min`, `3 days`. */
export function age(ms: number): string {
  if (ms < MINUTE) return `${Math.max(0, Math.floor(ms / SECOND))} s`
  return ms < HOUR ? `${Math.floor(ms / MINUTE)} min` : duration(ms)
}

/** The first day of a time, and the first day after it, in UTC: `2026-03-01`. */
export interface Days {
  from: string
  to: string
}

/** Returns the day of an instant, in UTC: `2026-03-12`. @param at epoch milliseconds */
export const isoDay = (at: number): string => new Date(at).toISOString().slice(0, 10)

/** Returns the times that people ask for most. @param now epoch milliseconds */
export function commonTimes(now: number) {
  const at = new Date(now)
  const [year, month, day] = [at.getUTCFullYear(), at.getUTCMonth(), at.getUTCDate()]
  const on = (...date: [month: number, day: number]) => isoDay(Date.UTC(year, ...date))
  return {
    Today: { from: on(month, day), to: on(month, day + 1) },
    Yesterday: { from: on(month, day - 1), to: on(month, day) },
    'Last 7 days': { from: on(month, day - 6), to: on(month, day + 1) },
    'This month': { from: on(month, 1), to: on(month + 1, 1) },
    'Last month': { from: on(month - 1, 1), to: on(month, 1) },
  }
}
