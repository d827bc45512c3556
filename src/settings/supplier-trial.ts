/**
 * Tries whether a supplier can be used. The result is three products as the dialect reads them, which a person compares with
 * the supplier's own pages. Without products, the result says why there are none and what to correct.
 *
 * A dialect that leads to the wrong field, or that takes cents for euros, reads every record without a fault. Only a person
 * who knows a price sees the mistake.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { ENCRYPT, isClearText } from '../config/warnings.ts'
import { formatDecimal } from '../domain/money.ts'
import type { SupplierOffer } from '../domain/supplier.ts'
import { Failure, type FailureReason, messageOf } from '../errors.ts'
import { failed, sound } from '../stores/findings.ts'
import type { StoreFinding } from '../stores/store.ts'
import { createSupplier, type Supplier, type SupplierSettings, Unreadable, unreadable } from '../supplier/client.ts'

const COUNT = 3

/**
 * How many records of a list are read. A short page is enough: some of its products can be bought, and an unreadable record is
 * hardly ever the only one.
 */
export const PAGE = 25

/** Chooses the products by which a person can judge the dialect best: those that can be bought and have a cost come first. */
export const chooseProducts = (offers: SupplierOffer[]): SupplierOffer[] =>
  offers.toSorted((one, other) => Number(tellsMore(other)) - Number(tellsMore(one))).slice(0, COUNT)

const tellsMore = ({ available, costFault }: SupplierOffer): boolean => available && costFault === undefined

/**
 * Reads three products.
 *
 * @throws Failure `unavailable` when no product can be read, or none has a cost. Its message says what was found instead.
 */
async function readProducts(supplier: Pick<Supplier, 'products'>): Promise<SupplierOffer[]> {
  const { items, unreadable: faults, requestId } = await supplier.products({ page: 1, limit: PAGE })
  const [fault] = faults
  if (items.length > 0) {
    if (items.some(({ costFault }) => costFault === undefined)) return chooseProducts(items)
    const shown = chooseProducts(items).map(productText).join('; ')
    throw new Failure('unavailable', `no product has a cost that can be read: ${shown}`, { reason: 'cost' })
  }
  if (!fault) throw new Failure('unavailable', 'the supplier lists no product', { reason: 'empty' })
  throw unreadable(fault, requestId)
}

/** What is needed to ask a supplier. */
export type SupplierAccess = Pick<SupplierSettings, 'baseUrl' | 'dialect' | 'apiKey'>

/** The deadline for each of the three tries of a request. It is short, because a person waits for the result. */
const PERSON_WAITS_MS = 5_000

/** Reads three products from a supplier that may not be set up yet. @returns the products, or why there are none */
export async function trySupplier(
  access: SupplierAccess,
): Promise<{ products: SupplierOffer[] } | { fault: AccessFault }> {
  const { products, fault } = await visit(access, async () => null)
  return fault ? { fault } : { products }
}

/** Reads three products, then whatever `more` reads. */
async function visit<T>(access: SupplierAccess, more: (supplier: Supplier) => Promise<T>) {
  let supplier: Supplier | undefined
  try {
    const machine = { now: () => Date.now(), random: Math.random, sleep: (ms: number) => sleep<void>(ms) }
    supplier = createSupplier({ ...access, ...machine, fetchDeadlineMs: PERSON_WAITS_MS })
    const products = await readProducts(supplier)
    return { products, more: await more(supplier), fault: undefined }
  } catch (error) {
    return { products: [], more: undefined, fault: accessFault(error, access) }
  } finally {
    await supplier?.close()
  }
}

/** What a test of a supplier found, in the order in which a person can correct it. A test without a failed finding has products. */
export interface SupplierTest {
  findings: StoreFinding[]
  products: SupplierOffer[]
  /** `2500.00 EUR`; null where it could not be read. */
  balance: string | null
  /** The answer that a person most likely has to correct; null where nothing failed. */
  correct: Correction | null
}

/** Tests a supplier as its page shows it: address, encryption, key, products, balance. The key never leaves this machine in clear text. */
export async function testSupplier(access: SupplierAccess): Promise<SupplierTest> {
  const { baseUrl } = access
  const none = { products: [], balance: null }
  if (isClearText(baseUrl)) {
    const detail = 'the API key and licence keys would travel unencrypted. Nothing was sent.'
    const fix = `${ENCRYPT[0]?.toUpperCase()}${ENCRYPT.slice(1)}.`
    return { ...none, findings: [failed('encryption', detail, fix)], correct: 'address' }
  }
  const encrypted = baseUrl.startsWith('https:') ? 'the connection is encrypted' : 'this machine or a private network'
  const reached = [sound('address', `${baseUrl} answers`), sound('encryption', encrypted)]
  const { products, more, fault } = await visit(access, (supplier) =>
    supplier.balance().catch((error: unknown) => messageOf(error)),
  )
  if (fault) {
    const { correct, message } = fault
    if (correct === 'address' || correct === 'again')
      return { ...none, findings: [failed('address', message)], correct }
    const before = correct === 'key' ? reached : [...reached, sound('API key', 'the supplier takes it')]
    const check = correct === 'key' ? 'API key' : 'products'
    return { ...none, findings: [...before, failed(check, message)], correct }
  }
  const balance =
    typeof more === 'object'
      ? `${formatDecimal({ minor: more.amountMinor, currency: more.currency })} ${more.currency}`
      : null
  return {
    findings: [
      ...reached,
      sound('API key', 'the supplier takes it'),
      balance === null
        ? { check: 'account', state: 'doubtful', detail: `it cannot be read: ${more}`, fix: null }
        : sound('account', balance),
      sound('products', `${products.length === 1 ? 'one was' : `${products.length} were`} read`),
    ],
    products,
    balance,
    correct: null,
  }
}

export const productText = (offer: SupplierOffer): string =>
  `${offer.name}, cost ${costText(offer)}, stock ${stockText(offer)}`

/** Returns a product as `--json` prints it. */
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

export function costText({ costMinor, currency, costFault }: SupplierOffer): string {
  // The amount has no grouping of digits, because `--json` prints it too.
  const amount = `${formatDecimal({ minor: costMinor, currency })} ${currency}`
  if (costFault === undefined) return amount
  return costMinor > 0 ? `${amount}, ${costFaults[costFault]}` : costFaults[costFault]
}

export function stockText({ available, localStock, providerStock }: SupplierOffer): string {
  if (!available) return 'cannot be bought'
  if (localStock === undefined && providerStock === undefined) return 'not counted'
  if (localStock === undefined || providerStock === undefined) return String(localStock ?? providerStock)
  return `${localStock + providerStock} (${localStock} local, ${providerStock} provider)`
}

/** What a person can correct, or do instead. */
export type Correction = 'key' | 'address' | 'dialect' | 'again' | 'stop'

export type AccessFault = ReturnType<typeof accessFault>

const FITTING = 'See docs/fitting-a-supplier.md'

/** Says why the supplier cannot be used, and what to correct most likely. @param error what `readProducts` threw */
function accessFault(error: unknown, { baseUrl, dialect: { name, headers, paths } }: SupplierAccess) {
  const said = messageOf(error)
  const what = said.replace(/^the supplier /, '')
  const silent = `${baseUrl} does not answer: it ${inWords(what)}. Check the address, and that this machine may connect to it.`
  const where = paths ? '' : ': it ends in /v1, where the API is'
  const noApi: Cause = ['address', `${baseUrl} is not the Reseller API: it ${what}. Check the address${where}.`]
  const refused = `${baseUrl} refuses the request: it ${what}. Is that the Reseller API, and is ${name} its dialect?`
  const inHeader = headers.apiKey && `in the header ${headers.apiKey}, `
  const causes: Partial<Record<FailureReason, Cause>> = {
    unauthorized: ['key', `${said}. Check the key. It was sent ${inHeader}as the dialect ${name} says.`],
    unreachable: ['address', silent],
    no_answer: ['address', silent],
    unexpected_status: what.includes('answered 404') ? noApi : ['dialect', `${refused} ${FITTING}.`],
    redirect: noApi,
    not_found: noApi,
    unreadable: error instanceof Unreadable ? ['dialect', unreadableText(error, name)] : noApi,
    cost: ['dialect', `${said}. ${FITTING}: money in the dialect ${name} says how amounts are written.`],
    empty: ['key', `${said}. May this key see any?`],
  }
  const reason = error instanceof Failure ? error.reason : undefined
  const isUnfit = error instanceof Failure && error.code === 'invalid'
  const known: Cause | undefined = isUnfit ? ['key', `${said}.`] : reason && causes[reason]
  const [correct, message] = known ?? ['again', `${baseUrl}: ${said}. Try again later.`]
  return { correct, message }
}

type Cause = [correct: Correction, message: string]

/** What the most frequent network errors mean, in words. */
const NETWORK_ERRORS: Record<string, string> = {
  ECONNREFUSED: 'nothing listens there',
  ENOTFOUND: 'there is no such name',
  EAI_AGAIN: 'the name cannot be looked up now',
  UND_ERR_CONNECT_TIMEOUT: 'nothing takes the connection',
  timeout: 'no answer in time',
  ERR_SSL_WRONG_VERSION_NUMBER: 'there is no TLS: that port speaks plain HTTP',
  ERR_SSL_PACKET_LENGTH_TOO_LONG: 'there is no TLS: that port speaks plain HTTP',
  CERT_HAS_EXPIRED: 'its certificate has expired',
  DEPTH_ZERO_SELF_SIGNED_CERT: 'this machine does not trust its certificate',
  SELF_SIGNED_CERT_IN_CHAIN: 'this machine does not trust its certificate',
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: 'this machine does not trust its certificate',
  ERR_TLS_CERT_ALTNAME_INVALID: 'its certificate is for another name',
}

function inWords(what: string): string {
  const [code = ''] = /\w+$/.exec(what) ?? []
  const words = NETWORK_ERRORS[code]
  return words === undefined ? what : `${what} (${words})`
}

function unreadableText({ unread }: Unreadable, name: string): string {
  const { field, setting, seen } = unread
  const what = `the dialect ${name} cannot read the supplier's answer: it has ${seen} at ${field} (${setting})`
  return `${what}. ${FITTING}; \`quayside dialect check --help\` shows how to look at all of it.`
}
