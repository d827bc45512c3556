/** One record of an answer. The service gives the shape; what is printed is picked by name. */
export type Row = Record<string, unknown>

export const asRow = (value: unknown): Row =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Row) : {}

export const asRows = (value: unknown): Row[] => (Array.isArray(value) ? value.map(asRow) : [])

/** Any value as one line of text; `-` for none. */
export function cell(value: unknown): string {
  if (value === null || value === undefined || value === '') return '-'
  if (typeof value === 'boolean') return value ? 'yes' : 'no'
  if (typeof value === 'number') return value.toLocaleString('en-US')
  if (Array.isArray(value)) return value.length === 0 ? '-' : value.map(cell).join(' ')
  return plain(typeof value === 'string' ? value : JSON.stringify(value))
}

/** A count with the word for one or for several: `1 dead delivery`, `1,234 dead deliveries`. */
export const counted = (count: unknown, one: string, several: string): string =>
  `${cell(count)} ${Number(count) === 1 ? one : several}`

/** Counts by name, the empty ones left out: `3 accepted, 41 fulfilled`. */
export function countsText(value: unknown): string {
  const counts = Object.entries(asRow(value)).filter(([, count]) => count !== 0)
  return counts.length === 0
    ? 'none'
    : counts.map(([name, count]) => `${cell(count)} ${name.replaceAll('_', ' ')}`).join(', ')
}

/**
 * Text that a terminal prints and never obeys: names and messages come from the supplier and from stores, and an escape
 * sequence in one could rewrite what was printed above it.
 */
export const plain = (text: string): string => text.replaceAll(/[\p{C}\p{Zl}\p{Zp}]+/gu, ' ').trim()

/** Decimal text and its currency as one: `12.34 EUR`; `-` without an amount. */
export const money = (amount: unknown, currency: unknown): string =>
  typeof amount === 'string' ? plain(`${amount} ${typeof currency === 'string' ? currency : ''}`) : '-'

/** How long ago an instant was, in its largest whole unit: `40 s`, `12 min`, `3 h`, `5 d`. */
export function age(instant: unknown, now: number): string {
  const at = typeof instant === 'string' ? Date.parse(instant) : Number.NaN
  return Number.isNaN(at) ? '-' : duration(Math.max(0, now - at))
}

/** An instant for reading closely: `2026-08-02 14:03:11Z (4 min ago)`. */
export function instant(value: unknown, now: number): string {
  const at = typeof value === 'string' ? Date.parse(value) : Number.NaN
  if (Number.isNaN(at)) return '-'
  const text = `${new Date(at).toISOString().slice(0, 19).replace('T', ' ')}Z`
  return at > now ? `${text} (in ${duration(at - now)})` : `${text} (${duration(now - at)} ago)`
}

const units: [number, string][] = [
  [86_400_000, 'd'],
  [3_600_000, 'h'],
  [60_000, 'min'],
]

/** Milliseconds in their largest whole unit, down to whole seconds. */
export function duration(ms: number): string {
  const [size, name] = units.find(([unit]) => ms >= unit) ?? [1_000, 's']
  return `${Math.floor(ms / size)} ${name}`
}
