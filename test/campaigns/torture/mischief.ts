/** The supplier's and the store's own faults: what goes wrong behind a network that works. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { BackOffice } from './back-office.ts'
import type { Chance } from './chance.ts'

export interface Victims {
  office: BackOffice
  store: { tell: (message: object) => void }
  productIds: string[]
  /** How long the service waits for the answer to an order. */
  orderMs: number
  /** An order shows in the supplier's list by then. */
  listLagMs: number
  done: Record<string, number>
}

type Prank = (victims: Victims, chance: Chance) => Promise<void>

const fault = (fault: string, more: object = {}): Prank => {
  return ({ office }) => office.post('/faults', { fault, ...more })
}

/** By name, with how often each is drawn; the slow ones end in waits of a minute, which a short run has no time for. */
const PRANKS: Record<string, { weight: number; slow?: boolean; play: Prank }> = {
  'answers 500 after the charge': { weight: 4, play: fault('error-after') },
  'answers 503 after the charge': { weight: 2, play: fault('error-after', { kind: 'unavailable' }) },
  'answers 500 before the charge': { weight: 2, play: fault('error-before') },
  'answers that the key is in progress': { weight: 1, play: fault('error-after', { kind: 'in_progress' }) },
  'loses the answer': { weight: 3, play: fault('answer-lost') },
  'answers too late': {
    weight: 2,
    play: ({ office, orderMs }) => office.post('/faults', { fault: 'slow', delayMs: orderMs + 500 }),
  },
  'answers 429': { weight: 2, play: fault('rate-limit', { retryAfter: 1 }) },
  'answers 429 with nonsense': { weight: 1, play: fault('rate-limit', { retryAfter: 'soon' }) },
  'fails a page of its list': { weight: 2, play: fault('error-before', { match: { path: '/orders', method: 'GET' } }) },
  'gives fewer rows a page than were asked for': {
    weight: 2,
    play: fault('short-pages', { most: 5, times: 20, match: { path: '/orders' } }),
  },
  'counts fewer orders than it lists': {
    weight: 2,
    play: fault('capped-total', { most: 5, times: 5, match: { path: '/orders' } }),
  },
  'shows an order late': {
    weight: 3,
    play: ({ office, listLagMs }, chance) =>
      office.post('/faults', { fault: 'list-lag', delayMs: chance.between(100, listLagMs - 100) }),
  },
  // The key is remembered, so that the repeat which follows finds the order all the same.
  'shows an order far too late, its answer lost': {
    weight: 5,
    play: async ({ office }, chance) => {
      await office.post('/faults', { fault: 'list-lag', delayMs: chance.between(20_000, 40_000) })
      await office.post('/faults', { fault: 'answer-lost' })
    },
  },
  'hands out some keys first': {
    weight: 2,
    play: ({ office }, chance) =>
      office.post('/faults', {
        fault: 'partial-keys',
        delayMs: 1_500,
        status: chance.pick(['open', 'completed']),
      }),
  },
  'fails an order': { weight: 2, play: fault('failed-order') },
  'leaves an order open': { weight: 1, play: fault('hold-open') },
  'is out of stock': { weight: 1, slow: true, play: fault('out-of-stock') },
  'finds the balance too low': { weight: 1, slow: true, play: fault('insufficient-balance') },
  'runs out of a product for a while': {
    weight: 1,
    play: async ({ office, productIds }, chance) => {
      const id = chance.pick(productIds)
      await office.post(`/offers/${id}`, { stock: 0 })
      await sleep(chance.between(200, 1_500))
      await office.post(`/offers/${id}`, { stock: STOCK })
    },
  },
  'delivers twice': { weight: 3, play: fault('duplicate-delivery') },
  'delivers in another order': { weight: 3, play: fault('reorder-deliveries', { delayMs: 2_000 }) },
  'does not deliver': { weight: 3, play: fault('drop-delivery') },
  'store answers 500': {
    weight: 2,
    play: async ({ store }) => store.tell({ status: 500, recorded: false }),
  },
  'store answers 500 and has recorded': {
    weight: 2,
    play: async ({ store }) => store.tell({ status: 500, recorded: true }),
  },
}

/** More than any run sells. */
export const STOCK = 1_000_000

/** Plays one prank every so often until it is stopped. */
export async function makeMischief(
  victims: Victims,
  { chance, everyMs, slow, stopped }: { chance: Chance; everyMs: number; slow: boolean; stopped: () => boolean },
): Promise<void> {
  const weights = weightsOf(slow)
  while (!stopped()) {
    await sleep(chance.between(Math.floor(everyMs / 2), Math.ceil(everyMs * 1.5)))
    const name = chance.weighted(weights)
    if (stopped()) return
    try {
      await PRANKS[name]?.play(victims, chance)
      victims.done[name] = (victims.done[name] ?? 0) + 1
    } catch {
      // The supplier has just been killed: it has its own trouble.
    }
  }
}

/** @param slow whether those that end in waits of a minute are drawn too */
export function weightsOf(slow: boolean): Record<string, number> {
  const names = Object.keys(PRANKS).filter((name) => slow || !PRANKS[name]?.slow)
  return Object.fromEntries(names.map((name) => [name, PRANKS[name]?.weight ?? 0]))
}

/** An order that was left open is completed or failed by the supplier's people, most of them after a few seconds. */
export async function settleOpenOrders(office: BackOffice, chance: Chance): Promise<void> {
  for (const { id, status, dueAt, createdAt } of await office.orders()) {
    if (status !== 'open' || dueAt !== null || Date.now() - createdAt < 3_000) continue
    await office.post(`/orders/${id}/${chance.happens(0.7) ? 'complete' : 'fail'}`)
  }
}
