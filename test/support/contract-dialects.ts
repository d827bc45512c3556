import type { Dialect } from '../../src/dialect/dialect.ts'
import { dialect, otherDialect } from './supplier-server.ts'

/** Where answers stand on their own: the record itself, with a flag of success in it, and keys as objects of an event. */
export const bareDialect: Dialect = {
  ...otherDialect,
  name: 'bare',
  envelope: { success: 'ok', data: '' },
  paging: { ...otherDialect.paging, items: 'rows', total: 'count.all', more: null },
  money: { representation: 'number', currency: 'EUR' },
  instants: 'epoch_ms',
  rateResetUnit: 'epoch_ms',
  order: { ...otherDialect.order, keyText: null, failureCode: null, currency: 'cur', createdAt: 'made.at' },
  orderRequired: ['productId', 'quantity', 'externalOrderId'],
  orderStatuses: { OPEN: 'open', DONE: 'completed', DEAD: 'failed' },
  errors: { ...otherDialect.errors, gone: { codes: ['E_GONE'], status: 410 } },
  event: { ...otherDialect.event, orderId: 'order.no', keys: 'order.goods' },
  signature: {
    ...otherDialect.signature,
    encoding: 'base64',
    timestamp: { in: 'signature', field: 't' },
    deliveryIdHeader: null,
  },
  openapiNeedsKey: false,
}

/** Refusals that come as HTTP 200, but for the two that a gateway answers, and amounts with an exponent. */
export const refusingDialect: Dialect = {
  ...dialect,
  name: 'refusing',
  money: { currency: 'EUR', representation: { amount: 'units', exponent: 'places', counts: 'decimals' } },
  // The currency stands in the amount, beside the two that make its number.
  product: { ...dialect.product, cost: 'price', currency: 'price.currency' },
  errors: Object.fromEntries(
    Object.entries(dialect.errors).map(([kind, facts]) => {
      const ofGateway = kind === 'rate_limited' || kind === 'unavailable'
      return [kind, facts && !ofGateway ? { ...facts, status: 200 } : facts]
    }),
  ) as Dialect['errors'],
}
