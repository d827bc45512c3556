import { createHash } from 'node:crypto'
import { z } from 'zod'
import { personRoles } from '../access/sessions.ts'
import { roles, scopes } from '../access/tokens.ts'
import { severities } from '../domain/alert-notice.ts'
import { parseDecimal } from '../domain/money.ts'
import { previewKinds } from '../domain/price-preview.ts'
import { Failure } from '../errors.ts'
import { decisionTypes } from '../ordering/choices.ts'
import type { OrderInput } from '../ordering/intake.ts'
import { updateTypes } from '../stores/examples.ts'
import { storeKinds } from '../stores/kinds.ts'
import { pricingShape, ratesShape, sellingShape, webAddress } from '../stores/store-settings.ts'

/** Makes the message of every fault of a field. The message says what would be right. */
const must = (words: string) => (issue: { input?: unknown }) =>
  issue.input === undefined ? `missing: ${words}` : `must be ${words}`

/** Describes an object in which every unknown field is a fault, because a misspelt field must not pass as absent. */
export const fields = <S extends z.core.$ZodLooseShape>(shape: S) =>
  z.strictObject(shape, {
    error: (issue) =>
      issue.code === 'unrecognized_keys'
        ? `unknown; known are ${Object.keys(shape).join(', ') || 'none'}`
        : must('a JSON object')(issue),
  })

/**
 * Describes a text in the OpenAPI document. Other languages lack classes of Unicode and look-around in patterns, so `pattern`
 * covers only ASCII, and the description states the whole rule in words.
 */
const described = (about: string, min: number, max: number, rule: string) => ({
  description: `${about}. ${min} to ${max} characters, ${rule}`,
  minLength: min,
  maxLength: max,
  pattern: '^[^\\x00-\\x20\\x7f]([^\\x00-\\x1f\\x7f]*[^\\x00-\\x20\\x7f])?$',
})

/**
 * Describes text that reads the same everywhere: no control characters, no lone surrogates, nothing blank at its ends.
 *
 * @param about what the text is, for the OpenAPI document
 */
function text(max: number, about: string, min = 1) {
  const rule = 'without control characters and without spaces at its ends'
  const inner = '[^\\p{Cc}\\p{Cs}\\p{Zl}\\p{Zp}]'
  const end = '[^\\p{Cc}\\p{Cf}\\p{Cs}\\p{Z}]'
  const pattern = new RegExp(`^(?=.{${min},${max}}$)${end}(?:${inner}*${end})?$`, 'su')
  return matching(pattern, `text of ${min} to ${max} characters, ${rule}`).meta(described(about, min, max, rule))
}

/**
 * Describes a name that a store or a person gives. Two names that look alike must be the same name, so characters that
 * are invisible or change the direction of writing are refused.
 */
function reference(max: number, about: string) {
  const rule = 'without control, invisible and bidirectional characters and without spaces at its ends'
  const hidden = '\\p{Cc}\\p{Cf}\\p{Cs}\\p{Zl}\\p{Zp}\\p{Default_Ignorable_Code_Point}\\u2800'
  const end = `[^${hidden}\\p{Zs}]`
  const pattern = new RegExp(`^(?=.{1,${max}}$)${end}(?:[^${hidden}]*${end})?$`, 'su')
  return matching(pattern, `text of 1 to ${max} characters, ${rule}`).meta(described(about, 1, max, rule))
}

/** Describes text that must match a pattern. The OpenAPI document leaves the pattern out. */
const matching = (pattern: RegExp, words: string) =>
  z.string({ error: must(words) }).refine((given) => pattern.test(given), { error: must(words) })

function whole(min: number, max: number) {
  const error = must(`a whole number from ${min} to ${max}`)
  return z.int({ error }).min(min, { error }).max(max, { error })
}

/** Describes a whole number in a query. The query has it as text; the OpenAPI document describes it as a number. */
export const queryNumber = (min: number, max: number, fallback: number, about: string) =>
  matching(/^\d{1,5}$/, `a whole number from ${min} to ${max}`)
    .transform(Number)
    .pipe(whole(min, max))
    .default(fallback)
    .meta({ description: about, override: { type: 'integer', minimum: min, maximum: max, default: fallback } })

/** Describes a `true` or `false` in a query. The query has it as text; the OpenAPI document describes it as a boolean. */
export const queryFlag = (about: string, fallback = false) =>
  z
    .stringbool({ truthy: ['true'], falsy: ['false'], case: 'sensitive', error: must('one of true, false') })
    .default(fallback)
    .meta({ description: about, override: { type: 'boolean', default: fallback } })

/** Describes an optional text in a query. The optional schema gets the description too: the OpenAPI document reads it there. */
function queryText(about: string) {
  const shape = text(200, about)
  return shape.optional().meta({ description: shape.description })
}

const decimal = (words: string) =>
  z.string({ error: must(words) }).regex(/^[0-9]{1,12}(\.[0-9]{1,3})?$/, { error: must(words) })
const oneOf = <const T extends readonly string[]>(values: T) =>
  z.enum(values, { error: must(`one of ${values.join(', ')}`) })
const id = z.string({ error: must('an id') }).regex(/^[0-9A-Za-z_-]{1,64}$/, { error: must('an id') })

/** Returns a function that reports a fault of a field, for fields that are valid alone but not together. */
const faultsOf =
  (context: z.core.$RefinementCtx, ...above: PropertyKey[]) =>
  (field: string, message: string) =>
    context.addIssue({ code: 'custom', path: [...above, field], message })

const line = fields({
  id: reference(100, "The store's own id of the line, unique in the order, which callbacks carry"),
  sku: text(100, 'What was bought: the `id` or the `sku` of a listing'),
  /** At most 10,000: far more than a customer buys, and far too few to flood the supplier with parts of an order. */
  quantity: whole(1, 10_000).describe('How many licence keys the customer bought'),
  unitPrice: decimal('decimal text such as "19.99"')
    .optional()
    .meta({
      description:
        'What the customer paid for one unit, as decimal text; a unit is not bought for more. With `currency`',
      examples: ['19.99'],
    }),
  currency: z
    .string()
    .regex(/^[A-Z]{3}$/, { error: must('an ISO 4217 code such as "EUR"') })
    .optional()
    .meta({ description: 'The currency of `unitPrice`, ISO 4217. With `unitPrice`', examples: ['EUR'] }),
}).meta({ id: 'OrderLineBody' })

/** An example of an order, for a product that the sandbox sells. */
export const orderExample = {
  reference: '1001',
  lines: [{ id: '1', sku: 'GAM-RAIL4', quantity: 2, unitPrice: '24.90', currency: 'EUR' }],
}

export const orderBody = fields({
  /** `.` and `..` are refused, because clients resolve these path segments away. */
  reference: reference(
    200,
    "The store's own number of the order, unique in the store, and neither `.` nor `..`",
  ).refine((given) => given !== '.' && given !== '..', { error: must('more than dots') }),
  lines: z
    .array(line, { error: must('a list of 1 to 100 lines') })
    .min(1, { error: must('a list of 1 to 100 lines') })
    .max(100, { error: must('a list of 1 to 100 lines') })
    .describe('What was bought: one item and quantity in each line'),
})
  .superRefine(({ lines }, context) => {
    const first = new Map<string, number>()
    for (const [index, { id, unitPrice, currency }] of lines.entries()) {
      const fault = faultsOf(context, 'lines', index)
      if (first.has(id)) fault('id', `must differ from line to line; lines.${first.get(id)} has it too`)
      else first.set(id, index)
      if (unitPrice !== undefined && currency === undefined) fault('currency', 'missing: it goes with unitPrice')
      if (unitPrice === undefined && currency !== undefined) fault('unitPrice', 'missing: it goes with currency')
      if (unitPrice !== undefined && currency !== undefined && parseDecimal(unitPrice, currency) === undefined) {
        fault('unitPrice', `must be an exact amount in ${currency}`)
      }
    }
  })
  .meta({ examples: [orderExample] })

/** Turns a checked body into the input of ordering. `"19.9"` and `"19.90"` become the same amount. */
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

/** Returns a SHA-256 in hex that is equal for equal orders. The sequence of fields and lines does not matter. */
export function orderDigest({ reference, lines }: OrderInput): string {
  const canonical = lines
    .map(({ currency, id, quantity, sku, unitPriceMinor }) => ({ currency, id, quantity, sku, unitPriceMinor }))
    .sort((a, b) => (a.id < b.id ? -1 : 1))
  return createHash('sha256')
    .update(JSON.stringify({ lines: canonical, reference }))
    .digest('hex')
}

/**
 * Describes a time in a query, and turns the time into epoch milliseconds. The OpenAPI document leaves the pattern of the shape
 * out: generated clients could not compile it.
 */
const queryTime = (shape: z.ZodType, format: 'date-time' | 'date', words: string) => (about: string) =>
  z
    .string()
    .refine((given) => shape.safeParse(given).success, { error: must(words) })
    .transform((given) => Date.parse(given))
    .optional()
    .meta({ description: about, override: { type: 'string', format } })
const anInstant = z.iso.datetime({ offset: true })
export const queryInstant = queryTime(anInstant, 'date-time', 'an instant such as 2026-03-01T09:30:00Z')
/** A day in UTC, as the instant of its beginning. */
export const queryDay = queryTime(z.iso.date(), 'date', 'a day such as 2026-03-01')

/** Whether one purchase may exceed the spend caps of its order, the hour and the day. */
const overrideSpendCap = z
  .boolean({ error: must('true or false') })
  .optional()
  .describe('Let this purchase exceed the spend caps of its order, the hour and the day')
const reason = (min = 1) => text(500, 'Why, for the audit', min)
/** Describes a body that has only a reason, with an example of the reason. */
const reasonOnly = (example: string, min?: number) =>
  fields({ reason: reason(min) }).meta({ examples: [{ reason: example }] })
const maybeReasonOnly = (example: string) =>
  fields({ reason: reason().optional() }).meta({ examples: [{ reason: example }] })

export const releaseBody = fields({
  ceiling: decimal('the most that one unit may cost, such as "12.34"')
    .optional()
    .meta({ description: "The most that one unit may cost, in the supplier's currency", examples: ['12.34'] }),
  overrideSpendCap,
  reason: reason().optional(),
}).meta({ examples: [{ ceiling: '24.90', reason: 'the customer paid more' }] })
export const maybeReasonBody = maybeReasonOnly('the customer asked for it')
/** A document of settings. Its shape is that of the configuration file, and is checked together with its secrets. */
const settingsDocument = z
  .record(z.string(), z.unknown(), { error: must('an object') })
  .describe('The settings as in the configuration file, whole: what is left out has its default')
const settingsSecrets = z
  .record(z.string().regex(/^[a-z0-9-]{1,80}$/), z.string().min(1).max(4_000))
  .optional()
  .describe('Secrets that are new or changed, by name: `api-key`, `store-<id>`, `alert-<channel>`')
const settingsExample = { document: { supplier: { baseUrl: 'https://supplier.example/v1' }, stores: [] } }
export const trySettingsBody = fields({ document: settingsDocument, secrets: settingsSecrets }).meta({
  examples: [settingsExample],
})
export const applySettingsBody = fields({
  document: settingsDocument,
  secrets: settingsSecrets,
  reason: reason(3),
}).meta({ examples: [{ ...settingsExample, reason: 'the new supplier' }] })
export const settingBody = fields({
  name: text(500, 'The setting, as it is listed: `stores.<id>.pricing.markup.percent`'),
  value: z
    .string({ error: must('a text, or null') })
    .max(20_000)
    .nullable()
    .describe('Its new value: a text as it is, all else as JSON; null: its default'),
  reason: reason(3),
}).meta({ examples: [{ name: 'spendCaps.day', value: '500.00', reason: 'more orders since Monday' }] })
export const sellingBody = fields({
  selling: oneOf(['on', 'paused']).describe('`paused`: it sells nothing, and what is paid is still bought'),
  reason: reason(3),
}).meta({ examples: [{ selling: 'paused', reason: 'the shop is being rebuilt' }] })
const secretText = (about: string) =>
  z
    .string({ error: must('text') })
    .regex(/^[\x21-\x7e]{1,500}$/, 'must be 1 to 500 visible characters without spaces')
    .describe(about)
export const credentialsBody = fields({
  key: secretText('The first part of the credentials of the shop'),
  secret: secretText('The second part'),
  reason: reason(3),
}).meta({ examples: [{ key: 'ck_1', secret: 'cs_1', reason: 'the old ones were revoked' }] })
export const apiKeyBody = fields({ apiKey: secretText('The new API key'), reason: reason(3) }).meta({
  examples: [{ apiKey: 'sk_1', reason: 'the yearly rotation' }],
})
export const channelBody = fields({
  kind: oneOf(['webhook', 'slack', 'email']),
  least: oneOf(severities).optional().describe('Less severe alerts are not sent to it'),
  from: text(200, 'Of `email`: the sender').optional(),
  to: z.array(text(200, 'A recipient')).max(50).optional().describe('Of `email`'),
  address: text(2_000, 'Where it sends to; a secret. Absent: as before').optional(),
  test: z
    .boolean({ error: must('true or false') })
    .default(false)
    .describe('Send a test alert to the address first, and keep nothing where it is not taken'),
  reason: reason(3),
}).meta({ examples: [{ kind: 'webhook', address: 'https://alerts.example/hook', reason: 'the new duty' }] })
export const revisionsPaging = {
  limit: queryNumber(1, 200, 50, 'How many a page has at most'),
  before: matching(/^\d{1,9}$/, 'the number of a revision')
    .transform(Number)
    .optional()
    .meta({ description: '`next` of the page before this one', override: { type: 'string' } }),
}
/** Body of an operator's decision. The audit keeps the reason. */
export const decisionBody = fields({
  decision: oneOf(decisionTypes).describe('The evidence says what each would do now'),
  orderId: text(200, "The supplier's order that is to be adopted; goes with `adopt` alone").optional(),
  /** Only for the decision `buy_again`. */
  overrideSpendCap,
  reason: reason(3),
})
  .superRefine(({ decision, orderId, overrideSpendCap }, context) => {
    const fault = faultsOf(context)
    if (decision === 'adopt' && orderId === undefined) fault('orderId', 'missing: the order that is to be adopted')
    if (decision !== 'adopt' && orderId !== undefined) fault('orderId', 'goes with the decision adopt alone')
    if (decision !== 'buy_again' && overrideSpendCap === true) {
      fault('overrideSpendCap', 'goes with the decision buy_again alone')
    }
  })
  .meta({ examples: [{ decision: 'close', reason: 'the customer was refunded' }] })
export const claimStates = ['open', 'ended'] as const
export const claimBody = fields({
  ordinal: whole(1, 10_000)
    .optional()
    .describe('Which key of the purchase does not work, from 1. Needed where the purchase has several'),
  note: text(500, 'What is wrong with it, for the supplier', 3),
}).meta({ examples: [{ ordinal: 1, note: 'the game says that the key was redeemed before' }] })
/** Body with a key that the supplier gave. No message repeats the key. */
export const adoptKeyBody = fields({
  key: z.string({ error: 'must be the new licence key' }).describe('The new licence key, as plain text'),
  reason: reason().optional(),
}).meta({ examples: [{ key: 'AAAAA-BBBBB-CCCCC', reason: 'the supplier sent it by mail' }] })
export const revealBody = fields({
  line: reference(100, "The store's own id of a line; all lines if it is left out").optional(),
  reason: reason(3),
}).meta({ examples: [{ line: '1', reason: 'the customer lost the mail' }] })
export const withdrawKeysBody = reasonOnly('the payment was charged back', 3)
export const exportBody = reasonOnly('the audit of the year 2026', 3)
export const reasonBody = reasonOnly('sold by hand')
/** Body of the approval of a held price: it repeats the price that the person saw. */
export const approvalBody = fields({
  price: decimal('decimal text such as "23.99"').describe('The `wantedPrice` that was shown'),
  reason: reason(),
}).meta({ examples: [{ price: '23.99', reason: 'the supplier confirmed it' }] })
/** The OpenAPI document does not repeat the shapes of settings. */
const settings = z.record(z.string(), z.unknown())
/** The pricing and the rates are as in the configuration, so that what was tried can be put into it. */
export const pricePreviewBody = fields({
  pricing: settings.pipe(pricingShape).optional().describe('`pricing` of the store; else that in force'),
  rates: z.array(settings).pipe(ratesShape.unwrap()).optional().describe('`rates` of all stores; else those in force'),
  whole: z
    .boolean({ error: must('true or false') })
    .optional()
    .describe('Look at all listings, not at a sample of some 100'),
  kind: oneOf(previewKinds).optional().describe('Only these; `floor`: the margin decides the new price'),
  skip: whole(0, 10_000_000).optional().describe('`next` of the page before'),
  limit: whole(1, 200).optional().describe('How many a page has at most; else 50'),
}).meta({ examples: [{ pricing: { markup: { percent: '18' } }, whole: true, kind: 'held' }] })

export const linkBody = fields({
  productId: text(200, "The offer, by the supplier's id of the product; or `offerSku`").optional(),
  offerSku: text(200, "The offer, by the supplier's SKU, if one offer has it; or `productId`").optional(),
  sku: text(200, "The store's own SKU of the variant").optional(),
  variation: text(200, 'The name of the variant, for people').optional(),
})
  .superRefine(({ productId, offerSku }, context) => {
    if ((productId === undefined) !== (offerSku === undefined)) return
    faultsOf(context)('productId', 'name the offer by productId or by offerSku, by one of the two')
  })
  .meta({ examples: [{ offerSku: 'GAM-RAIL4', variation: 'Europe' }] })
export const freezeBody = reasonOnly('checking prices')
/** Body of a request that ends a freeze: it repeats the causes that the person saw. */
export const unfreezeBody = fields({
  causes: z
    .array(text(20, 'Id of a cause'), { error: must('a list of ids of causes') })
    .min(1, { error: must('one cause or more') })
    .max(1_000)
    .describe('The causes that were shown by GET /status; a newer one stays'),
}).meta({ examples: [{ causes: ['9f86d081'] }] })
export const alertStates = ['open', 'ended'] as const
export const alertBody = maybeReasonOnly('the hoster works on it')
/** Body of a request that mutes an alert. An alert is muted for a month at most, so that a person looks at it again. */
export const muteBody = fields({
  hours: whole(1, 720).default(24).describe('For how long nothing of it is sent'),
  reason: reason().optional(),
}).meta({ examples: [{ hours: 8, reason: 'known until the shop has moved' }] })
/** Body of the test of a supplier. No message repeats the key. */
export const trySupplierBody = fields({
  baseUrl: webAddress.describe("The address of the supplier's API"),
  dialect: text(100, 'How the supplier writes what its API leaves open: a dialect that comes with Quayside'),
  apiKey: z
    .string({ error: must('the API key of the supplier') })
    .regex(/^[\x21-\x7e]{1,500}$/, 'must be 1 to 500 visible characters without spaces')
    .describe('The API key that the supplier gave you'),
}).meta({
  examples: [
    { baseUrl: 'https://supplier.example/v1', dialect: 'reseller-v1.1', apiKey: 'the-key-that-the-supplier-gave' },
  ],
})
/** Body of a new store. A shop has credentials; a backend has an address for its callbacks alone. */
export const addStoreBody = fields({
  kind: oneOf(storeKinds.map(({ kind }) => kind)).describe('The kind of store'),
  name: text(100, 'The store, as people call it. Its permanent id is made of it'),
  address: text(500, 'Where the shop is, or where the callbacks of a backend go'),
  key: secretText('The first part of the credentials of a shop').optional(),
  secret: secretText('The second part').optional(),
  markup: text(20, 'Price = cost plus so many percent').default('20'),
  settings: z
    .record(z.string(), text(500, 'As in the configuration'))
    .default({})
    .describe('More of its settings, such as `create`. With `"selling": "on"` it sells at once'),
}).meta({ examples: [{ kind: storeKinds[0].kind, name: 'My store', address: 'https://backend.example/callbacks' }] })
/** Body of a count of products: which the store would list, as in the configuration. */
export const countProductsBody = fields({
  listings: settings.pipe(sellingShape.listings.unwrap()).describe('`listings` of the store'),
}).meta({ examples: [{ listings: { categories: ['Games'], costMax: '60.00' } }] })
export const startSellingBody = fields({
  buy: z.boolean({ error: must('true or false') }).describe('False: only products and prices are written'),
  keyBegins: text(44, 'The first characters of the key-encryption key, from the copy that is kept elsewhere', 4),
}).meta({ examples: [{ buy: true, keyBegins: 'x3Fq' }] })
export const alertTestBody = fields({
  channel: text(40, 'Name of one channel; all of them if it is left out').optional(),
}).meta({ examples: [{ channel: 'on-duty' }] })
const orderOfStore = reference(200, "The store's own number of an order of yours")
export const testStoreBody = fields({ order: orderOfStore.optional() }).meta({ examples: [{ order: '1001' }] })
export const confirmMailBody = fields({ order: orderOfStore }).meta({ examples: [{ order: '1001' }] })
export const triggerBody = fields({
  type: oneOf(updateTypes).describe('Which callback: an example of it is sent'),
}).meta({ examples: [{ type: 'line.fulfilled' }] })
/** Body of the rotation of a callback secret. A week is enough to install the new secret, even with a weekend in it. */
export const rotateSecretBody = fields({
  overlapHours: whole(0, 720).default(168).describe('How long the previous secret stays valid'),
}).meta({ examples: [{ overlapHours: 168 }] })
export const webhookBody = fields({
  url: z
    .url({ protocol: /^https?$/, error: must('an address that starts with http:// or https://') })
    .optional()
    .describe('Where the supplier reaches this service; else `publicUrl` of the configuration'),
}).meta({ examples: [{ url: 'https://quayside.example' }] })
export const testedWebhookBody = webhookBody
  .extend({ webhook: text(200, 'Id of the webhook; else the newest one that is valid').optional() })
  .meta({ examples: [{ url: 'http://127.0.0.1:8443' }] })
export const addedWebhookBody = webhookBody
  .extend({
    secret: text(1_000, 'Its signing secret, which is kept sealed and never shown', 24),
  })
  .meta({ examples: [{ url: 'https://quayside.example', secret: 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw' }] })
export const tokenBody = fields({
  name: reference(100, 'Whose token it is, for people'),
  role: oneOf(roles).describe('Each person may what the one before may: viewer, operator, admin'),
  store: text(50, 'Id of the store that a store token speaks for').optional(),
  scopes: z
    .array(oneOf(scopes), { error: must('a list of scopes') })
    .max(scopes.length)
    .optional()
    .describe('Of a store token: `orders` places and reads orders, `keys` shows licence keys'),
  expiresInDays: whole(1, 3650).optional().describe('Never, if it is left out'),
})
  .superRefine(({ role, store, scopes }, context) => {
    const fault = faultsOf(context)
    if (role === 'store' && store === undefined) fault('store', 'missing: a store token speaks for one store')
    if (role === 'store' && !scopes?.length) fault('scopes', 'missing: orders, keys or both')
    if (role !== 'store' && store !== undefined) fault('store', 'only a store token is bound to a store')
    if (role !== 'store' && scopes !== undefined) fault('scopes', 'only a store token has scopes')
  })
  .meta({ examples: [{ name: 'anna', role: 'operator', expiresInDays: 90 }] })

export const consoleLinkBody = fields({
  name: reference(100, 'Who will use it, for the audit log'),
  role: oneOf(personRoles).describe('Each person may what the one before may: viewer, operator, admin'),
  hours: whole(1, 168).optional().describe('How long the link works; else ten minutes'),
}).meta({ examples: [{ name: 'anna', role: 'operator', hours: 24 }] })
/** The name is compared with those that are known, also with one that an earlier version took. */
export const removePersonBody = fields({
  name: z.string({ error: must('a name') }).max(200),
  reason: reason().optional(),
}).meta({ examples: [{ name: 'anna', reason: 'works elsewhere now' }] })

/** Query of every list: how many entries a page has at most, and the id of the last entry of the page before. */
export const paging = {
  limit: queryNumber(1, 200, 50, 'How many a page has at most'),
  before: id.optional().describe('`next` of the page before this one'),
}
/** Query of the rows of products: how many an answer has at most, and where it goes on. */
export const earningsPaging = {
  limit: paging.limit,
  before: matching(/^\d{1,15}\.\d{1,9}$/, '`next` of the answer before this one')
    .optional()
    .describe('`next` of the answer before this one'),
}
export const eventName = queryText('Only deliveries of this event, such as order.completed')
/** A request may name at most as many deliveries as a page of them has, so that the person has seen each delivery. */
export const replayBody = fields({
  ids: z
    .array(id, { error: must('a list of ids') })
    .min(1, { error: must('one id or more') })
    .max(200, { error: must('at most 200 ids') })
    .describe('Ids of deliveries'),
}).meta({ examples: [{ ids: ['01jtq3k5ze0000qsv1a2b3c4d5'] }] })
/** The query parameter that lists sorted by the store's own ids take in place of `before`. */
export const after = queryText('`next` of the page before this one')
const BACK = '`previous` of the page after this one'
/** The query parameters that ask for the page before: of lists by `before`, and of lists by `after`. */
export const backAfter = id.optional().describe(BACK)
export const backBefore = queryText(BACK)
export const search = queryText(
  "What people know of an order: the store's reference, the supplier's order, an id or reference of ours; else a SKU",
)
export const searchText = text(200, 'The beginning of what is looked for, in any letters, with or without a `#`')
export const changedField = queryText('Only changes of this field, such as cost')
export const listingSearch = queryText(
  'Only listings whose id or SKU begins so, in every state, a page of them at most',
)
export const auditActor = queryText('Only what this one did: a name, without its session or token')
export const auditAction = queryText('Only this action, such as purchase.release')
export const auditSubject = queryText('Only what was done to this: an id, or a word such as buying')
export const orderLine = queryText("The store's own id of a line: its units are taken; default: the whole order")
export const orderNumber = queryText("The store's number of an order: only its lines count")
export const inStore = queryText('Id of a store: only its orders count')
export const ofStore = queryText('Id of a store: only messages to it')
export const fromStore = queryText('Id of a store: only deliveries that it sent')
export const most = queryNumber(0, 10_000, 1_000, 'How many changes of offers, and of listings, are listed')

/**
 * Reads the version that a change requires from the header If-Match.
 *
 * @throws Failure `invalid` for a missing or malformed header
 */
export function versionIn(header: string | undefined): string {
  const version = /^"([!#-~]{1,100})"$/.exec(header ?? '')?.[1]
  if (version !== undefined) return version
  throw invalidField('If-Match', must('a version in quotes, such as "review-9f86d081884c"')({ input: header }))
}

/** Makes the failure for a fault of a field that the shape of the input does not exclude. */
export const invalidField = (field: string, message: string): Failure =>
  new Failure('invalid', `${field}: ${message}`, { fields: [{ field, message }] })

/** Describes an optional filter in a query. @param about the purpose of the filter */
export const choice = <const T extends readonly string[]>(values: T, about: string) =>
  oneOf(values).optional().describe(about)

/** The most faults that one answer lists. An input with more faults was not made for this API. */
const FAULTS_MAX = 100

/** Checks a value against a shape. @throws Failure `invalid` that names every field at fault */
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
