/** Numbers, amounts and times as people read them. Instants come as the API gives them, ISO 8601 in UTC. */
import { type Html, html, type Piece } from './html.ts'

const SECOND = 1_000
const MINUTE = 60 * SECOND
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR

/** `12,842` */
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

const SMALL = ['no', 'one', 'two', 'three', 'four', 'five', 'six', 'seven', 'eight', 'nine', 'ten', 'eleven', 'twelve']

/** The same in words up to twelve, for the beginning of a sentence: `Four things`. */
export const countedInWords = (count: number, one: string, several = `${one}s`, upTo?: number): string =>
  sentenceStart(`${SMALL[count] ?? countText(count, upTo)} ${count === 1 ? one : several}`)

const sentenceStart = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1)

/** A message of the API as a sentence. */
export const sentenceOf = (message: string): string => sentenceStart(/[.!?…]$/.test(message) ? message : `${message}.`)

/** `19.99 EUR`; a dash where there is none. */
export const money = (amount: string | null | undefined, currency: string | null | undefined): string =>
  amount == null ? '–' : `${grouped(amount)} ${currency ?? ''}`.trim()

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

/** How long ago, calm enough to be read while it changes: `52 s`, `11 min`, `6 h 38 min`, `3 days`. */
export function age(at: string, now: number): string {
  const ms = Math.max(0, now - Date.parse(at))
  if (ms < MINUTE) return `${Math.floor(ms / SECOND)} s`
  if (ms < HOUR) return `${Math.floor(ms / MINUTE)} min`
  return duration(ms)
}

/** `09:31:04`; with the day where that is another one. */
export function clock(at: string, now: number, digits: 'minutes' | 'seconds' | 'milliseconds' = 'seconds'): string {
  const iso = new Date(at).toISOString()
  const time = iso.slice(11, { minutes: 16, seconds: 19, milliseconds: 23 }[digits])
  return iso.slice(0, 10) === new Date(now).toISOString().slice(0, 10) ? time : `${dayOf(at)}, ${time}`
}

const DAYS = ['Sun', 'Mon', 'Tue', 'Wed', 'Thu', 'Fri', 'Sat']
const MONTHS = [
  ...['January', 'February', 'March', 'April', 'May', 'June', 'July'],
  ...['August', 'September', 'October', 'November', 'December'],
]

/** `Mon 23 March` */
export function dayOf(at: string | number): string {
  const date = new Date(at)
  return `${DAYS[date.getUTCDay()]} ${date.getUTCDate()} ${MONTHS[date.getUTCMonth()]}`
}

/** An instant that can be read by machines and people, shown as the given text. */
export const timeTag = (at: string, text: Piece): Html => html`<time datetime="${at}">${text}</time>`

/** `11 min ago` */
export const ago = (at: string, now: number): Html => timeTag(at, `${age(at, now)} ago`)

/** `09:31:04` */
export const clockTag = (at: string, now: number, digits?: Parameters<typeof clock>[2]): Html =>
  timeTag(at, clock(at, now, digits))
