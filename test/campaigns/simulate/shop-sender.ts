/** Sends the deliveries of a shop: late, twice, once or never, and never again by itself. */
import { createHmac } from 'node:crypto'
import type { ShopDelivery, SimShop } from './shop.ts'
import type { World } from './world.ts'

const SECOND = 1_000
const MINUTE = 60 * SECOND

/** Longest that the shop waits for our answer. */
const PATIENCE_MS = 5 * SECOND

/** @param violate notes that a promise was broken */
export function startShopSender(world: World, shop: SimShop, violate: (text: string) => void): void {
  const { timeline, sender, endpoint } = world
  const chance = world.chance.named('shop deliveries')
  const badShare = chance.pick([0, 0.2, 0.6, 1])
  let isDue = false

  const kick = (): void => {
    if (isDue) return
    isDue = true
    // A shop of WordPress without visitors runs no cron.
    const ms = chance.odds(0.9) ? chance.between(0, 60 * SECOND) : chance.between(5 * MINUTE, 30 * MINUTE)
    timeline.after(ms, () => {
      isDue = false
      for (const delivery of shop.takeDeliveries()) void send(delivery)
    })
  }

  async function send(delivery: ShopDelivery): Promise<void> {
    const fate = chance.odds(badShare) ? chance.pick(['never', 'twice', 'late', 'unheard', 'forged'] as const) : 'once'
    if (fate === 'never') return
    const travelMs = fate === 'late' ? chance.between(MINUTE, 60 * MINUTE) : chance.between(1, 30)
    await timeline.sleep(Math.min(travelMs, PATIENCE_MS))
    if (travelMs > PATIENCE_MS) {
      delivery.answered(null)
      timeline.after(travelMs - PATIENCE_MS, () => void bring(delivery))
      return
    }
    if (fate === 'twice') timeline.after(chance.between(0, 30 * SECOND), () => void bring(delivery))
    if (fate === 'forged') await forge(delivery)
    const status = await bring(delivery)
    delivery.answered(fate === 'unheard' ? null : (status ?? null))
  }

  function bring({ url, headers, body }: ShopDelivery): Promise<number | undefined> {
    const { [shop.signatureHeader]: signature } = headers
    // Nothing is kept of a try whether the address answers.
    if (signature === undefined) return endpoint(url, distinct(headers), Buffer.from(body))
    return sender.bring(url, headers, body, signature)
  }

  /** A stranger, who does not know the secret, says that all is paid. */
  async function forge({ url, headers, body }: ShopDelivery): Promise<void> {
    const paid = body.replace(/"status":"[a-z-]+"/, '"status":"processing"')
    const signature = createHmac('sha256', 'stranger').update(paid).digest('base64')
    const forged = { ...headers, [shop.signatureHeader]: signature }
    const status = await endpoint(url, distinct(forged), Buffer.from(paid))
    if (status !== undefined && status < 300) violate(`a forged delivery of the shop was answered ${status}`)
  }

  shop.changed.add(kick)
}

const distinct = (headers: Record<string, string>) =>
  Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, [value]]))
