/** After the faults: whether anything moves still, and how long it takes until nothing does. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Chance } from './chance.ts'
import type { PlannedOrder } from './customers.ts'
import type { ClaimEntry, Status } from './duty.ts'
import { STOCK, settleOpenOrders } from './mischief.ts'
import type { Scene } from './scene.ts'
import { noteEnd, type Ward } from './supervise.ts'

interface Calm {
  patienceSeconds: number
  wards: readonly Ward[]
  /** Whether further claims may be raised. */
  claimsMayCome: () => boolean
  onMoving: (what: string[]) => void
}

/** @returns seconds until nothing moved any more, or until patience was over */
export async function calmDown(
  scene: Scene,
  supplier: Chance,
  orders: PlannedOrder[],
  { patienceSeconds, wards, claimsMayCome, onMoving }: Calm,
): Promise<number> {
  const { network, office } = scene
  network.calm()
  await office.clearFaults()
  // A product that ran out may have been left so, where its supplier was killed in between.
  for (const id of scene.productIds) await office.post(`/offers/${id}`, { stock: STOCK })
  let isOver = false
  const lived = wards.map((ward) => liveOn(ward, () => isOver))
  const since = performance.now()
  const elapsed = () => (performance.now() - since) / 1_000
  // Twice in a row, so that nothing between two steps is taken for rest.
  for (let quiet = 0; quiet < 2 && elapsed() < patienceSeconds; await sleep(500)) {
    await settleOpenOrders(office, supplier).catch(() => {})
    const moving = await stillMoving(scene, orders).catch(() => ['the service does not answer'])
    if (claimsMayCome()) moving.push('claims may come')
    onMoving(moving)
    quiet = moving.length === 0 ? quiet + 1 : 0
  }
  isOver = true
  void Promise.all(lived)
  return elapsed()
}

/** Starts a process, and again when it ends by itself. */
async function liveOn(ward: Ward, isOver: () => boolean): Promise<void> {
  while (!isOver()) {
    const ended = await ward.service.start().ended
    if (!isOver()) noteEnd(ward, 'at rest', ended)
  }
}

const UNFINISHED = ['planned', 'waiting', 'sending', 'unknown', 'accepted', 'completed', 'review']

/** What is not over yet, in a few words each. */
async function stillMoving({ office, duty, readRecord }: Scene, orders: PlannedOrder[]): Promise<string[]> {
  const sent = await office.deliveries()
  const arrived = new Set(sent.flatMap(({ state, deliveryId }) => (state === 'delivered' ? [deliveryId] : [])))
  // The second copy of one that arrived brings no news.
  const due = sent.filter(({ state, deliveryId }) => state === 'due' && !arrived.has(deliveryId))
  // The supplier would wait for minutes after many attempts: its people send again what is due.
  for (const { deliveryId, dueAt } of due) {
    if (dueAt > Date.now() + 5_000) await office.post(`/deliveries/${deliveryId}/resend`)
  }
  const closed = new Set(readRecord().flatMap(({ type, data }) => (type === 'order.closed' ? [data.reference] : [])))
  const { counts } = await duty.get<Status>('/status')
  const claims = await duty.all<ClaimEntry>('/claims?state=open')
  const all: [string, number | undefined][] = [
    ['deliveries due', due.length],
    ['orders open', orders.filter(({ reference }) => !closed.has(reference)).length],
    ...UNFINISHED.map((state): [string, number | undefined] => [state, counts.purchases[state]]),
    ...['stored', 'retry', 'orphan'].map((state): [string, number | undefined] => [state, counts.deliveries[state]]),
    ['callbacks due', counts.callbacks.due],
    ['claims open', claims.length],
  ]
  return all.flatMap(([what, count]) => (count ? [`${count} ${what}`] : []))
}
