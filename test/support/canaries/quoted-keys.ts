/** A supplier that quotes licence keys in what it writes for people: about orders, and in refusals. */
import { until } from '../service-process.ts'
import type { Harvest } from './harvest.ts'
import type { CanaryInstallation } from './installation.ts'

/** Orders whose keys have come and that fail after all. */
const REVOKED = 6
/** Refusals of each kind of request. */
const REFUSED = 2

/** Every one of these texts quotes a key that was issued, as the supplier wrote it and in small letters. */
export function quoteKeys({ sandbox, supplier, shop }: CanaryInstallation): void {
  const { orders } = sandbox.world
  const sentence = (key: string) => `The key ${key} (${key.toLowerCase()}) was revoked by its publisher.`
  const handedOver = new Set([...shop.keys().values()].flat())
  const revoked = orders
    .known(1_000)
    .filter(({ id, status }) => status === 'completed' && orders.keysOf(id).every((key) => handedOver.has(key)))
    .slice(0, REVOKED)
  for (const order of revoked) orders.fail(order, sentence(orders.keysOf(order.id)[0] as string))
  for (const key of [...handedOver].slice(0, REFUSED)) {
    const body = JSON.stringify({ success: false, error: { code: 'invalid_request', message: sentence(key) } })
    for (const [method, path] of [
      ['POST', '/v1/orders'],
      ['GET', '/v1/orders/'],
      ['GET', '/v1/balance'],
    ] as const) {
      supplier.substitute({ method, path, answer: () => ({ status: 400, body }) })
    }
  }
}

/** Waits until what the supplier wrote about an order that failed, and about one it refused, is shown to those who may see purchases. */
export const quotesArrive = ({ ask }: Harvest, token: string): Promise<void> =>
  until('what the supplier wrote', async () => {
    const { data } = await ask('GET', '/api/v1/purchases?limit=200', { token })
    const shown = (data.items as { state: string; failureMessage: string | null }[]).filter(({ failureMessage }) =>
      failureMessage?.startsWith('The key [removed] ([removed]) was revoked'),
    )
    return shown.some(({ state }) => state === 'fulfilled') && shown.some(({ state }) => state === 'rejected')
  })
