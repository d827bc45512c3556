import { z } from 'zod'

/**
 * The faults a test or a person can ask for, each used up after `times` matching requests, orders or deliveries.
 *
 * They live in memory only: a restarted sandbox is a healthy one.
 */
const requestFaults = ['answer-lost', 'error-before', 'error-after', 'slow', 'rate-limit'] as const
const orderFaults = [
  'out-of-stock',
  'insufficient-balance',
  'failed-order',
  'list-lag',
  'partial-keys',
  'hold-open',
] as const
const listFaults = ['short-pages', 'capped-total', 'filter-misses'] as const
const deliveryFaults = ['duplicate-delivery', 'reorder-deliveries', 'drop-delivery'] as const

/** A day: longer waits belong to the clock of a test, not to a fault. */
const delayMaxMs = 86_400_000

export const faultShape = z.strictObject({
  fault: z.enum([...requestFaults, ...orderFaults, ...listFaults, ...deliveryFaults]),
  /** How often it fires before it is used up. */
  times: z.number().int().positive().default(1),
  /** All that are named must agree. Without `path` a request fault meets only the POST that creates an order. */
  match: z
    .strictObject({
      /** How the external reference of the order begins. */
      externalOrderId: z.string().min(1).optional(),
      productId: z.string().min(1).optional(),
      /** Path under the base address: `/orders` is that path and all below it, `/` is every request. */
      path: z.string().startsWith('/').optional(),
      method: z.string().toUpperCase().optional(),
      /** Our name of an event, such as `order.completed`. */
      event: z.string().min(1).optional(),
    })
    .default({}),
  /** `slow`: how late; `list-lag`: how long hidden; `partial-keys`: when the rest comes; `reorder-deliveries`: at most. */
  delayMs: z.number().int().min(0).max(delayMaxMs).optional(),
  /** `slow`: wait `before` the request is run, or `after` it (the default). */
  stage: z.enum(['before', 'after']).default('after'),
  /** `error-before` and `error-after`: which failure is answered. */
  kind: z.enum(['internal', 'unavailable', 'in_progress']).default('internal'),
  /** `rate-limit`: seconds to wait; a text is sent as it is; null leaves the header out. */
  retryAfter: z.union([z.number().int(), z.string(), z.null()]).default(1),
  /** `rate-limit`: whether a number is written as seconds or as the HTTP date of that instant. */
  retryAfterForm: z.enum(['seconds', 'date']).default('seconds'),
  /** `partial-keys`: how many come first; half of them, rounded down, unless told. */
  first: z.number().int().min(0).optional(),
  /** `short-pages`: rows on a page at most, whatever was asked for; `capped-total`: the highest count that is told. */
  most: z.number().int().positive().default(10),
  /** `partial-keys`: what the order says of itself while keys are missing. */
  status: z.enum(['completed', 'open']).default('completed'),
})
export type FaultName = z.infer<typeof faultShape>['fault']

/** A fault at work: how often it can still fire and how often it has. */
export interface Fault extends z.infer<typeof faultShape> {
  id: number
  left: number
  fired: number
}

/** What a fault is held against: a request, an order or a delivery. */
export interface Subject {
  externalOrderId?: string | null | undefined
  productId?: string | undefined
  path?: string
  method?: string
  event?: string
  /** Set for the POST that creates an order. */
  createsOrder?: boolean
}

/** More than a test run ever sets; a loop gone wrong is told so instead of filling the memory. */
const faultsMax = 10_000

export interface Faults {
  add: (wanted: z.input<typeof faultShape>) => Fault
  list: () => Fault[]
  clear: () => void
  /** Takes one fault back, however often it could still fire. */
  remove: (id: number) => void
  /** Uses up one firing of the oldest fault of that name that meets the subject. */
  take: (name: FaultName, subject: Subject, applies?: (fault: Fault) => boolean) => Fault | undefined
}

export function createFaults(): Faults {
  let faults: Fault[] = []
  let lastId = 0
  return {
    add: (wanted) => {
      if (faults.length >= faultsMax) throw new RangeError(`there are ${faultsMax} faults already; delete some first`)
      const read = faultShape.parse(wanted)
      lastId += 1
      const fault = { ...read, id: lastId, left: read.times, fired: 0 }
      faults.push(fault)
      return { ...fault }
    },
    list: () => faults.map((fault) => ({ ...fault })),
    clear: () => {
      faults = []
    },
    remove: (id) => {
      faults = faults.filter((one) => one.id !== id)
    },
    take: (name, subject, applies = () => true) => {
      const fault = faults.find((one) => one.fault === name && one.left > 0 && meets(one, subject) && applies(one))
      if (!fault) return undefined
      fault.left -= 1
      fault.fired += 1
      return { ...fault }
    },
  }
}

function meets({ fault, match }: Fault, subject: Subject): boolean {
  const forRequests: readonly string[] = requestFaults
  if (forRequests.includes(fault) && match.path === undefined && !subject.createsOrder) return false
  if (match.path !== undefined && !isUnder(subject.path ?? '', match.path)) return false
  if (match.method !== undefined && match.method !== subject.method) return false
  if (match.event !== undefined && match.event !== subject.event) return false
  if (match.productId !== undefined && match.productId !== subject.productId) return false
  return match.externalOrderId === undefined || (subject.externalOrderId ?? '').startsWith(match.externalOrderId)
}

const isUnder = (path: string, parent: string): boolean =>
  parent === '/' || path === parent || path.startsWith(`${parent}/`)
