/** What writes stock in the Shopify shop: set by comparison, once for each idempotency key. */
import {
  gid,
  isFields,
  needNumber,
  numberIn,
  objectsIn,
  type RootFields,
  type UserError,
  userErrors,
} from './shopify-answers.ts'
import { type FieldAnswer, type FieldCall, type Fields, GraphqlRefusal } from './shopify-graphql.ts'
import type { createProducts } from './shopify-products.ts'

interface InventoryOptions {
  now: () => number
  newId: () => string
  products: ReturnType<typeof createProducts>
  failItem: (item: Fields) => { code: string; message: string } | undefined
}

const QUANTITY_MAX = 1_000_000_000
/** https://shopify.dev/docs/apps/build/orders-fulfillment/inventory-management-apps: the reasons that an app may give. */
const reasons = [
  'correction',
  'cycle_count_available',
  'damaged',
  'movement_created',
  'other',
  'promotion',
  'quality_control',
  'received',
  'reservation_created',
  'restock',
  'safety_stock',
  'shrinkage',
]

export function createInventory({ now, newId, products, failItem }: InventoryOptions) {
  const attempts = new Map<string, { given: string; answer: Fields | undefined }>()

  /** Runs a mutation once for each key, and answers a repeat as the first time. */
  const once = (name: string, errorType: string, run: FieldAnswer): FieldAnswer => {
    const failed = (code: string, message: string): Fields => ({
      __typename: 'Payload',
      inventoryAdjustmentGroup: null,
      inventoryLevel: null,
      userErrors: userErrors(errorType, [{ code, field: null, message }]),
    })
    return (given: Fields, call: FieldCall) => {
      const key = call.idempotencyKey
      if (key === undefined) {
        const message = 'The @idempotent directive is required for this mutation but was not provided.'
        throw new GraphqlRefusal('BAD_REQUEST', message)
      }
      if (key === '' || key.length > 255) throw new GraphqlRefusal('BAD_REQUEST', 'The idempotency key is invalid.')
      const before = attempts.get(`${name} ${key}`)
      const text = JSON.stringify(given)
      if (before && before.given !== text) {
        const message = 'The same idempotency key cannot be used with different operation parameters.'
        return failed('IDEMPOTENCY_KEY_PARAMETER_MISMATCH', message)
      }
      if (before) {
        if (before.answer) return before.answer
        const message = 'A previous request with the same idempotency key failed. Use a new key to try again.'
        return failed('IDEMPOTENCY_PREVIOUS_ATTEMPT_FAILED', message)
      }
      const answer = run(given, call) as Fields
      const isDone = objectsIn(answer.userErrors).length === 0
      attempts.set(`${name} ${key}`, { given: text, answer: isDone ? answer : undefined })
      return answer
    }
  }

  const setQuantities = ({ input }: Fields): Fields => {
    const { name, reason, referenceDocumentUri, quantities } = isFields(input) ? input : {}
    const errors: UserError[] = []
    const refuse = (code: string, field: string[], message: string) =>
      void errors.push({ code, field: ['input', ...field], message })
    if (name !== 'available' && name !== 'on_hand') {
      refuse('INVALID_NAME', ['name'], 'The quantity name must be either available or on_hand.')
    }
    if (!reasons.includes(String(reason))) refuse('INVALID_REASON', ['reason'], 'The specified reason is invalid.')
    if (referenceDocumentUri != null && !/^[a-z][a-z0-9+.-]*:\/\/\S+$/.test(String(referenceDocumentUri))) {
      refuse('INVALID_REFERENCE_DOCUMENT', ['referenceDocumentUri'], 'The specified reference document is invalid.')
    }
    const seen = new Set<string>()
    const writes: (() => void)[] = []
    const changes: Fields[] = []
    for (const [index, one] of objectsIn(quantities).entries()) {
      const at = (code: string, field: string, message: string) =>
        refuse(code, ['quantities', String(index), field], message)
      if (one.changeFromQuantity === undefined) {
        const message = 'InventoryQuantityInput must include the following argument: changeFromQuantity.'
        throw new GraphqlRefusal('INVALID_FIELD_ARGUMENTS', message)
      }
      const item = products.items.get(numberIn('InventoryItem', one.inventoryItemId) ?? '')
      const location = numberIn('Location', one.locationId) ?? ''
      const quantity = Number(one.quantity)
      if (!item) {
        at('INVALID_INVENTORY_ITEM', 'inventoryItemId', 'The specified inventory item could not be found.')
        continue
      }
      if (!products.locations.has(location)) {
        at('INVALID_LOCATION', 'locationId', 'The specified location could not be found.')
        continue
      }
      const level = item.levels.get(location)
      if (!level) {
        const message = 'The specified inventory item is not stocked at the location.'
        at('ITEM_NOT_STOCKED_AT_LOCATION', 'locationId', message)
        continue
      }
      if (seen.has(`${item.id} ${location}`)) {
        const message = 'The combination of inventoryItemId and locationId must be unique.'
        at('NO_DUPLICATE_INVENTORY_ITEM_ID_GROUP_ID_PAIR', 'inventoryItemId', message)
      }
      seen.add(`${item.id} ${location}`)
      if (quantity < 0) at('INVALID_QUANTITY_NEGATIVE', 'quantity', "The quantity can't be negative.")
      if (quantity > QUANTITY_MAX) {
        at('INVALID_QUANTITY_TOO_HIGH', 'quantity', "The quantity can't be higher than 1,000,000,000.")
      }
      const failed = failItem(one)
      if (failed) at(failed.code, 'inventoryItemId', failed.message)
      const before = name === 'on_hand' ? level.available + level.committed : level.available
      if (one.changeFromQuantity !== null && one.changeFromQuantity !== before) {
        const message = 'The changeFromQuantity argument no longer matches the persisted quantity.'
        at('CHANGE_FROM_QUANTITY_STALE', 'changeFromQuantity', message)
      }
      if (quantity !== before) {
        const [delta, quantityAfterChange] = [quantity - before, quantity]
        changes.push({ __typename: 'InventoryChange', name, delta, quantityAfterChange })
      }
      writes.push(() => {
        level.available = name === 'on_hand' ? quantity - level.committed : quantity
        level.updatedAt = now()
        products.touch(item.variant)
      })
    }
    if (errors.length === 0) for (const write of writes) write()
    const isChanged = errors.length === 0 && changes.length > 0
    return {
      __typename: 'InventorySetQuantitiesPayload',
      inventoryAdjustmentGroup: isChanged
        ? {
            __typename: 'InventoryAdjustmentGroup',
            id: gid('InventoryAdjustmentGroup', newId()),
            reason,
            referenceDocumentUri: referenceDocumentUri ?? null,
            changes,
          }
        : null,
      userErrors: userErrors('InventorySetQuantitiesUserError', errors),
    }
  }

  const activate = ({ inventoryItemId, locationId, available }: Fields): Fields => {
    const item = products.items.get(needNumber('InventoryItem', inventoryItemId))
    const location = products.locations.get(needNumber('Location', locationId))
    const errors: UserError[] = []
    if (!item)
      errors.push({ field: ['inventoryItemId'], message: "The product couldn't be stocked because it wasn't found." })
    else if (!location?.isActive) {
      errors.push({
        field: ['locationId'],
        message: "The product couldn't be stocked because the location wasn't found.",
      })
    }
    if (!item || !location || errors.length > 0) {
      return {
        __typename: 'InventoryActivatePayload',
        inventoryLevel: null,
        userErrors: userErrors('UserError', errors),
      }
    }
    const level = item.levels.get(location.id) ?? {
      id: newId(),
      available: typeof available === 'number' ? available : 0,
      committed: 0,
      updatedAt: now(),
    }
    item.levels.set(location.id, level)
    return {
      __typename: 'InventoryActivatePayload',
      inventoryLevel: products.levelFields(item, location.id, level),
      userErrors: [],
    }
  }

  const root: RootFields = {
    queries: {
      inventoryItem: {
        scope: 'read_inventory',
        isNullable: true,
        answer: ({ id }) => products.nodeOf('InventoryItem', needNumber('InventoryItem', id)) ?? null,
      },
    },
    mutations: {
      inventorySetQuantities: {
        scope: 'write_inventory',
        isNullable: true,
        answer: once('inventorySetQuantities', 'InventorySetQuantitiesUserError', setQuantities),
      },
      inventoryActivate: {
        scope: 'write_inventory',
        isNullable: true,
        answer: once('inventoryActivate', 'UserError', activate),
      },
    },
  }
  return { root }
}
