import { describe, expect, test } from 'vitest'
import {
  NO_REFUNDS,
  nextOrders,
  orderNamedBy,
  ordersQuery,
  refundedBy,
  type ShopOrder,
  shopOrder,
  storeOrderOf,
  verifyDelivery,
} from '../../src/stores/woocommerce/orders.ts'
import { capturedAnswer, capturedDelivery } from '../support/woocommerce-fixtures.ts'

const statuses = ['processing', 'completed']
const captured = (): ShopOrder => shopOrder.parse(capturedAnswer('34-order-create-paid').body)
const read = (change: (order: ShopOrder) => void = () => {}, refunded = NO_REFUNDS) => {
  const order = captured()
  change(order)
  return storeOrderOf(order, { refunded, statuses })
}
const firstLine = ({ line_items: [line] }: ShopOrder) => {
  if (!line) throw new Error('the captured order has lines')
  return line
}

describe('an order of WooCommerce', () => {
  test('is read as it was captured', () => {
    expect(read()).toEqual({
      reference: '16',
      standing: 'paid',
      fullyPaid: true,
      placedAt: Date.parse('2026-11-20T21:22:58Z'),
      changedAt: expect.any(Number),
      paidAt: Date.parse('2026-11-20T21:22:58Z'),
      lines: [
        { id: '1', variant: '10', sku: 'KEY-A', quantity: 2, unitPrice: '21.00', currency: 'EUR' },
        { id: '2', variant: '13:14', sku: 'SUITE-HOME', quantity: 1, unitPrice: '33.00', currency: 'EUR' },
      ],
    })
  })

  test.each([
    ['processing', null, 'unpaid'],
    ['on-hold', '2026-11-20T21:22:58', 'held'],
    ['on-hold', null, 'unpaid'],
    ['wc-checked', '2026-11-20T21:22:58', 'held'],
    ['checkout-draft', null, 'unpaid'],
    ['trash', '2026-11-20T21:22:58', 'cancelled'],
    ['completed', '2026-11-20T21:22:58', 'paid'],
    ['failed', null, 'unpaid'],
    ['cancelled', '2026-11-20T21:22:58', 'cancelled'],
    ['refunded', '2026-11-20T21:22:58', 'cancelled'],
    ['trash', '2026-11-20T21:22:58', 'cancelled'],
  ] as const)('that is %s and was paid at %s is %s', (status, date_paid_gmt, state) => {
    expect(read((order) => Object.assign(order, { status, date_paid_gmt })).standing).toBe(state)
  })

  test('has the price of a unit rounded down, so that a discount is never lost', () => {
    const { lines, fault } = read((order) => {
      Object.assign(firstLine(order), { quantity: 3, total: '10.00' })
      order.total = '43.00'
    })
    expect(lines[0]).toMatchObject({ quantity: 3, unitPrice: '3.33' })
    expect(fault).toBeUndefined()
  })

  test('of which a gift card paid a part brought less for each unit, and nothing where it paid all', () => {
    // The lines cost 42.00 for two units, and 33.00 for one.
    const paid = (fee: string, total: string) =>
      read((order) => Object.assign(order, { fee_lines: [{ total: fee }], total }))
    expect(paid('-15.00', '60.00').lines.map(({ unitPrice }) => unitPrice)).toEqual(['16.80', '26.40'])
    expect(paid('-75.00', '0.00').lines.map(({ unitPrice }) => unitPrice)).toEqual(['0.00', '0.00'])
    expect(paid('2.00', '77.00').lines.map(({ unitPrice }) => unitPrice)).toEqual(['21.00', '33.00'])
    expect(paid('-15.00', '60.00').fault).toBeUndefined()
  })

  test('is cancelled where all of its money went back, although a person has set it to paid again', () => {
    const standing = (...totals: string[]) =>
      read((order) => {
        order.refunds = totals.map((total, place) => ({ id: place + 1, total }))
      }).standing
    const { total } = captured()
    expect([standing(`-${total}`), standing('-0.01', `-${total}`)]).toEqual(['cancelled', 'cancelled'])
    expect([standing(), standing('-0.01'), standing('unreadable')]).toEqual(['paid', 'paid', 'paid'])
  })

  test('has the units that were not refunded', () => {
    const none = { shipping_lines: [], fee_lines: [] }
    const refund = (id: string, quantity: number) => ({
      ...none,
      amount: '21.00',
      line_items: [
        { quantity, total: '-21.00', total_tax: '0.00', meta_data: [{ key: '_refunded_item_id', value: id }] },
      ],
    })
    const ofMoney = { ...none, amount: '0.50', line_items: [] }
    const { lines, refundedAmount } = read(() => {}, refundedBy([refund('1', -1), refund('2', -1), ofMoney]))
    expect(refundedAmount).toBe('0.50')
    expect(lines.map(({ quantity, unitPrice }) => [quantity, unitPrice])).toEqual([
      [1, '21.00'],
      [0, '33.00'],
    ])
  })

  test('whose units, shipping and fees went back with their taxes had no money refunded that names none of them', () => {
    const withTax = (total: string, total_tax: string) => ({ total, total_tax })
    const unit = { quantity: -1, meta_data: [{ key: '_refunded_item_id', value: '1' }] }
    const refund = {
      amount: '35.70',
      line_items: [{ ...unit, ...withTax('-21.00', '-3.99') }],
      shipping_lines: [withTax('-5.00', '-0.95')],
      fee_lines: [withTax('-4.00', '-0.76')],
    }
    expect(read(() => {}, refundedBy([refund]))).not.toHaveProperty('refundedAmount')
    expect(read(() => {}, refundedBy([{ ...refund, amount: '36.20' }]))).toMatchObject({ refundedAmount: '0.50' })
  })

  test.each<[string, (order: ShopOrder) => void]>([
    ['no lines', (order) => Object.assign(order, { line_items: [] })],
    ['no currency', (order) => Object.assign(order, { currency: '' })],
    ['whole number', (order) => Object.assign(firstLine(order), { quantity: 1.5 })],
    ['does not fit', (order) => Object.assign(order, { total: '1.00' })],
    ['cannot be read', (order) => Object.assign(order, { total: '7,5' })],
  ])('with %s has that as its fault', (fault, change) => {
    expect(read(change).fault).toContain(fault)
  })

  test('has no fault for tax, shipping and fees', () => {
    const { fault } = read((order) => {
      Object.assign(order, {
        total: '99.37',
        total_tax: '15.38',
        shipping_total: '4.99',
        fee_lines: [{ total: '4.00' }],
      })
    })
    expect(fault).toBeUndefined()
  })

  test('names a variant that is gone by none', () => {
    expect(read((order) => Object.assign(firstLine(order), { product_id: 0, sku: null })).lines[0]).toMatchObject({
      variant: null,
      sku: '',
    })
  })
})

describe('a delivery of WooCommerce', () => {
  const secret = 'whsec-acceptance-1'
  test.each(['order.created', 'order.updated-after-create', 'order.updated-completed', 'order.updated-store-checkout'])(
    '%s is authentic as it was captured, and not with one byte changed',
    (name) => {
      const delivery = capturedDelivery(name)
      const verified = verifyDelivery(delivery, secret)
      expect(verified).toMatchObject({ outcome: 'authentic', deliveryId: expect.stringMatching(/^[0-9a-f]{64}$/) })
      const body = Buffer.from(delivery.body)
      body[20] = (body[20] ?? 0) ^ 1
      expect(verifyDelivery({ ...delivery, body }, secret)).toEqual({
        outcome: 'not_authentic',
        reason: 'wrong_signature',
      })
      expect(verifyDelivery(delivery, 'another')).toMatchObject({ outcome: 'not_authentic' })
    },
  )

  test('of an action is signed with its own secret', () => {
    expect(verifyDelivery(capturedDelivery('action'), 's')).toMatchObject({ outcome: 'authentic' })
  })

  test('is no longer authentic with two signatures, or one that is written in another way', () => {
    const { headers, body } = capturedDelivery('order.created')
    const [signature = ''] = headers['x-wc-webhook-signature'] ?? []
    const hex = Buffer.from(signature, 'base64').toString('hex')
    for (const given of [[signature, signature], [hex], [signature.slice(0, -1)], [` ${signature}`], ['']]) {
      const request = { body, headers: { ...headers, 'x-wc-webhook-signature': given } }
      expect(verifyDelivery(request, secret)).toEqual({ outcome: 'not_authentic', reason: 'malformed_signature' })
    }
  })

  test('is a ping without a signature, in the one form that it has', () => {
    const ping = capturedDelivery('ping')
    expect(verifyDelivery(ping, secret)).toEqual({ outcome: 'ping' })
    const other = { ...ping, body: Buffer.from('webhook_id=1&order=2') }
    expect(verifyDelivery(other, secret)).toEqual({ outcome: 'not_authentic', reason: 'no_signature' })
  })

  test.each([
    ['{"id":16,"order_key":"wc_order_1","total":"0.01"}', { outcome: 'named', id: '16', orderKey: 'wc_order_1' }],
    ['{"action":"woocommerce_order_status_processing","arg":19}', { outcome: 'named', id: '19' }],
    ['{"id":16}', { outcome: 'named', id: '16' }],
    ['{"id":10,"sku":"KEY-A","regular_price":"1.00"}', { outcome: 'ignored' }],
    ['{"action":"woocommerce_add_to_cart","arg":1}', { outcome: 'ignored' }],
    ['{"id":"16","order_key":"x"}', { outcome: 'ignored' }],
    ['[]', { outcome: 'ignored' }],
    ['{"id":16', { outcome: 'unreadable' }],
  ])('%s names what it is about', (body, named) => {
    expect(orderNamedBy(Buffer.from(body))).toMatchObject(named)
  })
})

describe('the orders that changed', () => {
  const from = Date.parse('2026-11-20T21:00:00Z')
  const second = (count: number) => from + count * 1000
  const page = (last: number) => Array.from({ length: 100 }, (_, index) => second(index === 99 ? last : 0))

  test('are asked for from the second that is still to be read', () => {
    expect(ordersQuery({ from, page: 1 })).toMatchObject({ orderby: 'modified', modified_after: '2026-11-20T20:59:59' })
    expect(ordersQuery({ from, page: 3 })).toMatchObject({
      orderby: 'id',
      modified_after: '2026-11-20T20:59:59',
      modified_before: '2026-11-20T21:00:01',
      page: '2',
    })
  })

  test('go on in the second of the last one, because others may have changed in it', () => {
    expect(nextOrders({ from, page: 1 }, page(30), 250)).toEqual({ next: { from: second(30), page: 1 }, more: true })
  })

  test('of one second that fills a page are read by number, and again from the first where one left', () => {
    const first = nextOrders({ from, page: 1 }, page(0), 250).next
    expect(first).toEqual({ from, page: 2 })
    const second_ = nextOrders(first, page(0), 150).next
    expect(second_).toEqual({ from, page: 3, total: 150, read: 100 })
    expect(nextOrders(second_, page(0).slice(50), 149).next).toEqual({ from, page: 2, total: 149 })
    expect(nextOrders(second_, page(0).slice(50), 150)).toEqual({ next: { from: second(1), page: 1 }, more: true })
  })

  test('go on after a page that is shorter than asked for, because the shop gives no longer ones', () => {
    const short = (last: number) => page(last).slice(60)
    expect(nextOrders({ from, page: 1 }, short(30), 100)).toEqual({ next: { from: second(30), page: 1 }, more: true })
    expect(nextOrders({ from, page: 1 }, short(0), 100)).toEqual({ next: { from, page: 2 }, more: true })
    const first = nextOrders({ from, page: 2 }, short(0), 100)
    expect(first).toEqual({ next: { from, page: 3, total: 100, read: 40 }, more: true })
    const last = nextOrders({ from, page: 4, total: 100, read: 80 }, short(0).slice(20), 100)
    expect(last).toEqual({ next: { from: second(1), page: 1 }, more: true })
    expect(nextOrders({ from, page: 1 }, [], 100), 'a page without orders ends the list').toMatchObject({ more: false })
  })

  test('overlap by ten minutes at the end, and never go back before where they began', () => {
    expect(nextOrders({ from, page: 1 }, [second(3600)], 1)).toEqual({
      next: { from: second(3000), page: 1 },
      more: false,
    })
    expect(nextOrders({ from, page: 1 }, [second(30)], 1)).toEqual({ next: { from, page: 1 }, more: false })
    expect(nextOrders({ from, page: 1 }, [], 0)).toEqual({ next: { from, page: 1 }, more: false })
  })
})
