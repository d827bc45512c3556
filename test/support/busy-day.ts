/** A realistic day of an installation, lived through by the flows with the clock moved by hand: what pictures and tests of pages show. */
import { sumEarnings } from '../../src/ordering/earnings.ts'
import { type ApiWorld, OTHER_STORE, openApi } from './api-world.ts'
import { insertDeliveries } from './console-data.ts'
import { STORE } from './test-app.ts'

const MINUTE = 60_000
const HOUR = 60 * MINUTE

/** Orders of each hour: a quiet night, a busy evening. */
const ORDERS = [3, 2, 1, 1, 1, 2, 3, 5, 6, 7, 8, 8, 9, 8, 7, 8, 9, 11, 12, 13, 12, 9, 6, 4]

/** What goes wrong, by the number of the order that it meets. */
const FAULTS: Record<number, Parameters<ApiWorld['sandbox']['faults']['add']>[0]> = {
  12: { fault: 'duplicate-delivery' },
  25: { fault: 'answer-lost' },
  40: { fault: 'rate-limit' },
  61: { fault: 'failed-order' },
  77: { fault: 'error-after' },
  90: { fault: 'drop-delivery' },
  104: { fault: 'answer-lost' },
  131: { fault: 'out-of-stock' },
}

export type BusyDay = Awaited<ReturnType<typeof openBusyDay>>

export async function openBusyDay() {
  const world = await openApi({
    balanceMinor: 6_840_000,
    storeNames: { [STORE]: 'North Games', [OTHER_STORE]: 'Tools & More' },
  })
  const { sandbox, runtime, ask, tokens } = world
  await ask('POST', '/webhooks', { body: { url: world.url } })
  const sync = async () => {
    await runtime.syncs.finish('schedule')
    await world.publish()
  }
  await sync()
  await world.pass(MINUTE)
  const { body } = await ask('GET', '/listings?limit=200', { token: tokens.store })
  const sold = body.data.items.filter(({ available, stock }) => available && Number(stock) > 20)
  const deliver = async () => {
    await sandbox.deliverDue()
    while ((await runtime.work.inbox()) > 0);
    await world.settle()
  }
  let number = 0
  const place = async (lines: object[]) => {
    number += 1
    const reference = String(20_480 + number)
    await ask('POST', '/orders', { token: tokens.store, body: { reference, lines } })
    return reference
  }
  const skuOf = (index: number) => String(sold[(index * 7) % sold.length]?.id)

  for (const [hour, count] of ORDERS.entries()) {
    const gap = Math.floor(HOUR / count)
    for (let one = 0; one < count; one += 1) {
      const fault = FAULTS[number]
      if (fault) sandbox.faults.add(fault)
      const line = { id: '1', sku: skuOf(number), quantity: 1 + (number % 9 === 0 ? 1 : 0) }
      await place(number % 11 === 0 ? [line, { id: '2', sku: skuOf(number + 3), quantity: 1 }] : [line])
      await world.pass(1_000, 250)
      await deliver()
      await world.pass(4_000, 500)
      await deliver()
      await world.pass(gap - 5_000, Math.max(5_000, Math.floor((gap - 5_000) / 4)))
      await deliver()
    }
    if (hour === 17) for (let refused = 0; refused < 3; refused += 1) runtime.inbox.countRefused('mismatch')
    if (hour % 6 === 3) {
      sandbox.world.offers.reprice(9)
      await sync()
    }
    await runtime.hourly.write()
    await sumEarnings(world.ordering)
    await world.ordering.checkBalance()
    if (hour === 20) await ask('POST', '/sweeps')
  }
  await waitFor()
  return world

  /** What waits for a person in the end: a review, a held purchase, a held price, a dead letter. */
  async function waitFor(): Promise<void> {
    sandbox.faults.add({ fault: 'partial-keys', first: 1, delayMs: 20 * HOUR })
    await place([{ id: '1', sku: skuOf(5), quantity: 3 }])
    await world.pass(75 * MINUTE, 5 * MINUTE)
    await place([{ id: '1', sku: skuOf(2), quantity: 1, unitPrice: '1.00', currency: 'EUR' }])
    const [jumped] = sandbox.world.offers.list({}, 0, 100).items.filter(({ sku }) => sku === skuOf(9))
    if (jumped) sandbox.world.offers.change(jumped.id, { priceMinor: jumped.priceMinor * 2 })
    await sync()
    await insertDeliveries(world, [
      {
        state: 'dead',
        event: 'product.price_changed',
        attempts: 10,
        lastError: 'the offer could not be read: 503',
        finishedAt: world.now(),
      },
    ])
    await ask('POST', '/freeze', { token: tokens.operator, body: { reason: 'prices of one vendor look wrong' } })
    const { body: frozen } = await ask('GET', '/status')
    const freeze = frozen.data.freeze as { causes: { id: string }[] } | null
    await ask('POST', '/unfreeze', { token: tokens.operator, body: { causes: freeze?.causes.map(({ id }) => id) } })
    await world.pass(5 * MINUTE, MINUTE)
    await deliver()
    sandbox.faults.add({ fault: 'answer-lost' })
    await place([{ id: '1', sku: skuOf(11), quantity: 1 }])
    await world.pass(2_000, 1_000)
    await runtime.hourly.write()
    await world.ordering.checkBalance()
  }
}
