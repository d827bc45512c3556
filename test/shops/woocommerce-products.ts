/** Products, variations and categories of the WooCommerce shop, with its rules for prices and stock. */
import {
  type Fields,
  instants,
  isFields,
  type Meta,
  modifiedBetween,
  objectsIn,
  oneOf,
  pageOf,
  type Route,
  type RouteAnswer,
  type RoutedRequest,
  sorted,
  WooRefusal,
  writeMeta,
} from './woocommerce-answers.ts'

export interface WooProduct {
  id: number
  /** 0 for what is no variation. */
  parentId: number
  type: 'simple' | 'variable' | 'variation' | 'grouped' | 'external'
  name: string
  status: string
  description: string
  shortDescription: string
  sku: string
  regularPrice: string
  salePrice: string
  virtual: boolean
  downloadable: boolean
  manageStock: boolean
  stockQuantity: number | null
  stockStatus: string
  catalogVisibility: string
  categories: number[]
  images: { id: number; src: string; name: string; alt: string }[]
  /** As posted: names, and options or the one option. */
  attributes: Fields[]
  meta: Meta[]
  totalSales: number
  createdAt: number
  modifiedAt: number
}

interface ProductsOptions {
  now: () => number
  utcOffsetMinutes: number
  home: () => string
  newPostId: () => number
  /** A topic of webhooks, such as `product.updated`, and whom it is about. */
  changed: (topic: string, id: number) => void
  /** Error of an item of a batch that fails by order of a test, without acting. */
  failItem: (path: string, item: Fields) => WooRefusal | undefined
}

const batchMax = 100
const types = ['simple', 'grouped', 'external', 'variable']
const statuses = ['draft', 'pending', 'private', 'publish', 'future', 'auto-draft', 'trash']
const stockStatuses = ['instock', 'outofstock', 'onbackorder']
const allowAll = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE']
const invalidId = (status: number) => new WooRefusal(status, 'woocommerce_rest_product_invalid_id', 'Invalid ID.')
const invalidVariation = () => new WooRefusal(404, 'woocommerce_rest_product_variation_invalid_id', 'Invalid ID.')

export function createProducts({ now, utcOffsetMinutes, home, newPostId, changed, failItem }: ProductsOptions) {
  const products = new Map<number, WooProduct>()
  const categories = new Map([[15, { id: 15, name: 'Uncategorized', slug: 'uncategorized', parent: 0 }]])
  let lastMetaId = 22
  let lastTermId = 15
  let lastImageId = 0
  const newMetaId = () => {
    lastMetaId += 1
    return lastMetaId
  }
  const variationsOf = (parent: number) => [...products.values()].filter(({ parentId }) => parentId === parent)

  const priceOf = (product: WooProduct): string => {
    if (product.type !== 'variable') return product.salePrice === '' ? product.regularPrice : product.salePrice
    const prices = variationsOf(product.id)
      .map(priceOf)
      .filter((price) => price !== '')
    return prices.toSorted((a, b) => Number(a) - Number(b))[0] ?? ''
  }
  const stockStatusOf = (product: WooProduct): string => {
    if (product.type !== 'variable') return product.stockStatus
    return variationsOf(product.id).some(({ stockStatus }) => stockStatus === 'instock') ? 'instock' : 'outofstock'
  }
  const optionsOf = ({ attributes }: WooProduct) => attributes.map(({ option }) => String(option ?? '')).join(', ')
  /** The name that orders and searches show: a variation's has its parent's before it. */
  const fullName = (product: WooProduct): string =>
    product.type === 'variation' ? `${products.get(product.parentId)?.name} - ${optionsOf(product)}` : product.name
  const permalink = (product: WooProduct): string => {
    if (product.type !== 'variation') return `${home()}/product/${slug(product.name)}/`
    const chosen = product.attributes.map(({ name, option }) => `attribute_${slug(String(name))}=${option}`)
    return `${home()}/product/${slug(products.get(product.parentId)?.name ?? '')}/?${chosen.join('&')}`
  }

  const shared = (product: WooProduct): Fields => ({
    id: product.id,
    permalink: permalink(product),
    ...instants('date_created', product.createdAt, utcOffsetMinutes),
    ...instants('date_modified', product.modifiedAt, utcOffsetMinutes),
    type: product.type,
    status: product.status,
    description: product.description,
    sku: product.sku,
    price: priceOf(product),
    regular_price: product.regularPrice,
    sale_price: product.salePrice,
    ...instants('date_on_sale_from', null, utcOffsetMinutes),
    ...instants('date_on_sale_to', null, utcOffsetMinutes),
    on_sale: product.salePrice !== '',
    purchasable: product.status === 'publish' && priceOf(product) !== '',
    virtual: product.virtual,
    downloadable: product.downloadable,
    downloads: [],
    download_limit: -1,
    download_expiry: -1,
    tax_status: 'taxable',
    tax_class: '',
    manage_stock: product.manageStock,
    stock_quantity: product.stockQuantity,
    stock_status: stockStatusOf(product),
    backorders: 'no',
    backorders_allowed: false,
    backordered: false,
    low_stock_amount: null,
    weight: '',
    dimensions: { length: '', width: '', height: '' },
    shipping_class: '',
    shipping_class_id: 0,
    menu_order: 0,
    meta_data: product.meta.map((meta) => ({ ...meta })),
    global_unique_id: '',
    parent_id: product.parentId,
  })
  const productJson = (product: WooProduct, api: string): Fields => ({
    ...shared(product),
    name: fullName(product),
    slug: slug(fullName(product)),
    featured: false,
    catalog_visibility: product.catalogVisibility,
    short_description: product.shortDescription,
    total_sales: product.type === 'variation' ? String(product.totalSales) : product.totalSales,
    external_url: '',
    button_text: '',
    sold_individually: false,
    shipping_required: !product.virtual,
    shipping_taxable: !product.virtual,
    reviews_allowed: product.type !== 'variation',
    average_rating: product.type === 'variation' ? '0.00' : '0',
    rating_count: 0,
    upsell_ids: [],
    cross_sell_ids: [],
    purchase_note: '',
    categories: product.categories.flatMap((id) => {
      const category = categories.get(id)
      return category ? { id, name: category.name, slug: category.slug } : []
    }),
    brands: [],
    tags: [],
    images: product.images,
    attributes: attributesJson(product),
    default_attributes: [],
    variations: product.type === 'variable' ? variationsOf(product.id).map(({ id }) => id) : [],
    grouped_products: [],
    related_ids: [],
    has_options: product.type === 'variable',
    post_password: '',
    _links: {
      self: [{ href: `${api}/products/${product.id}`, targetHints: { allow: allowAll } }],
      collection: [{ href: `${api}/products` }],
      ...(product.parentId ? { up: [{ href: `${api}/products/${product.parentId}` }] } : {}),
    },
  })
  const variationJson = (product: WooProduct, api: string): Fields => ({
    ...shared(product),
    tax_class: 'parent',
    image: product.images[0] ?? null,
    gallery_image_ids: [],
    attributes: attributesJson(product),
    name: optionsOf(product),
    _links: {
      self: [
        {
          href: `${api}/products/${product.parentId}/variations/${product.id}`,
          targetHints: { allow: allowAll },
        },
      ],
      collection: [{ href: `${api}/products/${product.parentId}/variations` }],
      up: [{ href: `${api}/products/${product.parentId}` }],
    },
  })

  const checkSku = (sku: string, own: number | undefined): void => {
    const taken = (text: string) =>
      products.values().find((one) => one.sku === text && one.id !== own && one.status !== 'trash')
    const other = sku === '' ? undefined : taken(sku)
    if (!other) return
    let number = 1
    while (taken(`${sku}-${number}`)) number += 1
    throw new WooRefusal(400, 'product_invalid_sku', 'Invalid or duplicated SKU.', {
      resource_id: other.id,
      unique_sku: `${sku}-${number}`,
    })
  }

  /** Writes posted fields. Nothing is validated that WooCommerce does not validate: no price, no stock. */
  const write = (product: WooProduct, fields: Fields): void => {
    const { name, status, sku, type } = fields
    if (sku !== undefined) checkSku(String(sku ?? ''), product.id)
    if (status !== undefined) oneOf('status', String(status), statuses)
    if (type !== undefined && product.type !== 'variation') oneOf('type', String(type), types)
    if (fields.stock_status !== undefined) oneOf('stock_status', String(fields.stock_status), stockStatuses)
    const images = fields.images ?? (isFields(fields.image) ? [fields.image] : undefined)
    const newImages = images === undefined ? product.images : imagesOf(images)

    if (sku !== undefined) product.sku = String(sku ?? '')
    if (name !== undefined && product.type !== 'variation') product.name = String(name)
    if (status !== undefined) product.status = String(status)
    if (type !== undefined && product.type !== 'variation') product.type = type as WooProduct['type']
    if (fields.description !== undefined) product.description = String(fields.description)
    if (fields.short_description !== undefined) product.shortDescription = String(fields.short_description)
    if (fields.catalog_visibility !== undefined) product.catalogVisibility = String(fields.catalog_visibility)
    if (fields.virtual !== undefined) product.virtual = isTrue(fields.virtual)
    if (fields.downloadable !== undefined) product.downloadable = isTrue(fields.downloadable)
    if (product.type === 'variable') product.virtual = false
    if (Array.isArray(fields.attributes)) product.attributes = objectsIn(fields.attributes)
    if (Array.isArray(fields.categories)) {
      const ids = objectsIn(fields.categories).map(({ id }) => Number(id))
      const known = ids.filter((id) => categories.has(id))
      product.categories = known.length > 0 ? known : [15]
    }
    product.images = newImages
    writePrices(product, fields)
    writeStock(product, fields)
    writeMeta(product.meta, fields.meta_data, newMetaId)
    product.modifiedAt = now()
  }
  const imagesOf = (posted: unknown) =>
    objectsIn(posted).map(({ id, src, name, alt }) => {
      const address = String(src ?? '')
      if (id === undefined && !/^https?:\/\//.test(address)) {
        const message = `Error getting remote image ${address}. Error: A valid URL was not provided.`
        throw new WooRefusal(400, 'woocommerce_product_image_upload_error', message)
      }
      lastImageId += 1
      return { id: lastImageId, src: address, name: String(name ?? ''), alt: String(alt ?? '') }
    })

  const create = (fields: Fields, parent?: WooProduct): WooProduct => {
    checkSku(String(fields.sku ?? ''), undefined)
    const product: WooProduct = {
      id: 0,
      parentId: parent?.id ?? 0,
      type: parent ? 'variation' : 'simple',
      name: 'Product',
      status: 'publish',
      description: '',
      shortDescription: '',
      sku: '',
      regularPrice: '',
      salePrice: '',
      virtual: false,
      downloadable: false,
      manageStock: false,
      stockQuantity: null,
      stockStatus: 'instock',
      catalogVisibility: 'visible',
      categories: parent ? [] : [15],
      images: [],
      attributes: [],
      meta: [],
      totalSales: 0,
      createdAt: now(),
      modifiedAt: now(),
    }
    write(product, fields)
    product.id = newPostId()
    products.set(product.id, product)
    changed('product.created', product.id)
    return product
  }
  const update = (product: WooProduct, fields: Fields): WooProduct => {
    write(product, fields)
    changed('product.updated', product.id)
    return product
  }

  /** A product to write to; a variation is refused, because it has an endpoint of its own. */
  const needProduct = (id: unknown, status: number): WooProduct => {
    const product = products.get(Number(id))
    if (!product) throw invalidId(status)
    if (product.type === 'variation') {
      const message =
        'To manipulate product variations you should use the /products/&lt;product_id&gt;/variations/&lt;id&gt; endpoint.'
      throw new WooRefusal(404, 'woocommerce_rest_invalid_product_id', message)
    }
    return product
  }
  const needParent = ({ ids: [parent] }: RoutedRequest): WooProduct => {
    const product = products.get(parent ?? 0)
    if (!product || product.type === 'variation') throw invalidId(404)
    return product
  }
  const needVariation = (parent: number | undefined, id: unknown): WooProduct => {
    const product = products.get(Number(id))
    if (!product || product.parentId !== parent) throw invalidVariation()
    return product
  }
  /** Its topic is that of a deletion. What is written to it later leaves it there. */
  const trash = (product: WooProduct): void => {
    product.status = 'trash'
    changed('product.deleted', product.id)
  }
  const remove = (product: WooProduct): WooProduct => {
    for (const { id } of [product, ...variationsOf(product.id)]) products.delete(id)
    changed('product.deleted', product.id)
    return product
  }

  /** Runs the items of a batch one after the other: those that fail are answered in their place. */
  const batch = (
    fields: Fields,
    path: string,
    act: { create: (item: Fields) => Fields; update: (item: Fields) => Fields; delete: (id: unknown) => Fields },
  ): RouteAnswer => {
    const names = ['create', 'update', 'delete'] as const
    const lists = names.map((name) => (Array.isArray(fields[name]) ? (fields[name] as unknown[]) : []))
    if (lists.flat().length > batchMax) {
      const message = `Unable to accept more than ${batchMax} items for this request.`
      throw new WooRefusal(413, 'woocommerce_rest_request_entity_too_large', message)
    }
    const attempt = (id: unknown, item: Fields, action: () => Fields): Fields => {
      try {
        const failed = failItem(path, item)
        if (failed) throw failed
        return action()
      } catch (error) {
        if (!(error instanceof WooRefusal)) throw error
        return { id, error: error.json() }
      }
    }
    const answers: Fields = {}
    for (const [index, name] of names.entries()) {
      const items = lists[index] ?? []
      if (items.length === 0) continue
      answers[name] = items.map((posted) => {
        if (name === 'delete') return attempt(posted, { id: posted }, () => act.delete(posted))
        const item = isFields(posted) ? posted : {}
        const id = name === 'create' ? 0 : (item.id ?? null)
        return attempt(id, item, () => act[name](item))
      })
    }
    return { json: Object.keys(answers).length === 0 ? [] : answers }
  }

  const listed = (query: URLSearchParams): WooProduct[] => {
    const sku = query.get('sku')
    const skus = sku ? [...sku.split(','), sku].map((one) => one.trim()).filter((one) => one !== '') : undefined
    const status = oneOf('status', query.get('status') ?? 'any', ['any', ...statuses])
    const include = numbers(query, 'include')
    const search = query.get('search')?.toLowerCase()
    const type = query.get('type')
    const found = [...products.values()].filter(
      (one) =>
        (skus ? skus.includes(one.sku) : one.type !== 'variation') &&
        (status === 'any' ? one.status !== 'trash' : one.status === status) &&
        (include.length === 0 || include.includes(one.id)) &&
        (type === null || one.type === type) &&
        (search === undefined || one.name.toLowerCase().includes(search)),
    )
    return modifiedBetween(sortedProducts(found, query), query, utcOffsetMinutes)
  }

  const routes: Route[] = [
    {
      method: 'GET',
      path: '/products',
      kind: 'products.list',
      answer: ({ query, api }) => {
        const page = pageOf(listed(query), query)
        return { total: page.total, json: page.items.map((one) => productJson(one, api)) }
      },
    },
    {
      method: 'POST',
      path: '/products',
      kind: 'products.create',
      answer: ({ fields, api }) => {
        const product = create(fields)
        return { status: 201, headers: { location: `${api}/products/${product.id}` }, json: productJson(product, api) }
      },
    },
    {
      method: 'POST',
      path: '/products/batch',
      kind: 'products.batch',
      answer: (request) =>
        batch(request.fields, '/products/batch', {
          create: (item) => productJson(create(item), request.api),
          update: (item) => productJson(update(needProduct(item.id, 400), item), request.api),
          delete: (id) => productJson(remove(needProduct(id, 404)), request.api),
        }),
    },
    {
      method: 'GET',
      path: '/products/#',
      kind: 'products.get',
      answer: ({ ids: [id = 0], api }) => {
        const product = products.get(id)
        if (!product) throw invalidId(404)
        return { json: productJson(product, api) }
      },
    },
    {
      method: 'PUT',
      path: '/products/#',
      kind: 'products.update',
      answer: ({ ids: [id], fields, api }) => ({ json: productJson(update(needProduct(id, 400), fields), api) }),
    },
    {
      method: 'GET',
      path: '/products/#/variations',
      kind: 'variations.list',
      answer: (request) => {
        const page = pageOf(sortedProducts(variationsOf(needParent(request).id), request.query), request.query)
        return { total: page.total, json: page.items.map((one) => variationJson(one, request.api)) }
      },
    },
    {
      method: 'POST',
      path: '/products/#/variations',
      kind: 'variations.create',
      answer: (request) => ({
        status: 201,
        json: variationJson(create(request.fields, needParent(request)), request.api),
      }),
    },
    {
      method: 'POST',
      path: '/products/#/variations/batch',
      kind: 'variations.batch',
      answer: (request) => {
        const parent = request.ids[0]
        return batch(request.fields, `/products/${parent}/variations/batch`, {
          create: (item) => variationJson(create(item, needParent(request)), request.api),
          update: (item) => variationJson(update(needVariation(parent, item.id), item), request.api),
          delete: (id) => variationJson(remove(needVariation(parent, id)), request.api),
        })
      },
    },
    {
      method: 'GET',
      path: '/products/#/variations/#',
      kind: 'variations.get',
      answer: ({ ids: [parent, id], api }) => ({ json: variationJson(needVariation(parent, id), api) }),
    },
    {
      method: 'PUT',
      path: '/products/#/variations/#',
      kind: 'variations.update',
      answer: ({ ids: [parent, id], fields, api }) => ({
        json: variationJson(update(needVariation(parent, id), fields), api),
      }),
    },
    {
      method: 'GET',
      path: '/products/categories',
      kind: 'categories.list',
      answer: ({ query }) => {
        const search = (query.get('search') ?? '').toLowerCase()
        const found = [...categories.values()].filter(({ name }) => name.toLowerCase().includes(search))
        const page = pageOf(
          found.toSorted((a, b) => (a.name < b.name ? -1 : 1)),
          query,
        )
        return { total: page.total, json: page.items }
      },
    },
    {
      method: 'POST',
      path: '/products/categories',
      kind: 'categories.create',
      answer: ({ fields }) => {
        const name = String(fields.name ?? '').trim()
        const parent = Number(fields.parent ?? 0)
        const same = [...categories.values()].find(
          (one) => one.name.toLowerCase() === name.toLowerCase() && one.parent === parent,
        )
        if (same) {
          const message = 'A term with the name provided already exists with this parent.'
          throw new WooRefusal(400, 'term_exists', message, { resource_id: same.id })
        }
        lastTermId += 1
        const category = { id: lastTermId, name, slug: slug(name), parent }
        categories.set(category.id, category)
        return { status: 201, json: category }
      },
    },
  ]

  return { products, categories, routes, create, update, trash, remove, productJson, fullName, priceOf }
}

const sortedProducts = (products: WooProduct[], query: URLSearchParams): WooProduct[] =>
  sorted(products, query, {
    date: (one) => one.createdAt,
    id: (one) => one.id,
    title: (one) => one.name,
    modified: (one) => one.modifiedAt,
  })

/** A sale price that is not lower than the regular one is dropped. */
function writePrices(product: WooProduct, { regular_price: regular, sale_price: sale }: Fields): void {
  if (product.type === 'variable') return
  if (regular !== undefined) product.regularPrice = priceText(regular)
  if (sale !== undefined) product.salePrice = priceText(sale)
  const isLower = product.regularPrice !== '' && Number(product.salePrice) < Number(product.regularPrice)
  if (!isLower) product.salePrice = ''
}

/** What is left of a price without what is no part of a number: `6,20` becomes 620, and `abc` nothing. */
const priceText = (value: unknown): string => String(value ?? '').replaceAll(/[^0-9.-]/g, '')

/** A quantity counts only while stock is managed; then it decides whether the product is in stock. */
function writeStock(product: WooProduct, fields: Fields): void {
  if (product.type === 'variable') return
  if (fields.manage_stock !== undefined) product.manageStock = isTrue(fields.manage_stock)
  if (fields.stock_status !== undefined) product.stockStatus = String(fields.stock_status)
  if (!product.manageStock) product.stockQuantity = null
  else if (fields.stock_quantity !== undefined) {
    const value = Math.trunc(Number(fields.stock_quantity))
    product.stockQuantity = Number.isFinite(value) ? value : 0
  }
  if (product.manageStock) product.stockStatus = (product.stockQuantity ?? 0) > 0 ? 'instock' : 'outofstock'
}

function attributesJson({ type, attributes }: WooProduct): Fields[] {
  return attributes.map(({ name, option, options, visible = false, variation = false }, position) =>
    type === 'variation'
      ? { id: 0, name, slug: slug(String(name)), option }
      : { id: 0, name, slug: name, position, visible, variation, options },
  )
}

const slug = (name: string): string =>
  name
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, '-')
    .replaceAll(/^-|-$/g, '')

const isTrue = (value: unknown): boolean => value === true || value === 1 || value === 'true' || value === '1'

const numbers = (query: URLSearchParams, name: string): number[] =>
  [...query.getAll(name), ...query.getAll(`${name}[]`)].flatMap((text) => text.split(',')).map(Number)
