import { createHmac } from 'node:crypto'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { type Dialect, dialectShape } from '../../src/dialect/dialect.ts'
import { defaultDialect, openReceiver, openSandbox, productOf, startAt } from '../support/sandbox-caller.ts'

/** Far from the default in most settings. */
function otherDialect(): Dialect {
  const other = structuredClone(defaultDialect())
  other.name = 'other'
  other.headers = {
    apiKey: 'x-token',
    idempotencyKey: 'x-once',
    requestId: 'x-trace',
    rateLimit: 'x-quota',
    rateRemaining: 'x-quota-left',
    rateReset: 'x-quota-reset',
    retryAfter: 'x-wait',
  }
  other.rateResetUnit = 'left_s'
  other.signature = {
    header: 'x-signed',
    encoding: 'base64',
    prefix: 'v1=',
    timestamp: { in: 'signature', field: 't' },
    timestampUnit: 'ms',
    toleranceSeconds: 60,
    deliveryIdHeader: 'x-message-id',
  }
  other.event = {
    name: 'kind',
    occurredAt: 'when',
    orderId: 'order.uuid',
    externalOrderId: 'order.yours',
    status: 'order.state',
    productId: 'item',
    names: { ...other.event.names, 'order.completed': 'ORDER_DONE' },
    keys: 'order.codes',
  }
  other.envelope = { success: null, data: '' }
  other.error = { success: null, code: 'problem', message: 'detail.text', requestId: 'trace' }
  other.errors.out_of_stock = { codes: ['E_EMPTY'], status: 410 }
  other.money = { representation: 'minor', currency: 'JPY' }
  other.instants = 'epoch_s'
  other.paging = {
    page: 'p',
    limit: 'n',
    first: 0,
    limitMax: 25,
    limitDefault: 10,
    items: 'rows',
    total: null,
    more: 'paging.next',
    totalFiltered: false,
    listMax: null,
  }
  other.products = { search: 'find', category: 'group', inStock: 'buyable' }
  other.product = { ...other.product, id: 'key.uuid', cost: 'price.vip', cashback: null, currency: null }
  other.orderRequest = { productId: 'item', quantity: 'count', externalOrderId: 'yours' }
  other.orderRequired = ['productId', 'quantity', 'externalOrderId']
  other.order = {
    ...other.order,
    id: 'uuid',
    externalOrderId: 'yours',
    status: 'state.word',
    amount: 'sum',
    keys: 'codes',
    keyText: 'code',
    failureCode: null,
    failureMessage: null,
    createdAt: 'made',
  }
  other.orderStatuses = { NEW: 'open', DONE: 'completed', BAD: 'failed' }
  other.orders = { externalOrderId: null, status: 'state', from: 'since', to: 'until' }
  other.balance = { ...other.balance, amount: 'credit', tier: null, requestsPerMinute: 'rpm' }
  other.webhookRequest = { url: 'target.url', events: 'topics' }
  other.webhook = { id: 'hook', url: 'target', events: 'topics', secret: 'signing.key', createdAt: null }
  return dialectShape.parse(other)
}

let sandbox: Awaited<ReturnType<typeof openSandbox>>
beforeEach(async () => {
  sandbox = await openSandbox({ dialect: otherDialect() })
})
afterEach(() => sandbox.close())

describe('another dialect', () => {
  it('pages with its own names and a flag instead of a count', async () => {
    const first = await sandbox.get('/products?p=0&n=25')
    const last = await sandbox.get('/products?p=2&n=25')
    expect([first.at('paging.next'), last.at('paging.next')]).toEqual([true, false])
    expect((last.at('rows') as unknown[]).length).toBe(11)
    expect((first.at('rows') as unknown[])[0]).toMatchObject({
      key: { uuid: expect.any(String) },
      price: { vip: 1899 },
      updated_at: startAt / 1000,
    })
    expect((await sandbox.get('/products?p=0&n=26')).status).toBe(400)
    expect((await sandbox.get('/products?page=1')).at('detail.text')).toContain('page')
    expect(((await sandbox.get('/products?group=vpn&find=tunnel&buyable=true')).at('rows') as unknown[]).length).toBe(1)
  })

  it('sells, charges once for a repeat, and announces with its own signature layout and keys', async () => {
    const receiver = await openReceiver()
    const made = await sandbox.post('/webhooks', { target: { url: receiver.url }, topics: ['ORDER_DONE'] })
    expect(made.status).toBe(201)
    const offer = productOf(sandbox, 'GAM-DEEPHARB')
    const placed = await sandbox.order('once-1', { productId: offer.id, quantity: 2, externalOrderId: 'shop-1' })
    expect(placed.body).toMatchObject({ yours: 'shop-1', state: { word: 'NEW' }, sum: 2980, codes: [], quantity: 2 })
    expect(
      (await sandbox.order('once-1', { productId: offer.id, quantity: 2, externalOrderId: 'shop-1' })).body,
    ).toEqual(placed.body)
    expect((await sandbox.get('/balance')).at('credit')).toBe(250_000 - 2980)
    sandbox.pass(1500)
    const done = await sandbox.get(`/orders/${placed.at('uuid')}`)
    expect(done.at('state.word')).toBe('DONE')
    expect(done.at('codes')).toEqual([{ code: expect.any(String) }, { code: expect.any(String) }])
    expect(
      ((await sandbox.get('/orders?state=DONE&since=1767225600&until=1767225600')).at('rows') as unknown[]).length,
    ).toBe(1)

    await sandbox.deliverDue()
    await receiver.close()
    const [delivery] = receiver.got
    const at = startAt + 1500
    const mac = createHmac('sha256', String(made.at('signing.key')))
      .update(`${at}.${delivery?.body}`)
      .digest('base64')
    expect(delivery?.headers['x-signed']).toBe(`t=${at},v1=${mac}`)
    expect(delivery?.headers['x-message-id']).toMatch(/^dlv_/)
    expect(JSON.parse(delivery?.body ?? '')).toEqual({
      kind: 'ORDER_DONE',
      when: Math.floor(at / 1000),
      order: { uuid: placed.at('uuid'), yours: 'shop-1', state: 'DONE', codes: done.at('codes') },
    })
  })

  it('refuses in its own words, statuses and headers', async () => {
    const reply = await sandbox.order('once-2', { productId: productOf(sandbox, 'GAM-IRONMER-SP').id })
    expect(reply.status).toBe(410)
    expect(reply.body).toEqual({
      problem: 'E_EMPTY',
      detail: { text: expect.any(String) },
      trace: reply.headers.get('x-trace'),
    })
    expect(reply.headers.get('x-quota')).toBe('600')
    expect(reply.headers.get('x-quota-reset')).toBe('1')
    expect(reply.headers.get('x-request-id')).toBeNull()
    expect((await sandbox.get('/balance', { 'x-api-key': 'test-api-key' })).status).toBe(401)
    const missing = await sandbox.post('/orders', { item: 'x', count: 1 }, { 'x-once': 'k' })
    expect(missing.at('detail.text')).toContain('yours')
  })

  it('calls a refunded order failed where it has no word for refunds', async () => {
    const placed = await sandbox.order('once-3', { productId: productOf(sandbox, 'GAM-DEEPHARB').id })
    sandbox.pass(300)
    await sandbox.control('POST', `/orders/${placed.at('uuid')}/refund`)
    expect((await sandbox.get(`/orders/${placed.at('uuid')}`)).at('state.word')).toBe('BAD')
  })

  it('ends its lists where the dialect says, and counts all records with any filters', async () => {
    await sandbox.close()
    const paging = { ...otherDialect().paging, total: 'all', totalFiltered: false, listMax: 30 }
    sandbox = await openSandbox({ dialect: { ...otherDialect(), paging } })
    const pages = [0, 1, 2].map((page) => sandbox.get(`/products?p=${page}&n=25`))
    const shown = (await Promise.all(pages)).map((page) => [
      (page.at('rows') as unknown[]).length,
      page.at('paging.next'),
    ])
    expect(shown).toEqual([
      [25, true],
      [5, false],
      [0, false],
    ])
    const vpns = await sandbox.get('/products?group=vpn&n=25')
    expect((vpns.at('rows') as unknown[]).length).toBeLessThan(25)
    expect(vpns.at('all')).toBe(61)
  })
})
