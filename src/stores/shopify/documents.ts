/**
 * Every GraphQL document that the adapter sends to the Admin API of Shopify. An operation has the name of its constant, in
 * `PascalCase`. The client sends this name along, and remembers the cost of the operation by it.
 *
 * Shopify refuses a document whose largest possible answer costs more than 1,000 points. An object costs 1 point, a mutation 10.
 * A connection costs `first` times its children, and 2 more. The comment on a document with pages says what it costs at most.
 */

/** A document with one operation. `field`: the field that has the whole answer; undefined: the answer has several fields. */
export interface ShopDocument {
  name: string
  text: string
  field?: string | undefined
}

const document = (text: string, field?: string): ShopDocument => ({
  name: /^(?:query|mutation) (\w+)/.exec(text)?.[1] as string,
  text,
  field,
})

/** Returns a query of one field. @param fields the fields that are read of its answer */
const query = (operation: string, call: string, fields: string): ShopDocument =>
  document(`query ${operation} { ${call} { ${fields} } }`, fieldOf(call))

/**
 * Returns a mutation whose errors are always read.
 *
 * @param answer the fields that are read of its answer in addition
 * @param error the fields that are read of an error: some errors have no code
 */
const mutation = (operation: string, call: string, answer = '', error = 'field'): ShopDocument =>
  document(`mutation ${operation} { ${call} { ${answer} userErrors { ${error} } } }`, fieldOf(call))

const fieldOf = (call: string) => /^\w+/.exec(call)?.[0]

const PAGE_INFO = 'pageInfo { hasNextPage endCursor }'

/** Returns a query of a list that is read page by page. */
const list = (operation: string, call: string, node: string) => query(operation, call, `nodes { ${node} } ${PAGE_INFO}`)

/* The shop. */

/** Reads the currency of the shop, the access scopes that the app was granted, and the number of the app. */
export const shop = document(`query Shop {
    shop { currencyCode myshopifyDomain }
    currentAppInstallation { app { id } accessScopes { handle } }
  }`)

/** This document costs at most 52 points. */
export const locations = list(
  'Locations($after: String)',
  'locations(first: 50, after: $after, sortKey: ID)',
  'id name isActive fulfillsOnlineOrders isFulfillmentService',
)

/* The catalogue. */

/** This document costs at most 502 points. */
export const variantPage = list(
  'VariantPage($after: String)',
  'productVariants(first: 250, after: $after, sortKey: ID)',
  'id sku title sellableOnlineQuantity product { title hasOnlyDefaultVariant }',
)

/** The most ids of one `VariantsById`. Each id costs 7 points. */
export const VARIANTS_MAX = 125

export const variantsById = query(
  'VariantsById($ids: [ID!]!, $location: ID!)',
  'nodes(ids: $ids)',
  `... on ProductVariant {
    id
    price
    compareAtPrice
    inventoryPolicy
    sellableOnlineQuantity
    product { id status variantsCount { count } }
    inventoryItem {
      id
      tracked
      requiresShipping
      locationsCount { count }
      inventoryLevel(locationId: $location) { quantities(names: ["available"]) { name quantity } }
    }
  }`,
)

/** Writes the prices of variants of one product, and whether their stock is counted. */
export const updateVariants = mutation(
  'UpdateVariants($product: ID!, $variants: [ProductVariantsBulkInput!]!)',
  'productVariantsBulkUpdate(productId: $product, variants: $variants, allowPartialUpdates: true)',
  'productVariants { id price compareAtPrice inventoryPolicy inventoryItem { tracked } }',
  'code field',
)

/** Asks for an address that takes the variables of many calls as one file. */
export const stageUpload = mutation(
  'StageUpload($input: [StagedUploadInput!]!)',
  'stagedUploadsCreate(input: $input)',
  'stagedTargets { url parameters { name value } }',
)

/** Makes Shopify call a mutation once for each line of a file. */
export const runBulk = mutation(
  'RunBulk($mutation: String!, $path: String!)',
  'bulkOperationRunMutation(mutation: $mutation, stagedUploadPath: $path)',
  'bulkOperation { id }',
  'code field',
)

export const bulkOperation = query('BulkOperation($id: ID!)', 'bulkOperation(id: $id)', 'id status url')

/** Lists the app's own bulk operations, newest first. At most five run at once. This document costs at most 52 points. */
export const bulkOperations = query(
  'BulkOperations',
  'bulkOperations(first: 50, sortKey: CREATED_AT, reverse: true)',
  'nodes { id status type }',
)

export const cancelBulk = mutation(
  'CancelBulk($id: ID!)',
  'bulkOperationCancel(id: $id)',
  'bulkOperation { id status }',
)

/** The most items of an array that Shopify takes. */
export const ITEMS_MAX = 250

/** Shopify requires the idempotency key, although its schema does not show that. */
export const setStock = mutation(
  'SetStock($input: InventorySetQuantitiesInput!, $key: String!)',
  'inventorySetQuantities(input: $input) @idempotent(key: $key)',
  '',
  'code field',
)

/** The most ids of one `StockElsewhere`. Each costs 153 points, and has 50 levels at most. One `SetStock` takes 250 levels. */
export const STOCK_ELSEWHERE_MAX = 5

/** Reads the stock of items at each location. */
export const stockElsewhere = query(
  'StockElsewhere($ids: [ID!]!)',
  'nodes(ids: $ids)',
  `... on InventoryItem {
    id
    inventoryLevels(first: 50) {
      nodes { location { id fulfillsOnlineOrders } quantities(names: ["available"]) { name quantity } }
      pageInfo { hasNextPage }
    }
  }`,
)

export const activateStock = mutation(
  'ActivateStock($item: ID!, $location: ID!, $key: String!)',
  'inventoryActivate(inventoryItemId: $item, locationId: $location) @idempotent(key: $key)',
  'inventoryLevel { id }',
)

export const updateProduct = mutation(
  'UpdateProduct($product: ProductUpdateInput!)',
  'productUpdate(product: $product)',
  'product { id status }',
)

/** This document costs at most 202 points. */
export const variantsBySku = query(
  'VariantsBySku($query: String!)',
  'productVariants(first: 100, query: $query, sortKey: ID)',
  'nodes { id sku product { id handle } } pageInfo { hasNextPage }',
)

export const productByHandle = query(
  'ProductByHandle($handle: String!)',
  'productByIdentifier(identifier: { handle: $handle })',
  'id variants(first: 2) { nodes { id sku } }',
)

export const createProduct = mutation(
  'CreateProduct($input: ProductSetInput!)',
  'productSet(synchronous: true, input: $input)',
  'product { id variants(first: 2) { nodes { id sku } } }',
  'code field',
)

/** This document costs at most 254 points. */
export const publications = query(
  'Publications',
  'publications(first: 50, catalogType: APP)',
  'nodes { id catalog { ... on AppCatalog { apps(first: 1) { nodes { handle } } } } }',
)

export const publishProduct = mutation(
  'PublishProduct($product: ID!, $publication: ID!)',
  'publishablePublish(id: $product, input: [{ publicationId: $publication }])',
)

/* Orders. */

/** The fields that say how an order stands. */
const STANDING = 'cancelledAt displayFinancialStatus fullyPaid tags risk { recommendation }'
const MONEY = '{ shopMoney { amount currencyCode } }'

/** These fields cost 4 points. `metafield`: the mark that a hand-over of ours leaves. */
const ORDER_FIELDS = `
    id
    name
    ${STANDING}
    displayFulfillmentStatus
    createdAt
    processedAt
    updatedAt
    test
    taxesIncluded
    totalRefundedSet ${MONEY}
    metafield(namespace: $namespace, key: "units") { id }`

const LINES = `{
    nodes { id sku currentQuantity discountedUnitPriceAfterAllDiscountsSet ${MONEY} variant { id } }
    ${PAGE_INFO}
  }`

/** This document costs at most 257 points. None of its fields says who the customer is. */
export const order = query(
  'Order($id: ID!, $namespace: String!)',
  'order(id: $id)',
  `${ORDER_FIELDS}
    transactions(first: 50) { kind status processedAt }
    lineItems(first: 50) ${LINES}`,
)

/** The most ids of one `OrdersNow`. Each id costs 19 points. */
export const ORDERS_MAX = 50

/** Reads how known orders stand. An order with more than three lines, or with a refund, is read by `Order`. */
export const ordersNow = query(
  'OrdersNow($ids: [ID!]!, $namespace: String!)',
  'nodes(ids: $ids)',
  `... on Order { ${ORDER_FIELDS} lineItems(first: 3) ${LINES} }`,
)

/** Reads what the refunds of an order say about units. This document costs at most 431 points. */
export const orderRefunds = query(
  'OrderRefunds($id: ID!)',
  'order(id: $id)',
  `id
    refunds(first: 10) {
      refundLineItems(first: 8) {
        nodes {
          subtotalSet ${MONEY}
          totalTaxSet ${MONEY}
        }
      }
    }`,
)

/** This document costs at most 203 points. */
export const orderLines = query(
  'OrderLines($id: ID!, $after: String!)',
  'order(id: $id)',
  `id lineItems(first: 50, after: $after) ${LINES}`,
)

/** Finds the order to which a fulfilment order belongs, because some deliveries name only a fulfilment order. */
export const orderOfFulfillment = query(
  'OrderOfFulfillment($id: ID!)',
  'node(id: $id)',
  '... on FulfillmentOrder { id orderId }',
)

/** Finds the orders that changed. Each is then read by itself, because a search lags. This document costs at most 52 points. */
export const changedOrders = list(
  'ChangedOrders($query: String!, $after: String)',
  'orders(first: 50, after: $after, query: $query, sortKey: UPDATED_AT)',
  'id updatedAt',
)

export const addTags = mutation('AddTags($id: ID!, $tags: [String!]!)', 'tagsAdd(id: $id, tags: $tags)')

export const removeTags = mutation('RemoveTags($id: ID!, $tags: [String!]!)', 'tagsRemove(id: $id, tags: $tags)')

/* The hand-over. */

/** The most metafields of an order that are read: the one with the units, and one with the keys of each hand-over. */
export const METAFIELDS_MAX = 250

/** Reads how an order stands, our metafields on it, and one of its lines. This document costs at most 255 points. */
export const handOverOrder = document(`query HandOverOrder($id: ID!, $line: ID!, $namespace: String!) {
    order(id: $id) {
      id
      name
      ${STANDING}
      note
      metafields(first: 250, namespace: $namespace) { nodes { key value compareDigest } }
    }
    node(id: $line) { ... on LineItem { id name sku quantity currentQuantity } }
  }`)

export const defineKeys = mutation(
  'DefineKeys($definition: MetafieldDefinitionInput!)',
  'metafieldDefinitionCreate(definition: $definition)',
  'createdDefinition { id }',
  'code field',
)

export const putKeys = mutation(
  'PutKeys($metafields: [MetafieldsSetInput!]!)',
  'metafieldsSet(metafields: $metafields)',
  'metafields { key value compareDigest }',
  'code elementIndex field',
)

/** Reads the fulfilment orders and fulfilments of an order. It costs 303 points, or 753 if Shopify counts ten holds for each. */
export const orderFulfillments = query(
  'OrderFulfillments($id: ID!, $after: String)',
  'order(id: $id)',
  `id
    fulfillments(first: 100) { id status }
    fulfillmentOrders(first: 50, after: $after) {
      nodes {
        id
        status
        fulfillAt
        fulfillmentHolds { reason }
        assignedLocation { location { id } }
      }
      ${PAGE_INFO}
    }`,
)

/** The most ids of one `FulfillmentOrderLines` or `FulfilledLines`. Each id costs 83 points. */
export const FULFILLMENTS_MAX = 10

const linesOf = (operation: string, kind: string, items: string, item: string) =>
  query(
    `${operation}($ids: [ID!]!, $after: String)`,
    'nodes(ids: $ids)',
    `... on ${kind} { id ${items}(first: 40, after: $after) { nodes { ${item} lineItem { id } } ${PAGE_INFO} } }`,
  )

export const fulfillmentOrderLines = linesOf(
  'FulfillmentOrderLines',
  'FulfillmentOrder',
  'lineItems',
  'id remainingQuantity',
)
export const fulfilledLines = linesOf('FulfilledLines', 'Fulfillment', 'fulfillmentLineItems', 'quantity')

export const createFulfillment = mutation(
  'CreateFulfillment($fulfillment: FulfillmentInput!)',
  'fulfillmentCreate(fulfillment: $fulfillment)',
  'fulfillment { id status }',
)

export const fulfillmentTracking = query(
  'FulfillmentTracking($id: ID!)',
  'node(id: $id)',
  '... on Fulfillment { id trackingInfo(first: 10) { company number url } }',
)

/** Makes the shop send the customer a mail about the fulfilment again. */
export const notifyAgain = mutation(
  'NotifyAgain($id: ID!, $tracking: FulfillmentTrackingInput!)',
  'fulfillmentTrackingInfoUpdate(fulfillmentId: $id, trackingInfoInput: $tracking, notifyCustomer: true)',
  'fulfillment { id }',
)

export const orderNote = query('OrderNote($id: ID!)', 'order(id: $id)', 'id note')

export const putNote = mutation(
  'PutNote($id: ID!, $note: String!)',
  'orderUpdate(input: { id: $id, note: $note })',
  'order { id note }',
)

/* Webhooks. */

/** This document costs at most 102 points. */
export const webhooks = list(
  'Webhooks($after: String)',
  'webhookSubscriptions(first: 100, after: $after, sortKey: ID)',
  'id topic uri format includeFields filter',
)

export const createWebhook = mutation(
  'CreateWebhook($topic: WebhookSubscriptionTopic!, $webhook: WebhookSubscriptionInput!)',
  'webhookSubscriptionCreate(topic: $topic, webhookSubscription: $webhook)',
  'webhookSubscription { id }',
)

export const updateWebhook = mutation(
  'UpdateWebhook($id: ID!, $webhook: WebhookSubscriptionInput!)',
  'webhookSubscriptionUpdate(id: $id, webhookSubscription: $webhook)',
  'webhookSubscription { id }',
)
