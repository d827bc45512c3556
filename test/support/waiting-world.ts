/** An installation in which a customer waits for every cause that real flows lead to, in a backend and in a shop. */
import { formatDecimal } from '../../src/domain/money.ts'
import { listOutbox, markEffectDead } from '../../src/storage/outbox.ts'
import { type ApiWorld, openApi } from './api-world.ts'
import { besideShop, passingTime } from './shop-app.ts'
import { STORE } from './test-app.ts'

const MINUTE = 60_000
const CAP_MINOR = 30_000

/** The order of each cause in the backend, and of those in the shop by what happened there. */
export type WaitingWorld = Awaited<ReturnType<typeof openWaiting>>

export async function openWaiting() {
  const { shop, beside } = await besideShop()
  const world = await openApi({
    balanceMinor: 2_500_000,
    beside,
    storeNames: { [STORE]: 'Main store' },
    policy: { caps: { order: CAP_MINOR, hour: null, day: null } },
  })
  const { sandbox, db, shop: backend } = world
  const time = passingTime(world)
  const offers = await world.offers()
  const at = (place: number) => {
    const offer = offers[place]
    if (!offer) throw new Error('the supplier offers too little')
    return offer
  }
  /** A customer of the backend pays 30 % more than each unit costs. */
  const buys = (
    reference: string,
    place: number,
    quantity = 1,
    unitPriceMinor = Math.round(at(place).costMinor * 1.3),
  ) => world.order(reference, [{ sku: at(place).sku, quantity, unitPriceMinor }])
  const sold = [at(8), at(9)].map(({ name, sku, costMinor }) =>
    shop.addProduct({
      name,
      sku,
      regular_price: formatDecimal({ minor: costMinor * 2, currency: 'EUR' }),
      manage_stock: true,
      stock_quantity: 50,
      virtual: true,
    }),
  )
  const shopSells = (place: number, quantity = 1) => shop.buy({ lines: [{ product: sold[place]?.id ?? 0, quantity }] })

  sandbox.faults.add({ fault: 'partial-keys', first: 1, delayMs: 20 * 60 * MINUTE })
  await buys('1001-review', 0, 3)
  await world.pass(90 * MINUTE)
  await buys('1002-fine', 1)
  await world.pass(MINUTE)
  sandbox.faults.add({ fault: 'failed-order', times: 2 })
  await buys('1003-known', 1)
  await world.pass(10 * MINUTE)

  // What the shop does not say by webhooks is read by polling, minute by minute.
  await time.pass(2 * MINUTE)
  const failedInShop = shopSells(0)
  await time.pass(10 * MINUTE)
  const held = shopSells(1)
  const added = shopSells(0)
  sandbox.world.offers.change(at(9).productId, { stock: 0 })
  await time.pass(5 * MINUTE)
  shop.setStatus(held.id, 'on-hold')
  shop.edit(added.id, (order) => {
    for (const line of order.lines)
      Object.assign(line, { quantity: 2, total: line.total * 2, subtotal: line.subtotal * 2 })
  })
  await time.pass(5 * MINUTE)

  backend.answerNext(500)
  await buys('1005-dead', 2)
  await world.pass(4_000)
  const [message] = await db.query(listOutbox({ state: 'due', kind: 'callback', limit: 1 }))
  if (message) await db.commit([markEffectDead(message.id, 12, 'the store answered 500')])
  sandbox.faults.add({ fault: 'hold-open', match: { productId: at(3).productId } })
  await buys('1006-coming', 3)
  sandbox.world.offers.change(at(4).productId, { stock: 0 })
  await buys('1007-stock', 4)
  await buys('1008-ceiling', 5, 1, 100)
  sandbox.faults.add({ fault: 'insufficient-balance', times: 1_000, match: { productId: at(6).productId } })
  await buys('1009-balance', 6)
  await buys('1010-cap', 7, Math.ceil(CAP_MINOR / at(7).costMinor) + 1)
  sandbox.faults.add({
    fault: 'error-before',
    times: 100_000,
    match: { path: `/products/${at(10).productId}`, method: 'GET' },
  })
  await buys('1011-unread', 10)
  await world.pass(3 * MINUTE)
  backend.answerNext(500, 2)
  await buys('1012-away', 1)
  await world.pass(20_000, 5_000)
  // Its answer is lost, and for a day no list of the supplier has it.
  sandbox.faults.add({ fault: 'answer-lost' })
  sandbox.faults.add({ fault: 'list-lag', delayMs: 1_440 * MINUTE })
  await buys('1013-lost', 11)
  await world.pass(20_000, 5_000)
  await buys('1014-fresh', 1)
  return { ...world, time, woo: shop, inShop: { failed: failedInShop.id, held: held.id, added: added.id } }
}

/** The causes of the lines that wait, by the number of their order. */
export async function causesIn({ ask }: Pick<ApiWorld, 'ask'>): Promise<Record<string, string>> {
  const { body } = await ask('GET', '/waiting')
  return Object.fromEntries(body.data.items.map(({ reference, cause }) => [String(reference), String(cause)]))
}
