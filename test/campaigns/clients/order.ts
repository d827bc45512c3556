/** A backend in TypeScript: places an order with the client that `openapi-typescript` made, then looks at it. */
import createClient from 'openapi-fetch'
import type { components, paths } from './quayside.d.ts'

type Order = components['schemas']['TakeOrderBody']

const { QUAYSIDE_URL, QUAYSIDE_TOKEN } = process.env
const client = createClient<paths>({
  baseUrl: `${QUAYSIDE_URL}/api/v1`,
  headers: { authorization: `Bearer ${QUAYSIDE_TOKEN}` },
})

async function place(reference: string) {
  const { data: listings } = await client.GET('/listings', { params: { query: { limit: 200 } } })
  const listing = listings?.data.items.find(({ stock }) => (stock ?? 0) > 10)
  const { sku = '', price, currency } = listing ?? {}
  const order: Order = { reference, lines: [{ id: '1', sku, quantity: 2, unitPrice: price, currency }] }
  const taken = await client.POST('/orders', { body: order })
  const repeated = await client.POST('/orders', { body: order })
  const other = await client.POST('/orders', { body: { reference, lines: [{ id: '1', sku, quantity: 3 }] } })
  const isReused = other.error?.error.code === 'reference_reused'
  const invalid = await client.POST('/orders', { body: { ...order, lines: [{ id: '1', sku, quantity: 0 }] } })
  return {
    taken: taken.response.status,
    repeated: repeated.response.status,
    isReused,
    field: invalid.error?.error.fields?.[0]?.field,
  }
}

async function show(reference: string) {
  const { data: order } = await client.GET('/orders/{reference}', { params: { path: { reference } } })
  const [line] = order?.data.lines ?? []
  return { state: order?.data.state, keys: line?.keys?.length }
}

const [command, reference = ''] = process.argv.slice(2)
process.stdout.write(JSON.stringify(await (command === 'place' ? place(reference) : show(reference))))
