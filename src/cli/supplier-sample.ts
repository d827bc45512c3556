/**
 * Whether a supplier can be used: three products as the dialect reads them, for a person to compare with the supplier's
 * own pages, or why there are none and what to correct.
 *
 * A dialect that leads to the wrong field, or to cents where it says euros, reads every record without a fault. Only a
 * person who knows a price sees it.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Dialect } from '../dialect/dialect.ts'
import { formatDecimal } from '../domain/money.ts'
import type { SupplierOffer } from '../domain/supplier.ts'
import { Failure, messageOf } from '../errors.ts'
import type { Secret } from '../secret.ts'
import { createSupplier, type Supplier } from '../supplier/client.ts'
import { Unreadable } from '../supplier/read.ts'
import { type Columns, right, table } from './tables.ts'
import { commandLine } from './words.ts'

const COUNT = 3

/** Enough to find some that can be bought, few enough for one quick request. */
const PAGE = 25

/** Those that say most: what can be bought and has a cost comes first. */
export const chooseProducts = (offers: SupplierOffer[]): SupplierOffer[] =>
  offers.toSorted((one, other) => Number(tellsMore(other)) - Number(tellsMore(one))).slice(0, COUNT)

const tellsMore = ({ available, costFault }: SupplierOffer): boolean => available && costFault === undefined

/**
 * Three products.
 *
 * @throws Failure `unavailable` when none can be read, or none has a cost: what the supplier or the first record says
 */
async function readProducts(supplier: Pick<Supplier, 'products'>): Promise<SupplierOffer[]> {
  const { items, unreadable, requestId } = await supplier.products({ page: 1, limit: PAGE })
  const [fault] = unreadable
  if (items.length > 0) {
    if (items.some(({ costFault }) => costFault === undefined)) return chooseProducts(items)
    const shown = chooseProducts(items).map(productText).join('; ')
    throw new Failure('unavailable', `no product has a cost that can be read: ${shown}`, { reason: 'cost' })
  }
  if (!fault) throw new Failure('unavailable', 'the supplier lists no product', { reason: 'empty' })
  const message = `no product can be read: ${fault.setting} of the dialect is ${fault.field}, and ${fault.seen} is there`
  throw new Unreadable(fault, message, requestId)
}

/** What a supplier is asked with. */
export interface SupplierAccess {
  /** Ends in `/v1`. */
  baseUrl: string
  dialect: Dialect
  apiKey: Secret
}

/** For one try of three: a person waits for it. */
const PERSON_WAITS_MS = 5_000

/** Reads three products from a supplier that may not be set up yet. */
export async function trySupplier(access: SupplierAccess): Promise<SupplierTry> {
  const supplier = createSupplier({
    ...access,
    now: () => Date.now(),
    random: Math.random,
    sleep: (ms) => sleep(ms),
    fetchDeadlineMs: PERSON_WAITS_MS,
  })
  try {
    return { products: await readProducts(supplier) }
  } catch (error) {
    return { fault: accessFault(error, access) }
  } finally {
    await supplier.close()
  }
}

/** As a table: name, cost, stock. */
export function productTable(offers: SupplierOffer[], width: number): string {
  const columns: Columns<SupplierOffer> = { NAME: 'name', COST: right(costText), STOCK: stockText }
  return table(offers, columns, width)
}

/** In one line. */
export const productText = (offer: SupplierOffer): string =>
  `${offer.name}, cost ${costText(offer)}, stock ${stockText(offer)}`

/** For `--json`. */
export const productView = (offer: SupplierOffer) => ({
  productId: offer.productId,
  sku: offer.sku,
  name: offer.name,
  cost: costText(offer),
  stock: stockText(offer),
})

const costFaults = {
  missing: 'cannot be read',
  zero: 'is 0',
  negative: 'is below 0',
  currency: 'in another currency',
} satisfies Record<NonNullable<SupplierOffer['costFault']>, string>

function costText({ costMinor, currency, costFault }: SupplierOffer): string {
  // Also in --json: no grouping.
  const amount = `${formatDecimal({ minor: costMinor, currency })} ${currency}`
  if (costFault === undefined) return amount
  return costMinor > 0 ? `${amount}, ${costFaults[costFault]}` : costFaults[costFault]
}

function stockText({ available, localStock, providerStock }: SupplierOffer): string {
  if (!available) return 'cannot be bought'
  if (localStock === undefined && providerStock === undefined) return 'not counted'
  if (localStock === undefined || providerStock === undefined) return String(localStock ?? providerStock)
  return `${localStock + providerStock} (${localStock} local, ${providerStock} provider)`
}

/** What a person can correct, or do instead. */
export type Correction = 'key' | 'address' | 'dialect' | 'again' | 'stop'

/** Why the supplier cannot be used. */
export interface AccessFault {
  /** What is most likely wrong. */
  correct: Correction
  /** The cause, and what to do about it. */
  message: string
}

/** Three products, or why there are none. */
export type SupplierTry = { products: SupplierOffer[] } | { fault: AccessFault }

const FITTING = 'See docs/fitting-a-supplier.md'

/** One sentence for each cause. @param error what reading three products threw */
function accessFault(error: unknown, { baseUrl, dialect }: SupplierAccess): AccessFault {
  const message = messageOf(error)
  const what = message.replace(/^the supplier /, '')
  const reason = error instanceof Failure ? error.reason : undefined
  switch (reason) {
    case 'unauthorized': {
      const where = `It was sent in the header ${dialect.headers.apiKey}, as the dialect ${dialect.name} says.`
      return { correct: 'key', message: `${message}. Check the key. ${where}` }
    }
    case 'unreachable':
    case 'no_answer': {
      const check = 'Check the address, and that this machine may connect to it.'
      return { correct: 'address', message: `${baseUrl} does not answer: it ${inWords(what)}. ${check}` }
    }
    case 'unexpected_status':
      if (!message.includes('answered 404')) return otherDialect(baseUrl, what, dialect)
      return noApi(baseUrl, what)
    case 'redirect':
    case 'not_found':
      return noApi(baseUrl, what)
    case 'unreadable':
      if (!(error instanceof Unreadable)) return noApi(baseUrl, what)
      return { correct: 'dialect', message: unreadableText(error, dialect.name) }
    case 'cost': {
      const check = `${FITTING}: money in the dialect ${dialect.name} says how amounts are written.`
      return { correct: 'dialect', message: `${message}. ${check}` }
    }
    case 'empty':
      return { correct: 'key', message: `${message}. May this key see any?` }
    default:
      return { correct: 'again', message: `${baseUrl}: ${message}. Try again later.` }
  }
}

/** What the usual network errors say. */
const NETWORK_ERRORS: Record<string, string> = {
  ECONNREFUSED: 'nothing listens there',
  ENOTFOUND: 'there is no such name',
  EAI_AGAIN: 'the name cannot be looked up now',
  UND_ERR_CONNECT_TIMEOUT: 'nothing takes the connection',
  timeout: 'no answer in time',
}

function inWords(what: string): string {
  const [code = ''] = /\w+$/.exec(what) ?? []
  const words = NETWORK_ERRORS[code]
  return words === undefined ? what : `${what} (${words})`
}

function noApi(baseUrl: string, what: string): AccessFault {
  const check = 'Check the address: it ends in /v1, where the API is.'
  return { correct: 'address', message: `${baseUrl} is not the Reseller API: it ${what}. ${check}` }
}

function otherDialect(baseUrl: string, what: string, { name }: Dialect): AccessFault {
  const check = `Is that the Reseller API, and is ${name} its dialect? ${FITTING}.`
  return { correct: 'dialect', message: `${baseUrl} refuses the request: it ${what}. ${check}` }
}

function unreadableText({ unread }: Unreadable, name: string): string {
  const { field, setting, seen } = unread
  const what = `the dialect ${name} cannot read the supplier's answer: it has ${seen} at ${field} (${setting})`
  return `${what}. ${FITTING}; \`${commandLine('dialect check --help')}\` shows how to look at all of it.`
}
