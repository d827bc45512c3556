/** A made-up supplier with the hardest of all habits at once. */
import { createHmac } from 'node:crypto'
import {
  type Asked,
  afterCursor,
  type Card,
  eurosText,
  fields,
  firstIn,
  grantToken,
  type Habits,
  hasToken,
  iso,
  newest,
  type Product,
  type Reply,
  type Sold,
} from './double.ts'

const SIZE = 7

const refusal = (status: number, id: string): Reply => ({ status, body: { fault: { id, text: `${id}.` } } })

const entry = ({ id, sku, name, costMinor, stock }: Product) => ({
  ref: id,
  names: { sku, title: name },
  pricing: { unit: { value: eurosText(costMinor), unit: 'EUR' } },
  left: stock,
})

const purchase = ({ id, reference, product, quantity, amountMinor, at, status }: Sold) => ({
  no: `p-${id}`,
  external: reference,
  lines: [{ item: product.id, units: quantity }],
  phase: { open: 'PACKING', done: 'READY', failed: 'DROPPED' }[status],
  total: { value: eurosText(amountMinor), unit: 'EUR' },
  made: iso(at),
})

const code = ({ type, text }: Card) => ({ kind: { text: 'CODE', url: 'LINK', image: 'PICTURE' }[type], content: text })

const page = <T>({ query }: Asked, list: T[]): Reply => {
  const { items, next } = afterCursor(list, query.get('after'), SIZE)
  return { body: { entries: items, next: next ?? null } }
}

export const SECRET = `whsec_${Buffer.from('everything-webhook-secret-0123456789').toString('base64')}`

/** A delivery as Svix signs it: id, instant and body, under the decoded secret. */
export function delivery(sold: Sold, at: number): { headers: Record<string, string>; body: string } {
  const body = JSON.stringify({ kind: 'purchase.ready', data: { no: `p-${sold.id}`, external: sold.reference } })
  const [id, stamp] = [`msg_${sold.id}`, String(Math.floor(at / 1_000))]
  const key = Buffer.from(SECRET.replace('whsec_', ''), 'base64')
  const mac = createHmac('sha256', key).update(`${id}.${stamp}.${body}`).digest('base64')
  const signed = { 'svix-id': id, 'svix-timestamp': stamp, 'svix-signature': `v1,${mac}` }
  return { headers: { ...signed, 'content-type': 'application/json' }, body }
}

export const everything: Habits = {
  name: 'everything',
  like: 'all of them at once',
  base: '/v7',
  apiKey: 'everything-client:everything-secret-0123456789',
  cards: ['text', 'url', 'image'],
  readsUntilDone: 1,
  refuses: (asked, world) => (asked.path === '/v7/token' || hasToken(asked, world) ? undefined : refusal(401, 'TOKEN')),
  routes: {
    'POST /token': ({ body }, world) =>
      grantToken(world, everything.apiKey, Object.fromEntries(new URLSearchParams(body))),
    'GET /items': (asked, { products }) => page(asked, products.map(entry)),
    'GET /items/{id}': (_, world, id) => {
      const product = world.product(id)
      return product ? { body: entry(product) } : refusal(404, 'NO_ITEM')
    },
    'POST /purchases': ({ json }, world) => {
      const { external, lines, partial } = fields(fields(json).purchase)
      const { item, units, price } = firstIn(lines)
      const product = world.product(item)
      if (typeof external !== 'string' || partial !== false || !product) return refusal(400, 'MALFORMED')
      if (price !== eurosText(product.costMinor)) return refusal(409, 'OTHER_PRICE')
      // A second request buys a second time.
      const sold = world.sell(item, units, external)
      return typeof sold === 'string' ? refusal(409, 'NOT_SOLD') : { status: 202, body: { no: `p-${sold.id}` } }
    },
    'GET /purchases': (asked, world) => page(asked, newest(world).map(purchase)),
    'GET /purchases/{id}': (_, world, id) => {
      const sold = world.read(id.replace('p-', ''))
      return sold ? { body: purchase(sold) } : refusal(404, 'NO_PURCHASE')
    },
    'GET /purchases/{id}/codes': ({ query }, world, id) => {
      const sold = world.order(id.replace('p-', ''))
      if (sold?.status !== 'done') return refusal(404, 'NO_CODES')
      const { items, next } = afterCursor(sold.cards.map(code), query.get('after'), 2)
      return { body: { codes: items, next: next ?? null } }
    },
    'GET /purse': (_, world) => ({ body: { free: { value: eurosText(world.balanceMinor()), unit: 'EUR' } } }),
  },
  buys: 'POST /purchases',
}
