import { createHash } from 'node:crypto'
import { z } from 'zod'
import { roles, scopes } from '../access/tokens.ts'
import { parseDecimal } from '../domain/money.ts'
import { Failure } from '../errors.ts'
import { decisionTypes } from '../ordering/choices.ts'
import type { OrderInput } from '../ordering/intake.ts'

/** The message of every fault of a field: what would be right. */
const must = (words: string) => (issue: { input?: unknown }) =>
  issue.input === undefined ? `missing: ${words}` : `must be ${words}`

/** An object in which every unknown field is a fault: a misspelt one must not pass as absent. */
export const fields = <S extends z.core.$ZodLooseShape>(shape: S) =>
  z.strictObject(shape, {
    error: (issue) =>
      issue.code === 'unrecognized_keys'
        ? `unknown; known are ${Object.keys(shape).join(', ') || 'none'}`
        : must('a JSON object')(issue),
  })

/** Text that reads the same everywhere: no control characters, no lone surrogates, nothing blank at its ends. */
function text(max: number, min = 1) {
  const words = must(`text of ${min} to ${max} characters, without control characters and without spaces at its ends`)
  const inner = '[^\\p{Cc}\\p{Cs}\\p{Zl}\\p{Zp}]'
  const end = '[^\\p{Cc}\\p{Cf}\\p{Cs}\\p{Z}]'
  const pattern = new RegExp(`^(?=.{${min},${max}}$)${end}(?:${inner}*${end})?$`, 'su')
  return z.string({ error: words }).regex(pattern, { error: words })
}

/**
 * A name that a store gives: two of them that look alike are the same. Invisible characters and those that
 * change the direction of writing are refused.
 */
function reference(max: number) {
  const words = must(
    `text of 1 to ${max} characters, without control, invisible and bidirectional characters and without spaces at its ends`,
  )
  const hidden = '\\p{Cc}\\p{Cf}\\p{Cs}\\p{Zl}\\p{Zp}\\p{Default_Ignorable_Code_Point}\\u2800'
  const end = `[^${hidden}\\p{Zs}]`
  const pattern = new RegExp(`^(?=.{1,${max}}$)${end}(?:[^${hidden}]*${end})?$`, 'su')
  return z.string({ error: words }).regex(pattern, { error: words })
}

function whole(min: number, max: number) {
  const error = must(`a whole number from ${min} to ${max}`)
  return z.int({ error }).min(min, { error }).max(max, { error })
}

const decimal = (words: string) =>
  z.string({ error: must(words) }).regex(/^\d{1,12}(\.\d{1,3})?$/, { error: must(words) })
const oneOf = <const T extends readonly string[]>(values: T) =>
  z.enum(values, { error: must(`one of ${values.join(', ')}`) })
const id = z.string({ error: must('an id') }).regex(/^[0-9A-Za-z_-]{1,64}$/, { error: must('an id') })

const line = fields({
  /** The store's own id of the line; callbacks carry it. */
  id: reference(100),
  sku: text(100),
  /** 10,000: far above what a customer buys, far below what would flood the supplier with parts. */
  quantity: whole(1, 10_000),
  /** What the customer paid for one unit: bounds what it may cost. */
  unitPrice: decimal('decimal text such as "19.99"').optional(),
  currency: z
    .string()
    .regex(/^[A-Z]{3}$/, { error: must('an ISO 4217 code such as "EUR"') })
    .optional(),
})

/** Body of POST /orders. */
export const orderBody = fields({
  /** The store's own number of the order. The two that are left out are path segments that clients resolve away. */
  reference: reference(200).refine((given) => given !== '.' && given !== '..', {
    error: must('more than dots'),
  }),
  lines: z
    .array(line, { error: must('a list of 1 to 100 lines') })
    .min(1, { error: must('a list of 1 to 100 lines') })
    .max(100, { error: must('a list of 1 to 100 lines') }),
})
  .superRefine(({ lines }, context) => {
    const first = new Map<string, number>()
    for (const [place, { id, unitPrice, currency }] of lines.entries()) {
      const fault = (field: string, message: string) =>
        context.addIssue({ code: 'custom', path: ['lines', place, field], message })
      if (first.has(id)) fault('id', `must differ from line to line; lines.${first.get(id)} has it too`)
      else first.set(id, place)
      if (unitPrice !== undefined && currency === undefined) fault('currency', 'missing: it goes with unitPrice')
      if (unitPrice === undefined && currency !== undefined) fault('unitPrice', 'missing: it goes with currency')
      if (unitPrice !== undefined && currency !== undefined && parseDecimal(unitPrice, currency) === undefined) {
        fault('unitPrice', `must be an exact amount in ${currency}`)
      }
    }
  })
  .meta({
    examples: [
      { reference: '1001', lines: [{ id: '1', sku: 'WIN-11-PRO', quantity: 1, unitPrice: '19.99', currency: 'EUR' }] },
    ],
  })

/** A checked body in the words of ordering: `"19.9"` and `"19.90"` are one amount. */
export const orderInput = ({ reference, lines }: z.infer<typeof orderBody>): OrderInput => ({
  reference,
  lines: lines.map(({ id, sku, quantity, unitPrice, currency }) => ({
    id,
    sku,
    quantity,
    currency: currency ?? null,
    unitPriceMinor:
      unitPrice === undefined || currency === undefined ? null : (parseDecimal(unitPrice, currency) ?? null),
  })),
})

/** SHA-256 in hex, equal for equal orders: the sequence of fields and lines does not matter. */
export function orderDigest({ reference, lines }: OrderInput): string {
  const canonical = lines
    .map(({ currency, id, quantity, sku, unitPriceMinor }) => ({ currency, id, quantity, sku, unitPriceMinor }))
    .sort((a, b) => (a.id < b.id ? -1 : 1))
  return createHash('sha256')
    .update(JSON.stringify({ lines: canonical, reference }))
    .digest('hex')
}

/** Whether one purchase may exceed the spend caps of its order, the hour and the day. */
const overrideSpendCap = z.boolean({ error: must('true or false') }).optional()

export const releaseBody = fields({
  ceiling: decimal('the most that one unit may cost, such as "12.34"').optional(),
  overrideSpendCap,
})
/** Body of an operator's decision. The audit keeps the reason. */
export const decisionBody = fields({
  decision: oneOf(decisionTypes),
  /** Of the supplier; goes with `adopt` alone. */
  orderId: text(200).optional(),
  /** Goes with `buy_again` alone. */
  overrideSpendCap,
  reason: text(500, 3),
})
  .superRefine(({ decision, orderId, overrideSpendCap }, context) => {
    const fault = (field: string, message: string) => context.addIssue({ code: 'custom', path: [field], message })
    if (decision === 'adopt' && orderId === undefined) fault('orderId', 'missing: the order that is to be adopted')
    if (decision !== 'adopt' && orderId !== undefined) fault('orderId', 'goes with the decision adopt alone')
    if (decision !== 'buy_again' && overrideSpendCap === true) {
      fault('overrideSpendCap', 'goes with the decision buy_again alone')
    }
  })
  .meta({
    examples: [{ decision: 'hand_over', reason: 'the customer takes two of three' }],
  })
/** Body of changes of a listing that need a reason. */
export const reasonBody = fields({ reason: text(500) })
/** Body of the approval of a held price: the price that was shown. */
export const approvalBody = fields({ price: decimal('decimal text such as "23.99"'), reason: text(500) }).meta({
  examples: [{ price: '23.99', reason: 'the supplier confirmed it' }],
})
/** Body of a link. */
export const linkBody = fields({
  productId: text(200).optional(),
  offerSku: text(200).optional(),
  sku: text(200).optional(),
  variation: text(200).optional(),
})
  .superRefine(({ productId, offerSku }, context) => {
    if ((productId === undefined) !== (offerSku === undefined)) return
    const message = 'name the offer by productId or by offerSku, by one of the two'
    context.addIssue({ code: 'custom', path: ['productId'], message })
  })
  .meta({ examples: [{ offerSku: 'GAM-RAIL4', variation: 'Europe' }] })
export const freezeBody = fields({ reason: text(500) })
/** Body of the end of a freeze: the causes that were shown. */
export const unfreezeBody = fields({
  causes: z
    .array(text(20), { error: must('a list of ids of causes') })
    .min(1, { error: must('one cause or more') })
    .max(1_000),
}).meta({ examples: [{ causes: ['9f86d081'] }] })
/** Body of the rotation of a callback secret: a week is enough to install it, weekend included. */
export const rotateSecretBody = fields({ overlapHours: whole(0, 720).default(168) })
export const webhookBody = fields({
  url: z.url({ protocol: /^https?$/, error: must('an address that starts with http:// or https://') }).optional(),
})
export const tokenBody = fields({
  name: text(100),
  role: oneOf(roles),
  store: text(50).optional(),
  scopes: z
    .array(oneOf(scopes), { error: must('a list of scopes') })
    .max(scopes.length)
    .optional(),
  expiresInDays: whole(1, 3650).optional(),
}).superRefine(({ role, store, scopes }, context) => {
  const fault = (field: string, message: string) => context.addIssue({ code: 'custom', path: [field], message })
  if (role === 'store' && store === undefined) fault('store', 'missing: a store token speaks for one store')
  if (role === 'store' && !scopes?.length) fault('scopes', 'missing: orders, keys or both')
  if (role !== 'store' && store !== undefined) fault('store', 'only a store token is bound to a store')
  if (role !== 'store' && scopes !== undefined) fault('scopes', 'only a store token has scopes')
})

/** Query of every list: how many, and the id of the last one seen. */
export const paging = {
  limit: z
    .string()
    .regex(/^\d{1,3}$/, { error: must('a whole number from 1 to 200') })
    .transform(Number)
    .pipe(whole(1, 200))
    .default(50),
  before: id.optional(),
}
export const anyText = text(200).optional()
/** How many changes are listed one by one. */
export const most = z
  .string()
  .regex(/^\d{1,5}$/, { error: must('a whole number from 0 to 10000') })
  .transform(Number)
  .pipe(whole(0, 10_000))
  .default(1_000)

/**
 * The version that a change requires, from the header If-Match.
 *
 * @throws Failure `invalid` for a missing or malformed one
 */
export function versionIn(header: string | undefined): string {
  const version = /^"([!#-~]{1,100})"$/.exec(header ?? '')?.[1]
  if (version !== undefined) return version
  const message = must('a version in quotes, such as "review-9f86d081884c"')({ input: header })
  throw new Failure('invalid', `If-Match: ${message}`, { fields: [{ field: 'If-Match', message }] })
}

export const choice = <const T extends readonly string[]>(values: T) => oneOf(values).optional()

/** Most faults that one answer lists: an input with more was not made for this API. */
const FAULTS_MAX = 100

/** @throws Failure `invalid` that names every field at fault */
export function check<S extends z.ZodType>(shape: S, value: unknown, whole: string): z.infer<S> {
  const result = shape.safeParse(value)
  if (result.success) return result.data
  const faults = result.error.issues.flatMap((issue) => {
    const paths = issue.code === 'unrecognized_keys' ? issue.keys.map((key) => [...issue.path, key]) : [issue.path]
    return paths.map((path) => ({ field: path.join('.').slice(0, 200) || whole, message: issue.message }))
  })
  const [first] = faults
  throw new Failure('invalid', `${first?.field}: ${first?.message}`, { fields: faults.slice(0, FAULTS_MAX) })
}
