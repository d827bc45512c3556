import { createHash } from 'node:crypto'
import { z } from 'zod'
import type { Notice } from '../../domain/acknowledgement.ts'
import { parseDecimal } from '../../domain/money.ts'
import { answeredUntil, escaped, partsOf, READ_AGE_MS, soundListings } from '../shop-catalogue.ts'
import { asRead, type Read, refused, unavailable } from '../shop-client.ts'
import type {
  CreatedVariant,
  CreateResult,
  NewVariant,
  NotConfirmed,
  PublishResult,
  StoreListing,
  StorePage,
  StoreVariant,
} from '../store.ts'
import { endBulk, runInBulk } from './bulk.ts'
import { answerIn, ask, pageOf, readPages, type Shop, type ShopSettings, type UserError, written } from './client.ts'
import * as documents from './documents.ts'
import { gidOf, isNumber, numberOf } from './orders.ts'

/**
 * The most listings of a push, as many as one bulk operation writes in a few minutes. Reading a listing costs 7 points of the
 * shop's limit. The smallest plan restores 100 points in a second.
 */
export const BATCH_MAX = 1_000
/** The most products that are created at once. Each product takes a second or two. */
export const CREATED_MAX = 50
/** From so many products on, a bulk operation writes the prices. One by one they would cost 10 points each, 25 seconds in all. */
const BULK_MIN = 250
const AT_ONCE = 4
/** How often Quayside tries to write stock that changes in the shop at the same time, for example by a sale. */
const STOCK_TRIES_MAX = 3
const SKUS_MAX = 20

const quantities = z.array(z.object({ name: z.string(), quantity: z.number().int() }))
const shopVariant = z.object({
  id: z.string(),
  price: z.string(),
  compareAtPrice: z.string().nullable(),
  inventoryPolicy: z.string(),
  sellableOnlineQuantity: z.number().int(),
  product: z.object({ id: z.string(), status: z.string(), variantsCount: z.object({ count: z.number() }).nullable() }),
  inventoryItem: z.object({
    id: z.string(),
    tracked: z.boolean(),
    requiresShipping: z.boolean(),
    locationsCount: z.object({ count: z.number() }).nullable(),
    inventoryLevel: z.object({ quantities }).nullable(),
  }),
})
export type ShopVariant = z.infer<typeof shopVariant>

const availableIn = (level: { quantities: z.infer<typeof quantities> } | null): number | null =>
  level?.quantities.find(({ name }) => name === 'available')?.quantity ?? null

/** Returns the units of a variant that can be bought at the location whose stock is written; null: none are stocked there. */
export const availableOf = ({ inventoryItem }: ShopVariant): number | null => availableIn(inventoryItem.inventoryLevel)

/** Returns the units of a variant that the shop sells from other locations for online orders. */
export function soldElsewhere(variant: ShopVariant): number {
  const ours = availableOf(variant)
  const isElsewhere = (variant.inventoryItem.locationsCount?.count ?? 0) > (ours === null ? 0 : 1)
  return isElsewhere ? Math.max(0, variant.sellableOnlineQuantity - Math.max(0, ours ?? 0)) : 0
}

/** Returns the stock that a listing is to have; null: its stock is not counted. */
export const quantityOf = ({ stock, available }: StoreListing): number | null => (available ? stock : 0)

/** Returns the fields of a variant that differ and are to be written; undefined where no field differs. */
export function variantChange(listing: StoreListing, variant: ShopVariant, ownsSalePrice: boolean) {
  const { price, compareAt, currency } = listing
  const isTracked = quantityOf(listing) !== null
  const change = {
    ...(isSame(variant.price, price, currency) ? {} : { price }),
    ...(ownsSalePrice && !isSame(variant.compareAtPrice, compareAt, currency) ? { compareAtPrice: compareAt } : {}),
    // A variant that is sold out must not be bought.
    ...(isTracked && variant.inventoryPolicy !== 'DENY' ? { inventoryPolicy: 'DENY' } : {}),
    ...(variant.inventoryItem.tracked === isTracked ? {} : { inventoryItem: { tracked: isTracked } }),
  }
  return Object.keys(change).length === 0 ? undefined : { id: variant.id, ...change }
}

function isSame(one: string | null, other: string | null, currency: string): boolean {
  if (one === null || other === null) return one === other
  return parseDecimal(one, currency) === parseDecimal(other, currency)
}

/** Returns the index of the list element that an error of Shopify is about; undefined: it is about the whole request. */
export function elementOf(field: UserError['field']): number | undefined {
  const index = field?.find((part) => /^\d{1,4}$/.test(part))
  return index === undefined ? undefined : Number(index)
}

/** Returns Shopify's own name of an error, in brackets. */
const named = (code: UserError['code']): string => (code && /^[A-Z_]{1,60}$/.test(code) ? ` (${code})` : '')
const refusalOf = (code: UserError['code']): string => `the shop refused it${named(code)}`

/** A listing on its way to the shop, with the variant as the shop has it. */
interface Pushing {
  listing: StoreListing
  variant: ShopVariant
  /** The price that the shop has now. */
  price: string
  refusal: string | undefined
  notice: Notice | undefined
}

/** Returns what a person should know of a listing, judged by the variant that the shop had before anything was written. */
function noticeOf(listing: StoreListing, variant: ShopVariant): Notice | undefined {
  const units = quantityOf(listing) === null ? 0 : soldElsewhere(variant)
  if (units > 0) {
    const detail = `the shop sells ${units} more of it, which other locations have: set it to 0 there, or configure \`otherLocations\` as "own"`
    return { reason: 'stock_elsewhere', detail }
  }
  if (!variant.inventoryItem.requiresShipping) return undefined
  const detail = 'it requires shipping in the shop: customers are asked where to send it, and may pay for that'
  return { reason: 'requires_shipping', detail }
}

const writtenPrices = written.extend({
  productVariants: z.array(z.object({ id: z.string(), price: z.string() })).nullable(),
})

/** Notes on each listing the price that the shop has written, or the refusal of the shop. */
function notePrices(pushing: Pushing[], { userErrors, productVariants }: z.infer<typeof writtenPrices>): void {
  for (const { code, field } of userErrors) {
    const index = elementOf(field)
    for (const one of index === undefined ? pushing : pushing.slice(index, index + 1)) one.refusal = refusalOf(code)
  }
  for (const one of pushing) {
    const echo = productVariants?.find(({ id }) => id === one.variant.id)
    if (echo) one.price = echo.price
    else one.refusal ??= 'the shop does not say what became of it'
  }
}

/** Returns the currency that the shop sells in, and the location whose stock is written. */
async function readSale(shop: Shop): Promise<Read<{ currency: string; location: string }>> {
  const { known, now } = shop
  if (known.sale && now() - known.sale.readAt < READ_AGE_MS) return asRead(known.sale)
  const schema = z.object({ shop: z.object({ currencyCode: z.string() }) })
  const there = await ask(shop, documents.shop, {}, schema)
  if (there.outcome !== 'read') return there
  const all = await readLocations(shop)
  if (all.outcome !== 'read') return all
  const location = locationIn(all.value, shop.settings.location)?.id
  if (location === undefined) return refused(404, 'the shop has no location for online orders: configure `location`')
  known.sale = { currency: there.value.shop.currencyCode, location, readAt: now() }
  return asRead(known.sale)
}

async function readVariants(shop: Shop, ids: string[], location: string): Promise<Read<Map<string, ShopVariant>>> {
  const found = new Map<string, ShopVariant>()
  for (const some of partsOf(ids, documents.VARIANTS_MAX)) {
    const seen = await ask(shop, documents.variantsById, { ids: some, location }, z.array(shopVariant.nullable()))
    if (seen.outcome !== 'read') return seen
    for (const node of seen.value) if (node) found.set(node.id, node)
  }
  return asRead(found)
}

/** Returns a call for each product whose prices differ. `pushing`: its listings, in the sequence of the variants in the call. */
const priceCalls = (pushing: Pushing[], ownsSalePrice: boolean) =>
  [...Map.groupBy(pushing, ({ variant }) => variant.product.id)].flatMap(([product, of]) => {
    const changed = of.flatMap((one) => {
      const change = variantChange(one.listing, one.variant, ownsSalePrice)
      return change ? [{ one, change }] : []
    })
    const variables = { product, variants: changed.map(({ change }) => change) }
    return changed.length === 0 ? [] : [{ variables, pushing: changed.map(({ one }) => one) }]
  })

/** Writes prices, product by product or all at once. A refusal of the shop is noted on each listing that it is about. */
async function writePrices(shop: Shop, pushing: Pushing[]): Promise<NotConfirmed | undefined> {
  let calls = priceCalls(pushing, shop.settings.ownsSalePrice)
  if (calls.length >= BULK_MIN) {
    const all = calls.map(({ variables }) => variables)
    const answers = await runInBulk(shop, documents.updateVariants, all)
    if (answers.outcome !== 'read') return answers
    // The bulk operation has ended, so each call without an answer can be made again, one by one.
    calls = calls.filter((call, index) => {
      const answer = writtenPrices.safeParse(answerIn(documents.updateVariants, answers.value.get(index)))
      if (answer.success) notePrices(call.pushing, answer.data)
      return !answer.success
    })
  }
  for (const some of partsOf(calls, AT_ONCE)) {
    const ended = await Promise.all(
      some.map(async (call) => {
        const answer = await ask(shop, documents.updateVariants, call.variables, writtenPrices)
        if (answer.outcome !== 'read') return answer
        notePrices(call.pushing, answer.value)
        return undefined
      }),
    )
    const failure = ended.find((one) => one !== undefined)
    if (failure) return failure
  }
  return undefined
}

type StockPush = { id: string; location: string }

/** Writes the stock of at most 250 listings. A refusal of the shop is noted on each listing that it is about. */
async function writeStock(shop: Shop, push: StockPush, all: Pushing[]): Promise<NotConfirmed | undefined> {
  const { location } = push
  let pushing = all
  let stale = 0
  for (let tries = 1; ; tries += 1) {
    const due = pushing.flatMap((one) => {
      const quantity = quantityOf(one.listing)
      const before = availableOf(one.variant)
      if (quantity === null || quantity === before) return []
      // Stock is lowered even where the price was refused: otherwise the shop would go on selling units that are sold out.
      return one.refusal === undefined || (before !== null && quantity < before) ? [{ one, quantity, before }] : []
    })
    if (due.length === 0) return undefined
    for (const { one } of due.filter(({ before }) => before === null)) {
      const failure = await activate(shop, push, one)
      if (failure) return failure
    }
    const sent = due.filter(({ one, before }) => before !== null || one.refusal === undefined)
    if (sent.length === 0) return undefined
    const quantities = sent.map(({ one, quantity, before }) => ({
      inventoryItemId: one.variant.inventoryItem.id,
      locationId: location,
      quantity,
      changeFromQuantity: before ?? 0,
    }))
    const answer = await setQuantities(shop, push, tries, quantities)
    if (answer.outcome !== 'read') return answer
    const { userErrors } = answer.value
    if (userErrors.length === 0) return undefined
    const codes = userErrors.map(({ code }) => code)
    if (codes.includes('IDEMPOTENCY_CONCURRENT_REQUEST')) {
      return unavailable('the shop is still writing the same stock', true)
    }
    // Because of one error the shop refuses the whole request. The next try leaves the item with the error out.
    for (const { code, field } of userErrors) {
      if (isPassing(code)) continue
      const index = elementOf(field)
      if (index === undefined) return refused(422, `the shop does not take stock${named(code)}`)
      const one = sent[index]?.one
      if (one) one.refusal = refusalOf(code)
    }
    if (codes.some(isPassing)) stale += 1
    if (stale >= STOCK_TRIES_MAX) {
      for (const { one } of sent) one.refusal ??= 'its stock keeps changing in the shop'
      return undefined
    }
    pushing = sent.map(({ one }) => one).filter(({ refusal }) => refusal === undefined)
    const ids = pushing.map(({ variant }) => variant.id)
    const again = await readVariants(shop, ids, location)
    if (again.outcome !== 'read') return again
    for (const one of pushing) one.variant = again.value.get(one.variant.id) ?? one.variant
  }
}

function setQuantities(shop: Shop, { id }: StockPush, tries: number, quantities: object[]) {
  const referenceDocumentUri = `gid://quayside/Publish/${id}`
  const input = { name: 'available', reason: 'correction', referenceDocumentUri, quantities }
  return ask(shop, documents.setStock, { input, key: keyOf(id, tries, quantities) }, written)
}

/** Sets the stock of at most five listings to 0 at other locations for online orders. Where that fails, their notice says why. */
async function emptyOthers(shop: Shop, push: StockPush, all: Pushing[]): Promise<NotConfirmed | undefined> {
  let left = all
  let stale = 0
  for (let tries = 1; left.length > 0; tries += 1) {
    const ids = left.map(({ variant }) => variant.inventoryItem.id)
    const there = await ask(shop, documents.stockElsewhere, { ids }, itemLevels)
    if (there.outcome !== 'read') return there
    const items = there.value.flatMap((item) => item ?? [])
    const quantities = items.flatMap(({ id: inventoryItemId, inventoryLevels }) =>
      inventoryLevels.nodes.flatMap((level) => {
        const { id: locationId, fulfillsOnlineOrders } = level.location
        const changeFromQuantity = availableIn(level) ?? 0
        if (locationId === push.location || !fulfillsOnlineOrders || changeFromQuantity <= 0) return []
        return [{ inventoryItemId, locationId, quantity: 0, changeFromQuantity }]
      }),
    )
    const answer = quantities.length === 0 ? undefined : await setQuantities(shop, push, tries, quantities)
    if (answer && answer.outcome !== 'read') return answer
    const userErrors = answer?.value.userErrors ?? []
    if (userErrors.length === 0) {
      const unread = items.filter(({ inventoryLevels }) => inventoryLevels.pageInfo.hasNextPage).map(({ id }) => id)
      for (const one of left) if (!unread.includes(one.variant.inventoryItem.id)) one.notice = undefined
      return undefined
    }
    stale += 1
    for (const { code, field } of userErrors) {
      if (isPassing(code) && stale < STOCK_TRIES_MAX) continue
      const item = quantities[elementOf(field) ?? -1]?.inventoryItemId
      const stays = (one: Pushing) => item === undefined || one.variant.inventoryItem.id === item
      const detail = `the shop does not let its other locations be set to 0${named(code)}`
      for (const one of left.filter(stays)) one.notice = { reason: 'stock_elsewhere', detail }
      left = left.filter((one) => !stays(one))
    }
  }
  return undefined
}

/** Makes the location stock an item, with a quantity of 0. */
async function activate(shop: Shop, push: StockPush, one: Pushing): Promise<NotConfirmed | undefined> {
  const { id: item } = one.variant.inventoryItem
  const variables = { item, location: push.location, key: keyOf(push.id, 0, [item]) }
  const activated = await ask(shop, documents.activateStock, variables, written)
  if (activated.outcome !== 'read') return activated
  if (activated.value.userErrors.length > 0) one.refusal = 'the shop does not stock it at the location'
  return undefined
}

/** Takes the product of this variant out of sight, if the product has no other variant. */
async function hide(shop: Shop, one: Pushing): Promise<NotConfirmed | undefined> {
  const { id, status: before, variantsCount } = one.variant.product
  if (before === 'DRAFT' || variantsCount?.count !== 1) return undefined
  const hidden = await ask(shop, documents.updateProduct, { product: { id, status: 'DRAFT' } }, written)
  if (hidden.outcome !== 'read') return hidden
  if (hidden.value.userErrors.length > 0) one.refusal ??= 'the shop does not make a draft of it'
  return undefined
}

/** Writes our prices and stock to the shop, where they differ from what the shop has. */
export async function publish(
  shop: Shop,
  { id: pushId, listings }: { id: string; listings: StoreListing[] },
): Promise<PublishResult> {
  const sale = await readSale(shop)
  if (sale.outcome !== 'read') return sale
  const { currency, location } = sale.value
  const { sound, answers } = soundListings(listings, currency, (id) =>
    isNumber(id) ? undefined : 'this is no id of a variant of Shopify',
  )
  const running = await endBulk(shop)
  if (running) return running
  const ids = sound.map(({ id }) => gidOf('ProductVariant', id))
  const there = await readVariants(shop, ids, location)
  if (there.outcome !== 'read') return there
  const pushing: Pushing[] = []
  for (const listing of sound) {
    const variant = there.value.get(gidOf('ProductVariant', listing.id))
    const notice = variant && noticeOf(listing, variant)
    if (variant) pushing.push({ listing, variant, price: variant.price, refusal: undefined, notice })
    else answers.push({ id: listing.id, ok: false, reason: `the shop has no variant ${listing.id}` })
  }
  const failure = await write(shop, { id: pushId, location }, pushing)
  // Values that were written before the failure stay: the next push compares first, and does not write them again.
  if (failure) return answeredUntil(answers, failure)
  for (const { listing, price, refusal, notice } of pushing) {
    const stock = listing.stock === null ? null : quantityOf(listing)
    if (refusal !== undefined) answers.push({ id: listing.id, ok: false, reason: refusal })
    else answers.push({ id: listing.id, ok: true, price, stock, ...(notice && { notice }) })
  }
  return { outcome: 'answered', answers }
}

async function write(shop: Shop, push: StockPush, pushing: Pushing[]): Promise<NotConfirmed | undefined> {
  const isEmptied = ({ notice }: Pushing) =>
    shop.settings.otherLocations === 'own' && notice?.reason === 'stock_elsewhere'
  const steps = [
    () => writePrices(shop, pushing),
    ...partsOf(pushing, documents.ITEMS_MAX).map((some) => () => writeStock(shop, push, some)),
    ...partsOf(pushing.filter(isEmptied), documents.STOCK_ELSEWHERE_MAX).map(
      (some) => () => emptyOthers(shop, push, some),
    ),
    ...pushing.filter(({ listing }) => listing.isGone).map((one) => () => hide(shop, one)),
  ]
  for (const step of steps) {
    const failure = await step()
    if (failure) return failure
  }
  return undefined
}

/** Finds variants by their SKU. The shop's search lags, so a new variant may be missing. */
async function findSkus(shop: Shop, skus: string[]): Promise<Read<Map<string, FoundVariant[]>>> {
  const found = new Map<string, FoundVariant[]>()
  const product = z.object({ id: z.string(), handle: z.string() })
  const nodes = z.array(z.object({ id: z.string(), sku: z.string().nullable(), product }))
  for (const some of partsOf(skus, SKUS_MAX)) {
    const seen = await ask(shop, documents.variantsBySku, { query: skuQuery(some) }, z.object({ nodes }))
    if (seen.outcome !== 'read') return seen
    for (const { id, sku, product } of seen.value.nodes) {
      const variant = numberOf('ProductVariant', id)
      if (sku === null || variant === undefined || !some.includes(sku)) continue
      found.set(sku, [...(found.get(sku) ?? []), { id: variant, product: product.id, handle: product.handle }])
    }
  }
  return asRead(found)
}

/** Finds the product that Quayside has made for a SKU before, and returns its variant; undefined where there is none. */
async function takenByHandle(shop: Shop, variant: NewVariant): Promise<CreatedVariant | NotConfirmed | undefined> {
  const { sku } = variant
  const handle = handleOf(sku)
  const seen = await ask(shop, documents.productByHandle, { handle }, madeProduct.nullable())
  if (seen.outcome !== 'read') return seen
  const product = seen.value
  if (product === null) return undefined
  const id = onlyVariant(product, sku)
  if (id !== undefined) return taken(shop, variant, { id, product: product.id, handle }, false)
  return { sku, refusal: `a product of the shop has the handle ${handle} and another SKU: link one of its variants` }
}

async function makeProduct(shop: Shop, variant: NewVariant): Promise<CreatedVariant | NotConfirmed> {
  const { sku, image } = variant
  const input = newProduct(variant, shop.settings.create)
  const made = await ask(shop, documents.createProduct, { input }, written.extend({ product: madeProduct.nullable() }))
  if (made.outcome !== 'read') return made
  const { product, userErrors } = made.value
  const id = product && onlyVariant(product, sku)
  if (userErrors.length === 0 && product && id) {
    return taken(shop, variant, { id, product: product.id, handle: handleOf(sku) }, true)
  }
  const isThere = userErrors.some(({ code }) => code === 'HANDLE_NOT_UNIQUE')
  const there = isThere ? await takenByHandle(shop, variant) : undefined
  if (there) return there
  const isImage = image !== null && userErrors.some(({ field }) => field?.includes('files'))
  if (isImage) return makeProduct(shop, { ...variant, image: null })
  return { sku, refusal: refusalOf(userErrors[0]?.code) }
}

/** Publishes the product of a variant, if it is to be published. @returns the answer that the variant is there */
async function taken(
  shop: Shop,
  { sku, isPublished }: NewVariant,
  found: FoundVariant,
  isNew: boolean,
): Promise<CreatedVariant | NotConfirmed> {
  if (isPublished && shop.settings.create === 'publish' && found.handle === handleOf(sku)) {
    const failure = await show(shop, found.product)
    if (failure) return failure
  }
  return { sku, id: found.id, isNew }
}

/** Publishes a product to the online store, where the shop has one. */
async function show(shop: Shop, product: string): Promise<NotConfirmed | undefined> {
  const { known } = shop
  if (known.publication === undefined) {
    const seen = await ask(shop, documents.publications, {}, publicationList)
    if (seen.outcome !== 'read') return seen
    const isOnlineStore = ({ handle }: { handle: string | null }) => handle === 'online_store'
    known.publication = seen.value.nodes.find(({ catalog }) => catalog?.apps.nodes.some(isOnlineStore))?.id ?? null
  }
  if (known.publication === null) return undefined
  const shown = await ask(shop, documents.publishProduct, { product, publication: known.publication }, written)
  return shown.outcome === 'read' ? undefined : shown
}

export async function createVariants(shop: Shop, variants: NewVariant[]): Promise<CreateResult> {
  const skus = variants.map(({ sku }) => sku)
  const found = await findSkus(shop, skus)
  if (found.outcome !== 'read') return found
  const answers: CreatedVariant[] = []
  for (const some of partsOf(variants, AT_ONCE)) {
    const made = await Promise.all(
      some.map(async (variant) => {
        const [one, ...others] = found.value.get(variant.sku) ?? []
        if (others.length > 0) {
          return { sku: variant.sku, refusal: 'several variants of the shop have this SKU: link one of them' }
        }
        if (one) return taken(shop, variant, one, false)
        return (await takenByHandle(shop, variant)) ?? makeProduct(shop, variant)
      }),
    )
    answers.push(...made.flatMap((one) => ('sku' in one ? [one] : [])))
    const failure = made.find((one) => 'outcome' in one)
    if (failure) return answeredUntil(answers, failure)
  }
  return { outcome: 'answered', answers }
}

export async function readVariantPage(shop: Shop, cursor: string | null): Promise<StorePage<StoreVariant>> {
  const seen = await ask(shop, documents.variantPage, { after: cursor }, pageOf(listedVariant))
  // The shop refused its own cursor, so the reading begins again at the first page.
  if (seen.outcome === 'refused' && cursor !== null) return readVariantPage(shop, null)
  if (seen.outcome !== 'read') return seen
  const items = seen.value.nodes.flatMap(({ id: gid, sku, title, sellableOnlineQuantity: sellable, product }) => {
    const id = numberOf('ProductVariant', gid)
    const name = product.hasOnlyDefaultVariant ? product.title : `${product.title} - ${title}`
    return id === undefined ? [] : [{ id, sku: sku || null, name, sellable }]
  })
  return { outcome: 'read', items, next: seen.value.next }
}

interface FoundVariant {
  id: string
  product: string
  handle: string
}

/** Errors after which another try can work, once the shop's stock is read again. */
const PASSING = [
  'CHANGE_FROM_QUANTITY_STALE',
  'COMPARE_QUANTITY_STALE',
  'ITEM_NOT_STOCKED_AT_LOCATION',
  'IDEMPOTENCY_PREVIOUS_ATTEMPT_FAILED',
]
const isPassing = (code: UserError['code']): boolean => PASSING.includes(code ?? '')

const level = z.object({ location: z.object({ id: z.string(), fulfillsOnlineOrders: z.boolean() }), quantities })
const inventoryLevels = z.object({ nodes: z.array(level), pageInfo: z.object({ hasNextPage: z.boolean() }) })
const itemLevels = z.array(z.object({ id: z.string(), inventoryLevels }).nullable())

const apps = z.object({ nodes: z.array(z.object({ handle: z.string().nullable() })) })
const catalog = z.object({ apps }).nullable().catch(null)
const publicationList = z.object({ nodes: z.array(z.object({ id: z.string(), catalog })) })

const listedVariant = z.object({
  id: z.string(),
  sku: z.string().nullable(),
  title: z.string(),
  sellableOnlineQuantity: z.number().int(),
  product: z.object({ title: z.string(), hasOnlyDefaultVariant: z.boolean() }),
})

const madeProduct = z.object({
  id: z.string(),
  variants: z.object({ nodes: z.array(z.object({ id: z.string(), sku: z.string().nullable() })) }),
})

/** Returns the id of the variant of a product that has exactly this SKU. */
const onlyVariant = ({ variants }: z.infer<typeof madeProduct>, sku: string): string | undefined =>
  numberOf('ProductVariant', variants.nodes.find((one) => one.sku === sku)?.id)

/** Returns the idempotency key of a request. Shopify acts only once on requests with the same key. */
const keyOf = (push: string, tries: number, contents: unknown[]): string =>
  createHash('sha256')
    .update(JSON.stringify([push, tries, contents]))
    .digest('hex')

/** Returns a search for these SKUs. It also finds similar SKUs, so the caller must compare the SKUs of the results. */
export const skuQuery = (skus: string[]): string =>
  skus.map((sku) => `sku:'${sku.replaceAll(/['\\]/g, '\\$&')}'`).join(' OR ')

/** Returns the handle of the product that Quayside makes for a SKU. A product is found by its handle at once; a search lags. */
export function handleOf(sku: string): string {
  const slug = sku
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, '-')
    .slice(0, 100)
    .replaceAll(/^-+|-+$/g, '')
  const hash = createHash('sha256').update(sku).digest('hex').slice(0, 8)
  return slug === '' ? hash : `${slug}-${hash}`
}

/**
 * Returns a product as it is created. The product is not shipped and has no stock, so it cannot be bought before its price and
 * stock are published.
 */
function newProduct(variant: NewVariant, status: ShopSettings['create']) {
  const { sku, name, category, description, image, isPublished } = variant
  return {
    handle: handleOf(sku),
    title: name,
    status: isPublished && status === 'publish' ? 'ACTIVE' : 'DRAFT',
    ...(description === null ? {} : { descriptionHtml: escaped(description) }),
    ...(category === null ? {} : { productType: category }),
    ...(image === null ? {} : { files: [{ originalSource: image, contentType: 'IMAGE' }] }),
    productOptions: [{ name: 'Title', values: [{ name: 'Default Title' }] }],
    variants: [
      {
        optionValues: [{ optionName: 'Title', name: 'Default Title' }],
        sku,
        inventoryPolicy: 'DENY',
        inventoryItem: { tracked: true, requiresShipping: false },
      },
    ],
  }
}

const shopLocation = z.object({
  id: z.string(),
  name: z.string(),
  isActive: z.boolean(),
  fulfillsOnlineOrders: z.boolean(),
  isFulfillmentService: z.boolean(),
})
type ShopLocation = z.infer<typeof shopLocation>

/** Pages of fifty: a shop has at most a thousand locations. */
const LOCATION_PAGES_MAX = 20

/** Reads all locations of the shop, oldest first. */
export const readLocations = (shop: Shop): Promise<Read<ShopLocation[]>> =>
  readPages(shop, documents.locations, {}, pageOf(shopLocation), LOCATION_PAGES_MAX)

/** Whether the online store sells what the location has. */
export const servesOnline = ({ isActive, fulfillsOnlineOrders }: ShopLocation): boolean =>
  isActive && fulfillsOnlineOrders

/** Returns the configured location, or the oldest location that serves online orders; undefined where there is no such location. */
export const locationIn = (all: readonly ShopLocation[], number: string | null): ShopLocation | undefined =>
  all.find((one) =>
    number === null ? servesOnline(one) && !one.isFulfillmentService : numberOf('Location', one.id) === number,
  )
