import { execFileSync } from 'node:child_process'
import { describe, expect, test } from 'vitest'
import {
  isAmount,
  KEYS_META,
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

const ORDERS = new URL('../../src/stores/woocommerce/orders.ts', import.meta.url).href
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

  test.each([
    ['pending', 'unpaid', 'is pending in the shop, and not paid'],
    ['failed', 'unpaid', 'is failed in the shop, and not paid'],
    ['checkout-draft', 'unpaid', 'is checkout-draft in the shop, and not paid'],
    ['on-hold', 'held', 'is on hold in the shop'],
  ] as const)('that is %s although it was paid once says why it waits, and is sound', (status, standing, because) => {
    const order = read((one) => Object.assign(one, { status }))
    expect(order).toMatchObject({ standing, because, fullyPaid: true })
    expect(order).not.toHaveProperty('fault')
  })

  test('that a plug-in numbers is known by that number, any other by its id', () => {
    expect(read((one) => Object.assign(one, { number: 'EN-2026-17' })).number).toBe('EN-2026-17')
    expect(read((one) => one)).not.toHaveProperty('number')
  })

  test('that is processing without a payment is for its merchant to end, who needs no alert', () => {
    expect(read((one) => Object.assign(one, { date_paid_gmt: null }))).toMatchObject({
      standing: 'unpaid',
      because: expect.stringContaining('paid on delivery'),
      isForMerchant: 'unalerted',
      fullyPaid: false,
      paidAt: null,
    })
  })

  test('in a status that the merchant made names the setting for it, and only once it is paid', () => {
    const held = read((one) => Object.assign(one, { status: 'wc-checked' }))
    expect(held.because).toContain('name it in stores[].statuses')
    expect(held.fault).toBe(`the order ${held.because}`)
    const unpaid = read((one) => Object.assign(one, { status: 'wc-checked', date_paid_gmt: null }))
    expect(unpaid).toMatchObject({ standing: 'unpaid', because: 'is wc-checked in the shop, and not paid' })
    expect(unpaid).not.toHaveProperty('fault')
  })

  test('has each of its three dates, in GMT', () => {
    const order = read((one) =>
      Object.assign(one, {
        date_created_gmt: '2026-11-20T01:00:00',
        date_paid_gmt: '2026-11-20T02:00:00',
        date_modified_gmt: '2026-11-20T03:00:00',
      }),
    )
    const hours = [order.placedAt, order.paidAt, order.changedAt].map((at) =>
      new Date(at ?? 0).toISOString().slice(11, 16),
    )
    expect(hours).toEqual(['01:00', '02:00', '03:00'])
  })

  test('has the same dates wherever the machine is', () => {
    const reading = `
      const { shopOrder, storeOrderOf, NO_REFUNDS } = await import(${JSON.stringify(ORDERS)})
      const order = shopOrder.parse(${JSON.stringify(captured())})
      console.log(new Date(0).getTimezoneOffset(), storeOrderOf(order, { refunded: NO_REFUNDS, statuses: [] }).paidAt)`
    const elsewhere = { ...process.env, TZ: 'America/New_York' }
    const said = execFileSync(process.execPath, ['--input-type=module', '-e', reading], {
      env: elsewhere,
      encoding: 'utf8',
    })
    expect(said.trim()).toBe(`300 ${Date.parse('2026-11-20T21:22:58Z')}`)
  })

  test('that costs nothing is paid, by nothing for each unit', () => {
    const order = read((one) => {
      for (const line of one.line_items) line.total = '0.00'
      one.total = '0.00'
    })
    expect(order).toMatchObject({ standing: 'paid', lines: [{ unitPrice: '0.00' }, { unitPrice: '0.00' }] })
    expect(order).not.toHaveProperty('fault')
  })

  test('in a currency without decimals has prices and refunds without them', () => {
    const refund = { amount: '50', line_items: [], shipping_lines: [], fee_lines: [] }
    const order = read(
      (one) => {
        one.line_items.forEach((line, place) => {
          line.total = ['4201', '3300'][place] ?? ''
        })
        Object.assign(one, { currency: 'JPY', total: '7501' })
      },
      refundedBy([refund]),
    )
    expect(order).toMatchObject({ refundedAmount: '50', lines: [{ unitPrice: '2100' }, { unitPrice: '3300' }] })
    expect(order).not.toHaveProperty('fault')
  })

  test('is done once it is completed, and has our mark once a line of it has keys', () => {
    expect(read()).not.toHaveProperty('isDone')
    expect(read()).not.toHaveProperty('hasOurKeys')
    const order = read((one) => {
      one.status = 'completed'
      const metas = ['Edition', KEYS_META].map((key, id) => ({ id, key, value: '[]' }))
      firstLine(one).meta_data = metas
    })
    expect(order).toMatchObject({ isDone: true, hasOurKeys: true })
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

  describe('of which something was refunded', () => {
    const none = { line_items: [], shipping_lines: [], fee_lines: [] }
    const item = (set: object) => ({ quantity: -1, total: '-21.00', total_tax: '', meta_data: [], ...set })
    const named = (value: unknown) => [
      { key: 'Edition', value: '9' },
      { key: '_refunded_item_id', value },
    ]
    const having = (...refunds: Parameters<typeof refundedBy>[0]) => read(() => {}, refundedBy(refunds))

    test('has none of a line of which more came back than it has', () => {
      const refund = {
        ...none,
        amount: '63.00',
        line_items: [item({ quantity: -3, total: '-63.00', meta_data: named(1) })],
      }
      expect(having(refund).lines.map(({ quantity }) => quantity)).toEqual([0, 1])
      expect(having(refund)).not.toHaveProperty('fault')
    })

    test('has the money of a line that went back without units as money that names none', () => {
      const refund = {
        ...none,
        amount: '1.00',
        line_items: [item({ quantity: 0, total: '-1.00', meta_data: named('1') })],
      }
      expect(having(refund)).toMatchObject({ refundedAmount: '1.00', lines: [{ quantity: 2 }, { quantity: 1 }] })
    })

    test('sums the money of several refunds, and takes off nothing for one that says more than it paid', () => {
      const whole = { ...none, amount: '2.00' }
      const short = { ...none, amount: '20.00', line_items: [item({ meta_data: named('1') })] }
      expect(having(whole, whole)).toMatchObject({ refundedAmount: '4.00' })
      expect(having(whole, short)).toMatchObject({ refundedAmount: '2.00' })
      expect(having(short)).not.toHaveProperty('refundedAmount')
    })

    test.each([
      ['a line that it does not name', { ...none, amount: '21.00', line_items: [item({})] }],
      ['a line that is null', { ...none, amount: '21.00', line_items: [item({ meta_data: named(null) })] }],
      ['an amount that cannot be read', { ...none, amount: '1,00' }],
    ])('is not bought where it is of %s', (_, refund) => {
      expect(having(refund).fault).toBe('units were refunded, and the shop does not say of which line')
    })
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
    ['cannot be read', (order) => Object.assign(firstLine(order), { total: '' })],
    ['cannot be read', (order) => Object.assign(order, { shipping_total: '' })],
    ['whole number', (order) => Object.assign(firstLine(order), { quantity: -1 })],
    [
      'less than nothing',
      (order) =>
        Object.assign(order, { total: '32.00' }).line_items.splice(0, 1, { ...firstLine(order), total: '-1.00' }),
    ],
  ])('with %s has that as its fault', (fault, change) => {
    expect(read(change).fault).toContain(fault)
  })

  test('of which one quantity cannot be read has no lines: rounded, it could read as one that was taken out', () => {
    expect(read((order) => Object.assign(firstLine(order), { quantity: 1.5 })).lines).toEqual([])
    const order = read((one) => Object.assign(firstLine(one), { quantity: 0 }))
    expect(order.lines).toMatchObject([{ quantity: 0, unitPrice: '0.00' }, { quantity: 1 }])
    expect(order).not.toHaveProperty('fault')
  })

  test.each([
    ['75.03', true],
    ['74.97', true],
    ['75.04', false],
    ['74.96', false],
  ])('of two lines of 75.00 and a fee that costs %s fits by a minor unit for each of them: %s', (total, isSound) => {
    const { fault } = read((order) => Object.assign(order, { total, fee_lines: [{ total: '0.00' }] }))
    expect(fault).toBe(isSound ? undefined : 'the total of the order does not fit its lines')
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
    const typed = (type?: string[]) => verifyDelivery({ ...ping, headers: { 'content-type': type } }, secret).outcome
    expect(typed(['Application/X-WWW-Form-Urlencoded; charset=utf-8'])).toBe('ping')
    expect([typed(['application/json']), typed([]), typed()]).toEqual(Array(3).fill('not_authentic'))
    const other = { ...ping, body: Buffer.from('webhook_id=1&order=2') }
    expect(verifyDelivery(other, secret)).toEqual({ outcome: 'not_authentic', reason: 'no_signature' })
  })

  test.each([
    ['{"id":16,"order_key":"wc_order_1","total":"0.01"}', { outcome: 'named', id: '16', orderKey: 'wc_order_1' }],
    ['{"action":"woocommerce_order_status_processing","arg":19}', { outcome: 'named', id: '19' }],
    ['{"action":"woocommerce_order_status_processing","arg":"19"}', { outcome: 'named', id: '19' }],
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
    expect(ordersQuery({ from, page: 1 })).toEqual({
      per_page: '100',
      order: 'asc',
      dates_are_gmt: 'true',
      orderby: 'modified',
      modified_after: '2026-11-20T20:59:59',
    })
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

  test('of a shop that does not count them go on while pages are full', () => {
    expect(nextOrders({ from, page: 1 }, page(30), undefined)).toEqual({
      next: { from: second(30), page: 1 },
      more: true,
    })
    expect(nextOrders({ from, page: 1 }, page(30).slice(1), undefined).more).toBe(false)
    expect(nextOrders({ from, page: 2 }, page(0), undefined)).toEqual({ next: { from, page: 3 }, more: true })
    expect(nextOrders({ from, page: 3 }, page(0).slice(1), undefined)).toEqual({
      next: { from: second(1), page: 1 },
      more: true,
    })
  })

  test('of one second are read to the last of them', () => {
    expect(nextOrders({ from, page: 2 }, page(0), 101)).toMatchObject({ next: { page: 3, read: 100 }, more: true })
    expect(nextOrders({ from, page: 3, total: 101, read: 100 }, [from], 101).next).toEqual({ from: second(1), page: 1 })
    expect(nextOrders({ from, page: 3, total: 150, read: 100 }, page(0).slice(51), 149).more).toBe(true)
  })

  test('are read from ten minutes before the clock of the shop, where it dates them into the future', () => {
    expect(nextOrders({ from, page: 1 }, [second(9 * 3600)], 1, second(1800))).toEqual({
      next: { from: second(1200), page: 1 },
      more: false,
    })
    expect(nextOrders({ from, page: 1 }, [], 0, second(-3600)).next).toEqual({ from: second(-4200), page: 1 })
    expect(nextOrders({ from, page: 1 }, [], 0, from).next).toEqual({ from, page: 1 })
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

test.each([
  ['9.00', true],
  ['23.456789', true],
  ['', false],
  ['6,20', false],
  [9, false],
  [null, false],
])('%j is an amount that WooCommerce could have stored: %s', (text, isOne) => {
  expect(isAmount(text, 'EUR')).toBe(isOne)
})
