/** Counts, amounts and times as people read them, on pages, in a terminal and in messages. */

const SECOND = 1_000
const MINUTE = 60 * SECOND
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR

/** `12,842`, of a number or of decimal text. */
export const grouped = (value: number | string): string => {
  const [whole = '', fraction] = String(value).split('.')
  const text = whole.replace(/\B(?=(\d{3})+$)/g, ',')
  return fraction === undefined ? text : `${text}.${fraction}`
}

/** `12,842`; `10,000+` where the count stopped there. @param upTo how far it was counted: this number stands for more, too */
export const countText = (count: number, upTo = Number.POSITIVE_INFINITY): string =>
  count >= upTo ? `${grouped(upTo)}+` : grouped(count)

/** `1 order`, `2 orders`, `10,000+ orders` */
export const counted = (count: number, one: string, several = `${one}s`, upTo?: number): string =>
  `${countText(count, upTo)} ${count === 1 ? one : several}`

/** `1 unit`, `3 units`, of what a customer ordered. */
export const units = (count: number): string => `${countText(count)} unit${count === 1 ? '' : 's'}`

/** `1,299.00 EUR`, of decimal text. */
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

/** How long a stock or a balance lasts, from a guess: `about 11 days`, `about 7 hours`. */
export function lastsText(days: number): string {
  if (days > 99) return 'more than 99 days'
  const hours = Math.floor(days * 24)
  if (hours < 1) return 'less than an hour'
  return `about ${days < 1 ? counted(hours, 'hour') : counted(Math.floor(days), 'day')}`
}

/** How old something is, calm enough to be read while it changes: `52 s`, `11 min`, `6 h 38 min`, `3 days`. */
export function age(ms: number): string {
  if (ms < MINUTE) return `${Math.max(0, Math.floor(ms / SECOND))} s`
  return ms < HOUR ? `${Math.floor(ms / MINUTE)} min` : duration(ms)
}
