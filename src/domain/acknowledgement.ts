import type { ListingNotice } from './labels.ts'
import { parseDecimal } from './money.ts'

/** The fields of a pushed listing that are compared with the store's answer. */
export interface Sent {
  id: string
  /** Decimal text. */
  price: string
  currency: string
  stock: number | null
  /** The lowest price that covers cost and margin, in minor units; null when it is not known. */
  floorMinor: number | null
}

/** A store's answer about one listing. A price or stock is undefined where the store left it out. */
export interface ItemAnswer {
  id: string
  ok: boolean
  /** The store's own words for a refusal. */
  reason?: string | undefined
  price?: string | undefined
  stock?: number | null | undefined
  /** What a person should know of a listing that the store has taken; `detail` is a sentence. */
  notice?: Notice | undefined
}

export interface Notice {
  reason: ListingNotice
  detail: string
}

export type Acknowledgement =
  | { outcome: 'confirmed'; notice?: Notice }
  | { outcome: 'failed'; reason: 'refused' | 'not_acknowledged'; detail: string }
  | { outcome: 'failed'; reason: 'echo_differs' | 'sale_price'; detail: string; echo: Echo }

/** The price and stock that the store has, where they differ from what was sent. */
export interface Echo {
  /** In minor units of the currency that was sent; null when the price cannot be read. */
  priceMinor: number | null
  /** Null when the stock is not counted or cannot be read. */
  stock: number | null
}

/**
 * Judges a store's answer about one listing.
 *
 * A store reports one result for each listing: a listing without a result was not taken. A price or stock in the answer is the
 * value that the store has stored. Another value than the one that was sent is a failure: the store rounds, caps or converts.
 * The exception is a sale price of the merchant that still covers cost and margin.
 */
export function acknowledgementOf(sent: Sent, answer: ItemAnswer | undefined): Acknowledgement {
  if (!answer) {
    return { outcome: 'failed', reason: 'not_acknowledged', detail: 'the answer of the store does not mention it' }
  }
  if (!answer.ok) {
    return { outcome: 'failed', reason: 'refused', detail: answer.reason ?? 'the store gave no reason' }
  }
  const { price, stock } = answer
  const priceDiffers = price !== undefined && !isAmount(price, sent)
  const differences = [
    ...(priceDiffers ? [differs('price', sent.price, price)] : []),
    ...(stock === undefined || stock === sent.stock ? [] : [differs('stock', stockText(sent.stock), stockText(stock))]),
  ]
  const taken = { outcome: 'confirmed', ...(answer.notice && { notice: answer.notice }) } as const
  if (differences.length === 0) return taken
  const minor = parseDecimal(price ?? sent.price, sent.currency)
  const echo = {
    priceMinor: minor === undefined || minor < 0 ? null : minor,
    stock: stock === undefined ? sent.stock : countOf(stock),
  }
  if (priceDiffers && differences.length === 1 && answer.notice?.reason === 'sale_price' && echo.priceMinor !== null) {
    if (sent.floorMinor !== null && echo.priceMinor >= sent.floorMinor) return taken
    const detail = `${answer.notice.detail} and below cost and margin: it has no stock until you raise or remove it`
    return { outcome: 'failed', reason: 'sale_price', detail, echo }
  }
  return { outcome: 'failed', reason: 'echo_differs', detail: differences.join('; '), echo }
}

const countOf = (stock: number | null): number | null =>
  stock !== null && Number.isSafeInteger(stock) && stock >= 0 ? stock : null

const differs = (what: string, sent: string, echo: string): string => `${what} ${sent} was sent, the store has ${echo}`

/** Whether a text is the price that was sent; `"12.9"` is 12.90. */
const isAmount = (text: string, { price, currency }: Sent): boolean =>
  parseDecimal(text, currency) === parseDecimal(price, currency)

const stockText = (stock: number | null): string => (stock === null ? 'uncounted' : String(stock))
