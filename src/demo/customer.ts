/** The customer of the demo orders in the demo store now and then, through the API that any store uses. */
import { externalOrderId } from '../domain/purchase-keys.ts'
import { messageOf } from '../errors.ts'

interface CustomerOptions {
  /** Returns the address of the service. */
  url: () => string
  /** Returns the token of the store in which the customer buys. */
  token: () => string
  /** Returns the number of the customer's first reference: 1 for `D-0001`. */
  number: () => Promise<number>
  random?: () => number
  now?: () => number
}

export type Customer = ReturnType<typeof createCustomer>

/** The customer's references begin with this text. */
export const CUSTOMER_PREFIX = 'D-'

/** Returns a reference, such as `D-0193`. */
export const customerReference = (number: number): string => `${CUSTOMER_PREFIX}${String(number).padStart(4, '0')}`

/** The first order comes right after the start. Later orders are 20 to 40 s apart, so that a person can follow them. */
const FIRST_MS = 2_000
const PAUSE_MS = { least: 20_000, most: 40_000 }

/** The API must answer within this time. It normally takes milliseconds. */
const TIMEOUT_MS = 10_000

/** One order in five is for two units. */
const TWO_OF = 5

/** How the order under a fault is placed. */
interface UnderFault {
  quantity?: number | undefined
  /** Is called with the reference before the order is placed, once more where a person has ordered under that reference already. */
  before: (reference: string) => void
}

/** The common beginning of the references at the supplier under which an order of a store is bought. */
export const supplierStem = (store: string, reference: string, lengthMax: number): string =>
  externalOrderId({ store, reference, line: '1', part: 1, generation: 1 }, lengthMax).slice(0, -'1.1.1'.length)

interface Offered {
  id: string
  price: string
  stock: number | null
  available: boolean
}

interface StatedOrder {
  state: string
  lines: { state: string }[]
  timeline: { at: string; what: string; detail: string | null }[]
}

export function createCustomer({ url, token, number, random = Math.random, now = Date.now }: CustomerOptions) {
  let timer: NodeJS.Timeout | undefined
  let isRunning = false
  let orders = 0
  let first: Promise<number> | undefined
  let placed = 0
  /** Products of orders under a fault. Quayside may hold other orders of such a product, so the customer buys them least. */
  const underFault = new Set<string>()
  let lastReference: string | null = null
  let lastAt: number | null = null
  let problem: string | null = null

  async function ask(path: string, body?: object): Promise<{ status: number; data: Record<string, unknown> }> {
    const response = await fetch(`${url()}/api/v1${path}`, {
      method: body ? 'POST' : 'GET',
      headers: { authorization: `Bearer ${token()}`, 'content-type': 'application/json', connection: 'close' },
      ...(body && { body: JSON.stringify(body) }),
      signal: AbortSignal.timeout(TIMEOUT_MS),
    })
    const { data = {}, error } = (await response.json()) as {
      data?: Record<string, unknown>
      error?: { message: string }
    }
    if (!response.ok && response.status !== 409)
      throw new Error(error?.message ?? `the API answered ${response.status}`)
    return { status: response.status, data }
  }

  async function choose(quantity: number): Promise<{ sku: string; quantity: number }> {
    const { data } = await ask('/listings?limit=200')
    const all = (data.items as Offered[]).filter(
      ({ available, stock }) => available && (stock === null || stock >= TWO_OF),
    )
    const others = all.filter(({ id }) => !underFault.has(id))
    const offered = others.length > 0 ? others : all
    const draw = () => offered[Math.floor(random() * offered.length)]
    const [one, other] = [draw(), draw()]
    if (!one || !other) throw new Error('the store sells nothing now')
    // The customer draws two products and buys the cheaper one, because people buy more cheap products.
    const chosen = Number(other.price) < Number(one.price) ? other : one
    return { sku: chosen.id, quantity }
  }

  /** Places an order. Skips a reference under which a person has ordered already. */
  async function place({ quantity, before }: Partial<UnderFault>): Promise<string> {
    const line = await choose(quantity ?? (random() < 1 / TWO_OF ? 2 : 1))
    if (before) underFault.add(line.sku)
    first ??= number()
    const start = await first.catch((error: unknown) => {
      first = undefined
      throw error
    })
    for (;;) {
      const reference = customerReference(start + placed)
      placed += 1
      before?.(reference)
      const { status } = await ask('/orders', { reference, lines: [{ id: '1', ...line }] })
      if (status === 202) return reference
    }
  }

  async function orderNow(how: Partial<UnderFault> = {}): Promise<string> {
    try {
      const reference = await place(how)
      orders += 1
      lastReference = reference
      lastAt = now()
      problem = null
      return reference
    } catch (error) {
      problem = messageOf(error)
      throw error
    }
  }

  /** Reads an order as its store does: while a line is held, so is the order. Rejects while the API does not answer. */
  async function orderOf(reference: string) {
    const { data } = await ask(`/orders/${reference}`)
    const { state, lines, timeline } = data as unknown as StatedOrder
    const isHeld = state === 'open' && lines.some((line) => line.state === 'held')
    return {
      state: isHeld ? 'held' : state,
      timeline: timeline.map(({ at, what, detail }) => ({ at: Date.parse(at), what, detail })),
    }
  }

  function plan(ms: number): void {
    clearTimeout(timer)
    timer = setTimeout(() => {
      // `state` shows the error, and the next order tries again.
      void orderNow()
        .catch(() => {})
        .finally(() => {
          if (isRunning) plan(PAUSE_MS.least + random() * (PAUSE_MS.most - PAUSE_MS.least))
        })
    }, ms)
  }

  return {
    state: () => ({ running: isRunning, orders, lastReference, lastAt, problem }),
    start: (): void => {
      if (isRunning) return
      isRunning = true
      plan(FIRST_MS)
    },
    stop: (): void => {
      isRunning = false
      clearTimeout(timer)
    },
    orderNow,
    orderOf,
  }
}
