/**
 * A shop that answers as Shopify's Admin GraphQL API does: for the demo, the tests and the simulation.
 *
 * `createShopifyShop` is the shop in memory, without sockets, timers or a clock of its own; `startShopifyShop` puts it behind an
 * HTTP server. Its tests hold every exchange against the schema of Shopify.
 */
import { type RunningShop, type ShopAnswer, type ShopRequest, startShop } from './shop-server.ts'
import { createAccess, type ShopifyApp } from './shopify-access.ts'
import { gid, isFields, type NodeFields, objectsIn, type RootField, textsIn } from './shopify-answers.ts'
import { createBulk, type ShopifyBulkOperation } from './shopify-bulk.ts'
import {
  answerOperation,
  type FieldAnswer,
  type Fields,
  GraphqlRefusal,
  type Operation,
  readDocument,
  requestedCost,
  variablesOf,
} from './shopify-graphql.ts'
import { createInventory } from './shopify-inventory.ts'
import { STANDARD_MAIL } from './shopify-mails.ts'
import { createOrders, type ShopifyOrder, type ShopifyPolicy, type ShopifyPurchase } from './shopify-orders.ts'
import { createProducts, type ProductDraft } from './shopify-products.ts'
import { createWebhooks, type ShopifyDelivery } from './shopify-webhooks.ts'

export interface ShopifyShopOptions {
  app?: Partial<ShopifyApp>
  /** Which scheme the shop takes its requests to come by (default: https). */
  scheme?: 'http' | 'https'
  /** The shop's own address in links and deliveries; default: that of its server. */
  home?: string
  /** Default: EUR. */
  currency?: string
  now?: () => number
  /** Lets time pass for a request that is slow by order of a test. */
  pass?: (ms: number) => void
  /** Points that the app may spend at once, and those that come back in a second (default: 2000 and 100). */
  bucket?: { maximum: number; restoreRate: number }
  /** Versions that are served, oldest first. */
  versions?: string[]
  /** Milliseconds that a search lags behind what is true (default: 0). */
  searchLagMs?: number
  /** Milliseconds from an order to its fulfilment orders (default: 0). */
  fulfilmentDelayMs?: number
  /** Milliseconds that a bulk operation takes (default: 0). */
  bulkMs?: number
  /** How it is set up (default: money at the checkout, fulfilment by hand, no offers, the standard mails). */
  policy?: Partial<ShopifyPolicy>
  /** Ids begin above it (default: 6000000000000); beyond 2^53 a JavaScript number cannot hold them. */
  firstId?: string
  /** Called with each document that was answered with data, for a test that compares it with the schema. */
  onExchange?: (exchange: ShopifyExchange) => void
}

/** A document, what it was given and what the shop answered. */
export interface ShopifyExchange {
  version: string
  document: string
  operationName: string | null
  variables: Fields
  answer: Fields
}

/** What befalls the next requests that match. */
export type ShopifyFault = {
  /** Matches by kind, such as `CreateFulfillment`, `token` or `upload`, and by what else is given; default: every request. */
  kind?: string
  matches?: (request: CountedRequest) => boolean
  /** How many requests (default: 1). */
  times?: number
} & (
  | { fault: 'lost_before' | 'lost_after' | 'login_page' | 'maintenance' | 'truncated' }
  /** The bucket is empty. `status`: 200 with errors (default), or 429. */
  | { fault: 'throttled'; status?: 200 | 429 }
  | { fault: 'refused'; status: number; errors?: unknown }
  /** An error at the top of an answer of 200. */
  | { fault: 'error'; code: string; message?: string }
  /** The mutation does nothing and says why. */
  | { fault: 'user_error'; code?: string; field?: string[]; message?: string }
  /** Items of an array fail without acting: inputs of variants, quantities, a product. */
  | { fault: 'items'; fails: (item: Fields) => boolean; code?: string; message?: string }
  /** Something happens between the request and its action, such as a purchase. */
  | { fault: 'meanwhile'; act: () => void }
  | { fault: 'redirect'; to: string }
  /** Acts, and answers something else. */
  | { fault: 'echo'; change: (json: Fields) => unknown }
  /** Takes so long, by the clock of the test. */
  | { fault: 'slow'; ms: number }
)

/** A request as it was counted. */
export interface CountedRequest {
  /** Name of the operation; `token`, `upload` or `result`; `unknown` where there is nothing at the path. */
  kind: string
  method: string
  path: string
  /** Of the operation, defaults filled in; empty for what is no document. */
  variables: Fields
  isMutation: boolean
}

/** The app that a shop has when a test says nothing else. */
export const shopifyApp: ShopifyApp = {
  clientId: '0123456789abcdef0123456789abcdef',
  secret: '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',
  staticToken: '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',
  scopes: [
    'write_products',
    'write_inventory',
    'write_orders',
    'write_merchant_managed_fulfillment_orders',
    'read_locations',
    'write_publications',
  ],
}
const APP_ID = '580111'

/** Longest array that an argument takes. */
const ARRAY_MAX = 250
/** Most points of one document. */
const COST_MAX = 1000

export type ShopifyShop = ReturnType<typeof createShopifyShop>

export function createShopifyShop(options: ShopifyShopOptions = {}) {
  const { scheme = 'https', pass, onExchange } = options
  const { bucket = { maximum: 2000, restoreRate: 100 } } = options
  const { versions = ['2026-04', '2026-07', '2026-10'] } = options
  const { fulfilmentDelayMs = 0, searchLagMs = 0, bulkMs = 0 } = options
  let { home = `${scheme}://quayside-test.myshopify.com`, currency = 'EUR' } = options
  const app: ShopifyApp = { ...shopifyApp, ...options.app }
  let policy: ShopifyPolicy = {
    captures: 'at_checkout',
    fulfilsByItself: false,
    offersAfterPurchase: false,
    mailTemplate: STANDARD_MAIL,
    mailsReadAppFields: false,
    leavesOutRepeats: true,
    ...options.policy,
  }
  let clockError = 0
  const now = () => (options.now ?? Date.now)() + clockError
  let lags = { fulfilmentDelayMs, searchLagMs, bulkMs }
  let signingSecret = app.secret
  let pageMax = Number.POSITIVE_INFINITY
  let lastId = BigInt(options.firstId ?? '6000000000000')
  let faults: (ShopifyFault & { left: number })[] = []
  let allowlist: 'without us' | null = null
  let failing: Extract<ShopifyFault, { fault: 'items' }> | undefined
  let bulkFailures: Pick<ShopifyBulkOperation, 'errorCode' | 'status'>[] = []
  const requests: CountedRequest[] = []

  const newId = () => {
    lastId += 1n
    return String(lastId)
  }
  const access = createAccess({ app, now, bucket })
  const shared = { now, newId, currency: () => currency, may: access.may, searchLagMs: () => lags.searchLagMs }
  const webhooks = createWebhooks({
    ...shared,
    domain: () => new URL(home).host,
    secret: () => signingSecret,
    apiVersion: () => versions.at(-1) as string,
  })
  const failItem = (item: Fields) => {
    if (!failing?.fails(item)) return undefined
    return { code: failing.code ?? 'INVALID_INPUT', message: failing.message ?? 'The item failed.' }
  }
  const products = createProducts({ ...shared, need, failItem })
  const inventory = createInventory({ ...shared, products, failItem })
  const orders = createOrders({
    ...shared,
    appId: APP_ID,
    fulfilmentDelayMs: () => lags.fulfilmentDelayMs,
    policy: () => policy,
    happened: webhooks.happened,
    products,
  })
  const bulk = createBulk({
    ...shared,
    home: () => home,
    durationMs: () => lags.bulkMs,
    run: (mutation, variables) =>
      executed(readDocument(mutation), variables, mutation, versions.at(-1) as string).answer,
    failure: () => bulkFailures.shift(),
  })

  const nodeOf = (id: unknown): NodeFields | null => {
    const [, type, number] = /^gid:\/\/shopify\/(\w+)\/(\d+)/.exec(String(id)) ?? []
    if (type === undefined || number === undefined) {
      throw new GraphqlRefusal('RESOURCE_NOT_FOUND', `Invalid global id '${id}'`)
    }
    need(nodeScopes[type], 'node')
    const found = [products, orders, webhooks, bulk].map((part) => part.nodeOf(type, number))
    return found.find((one) => one !== undefined) ?? null
  }
  const parts = [products, inventory, orders, webhooks, bulk].map(({ root }) => root)
  const roots: Record<'mutation' | 'query', Record<string, RootField>> = {
    query: Object.assign({}, ...parts.map(({ queries }) => queries), {
      node: { isNullable: true, answer: ({ id }: Fields) => nodeOf(id) },
      nodes: { isNullable: false, answer: ({ ids }: Fields) => textsIn(ids).map(nodeOf) },
      shop: {
        isNullable: false,
        answer: () => ({
          __typename: 'Shop',
          id: gid('Shop', '1'),
          name: 'Shop',
          currencyCode: currency,
          myshopifyDomain: new URL(home).host,
        }),
      },
      currentAppInstallation: {
        isNullable: false,
        answer: () => ({
          __typename: 'AppInstallation',
          id: gid('AppInstallation', APP_ID),
          accessScopes: app.scopes.map((handle) => ({ __typename: 'AccessScope', handle, description: handle })),
          app: { __typename: 'App', id: gid('App', APP_ID), title: 'Quayside', apiKey: app.clientId },
        }),
      },
    } satisfies Record<string, RootField>),
    mutation: Object.assign({}, ...parts.map(({ mutations }) => mutations)),
  }

  function need(scope: string | undefined, field: string): void {
    if (scope === undefined || access.may(scope)) return
    const message = `Access denied for ${field} field. Required access: \`${scope}\` access scope.`
    throw new GraphqlRefusal('ACCESS_DENIED', message, {
      documentation: 'https://shopify.dev/api/usage/access-scopes',
      requiredAccess: `\`${scope}\` access scope.`,
    })
  }
  /** Answers a document: data and errors, without what it cost. */
  const executed = (operation: Operation, given: Fields, document: string, version: string) => {
    const root = Object.fromEntries(
      Object.entries(roots[operation.kind]).map(([name, { scope, answer }]): [string, FieldAnswer] => [
        name,
        (values, call) => {
          need(scope, name)
          return answer(values, call)
        },
      ]),
    )
    const typed = { __typename: operation.kind === 'query' ? 'QueryRoot' : 'Mutation', ...root }
    const { data, errors, objects } = answerOperation(operation, typed, given, {
      isNullable: (name) => roots[operation.kind][name]?.isNullable ?? false,
      pageMax,
    })
    const answer: Fields = { ...(errors.length > 0 ? { errors } : {}), data }
    onExchange?.({ version, document, operationName: operation.name, variables: given, answer })
    return { answer, objects }
  }

  const faultFor = (request: CountedRequest): ShopifyFault | undefined => {
    const fault = faults.find(
      ({ kind, matches, left }) => left > 0 && (kind ?? request.kind) === request.kind && (matches?.(request) ?? true),
    )
    if (fault) fault.left -= 1
    faults = faults.filter(({ left }) => left > 0)
    return fault
  }
  const routeOf = ({ method }: ShopRequest, { pathname }: URL): { kind: string; version: string } => {
    const version = /^\/admin\/api\/([^/]+)\/graphql\.json$/.exec(pathname)?.[1]
    if (method === 'POST' && version !== undefined) return { kind: 'graphql', version }
    if (method === 'POST' && pathname === '/admin/oauth/access_token') return { kind: 'token', version: '' }
    if (method === 'POST' && pathname.startsWith('/staged-uploads/')) return { kind: 'upload', version: '' }
    if (method === 'GET' && pathname.startsWith('/bulk-results/')) return { kind: 'result', version: '' }
    return { kind: 'unknown', version: '' }
  }

  /** Answers one request as the shop would. */
  const handle = (request: ShopRequest): ShopAnswer => {
    bulk.advance()
    const url = new URL(request.url)
    const route = routeOf(request, url)
    const asked = route.kind === 'graphql' ? readAsked(String(request.body ?? '')) : undefined
    const counted: CountedRequest = {
      kind: asked ? (asked.operation?.name ?? 'unknown') : route.kind,
      method: request.method,
      path: url.pathname,
      variables: asked?.variables ?? {},
      isMutation: asked?.operation?.kind === 'mutation',
    }
    requests.push(counted)
    const fault = faultFor(counted)
    const act = (): ShopAnswer => {
      if (route.kind === 'token') return access.grant(request)
      if (route.kind === 'upload') return bulk.upload(request)
      if (route.kind === 'result') return bulk.download(url, request.headers)
      if (!asked || !/^(\d{4}-\d\d|unstable)$/.test(route.version)) return json(404, { errors: 'Not Found' })
      if (!access.isKnown(request.headers)) {
        return json(401, {
          errors: '[API] Invalid API key or access token (unrecognized login or wrong password)',
        })
      }
      // It is asked for documents alone: tokens are given to any address.
      if (allowlist !== null) return json(403, { errors: 'Forbidden' })
      return answered(asked, served(route.version), route.version)
    }
    return fault ? struck(fault, act, asked) : act()
  }
  /** An expired version is answered by the oldest that is served. */
  const served = (version: string): string =>
    versions.includes(version) ? version : ((version < (versions[0] ?? '') ? versions[0] : versions.at(-1)) as string)

  const json = (status: number, body: unknown, headers: Record<string, string> = {}): ShopAnswer => ({
    status,
    headers: { 'content-type': 'application/json; charset=utf-8', date: new Date(now()).toUTCString(), ...headers },
    body: JSON.stringify(body),
  })

  const answered = (asked: Asked, version: string, path: string): ShopAnswer => {
    const headers = { 'x-shopify-api-version': version, 'x-request-id': `${path}-${requests.length}` }
    const { operation, variables, document, refusal } = asked
    const failed = (error: GraphqlRefusal, extensions: Fields = {}) =>
      json(200, { errors: [error.json()], ...extensions }, headers)
    if (!operation || refusal) return failed(refusal ?? new GraphqlRefusal('PARSE_ERROR', 'No query'))
    const cost = requestedCost(operation, variables)
    const costs = (actual: number | null) => ({
      extensions: {
        cost: { requestedQueryCost: cost, actualQueryCost: actual, throttleStatus: access.throttleStatus() },
      },
    })
    if (cost > COST_MAX) {
      const message = `Query cost is ${cost}, which exceeds the single query max cost limit (${COST_MAX}).`
      return failed(new GraphqlRefusal('MAX_COST_EXCEEDED', message, { cost, maxCost: COST_MAX }))
    }
    if (!access.fits(cost)) return failed(throttled(), costs(null))
    const tooLong = longestArray(variables)
    if (tooLong > ARRAY_MAX) {
      const message = `The input array size of ${tooLong} is greater than the maximum allowed of ${ARRAY_MAX}.`
      return failed(new GraphqlRefusal('MAX_INPUT_SIZE_EXCEEDED', message))
    }
    const { answer, objects } = executed(operation, variables, document, version)
    const actual = operation.kind === 'mutation' ? cost : Math.min(cost, objects)
    access.spend(actual)
    // A document that does not fit the schema is refused as a whole, without data.
    const isInvalid = objectsIn(answer.errors).some(
      ({ extensions }) => isFields(extensions) && invalidCodes.includes(String(extensions.code)),
    )
    return json(200, { ...(isInvalid ? { errors: answer.errors } : answer), ...costs(actual) }, headers)
  }

  const struck = (fault: ShopifyFault, act: () => ShopAnswer, asked: Asked | undefined): ShopAnswer => {
    switch (fault.fault) {
      case 'lost_before':
        return { status: 0, headers: {}, body: '', isLost: true }
      case 'lost_after':
        return { ...act(), isLost: true }
      case 'maintenance':
        return html(503, 'This store is unavailable', { 'retry-after': '600' })
      case 'login_page':
        return html(200, '<form method="post" action="/password"><input type="password" name="password"></form>')
      case 'truncated': {
        const answer = act()
        return { ...answer, body: answer.body.slice(0, Math.floor(answer.body.length / 2)) }
      }
      case 'throttled': {
        access.fits(0)
        access.spend(bucket.maximum)
        const cost = asked?.operation ? requestedCost(asked.operation, asked.variables) : 1
        const throttleStatus = access.throttleStatus()
        const extensions = { cost: { requestedQueryCost: cost, actualQueryCost: null, throttleStatus } }
        return json(fault.status ?? 200, { errors: [throttled().json()], extensions })
      }
      case 'refused':
        return json(fault.status, { errors: fault.errors ?? 'Not allowed' })
      case 'error':
        return json(200, { errors: [new GraphqlRefusal(fault.code, fault.message ?? 'That did not work.').json()] })
      case 'user_error':
        return json(200, userErrorAnswer(asked?.operation, fault))
      case 'items':
        failing = fault
        try {
          return act()
        } finally {
          failing = undefined
        }
      case 'meanwhile':
        fault.act()
        return act()
      case 'redirect':
        return html(301, 'Moved Permanently', { location: fault.to })
      case 'echo': {
        const answer = act()
        return { ...answer, body: JSON.stringify(fault.change(JSON.parse(answer.body))) }
      }
      case 'slow': {
        const answer = act()
        pass?.(fault.ms)
        return answer
      }
    }
  }

  return {
    handle,
    products: products.products,
    variants: products.variants,
    locations: products.locations,
    publications: products.publications,
    orders: orders.orders,
    metafields: orders.metafields.metafields,
    definitions: orders.metafields.definitions,
    webhooks: webhooks.webhooks,
    bulkOperations: bulk.operations,
    /** Mails that the shop sent, oldest first. */
    mails: () => [...orders.mails],
    /** What the customer of an order can see of it. */
    seenBy: (id: string) => orders.seenOf(orderOf(id)),
    /** Mails whose text has these words, such as a licence key. */
    mailsWith: (words: string) => orders.mails.filter(({ text }) => text.includes(words)),
    /** The merchant creates a product. */
    addProduct: (draft: ProductDraft) => products.create(draft),
    /** The merchant deletes a product for good. */
    removeProduct: (id: string) => {
      const product = products.products.get(id)
      if (product) products.remove(product)
    },
    /** The merchant deletes one variant of a product. */
    removeVariant: (id: string) => {
      const variant = products.variants.get(id)
      if (variant) products.removeVariant(variant)
    },
    addLocation: products.addLocation,
    addPublication: products.addPublication,
    /** Units of a variant that can be sold at a location (default: the first); undefined where it is not stocked. */
    stockOf: (variant: string, location = products.firstLocation().id) =>
      products.variants.get(variant)?.item.levels.get(location)?.available,
    setStock: (variant: string, available: number, location = products.firstLocation().id) => {
      const level = products.variants.get(variant)?.item.levels.get(location)
      if (!level) throw new Error(`Variant ${variant} is not stocked there.`)
      level.available = available
    },
    /** The merchant counts units of a variant at a location, which stocks it from then on. */
    stockAt: (variant: string, location: string, available: number) => {
      const item = products.variants.get(variant)?.item
      if (item) products.stockAt(item, location, available)
    },
    /** A customer buys. */
    buy: (purchase: ShopifyPurchase) => orders.buy(purchase),
    /** The customer's money arrives, or is captured. */
    pay: (id: string) => orders.pay(orderOf(id)),
    refund: (id: string, given: Parameters<typeof orders.refund>[1]) => orders.refund(orderOf(id), given),
    cancel: (id: string, isRefunded?: boolean) => orders.cancel(orderOf(id), isRefunded),
    edit: (id: string, given: Parameters<typeof orders.edit>[1]) => orders.edit(orderOf(id), given),
    /** The customer takes what is offered after the purchase and pays for it, or leaves. */
    endOffer: (id: string, lines?: ShopifyPurchase['lines']) => orders.endOffer(orderOf(id), lines),
    /** The merchant changes an order in a way that has no name here. */
    change: (id: string, change: (order: ShopifyOrder) => void) => {
      const order = orderOf(id)
      change(order)
      orders.touch(order)
    },
    tag: (id: string, ...tags: string[]) => {
      const order = orderOf(id)
      order.tags = orders.addTags(order.tags, tags)
      orders.touch(order)
    },
    untag: (id: string, ...tags: string[]) => {
      const order = orderOf(id)
      order.tags = orders.removeTags(order.tags, tags)
      orders.touch(order)
    },
    financialStatus: (id: string) => orders.financialStatus(orderOf(id)),
    /** Metafields of an order. */
    metafieldsOf: (id: string) => orders.metafields.ofOwner(gid('Order', id)),
    /** The merchant, or another app, writes a metafield of an order. */
    putMetafield: (id: string, namespace: string, key: string, value: string) =>
      orders.metafields.put(gid('Order', id), namespace, key, value),
    removeMetafield: (id: string, namespace: string, key: string) =>
      orders.metafields.remove(gid('Order', id), namespace, key),
    /** The merchant fulfils by hand all of an order, or so many units of a line. */
    fulfilByHand: (id: string, only?: { line: string; quantity: number }, isNotified?: boolean) =>
      orders.fulfilment.fulfilByHand(orderOf(id), only, isNotified),
    cancelFulfilment: orders.fulfilment.cancelFulfilment,
    /** The merchant holds, schedules or releases what is to be fulfilled of an order. */
    setFulfilmentStatus: (
      id: string,
      status: Parameters<typeof orders.fulfilment.setStatus>[1],
      why?: Parameters<typeof orders.fulfilment.setStatus>[2],
    ) => orders.fulfilment.setStatus(orderOf(id), status, why),
    /** The merchant moves units of a line to a fulfilment order of their own. */
    splitFulfilment: (id: string, line: string, quantity: number) =>
      orders.fulfilment.split(orderOf(id), line, quantity),
    /** An order is deleted for good. */
    removeOrder: (id: string) => void orders.orders.delete(id),
    /** The next bulk operation that would be done ends so. */
    failBulk: (status: ShopifyBulkOperation['status'], errorCode: ShopifyBulkOperation['errorCode'] = null) => {
      bulkFailures = [...bulkFailures, { status, errorCode }]
    },
    /** Takes the deliveries that are due; one that fails is due again later. */
    takeDeliveries: webhooks.take,
    /** Counts the answer to a delivery; null: there was none. */
    delivered: webhooks.delivered,
    /** Something happens that webhooks report; `contents` is what a delivery holds where it includes every field. */
    happened: webhooks.happened,
    /** A delivery of any body, signed as the shop signs. */
    signed: (topic: string, uri: string, body: string) =>
      webhooks.deliveryOf({ id: newId(), topic, uri }, body, newId()),
    /** What happens to the next requests. */
    strike: (fault: ShopifyFault) => {
      faults.push({ ...fault, left: fault.times ?? 1 })
    },
    /** Takes back the faults that no request has met. */
    clearFaults: () => {
      faults = []
    },
    /** Requests so far, oldest first; what authenticates them is left out. */
    requests: () => [...requests],
    /** How many requests of each kind came, such as `CreateFulfillment`. */
    counts: () => {
      const counts: Record<string, number> = {}
      for (const { kind } of requests) counts[kind] = (counts[kind] ?? 0) + 1
      return counts
    },
    /** A page of a list has at most so many items, whatever is asked for; an app must go on until no page follows. */
    setPageMax: (items: number) => {
      pageMax = items
    },
    setLags: (given: Partial<typeof lags>) => {
      lags = { ...lags, ...given }
    },
    setPolicy: (given: Partial<ShopifyPolicy>) => {
      policy = { ...policy, ...given }
    },
    /** The shop's clock is put right by so many milliseconds. */
    correctClock: (ms: number) => {
      clockError += ms
    },
    setCurrency: (code: string) => {
      currency = code
    },
    setHome: (address: string) => {
      home = address
    },
    setScopes: (scopes: string[]) => {
      app.scopes = scopes
    },
    /** The app gets another secret. Deliveries are signed by `signing`, for an hour maybe still the one before. */
    rotateSecret: (secret: string, signing = secret) => {
      app.secret = secret
      signingSecret = signing
    },
    /** Tokens of client credentials are worth nothing any more. */
    revokeTokens: access.revokeTokens,
    /** The app is uninstalled, or is of another organisation than the shop; null: it is as it should be. */
    withholdTokens: access.withholdTokens,
    /** The app has an IP allowlist, which leaves our address out; null: it has none. */
    setAllowlist: (list: typeof allowlist) => {
      allowlist = list
    },
    throttleStatus: () => {
      access.fits(0)
      return access.throttleStatus()
    },
  }

  function orderOf(id: string): ShopifyOrder {
    const order = orders.orders.get(id)
    if (!order) throw new Error(`The shop has no order ${id}.`)
    return order
  }
}

/** What an id needs to be looked up by. */
const nodeScopes: Record<string, string> = {
  Product: 'read_products',
  ProductVariant: 'read_products',
  InventoryItem: 'read_inventory',
  Location: 'read_locations',
  Publication: 'read_publications',
  Order: 'read_orders',
  LineItem: 'read_orders',
  Fulfillment: 'read_orders',
  FulfillmentOrder: 'read_merchant_managed_fulfillment_orders',
}
const invalidCodes = ['undefinedField', 'selectionMismatch', 'INVALID_VARIABLE', 'MAX_INPUT_SIZE_EXCEEDED']

interface Asked {
  document: string
  operation: Operation | undefined
  variables: Fields
  /** Why the document cannot be answered at all. */
  refusal?: GraphqlRefusal
}

/** Reads the body of a request: a document, its variables and the name of its operation. */
function readAsked(body: string): Asked {
  let document = ''
  let operation: Operation | undefined
  try {
    const given: unknown = JSON.parse(body)
    const { query, variables, operationName } = isFields(given) ? given : {}
    if (typeof query !== 'string') throw new GraphqlRefusal('BAD_REQUEST', 'query is missing')
    document = query
    operation = readDocument(query, typeof operationName === 'string' ? operationName : null)
    return { document, operation, variables: variablesOf(operation, isFields(variables) ? variables : {}) }
  } catch (error) {
    const refusal = error instanceof GraphqlRefusal ? error : new GraphqlRefusal('BAD_REQUEST', 'Bad Request')
    return { document, operation, variables: {}, refusal }
  }
}

function longestArray(value: unknown): number {
  if (Array.isArray(value)) return Math.max(value.length, ...value.map(longestArray))
  return isFields(value) ? Math.max(0, ...Object.values(value).map(longestArray)) : 0
}

const throttled = () =>
  new GraphqlRefusal('THROTTLED', 'Throttled', { documentation: 'https://shopify.dev/api/usage/rate-limits' })

/** The answer of a mutation that did nothing: every field that was asked for null, and one error. */
function userErrorAnswer(
  operation: Operation | undefined,
  {
    code = 'INVALID',
    field = [],
    message = 'That did not work.',
  }: { code?: string; field?: string[]; message?: string },
): Fields {
  const [root] = operation?.selections ?? []
  if (root?.kind !== 'field' || operation?.kind !== 'mutation') throw new Error('Only a mutation has user errors.')
  const error = { code, field, message, elementIndex: null }
  const entries = (root.selections ?? []).flatMap((one): [string, unknown][] => {
    if (one.kind !== 'field') return []
    if (one.name !== 'userErrors') return [[one.key, null]]
    const asked = (one.selections ?? []).flatMap((each) => (each.kind === 'field' ? [each] : []))
    return [[one.key, [Object.fromEntries(asked.map(({ key, name }) => [key, error[name as keyof typeof error]]))]]]
  })
  return { data: { [root.key]: Object.fromEntries(entries) } }
}

function html(status: number, words: string, headers: Record<string, string> = {}): ShopAnswer {
  const body = `<!DOCTYPE html><html><head><title>Shopify</title></head><body>${words}</body></html>`
  return { status, headers: { 'content-type': 'text/html; charset=utf-8', ...headers }, body }
}

export type RunningShopifyShop = RunningShop<ShopifyDelivery> & { shop: ShopifyShop }

export async function startShopifyShop(
  options: ShopifyShopOptions & { port?: number } = {},
): Promise<RunningShopifyShop> {
  const shop = createShopifyShop(options)
  const running = await startShop(shop, options)
  if (options.home === undefined) shop.setHome(running.url)
  return { ...running, shop }
}
