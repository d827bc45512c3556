/**
 * Every document that the adapter sends to the Admin API of Shopify. The name of an operation is that of its constant in
 * `PascalCase`; the client sends it along, and remembers by it what the operation costs.
 *
 * Shopify refuses a document whose most possible answer costs more than 1,000 points: an object is 1, a connection its `first`
 * times its children and 2 more, a mutation 10. Beside each page size stands what its document may cost at most.
 */

/** A document and the name of its one operation. */
export interface ShopDocument {
  name: string
  text: string
}

const document = (text: string): ShopDocument => ({
  name: /^\s*(?:query|mutation) (\w+)/.exec(text)?.[1] as string,
  text,
})

/** A mutation. `field`: where its answer stands. */
export interface ShopMutation extends ShopDocument {
  field: string
}

/**
 * A mutation, of which what the shop does not take is always read.
 *
 * @param answer what is read of its answer besides
 * @param error what is read of an error: some have no code
 */
const mutation = (operation: string, call: string, answer = '', error = 'field'): ShopMutation => ({
  ...document(`
  mutation ${operation} {
    ${call} { ${answer} userErrors { ${error} } }
  }`),
  field: /^\w+/.exec(call)?.[0] as string,
})

/* The shop. */

/** The currency that it sells in, what the app was granted, and its number. */
export const shop = document(`
  query Shop {
    shop { currencyCode myshopifyDomain }
    currentAppInstallation { app { id } accessScopes { handle } }
  }`)

/** 52 points. */
export const locations = document(`
  query Locations($after: String) {
    locations(first: 50, after: $after, sortKey: ID) {
      nodes { id name isActive fulfillsOnlineOrders isFulfillmentService }
      pageInfo { hasNextPage endCursor }
    }
  }`)

/* The catalogue. */

/** 502 points. */
export const variantPage = document(`
  query VariantPage($after: String) {
    productVariants(first: 250, after: $after, sortKey: ID) {
      nodes { id sku title sellableOnlineQuantity product { title hasOnlyDefaultVariant } }
      pageInfo { hasNextPage endCursor }
    }
  }`)

/** Ids of one `VariantsById`: 7 points each. */
export const VARIANTS_MAX = 125

export const variantsById = document(`
  query VariantsById($ids: [ID!]!, $location: ID!) {
    nodes(ids: $ids) {
      ... on ProductVariant {
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
      }
    }
  }`)

/** Prices of variants of one product, and whether their stock is counted. */
export const updateVariants = mutation(
  'UpdateVariants($product: ID!, $variants: [ProductVariantsBulkInput!]!)',
  'productVariantsBulkUpdate(productId: $product, variants: $variants, allowPartialUpdates: true)',
  'productVariants { id price compareAtPrice inventoryPolicy inventoryItem { tracked } }',
  'code field',
)

/** An address that takes the variables of many calls as one file. */
export const stageUpload = mutation(
  'StageUpload($input: [StagedUploadInput!]!)',
  'stagedUploadsCreate(input: $input)',
  'stagedTargets { url parameters { name value } }',
)

/** Has Shopify call a mutation once for each line of a file. */
export const runBulk = mutation(
  'RunBulk($mutation: String!, $path: String!)',
  'bulkOperationRunMutation(mutation: $mutation, stagedUploadPath: $path)',
  'bulkOperation { id }',
  'code field',
)

export const bulkOperation = document(`
  query BulkOperation($id: ID!) {
    bulkOperation(id: $id) { id status url }
  }`)

/** The app's own, newest first: at most five run at once. 52 points. */
export const bulkOperations = document(`
  query BulkOperations {
    bulkOperations(first: 50, sortKey: CREATED_AT, reverse: true) {
      nodes { id status type }
    }
  }`)

export const cancelBulk = mutation(
  'CancelBulk($id: ID!)',
  'bulkOperationCancel(id: $id)',
  'bulkOperation { id status }',
)

/** Most items of an array that Shopify takes. */
export const ITEMS_MAX = 250

/** The schema does not show that Shopify requires the key. */
export const setStock = mutation(
  'SetStock($input: InventorySetQuantitiesInput!, $key: String!)',
  'inventorySetQuantities(input: $input) @idempotent(key: $key)',
  '',
  'code field',
)

/** Ids of one `StockElsewhere`: 153 points each, and no more levels than one `SetStock` takes. */
export const STOCK_ELSEWHERE_MAX = 5

/** What each location has of items. */
export const stockElsewhere = document(`
  query StockElsewhere($ids: [ID!]!) {
    nodes(ids: $ids) {
      ... on InventoryItem {
        id
        inventoryLevels(first: 50) {
          nodes { location { id fulfillsOnlineOrders } quantities(names: ["available"]) { name quantity } }
          pageInfo { hasNextPage }
        }
      }
    }
  }`)

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

/** 202 points. */
export const variantsBySku = document(`
  query VariantsBySku($query: String!) {
    productVariants(first: 100, query: $query, sortKey: ID) {
      nodes { id sku product { id handle } }
      pageInfo { hasNextPage }
    }
  }`)

export const productByHandle = document(`
  query ProductByHandle($handle: String!) {
    productByIdentifier(identifier: { handle: $handle }) {
      id
      variants(first: 2) { nodes { id sku } }
    }
  }`)

export const createProduct = mutation(
  'CreateProduct($input: ProductSetInput!)',
  'productSet(synchronous: true, input: $input)',
  'product { id variants(first: 2) { nodes { id sku } } }',
  'code field',
)

/** 254 points. */
export const publications = document(`
  query Publications {
    publications(first: 50, catalogType: APP) {
      nodes { id catalog { ... on AppCatalog { apps(first: 1) { nodes { handle } } } } }
    }
  }`)

export const publishProduct = mutation(
  'PublishProduct($product: ID!, $publication: ID!)',
  'publishablePublish(id: $product, input: [{ publicationId: $publication }])',
)

/* Orders. */

/** What says how an order stands. */
const STANDING = `cancelledAt displayFinancialStatus fullyPaid tags risk { recommendation }`
const MONEY = `{ shopMoney { amount currencyCode } }`

/** 4 points. `metafield`: what a hand-over of ours leaves. */
const STAND = `
  fragment Stand on Order {
    id
    ${STANDING}
    displayFulfillmentStatus
    createdAt
    processedAt
    updatedAt
    test
    taxesIncluded
    totalRefundedSet ${MONEY}
    metafield(namespace: $namespace, key: "units") { id }
  }`

const LINES = `
  fragment Lines on LineItemConnection {
    nodes { id sku currentQuantity discountedUnitPriceAfterAllDiscountsSet ${MONEY} variant { id } }
    pageInfo { hasNextPage endCursor }
  }`

/** 257 points. Nothing of it says who the customer is. */
export const order = document(`
  query Order($id: ID!, $namespace: String!) {
    order(id: $id) {
      ...Stand
      transactions(first: 50) { kind status processedAt }
      lineItems(first: 50) { ...Lines }
    }
  }
  ${STAND}${LINES}`)

/** Ids of one `OrdersNow`, which cost 19 points each. */
export const ORDERS_MAX = 50

/** How orders stand that are known already. An order with more lines, or with a refund, is read by `Order`. */
export const ordersNow = document(`
  query OrdersNow($ids: [ID!]!, $namespace: String!) {
    nodes(ids: $ids) {
      ...Stand
      ... on Order { lineItems(first: 3) { ...Lines } }
    }
  }
  ${STAND}${LINES}`)

/** What refunds of an order say of units. 431 points. */
export const orderRefunds = document(`
  query OrderRefunds($id: ID!) {
    order(id: $id) {
      id
      refunds(first: 10) {
        refundLineItems(first: 8) {
          nodes {
            subtotalSet ${MONEY}
            totalTaxSet ${MONEY}
          }
        }
      }
    }
  }`)

/** 203 points. */
export const orderLines = document(`
  query OrderLines($id: ID!, $after: String!) {
    order(id: $id) {
      id
      lineItems(first: 50, after: $after) { ...Lines }
    }
  }
  ${LINES}`)

/** A delivery may name a part of an order alone. */
export const orderOfFulfillment = document(`
  query OrderOfFulfillment($id: ID!) {
    node(id: $id) { ... on FulfillmentOrder { id orderId } }
  }`)

/** 52 points; each order is then read by itself, because a search lags. */
export const changedOrders = document(`
  query ChangedOrders($query: String!, $after: String) {
    orders(first: 50, after: $after, query: $query, sortKey: UPDATED_AT) {
      nodes { id updatedAt }
      pageInfo { hasNextPage endCursor }
    }
  }`)

export const addTags = mutation('AddTags($id: ID!, $tags: [String!]!)', 'tagsAdd(id: $id, tags: $tags)')

export const removeTags = mutation('RemoveTags($id: ID!, $tags: [String!]!)', 'tagsRemove(id: $id, tags: $tags)')

/* The hand-over. */

/** Metafields of an order that are read: keys of so many hand-overs, less one. */
export const METAFIELDS_MAX = 250

/** How an order stands, what is on it of ours, and what the line is. 255 points. */
export const handOverOrder = document(`
  query HandOverOrder($id: ID!, $line: ID!, $namespace: String!) {
    order(id: $id) {
      id
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

/** What can be fulfilled of an order, from where and from when, and what was. 303 points, or 753 should Shopify count ten holds a part. */
export const orderFulfillments = document(`
  query OrderFulfillments($id: ID!, $after: String) {
    order(id: $id) {
      id
      fulfillments(first: 100) { id status }
      fulfillmentOrders(first: 50, after: $after) {
        nodes {
          id
          status
          fulfillAt
          fulfillmentHolds { reason }
          assignedLocation { location { id } }
        }
        pageInfo { hasNextPage endCursor }
      }
    }
  }`)

/** Ids of one `FulfillmentOrderLines` or `FulfilledLines`, which cost 83 points each. */
export const FULFILLMENTS_MAX = 10

const linesOf = (operation: string, kind: string, list: string, item: string) =>
  document(`
  query ${operation}($ids: [ID!]!, $after: String) {
    nodes(ids: $ids) {
      ... on ${kind} {
        id
        ${list}(first: 40, after: $after) {
          nodes { ${item} lineItem { id } }
          pageInfo { hasNextPage endCursor }
        }
      }
    }
  }`)

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

export const fulfillmentTracking = document(`
  query FulfillmentTracking($id: ID!) {
    node(id: $id) { ... on Fulfillment { id trackingInfo(first: 10) { company number url } } }
  }`)

/** The customer gets a mail about the fulfilment again. */
export const notifyAgain = mutation(
  'NotifyAgain($id: ID!, $tracking: FulfillmentTrackingInput!)',
  'fulfillmentTrackingInfoUpdate(fulfillmentId: $id, trackingInfoInput: $tracking, notifyCustomer: true)',
  'fulfillment { id }',
)

export const orderNote = document(`
  query OrderNote($id: ID!) {
    order(id: $id) { id note }
  }`)

export const putNote = mutation(
  'PutNote($id: ID!, $note: String!)',
  'orderUpdate(input: { id: $id, note: $note })',
  'order { id note }',
)

/* Webhooks. */

/** 102 points. */
export const webhooks = document(`
  query Webhooks($after: String) {
    webhookSubscriptions(first: 100, after: $after, sortKey: ID) {
      nodes { id topic uri format includeFields filter }
      pageInfo { hasNextPage endCursor }
    }
  }`)

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
