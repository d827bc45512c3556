import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { type Dialect, dialectShape } from '../../src/dialect/dialect.ts'
import { openDeliveryEndpoint } from '../support/dialect-endpoint.ts'
import { standard } from '../support/dialect-pair.ts'
import { openTestApp } from '../support/test-app.ts'

/** Every path of a dialect, with the objects: `event`, `event.names`, `event.names.balance.low`. */
function placesOf(value: unknown, way: string[] = []): string[][] {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return [way]
  const inner = Object.entries(value).flatMap(([name, one]) => placesOf(one, [...way, name]))
  return way.length === 0 ? inner : [way, ...inner]
}

function withNull(dialect: Dialect, way: string[]): unknown {
  const copy = structuredClone(dialect) as unknown as Record<string, unknown>
  const last = way.at(-1) ?? ''
  const place = way.slice(0, -1).reduce((at, name) => at[name] as Record<string, unknown>, copy)
  place[last] = null
  return copy
}

const nullable = placesOf(standard).filter((way) => dialectShape.safeParse(withNull(standard, way)).success)

/** A supplier without every optional thing, except the reference of an order in its events. */
const sparse = nullable
  .filter((way) => way.join('.') !== 'event.externalOrderId')
  .reduce<Dialect>((dialect, way) => withNull(dialect, way) as Dialect, standard)

describe('null in a dialect', () => {
  test('is accepted exactly where the page says so', () => {
    const document = readFileSync(new URL('../../docs/dialect.md', import.meta.url), 'utf8')
    const [, section = ''] = /## What a supplier does not have\n([\s\S]*?)\n## /.exec(document) ?? []
    const texts = new Set([...section.matchAll(/`([^`]+)`/g)].map(([, name = '']) => name))
    const named = [...texts].filter((name) => name !== 'null')
    const groups = nullable.map((way) => way.join('.').replace(/^(errors|event\.names)\..*/, '$1.*'))
    expect(named.sort()).toEqual([...new Set(groups)].toSorted())
  })

  test('is refused for both ids of an order event at once, unless the supplier sends none', () => {
    const event = { ...standard.event, orderId: null, externalOrderId: null }
    expect(dialectShape.safeParse({ ...standard, event }).success).toBe(false)
    const names = { ...event.names, 'order.completed': null, 'order.failed': null }
    expect(dialectShape.safeParse({ ...standard, event: { ...event, names } }).success).toBe(true)
  })

  test('everywhere still allows to buy an order', async () => {
    const app = await openTestApp({ dialect: sparse })
    app.sandbox.faults.add({ fault: 'answer-lost' })
    const orderId = await app.buy('1001')
    await app.pass(10 * 60_000)
    expect(await app.state(orderId)).toBe('fulfilled')
    app.expectLedger({ charges: 1, keys: 1 })
  })

  test('for the product of an event: such an event is ignored, and an order event is not', async () => {
    const dialect = { ...standard, event: { ...standard.event, productId: null } }
    const app = await openTestApp({ dialect })
    const endpoint = await openDeliveryEndpoint(app)
    const { productId } = await app.offer()
    app.sandbox.world.offers.change(productId, { stock: 0 })
    await app.buy('1001')
    app.sandbox.world.offers.change(productId, { stock: 5 })
    await app.pass(5_000)
    await app.sandbox.deliverDue()
    await endpoint.process()
    const rows = (await endpoint.rows()).map(({ event, state }) => `${event} ${state}`)
    expect([...new Set(rows)].sort()).toEqual([
      ...['order.completed applied', 'product.out_of_stock ignored', 'product.restocked ignored'],
    ])
  })

  test('for the name of an event: the webhook does not ask for it', async () => {
    const names = { ...standard.event.names, 'product.price_changed': null, 'balance.low': null }
    const dialect = { ...standard, event: { ...standard.event, names } }
    const app = await openTestApp({ dialect })
    await openDeliveryEndpoint(app)
    expect(app.sandbox.world.webhooks.list().map(({ events }) => events)).toEqual([
      ['order.completed', 'order.failed', 'product.restocked', 'product.out_of_stock'],
    ])
  })

  test('for an error kind: its code is unknown, and means what an unknown code means', async () => {
    const dialect = { ...standard, errors: { ...standard.errors, insufficient_balance: null, out_of_stock: null } }
    const app = await openTestApp({ dialect })
    app.sandbox.faults.add({ fault: 'insufficient-balance' })
    const orderId = await app.buy('1001')
    await app.pass(60_000)
    expect(await app.state(orderId), 'an unknown 4xx is a refusal').toBe('failed')
    app.sandbox.faults.add({ fault: 'out-of-stock' })
    const other = await app.buy('1002')
    await app.settle()
    expect(await app.purchase(other), 'an unknown 409 may hide a charge').toMatchObject({ state: 'unknown' })
    app.expectLedger({ charges: 0, keys: 0 })
  })
})
