/** Numbers, amounts, times and stores as people read them. Instants come as the API gives them, ISO 8601 in UTC. */
import { age, countText, money as moneyText } from '../domain/figures.ts'
import { type Html, html, type Piece } from '../domain/html.ts'
import type { Visit } from './page.ts'

const SMALL = ['no', 'one', 'two', 'three', 'four', 'five', 'six', 'seven', 'eight', 'nine', 'ten', 'eleven', 'twelve']

/** Counts things, with the number in words up to twelve, for the beginning of a sentence: `Four things`. */
export const countedInWords = (count: number, one: string, several = `${one}s`, upTo?: number): string =>
  sentenceStart(`${SMALL[count] ?? countText(count, upTo)} ${count === 1 ? one : several}`)

export const sentenceStart = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1)

/** Returns a message of the API as a sentence. */
export const sentenceOf = (message: string): string => sentenceStart(/[.!?…]$/.test(message) ? message : `${message}.`)

/** Returns `19.99 EUR`; a dash where there is no amount. */
export const money = (amount: string | null | undefined, currency: string | null | undefined): string =>
  amount == null ? '–' : moneyText(amount, currency)

/** Returns how long ago an instant was: `11 min`. */
export const ageOf = (at: string, now: number): string => age(now - Date.parse(at))

type Digits = 'minutes' | 'seconds' | 'milliseconds'

/** Returns `09:31:04`, with the day where it is not the day of `now`. */
export function clock(at: string, now: number, digits: Digits = 'seconds'): string {
  const iso = new Date(at).toISOString()
  const time = iso.slice(11, { minutes: 16, seconds: 19, milliseconds: 23 }[digits])
  return iso.slice(0, 10) === new Date(now).toISOString().slice(0, 10) ? time : `${dayIn(at, now)}, ${time}`
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

/** `23 Mar` */
export const shortDay = (at: string | number): string =>
  dayOf(at)
    .slice(4)
    .replace(/ (\w{3})\w*$/, ' $1')

/** `Mon 23 March`, and `Mon 23 March 2025` in a year that is not that of `now`. */
export function dayIn(at: string | number, now: number): string {
  const year = new Date(at).getUTCFullYear()
  return year === new Date(now).getUTCFullYear() ? dayOf(at) : `${dayOf(at)} ${year}`
}

/** An instant that can be read by machines and people, shown as the given text. */
export const timeTag = (at: string, text: Piece): Html => html`<time datetime="${at}">${text}</time>`

/** `11 min ago` */
export const ago = (at: string, now: number): Html =>
  html`<time datetime="${at}" data-age=" ago">${ageOf(at, now)} ago</time>`

/** `11 min`, which grows while it is read. */
export const ageTag = (at: string, now: number): Html => html`<time datetime="${at}" data-age>${ageOf(at, now)}</time>`

/** `09:31:04` in UTC. The script of the page shows it in the time zone of the reader. */
export const clockTag = (at: string, now: number, digits: Digits = 'seconds'): Html =>
  html`<time datetime="${at}" data-clock="${digits}">${clock(at, now, digits)}</time>`

/** What people call each configured store, by its id. */
export type StoreNames = ReadonlyMap<string, string>

export async function storeNames(visit: Pick<Visit, 'status'>): Promise<StoreNames> {
  const { stores } = await visit.status()
  return new Map(stores.map(({ store, name }) => [store, name]))
}

/** Returns the name of a store. A store that is no longer configured goes by its id. */
export const storeName = (names: StoreNames, store: string): string => names.get(store) ?? store
