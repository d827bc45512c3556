import { z } from 'zod'
import type { ItemAnswer } from '../../domain/acknowledgement.ts'
import { answeredUntil, type CatalogueSettings, escaped, READ_AGE_MS, soundListings } from '../shop-catalogue.ts'
import { asRead, type Read, unavailable } from '../shop-client.ts'
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
import { call, ITEMS_MAX, named, readAs, readList, type Shop } from './client.ts'
import { isAmount } from './orders.ts'

/** The fewest items of a batch. Smaller batches do not help, because WordPress itself needs a second for each request. */
const ITEMS_MIN = 10
/** A request that takes longer is near the time after which web servers hang up. */
const SLOW_MS = 20_000
const QUICK_MS = 5_000
/** The most products that one request creates, because the shop fetches each picture within the request. */
const CREATE_MAX = 20
/** The most characters of SKUs in one search, so that every web server takes the URL of the search. */
const SKUS_LENGTH_MAX = 1_500

export type CatalogueShop = Shop & CatalogueSettings

/** Returns how many items the next batch has. @param isAnswered false: no answer came */
export function nextBatchSize(size: number, { ms, isAnswered }: { ms: number; isAnswered: boolean }): number {
  if (!isAnswered || ms > SLOW_MS) return Math.max(ITEMS_MIN, Math.floor(size / 2))
  return ms < QUICK_MS ? Math.min(ITEMS_MAX, size * 2) : size
}

/** A variant by the ids of WooCommerce. `parent`: null for a simple product. */
export interface ShopVariant {
  parent: string | null
  id: string
}

/** Reads the id of a variant: `10` is a simple product, `13:14` the variation 14 of the product 13. */
export function shopVariant(text: string): ShopVariant | undefined {
  const match = /^(?:([1-9]\d{0,14}):)?([1-9]\d{0,14})$/.exec(text)
  return match ? { parent: match[1] ?? null, id: match[2] as string } : undefined
}

/** Returns the fields to write of a listing: its price and stock, or its stock alone, and its status where it must disappear. */
export function itemOf(listing: StoreListing, { parent, id }: ShopVariant, ownsSalePrice: boolean) {
  const { price, compareAt, stock, available, isGone, stockAlone } = listing
  const prices = ownsSalePrice
    ? { regular_price: compareAt ?? price, sale_price: compareAt === null ? '' : price }
    : { regular_price: price }
  return {
    id: Number(id),
    // A regular price makes WooCommerce drop a sale price of the merchant that is not lower.
    ...(stockAlone ? {} : prices),
    ...(stock === null
      ? { manage_stock: false, stock_status: available ? 'instock' : 'outofstock' }
      : { manage_stock: true, stock_quantity: available ? stock : 0 }),
    // A variation cannot be a draft. WooCommerce itself makes a variation private to hide it.
    ...(isGone ? { status: parent === null ? 'draft' : 'private' } : {}),
  }
}

const batchItem = z.object({
  id: z.number(),
  type: z.string().nullish(),
  price: z.string().nullish(),
  sale_price: z.string().nullish(),
  manage_stock: z.unknown(),
  stock_quantity: z.number().nullish(),
  stock_status: z.string().nullish(),
  backorders_allowed: z.boolean().nullish(),
  error: z.undefined().optional(),
})
const failedItem = z.object({ error: z.object({ code: z.string(), data: z.unknown() }) })

/** Returns what became of a listing, by the shop's answer about its item; undefined where the answer cannot be read. */
export function answerOf(listing: StoreListing, item: unknown, ownsSalePrice: boolean): ItemAnswer | undefined {
  const { id, currency, stockAlone } = listing
  const refused = (reason: string): ItemAnswer => ({ id, ok: false, reason })
  const failure = failedItem.safeParse(item)
  if (failure.success) return refused(refusalOf(id, failure.data.error.code))
  const read = batchItem.safeParse(item)
  if (!read.success) return undefined
  const { type, sale_price: sale, manage_stock: isCounted, stock_quantity: quantity } = read.data
  if (type === 'variable') return refused(`product ${id} has variations: link those, each for itself`)
  const price = stockAlone ? listing.price : read.data.price
  if (!price) return refused('the shop kept no price for it')
  if (!isAmount(price, currency)) return refused('the price that the shop has for it cannot be read')
  const isOut = listing.stock === 0 || !listing.available
  if (isOut && read.data.backorders_allowed) {
    return refused('it can be bought while it is out of stock: switch its backorders off')
  }
  if (isOut && read.data.stock_status === 'instock') return refused('the shop keeps it in stock')
  const stock = isCounted === true ? (quantity ?? null) : null
  const hasSale = !ownsSalePrice && !stockAlone && Boolean(sale) && price === sale
  const detail = `it has a sale price of ${price} ${currency} in the shop, which is below the price that was sent`
  return {
    id,
    ok: true,
    price,
    stock: !listing.available && stock === 0 ? listing.stock : stock,
    ...(hasSale ? { notice: { reason: 'sale_price', detail } } : {}),
  }
}

/** Returns a refusal by the code of an error, because the messages differ by version and language. */
function refusalOf(id: string, code: string): string {
  if (/^woocommerce_rest_product(_variation)?_invalid_id$/.test(code)) return `the shop has no product ${id}`
  if (code === 'woocommerce_rest_invalid_product_id') return `${id} is a variation: link it with the id of its product`
  return `the shop refused it${named(code)}`
}

async function readCurrency(shop: Shop): Promise<Read<string>> {
  const { known, now } = shop
  if (known.currency && now() - known.currency.readAt < READ_AGE_MS) return asRead(known.currency.code)
  const answer = await call(shop, { method: 'GET', path: CURRENCY_PATH })
  if (!answer.ok) return answer.failure
  const code = currencyIn(answer.body)
  if (code === undefined) return unreadable('its currency')
  known.currency = { code, readAt: now() }
  return asRead(code)
}

/** Sends a batch of products, and chooses the size of the next batch by the time that this one takes. */
async function sendBatch<Value>(
  shop: Shop,
  path: string,
  body: object,
  schema: z.ZodType<Value>,
): Promise<Read<Value>> {
  const { known, now } = shop
  const startedAt = now()
  const answer = await call(shop, { method: 'POST', path, body })
  const isAnswered = answer.ok || answer.failure.outcome === 'refused'
  known.batchSize = nextBatchSize(known.batchSize, { ms: now() - startedAt, isAnswered })
  return readAs(answer, schema, unreadable('what became of its products', true))
}

/** Sends items batch by batch, and adds what became of them to `answers`. @returns the failure that ended the sending, if any */
async function inBatches<Item, Answer>(
  { known }: Shop,
  items: Item[],
  answers: Answer[],
  send: (batch: Item[]) => Promise<Answer[] | NotConfirmed>,
  sizeMax = ITEMS_MAX,
): Promise<NotConfirmed | undefined> {
  for (let rest = items; rest.length > 0; ) {
    const batch = rest.slice(0, Math.min(known.batchSize, sizeMax))
    rest = rest.slice(batch.length)
    const result = await send(batch)
    if (!Array.isArray(result)) return result
    answers.push(...result)
  }
  return undefined
}

export async function publish(shop: CatalogueShop, listings: StoreListing[]): Promise<PublishResult> {
  const currency = await readCurrency(shop)
  if (currency.outcome !== 'read') return currency
  const { sound, answers } = soundListings(listings, currency.value, (id) =>
    shopVariant(id) ? undefined : 'this is no id of a product of WooCommerce',
  )
  const groups = Map.groupBy(sound, ({ id }) => shopVariant(id)?.parent ?? SIMPLE)
  for (const [parent, all] of groups) {
    const failure = await inBatches(shop, all, answers, (batch) => publishBatch(shop, parent, batch))
    if (failure) return answeredUntil(answers, failure)
  }
  return { outcome: 'answered', answers }
}

/** Publishes simple products, or variations of one product. */
async function publishBatch(
  shop: CatalogueShop,
  parent: string,
  listings: StoreListing[],
): Promise<ItemAnswer[] | NotConfirmed> {
  const path = parent === SIMPLE ? '/products/batch' : `/products/${parent}/variations/batch`
  const sent = listings.flatMap((listing) => {
    const variant = shopVariant(listing.id)
    return variant ? [{ listing, item: itemOf(listing, variant, shop.ownsSalePrice) }] : []
  })
  const schema = z.object({ update: z.array(z.unknown()) })
  const items = await sendBatch(shop, path, { update: sent.map(({ item }) => item) }, schema)
  // One product may be gone with all its variations. The other products are pushed all the same.
  if (items.outcome === 'refused' && items.status === 404 && parent !== SIMPLE) {
    return listings.map(({ id }) => ({ id, ok: false, reason: `the shop has no product ${parent}` }))
  }
  if (items.outcome !== 'read') return items
  const found = new Map(items.value.update.map((item) => [(item as { id?: unknown } | null)?.id, item]))
  return sent.flatMap(({ listing, item }) => answerOf(listing, found.get(item.id), shop.ownsSalePrice) ?? [])
}

/** Finds the SKUs that the shop has, with the ids of their variants. */
async function findSkus(shop: Shop, skus: string[]): Promise<Map<string, CreatedVariant> | NotConfirmed> {
  const found = new Map<string, CreatedVariant>()
  for (const some of searches(skus)) {
    const query = { sku: some.join(','), _fields: 'id,sku,type,parent_id' }
    const products = await readList(shop, '/products', query, shopProduct, unreadable('its products'))
    if (products.outcome !== 'read') return products
    for (const product of products.items) {
      const asked = some.find((one) => one === product.sku)
      if (asked !== undefined) found.set(asked, variantNamed(asked, product))
    }
  }
  return found
}

/** Returns the id of the category with this name. Makes the category where the shop lacks it. */
async function categoryId(shop: Shop, name: string): Promise<number | NotConfirmed> {
  const [path, category] = ['/products/categories', z.object({ id: z.number(), name: z.string() })]
  const known = await readList(shop, path, { search: name }, category, unreadable('its categories'))
  if (known.outcome !== 'read') return known
  const same = known.items.find((one) => plainText(one.name).toLowerCase() === name.toLowerCase())
  if (same) return same.id
  const made = await call(shop, { method: 'POST', path, body: { name } })
  if (!made.ok && made.code !== 'term_exists') return made.failure
  const there = made.ok ? made.body : { id: resourceOf(made.data) }
  return z.object({ id: z.number() }).safeParse(there).data?.id ?? unreadable('its categories', true)
}

const createdItem = z.union([failedItem, z.object({ id: z.number().positive() })])

async function createBatch(shop: CatalogueShop, variants: NewVariant[]): Promise<CreatedVariant[] | NotConfirmed> {
  const { known, now } = shop
  if (now() - known.categories.readAt >= READ_AGE_MS) known.categories = { ids: new Map(), readAt: now() }
  const { ids } = known.categories
  for (const name of new Set(variants.flatMap(({ category }) => category ?? []))) {
    const category = ids.get(name) ?? (await categoryId(shop, name))
    if (typeof category !== 'number') return category
    ids.set(name, category)
  }
  const bodies = variants.map((variant) => newProduct(variant, shop.create, ids.get(variant.category ?? '')))
  const schema = z.object({ create: z.array(z.unknown()).length(variants.length) })
  const items = await sendBatch(shop, '/products/batch', { create: bodies }, schema)
  if (items.outcome !== 'read') return items
  const answers: CreatedVariant[] = []
  const withoutImage: NewVariant[] = []
  for (const [index, variant] of variants.entries()) {
    const { data: item } = createdItem.safeParse(items.value.create[index])
    if (item === undefined) continue
    if ('id' in item) answers.push({ sku: variant.sku, id: String(item.id), isNew: true })
    else if (variant.image !== null && /image/.test(item.error.code)) withoutImage.push({ ...variant, image: null })
    else answers.push(await existing(shop, variant.sku, item.error))
  }
  if (withoutImage.length === 0) return answers
  const second = await createBatch(shop, withoutImage)
  return Array.isArray(second) ? [...answers, ...second] : second
}

/** Answers for a SKU that the shop has, although the search did not find it: it is new, or the shop writes it in another case. */
async function existing(
  shop: Shop,
  sku: string,
  { code, data }: z.infer<typeof failedItem>['error'],
): Promise<CreatedVariant> {
  const id = resourceOf(data)
  if (code !== 'product_invalid_sku' || id === undefined) return { sku, refusal: `the shop refused it${named(code)}` }
  const answer = await call(shop, { method: 'GET', path: `/products/${id}` })
  const read = answer.ok ? shopProduct.safeParse(answer.body) : undefined
  if (!read?.success) return { sku, refusal: `the shop has this SKU for product ${id}, which cannot be read` }
  if (read.data.sku !== sku)
    return { sku, refusal: `the shop takes it for the SKU of product ${id}, which is another one` }
  return variantNamed(sku, read.data)
}

export async function createVariants(shop: CatalogueShop, variants: NewVariant[]): Promise<CreateResult> {
  const found = await findSkus(
    shop,
    variants.map(({ sku }) => sku),
  )
  if (!(found instanceof Map)) return found
  const answers = [...found.values()]
  const missing = variants.filter(({ sku }) => !found.has(sku))
  const failure = await inBatches(shop, missing, answers, (batch) => createBatch(shop, batch), CREATE_MAX)
  return failure ? answeredUntil(answers, failure) : { outcome: 'answered', answers }
}

/** Reads a page of products, or a page of the variations of a product that is on the page of products before. */
export async function readVariants(shop: Shop, cursor: string | null): Promise<StorePage<StoreVariant>> {
  const at = cursor === null ? FIRST_PAGE : pagePosition.parse(JSON.parse(cursor))
  const [parent] = at.parents
  const path = parent === undefined ? '/products' : `/products/${parent.id}/variations`
  const query = { page: String(parent === undefined ? at.page : at.variationsPage), ...BY_ID }
  const products = await readList(shop, path, query, shopProduct, unreadable('its products'))
  if (products.outcome !== 'read') return products
  const { items, next } = variantsPage(at, products.items, products.isLast)
  return { outcome: 'read', items, next: next && JSON.stringify(next) }
}

const SIMPLE = ''
export const CURRENCY_PATH = '/settings/general/woocommerce_currency'
const BY_ID = { orderby: 'id', order: 'asc', _fields: 'id,name,sku,type,parent_id,price' }

const unreadable = (what: string, mayHaveLeft = false): NotConfirmed =>
  unavailable(`${what} cannot be read from the answer of the shop`, mayHaveLeft)

export function currencyIn(body: unknown): string | undefined {
  return z.object({ value: z.string().regex(/^[A-Z]{3}$/) }).safeParse(body).data?.value
}

const resourceOf = (data: unknown): number | undefined =>
  z.object({ resource_id: z.coerce.number().int().positive() }).safeParse(data).data?.resource_id

const shopProduct = z.object({
  id: z.number().int(),
  name: z.string().catch(''),
  sku: z.string().nullable().catch(null),
  type: z.string().catch('simple'),
  parent_id: z.number().int().catch(0),
  price: z.string().optional().catch(undefined),
})
type ShopProduct = z.infer<typeof shopProduct>

/** Returns the variant for a SKU, by the product that has the SKU. */
function variantNamed(sku: string, { id, type, parent_id: parent }: ShopProduct): CreatedVariant {
  if (type !== 'variable' && type !== 'grouped')
    return { sku, id: parent ? `${parent}:${id}` : String(id), isNew: false }
  return { sku, refusal: `product ${id} of the shop has this SKU, and consists of others: link one of those` }
}

const pagePosition = z.object({
  page: z.number().int(),
  /** Products whose variations are read before the next page of products. */
  parents: z.array(z.object({ id: z.number().int(), name: z.string() })),
  variationsPage: z.number().int(),
})
type PagePosition = z.infer<typeof pagePosition>
const FIRST_PAGE: PagePosition = { page: 1, parents: [], variationsPage: 1 }

/** Returns the variants of a page, and where the next call goes on; null at the end. */
function variantsPage(
  at: PagePosition,
  products: ShopProduct[],
  isLast: boolean,
): { items: StoreVariant[]; next: PagePosition | null } {
  const [parent, ...others] = at.parents
  if (parent) {
    const items = products.map(({ id, sku, name, price }) => ({
      id: `${parent.id}:${id}`,
      sku: sku || null,
      name: `${parent.name} - ${plainText(name)}`,
      price,
    }))
    if (!isLast) return { items, next: { ...at, variationsPage: at.variationsPage + 1 } }
    return { items, next: others.length === 0 && at.page === 0 ? null : { ...at, parents: others, variationsPage: 1 } }
  }
  const items = products
    .filter(({ type }) => !['variable', 'grouped', 'external', 'variation'].includes(type))
    .map(({ id, sku, name, price }) => ({ id: String(id), sku: sku || null, name: plainText(name), price }))
  const parents = products
    .filter(({ type }) => type === 'variable')
    .map(({ id, name }) => ({ id, name: plainText(name) }))
  // Page 0 says that no page of products comes after these variations.
  const next = { page: isLast ? 0 : at.page + 1, parents, variationsPage: 1 }
  return { items, next: isLast && parents.length === 0 ? null : next }
}

/** Groups SKUs into one group for each request. WooCommerce splits at commas, so a SKU with a comma is asked for alone. */
export function searches(skus: string[]): string[][] {
  const groups: string[][] = []
  let length = SKUS_LENGTH_MAX
  for (const sku of new Set(skus)) {
    const cost = encodeURIComponent(sku).length + 3
    const last = groups.at(-1)
    if (sku.includes(',') || !last || last.length === ITEMS_MAX || length + cost > SKUS_LENGTH_MAX) {
      groups.push([sku])
      length = sku.includes(',') ? SKUS_LENGTH_MAX : cost
    } else {
      last.push(sku)
      length += cost
    }
  }
  return groups
}

/**
 * Returns a product as it is created. It is virtual, because nothing is shipped. It is not downloadable too, because WooCommerce
 * would then complete its orders before the keys are there. It has no price, so that it cannot be bought.
 */
function newProduct(variant: NewVariant, status: CatalogueShop['create'], category: number | undefined) {
  const { sku, name, description, image, isPublished } = variant
  return {
    type: 'simple',
    name: name.replaceAll('<', '&lt;'),
    sku,
    status: isPublished && status === 'publish' ? 'publish' : 'draft',
    virtual: true,
    downloadable: false,
    manage_stock: true,
    stock_quantity: 0,
    ...(description === null ? {} : { description: escaped(description) }),
    ...(category === undefined ? {} : { categories: [{ id: category }] }),
    ...(image === null ? {} : { images: [{ src: image }] }),
  }
}

/** Returns a text of WordPress without its markup. */
export const plainText = (text: string): string =>
  text
    .replaceAll(/<[^>]*>/g, '')
    .replaceAll('&lt;', '<')
    .replaceAll('&gt;', '>')
    .replaceAll('&quot;', '"')
    .replaceAll(/&#0?39;/g, "'")
    .replaceAll('&#8211;', '–')
    .replaceAll('&amp;', '&')
