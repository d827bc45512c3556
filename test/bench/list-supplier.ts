/** The supplier of `bench -- dry-run`, in a process of its own: offers made from their number, one price in a hundred new. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

const count = Number(process.argv[2])

const record = (index: number) => ({
  id: `p${String(index).padStart(7, '0')}`,
  sku: `SKU-${String(index).padStart(7, '0')}`,
  name: `Product number ${index}`,
  category: 'games',
  api_price: index % 100 === 0 ? '11.00' : '10.00',
  base_price: '12.00',
  cashback: '0.10',
  currency: 'EUR',
  local_stock: 3,
  provider_stock: 4,
  available: true,
  fulfillment_origin: 'local',
})

const server = createServer((request, response) => {
  const { searchParams } = new URL(request.url ?? '', 'http://list')
  const [page, limit] = [Number(searchParams.get('page')), Number(searchParams.get('limit'))]
  const from = (page - 1) * limit
  const items = Array.from({ length: Math.max(0, Math.min(limit, count - from)) }, (_, index) => record(from + index))
  response.setHeader('content-type', 'application/json')
  response.end(JSON.stringify({ success: true, data: { items, total: count, next: from + limit < count } }))
})
server.listen(0, '127.0.0.1', () => {
  const { port } = server.address() as AddressInfo
  process.stdout.write(`${JSON.stringify({ baseUrl: `http://127.0.0.1:${port}/v1` })}\n`)
})
// It ends with the bench, however that ends.
process.stdin.resume().once('end', () => process.exit(0))
