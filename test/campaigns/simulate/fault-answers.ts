/** Faults of what the supplier says: answers that are broken, wrong or about something else. */
import type { Chance } from './chance.ts'
import type { Fault, Scene } from './fault.ts'
import type { Trip } from './network.ts'
import type { Asked, Given } from './supplier.ts'
import type { World } from './world.ts'

type Order = Record<string, unknown> & { keys: string[]; quantity: number; status: string }
type Change = (given: Given) => Given

const json = (given: Given, value: unknown): Given => ({ ...given, body: Buffer.from(JSON.stringify(value)) })
const parse = (given: Given): { success?: boolean; data?: unknown } => {
  try {
    return JSON.parse(given.body.toString()) as { success?: boolean; data?: unknown }
  } catch {
    return {}
  }
}

/** Changes the order of a 2xx; everything else stays as it was. */
const ofOrder =
  (change: (order: Order) => Order): Change =>
  (given) => {
    const answer = parse(given)
    const order = answer.data as Order | undefined
    return given.status < 300 && order?.keys ? json(given, { ...answer, data: change(order) }) : given
  }

/** Changes the orders of a page. */
const ofPage =
  (change: (orders: Order[]) => Order[]): Change =>
  (given) => {
    const answer = parse(given)
    const page = answer.data as { items?: Order[]; total?: number } | undefined
    if (given.status >= 300 || !page?.items) return given
    return json(given, { ...answer, data: { ...page, items: change(page.items) } })
  }

const whole: Change[] = [
  (given) => ({ ...given, status: 200, body: Buffer.from('<html>Maintenance</html>') }),
  (given) => ({ ...given, headers: { ...given.headers, 'content-encoding': 'gzip' } }),
  (given) => ({ ...given, body: Buffer.alloc(0) }),
  (given) => ({
    ...given,
    status: 200,
    body: Buffer.from('{"success":false,"error":{"code":"out_of_stock","message":"None left."}}'),
  }),
  (given) => ({ ...given, body: given.body.subarray(0, given.body.length - 3) }),
]

/** Refuses what has run, in an answer that carries the order. */
const refusedWithOrder: Change = (given) => {
  const { data } = parse(given)
  if (given.status >= 300 || data === undefined) return given
  const error = { code: 'insufficient_balance', message: 'Too little.' }
  return { ...json(given, { success: false, error, data }), status: 402 }
}

const otherOrder = ofOrder((order) => ({ ...order, external_order_id: 'somebody-else' }))
export const otherQuantity = ofOrder((order) => ({ ...order, quantity: order.quantity + 1 }))

/** An order that was never made. */
const ghost = ofOrder((order) => ({ ...order, id: `ghost-${order.id}`, external_order_id: 'somebody-else' }))
/** Another order of ours, as of a supplier that mixes up its answers. */
const mixedUp = ({ supplier, chance }: World): Change =>
  ofOrder((order) => {
    const others = supplier.world.orders.known(30).filter(({ id }) => id !== order.id)
    if (others.length === 0) return order
    const { id, externalOrderId, quantity } = chance.named('mixed up').pick(others)
    return { ...order, id, external_order_id: externalOrderId, quantity }
  })

/** Answers to the request that creates an order. Whatever they say, the request has run. */
function placing(world: World): Change[] {
  const named = [otherOrder, otherQuantity, ghost, mixedUp(world), refusedWithOrder]
  return [...whole, ...named, ...named]
}

/** The request with this key is answered with an order that was never made, and does not run. */
function answerWithGhost({ supplier }: World, key: string): void {
  const act = ({ headers, body }: Asked): Given | undefined => {
    if (headers[supplier.dialect.headers.idempotencyKey] !== key) return undefined
    supplier.instead.delete(act)
    const order = { ...JSON.parse(body), id: `ghost-${key.slice(0, 8)}`, status: 'open', amount: '1.00', keys: [] }
    const data = { ...order, external_order_id: 'somebody-else', currency: 'EUR' }
    return { status: 201, headers: {}, body: Buffer.from(JSON.stringify({ success: true, data })) }
  }
  supplier.instead.add(act)
}

export const notFound: Change = (given) => ({
  ...given,
  status: 404,
  body: Buffer.from('{"success":false,"error":{"code":"not_found","message":"There is no such order."}}'),
})

export const oneKeyMore = (now: number): Change =>
  ofOrder((order) =>
    order.status === 'completed' && order.keys.length === order.quantity
      ? { ...order, keys: [...order.keys, `PHANT-OM${now}`] }
      : order,
  )

/** Keys come as pictures in place of text. */
export const keysAsPictures: Change = ofOrder((order) => ({
  ...order,
  keys: order.keys.map((_, place) => `data:image/png;base64,iVBORw0KGgo${place}`),
}))

/**
 * A key that is with the store already, as of a supplier that mixes up its shelves. One that was handed over before a
 * restore this side cannot recognise: the supplier alone says whose it is.
 */
export const keyOfAnother = ({ store, restoredAt }: World): Change => {
  const known = store.heard.filter(({ at }) => restoredAt === undefined || at > restoredAt + 1_000)
  const handedOut = known.flatMap(({ data }) => (Array.isArray(data.keys) ? (data.keys as string[]) : []))
  return ofOrder((order) => {
    const [key] = handedOut.filter((one) => !order.keys.includes(one))
    return key && order.keys.length === 1 ? { ...order, keys: [key] } : order
  })
}

export const nowFailed: Change = ofOrder((order) => ({ ...order, status: 'failed', keys: [] }))
/** The same of an order that has keys: a purchase that has seen one does not believe it. */
export const nowFailedWithKeys: Change = ofOrder((order) =>
  Array.isArray(order.keys) && order.keys.length > 0 ? { ...order, status: 'failed', keys: [] } : order,
)

/** @param failed the orders that were said to have failed: what a second reading says as well is believed, and nothing is promised */
function reading({ world }: Scene, chance: Chance, path: string, failed: Set<string>): Change {
  const { timeline } = world
  const wrong = [notFound, otherQuantity, oneKeyMore(timeline.now()), keyOfAnother(world), nowFailed]
  const change = chance.pick([...whole, ...wrong])
  if (change !== nowFailed) return change
  if (failed.has(path)) return notFound
  failed.add(path)
  return change
}

/** An order of a later generation stands in the list under the reference of the one before it. */
const underEarlier: Change = ofPage((orders) =>
  orders.map((order) => {
    const reference = String(order.external_order_id)
    return { ...order, external_order_id: reference.replace(/\.([2-9])$/, (_, last: string) => `.${Number(last) - 1}`) }
  }),
)

export const otherQuantities: Change = ofPage((orders) =>
  orders.map((order) => ({ ...order, quantity: order.quantity + 1 })),
)

/** Each order stands in the list twice, the second time under an unknown id. */
export const listedTwice: Change = ofPage((orders) =>
  orders.flatMap((order) => [order, { ...order, id: `ghost-${String(order.id).slice(0, 8)}` }]),
)

/**
 * Lists that are wrong about orders, each in one way. Under another reference alone an order is hidden: with a supplier that
 * forgets keys as well what ran is unknown, and nothing is promised.
 */
export const bentLists = ({ settings }: World): Change[] => [
  ...(settings.supplier.idempotencyMemorySeconds === undefined ? [underEarlier] : []),
  otherQuantities,
  listedTwice,
]

/** Half of the seeds bend everything but the answers to orders, so that purchases get far enough to be read. */
const wrongAnswers: Fault = {
  id: 'F17',
  what: 'answers that are cut, no JSON, compressed, an error under 200, about another order or quantity',
  begin: (scene) => {
    const { world, chance, fired } = scene
    const orders = chance.pick([0, 0.7])
    /** Orders that the supplier has another quantity of, also when they are read. */
    const wrong = new Set<string>()
    const failed = new Set<string>()
    const keptWrong: Change = ofOrder((order) => {
      wrong.add(String(order.id))
      return { ...order, quantity: order.quantity + 1 }
    })
    const hook = (trip: Trip): void => {
      if (wrong.has(trip.asked.path.replace('/orders/', ''))) return void trip.changes.push(otherQuantity)
      const placed = trip.key !== undefined
      if (!chance.odds(placed ? orders : 0.4)) return
      const { path, method } = trip.asked
      if (placed && chance.odds(0.2)) trip.answer = 'cut'
      else if (trip.key !== undefined && chance.odds(0.1)) answerWithGhost(world, trip.key)
      else if (placed) trip.changes.push(chance.odds(0.15) ? keptWrong : chance.pick(placing(world)))
      else if (method === 'GET' && path === '/orders') trip.changes.push(chance.pick([...whole, ...bentLists(world)]))
      else if (method === 'GET' && path.startsWith('/orders/')) trip.changes.push(reading(scene, chance, path, failed))
      else if (method === 'GET') trip.changes.push(chance.pick(whole))
      else return
      fired()
    }
    world.road.hooks.add(hook)
    return () => void world.road.hooks.delete(hook)
  },
}

const limited: Fault = {
  id: 'F16',
  what: '429 storms, with a Retry-After that is missing, absurd or a date',
  begin: ({ world, chance, fired }) => {
    const { supplier, dialect, timeline } = world
    const values = [undefined, '1', '7', '-5', 'soon', '999999999', '0', '30', 'Tue, 14 Nov 2023 22:13:20 GMT']
    const share = chance.pick([0.3, 0.7])
    const storm = (): Given | undefined => {
      if (!chance.odds(share)) return undefined
      fired()
      const date = new Date(timeline.now() + 20_000).toUTCString()
      const retryAfter = chance.pick([...values, date])
      return {
        status: 429,
        headers: retryAfter === undefined ? {} : { [dialect.headers.retryAfter]: retryAfter },
        body: Buffer.from('{"success":false,"error":{"code":"rate_limited","message":"Too many requests."}}'),
      }
    }
    supplier.instead.add(storm)
    return () => void supplier.instead.delete(storm)
  },
}

const errorBefore: Fault = {
  id: 'F15',
  what: '5xx before anything ran, and the same 5xx for every repeat of the key',
  begin: ({ world, chance, fired }) => {
    const { supplier, dialect } = world
    const cached = new Set<string>()
    const share = chance.pick([0.4, 0.8])
    const fail = ({ headers, path, method }: { headers: Record<string, string>; path: string; method: string }) => {
      const key = method === 'POST' && path === '/orders' ? headers[dialect.headers.idempotencyKey] : undefined
      if (key !== undefined && (cached.has(key) || chance.odds(share))) cached.add(key)
      else if (key !== undefined || !chance.odds(0.05)) return undefined
      fired()
      return chance.pick(['internal', 'unavailable'] as const)
    }
    supplier.instead.add(fail)
    return () => void supplier.instead.delete(fail)
  },
}

export const answerFaults: Fault[] = [errorBefore, limited, wrongAnswers]
