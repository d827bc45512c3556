/** The REST API as a person on duty uses it. */

export interface Page<T> {
  items: T[]
  next: string | null
}

export interface PurchaseEntry {
  id: string
  state: string
  holdReason: string | null
  quantity: number
  supplierOrderId: string | null
  externalOrderId: string
  note: string | null
  /** The number of the claim whose key it replaces. */
  claim: number | null
}

export interface ClaimEntry {
  number: number
  state: 'open' | 'bought' | 'adopted' | 'refused'
  order: { reference: string; line: string }
  purchaseId: string
  /** Which key of the purchase, from 1. */
  ordinal: number
  /** The purchase that replaces the key. */
  replacedBy: string | null
}

export interface Effect {
  id: string
  type: string
  state: string
  attempts: number
  notBefore: string
  lastError: string | null
}

export interface Delivery {
  id: string
  deliveryId: string
  event: string | null
  supplierOrderId: string | null
  state: string
}

export interface Status {
  freeze: { reason: string; at: string; causes: { id: string; reason: string }[] } | null
  counts: { purchases: Record<string, number>; deliveries: Record<string, number>; callbacks: Record<string, number> }
}

/** The service refused, and nothing was done. */
export class Refusal extends Error {
  readonly code: string
  constructor(code: string, message: string) {
    super(message)
    this.code = code
  }
}

export interface Duty {
  get: <T>(route: string) => Promise<T>
  /** @throws Error with the answer's message; a `Refusal` where nothing comes of it later either */
  post: (route: string, body?: object, ifMatch?: string) => Promise<void>
  /** All rows of a list, page by page. */
  all: <T>(route: string) => Promise<T[]>
}

const DEADLINE_MS = 5_000
/** The largest page. */
const LIMIT = 200

export function createDuty(url: string, token: string): Duty {
  async function ask(method: string, route: string, body?: object, ifMatch?: string): Promise<unknown> {
    const answer = await fetch(`${url}/api/v1${route}`, {
      method,
      headers: {
        authorization: `Bearer ${token}`,
        connection: 'close',
        'content-type': 'application/json',
        ...(ifMatch === undefined ? {} : { 'if-match': `"${ifMatch}"` }),
      },
      ...(body ? { body: JSON.stringify(body) } : {}),
      signal: AbortSignal.timeout(DEADLINE_MS),
    })
    const { data, error } = (await answer.json()) as { data?: unknown; error?: { code: string; message: string } }
    if (!error) return data
    const words = `${method} ${route}: ${error.code}: ${error.message}`
    throw answer.status < 500 ? new Refusal(error.code, words) : new Error(words)
  }
  const get = async <T>(route: string): Promise<T> => (await ask('GET', route)) as T
  return {
    get,
    post: async (route, body, ifMatch) => void (await ask('POST', route, body, ifMatch)),
    all: async <T>(route: string) => {
      const rows: T[] = []
      for (let before = ''; ; ) {
        const joint = route.includes('?') ? '&' : '?'
        const page = await get<Page<T>>(`${route}${joint}limit=${LIMIT}${before}`)
        rows.push(...page.items)
        if (page.next === null) return rows
        before = `&before=${page.next}`
      }
    },
  }
}
