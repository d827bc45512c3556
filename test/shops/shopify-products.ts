/** Products, variants, locations and publications of the Shopify shop. */
import {
  connection,
  count,
  dateTime,
  gid,
  isFields,
  minorIn,
  moneyText,
  type NodeFields,
  needNumber,
  numberIn,
  objectsIn,
  type RootFields,
  searchOf,
  textsIn,
  type UserError,
  userErrors,
} from './shopify-answers.ts'
import { type Fields, GraphqlRefusal } from './shopify-graphql.ts'

export interface ShopifyLocation {
  id: string
  name: string
  isActive: boolean
  fulfillsOnlineOrders: boolean
  isFulfillmentService: boolean
}

export interface ShopifyPublication {
  id: string
  title: string
  /** Of the app behind it, such as `online_store`. */
  app: string
}

export interface ShopifyProduct {
  id: string
  title: string
  handle: string
  descriptionHtml: string
  productType: string
  vendor: string
  status: 'ACTIVE' | 'ARCHIVED' | 'DRAFT' | 'UNLISTED'
  /** Addresses of its pictures. */
  images: string[]
  tags: string[]
  /** Ids of the publications that show it. */
  publications: Set<string>
  createdAt: number
  updatedAt: number
  variants: ShopifyVariant[]
}

export interface ShopifyVariant {
  id: string
  product: ShopifyProduct
  sku: string | null
  title: string
  /** Minor units. */
  price: number
  compareAtPrice: number | null
  inventoryPolicy: 'CONTINUE' | 'DENY'
  createdAt: number
  updatedAt: number
  item: ShopifyInventoryItem
}

export interface ShopifyInventoryItem {
  id: string
  variant: ShopifyVariant
  tracked: boolean
  requiresShipping: boolean
  /** By the id of the location that stocks it. */
  levels: Map<string, ShopifyLevel>
}

export interface ShopifyLevel {
  id: string
  available: number
  /** Sold and not yet sent. */
  committed: number
  updatedAt: number
}

/** A product as the merchant makes it; prices are decimal text. */
export interface ProductDraft {
  title?: string
  handle?: string
  status?: ShopifyProduct['status']
  descriptionHtml?: string
  productType?: string
  sku?: string | null
  price?: string
  compareAtPrice?: string | null
  /** Units at the first location; null: the item is not tracked. Default: 0. */
  stock?: number | null
  inventoryPolicy?: ShopifyVariant['inventoryPolicy']
  requiresShipping?: boolean
  /** Several variants; default: one. */
  variants?: Pick<ProductDraft, 'title' | 'sku' | 'price' | 'compareAtPrice' | 'stock' | 'inventoryPolicy'>[]
}

interface ProductsOptions {
  now: () => number
  currency: () => string
  newId: () => string
  /** Milliseconds that the search lags behind what is true. */
  searchLagMs: () => number
  /** Refuses a field for which the app has no scope. */
  need: (scope: string, field: string) => void
  /** Why an item of a list fails by order of a test. */
  failItem: (item: Fields) => { code: string; message: string } | undefined
}

const OPTIONS_MAX = 2048

export function createProducts({ now, currency, newId, searchLagMs, need, failItem }: ProductsOptions) {
  const products = new Map<string, ShopifyProduct>()
  const variants = new Map<string, ShopifyVariant>()
  const items = new Map<string, ShopifyInventoryItem>()
  const locations = new Map<string, ShopifyLocation>()
  const publications = new Map<string, ShopifyPublication>()

  const addLocation = (fields: Partial<Omit<ShopifyLocation, 'id'>> = {}): ShopifyLocation => {
    const location = {
      id: newId(),
      name: 'Shop location',
      isActive: true,
      fulfillsOnlineOrders: true,
      isFulfillmentService: false,
      ...fields,
    }
    locations.set(location.id, location)
    return location
  }
  const addPublication = (title: string, app: string): ShopifyPublication => {
    const publication = { id: newId(), title, app }
    publications.set(publication.id, publication)
    return publication
  }
  addLocation()
  addPublication('Online Store', 'online_store')
  addPublication('Point of Sale', 'pos')

  const firstLocation = () => [...locations.values()][0] as ShopifyLocation
  const minor = (value: unknown): number => minorIn(value, currency()) ?? 0

  const addVariant = (product: ShopifyProduct, draft: ProductDraft, title: string): ShopifyVariant => {
    const id = newId()
    const item = {
      id: newId(),
      tracked: draft.stock !== null,
      requiresShipping: draft.requiresShipping ?? false,
      levels: new Map<string, ShopifyLevel>(),
    }
    const compareAt = draft.compareAtPrice ?? null
    const variant: ShopifyVariant = {
      id,
      product,
      sku: draft.sku ?? null,
      title,
      price: minor(draft.price ?? '0.00'),
      compareAtPrice: compareAt === null ? null : minor(compareAt),
      inventoryPolicy: draft.inventoryPolicy ?? 'DENY',
      createdAt: now(),
      updatedAt: now(),
      item: item as ShopifyInventoryItem,
    }
    variant.item.variant = variant
    const level = { id: newId(), available: draft.stock ?? 0, committed: 0, updatedAt: now() }
    variant.item.levels.set(firstLocation().id, level)
    variants.set(id, variant)
    items.set(item.id, variant.item)
    product.variants.push(variant)
    return variant
  }
  const isTaken = (handle: string, own?: string) =>
    products.values().some((one) => one.handle === handle && one.id !== own)
  const freeHandle = (title: string): string => {
    const wanted = slug(title)
    let [handle, number] = [wanted, 0]
    while (isTaken(handle)) {
      number += 1
      handle = `${wanted}-${number}`
    }
    return handle
  }

  /** The merchant creates a product. */
  const create = (draft: ProductDraft): ShopifyProduct => {
    const title = draft.title ?? 'Product'
    const product: ShopifyProduct = {
      id: newId(),
      title,
      handle: draft.handle ?? freeHandle(title),
      descriptionHtml: draft.descriptionHtml ?? '',
      productType: draft.productType ?? '',
      vendor: 'Shop',
      status: draft.status ?? 'ACTIVE',
      images: [],
      tags: [],
      publications: new Set([[...publications.keys()][0] as string]),
      createdAt: now(),
      updatedAt: now(),
      variants: [],
    }
    products.set(product.id, product)
    for (const [index, one] of (draft.variants ?? [draft]).entries()) {
      addVariant(product, one, draft.variants ? (one.title ?? `Variant ${index + 1}`) : 'Default Title')
    }
    return product
  }
  const remove = (product: ShopifyProduct): void => {
    products.delete(product.id)
    for (const { id, item } of product.variants) {
      variants.delete(id)
      items.delete(item.id)
    }
  }
  const removeVariant = ({ id, item, product }: ShopifyVariant): void => {
    product.variants = product.variants.filter((one) => one.id !== id)
    variants.delete(id)
    items.delete(item.id)
  }
  const touch = (variant: ShopifyVariant): void => {
    variant.updatedAt = now()
    variant.product.updatedAt = now()
  }
  const servesOnline = (id: string): boolean => {
    const location = locations.get(id)
    return location?.isActive === true && location.fulfillsOnlineOrders
  }
  /** Units that the online store sells, of all locations that serve it. */
  const sellableOf = ({ levels }: ShopifyInventoryItem): number =>
    levels.entries().reduce((sum, [id, { available }]) => (servesOnline(id) ? sum + available : sum), 0)

  /**
   * Takes sold units off what can be sold: at one location that has them all, else at several in the order in which the item is
   * stocked there. What none of them has is short at the first one.
   *
   * @returns the locations, each with its units
   */
  const commit = (item: ShopifyInventoryItem, units: number): { location: string; quantity: number }[] => {
    const online = [...item.levels].filter(([id]) => servesOnline(id))
    const levels = online.length > 0 ? online : [...item.levels]
    const whole = levels.find(([, { available }]) => available >= units)
    let left = units
    const taken = (whole ? [whole] : levels).map(([location, { available }]) => {
      const quantity = Math.min(left, Math.max(0, available))
      left -= quantity
      return { location, quantity }
    })
    const [first] = taken
    if (first) first.quantity += left
    const some = taken.filter(({ quantity }) => quantity > 0)
    for (const { location, quantity } of some) move(item, location, quantity)
    return some
  }
  /** Puts units back that are not sold any more, where they were taken. */
  const uncommit = (item: ShopifyInventoryItem, units: number): void => {
    let left = units
    for (const [location, { committed }] of item.levels) {
      const quantity = Math.min(left, Math.max(0, committed))
      if (quantity > 0) move(item, location, -quantity)
      left -= quantity
    }
  }
  const move = (item: ShopifyInventoryItem, location: string, quantity: number): void => {
    const level = item.levels.get(location)
    if (!item.tracked || !level) return
    level.available -= quantity
    level.committed += quantity
    level.updatedAt = now()
  }
  /** The merchant counts units of a variant at a location, which stocks it from then on. */
  const stockAt = (item: ShopifyInventoryItem, location: string, available: number): void => {
    const level = item.levels.get(location) ?? { id: newId(), available: 0, committed: 0, updatedAt: now() }
    item.levels.set(location, { ...level, available, updatedAt: now() })
  }

  const hasOnlyDefault = ({ variants: all }: ShopifyProduct) => all.length === 1 && all[0]?.title === 'Default Title'
  const productFields = (product: ShopifyProduct): NodeFields => ({
    __typename: 'Product',
    id: gid('Product', product.id),
    legacyResourceId: product.id,
    title: product.title,
    handle: product.handle,
    descriptionHtml: product.descriptionHtml,
    productType: product.productType,
    vendor: product.vendor,
    status: product.status,
    tags: product.tags,
    createdAt: dateTime(product.createdAt),
    updatedAt: dateTime(product.updatedAt),
    hasOnlyDefaultVariant: hasOnlyDefault(product),
    variantsCount: count(product.variants.length),
    totalInventory: product.variants.reduce((sum, { item }) => sum + availableOf(item), 0),
    variants: (given: Fields) => connection('ProductVariant', product.variants, given, ({ id }) => [id], variantFields),
    publishedOnPublication: ({ publicationId }: Fields) =>
      product.status === 'ACTIVE' && product.publications.has(needNumber('Publication', publicationId)),
  })
  const variantFields = (variant: ShopifyVariant): NodeFields => ({
    __typename: 'ProductVariant',
    id: gid('ProductVariant', variant.id),
    legacyResourceId: variant.id,
    sku: variant.sku,
    title: variant.title,
    displayName: `${variant.product.title} - ${variant.title}`,
    price: moneyText(variant.price, currency()),
    compareAtPrice: variant.compareAtPrice === null ? null : moneyText(variant.compareAtPrice, currency()),
    inventoryPolicy: variant.inventoryPolicy,
    inventoryQuantity: availableOf(variant.item),
    sellableOnlineQuantity: sellableOf(variant.item),
    createdAt: dateTime(variant.createdAt),
    updatedAt: dateTime(variant.updatedAt),
    product: () => productFields(variant.product),
    inventoryItem: () => itemFields(variant.item),
  })
  const itemFields = (item: ShopifyInventoryItem): NodeFields => ({
    __typename: 'InventoryItem',
    id: gid('InventoryItem', item.id),
    legacyResourceId: item.id,
    sku: item.variant.sku,
    tracked: item.tracked,
    requiresShipping: item.requiresShipping,
    locationsCount: count(item.levels.size),
    inventoryLevels: (given: Fields) => {
      need('read_inventory', 'inventoryLevels')
      const key = ([, { id }]: [string, ShopifyLevel]) => [id]
      return connection('InventoryLevel', [...item.levels], given, key, ([location, level]) =>
        levelFields(item, location, level),
      )
    },
    inventoryLevel: ({ locationId }: Fields) => {
      need('read_inventory', 'inventoryLevel')
      const location = needNumber('Location', locationId)
      const level = item.levels.get(location)
      return level ? levelFields(item, location, level) : null
    },
  })
  const levelFields = (item: ShopifyInventoryItem, location: string, level: ShopifyLevel): NodeFields => ({
    __typename: 'InventoryLevel',
    id: `${gid('InventoryLevel', level.id)}?inventory_item_id=${item.id}`,
    isActive: true,
    updatedAt: dateTime(level.updatedAt),
    item: () => itemFields(item),
    location: () => locationFields(locations.get(location) as ShopifyLocation),
    quantities: ({ names }: Fields) =>
      textsIn(names).map((name) => ({
        __typename: 'InventoryQuantity',
        id: `${gid('InventoryQuantity', level.id)}?inventory_item_id=${item.id}&name=${name}`,
        name,
        quantity: quantityOf(level, name),
        updatedAt: dateTime(level.updatedAt),
      })),
  })
  const locationFields = (location: ShopifyLocation): NodeFields => ({
    __typename: 'Location',
    ...location,
    id: gid('Location', location.id),
    legacyResourceId: location.id,
    shipsInventory: true,
  })
  const publicationFields = ({ id, title, app }: ShopifyPublication): NodeFields => ({
    __typename: 'Publication',
    id: gid('Publication', id),
    name: title,
    catalog: {
      __typename: 'AppCatalog',
      id: gid('AppCatalog', id),
      title,
      apps: (given: Fields) =>
        connection(
          'App',
          [app],
          given,
          (handle) => [handle],
          (handle) => ({
            __typename: 'App',
            id: gid('App', id),
            handle,
            title,
          }),
        ),
    },
  })

  /** Writes what an input has of a variant, and says what of it Shopify does not take. */
  const changeOf = (input: Fields): { apply: (variant: ShopifyVariant) => void; errors: UserError[] } => {
    const errors: UserError[] = []
    const price = input.price === undefined || input.price === null ? undefined : minorIn(input.price, currency())
    const hasCompareAt = input.compareAtPrice !== undefined
    const compareAt = input.compareAtPrice == null ? null : minorIn(input.compareAtPrice, currency())
    for (const [name, amount] of [
      ['price', price],
      ['compareAtPrice', compareAt],
    ] as const) {
      if (input[name] != null && amount === undefined) throw badVariable(name, input[name])
      if (typeof amount === 'number' && amount < 0) {
        errors.push({
          code: 'NEGATIVE_PRICE_VALUE',
          field: [name],
          message: 'Price must be greater than or equal to 0',
        })
      }
    }
    if (input.inventoryQuantities !== undefined) {
      errors.push({
        code: 'NO_INVENTORY_QUANTITIES_ON_VARIANTS_UPDATE',
        field: ['inventoryQuantities'],
        message: 'Inventory quantities can only be provided during create.',
      })
    }
    const item = isFields(input.inventoryItem) ? input.inventoryItem : {}
    return {
      errors,
      apply: (variant) => {
        if (price !== undefined) variant.price = price
        if (hasCompareAt) variant.compareAtPrice = compareAt ?? null
        if (input.inventoryPolicy != null)
          variant.inventoryPolicy = input.inventoryPolicy as ShopifyVariant['inventoryPolicy']
        if (typeof item.sku === 'string') variant.sku = item.sku
        if (typeof item.tracked === 'boolean') variant.item.tracked = item.tracked
        if (typeof item.requiresShipping === 'boolean') variant.item.requiresShipping = item.requiresShipping
        touch(variant)
      },
    }
  }

  const updateVariants = ({ productId, variants: inputs, allowPartialUpdates }: Fields): Fields => {
    const type = 'ProductVariantsBulkUpdateUserError'
    const product = products.get(needNumber('Product', productId))
    if (!product) {
      const error = { code: 'PRODUCT_DOES_NOT_EXIST', field: ['productId'], message: 'Product does not exist' }
      return { __typename: 'Payload', product: null, productVariants: null, userErrors: userErrors(type, [error]) }
    }
    const steps = objectsIn(inputs).map((input, index) => {
      const at = (error: UserError): UserError => ({
        ...error,
        field: ['variants', String(index), ...(error.field ?? [])],
      })
      const variant = variants.get(numberIn('ProductVariant', input.id) ?? '')
      if (!variant || variant.product !== product) {
        const code = input.id === undefined ? 'PRODUCT_VARIANT_ID_MISSING' : 'PRODUCT_VARIANT_DOES_NOT_EXIST'
        return { errors: [at({ code, field: ['id'], message: 'Product variant does not exist' })], write: undefined }
      }
      const failed = failItem(input)
      const { errors, apply } = changeOf(input)
      const found = [...(failed ? [{ ...failed, field: [] }] : []), ...errors].map(at)
      return {
        errors: found,
        write: () => {
          apply(variant)
          return variantFields(variant)
        },
      }
    })
    const errors = steps.flatMap((step) => step.errors)
    const sound = steps.filter((step) => step.errors.length === 0)
    const isDone = errors.length === 0 || (allowPartialUpdates === true && sound.length > 0)
    const written = isDone ? sound.flatMap(({ write }) => write?.() ?? []) : null
    return {
      __typename: 'ProductVariantsBulkUpdatePayload',
      product: () => productFields(product),
      productVariants: written,
      userErrors: userErrors(type, errors),
    }
  }

  const writeProduct = (product: ShopifyProduct, input: Fields): void => {
    if (typeof input.title === 'string') product.title = input.title
    if (typeof input.handle === 'string') product.handle = input.handle
    if (typeof input.descriptionHtml === 'string') product.descriptionHtml = input.descriptionHtml
    if (typeof input.productType === 'string') product.productType = input.productType
    if (typeof input.vendor === 'string') product.vendor = input.vendor
    if (typeof input.status === 'string') product.status = input.status as ShopifyProduct['status']
    if (Array.isArray(input.tags)) product.tags = textsIn(input.tags)
    product.updatedAt = now()
  }
  const updateProduct = ({ product: input }: Fields): Fields => {
    const given = isFields(input) ? input : {}
    const product = products.get(needNumber('Product', given.id))
    const errors: UserError[] = []
    if (!product) errors.push({ field: ['id'], message: 'Product does not exist' })
    else if (given.title === '') errors.push({ field: ['title'], message: "Title can't be blank" })
    else writeProduct(product, given)
    return {
      __typename: 'ProductUpdatePayload',
      product: product && errors.length === 0 ? () => productFields(product) : null,
      userErrors: userErrors('UserError', errors),
    }
  }

  const setProduct = ({ input, identifier, synchronous }: Fields): Fields => {
    const given = isFields(input) ? input : {}
    if (identifier !== undefined || synchronous === false) throw new Error('The shop only creates, and at once.')
    const errors: UserError[] = []
    const wanted = objectsIn(given.variants)
    const options = objectsIn(given.productOptions)
    const handle = typeof given.handle === 'string' ? given.handle : undefined
    if (typeof given.title !== 'string' || given.title === '') {
      errors.push({ code: 'MISSING_FIELD_REQUIRED', field: ['input', 'title'], message: "Title can't be blank" })
    }
    if (handle !== undefined && isTaken(handle)) {
      const message = `Handle '${handle}' already in use. Please provide a new handle.`
      errors.push({ code: 'HANDLE_NOT_UNIQUE', field: ['input', 'handle'], message })
    }
    if (wanted.length > 0 && options.length === 0) {
      const message = 'Product options input is required when updating variants'
      errors.push({ code: 'PRODUCT_OPTIONS_INPUT_MISSING', field: ['input', 'productOptions'], message })
    }
    if (wanted.length > OPTIONS_MAX) {
      errors.push({ code: 'VARIANTS_OVER_LIMIT', field: ['input', 'variants'], message: 'Too many variants' })
    }
    for (const [index, one] of wanted.entries()) {
      const names = objectsIn(one.optionValues).map(({ optionName, name }) => `${optionName}=${name}`)
      const known = options.flatMap(({ name, values }) => objectsIn(values).map((value) => `${name}=${value.name}`))
      if (names.length === options.length && names.every((name) => known.includes(name))) continue
      const field = ['input', 'variants', String(index), 'optionValues']
      errors.push({ code: 'OPTION_VALUE_DOES_NOT_EXIST', field, message: 'Option value does not exist' })
    }
    const failed = errors.length === 0 ? failItem(given) : undefined
    if (failed) errors.push({ ...failed, field: ['input'] })
    const changes = wanted.map(changeOf)
    errors.push(...changes.flatMap((change) => change.errors))
    const payload = (product: ShopifyProduct | undefined) => ({
      __typename: 'ProductSetPayload',
      product: product ? () => productFields(product) : null,
      productSetOperation: null,
      userErrors: userErrors('ProductSetUserError', errors),
    })
    if (errors.length > 0) return payload(undefined)
    const titles = wanted.map((one) =>
      objectsIn(one.optionValues)
        .map(({ name }) => name)
        .join(' / '),
    )
    const product = create({
      title: String(given.title),
      stock: null,
      ...(handle === undefined ? {} : { handle }),
      ...(wanted.length > 0 ? { variants: titles.map((title) => ({ title, stock: null })) } : {}),
    })
    // A product of the API is in no sales channel until it is published.
    product.publications.clear()
    writeProduct(product, given)
    for (const [index, change] of changes.entries()) {
      const variant = product.variants[index] as ShopifyVariant
      if (typeof wanted[index]?.sku === 'string') variant.sku = wanted[index].sku
      change.apply(variant)
    }
    product.images = objectsIn(given.files).map(({ originalSource }) => String(originalSource))
    return payload(product)
  }

  const publish = ({ id, input }: Fields): Fields => {
    const product = products.get(numberIn('Product', id) ?? '')
    const errors: UserError[] = []
    if (!product) errors.push({ field: ['id'], message: 'Resource does not exist' })
    const ids = objectsIn(input).map(({ publicationId }) => numberIn('Publication', publicationId) ?? '')
    for (const [index, one] of ids.entries()) {
      if (publications.has(one)) continue
      errors.push({ field: ['input', String(index), 'publicationId'], message: 'Publication does not exist' })
    }
    if (errors.length === 0) for (const one of ids) product?.publications.add(one)
    return {
      __typename: 'PublishablePublishPayload',
      publishable: product ? () => productFields(product) : null,
      userErrors: userErrors('UserError', errors),
    }
  }

  const byId = <Kept extends { id: string }>({ id }: Kept) => [id]
  const root: RootFields = {
    queries: {
      productVariants: {
        scope: 'read_products',
        isNullable: false,
        answer: (given) => {
          const fits = searchOf<ShopifyVariant>(given.query, {
            sku: ({ sku }) => [sku ?? ''],
            id: ({ id }) => [id],
            product_id: ({ product }) => [product.id],
            updated_at: ({ updatedAt }) => updatedAt,
          })
          const isSearch = typeof given.query === 'string' && given.query.trim() !== ''
          const isIndexed = ({ createdAt }: ShopifyVariant) => !isSearch || createdAt + searchLagMs() <= now()
          const found = [...variants.values()].filter((one) => isIndexed(one) && fits(one))
          return connection('ProductVariant', found, given, byId, variantFields)
        },
      },
      productVariant: {
        scope: 'read_products',
        isNullable: true,
        answer: ({ id }) => nodeOf('ProductVariant', needNumber('ProductVariant', id)) ?? null,
      },
      product: {
        scope: 'read_products',
        isNullable: true,
        answer: ({ id }) => nodeOf('Product', needNumber('Product', id)) ?? null,
      },
      productByIdentifier: {
        scope: 'read_products',
        isNullable: true,
        answer: ({ identifier }) => {
          const { handle, id } = isFields(identifier) ? identifier : {}
          const found = products
            .values()
            .find((one) => (handle === undefined ? gid('Product', one.id) === id : one.handle === handle))
          return found ? productFields(found) : null
        },
      },
      locations: {
        scope: 'read_locations',
        isNullable: false,
        answer: (given) => {
          const found = [...locations.values()].filter((one) => one.isActive || given.includeInactive === true)
          const key = given.sortKey === 'ID' ? byId : (one: ShopifyLocation) => [one.name.toLowerCase(), one.id]
          return connection('Location', found, given, key, locationFields)
        },
      },
      location: {
        scope: 'read_locations',
        isNullable: true,
        answer: ({ id }) => {
          const found = id === undefined ? firstLocation() : locations.get(needNumber('Location', id))
          return found ? locationFields(found) : null
        },
      },
      publications: {
        scope: 'read_publications',
        isNullable: false,
        answer: (given) => connection('Publication', [...publications.values()], given, byId, publicationFields),
      },
    },
    mutations: {
      productVariantsBulkUpdate: { scope: 'write_products', isNullable: true, answer: updateVariants },
      productUpdate: { scope: 'write_products', isNullable: true, answer: updateProduct },
      productSet: { scope: 'write_products', isNullable: true, answer: setProduct },
      publishablePublish: { scope: 'write_publications', isNullable: true, answer: publish },
    },
  }
  const nodeOf = (type: string, id: string): NodeFields | undefined => {
    const [product, variant, item] = [products.get(id), variants.get(id), items.get(id)]
    const [location, publication] = [locations.get(id), publications.get(id)]
    if (type === 'Product' && product) return productFields(product)
    if (type === 'ProductVariant' && variant) return variantFields(variant)
    if (type === 'InventoryItem' && item) return itemFields(item)
    if (type === 'Location' && location) return locationFields(location)
    return type === 'Publication' && publication ? publicationFields(publication) : undefined
  }

  return {
    products,
    variants,
    items,
    locations,
    publications,
    root,
    nodeOf,
    create,
    remove,
    removeVariant,
    touch,
    commit,
    uncommit,
    stockAt,
    addLocation,
    addPublication,
    firstLocation,
    variantFields,
    itemFields,
    levelFields,
    productFields,
  }
}

function quantityOf({ available, committed }: ShopifyLevel, name: string): number {
  if (name === 'available') return available
  if (name === 'committed') return committed
  return name === 'on_hand' ? available + committed : 0
}

export const availableOf = ({ levels }: ShopifyInventoryItem): number =>
  levels.values().reduce((sum, { available }) => sum + available, 0)

/** What Shopify answers to a variable that its scalar does not read. */
export const badVariable = (name: string, value: unknown) =>
  new GraphqlRefusal('INVALID_VARIABLE', `Variable was provided invalid value for ${name}`, {
    value,
    problems: [{ path: [name], explanation: 'invalid decimal' }],
  })

const slug = (title: string): string =>
  title
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}]+/gu, '-')
    .replaceAll(/^-|-$/g, '')
