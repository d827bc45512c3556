import { z } from 'zod'
import type { ImportFilter, StorePolicy } from '../domain/listing.ts'
import { parseDecimal } from '../domain/money.ts'
import { pricingPolicy } from '../domain/pricing.ts'
import { readRules } from '../domain/pricing-rules.ts'
import { readRate } from '../domain/rates.ts'
import { keyWays } from '../domain/store-update.ts'
import type { FieldFault } from '../errors.ts'

/* Settings that all kinds of stores share: how a store sells, and exchange rates. Settings of one kind are in its folder. */

export const percent = z.string().regex(/^\d{1,4}(\.\d{1,4})?$/, 'a percentage such as "12.5", without a sign')
export const amount = z.string().regex(/^\d{1,12}(\.\d{1,3})?$/, 'an amount such as "250.00", without a currency')
const currency = z.string().regex(/^[A-Z]{3}$/, 'an ISO 4217 code, such as "EUR"')
export const webAddress = z
  .string()
  .trim()
  .refine((text) => addressFault(text) === undefined, {
    abort: true,
    error: ({ input }) => addressFault(String(input)),
  })
/** An address to which paths are appended. */
export const siteAddress = webAddress.refine((url) => !/[?#]/.test(url), 'an address without ? and #')
export const isLoopback = (host: string): boolean => /^(localhost|127\.\d+\.\d+\.\d+|::1)$/.test(host)

function addressFault(text: string): string | undefined {
  const url = /^https?:\/\//i.test(text) ? URL.parse(text) : null
  if (url === null) {
    const guess = /^[\w-]+(\.[\w-]+)+(:\d+)?([/?]|$)/.test(text) ? `, such as https://${text}` : ''
    return `an address that starts with http:// or https://${guess}`
  }
  if (url.username || url.password) return 'an address without a user and a password: others may read them'
  return /\s/.test(text) ? 'an address without spaces' : undefined
}

const units = z.number().int().min(0).max(1_000_000_000)
const instant = z.union([z.iso.date(), z.iso.datetime({ offset: true })], {
  error: 'a day or an instant, such as "2026-01-31" or "2026-01-31T08:00:00Z"',
})

/** Settings that belong together. Each has a default, so all of them may be absent. */
export const section = <S extends z.core.$ZodLooseShape>(shape: S) => z.strictObject(shape).prefault({} as never)

/** What a pricing rule adds to the cost: a percentage, a flat amount, or both. */
const markup = { percent: percent.optional(), flat: amount.optional() }

export const pricingShape = z.strictObject({
  /** This markup is added to a cost when no other rule applies. */
  markup: section({ percent: percent.default('20'), flat: amount.default('0') }),
  /** Rules by the cost in the store's currency, in ascending order. The last rule has no `upTo`. */
  bands: z.array(z.strictObject({ upTo: amount.optional(), ...markup })).default([]),
  /** Rules by the supplier's name of the category, and rules by SKU. An offer with a rule by SKU ignores all other rules. */
  categories: z.record(z.string().min(1), z.strictObject(markup)).default({}),
  products: z.record(z.string().min(1), z.strictObject({ fixed: amount.optional(), ...markup })).default({}),
  /** The lowest price is the cost plus the larger of these two amounts. */
  margin: section({ percent: percent.default('0'), flat: amount.default('0') }),
  rounding: section({
    step: amount.nullable().default(null),
    endings: z.array(z.string()).nullable().default(null),
    direction: z.enum(['up', 'down', 'nearest']).default('up'),
  }),
  compareAt: z
    .union([z.literal('base_price'), z.strictObject({ percent })], {
      error: 'must be "base_price", {"percent": "25"} or null',
    })
    .nullable()
    .default(null),
  /** A price change that is larger than this waits until a person approves it; null: no change waits. */
  jumpPercent: percent.nullable().default('50'),
})

/** The settings that say how a store of any kind sells. */
export const sellingShape = {
  /** The currency that the store sells in (default: the currency of the supplier). */
  currency: currency.optional(),
  pricing: pricingShape.prefault({}),
  stock: section({
    source: z.enum(['both', 'local', 'provider']).default('both'),
    buffer: units.default(0),
    cap: units.min(1).nullable().default(null),
    zeroUnder: units.default(0),
  }),
  listings: section({
    /** `all`: every linked offer and every offer that matches the filters; `linked`: linked offers only. */
    mode: z.enum(['all', 'linked']).default('all'),
    categories: z.array(z.string().min(1)).nullable().default(null),
    /** A text that the name or the SKU contains, in upper or lower case. */
    text: z.string().min(1).nullable().default(null),
    /** Offers that cost less than `costMin` or more than `costMax` are not listed. Both are in the supplier's currency. */
    costMin: amount.nullable().default(null),
    costMax: amount.nullable().default(null),
    inStockOnly: z.boolean().default(false),
  }),
}

/** A language, with its region where that matters. */
export const languageTag = z.string().regex(/^[a-z]{2,3}(-[A-Za-z0-9]{2,8})*$/, 'a language such as "de" or "pt-BR"')

export const everyStore = {
  /** The permanent id of the store. Every idempotency key is derived from it, so it must never change. */
  id: z
    .string()
    .regex(/^[a-z0-9-]{1,40}-[a-z0-9]{8}$/, 'a short name, a dash and 8 characters; `quayside init` makes one'),
  name: z.string().min(1).max(100),
  /** The language of the page of keys, such as `de`. Without a translation the page is in English. */
  language: languageTag.default('en'),
  /** Where customers reach the store: a web address, or `mailto:` with an address; null: the page of keys names none. */
  contact: z
    .union([
      webAddress,
      z.string().regex(/^mailto:[^\s<>"]+@[^\s<>"]+$/, 'an address such as "mailto:help@shop.example"'),
    ])
    .nullable()
    .default(null),
  /**
   * How keys reach customers: by a link to their page, in plain text, or both ways. Absent: in plain text, as in a configuration
   * that is older than the page.
   */
  deliver: z.enum(keyWays).optional(),
  /**
   * `on`: the store sells. `paused`: it sells nothing, and orders are still taken and bought. `off`: it is not live yet, so nothing
   * is written to it, and no order of it is read or taken.
   */
  selling: z.enum(['on', 'paused', 'off']).default('on'),
  ...sellingShape,
}

/** Settings of every kind of shop, which is a store whose products and orders Quayside reads. */
export const everyShop = {
  /** The address of the shop, as its owner opens it. */
  url: siteAddress,
  /** What becomes of an offer that the shop lacks: nothing, a draft for the merchant to publish, or a product on sale. */
  create: z.enum(['draft', 'publish']).nullable().default(null),
  /** What becomes of a product that the supplier sells no more. The product has no stock in either case. */
  whenGone: z.enum(['keep', 'unpublish']).default('keep'),
  /** How long a paid order waits before it is bought, so that a fraud check can come first. */
  delayMinutes: z.number().int().min(0).max(10_080).default(0),
  /** What becomes of units that are added to an order later (default: `buy` if the shop says that they are paid, else `ask`). */
  growth: z.enum(['buy', 'ask']).optional(),
}

export const ratesShape = z
  .array(
    z.strictObject({
      from: currency,
      to: currency,
      /** How many units of `to` one unit of `from` is worth. */
      rate: z.string().regex(/^(?=.*[1-9])\d{1,7}(\.\d{1,8})?$/, 'a rate above 0 as text, such as "1.0834"'),
      /** Where several rates are valid, the rate that began last counts. */
      validFrom: instant.optional(),
      validUntil: instant.optional(),
    }),
  )
  .default([])

export type SellingSettings = z.infer<z.ZodObject<typeof sellingShape>>
type ShopSettings = z.infer<z.ZodObject<typeof everyShop>>
export type RatesSettings = z.infer<typeof ratesShape>

/** Returns the faults of settings that do not fit each other: amounts and their currency, bands, endings, rates. */
export function sellingFaults(stores: SellingSettings[], rates: RatesSettings, supplierCurrency: string): FieldFault[] {
  return [
    ...stores.flatMap((store, index) => storeFaults(store, rates, supplierCurrency, `stores.${index}`)),
    ...rateFaults(rates),
  ]
}

function storeFaults(
  store: SellingSettings,
  rates: RatesSettings,
  supplierCurrency: string,
  path: string,
): FieldFault[] {
  const { pricing, stock, listings, currency: own = supplierCurrency } = store
  const faults = readRules(pricing, own).faults.map(({ field, message }) => ({ field: `pricing.${field}`, message }))
  if (own !== supplierCurrency && !rates.some(({ from, to }) => from === supplierCurrency && to === own)) {
    const message = `no rate turns costs in ${supplierCurrency} into ${own}: add one from ${supplierCurrency} to ${own} to \`rates\``
    faults.push({ field: 'currency', message })
  }
  if (stock.cap !== null && stock.cap < stock.zeroUnder) {
    faults.push({ field: 'stock.cap', message: 'under stock.zeroUnder: nothing would ever be in stock' })
  }
  const [least, most] = (['costMin', 'costMax'] as const).map((name) => {
    const text = listings[name]
    const minor = text === null ? undefined : parseDecimal(text, supplierCurrency)
    if (text !== null && minor === undefined) {
      faults.push({ field: `listings.${name}`, message: `not an amount in ${supplierCurrency}: ${text}` })
    }
    return minor
  })
  if (least !== undefined && most !== undefined && least > most) {
    faults.push({ field: 'listings.costMax', message: 'under listings.costMin: nothing would ever be listed' })
  }
  return faults.map(({ field, message }) => ({ field: `${path}.${field}`, message }))
}

function rateFaults(rates: RatesSettings): FieldFault[] {
  const read = rates.map(readRate)
  return read.flatMap((rate, index) => {
    const { from, to, validFrom, validUntil } = rate
    const same = read.findIndex((other) => other.from === from && other.to === to && other.validFrom === validFrom)
    return [
      ...(from === to ? [{ field: `rates.${index}.to`, message: `must be another currency than ${from}` }] : []),
      ...(validUntil <= validFrom ? [{ field: `rates.${index}.validUntil`, message: 'must be after validFrom' }] : []),
      ...(same < index ? [{ field: `rates.${index}`, message: `begins at the same time as rates.${same}` }] : []),
    ]
  })
}

/** Returns the policy of a store whose settings have no faults. */
export const storePolicy = (
  store: SellingSettings & Partial<Pick<ShopSettings, 'create' | 'whenGone'> & { selling: string }>,
  rates: RatesSettings,
  supplierCurrency: string,
): StorePolicy => ({
  pricing: pricingPolicy({ currency: store.currency ?? supplierCurrency, pricing: store.pricing }, rates),
  stock: store.stock,
  filter: filterOf(store.listings, supplierCurrency),
  ...(store.selling === 'paused' && { isPaused: true as const }),
  ...(store.create !== undefined && {
    products: { create: store.create, unpublishGone: store.whenGone === 'unpublish' },
  }),
})

function filterOf({ costMin, costMax, ...filter }: SellingSettings['listings'], currency: string): ImportFilter {
  const minor = (text: string | null) => (text === null ? null : (parseDecimal(text, currency) ?? null))
  return { ...filter, costMinMinor: minor(costMin), costMaxMinor: minor(costMax) }
}
